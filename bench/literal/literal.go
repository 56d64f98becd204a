// Package literal counts each visit in its own transaction, in simple tables whose keys all contain the uri. Benchmarks
// compare Footfall with this package.
//
// Each Way uses as few statements as possible, so every statement handles both the page and the site. Baseline is exact.
// The naive ways are wrong for concurrent visits: if a new visitor makes two visits at once, both transactions find no row
// for the visitor. Then both add to uv and pv, and one of the two assigned ranks belongs to no visitor.
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

// Way is a way in which a Store can count a visit.
type Way struct {
	filterError float64 // error rate of a Bloom filter with all keys; 0: no filter
	conflicts   bool    // insert without look-ups: a conflict means that the row exists
}

// The ways of counting that benchmarks compare with Footfall.
var (
	// Naive looks up the visitor, and then inserts missing rows.
	Naive = Way{}
	// NaiveFilter is like Naive, but skips the look-up if a Bloom filter reports that the key is new.
	NaiveFilter = Way{filterError: 0.001}
	// Baseline inserts without look-ups, and finds out from conflicts which rows exist. Its transaction needs one round
	// trip.
	Baseline = Way{conflicts: true}
)

const (
	connections  = 16
	filterKeys   = 1024 // small, so that the filter must grow and reaches its maximum error rate, as in practice
	filterMemory = 256 << 20
)

// Store counts visits in its own database, all on the same day. It is safe for concurrent use.
type Store struct {
	day   int32
	pool  *pgxpool.Pool
	way   Way
	known *bloom.Filter // filter with the keys of committed transactions; nil: way has no filter
	asked atomic.Int64  // number of keys that were looked up in visitors or visits, to find out whether they are new
}

// Open connects to an empty database and creates the tables in it.
func Open(ctx context.Context, url string, way Way, day int32) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("one visit per transaction: %w", err)
	}
	cfg.MaxConns, cfg.MinConns = connections, connections
	for name, value := range map[string]string{
		// On a server that is configured for less durability, this package would look too fast without this setting.
		"synchronous_commit": "on",
		// The server reuses the plan of each statement. Every statement finds its rows by key, so planning it each time would
		// take longer than running it. Footfall uses these settings for its own connections, too.
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

// Close waits until no connection is in use, and closes all connections.
func (s *Store) Close() { s.pool.Close() }

// Figures returns the number of keys that were looked up to find out whether they are new. Its name in the result is the
// name of the same metric of Footfall's service. An insert that conflicts with an existing row counts as a look-up. An
// insert of a new key does not.
func (s *Store) Figures() (bench.Figures, error) {
	return bench.Figures{bench.MetricAsked: float64(s.asked.Load())}, nil
}

// Visit counts one visit to a page, and to the site of the page.
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
	if err := count(ctx, singleVisit{[]string{target.Site, target.Page}, visitor, s.day}, counts); err != nil {
		return a, fmt.Errorf("count one visit: %w", err)
	}
	return visit.Answer{Site: counts[target.Site], Page: counts[target.Page]}, nil
}

// singleVisit is a single visit that is being counted.
type singleVisit struct {
	uris    []string // the site, then the page: all transactions lock rows in this order, so that they cannot deadlock
	visitor netip.Addr
	day     int32
}

// countByConflict counts a visit like Baseline: it sends the whole transaction at once, and finds out from conflicts which
// rows existed.
func (s *Store) countByConflict(ctx context.Context, v singleVisit, counts map[string]visit.Counts) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // if an error has left the transaction open, this closes the connection
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	b.Queue(CountersHit, v.uris)
	b.Queue(VisitCount, v.visitor, v.day, v.uris).Query(func(rows pgx.Rows) error {
		judged, err := pgx.CollectRows(rows, pgx.RowToStructByPos[VisitCountRow])
		for _, j := range judged {
			s.asked.Add(numberOf(!j.FirstToday) + numberOf(!j.Newcomer)) // each conflict counts as a look-up
			counts[j.Uri] = visit.Counts{PV: j.Pv, UV: j.Uv, Rank: j.Rank, Hot: j.Hot}
		}
		return err
	})
	b.Queue("commit")
	return conn.SendBatch(ctx, &b).Close()
}

// state is the result of find for one target (a page or a site).
type state struct {
	known, today bool  // known: the visitor has visited the target before; today: on this day
	rank         int64 // the visitor's rank; 0: the visitor was not found
}

// countNaively counts a visit like Naive or NaiveFilter: it looks up each key, and inserts missing rows.
func (s *Store) countNaively(ctx context.Context, v singleVisit, counts map[string]visit.Counts) error {
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
			s.asked.Add(int64(len(days.Uris)) - added) // each conflict counts as a look-up
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
		s.asked.Add(int64(len(newcomers.Uris)) - added) // each conflict counts as a look-up
		return err
	})
	if err == nil && s.known != nil {
		for _, uri := range v.uris { // after the commit, because a visit that was rolled back must later count as new
			s.known.Add(v.key(0, uri))
			s.known.Add(v.key(v.day, uri))
		}
	}
	return err
}

// find looks up all keys of a visit in the tables. If there is a filter, find skips keys that the filter reports as new.
func (s *Store) find(ctx context.Context, q *Queries, v singleVisit) (map[string]state, error) {
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

// key returns the key in the filter for a row of the table visits. With day 0, it returns the key for a row of the table
// visitors.
func (v singleVisit) key(day int32, uri string) bloom.Sum {
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
