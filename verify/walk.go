package verify

import (
	"context"
	"fmt"
	"math"
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

// pace is how much is taken on in one snapshot: as much as there is time for, going by the last one,
// but no less than the first, however slow everything is.
type pace struct{ first, size float64 }

func newPace(first float64) *pace {
	first = max(1, first)
	return &pace{first, first}
}

const (
	firstRows = 20_000 // a second: few enough for any server
	steepest  = 4      // how many times as much as before is taken on at most

	targetsAtOnce = 4000
)

// took learns how long a piece took.
func (p *pace) took(size float64, took, within time.Duration) {
	p.size = max(p.first, min(p.size*steepest, size*float64(within)/float64(max(took, 1))))
}

// overTargets walks over the targets asked for, in the order of their numbers.
type overTargets struct {
	*verifier
	pace    *pace
	from    int64  // the first number that has not been handed out to its end
	afterIP string // up to which address it has been
	ended   bool
}

// Addresses before and after those of all visitors.
const (
	beforeAll = "0.0.0.0/0"
	lastOfAll = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
)

func (v *verifier) overTargets() *overTargets {
	return &overTargets{verifier: v, pace: newPace(firstRows * v.Within.Seconds()), from: math.MinInt64, afterIP: beforeAll}
}

// targets are a range of targets, or a part of the visitors of one.
type targets struct {
	low, high        int64
	weight           int64
	whole            bool // everything in the range, including rows of no page
	listed           []int64
	sites            []int64 // of those listed
	fromDay          int32   // the first day of which any app keeps its visits
	part             bool    // only the visitors after one address up to another
	afterIP, untilIP string
}

// following returns the targets that come next, nil at the end. Each target is in one piece, unless
// inParts allows to divide the visitors of one that is too large.
func (w *overTargets) following(ctx context.Context, q *db.Queries, inParts bool) (*targets, error) {
	if w.ended {
		return nil, nil
	}
	scope, err := q.VerifyScope(ctx)
	if err != nil {
		return nil, err
	}
	w.beingDeleted = max(w.beingDeleted, scope.BeingDeleted)
	next, err := q.VerifyNext(ctx, db.VerifyNextParams{
		FromID: w.from, Size: int64(w.pace.size), Many: targetsAtOnce, App: w.App, Seed: w.Seed, Sampled: int32(math.Round(w.Sample / 100 * sampleParts)),
	})
	if err != nil {
		return nil, err
	}
	if next.Low != w.from { // which has been deleted meanwhile, if its visitors were not handed out to the last
		w.afterIP = beforeAll
	}
	if inParts && next.Visitors > 0 && (w.afterIP != beforeAll || next.Weight > int64(w.pace.size)) {
		t := &targets{low: next.Low, high: next.Low, listed: []int64{next.Low}, fromDay: scope.FromDay, part: true}
		return t, w.part(ctx, q, t, float64(next.Weight)/float64(next.Visitors))
	}
	t := &targets{
		low: w.from, high: next.High, weight: next.Weight, listed: next.Targets, sites: next.Sites, fromDay: scope.FromDay,
		whole: w.App == "" && w.Sample >= 100 && scope.BeingDeleted == 0,
	}
	if len(t.listed) == 0 {
		w.ended = true
		if !t.whole {
			return nil, nil
		}
		t.high = math.MaxInt64
	}
	w.from = t.high + 1
	return t, nil
}

// part makes t a part of the visitors of its target, each of whom stands for so many rows.
func (w *overTargets) part(ctx context.Context, q *db.Queries, t *targets, rows float64) error {
	visitors := max(1, w.pace.size/rows)
	until, err := q.VerifyNextVisitor(ctx, db.VerifyNextVisitorParams{Target: t.low, AfterIp: w.afterIP, Skip: int32(visitors - 1)})
	if err != nil {
		return err
	}
	t.weight = int64(visitors * rows)
	t.afterIP, t.untilIP = w.afterIP, until
	w.from, w.afterIP = t.low, until
	if until == "" {
		t.untilIP = lastOfAll
		w.from, w.afterIP = t.low+1, beforeAll
	}
	return nil
}
