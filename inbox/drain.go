package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

const (
	lookEvery = time.Second            // when nothing is heard of, others may have written, or have been killed
	restFor   = 100 * time.Millisecond // between two rounds, so that each has more than a few visits
	// emptyEvery is how long tables that were read to their end stay as they are where visits come
	// without a pause.
	emptyEvery = time.Second
	// readVisits is about how many visits are read at once.
	readVisits = 8000
	// A write that takes longer than writeShould is one that draining keeps waiting: it makes room,
	// up to yieldAtMost before each chunk.
	writeShould = 20 * time.Millisecond
	yieldAtMost = time.Second
	// settleWithin is how long settling goes on while nothing is counted, here or by another
	// instance.
	settleWithin = time.Minute
)

// drainer counts what is in the inbox.
type drainer struct {
	db       *db.DB
	recorder *record.Recorder
	writer   *writer // nil: this process writes nothing
	log      *slog.Logger
	metrics  *metrics
}

func newDrainer(d *db.DB, r *record.Recorder, w *writer, o Options, m *metrics) *drainer {
	return &drainer{db: d, recorder: r, writer: w, log: o.Log, metrics: m}
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
		if !sleep(ctx, restFor) {
			return
		}
		timer := time.NewTimer(lookEvery)
		select {
		case <-d.writer.wrote:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// round looks at the inbox, and counts what is there unless another instance does.
func (d *drainer) round(ctx context.Context) error {
	turns, err := d.look(ctx)
	if err != nil {
		return err
	}
	if open := turns[len(turns)-1]; len(turns) == 1 && open.Waiting == 0 && open.Kept == 0 {
		return nil
	}
	_, err = d.alone(ctx, func() error { return d.drain(ctx) })
	return err
}

// look returns the turns that are not counted to their end, of which the last one is open.
func (d *drainer) look(ctx context.Context) ([]db.InboxTurnsRow, error) {
	var mine int64
	if d.writer != nil {
		mine = d.writer.mine.Load()
	}
	turns, err := turnsOf(ctx, d.db)
	if err == nil && (len(turns) == 0 || !turns[len(turns)-1].IsOpen) {
		err = errors.New("none of its tables is open")
	}
	if err != nil {
		return nil, fmt.Errorf("look at the inbox: %w", err)
	}
	if d.writer != nil {
		open := turns[len(turns)-1]
		d.writer.others.Store(open.Kept + open.Waiting - mine)
	}
	d.metrics.show(turns, d.db.ClockOffset())
	return turns, nil
}

// alone runs f, unless another instance counts what is in the inbox. Should the connection be lost
// that keeps others from it, the positions still see to it that each visit counts once.
func (d *drainer) alone(ctx context.Context, f func() error) (mine bool, err error) {
	err = d.db.InTx(ctx, func(q *db.Queries) (err error) {
		if mine, err = q.InboxDrainTry(ctx); err != nil || !mine {
			return err
		}
		return f()
	})
	return mine, err
}

// drain counts what is in the closed tables, closes the open one and counts that, and so on until
// there is nothing. It empties the tables at the end, and now and then where there is none for
// long, since visits come all the time.
func (d *drainer) drain(ctx context.Context) error {
	for emptied := time.Now(); ctx.Err() == nil; {
		turns, err := d.look(ctx)
		if err != nil {
			return err
		}
		var failed error
		for i := range turns {
			if turns[i].IsOpen {
				continue
			}
			if err := d.count(ctx, &turns[i]); err != nil {
				failed = errors.Join(failed, fmt.Errorf("count turn %d of the inbox: %w", turns[i].Turn, err))
			}
		}
		open := turns[len(turns)-1]
		end := open.Waiting == 0 && len(turns) == 1
		if end || failed != nil || time.Since(emptied) > emptyEvery {
			if err := Empty(ctx, d.db); err != nil {
				return err
			}
			emptied = time.Now()
		}
		if end {
			_, err = d.look(ctx)
			return err
		}
		if open.Waiting > 0 {
			if _, err := d.close(ctx); err != nil {
				return errors.Join(failed, err)
			}
		}
		if failed != nil {
			return failed
		}
	}
	return ctx.Err()
}

// close closes the table that takes visits, if it has any.
func (d *drainer) close(ctx context.Context) (turn int64, err error) {
	for try := 1; ; try++ {
		err = read(ctx, d.db, func(q *db.Queries) (err error) { turn, err = q.InboxClose(ctx); return err })
		if db.FaultOf(err) != db.FaultBusy || try == busyTries || !sleep(ctx, time.Millisecond<<min(try, 8)) {
			return turn, err
		}
	}
}

// count counts what is left of a closed turn.
func (d *drainer) count(ctx context.Context, t *db.InboxTurnsRow) error {
	c := counting{drainer: d, position: &record.Position{Position: db.Position{Turn: t.Turn}, Next: t.Next}}
	for ctx.Err() == nil {
		var rows []db.InboxReadRow
		next := db.InboxReadParams{Slot: t.Slot, Turn: t.Turn, FromNumber: c.position.Next >> placeBits, Visits: readVisits}
		err := read(ctx, d.db, func(q *db.Queries) (err error) { rows, err = q.InboxRead(ctx, next); return err })
		if err != nil {
			return err
		}
		if len(rows) == 0 || c.isBehind(&rows[len(rows)-1]) {
			if c.position.Next == t.Next {
				return errors.New("rows of visits that wait are gone: run footfall verify")
			}
			return nil
		}
		for i := range rows {
			if err = c.take(ctx, &rows[i]); err != nil {
				break
			}
		}
		if err == nil {
			err = c.flush(ctx)
		}
		if c.chunk = (record.Chunk{}); err != nil && !errors.Is(err, errReadAgain) {
			return err
		}
	}
	return ctx.Err()
}

// settle counts all that was accepted before, unless another instance does, and returns how much
// that was.
func (d *drainer) settle(ctx context.Context) (waited int64, err error) {
	until, left, progress := int64(0), int64(-1), time.Now()
	for ctx.Err() == nil {
		turns, err := d.look(ctx)
		if err != nil {
			return waited, err
		}
		open := turns[len(turns)-1]
		if until == 0 {
			for _, t := range turns {
				waited += t.Waiting
			}
			until = open.Turn
		}
		still := int64(0)
		for _, t := range turns {
			if t.Turn <= until {
				still += t.Waiting
			}
		}
		if still == 0 {
			return waited, nil
		}
		if open.Turn <= until && open.Waiting > 0 {
			if _, err := d.close(ctx); err != nil {
				return waited, err
			}
		}
		if still != left {
			left, progress = still, time.Now()
		}
		mine, err := d.alone(ctx, func() error { return d.countUntil(ctx, until) })
		if time.Since(progress) > settleWithin {
			return waited, visit.Errorf(visit.Unavailable, "", "%d visits that were accepted before are not counted yet, and cannot be now; try again", still).Because(err)
		}
		if !mine || err != nil {
			sleep(ctx, restFor)
		}
	}
	return waited, ctx.Err()
}

// countUntil counts the closed turns up to one.
func (d *drainer) countUntil(ctx context.Context, until int64) error {
	turns, err := d.look(ctx)
	for i := range turns {
		if t := &turns[i]; err == nil && !t.IsOpen && t.Turn <= until {
			err = d.count(ctx, t)
		}
	}
	return err
}

// yield makes room for visits that wait to be written.
func (d *drainer) yield(ctx context.Context) {
	if d.writer == nil {
		return
	}
	for end := time.Now().Add(yieldAtMost); d.writer.isWaitedFor(writeShould) && time.Now().Before(end); {
		if !sleep(ctx, writeShould/4) {
			return
		}
	}
}

// placeBits of a position in a turn say how many visits of the row are counted whose number the
// others are.
const placeBits = 16

// errReadAgain: the rest has to be read again from the position on.
var errReadAgain = errors.New("read again")

// counting counts one turn.
type counting struct {
	*drainer
	position *record.Position
	chunk    record.Chunk
}

// isBehind reports whether all of a row is counted.
func (c *counting) isBehind(r *db.InboxReadRow) bool {
	return c.position.Next >= r.Number<<placeBits+int64(len(r.Ips))
}

// take adds the visits of a row to the chunk that are not counted yet, and counts it whenever it is
// full. What cannot be counted any more is passed by.
func (c *counting) take(ctx context.Context, r *db.InboxReadRow) error {
	first := 0
	if c.position.Next>>placeBits == r.Number {
		first = int(c.position.Next & (1<<placeBits - 1))
	}
	if first == len(r.Ips) { // it is read again for where it ends
		return nil
	}
	if !r.CountsSo {
		return c.pass(ctx, r.Number<<placeBits+int64(len(r.Ips)), int64(len(r.Ips)-first), "their app is gone, or tells days or visitors apart in another way now")
	}
	for i := first; i < len(r.Ips); i++ {
		next := r.Number<<placeBits + int64(i) + 1
		if r.Days[i] < r.FromDay {
			if err := c.pass(ctx, next, 1, "the app keeps no visits of their day any more"); err != nil {
				return err
			}
			continue
		}
		c.chunk.Visits = append(c.chunk.Visits, visitOf(r, i))
		c.chunk.Steps = append(c.chunk.Steps, record.Step{Position: c.position, Next: next})
		if len(c.chunk.Visits) >= c.recorder.ChunkVisits() {
			if err := c.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitOf is a visit of a row. Its day is told: it may be over, and visits of later ones may have
// been counted since.
func visitOf(r *db.InboxReadRow, i int) record.Visit {
	page := r.Uris[r.Pages[i]-1]
	site, _, _ := strings.Cut(page, "/")
	v := record.Visit{
		App: r.AppID, CountsBy: db.CountsBy{Tz: r.Tz, Visitor: r.Visitor, Ipv6Prefix: r.Ipv6Prefix},
		Target: visit.Target{Site: site, Page: page}, Visitor: r.Ips[i], Day: r.Days[i], Told: true, NewPages: int64(r.NewPages[i]),
	}
	if len(r.Ids) > 0 {
		v.ID = r.Ids[i]
	}
	return v
}

// flush counts the chunk. An error says that not all of it was counted.
func (c *counting) flush(ctx context.Context) error {
	if len(c.chunk.Visits) == 0 {
		return nil
	}
	if c.yield(ctx); ctx.Err() != nil {
		return ctx.Err()
	}
	chunk := c.chunk
	c.chunk = record.Chunk{Visits: chunk.Visits[:0], Steps: chunk.Steps[:0]}
	for i, result := range c.recorder.RecordChunk(chunk) {
		err := result.Err
		told, ok := errors.AsType[*visit.Error](err)
		switch {
		case err == nil, errors.Is(err, record.ErrRepeated), errors.Is(err, record.ErrNumbersLost):
			c.metrics.drained.WithLabelValues("counted").Inc()
			continue
		case errors.Is(err, record.ErrMoved), errors.Is(err, db.ErrAppChanged), errors.Is(err, db.ErrAppGone):
			return errReadAgain
		case ok && (told.Kind == visit.Unavailable || told.Kind == visit.Lost):
			return err
		}
		// The tables do not accept it, and never will.
		if err := c.pass(ctx, chunk.Steps[i].Next, 1, err.Error()); err != nil {
			return err
		}
		return errReadAgain
	}
	return nil
}

// pass passes by visits up to a position that nothing can count any more.
func (c *counting) pass(ctx context.Context, next, visits int64, why string) error {
	if err := c.flush(ctx); err != nil {
		return err
	}
	move := db.Move{Position: c.position.Position, From: c.position.Next, To: next, Visits: visits}
	within, cancel := c.db.InTime(ctx)
	defer cancel()
	if err := c.db.PassInbox(within, move); err != nil {
		if db.FaultOf(err) != db.FaultMoved {
			return err
		}
		// Another instance counts here, too: its connection that keeps others out was lost.
		now, err := c.db.PositionNext(within, c.position.Position)
		if err != nil || now < c.position.Next {
			return fmt.Errorf("find the position in the inbox: %w", err)
		}
		c.position.Next = now
		return errReadAgain
	}
	c.position.Next = next
	c.metrics.drained.WithLabelValues("dropped").Add(float64(visits))
	c.log.Warn("visits of the inbox cannot be counted any more, and are passed by", "visits", visits, "why", why)
	return nil
}
