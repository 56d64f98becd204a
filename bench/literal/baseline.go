package literal

import (
	"context"

	"github.com/jackc/pgx/v5"

	"footfall/visit"
)

// countByConflict sends the whole transaction at once, and reads from the inserts' conflicts what
// was there.
func (s *Store) countByConflict(ctx context.Context, v one) (a visit.Answer, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return a, err
	}
	defer conn.Release() // closes the connection where a fault left the transaction open
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	b.Queue(CountersHit, v.uris)
	b.Queue(VisitCount, v.visitor, v.day, v.uris).Query(func(rows pgx.Rows) error {
		judged, err := pgx.CollectRows(rows, pgx.RowToStructByPos[VisitCountRow])
		for _, j := range judged {
			s.asked.Add(numberOf(!j.FirstToday) + numberOf(!j.Newcomer)) // conflicts
			v.put(&a, j.Uri, visit.Counts{PV: j.Pv, UV: j.Uv, Rank: j.Rank, Hot: j.Hot})
		}
		return err
	})
	b.Queue("commit")
	err = conn.SendBatch(ctx, &b).Close()
	return a, err
}
