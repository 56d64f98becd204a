package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"footfall/admin"
	"footfall/counter"
	"footfall/db"
	"footfall/db/embedded"
	"footfall/pause"
	"footfall/record"
)

// embedded reports whether the embedded server is used.
func (g globals) embedded() bool { return g.DatabaseURL == "" }

// checkDatabase returns the faults of the global flags for the database and the secret.
func (g globals) checkDatabase() (f faults) {
	f.add(g.checkSecret())
	if g.embedded() {
		f.addIf(g.NeedStandby, "--require-standby: the embedded server has no standby: leave it out, or name a server that has one with "+
			"--database-url")
		f.addIf(g.Data == "", "--data: there is no home directory to keep data in: name a folder, or a server with --database-url")
		return f
	}
	d, err := db.Open(context.Background(), g.DatabaseURL, db.Options{}) // only parses the URL: it does not connect yet
	if err != nil {
		f.add(fmt.Errorf("--database-url: %w", err))
		return f
	}
	d.Close()
	return f
}

func (g globals) checkSecret() error {
	if g.SecretFile == "" {
		return nil
	}
	_, err := g.secret()
	return err
}

// embeddedConfig returns the configuration of the embedded PostgreSQL.
func (p *program) embeddedConfig() embedded.Config {
	return embedded.Config{Dir: p.Data, MustExist: !p.makesData, BinDir: p.PostgresBin, Log: p.log}
}

// nameDatabaseFlag changes an error about the location of the database, so that its text names the flag --data or
// --database-url.
func (p *program) nameDatabaseFlag(err error) error {
	folder, inFolder := errors.AsType[*embedded.DirError](err)
	switch {
	case errors.Is(err, embedded.ErrNoCluster):
		return fmt.Errorf("--data: %s contains no data of Footfall: name the folder that does, or the server with its tables with "+
			"--database-url; `footfall serve` creates a new database there", folder.Dir)
	case inFolder:
		return fmt.Errorf("--data: %w", err)
	case (db.IsConnect(err) || errors.Is(err, db.ErrSharedSessions)) && !p.embedded() && !strings.HasPrefix(err.Error(), "--database-url: "):
		return fmt.Errorf("--database-url: %w", err)
	}
	return err
}

// withURL calls f with the database's URL. If the embedded server is selected but not running, withURL starts the server,
// and stops it when f returns.
func (p *program) withURL(ctx context.Context, f func(url string) error) (err error) {
	if !p.embedded() {
		return p.nameDatabaseFlag(f(p.DatabaseURL))
	}
	url, release, err := embedded.Use(ctx, p.embeddedConfig())
	if err != nil {
		return p.nameDatabaseFlag(err)
	}
	defer func() { err = errors.Join(err, release()) }()
	return f(url)
}

// withDatabase opens the database and calls f. It does not check the version of the schema.
func (p *program) withDatabase(ctx context.Context, o db.Options, f func(d *db.DB) error) error {
	o.Log, o.RequireStandby = cmp.Or(o.Log, p.log), p.NeedStandby
	return p.withURL(ctx, func(url string) error {
		d, err := db.Open(ctx, url, o)
		if err != nil {
			return err
		}
		defer d.Close()
		if o.Writers > 0 {
			err = p.awaitDatabase(ctx, d, databaseWait)
		}
		if err == nil && !p.embedded() {
			err = d.CheckSessions(ctx)
		}
		if err != nil {
			return err
		}
		return f(d)
	})
}

// schemaCheck returns an error unless the database's schema is up to date.
type schemaCheck func(*db.DB, context.Context) error

// withTables calls f with a database that has the current schema. If the database is embedded, withTables migrates it
// first. It only checks the schema of any other database, because instances of an older version may be using it.
func (p *program) withTables(ctx context.Context, o db.Options, check schemaCheck, f func(d *db.DB) error) error {
	return p.withDatabase(ctx, o, func(d *db.DB) (err error) {
		if p.embedded() {
			_, err = d.MigrateUp(ctx)
		} else {
			err = check(d, ctx)
		}
		if err != nil {
			return err
		}
		return f(d)
	})
}

// databaseWait is how long `footfall import` and `footfall consume` wait for an unavailable database when they start.
const databaseWait = 10 * time.Minute

// awaitDatabase waits until the database responds. The database may just be starting, or a standby may be taking over.
func (p *program) awaitDatabase(ctx context.Context, d *db.DB, within time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := d.Ping(wait)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return errors.New("interrupted before the database answered: nothing was done")
		case db.RefusedForGood(err):
			return p.nameDatabaseFlag(err)
		}
		p.log.Warn("waiting for the database", "error", db.Sentence(err))
		if pause.For(wait, tryEvery) != nil && ctx.Err() == nil {
			return p.nameDatabaseFlag(fmt.Errorf("%w (tried for %v)", err, within))
		}
	}
}

const (
	// For commands that count, such as import: the maximum sizes, in bytes, of the filter of all visitors (commandFilter)
	// and of the memory of recent visitors (commandMemory). With these sizes, such a command needs less than 100 MB.
	commandFilter = 24 << 20
	commandMemory = 8 << 20
)

// withCounter opens the database and calls f with a new counter for it. Other processes that count in this database have
// their own counters.
func (p *program) withCounter(ctx context.Context, flag countriesFlag, o record.Options, f func(c *counter.Counter) error) error {
	return p.withTables(ctx, db.Options{Writers: record.Connections(), Log: o.Log}, (*db.DB).CheckSchema, func(d *db.DB) error {
		secret, err := p.secret()
		if err != nil {
			return err
		}
		countries, err := flag.openCountries(ctx, o.Log)
		if err != nil {
			return err
		}
		o.Brief, o.Filter, o.FilterMemory, o.Memory = true, true, commandFilter, commandMemory
		counts, err := counter.Open(ctx, d, counter.Options{Secret: secret, Countries: countries, Options: o})
		if err != nil {
			return orInterrupted(ctx, err)
		}
		defer counts.Close()
		return f(counts)
	})
}

// withAdmin opens a database with the current schema, and calls f with an Admin for it.
func (p *program) withAdmin(ctx context.Context, f func(a *admin.Admin) error) error {
	return p.withTables(ctx, db.Options{}, (*db.DB).CheckSchema, func(d *db.DB) error {
		secret, err := p.secret()
		if err != nil {
			return err
		}
		return f(admin.NewAdmin(d, secret))
	})
}

// commandToType returns a command line that the user can type next. It contains the name of this program, and --data if it
// is not the default.
func (p *program) commandToType(command string) string {
	if p.embedded() && p.Data != defaultData() {
		return fmt.Sprintf("%s --data '%s' %s", os.Args[0], p.Data, command)
	}
	return os.Args[0] + " " + command
}
