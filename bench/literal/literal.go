// Package literal counts visits without batches: each visit is a transaction, on tables with the uri in every key.
// It is the reference for Footfall, and is only used in benchmarks.
//
// Each Way uses as few statements as possible: every statement handles the page and the site. Baseline is exact. The
// naive ways are wrong under concurrency. If one visitor makes two first visits at once, both transactions find no row,
// and both increase uv and pv. One of the two ranks then never belongs to a visitor.
package literal

import (
	"context"
	_ "embed" // schema.sql
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"footfall/bench"
	"footfall/counter"
	"footfall/record/bloom"
	"footfall/visit"
)

//go:embed schema.sql
var schema string

// Way is how a Store counts a visit.
type Way struct {
	filterError float64 // error rate of a Bloom filter of all keys; 0: no filter
	conflicts   bool    // find out from conflicts of inserts which rows exist, without look-ups
}

// The ways of counting.
var (
	// Naive looks the visitor up, and then inserts missing rows.
	Naive = Way{}
	// NaiveFilter is Naive, but skips the lookup if a Bloom filter reports that the key is new.
	NaiveFilter = Way{filterError: 0.001}
	// Baseline inserts, and learns from conflicts which rows exist. It sends its transaction in one round trip.
	Baseline = Way{conflicts: true}
)

const (
	connections  = 16
	filterKeys   = 1024 // small, so that the filter grows: a filter that grows is full, so its error rate is at the limit
	filterMemory = 256 << 20
)

// Store counts visits of one day in its own database. It is safe for concurrent use.
type Store struct {
	day   int32
	pool  *pgxpool.Pool
	way   Way
	known *bloom.Filter // keys of committed transactions; nil without a filter
	asked atomic.Int64  // existence queries: keys looked up in visitors or visits to decide whether they are new
}

// Open creates the tables in the empty database at url.
func Open(ctx context.Context, url string, way Way, day int32) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("one visit per transaction: %w", err)
	}
	cfg.MaxConns, cfg.MinConns = connections, connections
	for name, value := range map[string]string{
		// A server configured for speed instead of durability would make the ways look better than they are.
		"synchronous_commit": "on",
		// Every statement finds its rows by key. Planning it each time would take longer than running it. Footfall's
		// own connections use the same settings.
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off",
	} {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	s := &Store{way: way, day: day}
	if way.filterError > 0 {
		if s.known, err = bloom.New(bloom.Config{Keys: filterKeys, Error: way.filterError, MaxBytes: filterMemory}); err != nil {
			return nil, fmt.Errorf("one visit per transaction: %w", err)
		}
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("one visit per transaction: %w", err)
	}
	if _, err := s.pool.Exec(ctx, schema); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("one visit per transaction: create the tables: %w", err)
	}
	return s, nil
}

// Close closes all connections. It waits until no connection is in use.
func (s *Store) Close() { s.pool.Close() }

// Figures returns the existence queries, under the name of the service's metric. An insert that conflicts with an
// existing row counts as an existence query. An insert of a new key does not.
func (s *Store) Figures() (bench.Figures, error) {
	return bench.Figures{bench.MetricAsked: float64(s.asked.Load())}, nil
}

// Visit counts one visit to a page and its site.
func (s *Store) Visit(ctx context.Context, r counter.Request) (a visit.Answer, err error) {
	target, err1 := visit.Normalize(r.URI, nil)
	visitor, err2 := netip.ParseAddr(r.IP)
	if err := errors.Join(err1, err2); err != nil {
		return a, err
	}
	count := s.countNaively
	if s.way.conflicts {
		count = s.countByConflict
	}
	counts := map[string]visit.Counts{}
	if err := count(ctx, one{[]string{target.Site, target.Page}, visitor, s.day}, counts); err != nil {
		return a, fmt.Errorf("count one visit: %w", err)
	}
	return visit.Answer{Site: counts[target.Site], Page: counts[target.Page]}, nil
}

// one is a visit to count.
type one struct {
	uris    []string // the site before its page: all visits lock rows in this order, so they cannot deadlock
	visitor netip.Addr
	day     int32
}

