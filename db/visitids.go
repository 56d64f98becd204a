package db

import "context"

// VisitID is the id that a caller has given to a visit, and the app of the visit.
type VisitID struct {
	App int32
	ID  string
}

// VisitIDColumns has a row for each visit id.
type VisitIDColumns struct {
	Apps []int32
	IDs  []string
}

// KnownVisitIDs returns the ids whose visits were already counted.
func (d *DB) KnownVisitIDs(ctx context.Context, ids []VisitID) (counted map[VisitID]bool, err error) {
	var columns VisitIDColumns
	for _, id := range ids {
		columns.Apps, columns.IDs = append(columns.Apps, id.App), append(columns.IDs, id.ID)
	}
	var rows []VisitIDsKnownRow
	err = d.readForBatch(ctx, "look for ids of visits", func(q *Queries) (err error) {
		rows, err = q.VisitIDsKnown(ctx, columns.Apps, columns.IDs)
		return err
	})
	counted = make(map[VisitID]bool, len(rows))
	for _, row := range rows {
		counted[VisitID{row.AppID, row.ID}] = true
	}
	return counted, err
}
