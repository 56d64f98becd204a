package record

import (
	"context"
	"errors"

	"footfall/db"
)

// ErrRepeated is returned for a visit whose id was counted before.
var ErrRepeated = errors.New("counted before")

// findRepeated sets the field repeated of each entry. It is true if the entry has no visit, if a visit with its id
// was counted before, or if an earlier entry has the same id.
func (w *writer) findRepeated(ctx context.Context, entries []*entry) error {
	firsts, ask := map[db.VisitID]*entry{}, []db.VisitID{}
	for _, e := range entries {
		if e.ID != "" && firsts[e.visitID()] == nil {
			firsts[e.visitID()] = e
			ask = append(ask, e.visitID())
		}
	}
	counted, err := w.db.KnownVisitIDs(ctx, ask)
	for _, e := range entries {
		e.repeated = e.isPassed() || e.ID != "" && (counted[e.visitID()] || firsts[e.visitID()] != e)
	}
	return err
}

// addIDs sets the ids of the batch: the visit ids of all entries that are not repeated.
func addIDs(b *db.Batch, entries []*entry) {
	b.IDs.Apps, b.IDs.IDs = b.IDs.Apps[:0], b.IDs.IDs[:0]
	for _, e := range entries {
		if e.ID != "" && !e.repeated {
			b.IDs.Apps, b.IDs.IDs = append(b.IDs.Apps, e.App), append(b.IDs.IDs, e.ID)
		}
	}
}

func (e *entry) visitID() db.VisitID { return db.VisitID{App: e.App, ID: e.ID} }
