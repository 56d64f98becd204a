package visit

import (
	"net/netip"
	"slices"

	"footfall/db"
)

// draft turns entries into the columns of one transaction, and what the database decided into each entry's own answer.
// A writer owns it and uses it again and again.
type draft struct {
	batch   db.Batch
	outcome db.Outcome
	hots    map[int64]int64 // visits by target
	targets map[int64]int   // places in batch.Targets
	pairs   map[pair]int    // places in batch.Pages
	arrived []bool          // beside batch.Pages: replay has passed the pair's first visit
}

// pair is a visitor at a target.
type pair struct {
	target  int64
	visitor netip.Addr
}

func newDraft() draft {
	return draft{hots: map[int64]int64{}, targets: map[int64]int{}, pairs: map[pair]int{}}
}

// fill takes as many of the first entries as one transaction can hold, and returns how many. In one transaction a pair has
// one day: where midnight falls into the entries, they are cut there.
func (d *draft) fill(entries []entry) int {
	b := &d.batch
	b.Targets, b.Hots = b.Targets[:0], b.Hots[:0]
	b.Pages, b.Visitors, b.Days, b.Hinted = b.Pages[:0], b.Visitors[:0], b.Days[:0], b.Hinted[:0]
	clear(d.hots)
	clear(d.targets)
	clear(d.pairs)

	taken := 0
	for i := range entries {
		e := &entries[i]
		if d.turnsDay(e.site, e) || d.turnsDay(e.page, e) {
			break
		}
		d.add(e.site, e)
		d.add(e.page, e)
		taken++
	}
	for target := range d.hots {
		b.Targets = append(b.Targets, target)
	}
	slices.Sort(b.Targets) // the one order in which locks are taken
	for place, target := range b.Targets {
		b.Hots = append(b.Hots, d.hots[target])
		d.targets[target] = place
	}
	return taken
}

// turnsDay reports whether the visitor is in the batch with an earlier day. (A later one holds: days do not run backwards.)
func (d *draft) turnsDay(target int64, e *entry) bool {
	place, known := d.pairs[pair{target, e.visitor}]
	return known && d.batch.Days[place] < e.day
}

func (d *draft) add(target int64, e *entry) {
	d.hots[target]++
	p := pair{target, e.visitor}
	if _, known := d.pairs[p]; known {
		return
	}
	b := &d.batch
	d.pairs[p] = len(b.Pages)
	b.Pages = append(b.Pages, target)
	b.Visitors = append(b.Visitors, e.visitor)
	b.Days = append(b.Days, e.day)
	b.Hinted = append(b.Hinted, false)
}

// replay walks through the entries in the order of their arrival and gives each the numbers of its own moment.
func (d *draft) replay(entries []entry) {
	for place, hot := range d.batch.Hots {
		d.outcome.Sums[place].Hot -= hot // as it was before the batch
	}
	d.arrived = append(d.arrived[:0], make([]bool, len(d.batch.Pages))...)
	for i := range entries {
		e := &entries[i]
		e.answer = Answer{Site: d.count(e.site, e.visitor), Page: d.count(e.page, e.visitor)}
	}
}

func (d *draft) count(target int64, visitor netip.Addr) Counts {
	sums := &d.outcome.Sums[d.targets[target]]
	place := d.pairs[pair{target, visitor}]
	verdict := d.outcome.Verdicts[place]
	sums.Hot++
	if !d.arrived[place] {
		d.arrived[place] = true
		if verdict.Counted {
			sums.PV++
		}
		if verdict.Newcomer {
			sums.UV++
		}
	}
	return Counts{PV: sums.PV, UV: sums.UV, Rank: verdict.Rank, Hot: sums.Hot}
}
