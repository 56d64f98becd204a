package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// SnapshotMayLast is how long a transaction may use a snapshot before a warning is shown.
const SnapshotMayLast = 5 * time.Minute

// Snapshots is a connection for taking snapshots one after another. Its statements have no time
// limit.
type Snapshots struct{ conn *pgx.Conn }

// OpenSnapshots makes the connection. memory (like 256MB) bounds the memory of each sort and each hash table. The
// caller must close the result.
func (d *DB) OpenSnapshots(ctx context.Context, memory string) (*Snapshots, error) {
	conn, err := pgx.ConnectConfig(ctx, d.sessions.connConfig(map[string]string{
		"statement_timeout":               "0",
		"work_mem":                        memory,
		"plan_cache_mode":                 "force_custom_plan", // make a new plan for the parameters of each query
		"max_parallel_workers_per_gather": "0",
	}))
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &Snapshots{conn}, nil
}

// Take runs f in a read-only transaction whose queries all see the same snapshot. Partitions of the table visits cannot
// be dropped during the transaction. If another session is waiting to drop a partition, Take first waits until it has
// dropped the partition.
func (s *Snapshots) Take(ctx context.Context, f func(tx Tx) error) error {
	readOnly := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, s.conn, readOnly, func(tx pgx.Tx) error {
		for _, lock := range []func(*Queries, context.Context) error{(*Queries).SnapshotGate, (*Queries).SnapshotHold} {
			if err := lock(New(tx), ctx); err != nil {
				return fmt.Errorf("take a snapshot: %w", err)
			}
		}
		return f(tx)
	})
}

// Close closes the connection and ends its queries.
func (s *Snapshots) Close() { _ = s.conn.Close(context.Background()) }
