package record

import "footfall/db"

// lateDays bounds the days of a transaction of late visits, and with them the locks on partitions
// that it holds.
const lateDays = 200

// lateDraft is what a draft of late visits has beside the pairs.
type lateDraft struct {
	columns  db.LateColumns
	turns    map[pair]int32        // how many days of the pair are sent
	targetAt map[dayOfTarget]int32 // places in columns.Targets
	days     map[int32]bool
}

type dayOfTarget struct {
	target int64
	day    int32
}

// fillLate is fill for visits of any days.
func (d *draft) fillLate(entries []*entry, g *generation) int {
	d.clear(g.basis)
	if d.late.turns == nil {
		d.late = lateDraft{turns: map[pair]int32{}, targetAt: map[dayOfTarget]int32{}, days: map[int32]bool{}}
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
			d.batch.PastDays.Add(e.App, e.Day)
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

// latePair returns the place of the entry's day of a pair.
func (d *draft) latePair(t *entryTarget, e *entry, g *generation) int32 {
	before := len(d.batch.Pairs.Targets)
	at := d.pair(t, e, g, false)
	if len(d.batch.Pairs.Targets) > before { // it is sent
		p := pairOf(t.id, e.person)
		d.late.turns[p]++
		d.late.columns.Turns = append(d.late.columns.Turns, d.late.turns[p])
	}
	return at
}
