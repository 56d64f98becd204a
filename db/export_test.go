package db

import "github.com/jackc/pgx/v5/pgxpool"

// Writers is the pool for batches. Tests look at the plans that its connections make.
func (d *DB) Writers() *pgxpool.Pool { return d.writers }

// Queries are those of the readers' pool.
func (d *DB) Queries() *Queries { return d.queries }

// RecordArgs are the arguments of VisitsRecord.
func (b *Batch) RecordArgs() []any { return b.recordArgs() }
