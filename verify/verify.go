// Package verify proves what was counted: it recomputes every promise from the rows, while visits
// are counted. It looks at the tables in many snapshots of a second or so, since an old one makes
// counting slow; each promise is about what one of them shows.
package verify

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
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
	Within   time.Duration       // how long a snapshot lasts, roughly; 0: a second
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
	sortMemory  = "256MB"
	sampleParts = 1 << 20
	manyAtMost  = 100_000 // offenders of a measure that a query returns at most
)

// Run recomputes every promise on the tables, while visits are counted.
func Run(ctx context.Context, d *db.DB, o Options) (*Proof, error) {
	if o.Sample == 0 {
		o.Sample = 100
	}
	o.Limit, o.Within = cmp.Or(o.Limit, manyAtMost), cmp.Or(o.Within, time.Second)
	v := &verifier{Options: o, began: time.Now(), results: map[string]result{},
		left: map[string]int{passTargets: 1, passSites: 1, passPeople: 1, passLines: 1}}
	targets, sites := v.overTargets(), &overSites{verifier: v}
	people := &overPeople{verifier: v, pace: newPace(firstRows * o.Within.Seconds()), after: VerifyNextPersonRow{ID: netip.IPv6Unspecified()}}
	lines := &overLines{verifier: v, pace: newPace(hoursAtOnce * o.Within.Seconds())}
	v.walks = []walk{{passTargets, targets.next}, {passSites, sites.next}, {passPeople, people.next}, {passLines, lines.next}}
	proof, err := v.run(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if o.App == "" && o.Sample == 100 && proof.Violations == 0 && proof.Targets > 0 {
		// The dashboard says when it was. Who may not write it down, or only reads a standby, has proved it all the same.
		_ = d.InTx(ctx, func(q *db.Queries) error { return q.ProofNote(ctx) })
	}
	return proof, nil
}

// verifier is one run.
type verifier struct {
	Options
	began time.Time

	mu           sync.Mutex        // guards what follows
	walks        []walk            // that have not come to their end
	sites        []int64           // met so far
	beingDeleted int64             // apps
	results      map[string]result // of the measures, by name
	left         map[string]int    // what is left of each pass: pieces that were handed out, and the walk itself
	done         int64
	all          int64
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

func (v *verifier) run(ctx context.Context, d *db.DB) (*Proof, error) {
	var snapshots []*db.Snapshots
	defer func() {
		for _, s := range snapshots {
			s.Close()
		}
	}()
	for range max(v.Jobs, 1) {
		s, err := d.OpenSnapshots(ctx, sortMemory)
		if err != nil {
			return nil, err
		}
		snapshots = append(snapshots, s)
	}
	if err := snapshots[0].Take(ctx, func(tx db.Tx) error {
		rows, err := New(tx).VerifyWeight(ctx, v.App)
		v.all = int64(v.Sample / 100 * float64(rows))
		return err
	}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	for _, mine := range snapshots {
		workers.Go(func() {
			for more := true; more && ctx.Err() == nil; {
				var err error
				if more, err = v.step(ctx, mine); err != nil {
					cancel(err) // the others stop, too
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	v.done = v.all
	v.tell()
	proof := v.proof()
	return proof, snapshots[0].Take(ctx, func(tx db.Tx) error { return v.name(ctx, New(tx), proof) })
}

// step checks the next piece, if there is one.
func (v *verifier) step(ctx context.Context, s *db.Snapshots) (more bool, err error) {
	err = s.Take(ctx, func(tx db.Tx) error {
		began, q := time.Now(), New(tx)
		p, err := v.next(ctx, q)
		if p == nil || err != nil {
			return err
		}
		more = true
		found, err := q.Prove(ctx, p.proofs)
		if err == nil {
			err = addWaiting(ctx, q, found)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.pass, err)
		}
		v.add(p, found, time.Since(began))
		return nil
	})
	return more, err
}

// add adds what a piece has found.
func (v *verifier) add(p *piece, found []ProveRow, took time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p.pace.took(p.size, took, v.Within)
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
	v.tell()
	v.passed(p.pass)
}

// tell tells how far the proof is. The caller holds v.mu.
func (v *verifier) tell() {
	if v.Progress != nil {
		v.Progress(Step{Done: min(v.done, v.all), Whole: v.all, Elapsed: time.Since(v.began)})
	}
}

// passed notes that a part of a pass is done, and tells of the promises that are known with it. The
// caller holds v.mu.
func (v *verifier) passed(pass string) {
	if v.left[pass]--; v.left[pass] > 0 {
		return
	}
	for _, promise := range promises {
		if promise.pass == pass && v.Promised != nil {
			u := v.result(promise)
			u.Seconds = time.Since(v.began).Seconds()
			v.Promised(u)
		}
	}
}

func (a offence) compare(b offence) int {
	return cmp.Or(cmp.Compare(a.target, b.target), cmp.Compare(a.day, b.day), cmp.Compare(a.previous, b.previous))
}

// proof puts together what was found.
func (v *verifier) proof() *Proof {
	p := &Proof{
		Targets: v.results["order"].held, Visitors: v.results["visitors"].behind, Erased: v.results["erased"].behind,
		Visits: v.results["rows pv"].behind, Days: v.results["new or returned"].held, OlderDays: v.results["days before rows"].held,
		Unknown: v.results["days with unknown"].held, Deleted: v.beingDeleted, Seconds: time.Since(v.began).Seconds(),
	}
	for _, promise := range promises {
		u := v.result(promise)
		p.Violations += u.Violations
		p.Promises = append(p.Promises, u)
	}
	return p
}
