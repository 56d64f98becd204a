// Package literal counts visits as one would without batches: each visit is a transaction of its
// own, on tables with the uri in every key. It is what Footfall is measured against, and nobody
// should use it.
//
// Each way is written as leanly as it allows: the page and the site share every statement. Baseline
// is exact. The naive ways are wrong under concurrency: two first visits of one visitor at once
// both find nobody, and both raise uv and pv. One of the two ranks then belongs to nobody, for
// ever. Believed is wrong besides about every new visitor whom the filter takes for a known one:
// they are lost.
package literal

import (
	"context"
	_ "embed" // schema.sql
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"footfall/record/bloom"
	"footfall/visit"
)

//go:embed schema.sql
var schema string

// Way is how a Store counts a visit.
type Way struct {
	filterError float64 // of a Bloom filter of all keys; 0: there is none
	believed    bool    // the filter alone says who is new
	conflicts   bool    // the conflicts of inserts say who is not
}

// The ways.
var (
	// Naive looks the visitor up, then inserts.
	Naive = Way{}
	// NaiveFilter is Naive, but what a Bloom filter calls surely new is not looked up.
	NaiveFilter = Way{filterError: 0.001}
	// Believed asks the filter alone who is new, and adds to it in the same moment. It looks up no
	// more than the rank of those who are known, to be answered; whoever is taken for known has
	// none. It is wrong so often that few visits show what is lost.
	Believed = Way{filterError: 0.01, believed: true}
	// Baseline inserts, and sees from the conflicts what was there. It sends its transaction in one
	// round trip.
	Baseline = Way{conflicts: true}
)

const (
	connections     = 16
	deadlockTries   = 5
	deadlockFailure = "40P01"

	filterKeys   = 1024 // at first: a filter that grows is full, and as often wrong as it may be
	filterMemory = 256 << 20
)

// Store counts visits in a database of its own. It is safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	way   Way
	known *bloom.Filter // keys whose transaction has committed; nil without one
	asked atomic.Int64
}

// Open makes the tables in the empty database that url names.
func Open(ctx context.Context, url string, way Way) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("one visit a transaction: %w", err)
	}
	cfg.MaxConns, cfg.MinConns = connections, connections
	for name, value := range map[string]string{
		// A server that is set to be faster than its disk would make the ways look better than they
		// are.
		"synchronous_commit": "on",
		// Every statement finds its rows by their keys, and need not be planned anew each time,
		// which would take longer than to run it. Footfall's own connections have these settings,
		// too.
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off",
	} {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	s := &Store{way: way}
	if way.filterError > 0 {
		if s.known, err = bloom.New(bloom.Config{Keys: filterKeys, Error: way.filterError, MaxBytes: filterMemory}); err != nil {
			return nil, fmt.Errorf("one visit a transaction: %w", err)
		}
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("one visit a transaction: %w", err)
	}
	if _, err := s.pool.Exec(ctx, schema); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("one visit a transaction: make the tables: %w", err)
	}
	return s, nil
}

// Close closes every connection; it waits for those that are in use.
func (s *Store) Close() { s.pool.Close() }

// Asked is how many existence queries there have been: keys looked up in visitors or visits to
// decide new or known. The conflict of an insert with a row that is there counts as one, an insert
// of a new key does not.
func (s *Store) Asked() int64 { return s.asked.Load() }

// FilterBytes is the memory of the filter; 0 without one.
func (s *Store) FilterBytes() int64 {
	if s.known == nil {
		return 0
	}
	return s.known.Stats().Bytes
}

// Visit counts one visit to a page and its site.
func (s *Store) Visit(ctx context.Context, t visit.Target, visitor netip.Addr, day int32) (visit.Answer, error) {
	one := one{target: t, visitor: visitor, day: day, uris: []string{t.Site, t.Page}}
	count := s.countNaively
	if s.way.conflicts {
		count = s.countByConflict
	}
	for try := 1; ; try++ {
		a, err := count(ctx, one)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == deadlockFailure && try < deadlockTries {
			continue
		}
		if err != nil {
			return visit.Answer{}, fmt.Errorf("count one visit: %w", err)
		}
		return a, nil
	}
}

// one is a visit that is to be counted.
type one struct {
	target  visit.Target
	uris    []string // the site before its page: the order of all locks
	visitor netip.Addr
	day     int32
}

// put sets the numbers of one of the two targets.
func (o *one) put(a *visit.Answer, uri string, counts visit.Counts) {
	if uri == o.target.Site {
		a.Site = counts
	} else {
		a.Page = counts
	}
}

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
