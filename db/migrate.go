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
)

// oldestServer is the first major version of PostgreSQL that the schema is tested on.
const oldestServer = 15

// Migration is one step of the schema. Applied is zero while it is pending.
type Migration struct {
	Name    string
	Applied time.Time
}

// MigrateUp applies every pending migration and returns the names of those it applied. Any number of instances may call
// it at once: one migrates, the others wait. Then it grants the roles what is theirs, as GrantRoles does: they may be
// younger than the schema.
func (d *DB) MigrateUp(ctx context.Context) ([]string, error) {
	var names []string
	err := d.withMigrations(ctx, func(p *goose.Provider, q *Queries) error {
		current, newest, err := p.GetVersions(ctx)
		if err != nil {
			return err
		}
		if current > newest {
			return newerSchema(current, newest)
		}
		results, err := p.Up(ctx)
		for _, r := range results {
			names = append(names, r.Source.Path)
		}
		if err != nil {
			return err
		}
		if _, err := q.RolesGrant(ctx); err != nil {
			return fmt.Errorf("grant the roles their rights: %w", err)
		}
		return nil
	})
	return names, err
}

func newerSchema(current, newest int64) error {
	return fmt.Errorf("the schema is at version %d, this footfall knows up to %d: use a newer footfall", current, newest)
}

// CheckSchema reports whether the schema is the one that this program is made for. It changes nothing and waits for nobody, and
// needs no more rights than footfall_app has.
func (d *DB) CheckSchema(ctx context.Context) error {
	schema, err := d.queries.SchemaSeen(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("look for the schema: %w", err)
	case !schema.There:
		return errors.New("the database has no schema of Footfall's: type `footfall migrate up` as the role that is to own the tables")
	case !schema.Readable:
		return fmt.Errorf("the role %s may not read the schema's version: make it a member of footfall_app, "+
			"and type `footfall migrate up` as the owner of the tables", schema.Role)
	}
	pool := stdlib.OpenDBFromPool(d.readers)
	defer closeSQL(pool)
	provider, err := newProvider(pool)
	if err != nil {
		return fmt.Errorf("look for the migrations: %w", err)
	}
	known := provider.ListSources()
	newest := known[len(known)-1].Version
	versions, err := database.NewStore(goose.DialectPostgres, goose.DefaultTablename)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	// Not the provider's own way to ask, which makes the table of versions where it sees none.
	current, err := versions.GetLatestVersion(ctx, pool)
	switch {
	case err != nil:
		return fmt.Errorf("read the schema's version: %w", err)
	case current > newest:
		return newerSchema(current, newest)
	case current < newest:
		return fmt.Errorf("the schema is at version %d, this footfall needs %d: type `footfall migrate up` as the owner of the tables", current, newest)
	}
	return nil
}

// GrantRoles makes the roles for serving and reading where that is allowed, grants them what is
// theirs, and returns those that are missing.
func (d *DB) GrantRoles(ctx context.Context) (missing []string, err error) {
	return d.queries.RolesGrant(ctx)
}

// MigrateDown takes the newest applied migration back and returns its name.
func (d *DB) MigrateDown(ctx context.Context) (string, error) {
	var name string
	err := d.withMigrations(ctx, func(p *goose.Provider, _ *Queries) error {
		result, err := p.Down(ctx)
		if result != nil {
			name = result.Source.Path
		}
		return err
	})
	return name, err
}

// MigrateStatus lists the migrations, oldest first.
func (d *DB) MigrateStatus(ctx context.Context) ([]Migration, error) {
	var list []Migration
	err := d.withMigrations(ctx, func(p *goose.Provider, _ *Queries) error {
		states, err := p.Status(ctx)
		for _, s := range states {
			list = append(list, Migration{Name: s.Source.Path, Applied: s.AppliedAt})
		}
		return err
	})
	return list, err
}

// withMigrations runs f while it alone may change the schema. The queries are those of a connection without a time limit.
func (d *DB) withMigrations(ctx context.Context, f func(*goose.Provider, *Queries) error) error {
	lock, err := pgx.ConnectConfig(ctx, d.base.Copy())
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer func() { _ = lock.Close(context.WithoutCancel(ctx)) }() // lets go of the lock, too
	if err := checkServer(lock); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	q := New(lock)
	if err := q.MigrateLock(ctx); err != nil {
		return fmt.Errorf("migrate: wait for other instances: %w", err)
	}
	// The schema comes before the migrations, because goose keeps its own table in it.
	if _, err := lock.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{Schema}.Sanitize()); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}

	pool := stdlib.OpenDB(*d.base.Copy())
	defer closeSQL(pool)
	provider, err := newProvider(pool)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := f(provider, q); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func newProvider(pool *sql.DB) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectPostgres, pool, migrations.FS, goose.WithDisableGlobalRegistry(true))
}

func closeSQL(pool *sql.DB) { _ = pool.Close() }

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
