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

// commit adds COMMIT to the statements of q, sends them, and returns when the commit is confirmed. If a statement
// fails, commit rolls back. *required states whether a synchronous standby is required. A statement of q may set
// *required, so commit reads *required after the statements have run.
func (d *DB) commit(ctx context.Context, conn *pgxpool.Conn, q *pgx.Batch, required *bool) error {
	q.Queue(BatchCommit)
	if err := conn.SendBatch(ctx, q).Close(); err != nil {
		return d.explain(rollbackAfter(conn, err))
	}
	if *required {
		if _, err := d.requireStandby(ctx, conn); err != nil {
			return d.unconfirmedError(err)
		}
	}
	return d.confirm(ctx, conn)
}

// commitChecked calls commit, after it has added StandbyRequire to q. This statement checks whether a synchronous
// standby is required. If again is set, commit repeats the check after COMMIT, even if no standby was required before.
// A caller must set again if the transaction adds no row to the table batches. The SQL function say_standby does not
// wait for such transactions, so it may store the requirement between the check and COMMIT.
func (d *DB) commitChecked(ctx context.Context, conn *pgxpool.Conn, q *pgx.Batch, again bool) error {
	required := again
	q.Queue(StandbyRequire, d.options.RequireStandby).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&required)
		required = required || again
		return err
	})
	return d.commit(ctx, conn, q, &required)
}

// rollbackAfter rolls back the transaction on conn after err, and returns err. If nothing was sent to the server, it
// returns err as a notSentError.
func rollbackAfter(conn *pgxpool.Conn, err error) error {
	rollback(conn.Conn())
	if pgconn.SafeToRetry(err) {
		return &notSentError{err}
	}
	return err
}

// rollback rolls back the open transaction of conn, if there is one, so that the connection can be used again. If
// that fails, rollback closes the connection. The server then rolls back.
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

// DidCommit reports whether the batch with this id committed, after the batch's connection was lost. If DidCommit
// returns false, the batch can no longer commit. If its transaction is still running, DidCommit waits for it.
// DidCommit retries until the database responds or ctx ends. It also replaces the connections of the pools writers,
// readers and reports, because another server may have taken over.
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

// BatchIDsStay is the minimum time for which an id stays in the table batches. If a batch arrives within this time
// after DidCommit has returned false for it, the database refuses the batch. The SQL function empty_batches must not
// delete ids earlier.
const BatchIDsStay = time.Minute

// EmptyBatches empties the partition of the table batches with the older ids, once all of its ids are old enough to be
// deleted. It reports whether it has emptied the partition. It does not wait for locks.
func (d *DB) EmptyBatches(ctx context.Context) (bool, error) {
	return d.queries.BatchesEmpty(ctx)
}
