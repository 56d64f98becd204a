package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// InSnapshot runs f with queries on n connections of its own, which all see the database at the
// same moment and cannot change it. Statements may take as long as they need, and each sort may use
// so much memory (like 256MB). No partition of visits is dropped meanwhile.
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

// beginSnapshot begins a transaction in the snapshot of that name, which another transaction has
// exported, or in a new one if name is "".
func beginSnapshot(ctx context.Context, conn *pgx.Conn, name, memory string) (*Queries, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	q := New(tx)
	if name == "" {
		// The lock comes first, because taking it does not take the snapshot.
		if err := q.VerifyHold(ctx); err != nil {
			return nil, err
		}
	} else {
		// SET TRANSACTION SNAPSHOT takes no parameters, and must be the first statement of a
		// transaction, so no function can run it.
		if strings.Trim(name, "0123456789ABCDEF-") != "" {
			return nil, errors.New("the server gave a snapshot a name of an unknown form")
		}
		if _, err := tx.Exec(ctx, strings.Replace(SnapshotTake, "snapshot_name", name, 1)); err != nil {
			return nil, err
		}
	}
	err = q.VerifySettings(ctx, memory)
	return q, err
}
