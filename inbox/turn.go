package inbox

import (
	"context"
	"errors"
	"maps"
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

var (
	// errReadAgain: the rest has to be read again from the position on.
	errReadAgain = errors.New("read again")
	// errLater: visits that were put aside cannot be counted yet.
	errLater = errors.New("not yet")
)

// counting counts one turn.
type counting struct {
	*drainer
	turn     int64
	position *record.Position
	chunk    record.Chunk
	end      int64          // where the chunk ends
	aside    map[int32]bool // apps whose visits are put aside
	put      int64          // how many of these the chunk has
	small    bool           // the next chunk is to be: visits come in a burst
	taken    int64          // visits that were counted, put aside or passed by
}

// count counts what is left of a closed turn, and returns how many visits that were, with those
// that are put aside.
func (d *drainer) count(ctx context.Context, t db.InboxTurnNextRow) (taken int64, err error) {
	c := counting{drainer: d, turn: t.Turn, aside: map[int32]bool{}}
	next := db.InboxReadParams{Slot: t.Slot, Turn: t.Turn, FromNumber: t.Next >> placeBits, Visits: readVisits}
	for begun := false; ctx.Err() == nil; begun = true {
		var rows []db.InboxReadRow
		err := read(ctx, d.db, func(q *db.Queries) (err error) { rows, err = q.InboxRead(ctx, next); return err })
		if err == nil && len(rows) == 0 && !begun {
			err = c.passLost(ctx)
		}
		if err != nil || len(rows) == 0 {
			return c.taken, err
		}
		switch err := c.countRows(ctx, rows); {
		case errors.Is(err, errLater):
			return c.taken, nil
		case err != nil && !errors.Is(err, errReadAgain):
			return c.taken, err
		}
		next.FromNumber = c.position.Next >> placeBits
	}
	return c.taken, ctx.Err()
}

// countRows counts the rows from the position on.
func (c *counting) countRows(ctx context.Context, rows []db.InboxReadRow) error {
	c.position = &record.Position{Position: db.Position{Turn: c.turn}, Next: rows[0].Next}
	c.chunk, c.end, c.put = record.Chunk{}, c.position.Next, 0
	for i := range rows {
		if rows[i].IsAside {
			c.aside[rows[i].AppID] = true
		}
	}
	c.position.Aside = slices.Sorted(maps.Keys(c.aside))
	for i := range rows {
		if err := c.take(ctx, &rows[i]); err != nil {
			return err
		}
	}
	return c.flush(ctx)
}

// take adds the visits of a row to the chunk that are not counted yet, and counts it whenever it is
// full. A row is put aside as a whole. What cannot be counted any more is passed by.
func (c *counting) take(ctx context.Context, r *db.InboxReadRow) error {
	begin := r.Number << placeBits
	first, all := max(c.position.Next-begin, 0), int64(len(r.Ips))
	if c.aside[r.AppID] {
		c.put += all - first
		c.end = begin + all
		return nil
	}
	if !r.CountsSo {
		return c.pass(ctx, begin+all, all-first, "their app is gone, or tells days or visitors apart in another way now")
	}
	for i := first; i < all; i++ {
		next := begin + i + 1
		if r.Days[i] < r.FromDay {
			if err := c.pass(ctx, next, 1, "the app keeps no visits of their day any more"); err != nil {
				return err
			}
			continue
		}
		c.chunk.Visits = append(c.chunk.Visits, visitOf(r, int(i)))
		c.chunk.Steps = append(c.chunk.Steps, record.Step{Position: c.position, Next: next})
		c.end = next
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

// flush counts the chunk, and puts aside what is to be. An error says that not all of it was.
func (c *counting) flush(ctx context.Context) error {
	if c.end == c.position.Next {
		return nil
	}
	if len(c.chunk.Visits) == 0 {
		return c.move(ctx, c.end, c.put)
	}
	c.small = c.yield(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.chunk.Steps[len(c.chunk.Steps)-1].Next = c.end
	err := c.record(ctx)
	apps := c.cannot(err)
	switch {
	case err == nil:
		c.taken, c.put = c.taken+c.put, 0
		c.chunk = record.Chunk{Visits: c.chunk.Visits[:0], Steps: c.chunk.Steps[:0]}
		return nil
	case len(apps) == 0:
		return err
	case c.turn < 0:
		return c.later(ctx, err)
	}
	for _, app := range apps {
		c.aside[app] = true
	}
	return errReadAgain
}

// cannot returns the apps that an error keeps from being counted now: one that is locked; or all of
// the chunk, if it waited for others in vain. Perhaps only one of these makes the others wait: when
// they are put aside, each is tried alone.
func (c *counting) cannot(err error) (apps []int32) {
	switch {
	case db.FaultOf(err) == db.FaultHeld:
		return []int32{db.HeldApp(err)}
	case db.WaitedInVain(err):
		for i := range c.chunk.Visits {
			apps = append(apps, c.chunk.Visits[i].App)
		}
	}
	return apps
}

// later leaves visits that were put aside for a while.
func (c *counting) later(ctx context.Context, cause error) error {
	if db.FaultOf(cause) != db.FaultHeld {
		c.log.Warn("visits of an app in the inbox cannot be counted, and are tried again later; others are counted", "app_id", -c.turn, "error", cause)
	}
	rest := db.InboxRestParams{Turn: c.turn, Most: (restsAtMost * c.db.StatementTimeout()).Seconds()}
	if err := read(ctx, c.db, func(q *db.Queries) error { return q.InboxRest(ctx, rest) }); err != nil {
		return err
	}
	return errLater
}

// record counts the visits of the chunk. An error says that not all of them were counted.
func (c *counting) record(ctx context.Context) error {
	chunk := c.chunk
	for i, result := range c.recorder.RecordChunk(chunk) {
		err := result.Err
		verr, ok := errors.AsType[*visit.Error](err)
		switch {
		case err == nil, errors.Is(err, record.ErrRepeated), errors.Is(err, record.ErrNumbersLost):
			c.metrics.drained.WithLabelValues("counted").Inc()
			c.taken++
			continue
		case errors.Is(err, record.ErrMoved), errors.Is(err, db.ErrAppChanged), errors.Is(err, db.ErrAppGone):
			return errReadAgain
		case ok && (verr.Kind == visit.Unavailable || verr.Kind == visit.Lost):
			return err
		}
		// The tables do not accept it, and never will.
		c.chunk, c.end = record.Chunk{}, c.position.Next
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
	if err := c.move(ctx, next, visits); err != nil {
		return err
	}
	c.metrics.drained.WithLabelValues("dropped").Add(float64(visits))
	c.log.Warn("visits of the inbox cannot be counted any more, and are passed by", "visits", visits, "why", why)
	return nil
}

// move moves the position past visits of which none is counted.
func (c *counting) move(ctx context.Context, next, visits int64) error {
	within, cancel := c.db.InTime(ctx)
	defer cancel()
	err := c.db.PassInbox(within, db.Move{Position: c.position.Position, From: c.position.Next, To: next, Aside: c.position.Aside})
	switch {
	case db.FaultOf(err) == db.FaultMoved: // another instance counts here, too: its connection that keeps others out was lost
		return errReadAgain
	case err != nil:
		return err
	}
	c.position.Next, c.end, c.put = next, next, 0
	c.taken += visits
	return nil
}

// passLost passes by what waits in the turn, but has no rows: nobody must wait for that.
func (c *counting) passLost(ctx context.Context) error {
	var visits int64
	err := read(ctx, c.db, func(q *db.Queries) (err error) { visits, err = q.InboxPassLost(ctx, c.turn); return err })
	if err != nil || visits == 0 {
		return err
	}
	c.taken += visits
	c.metrics.drained.WithLabelValues("dropped").Add(float64(visits))
	c.log.Error("rows of visits that waited in the inbox are gone: they cannot be counted, and are passed by", "visits", visits, "turn", c.turn)
	return nil
}
