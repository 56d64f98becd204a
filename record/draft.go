package record

import (
	"slices"

	"footfall/db"
	"footfall/visit"
)

// draft converts entries (visits to be counted) to a db.Batch, which is counted in one transaction. From the outcome
// of the batch, it computes the answer for each entry. A writer has one draft and reuses it for every transaction.
type draft struct {
	batch   db.Batch
	outcome db.Outcome
	lookUps lookUps

	targets  []draftTarget
	targetAt map[int64]int32 // target id → index in targets
	pairs    []draftPair
	pairAt   map[dayOfPair]int32   // index in pairs
	places   []entryPlaces         // one per entry
	rowAt    map[dayOfTarget]int32 // index in batch.Rows; only in a late batch
	days     map[int32]bool        // the days of the entries; only in a late batch
}

// lateDays is the maximum number of days in a late batch, which is a batch whose visits may be of any days. This also
// limits the number of partitions that its transaction locks.
const lateDays = 200

type dayOfTarget struct {
	target int64
	day    int32
}

type dayOfPair struct {
	pair pair
	day  int32
}

type draftTarget struct {
	id     int64
	site   int64 // the page's site; 0 if the target is a site itself
	day    int32 // the day of the target's visits; in a late batch: the last day of its visits that are not Past; 0: all are Past
	hot    int64 // number of the target's visits in the draft
	hinted int64 // number of the target's pairs in the draft that the filter reports as new
	sums   db.Sums
}

// draftPair is a (target, visitor) pair on one day.
type draftPair struct {
	place   int32 // index in batch.Pairs, or notSent
	arrived bool  // replay has already counted a visit of the pair
	verdict db.Verdict
}

const (
	// notSent is the place of a pair that is not in the batch. According to the memory of recent visitors, this pair
	// was already counted on the entry's day.
	notSent = -1
	// noPair is used instead of an index in draft.pairs. It means that draft.pairs does not contain the pair, because
	// generation.lookUp has found it in the memory of recent visitors.
	noPair = -1
)

// entryPlaces are the indexes of an entry's targets and pairs in the draft.
type entryPlaces struct{ siteTarget, sitePair, pageTarget, pagePair int32 }

// lookUps contains numbers of (target, visitor) pairs of a draft: how many must be looked up in the tables, and how
// many need no look-up, by reason.
type lookUps struct {
	needed int // the pair must be looked up
	batch  int // an earlier entry of the draft has the same pair
	memory int // according to the memory of recent visitors, the pair was already counted on this day
	filter int // the filter reports the visitor as new
}

func newDraft() draft {
	return draft{targetAt: map[int64]int32{}, pairAt: map[dayOfPair]int32{}, rowAt: map[dayOfTarget]int32{}, days: map[int32]bool{}}
}

// fill fills the batch with as many of the first entries as fit into one transaction, and returns their number. This
// number includes repeated entries, although they are not in the batch. Unless the batch is late, all its visits to a
// target are of the same day. So visits from before and after midnight are in different batches. If hintsAllowed is
// true, pairs that the filter reports as new are not looked up in the tables.
func (d *draft) fill(entries []*entry, g *generation, late, hintsAllowed bool) int {
	d.clear(g.basis)
	d.batch.Late = late
	for _, e := range entries {
		if e.repeated {
			d.places = append(d.places, entryPlaces{})
			continue
		}
		if !d.hasRoom(e) {
			break
		}
		if e.When == Past {
			d.batch.PastDays.Add(e.App, e.Day)
		}
		d.places = append(d.places, entryPlaces{
			siteTarget: d.target(e.site.id, 0, e), sitePair: d.pair(&e.site, e, g, hintsAllowed && !late),
			pageTarget: d.target(e.page.id, e.site.id, e), pagePair: d.pair(&e.page, e, g, hintsAllowed && !late),
		})
	}
	d.orderTargets()
	return len(d.places)
}

// hasRoom reports whether e may be in the same transaction as the entries before it. This depends on the day of e.
func (d *draft) hasRoom(e *entry) bool {
	if !d.batch.Late {
		return !d.hasOtherDay(e.site.id, e.Day) && !d.hasOtherDay(e.page.id, e.Day)
	}
	d.days[e.Day] = true
	return len(d.days) <= lateDays
}

