// Package verify checks the counted numbers while visits are counted. It compares the tables with Footfall's promises about
// them (promises.go). It divides the tables into pieces, and checks each piece in its own snapshot. A snapshot lasts only
// about a second, because an old snapshot slows counting down.
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
	App      string              // name of the only app to check; "": all apps
	Sample   float64             // percentage of sites to check, each with all its pages; 0: all sites
	Seed     int64               // determines which sites are in the sample
	Limit    int                 // maximum offenders listed for each promise; 0: manyAtMost
	Jobs     int                 // number of parallel connections
	Within   time.Duration       // approximate duration of a snapshot; 0: one second
	Progress func(Step)          // called with the progress; may be nil; never called concurrently
	Promised func(PromiseResult) // called for each promise once it is checked; may be nil; never called concurrently
}

// Step is the progress of a run.
type Step struct {
	Done, Whole int64 // approximate numbers of checked rows and of all rows
	Elapsed     time.Duration
}

// Proof is the result of Run.
type Proof struct {
	Promises   []PromiseResult `json:"promises"`
	Targets    int64           `json:"targets"`
	Visitors   int64           `json:"visitors"`        // includes erased visitors
	Erased     int64           `json:"erased_visitors"` // visitors for whom only the rank is stored
	Visits     int64           `json:"visits"`          // number of visit rows
	Days       int64           `json:"days"`            // pairs of a page or site and a day on which it was visited
	OlderDays  int64           `json:"older_days"`      // those of these pairs whose visit rows are not kept
	Unknown    int64           `json:"days_with_unknown"`
	Deleted    int64           `json:"apps_being_deleted"` // number of apps that were left out because they are being deleted
	Violations int64           `json:"violations"`
	Seconds    float64         `json:"seconds"`
}

// PromiseResult is the result for one promise.
type PromiseResult struct {
	Name       string     `json:"name"`
	Says       string     `json:"promise"`
	RestsOn    string     `json:"rests_on"`
	Checked    int64      `json:"checked"`
	Unit       string     `json:"unit"`
	Violations int64      `json:"violations"`
	Offenders  []Offender `json:"offenders"`
	Seconds    float64    `json:"seconds"` // time from the start of the run to this result
}

// Offender is a page or site, or one of its days, that breaks a promise.
type Offender struct {
	App     string `json:"app"`
	Target  string `json:"target"`
	Day     int32  `json:"day,omitempty"`
	Problem string `json:"problem"`
}

const (
	sortMemory  = "256MB"
	sampleParts = 1 << 20
	manyAtMost  = 100_000 // maximum number of offenders that verify_targets.sql returns for a measure, and default of Options.Limit
)

// Run checks every promise against the tables while visits are counted.
func Run(ctx context.Context, d *db.DB, o Options) (*Proof, error) {
	if o.Sample == 0 {
		o.Sample = 100
	}
	o.Limit, o.Within = cmp.Or(o.Limit, manyAtMost), cmp.Or(o.Within, time.Second)
	v := &verifier{Options: o, began: time.Now(), results: map[string]result{},
		remaining: map[string]int{passTargets: 1, passSites: 1, passPeople: 1, passLines: 1}}
	targets, sites := v.targetWalk(), &siteWalk{verifier: v}
	people := &personWalk{verifier: v, pace: newPace(firstRows * o.Within.Seconds()), after: VerifyNextPersonRow{ID: netip.IPv6Unspecified()}}
	lines := &lineWalk{verifier: v, pace: newPace(hoursAtOnce * o.Within.Seconds())}
	v.walks = []walk{{passTargets, targets.next}, {passSites, sites.next}, {passPeople, people.next}, {passLines, lines.next}}
	proof, err := v.run(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if o.App == "" && o.Sample == 100 && proof.Violations == 0 && proof.Targets > 0 {
		// Store the time of the check, which the dashboard shows. Ignore a failure: the proof is valid even if this user may
		// not write to the database, or reads from a standby.
		_ = d.InTx(ctx, func(q *db.Queries) error { return q.ProofNote(ctx) })
	}
	return proof, nil
}

// verifier is the state of one run.
type verifier struct {
	Options
	began time.Time

	mu           sync.Mutex        // guards the following fields
	walks        []walk            // walks not finished yet
	sites        []int64           // sites found so far by targetWalk
	beingDeleted int64             // number of apps that are being deleted
	results      map[string]result // results by name of the measure
	remaining    map[string]int    // remaining parts of each pass: unfinished pieces, plus the walk itself
	done         int64
	all          int64
}

// result is the result of a measure. verify_targets.sql defines its numbers. The field compared is called held there.
type result struct {
	compared, behind, broken int64
	offenders                []offence
	known                    time.Duration
}

// offence has the numbers that the queries return for a page or site that breaks a promise. In some measures, target is
// instead the negated id of an app.
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
					cancel(err) // also stops the other workers
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	v.done = v.all
	v.reportProgress()
	proof := v.proof()
	return proof, snapshots[0].Take(ctx, func(tx db.Tx) error { return v.addOffenders(ctx, New(tx), proof) })
}

// step chooses and checks the next piece. more is false if no piece is left.
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

// add records the results of a piece.
func (v *verifier) add(p *piece, found []ProveRow, took time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p.pace.took(p.size, took, v.Within)
	elapsed := time.Since(v.began)
	for _, f := range found {
		r := v.results[f.Measure]
		r.compared, r.behind, r.broken = r.compared+f.Held, r.behind+f.Behind, r.broken+f.Broken
		for numbers := range slices.Chunk(f.Offenders, offenceNumbers) {
			r.offenders = append(r.offenders, offence{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]})
		}
		slices.SortFunc(r.offenders, offence.compare)
		r.offenders = r.offenders[:min(len(r.offenders), v.Limit)]
		r.known = elapsed
		v.results[f.Measure] = r
	}
	v.done += p.weight
	v.reportProgress()
	v.finishPart(p.pass)
}

// reportProgress passes the progress to the function Progress. The caller holds v.mu, unless no other goroutine runs.
func (v *verifier) reportProgress() {
	if v.Progress != nil {
		v.Progress(Step{Done: min(v.done, v.all), Whole: v.all, Elapsed: time.Since(v.began)})
	}
}

// finishPart records that a part of a pass is finished. After the last part, it reports the results of the promises of this
// pass. The caller holds v.mu.
func (v *verifier) finishPart(pass string) {
	if v.remaining[pass]--; v.remaining[pass] > 0 {
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

func (v *verifier) proof() *Proof {
	p := &Proof{
		Targets: v.results["order"].compared, Visitors: v.results["visitors"].behind, Erased: v.results["erased"].behind,
		Visits: v.results["rows pv"].behind, Days: v.results["new or returned"].compared, OlderDays: v.results["days before rows"].compared,
		Unknown: v.results["days with unknown"].compared, Deleted: v.beingDeleted, Seconds: time.Since(v.began).Seconds(),
	}
	for _, promise := range promises {
		u := v.result(promise)
		p.Violations += u.Violations
		p.Promises = append(p.Promises, u)
	}
	return p
}
