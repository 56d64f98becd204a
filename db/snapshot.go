package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// SnapshotMayLast is how long anybody may hold a snapshot before somebody is told.
const SnapshotMayLast = 5 * time.Minute

// Snapshots is a connection of its own, on which snapshots are taken one after the other.
// Statements may take as long as they need there.
type Snapshots struct{ conn *pgx.Conn }

// OpenSnapshots connects. Each sort and each hash may use so much memory (like 256MB). The caller
// closes what it returns.
func (d *DB) OpenSnapshots(ctx context.Context, memory string) (*Snapshots, error) {
	conn, err := pgx.ConnectConfig(ctx, d.sessions.with(map[string]string{
		"statement_timeout":               "0",
		"work_mem":                        memory,
		"plan_cache_mode":                 "force_custom_plan", // each range has a plan of its own
		"max_parallel_workers_per_gather": "0",
	}))
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &Snapshots{conn}, nil
}

// Take runs f, whose queries all see the database at the same moment and cannot change it. No
// partition of visits is dropped meanwhile; whoever wants to drop one gets their turn before the
// next snapshot is taken.
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

// Close closes the connection, which ends what runs on it.
func (s *Snapshots) Close() { _ = s.conn.Close(context.Background()) }
