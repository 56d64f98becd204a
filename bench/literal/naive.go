package literal

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"

	"footfall/record/bloom"
	"footfall/visit"
)

// state is what a way takes for true of the visitor at one target.
type state struct {
	known, today bool  // came before, came on this day
	rank         int64 // 0: none was found
}

// countNaively looks each key up, or asks the filter, and inserts what was not there.
func (s *Store) countNaively(ctx context.Context, v one) (a visit.Answer, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		a, err = s.count(ctx, New(tx), v)
		return err
	})
	if err == nil && s.known != nil && !s.way.believed {
		for _, uri := range v.uris { // not before: a visit that is taken back must stay unknown
			s.known.Add(visitorKey(v, uri))
			s.known.Add(dayKey(v, uri))
		}
	}
	return a, err
}

func (s *Store) count(ctx context.Context, q *Queries, v one) (a visit.Answer, err error) {
	found, err := s.find(ctx, q, v)
	if err != nil {
		return a, err
	}
	sum, days := CountersAddParams{Uris: v.uris}, VisitsAddParams{Ip: v.visitor, DayID: v.day}
	for _, uri := range v.uris {
		sum.Pvs, sum.Uvs = append(sum.Pvs, numberOf(!found[uri].today)), append(sum.Uvs, numberOf(!found[uri].known))
		if !found[uri].today {
			days.Uris = append(days.Uris, uri)
		}
	}
	if len(days.Uris) > 0 {
		added, err := q.VisitsAdd(ctx, days)
		if err != nil {
			return a, err
		}
		s.asked.Add(int64(len(days.Uris)) - added) // conflicts
	}
	sums, err := q.CountersAdd(ctx, sum)
	newcomers := VisitorsAddParams{Ip: v.visitor}
	for _, sum := range sums {
		rank := found[sum.Uri].rank
		if !found[sum.Uri].known {
			rank = sum.Uv
			newcomers.Uris, newcomers.Ranks = append(newcomers.Uris, sum.Uri), append(newcomers.Ranks, rank)
		}
		v.put(&a, sum.Uri, visit.Counts{PV: sum.Pv, UV: sum.Uv, Rank: rank, Hot: sum.Hot})
	}
	if err != nil || len(newcomers.Uris) == 0 {
		return a, err
	}
	added, err := q.VisitorsAdd(ctx, newcomers)
	s.asked.Add(int64(len(newcomers.Uris)) - added) // conflicts
	return a, err
}

// find asks the tables about all keys, or about those that the filter is not sure to be new. Where
// the filter is believed, it is asked alone, and the tables for the ranks of those whom it knows,
// which decides nothing.
func (s *Store) find(ctx context.Context, q *Queries, v one) (map[string]state, error) {
	found, believed := map[string]state{}, s.way.believed
	ask, asked := KeysFindParams{Ip: v.visitor, DayID: v.day, Uris: v.uris}, int64(0)
	for _, uri := range v.uris {
		is := state{known: true, today: true}
		switch {
		case believed:
			is = state{known: !s.known.Add(visitorKey(v, uri)), today: !s.known.Add(dayKey(v, uri))}
		case s.known != nil:
			is = state{known: s.known.Has(visitorKey(v, uri)), today: s.known.Has(dayKey(v, uri))}
		}
		found[uri] = is
		ask.Visitors, ask.Days = append(ask.Visitors, is.known), append(ask.Days, is.today && !believed)
		asked += numberOf(is.known) + numberOf(is.today && !believed)
	}
	if asked == 0 {
		return found, nil
	}
	rows, err := q.KeysFind(ctx, ask)
	for _, row := range rows {
		is := state{known: row.Rank != 0, today: row.Today, rank: row.Rank}
		if believed {
			is.known, is.today = found[row.Uri].known, found[row.Uri].today
		}
		found[row.Uri] = is
	}
	if !believed {
		s.asked.Add(asked)
	}
	return found, err
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
