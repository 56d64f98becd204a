package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"footfall/migrations"
	"footfall/pause"
)

// oldestServer is the oldest major version of PostgreSQL that the schema is tested on.
const oldestServer = 15

// Migration is one step of the schema. Applied is the time when it was applied, or zero if it is pending.
type Migration struct {
	Name    string
	Applied time.Time
}

// MigrateUp applies every pending migration step, and replaces functions and views if their files have changed. It
// then grants the roles their rights like GrantRoles, because a role may have been created after the schema. Finally
// it sets the comments of tables and columns. It returns the names of the applied steps, and also functionsAndViews if
// it has replaced the functions and views. Instances may call MigrateUp concurrently: one instance migrates, and the
// others wait.
func (d *DB) MigrateUp(ctx context.Context) ([]string, error) {
	var names []string
	err := d.withMigrations(ctx, func(p *goose.Provider, conn *pgx.Conn, current int64) error {
		if newest := newestOf(p.ListSources()); current > newest {
			return newerSchema(current, newest)
		}
		applied, err := d.applySteps(ctx, p, current)
		names = append(names, applied...)
		if err != nil {
			return err
		}
		make, grant := d.makeFunctions, New(conn)
		if d.sessions.cell != nil {
			make, grant = d.makeLayer, d.queries
		}
		made, err := make(ctx, conn)
		if err != nil {
			return fmt.Errorf("create functions and views: %w", err)
		}
		if made {
			names = append(names, functionsAndViews)
		}
		err = d.untilLocked(ctx, "the rights of the roles", func() error {
			_, err := grant.RolesGrant(ctx)
			return err
		})
		if err != nil || d.sessions.cell != nil { // in a cell, makeLayer has already set the comments
			return err
		}
		return d.setComments(ctx, conn)
	})
	return names, err
}

// applySteps applies the migration steps after a version, each in one or more transactions of its own. It
// returns the names of the applied steps.
func (d *DB) applySteps(ctx context.Context, p *goose.Provider, version int64) (names []string, err error) {
	for _, step := range p.ListSources() {
		if step.Version <= version {
			continue
		}
		err := d.untilLocked(ctx, step.Path, func() error {
			_, err := p.ApplyVersion(ctx, step.Version, true)
			return lastOf(err) // without the text of the whole step, which goose adds
		})
		if err != nil {
			return names, err
		}
		names = append(names, step.Path)
	}
	return names, nil
}

func newerSchema(current, newest int64) error {
	return fmt.Errorf("the schema is at version %d, but this footfall supports versions up to %d: use a newer footfall", current, newest)
}

// ErrNoSchema reports that the database has no tables of Footfall.
var ErrNoSchema = errors.New("the database does not contain Footfall's schema: " +
	"type `footfall migrate up` as the role that should own the tables")

// CheckSchema returns an error unless the schema matches this program. It changes nothing, waits for no
// lock, and needs only the rights of footfall_app.
func (d *DB) CheckSchema(ctx context.Context) error { return d.checkSchema(ctx, "footfall_app") }

// CheckReports is like CheckSchema, but for callers that only read: if rights are missing, its error suggests the role
// footfall_report, which can only read.
func (d *DB) CheckReports(ctx context.Context) error { return d.checkSchema(ctx, "footfall_report") }

func (d *DB) checkSchema(ctx context.Context, needed string) error {
	schema, err := d.queries.SchemaSeen(ctx, needed)
	switch {
	case err != nil:
		return fmt.Errorf("look for the schema: %w", err)
	case !schema.There:
		return ErrNoSchema
	case !schema.Readable:
		return unreadableError(schema, needed)
	}
	pool := stdlib.OpenDBFromPool(d.readers)
	defer func() { _ = pool.Close() }()
	provider, store, err := newProvider(pool)
	if err != nil {
		return fmt.Errorf("look for the migrations: %w", err)
	}
	steps := provider.ListSources()
	newest := newestOf(steps)
	// Do not call the provider's method GetDBVersion, which would create the table of versions if it is missing.
	current, err := store.GetLatestVersion(ctx, pool)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if err := checkSteps(ctx, d.queries, steps, current); err != nil {
		return err
	}
	switch {
	case current > newest:
		return newerSchema(current, newest)
	case current < newest:
		return fmt.Errorf("the schema is at version %d, but this footfall needs %d: type `footfall migrate up` as the owner of the tables",
			current, newest)
	}
	return d.checkFunctions(ctx)
}

