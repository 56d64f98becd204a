// Package db connects to PostgreSQL. It contains the connection pools, the migrations, the generated queries, and
// the transaction that writes a batch of visits. Only this package inspects the driver's errors.
//
// Package db does not depend on HTTP, or on the meaning of a visit.
package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Schema is the schema of all of Footfall's tables. Every connection has it as its search_path.
const Schema = "footfall"

const (
	reporters   = 3 // size of the pool reports: routing.ReportPlaces, plus one for callers without account, key or link
	longWorkers = 2
)

// Options configure Open. A zero field means its default.
type Options struct {
	// Name is the sessions' application_name unless the URL sets it. Default footfall.
	Name string
	// Readers is the maximum number of connections for everything except batches, reports and long transactions. Default
	// 8.
	Readers int
	// Writers bounds the connections for batches. record.Connections returns the number that a service needs, so that
	// its concurrent batches never wait for each other's connections. Default 5.
	Writers int
	// StatementTimeout ends a statement that hangs. Default 5 s.
	StatementTimeout time.Duration
	// DeadAfter is how long one end of a connection may be silent before the other end closes the connection. Default 10 s.
	// If the URL names several servers, the client leaves a silent server after at most 3 s.
	DeadAfter time.Duration
	// RequireStandby makes commits fail if COMMIT does not wait for a synchronous standby. The requirement that
	// SayStandby has stored in the database, if any, takes precedence.
	RequireStandby bool
	// LockPatience is how long a migration tries to get the locks that it needs. Default 1 min.
	LockPatience time.Duration
	// Log receives lines about migrations that are slow or wait for locks, and about commits that did not wait for the
	// synchronous standby. Default: discarded.
	Log *slog.Logger
	// LocalClock is this machine's clock, which is compared with the database's. Default time.Now.
	LocalClock func() time.Time
}

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, "footfall")
	o.Readers = cmp.Or(o.Readers, 8)
	o.Writers = cmp.Or(o.Writers, 5)
	o.StatementTimeout = cmp.Or(o.StatementTimeout, 5*time.Second)
	o.DeadAfter = cmp.Or(o.DeadAfter, defaultDeadAfter)
	o.LockPatience = cmp.Or(o.LockPatience, defaultLockPatience)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.LocalClock == nil {
		o.LocalClock = time.Now
	}
	return o
}

// Tx runs queries on a connection or in a transaction. The function New takes a Tx, in this package and in each
// package with its own queries.
type Tx = DBTX

// Tx returns the connection or transaction of q.
func (q *Queries) Tx() Tx { return q.db }

// DB is a database with Footfall's schema, or an empty database before its migration. Callers run queries with Read,
// InTx, Report or Snapshots, depending on the kind of work. A DB is safe for concurrent use.
type DB struct {
	queries  *Queries      // runs queries on the pool readers
	readers  *pgxpool.Pool // for all work that belongs to no other pool
	writers  *pgxpool.Pool // for batches and their look-ups, so that these never wait for a connection of readers
	reports  *pgxpool.Pool // for reports: few and read-only, so that reports leave most of the machine to counting
	long     *pgxpool.Pool // for transactions that take minutes, so that these occupy no connection of readers
	sessions sessions      // makes all connections: for the pools, and for migrations, watchers and snapshots

	options     Options
	clockOffset atomic.Int64 // how many nanoseconds LocalClock is ahead of the database's clock

	commitsAlone atomic.Int64 // number of commits that did not wait for the synchronous standby
}

// Open prepares connections to the database at url. It connects on first use.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	o = o.withDefaults()
	base, err := newSessions(url, o)
	if err != nil {
		return nil, err
	}
	d := &DB{sessions: base, options: o}
	var failed [4]error // not nil only if the size of a pool is not positive
	timeout := milliseconds(o.StatementTimeout)
	d.readers, failed[0] = base.pool(ctx, o.Readers, map[string]string{"statement_timeout": timeout})
	d.writers, failed[1] = base.pool(ctx, o.Writers, map[string]string{
		// A generic plan is made once: planning each batch would cost as much as the rest of a small
		// batch. The plan may be made while tables are empty, when a scan looks cheaper than an index.
		// So scans are off, and the statements are written so that only the right plan remains.
		"plan_cache_mode":                     "force_generic_plan",
		"enable_seqscan":                      "off",
		"enable_bitmapscan":                   "off",
		"statement_timeout":                   timeout,
		"idle_in_transaction_session_timeout": timeout,
	}, d.mustCommit)
	d.reports, failed[2] = base.pool(ctx, reporters, map[string]string{
		"statement_timeout":               timeout,
		"default_transaction_read_only":   "on",
		"max_parallel_workers_per_gather": "0",
	})
	d.long, failed[3] = base.pool(ctx, longWorkers, map[string]string{"statement_timeout": timeout},
		func(cfg *pgxpool.Config) { cfg.MaxConnIdleTime = time.Minute }) // long work is rare, so idle connections are soon closed
	if err := errors.Join(failed[:]...); err != nil {
		return nil, fmt.Errorf("database pool: %w", err)
	}
	d.queries = New(d.readers)
	return d, nil
}

// Connect makes a connection outside the pools, without a time limit for statements. The caller closes it.
func (d *DB) Connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := d.sessions.connConfig(nil)
	cfg.OnNotice = keepWarning
	return pgx.ConnectConfig(ctx, cfg)
}

// Close closes every connection. It waits for connections that are in use.
func (d *DB) Close() {
	d.readers.Close()
	d.writers.Close()
	d.reports.Close()
	d.long.Close()
}

