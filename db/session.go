package db

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// addSettings lets the connections of cfg begin with more settings. They are set in a round trip of
// their own, and not by the startup message: a pooler between this program and the server passes
// hardly any of those on, and refuses the others.
func addSettings(cfg *pgx.ConnConfig, settings map[string]string) {
	before := cfg.AfterConnect
	cfg.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		var batch pgconn.Batch
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			batch.ExecParams(SessionSet, [][]byte{[]byte(name), []byte(settings[name])}, nil, nil, nil)
		}
		_, err := conn.ExecBatch(ctx, &batch).ReadAll()
		return err
	}
}

// sessionProbes is how many sessions CheckSessions asks for beside its own.
const sessionProbes = 4

// ErrSharedSessions says that a pooler stands before the database with which this program cannot
// work.
var ErrSharedSessions = errors.New("the database is reached through a pooler that gives every transaction another session " +
	"(PgBouncer's pool_mode transaction or statement), and footfall keeps settings, locks, prepared statements and a LISTEN in its sessions: " +
	"let the pooler give each connection a session of its own (pool_mode = session), or connect to PostgreSQL itself")

// CheckSessions returns an error unless each connection has a session of the server's to itself.
func (d *DB) CheckSessions(ctx context.Context) error {
	cfg := d.base.Copy()
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // without prepared statements, which belong to a session
	var conns []*pgx.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close(context.WithoutCancel(ctx))
		}
	}()
	own, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("look at the sessions: %w", err)
	}
	conns = append(conns, own)
	first, err := New(own).SessionProcess(ctx)
	if err != nil || first == int64(own.PgConn().PID()) { // a pooler has told a number of its own
		return err
	}
	// What is free between two statements of this connection is given to the next one that asks.
	for range sessionProbes {
		other, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return fmt.Errorf("look at the sessions: %w", err)
		}
		conns = append(conns, other)
		tx, err := other.Begin(ctx) // which keeps the session until the end; one statement alone cannot begin it
		if err != nil {
			return ErrSharedSessions
		}
		theirs, err := New(tx).SessionProcess(ctx)
		if err != nil {
			return fmt.Errorf("look at the sessions: %w", err)
		}
		now, err := New(own).SessionProcess(ctx)
		if err != nil {
			return fmt.Errorf("look at the sessions: %w", err)
		}
		if theirs == first || now != first {
			return ErrSharedSessions
		}
	}
	return nil
}
