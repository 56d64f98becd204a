package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"footfall/pause"
)

// commit adds COMMIT to the queued statements, sends them, and returns when the commit is confirmed. After an error
// it rolls back. *required is whether a standby is required. It is read after the queued statements have run,
// because one of them may set it.
func (d *DB) commit(ctx context.Context, conn *pgxpool.Conn, q *pgx.Batch, required *bool) error {
	q.Queue(BatchCommit)
	if err := conn.SendBatch(ctx, q).Close(); err != nil {
		return d.explain(failed(conn, err))
	}
	if *required {
		if _, err := d.requireStandby(ctx, conn); err != nil {
			return d.unconfirmed(err)
		}
	}
	return d.confirm(ctx, conn)
}

// commitAsked is commit for a transaction that has not checked yet whether a standby is required. If again is set,
// it repeats the check after COMMIT, even if no standby was required before. A transaction without a row in batches
// needs this, because say_standby does not wait for such transactions.
func (d *DB) commitAsked(ctx context.Context, conn *pgxpool.Conn, q *pgx.Batch, again bool) error {
	required := again
	q.Queue(StandbyRequire, d.options.RequireStandby).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&required)
		required = required || again
		return err
	})
	return d.commit(ctx, conn, q, &required)
}

// failed rolls back after err, and returns err. It marks err if nothing was sent.
func failed(conn *pgxpool.Conn, err error) error {
	rollback(conn.Conn())
	if pgconn.SafeToRetry(err) {
		return &notSentError{err}
	}
	return err
}

// rollback makes the connection ready for the next batch. It closes a connection that does not
// respond, which also rolls back.
func rollback(conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, BatchRollback); err != nil {
		_ = conn.Close(ctx)
	}
}

// DidCommit reports whether a batch committed after its connection was lost. If it returns false,
// the batch did not commit and never will. It retries until the database responds or ctx ends, and
// waits for the batch's transaction if that is still running. It also replaces all connections,
// because another server may have taken over.
func (d *DB) DidCommit(ctx context.Context, id [16]byte) (committed bool, err error) {
	for _, pool := range []*pgxpool.Pool{d.writers, d.readers, d.reports} {
		pool.Reset()
	}
	for try := 1; ; try++ {
		abandoned := false
		err := d.write(ctx, d.writers, func(conn *pgxpool.Conn) (err error) {
			abandoned, err = New(conn).BatchAbandon(ctx, uuidValue(id))
			return err
		})
		if err == nil {
			return !abandoned, nil
		}
		if !pause.Again(ctx, try) {
			return false, fmt.Errorf("check whether the batch committed: %w", err)
		}
	}
}

// BatchIDsStay is the minimum time for which a batch's id is kept. An abandoned batch that arrives within this time
// is refused. The SQL function empty_batches must keep ids for at least this time.
const BatchIDsStay = time.Minute

// EmptyBatches deletes the ids of old batches if it is time to, and reports whether it did. It does not wait for
// locks.
func (d *DB) EmptyBatches(ctx context.Context) (bool, error) {
	return d.queries.BatchesEmpty(ctx)
}
