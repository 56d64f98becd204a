package inbox

import (
	"context"
	"errors"
	"slices"
	"strings"

	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// readVisits is about how many visits are read at once.
const readVisits = 8000

// placeBits are the lowest bits of a position in a turn. They say how many visits are counted of
// the row whose number the other bits are.
const placeBits = 16

// errReadAgain: the rest has to be read again from the position on.
var errReadAgain = errors.New("read again")

// counting counts one turn.
type counting struct {
	*drainer
	turn      int64
	positions map[int32]*record.Position // by app, of the rows that were read last
	chunk     record.Chunk
	small     bool  // the next chunk is to be: visits come in a burst
	taken     int64 // visits that were counted or passed by
}

// count counts what is left of a closed turn, and returns how many visits that were.
func (d *drainer) count(ctx context.Context, t db.InboxTurnNextRow) (taken int64, err error) {
	c := counting{drainer: d, turn: t.Turn}
	from, begun := int64(0), false
	var but []int32
	for ctx.Err() == nil {
		// What is left out once is to the end of the turn, though its rest may end before: its
		// position must not move past rows that were not read.
		but = append(d.held.apps(), but...)
		slices.Sort(but)
		but = slices.Compact(but)
		var rows []db.InboxReadRow
		next := db.InboxReadParams{Slot: t.Slot, Turn: t.Turn, FromNumber: from, But: but, Visits: readVisits}
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
		if len(c.chunk.Visits) >= c.chunkVisits() {
			if err := c.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitOf is a visit of a row. It is of a past day: that may be over, and visits of later ones may have
// been counted since.
func visitOf(r *db.InboxReadRow, i int) record.Visit {
	page := r.Uris[r.Pages[i]-1]
	site, _, _ := strings.Cut(page, "/")
	v := record.Visit{
		App: r.AppID, CountsBy: db.CountsBy{Tz: r.Tz, Visitor: r.Visitor, Ipv6Prefix: r.Ipv6Prefix},
		Target: visit.Target{Site: site, Page: page}, Visitor: r.Ips[i], Day: r.Days[i], When: record.Past, NewPages: int64(r.NewPages[i]),
	}
	if len(r.Ids) > 0 {
		v.ID = r.Ids[i]
	}
	return v
}

// chunkVisits is how many visits the chunk should have: fewer in a burst, in which answers wait
// while it is counted.
func (c *counting) chunkVisits() int {
	if c.small {
		return max(c.recorder.ChunkVisits()/burstPart, 1)
	}
	return c.recorder.ChunkVisits()
}

// flush counts the chunk. An error says that not all of it was counted.
func (c *counting) flush(ctx context.Context) error {
	if len(c.chunk.Visits) == 0 {
		return nil
	}
	c.small = c.yield(ctx)
	if ctx.Err() != nil {
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
		verr, ok := errors.AsType[*visit.Error](err)
		switch {
		case err == nil, errors.Is(err, record.ErrRepeated), errors.Is(err, record.ErrNumbersLost):
			c.metrics.drained.WithLabelValues("counted").Inc()
			c.taken++
			c.held.counted(chunk.Visits[i].App)
			continue
		case db.FaultOf(err) == db.FaultHeld:
			c.held.locked = append(c.held.locked, db.HeldApp(err))
			return errReadAgain
		case errors.Is(err, record.ErrMoved), errors.Is(err, db.ErrAppChanged), errors.Is(err, db.ErrAppGone):
			return errReadAgain
		case ok && (verr.Kind == visit.Unavailable || verr.Kind == visit.Lost):
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
