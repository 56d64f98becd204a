package db

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Writers is the pool for batches. Tests look at the plans that its connections make.
func (d *DB) Writers() *pgxpool.Pool { return d.writers }

// Pools are all pools, by what they are for.
func (d *DB) Pools() map[string]*pgxpool.Pool {
	return map[string]*pgxpool.Pool{"readers": d.readers, "writers": d.writers, "reports": d.reports}
}

// WatchTakes is how long a watcher may take to find out that nobody answers any more.
func WatchTakes(deadAfter time.Duration) time.Duration {
	return watchEvery(deadAfter) + watchPatience(deadAfter)
}

// Queries are those of the readers' pool.
func (d *DB) Queries() *Queries { return d.queries }

// RecordArgs are the arguments of VisitsRecord.
func (b *Batch) RecordArgs() []any { return b.recordArgs() }

// Tx is a connection of the readers' pool, for the queries of other packages.
func (d *DB) Tx() Tx { return d.queries.db }

// NewDialer is a dialer by another clock.
func NewDialer(within time.Duration, now func() time.Time) *dialer {
	d := newDialer(within, time.Minute)
	d.now = now
	return d
}
