package record

import (
	"errors"

	"footfall/db"
)

// ErrRepeated is of a visit that is not counted now, since one with the same id was counted before.
var ErrRepeated = errors.New("counted before")

// prepare makes the draft of as many of the first entries as one transaction can hold, and returns
// how many. Those that turn out to be repeated once their ids are claimed are left out then.
func (w *writer) prepare(entries []entry) (sent int) {
	for i := range entries {
		entries[i].repeated = false // what an attempt before has claimed was rolled back with it
	}
	b, hints := &w.draft.batch, w.hints.allowed()
	fill := func(entries []entry) int { return w.draft.fill(entries, w.generation, hints) }
	if w.chunk.isLate() {
		fill = func(entries []entry) int { return w.draft.fillLate(entries, w.generation) }
	}
	sent = fill(entries)
	entries = entries[:sent]
	firsts := w.draft.claim(entries)
	if len(b.Claims) == 0 {
		w.tell()
		return sent
	}
	b.Claimed = func(free map[db.Claim]bool) {
		any := false
		for i := range entries {
			e := &entries[i]
			e.repeated = e.ID != "" && (!free[e.claim()] || firsts[e.claim()] != i)
			any = any || e.repeated
		}
		if any {
			fill(entries)
		}
		w.tell()
	}
	return sent
}

// tell puts the pairs of a chunk that is about to be sent into the filter.
func (w *writer) tell() {
	if w.chunk != nil {
		w.draft.tell(w.generation)
	}
}

// claim puts the ids of entries into the batch, and returns where each of them comes first.
func (d *draft) claim(entries []entry) (firsts map[db.Claim]int) {
	d.batch.Claims = d.batch.Claims[:0]
	for i := range entries {
		if entries[i].ID == "" {
			continue
		}
		if firsts == nil {
			firsts = map[db.Claim]int{}
		}
		id := entries[i].claim()
		if _, there := firsts[id]; !there {
			firsts[id] = i
			d.batch.Claims = append(d.batch.Claims, id)
		}
	}
	return firsts
}

func (e *entry) claim() db.Claim { return db.Claim{App: e.App, ID: e.ID} }
