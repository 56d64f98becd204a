package inbox

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"footfall/db"
	"footfall/record"
	"footfall/record/feed"
	"footfall/visit"
	"footfall/visit/tag"
)

// readVisits is about how many visits are read at once.
const readVisits = 8000

// placeBits are the lowest bits of a position in a turn. They say how many visits are counted of
// the row whose number the other bits are.
const placeBits = 16

// entry is so many visits of a row: one that is to be counted, or all that are left of one that is
// put aside, or that nothing can count any more.
type entry = feed.Entry[int64]

// turn is a closed turn as a source, which ends with each chunk.
type turn struct {
	*drainer
	slot     int16
	position *record.Position
	next     int64             // up to here it was read for chunks
	rows     []db.InboxReadRow // those that come then, as far as they were read from the tables
	ended    bool              // there are none
	apps     []int32           // of the visits of the chunk
	small    bool              // the next chunk is to be: visits come in a burst
	taken    int64             // visits that were counted, put aside or passed by
}

// count counts what is left of a closed turn, and returns how many visits that were, with those
// that are put aside.
func (d *drainer) count(ctx context.Context, next db.InboxTurnNextRow) (taken int64, err error) {
	t := &turn{drainer: d, slot: next.Slot, position: &record.Position{Position: db.Position{Turn: next.Turn}, Next: next.Next}}
	f := feed.Feed[int64]{Source: t, Recorder: d.recorder}
	for !t.ended && err == nil {
		if t.next != t.position.Next {
			t.next, t.rows = t.position.Next, nil
		}
		err = f.Run(ctx)
		apps := t.cannot(err)
		switch {
		case errors.Is(err, db.ErrAppChanged), errors.Is(err, db.ErrAppGone): // so it is read again
			err = nil
		case len(apps) > 0 && next.Turn < 0:
			return t.taken, d.later(ctx, next.Turn, err)
		case len(apps) > 0:
			t.putAside(apps...)
			err = nil
		}
	}
	return t.taken, err
}

// cannot returns the apps that an error keeps from being counted now: one that is locked; or all of
// the chunk, if it waited for others in vain. Perhaps only one of these makes the others wait: when
// they are put aside, each is tried alone.
func (t *turn) cannot(err error) (apps []int32) {
	switch {
	case db.FaultOf(err) == db.FaultLocked:
		return []int32{db.LockedApp(err)}
	case db.WaitedInVain(err):
		return t.apps
	}
	return nil
}

// later leaves visits that were put aside for a while.
func (d *drainer) later(ctx context.Context, turn int64, cause error) error {
	if db.FaultOf(cause) != db.FaultLocked {
		d.log.Warn("visits of an app in the inbox cannot be counted, and are tried again later; others are counted", "app_id", -turn, "error", cause)
	}
	rest := db.InboxRestParams{Turn: turn, Most: (restsAtMost * d.db.StatementTimeout()).Seconds()}
	return read(ctx, d.db, func(q *db.Queries) error { return q.InboxRest(ctx, rest) })
}

// Read is for the feed: a chunk, which is small in a burst, as answers wait while it is counted.
func (t *turn) Read(ctx context.Context, most int) (entries []entry, err error) {
	if len(t.rows) == 0 {
		if err := t.readRows(ctx); err != nil {
			return nil, err
		}
	}
	if t.small {
		most = max(most/burstPart, 1)
	}
	t.apps = nil
	for len(t.rows) > 0 && len(t.apps) < most {
		entries = append(entries, t.take(&t.rows[0]))
		if t.next == t.rows[0].Number<<placeBits+int64(len(t.rows[0].Ips)) {
			t.rows = t.rows[1:]
		}
	}
	if len(t.apps) > 0 {
		t.small = t.yield(ctx)
	}
	return entries, io.EOF
}

// readRows reads rows from the position on. What waits by what was added up, but has no rows, is
// passed by: nobody must wait for that.
func (t *turn) readRows(ctx context.Context) error {
	err := read(ctx, t.db, func(q *db.Queries) (err error) {
		t.rows, err = q.InboxRead(ctx, db.InboxReadParams{Slot: t.slot, Turn: t.position.Turn, FromNumber: t.next >> placeBits, Visits: readVisits})
		return err
	})
	if err != nil {
		return err
	}
	for i := range t.rows {
		if t.rows[i].IsAside {
			t.putAside(t.rows[i].AppID)
		}
	}
	t.ended = len(t.rows) == 0
	if !t.ended || t.taken > 0 {
		return nil
	}
	err = read(ctx, t.db, func(q *db.Queries) (err error) { t.taken, err = q.InboxPassLost(ctx, t.position.Turn); return err })
	if t.taken > 0 {
		t.metrics.drained.WithLabelValues("dropped").Add(float64(t.taken))
		t.log.Error("rows of visits that waited in the inbox are gone: they cannot be counted, and are passed by", "visits", t.taken, "turn", t.position.Turn)
	}
	return err
}

// putAside has what apps have in the turn put aside, as the position moves past it.
func (t *turn) putAside(apps ...int32) {
	t.position.Aside = append(t.position.Aside, apps...)
	slices.Sort(t.position.Aside)
	t.position.Aside = slices.Compact(t.position.Aside)
}

// take returns the entry that comes next, which is of a row. A row is put aside as a whole.
func (t *turn) take(r *db.InboxReadRow) entry {
	begin, all := r.Number<<placeBits, int64(len(r.Ips))
	first := max(t.next-begin, 0)
	e := entry{Of: all - first, Position: t.position, Next: begin + all}
	switch {
	case slices.Contains(t.position.Aside, r.AppID):
		e.Fate = feed.Passes
	case !r.CountsSo:
		e.Fate, e.Refusal = feed.Refused, visit.Errorf(visit.Invalid, "", "their app is gone, or tells days or visitors apart in another way now")
	default:
		e.Of, e.Next, e.Visit = 1, begin+first+1, visitOf(r, int(first))
		t.apps = append(t.apps, r.AppID)
	}
	t.next = e.Next
	return e
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
	if len(r.TagPlaces) > 0 {
		if place := int(r.TagPlaces[i]); place > 0 && place <= len(r.TagSets) {
			v.Tags = func() tag.Set { return tag.ParseSet(r.TagSets[place-1]) }
		}
	}
	return v
}

// Judge is for the feed: entries come judged, and are read again where that no longer holds.
func (t *turn) Judge(context.Context) (func(context.Context, *entry) error, error) {
	return func(context.Context, *entry) error { return nil }, nil
}

// Unaccepted is for the feed.
func (t *turn) Unaccepted(*entry, error) error { return nil }

// Keep is for the feed.
func (t *turn) Keep(*entry, bool) []record.Refusal { return nil }

// Settled is for the feed.
func (t *turn) Settled(entries []*entry) {
	dropped := map[string]int64{}
	for _, e := range entries {
		switch {
		case e.ByOthers:
			continue
		case e.Fate == feed.Refused:
			dropped[e.Refusal.Error()] += e.Of
		case e.Fate != feed.Passes:
			t.metrics.drained.WithLabelValues("counted").Inc()
		}
		t.taken += e.Of
	}
	for why, visits := range dropped {
		t.metrics.drained.WithLabelValues("dropped").Add(float64(visits))
		t.log.Warn("visits of the inbox cannot be counted any more, and are passed by", "visits", visits, "why", why)
	}
}
