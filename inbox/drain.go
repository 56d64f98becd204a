package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
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
	// fewVisits are not worth closing the open table at once for those that came meanwhile.
	fewVisits = 500
	// openRows bounds the rows of the open table: with so many it is closed, though those before
	// wait.
	openRows = 1000
	// mostFailures is in how many turns counting may fail before it is given up for now.
	mostFailures = 3
	// yieldAtMost is how long a chunk makes room for visits that come: this much of what waits is
	// counted whatever comes.
	yieldAtMost = 250 * time.Millisecond
	yieldLooks  = 5 * time.Millisecond
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

	held    held
	noted   bool      // the tables have some of them
	emptied time.Time // when tables were emptied last
}

func newDrainer(d *db.DB, r *record.Recorder, w *writer, o Options, m *metrics) *drainer {
	return &drainer{db: d, recorder: r, writer: w, log: o.Log, metrics: m, held: held{resting: map[int32]time.Time{}}}
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
	now, err := d.look(ctx)
	if err != nil || now.Visits+now.Kept == 0 {
		return err
	}
	d.noted = len(now.HeldApps) > 0
	_, err = d.alone(ctx, func() error { return d.drain(ctx) })
	return err
}

// watch looks at the inbox every second until ctx ends, also while this instance or another one
// counts for long what is there, and bounds the rows of the open table: what has to be known of all
// that waits, they are looked at for.
func (d *drainer) watch(ctx context.Context) {
	timer := time.NewTicker(lookEvery)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
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

// alone runs f, unless another instance counts what is in the inbox. Should the connection be lost
// that keeps others from it, the positions still see to it that each visit counts once.
func (d *drainer) alone(ctx context.Context, f func() error) (mine bool, err error) {
	return d.db.Alone(ctx, db.DrainingInbox, f)
}

// drain counts what is in the closed tables, closes the open one and counts that, and so on as long
// as there is much. It empties the tables at the end, and now and then where visits come all the
// time.
func (d *drainer) drain(ctx context.Context) error {
	for first, closed := true, int64(0); ; first = false {
		taken, err := d.countUntil(ctx, math.MaxInt64)
		if closed = 0; first || taken >= fewVisits { // also where a turn has failed: the next ones need not
			var failed error
			closed, failed = d.close(ctx)
			err = errors.Join(err, failed)
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
		if db.FaultOf(err) != db.FaultBusy || try == busyTries || !sleep(ctx, time.Millisecond<<min(try, 8)) {
			return turn, err
		}
	}
}

// countUntil counts the closed turns up to one, but of apps that are held: these are tried again
// when they are free. It returns how many visits it has taken out.
func (d *drainer) countUntil(ctx context.Context, until int64) (taken int64, err error) {
	if err := d.held.release(ctx, d.db); err != nil {
		return 0, err
	}
	taken, err = d.countTurns(ctx, until)
	rest := restsFor * d.db.StatementTimeout()
	apps, failed := d.held.judge(rest)
	if len(apps) > 0 {
		d.log.Warn("visits of some apps in the inbox cannot be counted, and are tried again; others are counted", "app ids", apps, "in", rest, "error", d.held.cause)
	}
	return taken, errors.Join(err, failed)
}

func (d *drainer) countTurns(ctx context.Context, until int64) (taken int64, err error) {
	var failed error
	failures, begin := 0, time.Now()
	for after := int64(0); failures < mostFailures && (len(d.held.apps()) == 0 || time.Since(begin) < lookEvery); {
		var turn db.InboxTurnNextRow
		next := db.InboxTurnNextParams{After: after, But: d.held.apps()}
		err := read(ctx, d.db, func(q *db.Queries) (err error) { turn, err = q.InboxTurnNext(ctx, next); return err })
		switch {
		case errors.Is(err, db.ErrNoRows) || err == nil && turn.Turn > until:
			return taken, failed
		case err != nil:
			return taken, errors.Join(failed, err)
		}
		after = turn.Turn
		some, err := d.count(ctx, turn)
		if taken += some; err != nil {
			failed = errors.Join(failed, fmt.Errorf("count turn %d of the inbox: %w", turn.Turn, err))
			failures++
		}
		if ctx.Err() != nil {
			return taken, ctx.Err()
		}
	}
	return taken, failed
}

// count counts what is left of a closed turn, and returns how many visits that were.
func (d *drainer) count(ctx context.Context, t db.InboxTurnNextRow) (taken int64, err error) {
	c := counting{drainer: d, turn: t.Turn}
	from, begun := int64(0), false
	for ctx.Err() == nil {
		var rows []db.InboxReadRow
		next := db.InboxReadParams{Slot: t.Slot, Turn: t.Turn, FromNumber: from, But: d.held.apps(), Visits: readVisits}
		err := read(ctx, d.db, func(q *db.Queries) (err error) { rows, err = q.InboxRead(ctx, next); return err })
		if err != nil {
			return c.taken, err
		}
		if len(rows) == 0 {
			if !begun {
				err = c.passGone(ctx)
			}
			return c.taken, err
		}
		begun = true
		c.positions = map[int32]*record.Position{}
		for i := range rows {
			if err = c.take(ctx, &rows[i]); err != nil {
				break
			}
		}
		if err == nil {
			err = c.flush(ctx)
		}
		c.chunk = record.Chunk{}
		switch {
		case err == nil:
			from = rows[len(rows)-1].Number + 1
		case !errors.Is(err, errReadAgain):
			return c.taken, err
		}
	}
	return c.taken, ctx.Err()
}

// settle counts all visits of an app that were accepted before, unless another instance does, and
// returns how many these were.
func (d *drainer) settle(ctx context.Context, app int32) (waited int64, err error) {
	waited, err = Behind(ctx, d.db, app)
	if err != nil || waited == 0 {
		return waited, err
	}
	now, err := d.look(ctx)
	if err == nil {
		_, err = d.close(ctx)
	}
	for left, progress := int64(-1), time.Now(); err == nil && ctx.Err() == nil; {
		var still db.InboxUncountedRow
		asked := db.InboxUncountedParams{App: app, Turn: now.Turn}
		err = read(ctx, d.db, func(q *db.Queries) (err error) { still, err = q.InboxUncounted(ctx, asked); return err })
		if err != nil || still.OfApp == 0 {
			return waited, err
		}
		if still.OfAll != left {
			left, progress = still.OfAll, time.Now()
		}
		mine, failed := d.alone(ctx, func() error { _, err := d.countUntil(ctx, now.Turn); return err })
		if time.Since(progress) > settleWithin {
			return waited, visit.Errorf(visit.Unavailable, "", "visits that were accepted before are not counted yet (%d), and cannot be now; try again", still.OfApp).Because(failed)
		}
		if !mine || failed != nil || len(d.held.apps()) > 0 {
			sleep(ctx, restFor)
		}
	}
	return waited, errors.Join(err, ctx.Err())
}

// yield makes room for visits that wait to be written, here or to be counted.
func (d *drainer) yield(ctx context.Context) {
	if d.writer == nil {
		return
	}
	for end := time.Now().Add(yieldAtMost); (d.writer.isBusy() || d.recorder.Overflows()) && time.Now().Before(end); {
		if !sleep(ctx, yieldLooks) {
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
	turn      int64
	positions map[int32]*record.Position // by app, of the rows that were read last
	chunk     record.Chunk
	taken     int64 // visits that were counted or passed by
}

// positionOf is that of the app of a row.
func (c *counting) positionOf(r *db.InboxReadRow) *record.Position {
	p := c.positions[r.AppID]
	if p == nil {
		p = &record.Position{Position: db.Position{Turn: c.turn, App: r.AppID}, Next: r.Next}
		c.positions[r.AppID] = p
	}
	return p
}

// take adds the visits of a row to the chunk that are not counted yet, and counts it whenever it is
// full. What cannot be counted any more is passed by.
func (c *counting) take(ctx context.Context, r *db.InboxReadRow) error {
	position, first := c.positionOf(r), 0
	if position.Next>>placeBits == r.Number {
		first = int(position.Next & (1<<placeBits - 1))
	}
	if !r.CountsSo {
		return c.pass(ctx, position, r.Number<<placeBits+int64(len(r.Ips)), int64(len(r.Ips)-first), "their app is gone, or tells days or visitors apart in another way now")
	}
	for i := first; i < len(r.Ips); i++ {
		next := r.Number<<placeBits + int64(i) + 1
		if r.Days[i] < r.FromDay {
			if err := c.pass(ctx, position, next, 1, "the app keeps no visits of their day any more"); err != nil {
				return err
			}
			continue
		}
		c.chunk.Visits = append(c.chunk.Visits, visitOf(r, i))
		c.chunk.Steps = append(c.chunk.Steps, record.Step{Position: position, Next: next})
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
	err := c.record(ctx, chunk)
	if db.WaitedInVain(err) {
		return c.findHeld(ctx, chunk, err)
	}
	return err
}

// record counts visits. An error says that not all of them were counted.
func (c *counting) record(ctx context.Context, chunk record.Chunk) error {
	for i, result := range c.recorder.RecordChunk(chunk) {
		err := result.Err
		told, ok := errors.AsType[*visit.Error](err)
		switch {
		case err == nil, errors.Is(err, record.ErrRepeated), errors.Is(err, record.ErrNumbersLost):
			c.metrics.drained.WithLabelValues("counted").Inc()
			c.taken++
			c.held.others = true
			continue
		case db.FaultOf(err) == db.FaultHeld:
			c.held.locked = append(c.held.locked, db.HeldApp(err))
			return errReadAgain
		case errors.Is(err, record.ErrMoved), errors.Is(err, db.ErrAppChanged), errors.Is(err, db.ErrAppGone):
			return errReadAgain
		case ok && (told.Kind == visit.Unavailable || told.Kind == visit.Lost):
			return err
		}
		// The tables do not accept it, and never will.
		if err := c.pass(ctx, chunk.Steps[i].Position, chunk.Steps[i].Next, 1, err.Error()); err != nil {
			return err
		}
		return errReadAgain
	}
	return nil
}

// pass passes by visits up to a position that nothing can count any more.
func (c *counting) pass(ctx context.Context, position *record.Position, next, visits int64, why string) error {
	if err := c.flush(ctx); err != nil {
		return err
	}
	move := db.Move{Position: position.Position, From: position.Next, To: next, Visits: visits}
	within, cancel := c.db.InTime(ctx)
	defer cancel()
	if err := c.db.PassInbox(within, move); err != nil {
		if db.FaultOf(err) == db.FaultMoved { // another instance counts here, too: its connection that keeps others out was lost
			return errReadAgain
		}
		return err
	}
	position.Next = next
	c.taken += visits
	c.metrics.drained.WithLabelValues("dropped").Add(float64(visits))
	c.log.Warn("visits of the inbox cannot be counted any more, and are passed by", "visits", visits, "why", why)
	return nil
}

// passGone passes by what waits in the turn, but has no rows: nobody must wait for that.
func (c *counting) passGone(ctx context.Context) error {
	var visits int64
	err := read(ctx, c.db, func(q *db.Queries) (err error) { visits, err = q.InboxPassGone(ctx, c.turn); return err })
	if err != nil || visits == 0 {
		return err
	}
	c.taken += visits
	c.metrics.drained.WithLabelValues("dropped").Add(float64(visits))
	c.log.Error("rows of visits that waited in the inbox are gone: they cannot be counted, and are passed by", "visits", visits, "turn", c.turn)
	return nil
}
