package record

import (
	"context"
	"errors"

	"footfall/db"
)

// ErrRepeated is of a visit that is not counted now, since one with the same id was counted before.
var ErrRepeated = errors.New("counted before")

// prepare makes the draft of as many of the first entries as one transaction can hold, and returns
// how many. Those that turn out to be repeated once their ids are claimed are left out then.
func (w *writer) prepare(entries []entry) (sent int) {
	for i := range entries {
		entries[i].repeated = entries[i].known // what an attempt before has claimed was rolled back with it
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
		less := false
		for i := range entries {
			e := &entries[i]
			e.repeated = e.known || e.ID != "" && (!free[e.claim()] || firsts[e.claim()] != i)
			less = less || e.repeated
		}
		if less {
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
		if entries[i].ID == "" || entries[i].known {
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

// findKnown notes which of the entries without targets were counted before with their ids, or come
// with that of another one of them: nothing is to be made for these.
func (w *writer) findKnown(ctx context.Context, entries []entry) error {
	firsts := map[db.Claim]int{}
	var ask []db.Claim
	for i := range entries {
		e := &entries[i]
		if e.ID == "" {
			continue
		}
		if _, there := firsts[e.claim()]; !there {
			firsts[e.claim()] = i
		}
		if e.site.id == 0 || e.page.id == 0 {
			ask = append(ask, e.claim())
		}
	}
	if len(ask) == 0 {
		return nil
	}
	known, err := w.db.KnownVisitIDs(ctx, ask)
	for i := range entries {
		e := &entries[i]
		e.known = e.ID != "" && (e.site.id == 0 || e.page.id == 0) && (known[e.claim()] || firsts[e.claim()] != i)
	}
	return err
}

func (e *entry) claim() db.Claim { return db.Claim{App: e.App, ID: e.ID} }
