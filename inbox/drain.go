package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"footfall/db"
	"footfall/pause"
	"footfall/record"
)

const (
	// lookEvery is how often the tables are looked at though nobody has said that visits came:
	// another instance may have written some, or have been killed while it counted.
	lookEvery = time.Second
	// restFor is the pause between two rounds, so that each has more than a few visits.
	restFor = 100 * time.Millisecond
	// emptyEvery is how long tables that were read to their end stay as they are where visits come
	// without a pause.
	emptyEvery = time.Second
	// dumpsLock is how long after its snapshot a dump has surely locked all tables.
	dumpsLock = 10 * time.Second
	// fewVisits are not worth closing the open table at once for those that came meanwhile.
	fewVisits = 500
	// openRows bounds the rows of the open table: with so many it is closed, even while visits of
	// earlier turns still wait.
	openRows = 1000
	// restsAtMost is how long visits that were put aside wait at most before they are tried again,
	// in times that a statement may take: for so long the others wait whenever they are.
	restsAtMost = 6
	// In a burst of visits each chunk waits, for yieldAtMost, so that they are taken in first, and
	// has only one visit in burstPart of what it has otherwise. Once a visit has waited for longer
	// than a burst may last, chunks wait no more: counting then keeps up as far as it can.
	burst       = time.Minute
	burstPart   = 8
	yieldAtMost = time.Second
	yieldLooks  = 5 * time.Millisecond
)

// drainer counts what is in the inbox.
type drainer struct {
	db       *db.DB
	recorder *record.Recorder
	writer   *writer // nil: this process writes nothing
	log      *slog.Logger
	metrics  *metrics

	emptied time.Time // when tables were emptied last
}

func newDrainer(d *db.DB, r *record.Recorder, w *writer, o Options, m *metrics) *drainer {
	return &drainer{db: d, recorder: r, writer: w, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), metrics: m}
}

// run counts what comes until ctx ends.
func (d *drainer) run(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		err := d.round(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			d.log.Warn("the inbox is not counted for now; it is tried again", "in", lookEvery, "error", err)
		}
		failing = err != nil
		if pause.For(ctx, restFor) != nil {
			return
		}
		select {
		case <-d.writer.wrote:
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
}

// round looks at the inbox, and counts what is there unless another instance does. Should the
// connection be lost that keeps others from it, the positions still see to it that each visit
// counts once.
func (d *drainer) round(ctx context.Context) error {
	now, err := d.look(ctx)
	if err != nil || now.Visits+now.Kept == 0 {
		return err
	}
	_, err = d.db.Alone(ctx, db.DrainingInbox, func() error { return d.drain(ctx) })
	return err
}

// watch looks at the inbox every second until ctx ends, also while this instance or another one
// counts for long what is there. It bounds the rows of the open table, each of which has to be read
// whenever somebody asks how much waits.
func (d *drainer) watch(ctx context.Context) {
	for pause.For(ctx, lookEvery) == nil {
		// Whoever counts tells of errors, and tries both again.
		if now, err := d.look(ctx); err == nil && now.Rows >= openRows {
			_, _ = d.close(ctx)
		}
	}
}

// look returns what is in the inbox.
func (d *drainer) look(ctx context.Context) (now db.InboxLookRow, err error) {
	var mine int64
	if d.writer != nil {
		mine = d.writer.mine.Load()
	}
	err = read(ctx, d.db, func(q *db.Queries) (err error) { now, err = q.InboxLook(ctx); return err })
	if errors.Is(err, db.ErrNoRows) {
		err = errors.New("none of its tables is open")
	}
	if err != nil {
		return now, fmt.Errorf("look at the inbox: %w", err)
	}
	if d.writer != nil {
		d.writer.saw(&now, mine)
	}
	d.metrics.show(&now, d.db.ClockOffset())
	return now, nil
}

// drain counts what is in the closed tables, closes the open one and counts that, and so on as long
// as there is much. It empties the tables at the end, and now and then where visits come all the
// time.
func (d *drainer) drain(ctx context.Context) error {
	for first := true; ; first = false {
		taken, err := d.countUntil(ctx, math.MaxInt64)
		closed := int64(0)
		if err == nil && (first || taken >= fewVisits) {
			closed, err = d.close(ctx)
		}
		if time.Since(d.emptied) > emptyEvery {
			err = errors.Join(err, d.clear(ctx))
			d.emptied = time.Now()
		}
		if closed == 0 || err != nil {
			_, failed := d.look(ctx)
			return errors.Join(err, failed)
		}
	}
}

// close closes the table that takes visits, if it has any.
func (d *drainer) close(ctx context.Context) (turn int64, err error) {
	for try := 1; ; try++ {
		err = read(ctx, d.db, func(q *db.Queries) (err error) { turn, err = q.InboxClose(ctx); return err })
		if db.FaultOf(err) != db.FaultBusy || try == busyTries || !pause.Again(ctx, try) {
			return turn, err
		}
	}
}

// countUntil counts the closed turns up to one, in their order, and what was put aside and is to be
// tried again. It returns how many visits it has taken out.
func (d *drainer) countUntil(ctx context.Context, until int64) (taken int64, err error) {
	for {
		var turn db.InboxTurnNextRow
		err := read(ctx, d.db, func(q *db.Queries) (err error) { turn, err = q.InboxTurnNext(ctx, until); return err })
		switch {
		case errors.Is(err, db.ErrNoRows):
			return taken, nil
		case err != nil:
			return taken, err
		}
		some, err := d.count(ctx, turn)
		taken += some
		if err != nil {
			return taken, fmt.Errorf("count turn %d of the inbox: %w", turn.Turn, err)
		}
	}
}

// clear empties the tables that were read to their end.
func (d *drainer) clear(ctx context.Context) error {
	seconds := int32(dumpsLock.Seconds())
	return read(ctx, d.db, func(q *db.Queries) error { _, err := q.InboxEmpty(ctx, seconds); return err })
}

// yield makes room for visits that wait to be written, here or to be counted. It returns whether
// they still come like that.
func (d *drainer) yield(ctx context.Context) (burstGoesOn bool) {
	if d.writer == nil || d.metrics.age() > burst {
		return false
	}
	for end := time.Now().Add(yieldAtMost); d.writer.isBusy() || d.recorder.Overflows(); {
		if !time.Now().Before(end) || pause.For(ctx, yieldLooks) != nil {
			return true
		}
	}
	return false
}
