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
func (d *draft) fillLate(entries []*entry, g *generation) int {
	d.clear(g.basis)
	if d.late.visitAt == nil {
		d.late = lateDraft{visitAt: map[dayOf]int32{}, turns: map[pair]int32{}, targetAt: map[dayOfTarget]int32{}, days: map[int32]bool{}}
	}
	d.batch.Late = &d.late.columns
	for _, e := range entries {
		if e.repeated {
			d.places = append(d.places, entryPlaces{})
			continue
		}
		d.late.days[e.Day] = true
		if len(d.late.days) > lateDays {
			break
		}
		if e.When == Past {
			d.notePastDay(e)
		}
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

// notePastDay notes the day of an entry, which is a past one.
func (d *draft) notePastDay(e *entry) {
	t := &d.batch.PastDays
	for i, day := range slices.Backward(t.Days) { // the last one, mostly
		if day == e.Day && t.Apps[i] == e.App {
			return
		}
	}
	t.Apps, t.Days = append(t.Apps, e.App), append(t.Days, e.Day)
}

// judge finds out, once for a job, whether its visits are to be sent as late ones. Where that turns
// out to be wrong, the database refuses the batch.
func (w *writer) judge(ctx context.Context, j *job) (err error) {
	if j.judged || j.late {
		return nil
	}
	past, days, seen := 0, map[int32]bool{}, map[dayOfTarget]bool{}
	var sites []int64
	var siteDays []int32
	for _, e := range j.entries {
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
	if len(days) > 1 && past < fastVisits*len(days) {
		j.late = true
	} else {
		j.late, err = w.db.MayBeLate(ctx, sites, siteDays)
	}
	j.judged = err == nil
	return err
}

// mendPastDays deals with past days that the database refuses.
func (w *writer) mendPastDays(ctx context.Context, j *job, fault db.Fault, err error) {
	switch {
	case fault == db.FaultHeld:
		app := db.HeldApp(err)
		err = visit.Errorf(visit.Unavailable, "", "something is being erased or deleted from the app, or retention runs; try again").Because(err)
		locked := func(e *entry) error {
			if e.When == Past && e.App == app {
				return err
			}
			return nil
		}
		if j.chunk || !j.without(locked) {
			j.failAll(err)
		}
	case fault == db.FaultGone:
		if err := w.leaveOldDays(ctx, j); err != nil {
			j.failAll(dayNotYet(err))
		}
	case j.late:
		j.failAll(dayNotYet(err))
	default:
		j.late = true
	}
}

// leaveOldDays leaves out the visits of days that their apps keep no longer. Where sources have
// positions, those before the first such visit are counted.
func (w *writer) leaveOldDays(ctx context.Context, j *job) error {
	first := map[int32]int32{}
	for _, e := range j.entries {
		if _, asked := first[e.App]; asked || e.When != Past {
			continue
		}
		day, err := w.db.FirstDay(ctx, e.App)
		if err != nil {
			return err
		}
		first[e.App] = day
	}
	tooOld := func(e *entry) error {
		if e.When != Past || e.repeated || e.Day >= first[e.App] {
			return nil
		}
		return visit.Errorf(visit.Invalid, "at", "the app keeps no visits of that day any more: the first possible day is %s", visit.DayText(first[e.App]))
	}
	at := slices.IndexFunc(j.entries, func(e *entry) bool { return tooOld(e) != nil })
	switch {
	case at < 0:
		return errors.New("the database refuses a day that it says is kept")
	case j.entries[at].step.Position == nil:
		j.without(tooOld)
	case at == 0:
		j.fail(1, tooOld(j.entries[0]))
	default:
		j.most = at
	}
	return nil
}
