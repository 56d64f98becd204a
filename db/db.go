// Package db is the way to PostgreSQL: connections, migrations, the generated queries, and the
// transaction that writes a batch of visits. Only this package reads the driver's errors.
//
// It knows nothing of HTTP and nothing of what a visit means.
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

// Schema holds all of Footfall's tables. Every connection has it as its search_path.
const Schema = "footfall"

const (
	reporters   = 3 // for routing.ReportPlaces, and the place of strangers
	longWorkers = 2
)

// Options of Open. The zero value of a field means its default.
type Options struct {
	// Name is what the server calls the sessions, unless the URL has an application_name. Default
	// footfall.
	Name string
	// Readers bounds the connections for everything but batches. Default 8.
	Readers int
	// Writers bounds the connections for batches. Each lane of the recorder needs one, as does the
	// writer of chunks, and one more is needed to find out whether a batch committed whose
	// connection was lost. Default 5.
	Writers int
	// StatementTimeout ends a statement that hangs. Default 5 s.
	StatementTimeout time.Duration
	// DeadAfter is how long the other end of a connection may be silent before either end takes it
	// for dead. Default 10 s. A server of several is left after 3 s at most.
	DeadAfter time.Duration
	// RequireStandby: nothing is committed where COMMIT waits for no synchronous standby, unless the
	// tables say what is required (SayStandby).
	RequireStandby bool
	// LockPatience is how long a migration tries to get the locks that it needs. Default 1 min.
	LockPatience time.Duration
	// Log is told what a migration waits for, and what took long. Default: nobody is.
	Log *slog.Logger
	// LocalClock is the clock of this machine, against which the database's is measured. Default
	// time.Now.
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

// Tx is what queries are asked on: a connection, or a transaction. New takes it, here and in each
// package that has queries of its own.
type Tx = DBTX

// Tx is what q is asked on.
func (q *Queries) Tx() Tx { return q.db }

// DB is a database with Footfall's schema, or one that is to get it. Callers get what to ask from
// Read, InTx, Report and Snapshots, each of which is for one kind of work. A DB is safe for
// concurrent use.
type DB struct {
	queries  *Queries      // of the pool readers
	readers  *pgxpool.Pool // for everything but batches and reports
	writers  *pgxpool.Pool // for batches, so that they never wait for a reader's connection
	reports  *pgxpool.Pool // for reports: few and read-only, so that counting keeps the machine
	long     *pgxpool.Pool // for transactions that take minutes, so that they never take a reader's connection
	sessions sessions      // for connections outside the pools, too: migrations, watchers, snapshots

	options     Options
	clockOffset atomic.Int64 // how many nanoseconds LocalClock is ahead of the database's clock

	commitsAlone atomic.Int64 // how many commits returned before the synchronous standby had them
}

// Open prepares connections to the database that url names; none is made before the first use.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	o = o.withDefaults()
	base, err := newSessions(url, o)
	if err != nil {
		return nil, err
	}
	d := &DB{sessions: base, options: o}
	var failed [4]error // none of a pool of some connections
	timeout := milliseconds(o.StatementTimeout)
	d.readers, failed[0] = base.pool(ctx, o.Readers, map[string]string{"statement_timeout": timeout})
	d.writers, failed[1] = base.pool(ctx, o.Writers, map[string]string{
		// A generic plan is made once: planning would cost as much as the rest of a small batch. It
		// may be made on empty tables, where a scan looks cheaper than an index, so scans are off.
		// The statements are written so that only the right plan is left.
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
		func(cfg *pgxpool.Config) { cfg.MaxConnIdleTime = time.Minute }) // long work is rare
	if err := errors.Join(failed[:]...); err != nil {
		return nil, fmt.Errorf("database pool: %w", err)
	}
	d.queries = New(d.readers)
	return d, nil
}

// Connect makes a connection outside the pools, whose statements may take as long as they take. The
// caller closes it.
func (d *DB) Connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := d.sessions.with(nil)
	cfg.OnNotice = keepWarning
	return pgx.ConnectConfig(ctx, cfg)
}

