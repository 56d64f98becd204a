// Package verify proves what was counted: it recomputes every promise from the rows, in one
// snapshot, while visits are counted.
package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"footfall/db"
)

// Options of Run.
type Options struct {
	App      string              // only this app; empty: all
	Sample   float64             // percent of the sites, each with all its pages; 0: all of them
	Seed     int64               // chooses another sample
	Limit    int                 // offenders named for each promise; 0: all
	Jobs     int                 // connections at work at once
	Progress func(Step)          // called with how far the proof is; may be nil. Never called by two goroutines at once
	Promised func(PromiseResult) // called for each promise once it is checked; may be nil, as Progress
}

// Step says how far a proof is.
type Step struct {
	Done, Whole int64 // rows, roughly
	Elapsed     time.Duration
}

// Proof is the result of Run.
type Proof struct {
	Promises   []PromiseResult `json:"promises"`
	Targets    int64           `json:"targets"`
	Visitors   int64           `json:"visitors"`        // including erased visitors
	Erased     int64           `json:"erased_visitors"` // visitors of whom only the rank is left
	Visits     int64           `json:"visits"`          // rows of visits
	Days       int64           `json:"days"`            // (target, day) pairs
	OlderDays  int64           `json:"older_days"`      // those of them whose rows of visits are not kept
	Unknown    int64           `json:"days_with_unknown"`
	Deleted    int64           `json:"apps_being_deleted"` // apps that are left out
	Violations int64           `json:"violations"`
	Seconds    float64         `json:"seconds"`
}

// PromiseResult says how a promise was kept.
type PromiseResult struct {
	Name       string     `json:"name"`
	Says       string     `json:"promise"`
	RestsOn    string     `json:"rests_on"`
	Checked    int64      `json:"checked"`
	Unit       string     `json:"unit"`
	Violations int64      `json:"violations"`
	Offenders  []Offender `json:"offenders"`
	Seconds    float64    `json:"seconds"` // from the start of the proof until it was known
}

// Offender is a target, or a day of a target, for which a promise is broken.
type Offender struct {
	App     string `json:"app"`
	Target  string `json:"target"`
	Day     int32  `json:"day,omitempty"`
	Problem string `json:"problem"`
}

const (
	rangeRows   = 1_500_000 // rows of a range of targets: few enough to be sorted in memory
	sortMemory  = "256MB"
	sampleParts = 1 << 20
	manyAtMost  = 100_000 // offenders of a measure that a query returns at most
)

// Run recomputes every promise on the tables in one snapshot, while visits are counted.
func Run(ctx context.Context, d *db.DB, o Options) (proof *Proof, err error) {
	if o.Sample == 0 {
		o.Sample = 100
	}
	if o.Limit == 0 {
		o.Limit = manyAtMost
	}
	v := &verifier{Options: o, began: time.Now(), results: map[string]result{}}
	err = d.InSnapshot(ctx, max(o.Jobs, 1), sortMemory, func(ctx context.Context, q []*db.Queries) error {
		if proof, err = v.run(ctx, q); err != nil {
			return err
		}
		return v.name(ctx, q[0], proof)
	})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return proof, nil
}

// verifier is one run.
type verifier struct {
	Options
	began   time.Time
	fromDay int32 // the first day of which any app keeps visits
	// Everything is checked, including rows of no page. While an app is being deleted, only the
	// targets of the others are.
	whole        bool
	beingDeleted int64 // apps

	mu      sync.Mutex        // guards what follows
	results map[string]result // of the measures, by name
	left    map[int]int       // pieces of work that are left of each pass
	done    int64
	all     int64
}

// result is what was found for a measure. The queries say what held, behind and broken are.
type result struct {
	held, behind, broken int64
	offenders            []offence
	known                time.Duration
}

// offence is a target with numbers that contradict each other, as the queries return them.
type offence struct{ target, day, previous, stored, least, most int64 }

const offenceNumbers = 6

func (v *verifier) run(ctx context.Context, q []*db.Queries) (*Proof, error) {
	pieces, err := v.plan(ctx, q[0])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	waiting := make(chan piece, len(pieces))
	for _, p := range pieces {
		waiting <- p
	}
	close(waiting)
	var workers sync.WaitGroup
	for _, mine := range q {
		workers.Go(func() {
			for p := range waiting {
				if ctx.Err() != nil {
					return
				}
				found, err := p.work(ctx, mine)
				if err != nil {
					cancel(err) // the others stop, too
					return
				}
				v.add(p, found)
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return v.proof(), nil
}

// add adds what a piece of work has found.
func (v *verifier) add(p piece, found []finding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	elapsed := time.Since(v.began)
	for _, f := range found {
		r := v.results[f.Measure]
		r.held, r.behind, r.broken = r.held+f.Held, r.behind+f.Behind, r.broken+f.Broken
		for numbers := range slices.Chunk(f.Offenders, offenceNumbers) {
			r.offenders = append(r.offenders, offence{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]})
		}
		slices.SortFunc(r.offenders, offence.compare)
		r.offenders = r.offenders[:min(len(r.offenders), v.Limit)]
		r.known = elapsed
		v.results[f.Measure] = r
	}
	v.done += p.weight
	if v.Progress != nil {
		v.Progress(Step{Done: v.done, Whole: v.all, Elapsed: elapsed})
	}
	if v.left[p.pass]--; v.left[p.pass] == 0 && v.Promised != nil {
		for _, promise := range promises {
			if slices.Contains(promise.passes, p.pass) && v.known(promise) {
				u := v.result(promise)
				u.Seconds = elapsed.Seconds()
				v.Promised(u)
			}
		}
	}
}

// known reports whether a promise is checked against all that it is about.
func (v *verifier) known(p promise) bool {
	return !slices.ContainsFunc(p.passes, func(pass int) bool { return v.left[pass] > 0 })
}

func (a offence) compare(b offence) int {
	return cmp.Or(cmp.Compare(a.target, b.target), cmp.Compare(a.day, b.day), cmp.Compare(a.previous, b.previous))
}

// proof puts together what was found.
func (v *verifier) proof() *Proof {
	p := &Proof{
		Targets: v.results["order"].held, Visitors: v.results["visitors"].behind, Erased: v.results["erased"].behind,
		Visits: v.results["rows pv"].behind, Days: v.results["told"].held, OlderDays: v.results["days before rows"].held,
		Unknown: v.results["days with unknown"].held, Deleted: v.beingDeleted, Seconds: time.Since(v.began).Seconds(),
	}
	for _, promise := range promises {
		u := v.result(promise)
		p.Violations += u.Violations
		p.Promises = append(p.Promises, u)
	}
	return p
}