// unreadableError returns the error for a user without the right to read the schema. needed is the role that has this
// right.
func unreadableError(schema SchemaSeenRow, needed string) error {
	const owner = "type `footfall migrate up` as the owner of the tables"
	problem := fmt.Sprintf("the role %s may not read the schema's version", schema.Role)
	grant := fmt.Sprintf("make it a member of %s (as an administrator: GRANT %[1]s TO %s)", needed,
		pgx.Identifier{schema.Role}.Sanitize())
	switch {
	case schema.Member:
		return fmt.Errorf("%s: %s, which gives %s its rights", problem, owner, needed)
	case schema.Granted:
		return fmt.Errorf("%s: %s", problem, grant)
	}
	return fmt.Errorf("%s: %s, which creates the role %s, and then %s", problem, owner, needed, grant)
}

func (d *DB) checkFunctions(ctx context.Context) error {
	_, hash := functionFiles()
	files, err := schemaFiles(ctx, d.queries)
	switch {
	case err != nil:
		return fmt.Errorf("look for functions and views: %w", err)
	case !mayStay(files[functionsKey], hash):
		return errors.New("the functions and views do not match this footfall: type `footfall migrate up` as the owner of the tables")
	}
	return nil
}

// GrantRoles creates the roles footfall_app and footfall_report if the session's role may create roles. It grants them
// their rights. It returns those of the two roles that do not exist.
func (d *DB) GrantRoles(ctx context.Context) (missing []string, err error) {
	return d.queries.RolesGrant(ctx)
}

// MigrateDown reverts the newest applied step and returns its name. It fails while a service runs on the database,
// because the service could not count without the step. It first drops functions and views, which may depend on the
// step. MigrateUp creates them again.
func (d *DB) MigrateDown(ctx context.Context) (string, error) {
	var name string
	err := d.withMigrations(ctx, func(p *goose.Provider, conn *pgx.Conn, current int64) error {
		switch {
		case current == 0:
			return errors.New("there is no step to revert")
		case d.sessions.cell != nil:
			return errors.New("the steps of a cell cannot be reverted: move its apps to another cell, and drop this one")
		}
		if err := RefuseWhileInstancesRun(ctx, conn, sessionsEnd); err != nil {
			return err
		}
		if err := d.dropThen(ctx, conn, func(pgx.Tx) error { return nil }); err != nil {
			return fmt.Errorf("drop functions and views: %w", err)
		}
		return d.untilLocked(ctx, "the newest step", func() error {
			result, err := p.Down(ctx)
			if err == nil {
				name = result.Source.Path
			}
			return lastOf(err) // without the text of the whole step, which goose adds
		})
	})
	return name, err
}

// RefuseWhileInstancesRun waits until no service runs on the database of conn. It returns an error if a service still
// runs after the time within.
func RefuseWhileInstancesRun(ctx context.Context, conn *pgx.Conn, within time.Duration) error {
	for began := time.Now(); ; {
		instances, err := New(conn).StatusInstances(ctx)
		if err != nil {
			return fmt.Errorf("look for running services: %w", err)
		}
		if len(instances) == 0 {
			return nil
		}
		if time.Since(began) > within || pause.For(ctx, lockPause) != nil {
			return fmt.Errorf("running services use these tables (%d in all): stop these services first; nothing was done", len(instances))
		}
	}
}

// sessionsEnd is how long the server may take to notice that a stopped service's sessions are gone.
const sessionsEnd = 2 * time.Second

// MigrateStatus lists the migrations, oldest first.
func (d *DB) MigrateStatus(ctx context.Context) ([]Migration, error) {
	var list []Migration
	err := d.withMigrations(ctx, func(p *goose.Provider, _ *pgx.Conn, _ int64) error {
		states, err := p.Status(ctx)
		for _, s := range states {
			list = append(list, Migration{Name: s.Source.Path, Applied: s.AppliedAt})
		}
		return err
	})
	return list, err
}

