package db

import "context"

// VisitID is the id that a caller gave a visit of an app.
type VisitID struct {
	App int32
	ID  string
}

// KnownVisitIDs returns those of some ids with which a visit was counted before.
func (d *DB) KnownVisitIDs(ctx context.Context, ids []VisitID) (counted map[VisitID]bool, err error) {
	ask := VisitIDsKnownParams{}
	for _, id := range ids {
		ask.Apps, ask.Ids = append(ask.Apps, id.App), append(ask.Ids, id.ID)
	}
	var rows []VisitIDsKnownRow
	err = d.look(ctx, "look for ids of visits", func(q *Queries) (err error) { rows, err = q.VisitIDsKnown(ctx, ask); return err })
	counted = make(map[VisitID]bool, len(rows))
	for _, row := range rows {
		counted[VisitID{row.AppID, row.ID}] = true
	}
	return counted, err
}
