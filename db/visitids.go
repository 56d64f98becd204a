package db

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Claim is the id that a caller gave a visit of an app.
type Claim struct {
	App int32
	ID  string
}

func (b *Batch) claim(ctx context.Context, conn *pgxpool.Conn, begin *pgx.Batch) error {
	apps, ids := make([]int32, len(b.Claims)), make([]string, len(b.Claims))
	for i, id := range b.Claims {
		apps[i], ids[i] = id.App, id.ID
	}
	free := make(map[Claim]bool, len(b.Claims))
	begin.Queue(VisitIDsClaim, apps, ids).Query(func(rows pgx.Rows) error {
		var id Claim
		_, err := pgx.ForEachRow(rows, []any{&id.App, &id.ID}, func() error { free[id] = true; return nil })
		return err
	})
	if err := conn.SendBatch(ctx, begin).Close(); err != nil {
		return err
	}
	b.Claimed(free)
	return nil
}

// KnownVisitIDs returns those of some ids with which a visit was counted before.
func (d *DB) KnownVisitIDs(ctx context.Context, ids []Claim) (counted map[Claim]bool, err error) {
	ask := VisitIDsKnownParams{}
	for _, id := range ids {
		ask.Apps, ask.Ids = append(ask.Apps, id.App), append(ask.Ids, id.ID)
	}
	var rows []VisitIDsKnownRow
	err = d.look(ctx, "look for ids of visits", func(q *Queries) (err error) { rows, err = q.VisitIDsKnown(ctx, ask); return err })
	counted = make(map[Claim]bool, len(rows))
	for _, row := range rows {
		counted[Claim{row.AppID, row.ID}] = true
	}
	return counted, err
}