// Close closes every connection. It waits for those that are in use.
func (d *DB) Close() {
	d.readers.Close()
	d.writers.Close()
	d.reports.Close()
	d.long.Close()
}

// StatementTimeout is how long a statement may take.
func (d *DB) StatementTimeout() time.Duration { return d.options.StatementTimeout }

// InTime bounds a question of a caller by the time that one statement may take. That includes its
// wait for a connection.
func (d *DB) InTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.options.StatementTimeout)
}

// Ping returns an error if the database does not answer, or commits nothing.
func (d *DB) Ping(ctx context.Context) error {
	err := d.readers.Ping(ctx)
	if err == nil {
		err = d.writers.Ping(ctx)
	}
	return err
}

// Read runs f, which may run twice without harm: once more if its connection turns out to be dead,
// as every idle connection is after a restart of the server. If ctx ends, its queries still run to
// their end, unless it has a deadline: to end one would cost its connection, and many callers who
// leave would keep the others waiting for new ones.
func (d *DB) Read(ctx context.Context, f func(q *Queries) error) error {
	return twice(ctx, d.readers, func(conn *pgxpool.Conn) error {
		stays := context.WithoutCancel(ctx)
		if deadline, ok := ctx.Deadline(); ok {
			var done context.CancelFunc
			stays, done = context.WithDeadline(stays, deadline)
			defer done()
		}
		return f(New(staying{conn, stays}))
	})
}

// staying is a connection whose queries run in a context of their own, instead of the caller's.
type staying struct {
	conn *pgxpool.Conn
	ctx  context.Context
}

func (s staying) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return s.conn.Exec(s.ctx, sql, args...)
}

func (s staying) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	return s.conn.Query(s.ctx, sql, args...)
}

func (s staying) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	return s.conn.QueryRow(s.ctx, sql, args...)
}

// Report is Read on the connections for reports.
func (d *DB) Report(ctx context.Context, f func(tx Tx) error) error {
	return twice(ctx, d.reports, func(conn *pgxpool.Conn) error { return f(conn) })
}

// twice runs f on a connection of the pool, and once more if that was dead, as all others may be
// then, or if functions were made again at that moment. What f finds wrong by itself, or does not
// find at all, costs no connection.
func twice(ctx context.Context, pool *pgxpool.Pool, f func(conn *pgxpool.Conn) error) error {
	dead, err := once(ctx, pool, f)
	switch {
	case dead && ctx.Err() == nil:
		pool.Reset()
	case !functionsMadeAgain(err):
		return err
	}
	_, err = once(ctx, pool, f)
	return err
}

// once also tells whether there was no connection, or none any more.
func once(ctx context.Context, pool *pgxpool.Pool, f func(conn *pgxpool.Conn) error) (dead bool, err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return true, err
	}
	defer conn.Release()
	err = f(conn)
	return err != nil && conn.Conn().IsClosed(), err
}

// KeepDayKey stores the key of a day, unless there is one. It returns when the day's key is on disk:
// where it is another's, that may not have been confirmed yet, so that something has to be committed.
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

// InLongTx is InTx on the connections for long work. There are few, so callers take a slot first (admin.Slots).
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

// Work that is done in one place at a time, by its lock.
const (
	DrainingInbox = "footfall.drain_inbox"
	Retaining     = "footfall.retain"
)

// Alone runs f unless another process, or another caller here, does the same work; it waits for
// nobody. The lock is the session's, since a transaction that stays open for as long as f keeps a
// snapshot: PostgreSQL would keep all versions of the sums that change meanwhile, and every batch
// would read them. If the connection is lost, others may begin before f has ended.
func (d *DB) Alone(ctx context.Context, work string, f func() error) (mine bool, err error) {
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
			_ = conn.Conn().Close(within) // nobody else may get it with the lock
			err = errors.Join(err, failed)
		}
	}()
	return true, f()
}
