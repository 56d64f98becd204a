package record

import (
	"context"
	"errors"

	"footfall/db"
)

// ErrRepeated is of a visit that is not counted now, since one with the same id was counted before.
var ErrRepeated = errors.New("counted before")

// findRepeated marks entries without targets whose ids were counted before, or come with an entry
// before them: no targets are to be made for these.
func (w *writer) findRepeated(ctx context.Context, entries []*entry) error {
	firsts := map[db.Claim]*entry{}
	var ask []db.Claim
	for _, e := range entries {
		e.repeated = e.isPassed() // what an attempt before has claimed was rolled back with it
		if e.ID == "" {
			continue
		}
		if firsts[e.claim()] == nil {
			firsts[e.claim()] = e
		}
		if e.lacksTarget() {
			ask = append(ask, e.claim())
		}
	}
	if len(ask) == 0 {
		return nil
	}
	counted, err := w.db.KnownVisitIDs(ctx, ask)
	for _, e := range entries {
		e.repeated = e.repeated || e.ID != "" && e.lacksTarget() && (counted[e.claim()] || firsts[e.claim()] != e)
	}
	return err
}

// claim has the batch of some entries claim their ids. Those that turn out to be repeated are left
// out of it then.
func (w *writer) claim(j *job, entries []*entry) {
	b, firsts := &w.draft.batch, map[db.Claim]*entry{}
	for _, e := range entries {
		if e.ID == "" || e.repeated {
			continue
		}
		if firsts[e.claim()] == nil {
			firsts[e.claim()] = e
			b.Claims = append(b.Claims, e.claim())
		}
	}
	b.Claimed = func(free map[db.Claim]bool) {
		less := false
		for _, e := range entries {
			if !e.repeated && e.ID != "" && (!free[e.claim()] || firsts[e.claim()] != e) {
				e.repeated, less = true, true
			}
		}
		if less {
			w.fill(j, entries)
		}
	}
}

func (e *entry) claim() db.Claim { return db.Claim{App: e.App, ID: e.ID} }