// StatementTimeout is how long a statement may take.
func (d *DB) StatementTimeout() time.Duration { return d.options.StatementTimeout }

// InTime returns a context that ends after the statement timeout. If a query gets this context, the time limit
// includes waiting for a connection.
func (d *DB) InTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.options.StatementTimeout)
}

// Ping returns an error if the server does not respond on a connection of the pool readers or of the pool writers. If
// the pool writers must make a new connection, Ping also fails if the server cannot commit (mustCommit).
func (d *DB) Ping(ctx context.Context) error {
	err := d.readers.Ping(ctx)
	if err == nil {
		err = d.writers.Ping(ctx)
	}
	return err
}

// Read runs f on a connection of the pool readers. It runs f again if the connection was dead, as every idle
// connection is after a server restart. So f must be safe to run twice. The deadline of ctx ends the queries of f,
// but canceling ctx does not. Canceling a query would close its connection, so if many callers left, other callers
// would have to wait for new connections.
func (d *DB) Read(ctx context.Context, f func(q *Queries) error) error {
	return withRetry(ctx, d.readers, func(conn *pgxpool.Conn) error {
		detached := context.WithoutCancel(ctx)
		if deadline, ok := ctx.Deadline(); ok {
			var done context.CancelFunc
			detached, done = context.WithDeadline(detached, deadline)
			defer done()
		}
		return f(New(fixedContext{conn, detached}))
	})
}

// fixedContext runs queries with the context ctx instead of the caller's context.
type fixedContext struct {
	conn *pgxpool.Conn
	ctx  context.Context
}

func (s fixedContext) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return s.conn.Exec(s.ctx, sql, args...)
}

func (s fixedContext) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	return s.conn.Query(s.ctx, sql, args...)
}

func (s fixedContext) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	return s.conn.QueryRow(s.ctx, sql, args...)
}

// Report runs f on a connection of the pool reports. Like Read, it may run f twice. Unlike with Read, canceling ctx
// ends the queries of f.
func (d *DB) Report(ctx context.Context, f func(tx Tx) error) error {
	return withRetry(ctx, d.reports, func(conn *pgxpool.Conn) error { return f(conn) })
}

// withRetry runs f on a connection of the pool. It retries f once if the connection was dead, or if a migration
// replaced functions at that moment. If the connection was dead, it first resets the pool, because other idle
// connections may be dead, too. Other errors of f are returned without a retry.
func withRetry(ctx context.Context, pool *pgxpool.Pool, f func(conn *pgxpool.Conn) error) error {
	dead, err := withConn(ctx, pool, f)
	switch {
	case dead && ctx.Err() == nil:
		pool.Reset()
	case !isFunctionReplaced(err):
		return err
	}
	_, err = withConn(ctx, pool, f)
	return err
}

// withConn runs f on a connection of the pool. dead is true if no connection could be made, or if it was lost.
func withConn(ctx context.Context, pool *pgxpool.Pool, f func(conn *pgxpool.Conn) error) (dead bool, err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return true, err
	}
	defer conn.Release()
	err = f(conn)
	return err != nil && conn.Conn().IsClosed(), err
}

// KeepDayKey stores the key for hashing the visitors of a day, unless the day already has a key. It returns when the
// day's key is on disk. If another transaction has stored the key, its commit may not be on disk yet. So KeepDayKey
// always commits something: when this commit is on disk, all earlier commits are.
func (d *DB) KeepDayKey(ctx context.Context, day int32, key []byte) error {
	return d.inTx(ctx, d.writers, func(q *Queries) error {
		if err := q.DayKeyMake(ctx, day, key); err != nil {
			return err
		}
		return q.SessionCommit(ctx)
	})
}

// InTx runs f in a transaction, and commits if f returns nil.
func (d *DB) InTx(ctx context.Context, f func(q *Queries) error) error {
	return d.inTx(ctx, d.readers, f)
}

// InLongTx is like InTx, but uses the pool long. This pool has few connections, so callers must first wait for a slot
// (admin.Slots).
func (d *DB) InLongTx(ctx context.Context, f func(q *Queries) error) error {
	return d.inTx(ctx, d.long, f)
}

// Apps returns all apps, by name.
func (d *DB) Apps(ctx context.Context) (apps []App, err error) {
	err = d.Read(ctx, func(q *Queries) (err error) { apps, err = q.AppsList(ctx); return err })
	return apps, err
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

func uuidValue(id [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// The kinds of work for RunAlone. Only one process at a time does work of the same kind. The value of each constant is the
// name of an advisory lock.
const (
	DrainingInbox = "footfall.drain_inbox"
	Retaining     = "footfall.retain"
)

// RunAlone runs f while it holds the lock for a kind of work, and returns true. If another process or goroutine holds
// the lock, RunAlone returns false at once. The lock belongs to the session and not to a transaction, because an open
// transaction would keep a snapshot until f returns. PostgreSQL would then keep old versions of all sums, and every batch
// would have to skip them. If the connection is lost, another process may start the work before f has returned.
func (d *DB) RunAlone(ctx context.Context, work string, f func() error) (mine bool, err error) {
	conn, err := d.readers.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	q := New(conn)
	if mine, err = q.WorkBegin(ctx, work); err != nil || !mine {
		return false, err
	}
	defer func() {
		within, cancel := d.InTime(context.WithoutCancel(ctx))
		defer cancel()
		if failed := q.WorkEnd(within, work); failed != nil {
			_ = conn.Conn().Close(within) // the connection must not return to the pool while it has the lock
			err = errors.Join(err, failed)
		}
	}()
	return true, f()
}