func (d *draft) clear(basis string) {
	d.batch.Basis = basis
	t, p := &d.batch.Targets, &d.batch.Pairs
	t.IDs, t.Sites, t.Days, t.Hot, t.Newcomers = t.IDs[:0], t.Sites[:0], t.Days[:0], t.Hot[:0], t.Newcomers[:0]
	p.Targets, p.Visitors, p.Days, p.Hinted = p.Targets[:0], p.Visitors[:0], p.Days[:0], p.Hinted[:0]
	p.TagSets = p.TagSets[:0]
	p.Tags.Clear()
	d.batch.PastDays.Apps, d.batch.PastDays.Days = d.batch.PastDays.Apps[:0], d.batch.PastDays.Days[:0]
	r := &d.batch.Rows
	r.Targets, r.Sites, r.Days, r.Hot = r.Targets[:0], r.Sites[:0], r.Days[:0], r.Hot[:0]
	clear(d.rowAt)
	clear(d.days)
	d.targets, d.pairs, d.places = d.targets[:0], d.pairs[:0], d.places[:0]
	clear(d.targetAt)
	clear(d.pairAt)
	d.lookUps = lookUps{}
}

// hasOtherDay reports whether the draft already has visits to the target on another day than day.
func (d *draft) hasOtherDay(target int64, day int32) bool {
	at, there := d.targetAt[target]
	return there && d.targets[at].day != day
}

// target adds a visit to the target with this id, and returns the index of the target in d.targets.
func (d *draft) target(id, site int64, e *entry) int32 {
	day := e.Day
	if d.batch.Late {
		d.addToDay(id, site, day)
		if e.When == Past {
			day = 0 // so that the database does not check whether the site was counted on a later day
		}
	}
	at, there := d.targetAt[id]
	if !there {
		at = int32(len(d.targets)) //nolint:gosec // a batch is far smaller, here and below
		d.targetAt[id] = at
		d.targets = append(d.targets, draftTarget{id: id, site: site, day: day})
	}
	t := &d.targets[at]
	t.hot++
	t.day = max(t.day, day)
	return at
}

// addToDay adds a visit of a late batch to the row for this target and day in batch.Rows.
func (d *draft) addToDay(id, site int64, day int32) {
	r := &d.batch.Rows
	row, there := d.rowAt[dayOfTarget{id, day}]
	if !there {
		row = int32(len(r.Targets)) //nolint:gosec // a batch is far smaller
		d.rowAt[dayOfTarget{id, day}] = row
		r.Targets, r.Sites, r.Days, r.Hot = append(r.Targets, id), append(r.Sites, site), append(r.Days, day), append(r.Hot, 0)
	}
	r.Hot[row]++
}

// pair returns the index in d.pairs for the target t, the visitor of e, and the day of e. It returns noPair if
// t.countedToday shows that this pair was already counted. If d.pairs does not contain the pair yet, it is added. The
// pair is also added to the batch, unless the memory of recent visitors now shows that it was already counted.
func (d *draft) pair(t *entryTarget, e *entry, g *generation, hintsAllowed bool) int32 {
	if t.countedToday {
		d.lookUps.memory++
		return noPair
	}
	p := dayOfPair{pairOf(t.id, e.person), e.Day}
	at, there := d.pairAt[p]
	if there {
		d.lookUps.batch++
		return at
	}
	at = int32(len(d.pairs)) //nolint:gosec // a batch is far smaller
	d.pairAt[p] = at
	hint := hintsAllowed && g.filter.surelyNew(t.id, e.person)
	if !hint {
		// Look again: the previous batch may have counted the visitor after this entry was looked up in the memory.
		if last, hit := g.memory.get(p.pair); hit && last.covers(e) {
			d.lookUps.memory++
			d.pairs = append(d.pairs, draftPair{place: notSent, verdict: db.Verdict{Rank: last.rank}})
			return at
		}
	}
	d.send(t, e, hint)
	set := ""
	if t == &e.site && !g.unfiltered[e.App] {
		set = db.TagSet(t.tags)
	}
	d.batch.Pairs.TagSets = append(d.batch.Pairs.TagSets, set)
	return at
}

