package record

import (
	"context"
	"errors"
	"slices"

	"footfall/db"
	"footfall/visit"
)

const (
	// fastVisits is how many visits of a day a chunk has to have on average, for its days to be
	// counted one after the other as live visits are. With fewer, one transaction of all days is
	// faster.
	fastVisits = 100
	// lateDays bounds the days of a transaction of late visits, and with them the locks on
	// partitions that it holds.
	lateDays = 200
)

// lateDraft is what a draft of late visits has beside the pairs.
type lateDraft struct {
	columns  db.LateColumns
	visitAt  map[dayOf]int32       // places in draft.pairs, one for each day of a pair
	turns    map[pair]int32        // how many days of the pair are sent
	targetAt map[dayOfTarget]int32 // places in columns.Targets
	days     map[int32]bool
}

type dayOf struct {
	pair pair
	day  int32
}

type dayOfTarget struct {
	target int64
	day    int32
}

// fillLate is fill for visits of any days.
func (d *draft) fillLate(entries []entry, g *generation) int {
	d.clear(g.basis)
	if d.late.visitAt == nil {
		d.late = lateDraft{visitAt: map[dayOf]int32{}, turns: map[pair]int32{}, targetAt: map[dayOfTarget]int32{}, days: map[int32]bool{}}
	}
	d.batch.Late = &d.late.columns
	for i := range entries {
		e := &entries[i]
		if e.repeated {
			d.places = append(d.places, entryPlaces{})
			continue
		}
		d.late.days[e.Day] = true
		if len(d.late.days) > lateDays {
			break
		}
		d.notePastDay(e)
		d.places = append(d.places, entryPlaces{
			siteTarget: d.lateTarget(e.site.id, 0, e), sitePair: d.latePair(&e.site, e, g),
			pageTarget: d.lateTarget(e.page.id, e.site.id, e), pagePair: d.latePair(&e.page, e, g),
		})
	}
	d.orderTargets()
	return len(d.places)
}

func (l *lateDraft) clear() {
	c := &l.columns
	c.Turns = c.Turns[:0]
	c.Targets, c.Sites, c.TargetDays, c.Hot = c.Targets[:0], c.Sites[:0], c.TargetDays[:0], c.Hot[:0]
	clear(l.visitAt)
	clear(l.turns)
	clear(l.targetAt)
	clear(l.days)
}

// lateTarget adds a visit to a target, and to its day.
func (d *draft) lateTarget(id, site int64, e *entry) int32 {
	live := e.Day
	if e.When == Past {
		live = 0 // it does not have to be the last day of the site
	}
	at := d.target(id, site, live)
	d.targets[at].day = max(d.targets[at].day, live)
	c := &d.late.columns
	row, there := d.late.targetAt[dayOfTarget{id, e.Day}]
	if !there {
		row = int32(len(c.Targets)) //nolint:gosec // a batch is far smaller
		d.late.targetAt[dayOfTarget{id, e.Day}] = row
		c.Targets, c.Sites, c.TargetDays, c.Hot = append(c.Targets, id), append(c.Sites, site), append(c.TargetDays, e.Day), append(c.Hot, 0)
	}
	c.Hot[row]++
	return at
}

// latePair returns the place of the entry's day of a pair. When it comes for the first time, it is
// sent, unless the memory has it.
func (d *draft) latePair(t *entryTarget, e *entry, g *generation) int32 {
	if t.countedToday {
		d.lookUps.memory++
		return noPair
	}
	p := pairOf(t.id, e.Visitor)
	at, there := d.late.visitAt[dayOf{p, e.Day}]
	if there {
		d.lookUps.batch++
		return at
	}
	at = int32(len(d.pairs)) //nolint:gosec // a batch is far smaller, here and below
	d.late.visitAt[dayOf{p, e.Day}] = at
	if last, hit := g.memory.get(p); hit && last.covers(e) {
		d.lookUps.memory++
		d.pairs = append(d.pairs, draftPair{place: notSent, verdict: db.Verdict{Rank: last.rank}})
		return at
	}
	d.lookUps.needed++
	d.late.turns[p]++
	columns := &d.batch.Pairs
	d.pairs = append(d.pairs, draftPair{place: int32(len(columns.Targets))}) //nolint:gosec // as above
	columns.Targets, columns.Visitors, columns.Days = append(columns.Targets, t.id), append(columns.Visitors, e.Visitor), append(columns.Days, e.Day)
	d.late.columns.Turns = append(d.late.columns.Turns, d.late.turns[p])
	return at
}

