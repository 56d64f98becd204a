package db

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

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
// it at once: one migrates, the others wait.
func (d *DB) MigrateUp(ctx context.Context) ([]string, error) {
	var names []string
	err := d.withMigrations(ctx, func(p *goose.Provider) error {
		current, newest, err := p.GetVersions(ctx)
		if err != nil {
			return err
		}
		if current > newest {
			return fmt.Errorf("the schema is at version %d, this footfall knows up to %d: use a newer footfall", current, newest)
		}
		results, err := p.Up(ctx)
		for _, r := range results {
			names = append(names, r.Source.Path)
		}
		return err
	})
	return names, err
}

// MigrateDown takes the newest applied migration back and returns its name.
func (d *DB) MigrateDown(ctx context.Context) (string, error) {
	var name string
	err := d.withMigrations(ctx, func(p *goose.Provider) error {
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
	err := d.withMigrations(ctx, func(p *goose.Provider) error {
		states, err := p.Status(ctx)
		for _, s := range states {
			list = append(list, Migration{Name: s.Source.Path, Applied: s.AppliedAt})
		}
		return err
	})
	return list, err
}

// withMigrations runs f while it alone may change the schema.
func (d *DB) withMigrations(ctx context.Context, f func(*goose.Provider) error) error {
	lock, err := pgx.ConnectConfig(ctx, d.base.Copy())
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer func() { _ = lock.Close(context.WithoutCancel(ctx)) }() // lets go of the lock, too
	if err := checkServer(lock); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := New(lock).MigrateLock(ctx); err != nil {
		return fmt.Errorf("migrate: wait for other instances: %w", err)
	}
	// The schema comes before the migrations, because goose keeps its own table in it.
	if _, err := lock.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{Schema}.Sanitize()); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}

	pool := stdlib.OpenDB(*d.base.Copy())
	defer closeSQL(pool)
	provider, err := goose.NewProvider(goose.DialectPostgres, pool, migrations.FS, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := f(provider); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
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
