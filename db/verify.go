package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// InSnapshot runs f with queries on n connections of their own that all see the database as it is at one moment, and can change nothing.
// Statements may take as long as they need, and memory (like 256MB) for each sort. No day of visits is dropped meanwhile.
func (d *DB) InSnapshot(ctx context.Context, n int, memory string, f func(ctx context.Context, q []*Queries) error) error {
	queries := make([]*Queries, 0, n)
	conns := make([]*pgx.Conn, 0, n)
	defer func() {
		for _, conn := range conns {
			conn.Close(context.WithoutCancel(ctx)) // which ends its transaction
		}
	}()
	name := ""
	for range n {
		conn, err := pgx.ConnectConfig(ctx, d.base.Copy())
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		conns = append(conns, conn)
		q, err := beginSnapshot(ctx, conn, name, memory)
		if err != nil {
			return fmt.Errorf("take a snapshot: %w", err)
		}
		if name == "" && n > 1 {
			if name, err = q.SnapshotExport(ctx); err != nil {
				return fmt.Errorf("share a snapshot: %w", err)
			}
		}
		queries = append(queries, q)
	}
	return f(ctx, queries)
}

// beginSnapshot begins a transaction that sees what the one sees that exported the snapshot, or what is there now if none is named.
func beginSnapshot(ctx context.Context, conn *pgx.Conn, name, memory string) (*Queries, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	q := New(tx)
	if name == "" {
		// The lock first: it takes no snapshot.
		if err := q.VerifyHold(ctx); err != nil {
			return nil, err
		}
	} else {
		// It must be the first of its transaction, so that no function can run it, and takes no parameters.
		if strings.Trim(name, "0123456789ABCDEF-") != "" {
			return nil, errors.New("the server named a snapshot in an unknown way")
		}
		if _, err := tx.Exec(ctx, strings.Replace(SnapshotTake, "snapshot_name", name, 1)); err != nil {
			return nil, err
		}
	}
	err = q.VerifySettings(ctx, memory)
	return q, err
}
