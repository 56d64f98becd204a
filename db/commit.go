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

// commit completes a transaction with what is queued, and returns when that is confirmed. What
// fails is rolled back. required tells, when all is done, whether a standby is.
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

// commitAsked is commit for a transaction that has not asked yet whether a standby is required. One
// without a row of batches asks in any case once more behind its COMMIT (again): say_standby did not
// wait for it.
func (d *DB) commitAsked(ctx context.Context, conn *pgxpool.Conn, q *pgx.Batch, again bool) error {
	required := again
	q.Queue(StandbyRequire, d.options.RequireStandby).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&required)
		required = required || again
		return err
	})
	return d.commit(ctx, conn, q, &required)
}

// failed rolls back what has got an error.
func failed(conn *pgxpool.Conn, err error) error {
	rollback(conn.Conn())
	if pgconn.SafeToRetry(err) {
		return &notSentError{err}
	}
	return err
}

// rollback makes the connection ready for the next batch. One that does not answer is closed, which
// rolls back too.
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

// DidCommit tells what became of a batch whose connection was lost. If it returns false, the batch
// did not commit and never will. It asks until the database answers again, or ctx ends, and waits
// for the batch's transaction if that still runs. From then on all connections are new ones: the
// server may have been replaced, and others lead to it, too.
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
			return false, fmt.Errorf("find out whether the batch committed: %w", err)
		}
	}
}

// BatchIDsStay is how long the id of a batch is kept at least, and how long a batch that was
// abandoned can come late and still be refused: empty_batches sees to it.
const BatchIDsStay = time.Minute

// EmptyBatches forgets the ids of batches about which nobody may ask any more, if it is time to. It
// waits for nobody, and returns whether it did.
func (d *DB) EmptyBatches(ctx context.Context) (bool, error) {
	return d.queries.BatchesEmpty(ctx)
}
