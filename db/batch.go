package db

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Batch is what one transaction counts, as columns: they are sent as they are.
type Batch struct {
	ID [16]byte
	// Basis is what the rest was made from, as DB.Basis returned it; "" where nothing remembered is in it.
	Basis string

	// The targets, in order of id, each with its site (0: it is one), the day of its visits in the batch, how many there are, and how
	// many visitors that are hinted.
	Targets    []int64
	Sites      []int64
	TargetDays []int32
	Hots       []int64
	Newcomers  []int64

	// The (target, visitor) pairs to be decided, each once, in order of arrival. Hinted: surely a new visitor, do not look.
	Pages    []int64
	Visitors []netip.Addr
	Days     []int32
	Hinted   []bool
}

// Sums are a target's counters under the batch's lock, with Batch.Hots, and with Batch.Newcomers in PV and UV.
type Sums struct{ Hot, PV, UV int64 }

// Verdict is what the database decided of one (target, visitor) pair.
type Verdict struct {
	Rank     int64
	Newcomer bool // new to the target: the batch added one to uv
	Counted  bool // first visit on its day: the batch added one to pv
}

// Outcome of a batch that has committed, row for row as in the batch.
type Outcome struct {
	Sums     []Sums    // beside Batch.Targets
	Verdicts []Verdict // beside Batch.Pages
}

// Write sends a batch in one round trip and returns when it has committed. FaultOf tells what an error means.
// The outcome's slices are reused when out is passed again.
func (d *DB) Write(ctx context.Context, b *Batch, out *Outcome) error {
	conn, err := d.writers.Acquire(ctx)
	if err != nil {
		return &notSentError{fmt.Errorf("write batch: %w", err)}
	}
	defer conn.Release()

	out.Sums = resize(out.Sums, len(b.Targets))
	out.Verdicts = resize(out.Verdicts, len(b.Pages))

	var q pgx.Batch
	q.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	q.Queue(BatchBegin, uuidValue(b.ID))
	q.Queue(CountersLock, b.Targets, b.Hots, b.Newcomers).Query(func(rows pgx.Rows) error {
		return readSums(rows, b.Targets, out.Sums)
	})
	if b.Basis != "" {
		q.Queue(BasisCheck, b.Basis)
	}
	if len(b.Pages) > 0 {
		q.Queue(VisitsRecord, b.recordArgs()...).Query(func(rows pgx.Rows) error {
			return readVerdicts(rows, out.Verdicts)
		})
	} else {
		q.Queue(DaysVisited, b.Targets, b.Sites, b.TargetDays, b.Hots)
	}
	q.Queue(BatchCommit)
	if err := conn.SendBatch(ctx, &q).Close(); err != nil {
		rollback(conn.Conn())
		if pgconn.SafeToRetry(err) {
			err = &notSentError{err}
		}
		return fmt.Errorf("write batch: %w", err)
	}
	return nil
}

// recordArgs are the arguments of VisitsRecord.
func (b *Batch) recordArgs() []any {
	return []any{b.Pages, b.Visitors, b.Days, b.Hinted, b.Targets, b.Sites, b.TargetDays, b.Hots}
}

// Basis is what anything remembered of the tables rests on. It is read before what is to be remembered, and where batches go.
func (d *DB) Basis(ctx context.Context) (string, error) {
	basis, err := New(d.writers).BasisGet(ctx)
	if FaultOf(err) == FaultUnknown && ctx.Err() == nil { // after a restart of the server every idle connection is dead
		basis, err = New(d.writers).BasisGet(ctx)
	}
	if FaultOf(err) == FaultUnknown {
		err = &notSentError{err} // it only read
	}
	if err != nil {
		return "", fmt.Errorf("read the basis: %w", err)
	}
	return basis, nil
}

// Claim tells what became of a batch whose connection was lost: committed, or never to be. It waits for a transaction that
// still runs, and may be asked again.
func (d *DB) Claim(ctx context.Context, id [16]byte) (committed bool, err error) {
	abandoned, err := New(d.writers).BatchAbandon(ctx, uuidValue(id))
	if err != nil {
		return false, fmt.Errorf("ask after batch: %w", err)
	}
	return !abandoned, nil
}

func readSums(rows pgx.Rows, targets []int64, sums []Sums) error {
	var page int64
	var s Sums
	at := 0
	_, err := pgx.ForEachRow(rows, []any{&page, &s.Hot, &s.PV, &s.UV}, func() error {
		if at == len(targets) || targets[at] != page {
			return fmt.Errorf("counters of target %d came back out of order", page)
		}
		sums[at] = s
		at++
		return nil
	})
	if err == nil && at != len(targets) {
		err = fmt.Errorf("%d counters came back for %d targets", at, len(targets))
	}
	return err
}

func readVerdicts(rows pgx.Rows, verdicts []Verdict) error {
	var place int32
	var v Verdict
	n, err := 0, error(nil)
	_, err = pgx.ForEachRow(rows, []any{&place, &v.Rank, &v.Newcomer, &v.Counted}, func() error {
		verdicts[place-1] = v
		n++
		return nil
	})
	if err == nil && n != len(verdicts) {
		err = fmt.Errorf("%d verdicts came back for %d visitors", n, len(verdicts))
	}
	return err
}

// rollback leaves the connection fit for the next batch; one that does not answer is closed, which rolls back too.
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

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// PruneBatches forgets the batches whose id is before this one, some at a time, and returns how many.
func (d *DB) PruneBatches(ctx context.Context, before [16]byte) (int64, error) {
	var all int64
	for {
		some, err := d.queries.BatchesPrune(ctx, uuidValue(before))
		all += some
		if err != nil || some == 0 {
			return all, err
		}
	}
}