// withMigrations runs f while no other process can change the schema. current is the schema's version. Before it runs
// f, it checks that the schema was made by the same steps that this program has. Statements on conn and p have no time
// limit, but a wait for a lock fails after lockWait. So f must run them within untilLocked.
func (d *DB) withMigrations(ctx context.Context, f func(p *goose.Provider, conn *pgx.Conn, current int64) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("migrate: %w", err)
		}
	}()
	sessions := d.sessions.forSteps()
	lock, err := pgx.ConnectConfig(ctx, sessions.connConfig(nil))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close(context.WithoutCancel(ctx)) }() // also releases the lock
	if err := checkServer(lock); err != nil {
		return err
	}
	q := New(lock)
	if err := q.MigrateLock(ctx); err != nil {
		return fmt.Errorf("wait for other instances: %w", err)
	}
	if err := d.requireCell(ctx, q); err != nil {
		return err
	}
	if d.sessions.cell == nil {
		err = q.SchemaMake(ctx)
	} else {
		_, err = lock.Exec(ctx, migrations.SettleNodes(), pgx.QueryExecModeSimpleProtocol) // so no step waits for a node that is down
	}
	if err != nil {
		return err
	}
	if err := q.LocksGiveUp(ctx, milliseconds(lockWait)); err != nil {
		return err
	}

	pool := sql.OpenDB(stepConnector{stdlib.GetConnector(*sessions.connConfig(map[string]string{"lock_timeout": milliseconds(lockWait)}))})
	defer func() { _ = pool.Close() }()
	provider, _, err := newProvider(pool)
	if err != nil {
		return err
	}
	current, err := provider.GetDBVersion(ctx)
	if err == nil {
		err = checkSteps(ctx, q, provider.ListSources(), current)
	}
	if err != nil {
		return err
	}
	return f(provider, lock, current)
}

func newProvider(pool *sql.DB) (*goose.Provider, *stepStore, error) {
	versions, err := database.NewStore(goose.DialectPostgres, goose.DefaultTablename)
	if err != nil {
		return nil, nil, err
	}
	store := &stepStore{versions, map[int64]string{}}
	p, err := goose.NewProvider(goose.DialectCustom, pool, migrations.FS, goose.WithDisableGlobalRegistry(true), goose.WithStore(store))
	if err != nil {
		return nil, nil, err
	}
	for _, step := range p.ListSources() {
		store.names[step.Version] = step.Path
	}
	return p, store, nil
}

func checkServer(conn *pgx.Conn) error {
	version := conn.PgConn().ParameterStatus("server_version")
	digits, _, _ := strings.Cut(version, ".")
	if major, err := strconv.Atoi(digits); err == nil && major < oldestServer {
		return fmt.Errorf("the server is PostgreSQL %s; Footfall needs %d or later", version, oldestServer)
	}
	if encoding := conn.PgConn().ParameterStatus("server_encoding"); encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s; Footfall needs UTF8: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", encoding)
	}
	return nil
}

// While a migration waits for a lock on a table, later sessions that need the table wait for the migration. This also
// applies to sessions whose own lock could be granted at once. So a migration gives up after lockWait, lets the other
// sessions run for lockPause, and tries again.
const (
	lockWait  = 100 * time.Millisecond
	lockPause = 200 * time.Millisecond
)

const defaultLockPatience = time.Minute

// logAfter is how long a migration may take or wait without a log line.
const logAfter = time.Second

// untilLocked runs f again until f gets its locks, or until LockPatience has passed. If f cannot get a lock, it must
// roll back and return the error (FaultBusy). what is the name of the work for the log.
func (d *DB) untilLocked(ctx context.Context, what string, f func() error) error {
	first, lastLogged := time.Now(), time.Now()
	for {
		began := time.Now()
		err := f()
		if took := time.Since(began); err == nil && took > logAfter {
			d.options.Log.Info("migrated", "what", what, "took", took.Round(time.Millisecond))
		}
		if FaultOf(err) != FaultBusy {
			return err
		}
		waited := time.Since(first)
		if waited > d.options.LockPatience {
			return fmt.Errorf("%s: the migration could not get its locks for %v, because long transactions hold them: end these transactions, "+
				"and try again (SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start): %w", what, waited.Round(time.Second), err)
		}
		if time.Since(lastLogged) > logAfter {
			lastLogged = time.Now()
			d.options.Log.Warn("a migration is waiting for long transactions to end; visits and reports continue", "what", what, "for",
				waited.Round(time.Second))
		}
		if err := pause.For(ctx, lockPause); err != nil {
			return err
		}
	}
}
