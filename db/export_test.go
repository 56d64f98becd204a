package db

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Writers returns the pool for batches. Tests check the plans of its connections.
func (d *DB) Writers() *pgxpool.Pool { return d.writers }

// Pools returns all pools, by purpose.
func (d *DB) Pools() map[string]*pgxpool.Pool {
	return map[string]*pgxpool.Pool{"readers": d.readers, "writers": d.writers, "reports": d.reports}
}

// WatchTakes returns the time that a watcher may take to notice that the server does not respond.
func WatchTakes(deadAfter time.Duration) time.Duration {
	return watchEvery(deadAfter) + watchPatience(deadAfter)
}

// Queries returns the queries of the readers' pool.
func (d *DB) Queries() *Queries { return d.queries }

// RecordArgs returns the arguments of VisitsRecord.
func (b *Batch) RecordArgs() []any { return b.recordArgs() }

// Tx returns a connection of the readers' pool, for the queries of other packages.
func (d *DB) Tx() Tx { return d.queries.db }

// NewDialer returns a dialer that uses now as its clock.
func NewDialer(within time.Duration, now func() time.Time) *dialer {
	d := newDialer(within, time.Minute)
	d.now = now
	return d
}