// notePastDay notes the day of an entry, if it is a past one.
func (d *draft) notePastDay(e *entry) {
	if e.When != Past {
		return
	}
	t := &d.batch.PastDays
	for i, day := range slices.Backward(t.Days) { // the last one, mostly
		if day == e.Day && t.Apps[i] == e.App {
			return
		}
	}
	t.Apps, t.Days = append(t.Apps, e.App), append(t.Days, e.Day)
}

// judge finds out, once for a chunk, whether its visits are to be counted as late ones. Where that
// turns out to be wrong, the database refuses the batch.
func (s *chunkState) judge(ctx context.Context, d *db.DB, entries []entry) (err error) {
	if s == nil || s.judged {
		return nil
	}
	past, days, seen := 0, map[int32]bool{}, map[dayOfTarget]bool{}
	var sites []int64
	var siteDays []int32
	for i := range entries {
		e := &entries[i]
		if e.When != Past {
			continue
		}
		past++
		days[e.Day] = true
		if key := (dayOfTarget{e.site.id, e.Day}); !seen[key] {
			seen[key] = true
			sites, siteDays = append(sites, e.site.id), append(siteDays, e.Day)
		}
	}
	switch {
	case past == 0:
	case len(days) > 1 && past < fastVisits*len(days):
		s.late = true
	default:
		s.late, err = d.MayBeLate(ctx, sites, siteDays)
	}
	s.judged = err == nil
	return err
}

func (s *chunkState) isLate() bool { return s != nil && s.late }

// becomeLate is called where the database has refused some entries as visits in order. It reports
// whether they may be sent as late ones now.
func (s *chunkState) becomeLate(entries []entry) bool {
	if s == nil || s.late || !slices.ContainsFunc(entries, func(e entry) bool { return e.When == Past }) {
		return false
	}
	s.late = true
	return true
}

// leaveGone leaves out the visits of days that their apps keep no longer, and writes the others.
func (w *writer) leaveGone(ctx context.Context, entries []entry) error {
	first := map[int32]int32{}
	for i := range entries {
		app := entries[i].App
		if _, known := first[app]; known || entries[i].When != Past {
			continue
		}
		day, err := w.db.FirstDay(ctx, app)
		if err != nil {
			return err
		}
		first[app] = day
	}
	isGone := func(e entry) bool { return e.When == Past && e.Day < first[e.App] && !e.repeated }
	if !slices.ContainsFunc(entries, isGone) {
		return errors.New("the database refuses a day that it says is kept")
	}
	for len(entries) > 0 {
		n := slices.IndexFunc(entries, isGone)
		if n < 0 {
			n = len(entries)
		}
		w.writeAll(ctx, entries[:n])
		entries = entries[n:]
		if len(entries) == 0 {
			return nil
		}
		if w.chunk.hasStopped() {
			fail(entries, ErrNotReached)
			return nil
		}
		w.leaveOut(entries[:1], dayGone(first[entries[0].App]))
		entries = entries[1:]
	}
	return nil
}

// errDayOver is of a visit of Today in a lane of live visits, whose site has been counted on a later
// day.
var errDayOver = errors.New("the site has been counted on a later day")

// leaveHeld fails the visits of an app whose days somebody else holds, and writes the others.
func (w *writer) leaveHeld(ctx context.Context, entries []entry, err error) {
	app := db.HeldApp(err)
	err = visit.Errorf(visit.Unavailable, "", "something is being erased or deleted from the app, or retention runs; try again").Because(err)
	isOf := func(e entry) bool { return e.When == Past && e.App == app }
	if !w.chunk.ofMany || !slices.ContainsFunc(entries, isOf) {
		w.giveUp(entries, err)
		return
	}
	w.writeBut(ctx, entries, err, isOf)
}

// leaveOver fails the visits of a lane whose day is over for their site, and writes the others.
func (w *writer) leaveOver(ctx context.Context, entries []entry) {
	w.writeBut(ctx, entries, errDayOver, func(e entry) bool { return e.When == Past })
}

// writeBut fails some entries, and writes the others.
func (w *writer) writeBut(ctx context.Context, entries []entry, err error, fails func(e entry) bool) {
	var others []entry
	var places []int
	for i := range entries {
		if fails(entries[i]) {
			entries[i].err = err
		} else {
			others, places = append(others, entries[i]), append(places, i)
		}
	}
	w.writeAll(ctx, others)
	for k, i := range places {
		entries[i] = others[k]
	}
}

// dayGone is what to tell of a visit of a day that its app keeps no longer.
func dayGone(first int32) error {
	return visit.Errorf(visit.Invalid, "at", "the app keeps no visits of that day any more: the first possible day is %s", visit.DayText(first))
}
