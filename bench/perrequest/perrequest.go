// Package perrequest counts visits as one would without batches: each visit is a transaction of its own, which looks the
// visitor up, then inserts. It is what Footfall is measured against, and nobody should use it.
//
// It is written as leanly as its way allows: the page and the site share every statement, at most four go between BEGIN and
// COMMIT, and targets are locked in one order. Under concurrency it is wrong all the same: two first visits of one visitor
// at once both find nobody, and both raise uv and pv. One of the two ranks then belongs to nobody, for ever.
package perrequest

import (
	"context"
	_ "embed" // schema.sql
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"footfall/visit"
)

//go:embed schema.sql
var schema string

const (
	connections     = 16
	deadlockTries   = 5
	deadlockFailure = "40P01"
)

// Store counts visits in a database of its own. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
}

// Open makes the tables in the empty database that url names.
func Open(ctx context.Context, url string) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("per-request baseline: %w", err)
	}
	cfg.MaxConns, cfg.MinConns = connections, connections
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("per-request baseline: %w", err)
	}
	if _, err := pool.Exec(ctx, schema); err != nil {
		pool.Close()
		return nil, fmt.Errorf("per-request baseline: make the tables: %w", err)
	}
	return &Store{pool}, nil
}

// Close closes every connection; it waits for those that are in use.
func (s *Store) Close() { s.pool.Close() }

// Visit counts one visit to a page and its site.
func (s *Store) Visit(ctx context.Context, t visit.Target, visitor netip.Addr, day int32) (visit.Answer, error) {
	for try := 1; ; try++ {
		var a visit.Answer
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			a, err = count(ctx, New(tx), t, visitor, day)
			return err
		})
		var told *pgconn.PgError
		if errors.As(err, &told) && told.Code == deadlockFailure && try < deadlockTries {
			continue
		}
		if err != nil {
			return visit.Answer{}, fmt.Errorf("count one visit: %w", err)
		}
		return a, nil
	}
}

// count is the transaction of one visit.
func count(ctx context.Context, q *Queries, t visit.Target, visitor netip.Addr, day int32) (visit.Answer, error) {
	uris := []string{t.Site, t.Page}
	slices.Sort(uris)
	found, err := q.VisitorFind(ctx, VisitorFindParams{Ip: visitor, DayID: day, Uris: uris})
	if err != nil {
		return visit.Answer{}, err
	}
	var today []string
	ranks := map[string]int64{}
	pvs, uvs := make([]int64, len(uris)), make([]int64, len(uris))
	for _, f := range found {
		at := slices.Index(uris, f.Uri)
		ranks[f.Uri] = f.Rank
		if !f.Today {
			today = append(today, f.Uri)
			pvs[at] = 1
		}
		if f.Rank == 0 {
			uvs[at] = 1
		}
	}
	if len(today) > 0 {
		slices.Sort(today)
		if err := q.VisitsAdd(ctx, VisitsAddParams{Ip: visitor, DayID: day, Uris: today}); err != nil {
			return visit.Answer{}, err
		}
	}
	sums, err := q.CountersAdd(ctx, CountersAddParams{Uris: uris, Pvs: pvs, Uvs: uvs})
	if err != nil {
		return visit.Answer{}, err
	}
	var a visit.Answer
	var newcomers VisitorsAddParams
	for _, sum := range sums {
		rank := ranks[sum.Uri]
		if rank == 0 {
			rank = sum.Uv
			newcomers.Uris, newcomers.Ranks = append(newcomers.Uris, sum.Uri), append(newcomers.Ranks, rank)
		}
		counts := visit.Counts{PV: sum.Pv, UV: sum.Uv, Rank: rank, Hot: sum.Hot}
		if sum.Uri == t.Site {
			a.Site = counts
		} else {
			a.Page = counts
		}
	}
	if len(newcomers.Uris) > 0 {
		newcomers.Ip = visitor
		if err := q.VisitorsAdd(ctx, newcomers); err != nil {
			return visit.Answer{}, err
		}
	}
	return a, nil
}

// Wrong tells what was counted wrongly: ranks that belong to nobody, and days that were counted twice.
func Wrong(ctx context.Context, conn *pgx.Conn) (ranks, days int64, err error) {
	losses, err := New(conn).Losses(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("per-request baseline: what was lost: %w", err)
	}
	return losses.Ranks, losses.Days, nil
}
