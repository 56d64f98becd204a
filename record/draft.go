package record

import (
	"slices"

	"footfall/db"
	"footfall/visit"
)

// draft turns entries into the columns of one transaction, and what the database decided into each entry's own answer.
// A writer owns it and uses it again and again.
type draft struct {
	batch   db.Batch
	outcome db.Outcome
	saved   savings

	targets  []draftTarget
	targetAt map[int64]int32 // places in targets
	pairs    []draftPair
	pairAt   map[pair]int32 // places in pairs
	steps    []step         // beside the entries
}

// draftTarget is a target of the draft.
type draftTarget struct {
	id   int64
	site int64 // its site, 0 for a site
	day  int32 // of its visits
	hot  int64 // visits in the draft
	new  int64 // visitors in the draft who are surely new
	sums db.Sums
}

// draftPair is a (target, visitor) pair of the draft.
type draftPair struct {
	place   int32 // in batch.Pages; or unsent
	arrived bool  // replay has passed its first visit
	verdict db.Verdict
}

// unsent is the place of a pair that is not in the batch, since it turned out to be counted today; unpaired that of a subject
// of which this was found out before the entry was accepted.
const (
	unsent   = -1
	unpaired = -1
)

// step is where an entry's targets and pairs stand in the draft.
type step struct{ siteTarget, sitePair, pageTarget, pagePair int32 }

// savings count the keys of a draft by what spared their look-up.
type savings struct {
	asked  int // nothing did
	batch  int // the same key came before in the draft
	memory int // it is known to be counted
	filter int // it is surely new
}

func newDraft() draft {
	return draft{targetAt: map[int64]int32{}, pairAt: map[pair]int32{}}
}

// fill takes as many of the first entries as one transaction can hold, and returns how many. In one transaction a target has
// one day: where midnight falls into the entries, they are cut there. hintsAllowed says whether the filter is asked.
func (d *draft) fill(entries []entry, g *generation, hintsAllowed bool) int {
	d.clear(g.basis)
	for i := range entries {
		e := &entries[i]
		if d.turnsDay(e.site.id, e.Day) || d.turnsDay(e.page.id, e.Day) {
			break
		}
		d.steps = append(d.steps, step{
			siteTarget: d.target(e.site.id, 0, e.Day), sitePair: d.pair(&e.site, e, g, hintsAllowed),
			pageTarget: d.target(e.page.id, e.site.id, e.Day), pagePair: d.pair(&e.page, e, g, hintsAllowed),
		})
	}
	d.orderTargets()
	return len(d.steps)
}

func (d *draft) clear(basis string) {
	b := &d.batch
	b.Basis = basis
	b.Targets, b.Sites, b.TargetDays = b.Targets[:0], b.Sites[:0], b.TargetDays[:0]
	b.Hots, b.Newcomers = b.Hots[:0], b.Newcomers[:0]
	b.Pages, b.Visitors, b.Days = b.Pages[:0], b.Visitors[:0], b.Days[:0]
	b.Hinted = b.Hinted[:0]
	d.targets, d.pairs, d.steps = d.targets[:0], d.pairs[:0], d.steps[:0]
	clear(d.targetAt)
	clear(d.pairAt)
	d.saved = savings{}
}

// turnsDay reports whether the target is in the draft with another day.
func (d *draft) turnsDay(target int64, day int32) bool {
	at, there := d.targetAt[target]
	return there && d.targets[at].day != day
}

// target counts a visit to a target, and returns its place.
func (d *draft) target(id, site int64, day int32) int32 {
	at, there := d.targetAt[id]
	if !there {
		at = int32(len(d.targets)) //nolint:gosec // bounded by a batch, as all places
		d.targetAt[id] = at
		d.targets = append(d.targets, draftTarget{id: id, site: site, day: day})
	}
	d.targets[at].hot++
	return at
}

// pair returns the place of a pair. What must be asked of it, or can be left out, is decided when it comes first.
func (d *draft) pair(s *subject, e *entry, g *generation, hintsAllowed bool) int32 {
	if s.countedToday {
		d.saved.memory++
		return unpaired
	}
	p := pairOf(s.id, e.Visitor)
	at, there := d.pairAt[p]
	if there {
		d.saved.batch++
		return at
	}
	at = int32(len(d.pairs)) //nolint:gosec // bounded by a batch
	d.pairAt[p] = at
	hint := hintsAllowed && g.filter.surelyNew(p.target, e.Visitor)
	if !hint {
		// A visitor who came with the batch before was not remembered yet when this entry was looked up.
		if last, hit := g.memory.get(p); hit && last.day >= e.Day {
			d.saved.memory++
			d.pairs = append(d.pairs, draftPair{place: unsent, verdict: db.Verdict{Rank: last.rank}})
			return at
		}
	}
	d.send(p.target, e, hint)
	return at
}

// send puts a pair into the batch; hint says that its visitor is surely new.
func (d *draft) send(target int64, e *entry, hint bool) {
	if hint {
		d.saved.filter++
		d.targets[d.targetAt[target]].new++
	} else {
		d.saved.asked++
	}
	b := &d.batch
	d.pairs = append(d.pairs, draftPair{place: int32(len(b.Pages))}) //nolint:gosec // bounded by a batch
	b.Pages = append(b.Pages, target)
	b.Visitors = append(b.Visitors, e.Visitor)
	b.Days = append(b.Days, e.Day)
	b.Hinted = append(b.Hinted, hint)
}

// orderTargets writes the targets into the batch in the one order in which locks are taken.
func (d *draft) orderTargets() {
	b := &d.batch
	for _, t := range d.targets {
		b.Targets = append(b.Targets, t.id)
	}
	slices.Sort(b.Targets)
	for _, id := range b.Targets {
		t := &d.targets[d.targetAt[id]]
		b.Sites = append(b.Sites, t.site)
		b.TargetDays = append(b.TargetDays, t.day)
		b.Hots = append(b.Hots, t.hot)
		b.Newcomers = append(b.Newcomers, t.new)
	}
}

// replay walks through the entries in the order of their arrival and gives each the numbers of its own moment.
func (d *draft) replay(entries []entry) {
	for place, id := range d.batch.Targets {
		t := &d.targets[d.targetAt[id]]
		t.sums = d.outcome.Sums[place]
		t.sums.Hot -= t.hot // as they were before the batch
		t.sums.PV -= t.new
		t.sums.UV -= t.new
	}
	for i := range d.pairs {
		if p := &d.pairs[i]; p.place != unsent {
			p.verdict = d.outcome.Verdicts[p.place]
		}
	}
	for i := range entries {
		e, s := &entries[i], d.steps[i]
		e.answer = visit.Answer{Site: d.count(s.siteTarget, s.sitePair, e.site.rank), Page: d.count(s.pageTarget, s.pagePair, e.page.rank)}
	}
}

// count is one visit to a target. rank is the visitor's where there is no pair.
func (d *draft) count(target, pair int32, rank int64) visit.Counts {
	sums := &d.targets[target].sums
	sums.Hot++
	if pair == unpaired {
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

// learn keeps what the database decided. It must be called only when the batch has committed.
func (d *draft) learn(g *generation) {
	b := &d.batch
	for place, target := range b.Pages {
		visitor, verdict := b.Visitors[place], d.outcome.Verdicts[place]
		g.memory.put(pairOf(target, visitor), lastCounted{rank: verdict.Rank, day: b.Days[place]})
		g.filter.add(target, visitor)
	}
}

// hinted reports whether the batch goes by a hint.
func (d *draft) hinted() bool { return slices.Contains(d.batch.Hinted, true) }