// send adds a pair to the batch. e is the pair's first visit in the draft, and its tags count. If hint is true, the
// filter reports the visitor as new.
func (d *draft) send(t *entryTarget, e *entry, hint bool) {
	if hint {
		d.lookUps.filter++
		d.targets[d.targetAt[t.id]].hinted++
	} else {
		d.lookUps.needed++
	}
	p := &d.batch.Pairs
	d.pairs = append(d.pairs, draftPair{place: int32(len(p.Targets))}) //nolint:gosec // a batch is far smaller
	p.Targets = append(p.Targets, t.id)
	p.Visitors = append(p.Visitors, e.person)
	p.Days = append(p.Days, e.Day)
	p.Hinted = append(p.Hinted, hint)
	p.Tags.Add(len(p.Targets)-1, t.id, e.Day, t.tags)
}

// orderTargets writes the targets to the batch in order of id. Every batch locks its targets in this order, to avoid
// deadlocks.
func (d *draft) orderTargets() {
	b := &d.batch.Targets
	for _, t := range d.targets {
		b.IDs = append(b.IDs, t.id)
	}
	slices.Sort(b.IDs)
	for _, id := range b.IDs {
		t := &d.targets[d.targetAt[id]]
		b.Sites = append(b.Sites, t.site)
		b.Days = append(b.Days, t.day)
		b.Hot = append(b.Hot, t.hot)
		b.Newcomers = append(b.Newcomers, t.hinted)
	}
}

// replay computes each entry's numbers at the moment of its visit. First it sets the sums of all
// targets to their values before the batch. Then it counts the entries one by one, in order of
// arrival.
func (d *draft) replay(entries []*entry) {
	for place, id := range d.batch.Targets.IDs {
		t := &d.targets[d.targetAt[id]]
		t.sums = d.outcome.Sums[place]
		t.sums.Hot -= t.hot
		t.sums.PV -= t.hinted
		t.sums.UV -= t.hinted
	}
	for i := range d.pairs {
		if p := &d.pairs[i]; p.place != notSent {
			p.verdict = d.outcome.Verdicts[p.place]
		}
	}
	for i, e := range entries {
		at := d.places[i]
		if e.repeated {
			e.err = ErrRepeated
			continue
		}
		e.answer = visit.Answer{
			Site:  d.count(at.siteTarget, at.sitePair, e.site.rank),
			Page:  d.count(at.pageTarget, at.pagePair, e.page.rank),
			Other: e.other,
		}
	}
}

// count adds one visit to a target's sums, and returns the target's numbers after this visit. target
// and pair are indexes in the draft. If pair is noPair, rank is the visitor's rank.
func (d *draft) count(target, pair int32, rank int64) visit.Counts {
	sums := &d.targets[target].sums
	sums.Hot++
	if pair == noPair {
		return visit.Counts{PV: sums.PV, UV: sums.UV, Rank: rank, Hot: sums.Hot}
	}
	p := &d.pairs[pair]
	if !p.arrived {
		p.arrived = true
		if p.verdict.Counted {
			sums.PV++
		}
		if p.verdict.Newcomer {
			sums.UV++
		}
	}
	return visit.Counts{PV: sums.PV, UV: sums.UV, Rank: p.verdict.Rank, Hot: sums.Hot}
}

// learn adds the (target, visitor) pairs of a committed batch to the memory and the filter.
func (d *draft) learn(g *generation) {
	remember := g.memory.put
	if d.batch.Late {
		remember = g.memory.putLate
	}
	p := &d.batch.Pairs
	for place, target := range p.Targets {
		visitor, verdict := p.Visitors[place], d.outcome.Verdicts[place]
		remember(pairOf(target, visitor), lastCounted{rank: verdict.Rank, day: p.Days[place]})
		g.filter.add(target, visitor)
	}
}

func (d *draft) hasHints() bool { return slices.Contains(d.batch.Pairs.Hinted, true) }