// countByConflict sends the whole transaction at once, and finds out from the inserts' conflicts which rows
// existed.
func (s *Store) countByConflict(ctx context.Context, v one, counts map[string]visit.Counts) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // closes the connection if an error left the transaction open
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	b.Queue(CountersHit, v.uris)
	b.Queue(VisitCount, v.visitor, v.day, v.uris).Query(func(rows pgx.Rows) error {
		judged, err := pgx.CollectRows(rows, pgx.RowToStructByPos[VisitCountRow])
		for _, j := range judged {
			s.asked.Add(numberOf(!j.FirstToday) + numberOf(!j.Newcomer)) // each conflict counts as an existence query
			counts[j.Uri] = visit.Counts{PV: j.Pv, UV: j.Uv, Rank: j.Rank, Hot: j.Hot}
		}
		return err
	})
	b.Queue("commit")
	return conn.SendBatch(ctx, &b).Close()
}

// state is the assumed state of the visitor at one target.
type state struct {
	known, today bool  // visited before, and on this day
	rank         int64 // 0: not found
}

// countNaively looks up each key in the tables or the filter, and inserts missing rows.
func (s *Store) countNaively(ctx context.Context, v one, counts map[string]visit.Counts) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		q := New(tx)
		found, err := s.find(ctx, q, v)
		if err != nil {
			return err
		}
		sum, days, newcomers := CountersAddParams{Uris: v.uris}, VisitsAddParams{Ip: v.visitor, DayID: v.day}, VisitorsAddParams{Ip: v.visitor}
		for _, uri := range v.uris {
			sum.Pvs, sum.Uvs = append(sum.Pvs, numberOf(!found[uri].today)), append(sum.Uvs, numberOf(!found[uri].known))
			if !found[uri].today {
				days.Uris = append(days.Uris, uri)
			}
		}
		if len(days.Uris) > 0 {
			added, err := q.VisitsAdd(ctx, days)
			if err != nil {
				return err
			}
			s.asked.Add(int64(len(days.Uris)) - added) // each conflict counts as an existence query
		}
		sums, err := q.CountersAdd(ctx, sum)
		for _, sum := range sums {
			rank := found[sum.Uri].rank
			if !found[sum.Uri].known {
				rank = sum.Uv
				newcomers.Uris, newcomers.Ranks = append(newcomers.Uris, sum.Uri), append(newcomers.Ranks, rank)
			}
			counts[sum.Uri] = visit.Counts{PV: sum.Pv, UV: sum.Uv, Rank: rank, Hot: sum.Hot}
		}
		if err != nil || len(newcomers.Uris) == 0 {
			return err
		}
		added, err := q.VisitorsAdd(ctx, newcomers)
		s.asked.Add(int64(len(newcomers.Uris)) - added) // each conflict counts as an existence query
		return err
	})
	if err == nil && s.known != nil {
		for _, uri := range v.uris { // after the commit, because a rolled-back visit must stay unknown
			s.known.Add(v.key(0, uri))
			s.known.Add(v.key(v.day, uri))
		}
	}
	return err
}

// find looks up all keys, or those that the filter does not report as new.
func (s *Store) find(ctx context.Context, q *Queries, v one) (map[string]state, error) {
	found := map[string]state{}
	ask, asked := KeysFindParams{Ip: v.visitor, DayID: v.day, Uris: v.uris}, int64(0)
	for _, uri := range v.uris {
		known := s.known == nil || s.known.Has(v.key(0, uri))
		today := s.known == nil || s.known.Has(v.key(v.day, uri))
		ask.Visitors, ask.Days = append(ask.Visitors, known), append(ask.Days, today)
		asked += numberOf(known) + numberOf(today)
	}
	if asked == 0 {
		return found, nil
	}
	rows, err := q.KeysFind(ctx, ask)
	for _, row := range rows {
		found[row.Uri] = state{known: row.Rank != 0, today: row.Today, rank: row.Rank}
	}
	s.asked.Add(asked)
	return found, err
}

// key returns the filter's key of a row: (ip, day_id, uri) for visits, or (uri, ip) with day 0 for visitors.
func (v one) key(day int32, uri string) bloom.Sum {
	key := make([]byte, 0, 128)
	address := v.visitor.As16()
	key = append(key, address[:]...)
	key = binary.LittleEndian.AppendUint32(key, uint32(day)) //nolint:gosec // only its bits matter
	return bloom.Bytes(append(key, uri...))
}

func numberOf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
