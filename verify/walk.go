package verify

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"footfall/db"
)

// piece is what is checked in one snapshot: the one in which it was chosen.
type piece struct {
	pass   string
	weight int64 // rows, roughly
	pace   *pace // by which it was chosen
	size   float64
	checks []check
}

// walk hands out the pieces of a pass one after the other, and nil when it has come to its end. The
// caller holds v.mu.
type walk struct {
	pass string
	next func(ctx context.Context, q *db.Queries) (*piece, error)
}

// next returns the next piece of any pass, nil when all have been handed out.
func (v *verifier) next(ctx context.Context, q *db.Queries) (*piece, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.walks) > 0 {
		p, err := v.walks[0].next(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("%s: choose what comes next: %w", v.walks[0].pass, err)
		}
		if p != nil {
			v.left[p.pass]++
			return p, nil
		}
		v.passed(v.walks[0].pass)
		v.walks = v.walks[1:]
	}
	return nil, nil
}

// pace is how much is taken on in one snapshot: as much as there is time for, going by the last
// one, but no less than the first, however slow everything is.
type pace struct{ first, size float64 }

func newPace(first float64) *pace {
	first = max(1, first)
	return &pace{first, first}
}

const (
	firstRows = 20_000 // a second: few enough for any server
	steepest  = 4      // how many times as much as before is taken on at most

	// About so many visits are hashed again for sketches: of a larger database each run makes some
	// sketches anew, the next one others.
	visitsSketched = 1_000_000

	rowsOfTarget = 10 // so many at least, of most: more targets than fit by that are not looked at
)

// took learns how long a piece took.
func (p *pace) took(size float64, took, within time.Duration) {
	p.size = max(p.first, min(p.size*steepest, size*float64(within)/float64(max(took, 1))))
}

// overTargets walks over the targets asked for, in the order of their numbers.
type overTargets struct {
	*verifier
	pace  *pace
	from  int64 // the first number that has not been handed out
	ended bool
	seed  int64 // chooses sketches, in each run others
}

func (v *verifier) overTargets() *overTargets {
	return &overTargets{verifier: v, pace: newPace(firstRows * v.Within.Seconds()), from: math.MinInt64, seed: rand.Int64()} //nolint:gosec // it is no secret
}

// targets are a range of targets.
type targets struct {
	low, high int64
	whole     bool // everything in the range, including rows of no page
	listed    []int64
	fromDay   int32 // the first day of which any app keeps its visits
	seed      int64 // chooses the sketches that are made anew
	sketched  int32 // how many, of sampleParts
}

// next returns the targets that come next, nil at the end. Each target is in one piece.
func (w *overTargets) next(ctx context.Context, q *db.Queries) (*piece, error) {
	if w.ended {
		return nil, nil
	}
	scope, err := q.VerifyScope(ctx)
	if err != nil {
		return nil, err
	}
	w.beingDeleted = max(w.beingDeleted, scope.BeingDeleted)
	next, err := q.VerifyNext(ctx, db.VerifyNextParams{
		FromID: w.from, Size: int64(w.pace.size), Many: int32(w.pace.size/rowsOfTarget) + 1, App: w.App, Seed: w.Seed, Sampled: int32(math.Round(w.Sample / 100 * sampleParts)),
	})
	if err != nil {
		return nil, err
	}
	t := &targets{
		low: w.from, high: next.High, listed: next.Targets, fromDay: scope.FromDay,
		seed: w.seed, sketched: int32(min(1, visitsSketched/float64(max(w.all, 1))) * sampleParts),
		whole: w.App == "" && w.Sample >= 100 && scope.BeingDeleted == 0,
	}
	if next.High == 0 {
		w.ended = true
		if !t.whole {
			return nil, nil
		}
		t.high = math.MaxInt64
	}
	w.from = t.high + 1
	w.sites = append(w.sites, next.Sites...)
	if t.whole {
		t.listed = nil // the range says it all
	}
	return &piece{
		pass: passTargets, weight: next.Weight, pace: w.pace, size: float64(next.Weight), checks: []check{t.totals, t.days, t.rows, t.sketches},
	}, nil
}
