// Package db is the way to PostgreSQL: connections, migrations, the generated queries, the one transaction that writes a
// batch of visits, and the one place that reads the driver's errors.
//
// It knows nothing of HTTP and nothing of what a visit means.
package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Schema holds all of Footfall's tables. Every connection has it as its search_path.
const Schema = "footfall"

// reporters bounds the connections for reports.
const reporters = 2

// Options of Open. The zero value of a field means its default.
type Options struct {
	// Readers bounds the connections for everything but batches. Default 8.
	Readers int
	// Writers bounds the connections for batches: one for each lane of the recorder, and one to ask after a lost
	// commit. Default 3.
	Writers int
	// StatementTimeout ends a statement that hangs. Default 5 s.
	StatementTimeout time.Duration
}

// DB is a database that holds, or is to hold, Footfall's schema. Callers get the generated queries
// from Read, InTx, Report and InSnapshot, which say what kind of work they are for. It is safe for
// concurrent use.
type DB struct {
	queries *Queries        // on the readers' pool
	readers *pgxpool.Pool   // for all that people and handlers ask
	writers *pgxpool.Pool   // for batches alone, so that no reader can keep one waiting
	reports *pgxpool.Pool   // for reports, few and read-only, so that they leave the rest of the machine to counting
	base    *pgx.ConnConfig // for connections outside the pools: migrations, the watcher
}

// Open prepares connections to the database that url names; none is made before the first use.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	if o.Readers == 0 {
		o.Readers = 8
	}
	if o.Writers == 0 {
		o.Writers = 3
	}
	if o.StatementTimeout == 0 {
		o.StatementTimeout = 5 * time.Second
	}
	base, err := connConfig(url)
	if err != nil {
		return nil, err
	}
	d := &DB{base: base}
	d.readers, err = newPool(ctx, url, o.Readers, map[string]string{"statement_timeout": milliseconds(o.StatementTimeout)}, nil)
	if err != nil {
		return nil, err
	}
	d.writers, err = newPool(ctx, url, o.Writers, map[string]string{
		// Planning would cost as much as all the rest of a small batch. The statements are written so that there is one plan
		// to find, also on empty tables, where a scan would otherwise look cheaper and be kept.
		"plan_cache_mode":                     "force_generic_plan",
		"enable_seqscan":                      "off",
		"enable_bitmapscan":                   "off",
		"statement_timeout":                   milliseconds(o.StatementTimeout),
		"idle_in_transaction_session_timeout": milliseconds(o.StatementTimeout),
		"jit":                                 "off",
		// A client that vanished must not hold a site's lock for the hours that TCP waits.
		"tcp_keepalives_idle":     "5",
		"tcp_keepalives_interval": "2",
		"tcp_keepalives_count":    "3",
	}, durable)
	if err != nil {
		d.readers.Close()
		return nil, err
	}
	d.reports, err = newPool(ctx, url, reporters, map[string]string{
		"statement_timeout":               milliseconds(o.StatementTimeout),
		"default_transaction_read_only":   "on",
		"jit":                             "off",
		"max_parallel_workers_per_gather": "0",
	}, nil)
	if err != nil {
		d.readers.Close()
		d.writers.Close()
		return nil, err
	}
	d.queries = New(d.readers)
	return d, nil
}

// Close closes every connection; it waits for those that are in use.
func (d *DB) Close() {
	d.readers.Close()
	d.writers.Close()
	d.reports.Close()
}

// Ping reports whether the database answers.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.readers.Ping(ctx); err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	return nil
}

// Read runs f, which only reads, and once more if its connection turns out to be dead: after a restart of the server every
// idle one is.
func (d *DB) Read(ctx context.Context, f func(q *Queries) error) error {
	err := f(d.queries)
	if FaultOf(err) == FaultUnknown && ctx.Err() == nil {
		d.readers.Reset()
		err = f(d.queries)
	}
	return err
}

// Report runs f, which only reads, on the connections of reports; once more if the connection turns out to be dead.
func (d *DB) Report(ctx context.Context, f func(q *Queries) error) error {
	err := f(New(d.reports))
	if FaultOf(err) == FaultUnknown && ctx.Err() == nil {
		d.reports.Reset()
		err = f(New(d.reports))
	}
	return err
}

// KeepDayKey makes the key of a day, unless there is one, and returns when that is on the disk: it is durable, as a batch is.
func (d *DB) KeepDayKey(ctx context.Context, day int32, key []byte) error {
	return New(d.writers).DayKeyMake(ctx, DayKeyMakeParams{Day: day, Key: key})
}

// InTx runs f in a transaction, and commits if f returns nil.
func (d *DB) InTx(ctx context.Context, f func(q *Queries) error) error {
	return pgx.BeginFunc(ctx, d.readers, func(tx pgx.Tx) error { return f(New(tx)) })
}

// Apps are all apps, by name.
func (d *DB) Apps(ctx context.Context) (apps []App, err error) {
	err = d.Read(ctx, func(q *Queries) (err error) { apps, err = q.AppsList(ctx); return err })
	return apps, err
}

// MakeDay makes the partition of visits for a day, unless it is there.
func (d *DB) MakeDay(ctx context.Context, day int32) (made bool, err error) {
	return d.queries.VisitsDayMake(ctx, day)
}

// durable makes a reply mean committed, also where the server or the role has been set to be faster than that.
func durable(ctx context.Context, conn *pgx.Conn) error { return New(conn).SessionDurable(ctx) }

func newPool(ctx context.Context, url string, size int, settings map[string]string, prepare func(context.Context, *pgx.Conn) error) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, configError(err)
	}
	if cfg.ConnConfig, err = connConfig(url); err != nil {
		return nil, err
	}
	for name, value := range settings {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	cfg.AfterConnect = prepare
	cfg.MaxConns = int32(size) //nolint:gosec // a number of connections
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("database pool: %w", err)
	}
	return pool, nil
}

func connConfig(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, configError(err)
	}
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		return nil, errors.New("database url: default_query_exec_mode=simple_protocol is not supported: " +
			"it writes values into the text of a statement; leave the setting out")
	}
	cfg.RuntimeParams["search_path"] = Schema
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "footfall"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 5 * time.Second
	}
	return cfg, nil
}

// configError keeps pgx's own words, which leave the password out.
func configError(err error) error {
	return fmt.Errorf("database url: %w; it should look like postgres://user:password@host:5432/database", err)
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// uuidValue is how pgx takes a UUID that was made elsewhere.
func uuidValue(id [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
