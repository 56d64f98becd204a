package literal

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"

	"footfall/record/bloom"
	"footfall/visit"
)

// countNaively looks each key up and inserts what was not there.
func (s *Store) countNaively(ctx context.Context, v one) (a visit.Answer, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		q := New(tx)
		found, err := s.find(ctx, q, s.toLookUp(v)) // now, when the connection is there: a filter's word grows old
		if err != nil {
			return err
		}
		if err := s.addDays(ctx, q, v, found); err != nil {
			return err
		}
		a, err = s.addVisitors(ctx, q, v, found)
		return err
	})
	if err == nil && s.known != nil {
		for _, uri := range v.uris { // not before: a visit that is taken back must stay unknown
			s.known.Add(visitorKey(v, uri))
			s.known.Add(dayKey(v, uri))
		}
	}
	return a, err
}

// toLookUp is what must be asked of the tables: all, or what the filter is not sure to be new.
func (s *Store) toLookUp(v one) KeysFindParams {
	ask := KeysFindParams{Ip: v.visitor, DayID: v.day, Uris: v.uris}
	for _, uri := range v.uris {
		ask.Visitors = append(ask.Visitors, s.known == nil || s.known.Has(visitorKey(v, uri)))
		ask.Days = append(ask.Days, s.known == nil || s.known.Has(dayKey(v, uri)))
	}
	return ask
}

// find returns what is known of each target. It asks nothing when nothing need be asked.
func (s *Store) find(ctx context.Context, q *Queries, ask KeysFindParams) (map[string]KeysFindRow, error) {
	asked := int64(0)
	for i := range ask.Uris {
		asked += numberOf(ask.Visitors[i]) + numberOf(ask.Days[i])
	}
	found := map[string]KeysFindRow{}
	if asked == 0 {
		return found, nil
	}
	s.asked.Add(asked)
	rows, err := q.KeysFind(ctx, ask)
	for _, row := range rows {
		found[row.Uri] = row
	}
	return found, err
}

func (s *Store) addDays(ctx context.Context, q *Queries, v one, found map[string]KeysFindRow) error {
	var today []string
	for _, uri := range v.uris {
		if !found[uri].Today {
			today = append(today, uri)
		}
	}
	if len(today) == 0 {
		return nil
	}
	added, err := q.VisitsAdd(ctx, VisitsAddParams{Ip: v.visitor, DayID: v.day, Uris: today})
	s.asked.Add(int64(len(today)) - added) // conflicts
	return err
}

func (s *Store) addVisitors(ctx context.Context, q *Queries, v one, found map[string]KeysFindRow) (a visit.Answer, err error) {
	sum := CountersAddParams{Uris: v.uris}
	for _, uri := range v.uris {
		sum.Pvs = append(sum.Pvs, numberOf(!found[uri].Today))
		sum.Uvs = append(sum.Uvs, numberOf(found[uri].Rank == 0))
	}
	sums, err := q.CountersAdd(ctx, sum)
	if err != nil {
		return a, err
	}
	newcomers := VisitorsAddParams{Ip: v.visitor}
	for _, sum := range sums {
		rank := found[sum.Uri].Rank
		if rank == 0 {
			rank = sum.Uv
			newcomers.Uris, newcomers.Ranks = append(newcomers.Uris, sum.Uri), append(newcomers.Ranks, rank)
		}
		v.put(&a, sum.Uri, visit.Counts{PV: sum.Pv, UV: sum.Uv, Rank: rank, Hot: sum.Hot})
	}
	if len(newcomers.Uris) == 0 {
		return a, nil
	}
	added, err := q.VisitorsAdd(ctx, newcomers)
	s.asked.Add(int64(len(newcomers.Uris)) - added) // conflicts
	return a, err
}

// visitorKey stands for the row (uri, ip) in the filter.
func visitorKey(v one, uri string) bloom.Sum { return rowKey(v, 0, uri) }

// dayKey stands for the row (ip, day_id, uri).
func dayKey(v one, uri string) bloom.Sum { return rowKey(v, v.day, uri) }

// rowKey tells the two kinds of rows apart by the day, which is never 0.
func rowKey(v one, day int32, uri string) bloom.Sum {
	key := make([]byte, 0, 128)
	address := v.visitor.As16()
	key = append(key, address[:]...)
	key = binary.LittleEndian.AppendUint32(key, uint32(day)) //nolint:gosec // its bits
	return bloom.Bytes(append(key, uri...))
}

func numberOf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
