package reports

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"footfall/bench"
	"footfall/bench/load"
	"footfall/db"
	"footfall/verify"
)

// Waits are how long some answers took. Those of visits are from when they were due.
type Waits struct {
	Count     int     `json:"count"`
	PerSecond float64 `json:"perSecond,omitempty"` // of visits
	P50Ms     float64 `json:"p50Ms"`
	P99Ms     float64 `json:"p99Ms"`
	MaxMs     float64 `json:"maxMs"`
}

func waitsOf(waits []time.Duration) Waits {
	sorted := slices.Sorted(slices.Values(waits))
	return Waits{
		Count: len(sorted), P50Ms: bench.Ms(bench.Percentile(sorted, 50)), P99Ms: bench.Ms(bench.Percentile(sorted, 99)),
		MaxMs: bench.Ms(bench.Percentile(sorted, 100)),
	}
}

func (w Waits) String() string {
	return fmt.Sprintf("p50 %s ms, p99 %s ms, at most %s ms", bench.Millis(w.P50Ms), bench.Millis(w.P99Ms), bench.Millis(w.MaxMs))
}

// AnswerFigures are how long reports took while visits were counted.
type AnswerFigures struct {
	Reports []AnswerRow `json:"reports"`
	Visits  Waits       `json:"visits"`
}

// AnswerRow is how long one report took.
type AnswerRow struct {
	Report string `json:"report"`
	Waits
}

// VerifyFigures are how visits fared while all numbers were recomputed. None was refused: that
// would have been an error.
type VerifyFigures struct {
	Visits     Waits   `json:"visits"`
	Seconds    float64 `json:"seconds"`
	Violations int64   `json:"violations"`
}

// serving runs f on a service of its own process.
func (r *asking) serving(ctx context.Context, f func(p *bench.Process) error) (err error) {
	p, err := bench.Start(ctx, r.Footfall, func(addr, admin string) []string {
		return []string{"serve", "--addr", addr, "--admin-addr", admin, "--database-url", r.address, "--max-wait", "10s"}
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := p.Shows(ctx, bench.MetricFilterReady, 1); err != nil {
		return err
	}
	return f(p)
}

const (
	distinctVisits    = 200_000          // requests that are prepared; they come again when they are used up
	longestLoad       = 30 * time.Minute // bounds a steady load
	steadyConnections = 512              // so many that hardly any visit waits for an answer to another
)

var errEnough = errors.New("enough")

// whileCounting runs f while visits come at a steady rate, and returns how those fared that came
// meanwhile.
func (r *asking) whileCounting(ctx context.Context, p *bench.Process, f func() error) (waits []time.Duration, err error) {
	random := rand.New(rand.NewPCG(r.Seed, uint64(time.Now().UnixNano()))) //nolint:gosec // new visitors each time
	requests := make([][]byte, distinctVisits)
	for i := range requests {
		ip, uri := r.world.nextVisit(random)
		requests[i] = fmt.Appendf(nil, "GET /visit?app=%s&ip=%s&uri=http://%s HTTP/1.1\r\nHost: %s\r\n\r\n", r.world.app, ip, uri, load.HostOf(p.URL))
	}
	s := &load.Steady{URL: p.URL, Requests: r.Rate * int(longestLoad.Seconds()), PerSecond: float64(r.Rate), Connections: steadyConnections,
		Request: func(to []byte, n int) []byte { return append(to, requests[n%len(requests)]...) }}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sent := make(chan error, 1) // the result of the goroutine, which ends with ctx
	go func() { sent <- s.Send(ctx) }()
	if err = pause(ctx, r.warmUp()); err == nil {
		err = f()
	}
	cancel(errEnough)
	if failed := <-sent; !errors.Is(failed, errEnough) {
		return nil, errors.Join(failed, err)
	}
	warm := r.Rate * int(r.warmUp().Seconds())
	return slices.DeleteFunc(s.Waits[warm:], func(w time.Duration) bool { return w == 0 }), err
}

// counting is whileCounting summed up.
func (r *asking) counting(ctx context.Context, p *bench.Process, f func() error) (Waits, error) {
	var took time.Duration
	waits, err := r.whileCounting(ctx, p, func() error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		return f()
	})
	w := waitsOf(waits)
	w.PerSecond = bench.Ratio(float64(w.Count), took.Seconds())
	return w, err
}

// warmUp is how long visits have come before they, and what is asked beside them, are measured.
func (r *asking) warmUp() time.Duration {
	if r.Quick {
		return time.Second
	}
	return 3 * time.Second
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// measureAnswers asks one report after the other while visits are counted, as one client that keeps
// its connection.
func (r *asking) measureAnswers(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 1)) //nolint:gosec // to be repeated, not to be secret
	took := make([][]time.Duration, len(questions))
	return r.serving(ctx, func(p *bench.Process) error {
		waits, err := r.counting(ctx, p, func() error {
			for run := range r.Runs {
				if run%50 == 0 {
					r.Progress(fmt.Sprintf("%d of %d runs of %d reports", run, r.Runs, len(questions)))
				}
				for i, q := range questions {
					began := time.Now()
					if _, err := bench.Fetch(ctx, p.URL+r.world.draw(random, q)); err != nil {
						return fmt.Errorf("%s: %w", q, err)
					}
					took[i] = append(took[i], time.Since(began))
				}
			}
			return nil
		})
		r.report.Answers = &AnswerFigures{Visits: waits}
		for i, q := range questions {
			r.report.Answers.Reports = append(r.report.Answers.Reports, AnswerRow{q, waitsOf(took[i])})
		}
		return err
	})
}

// measureVerify proves all numbers beside visits.
func (r *asking) measureVerify(ctx context.Context) error {
	d, err := db.Open(ctx, r.address, db.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	f := &VerifyFigures{}
	r.report.Verify = f
	return r.serving(ctx, func(p *bench.Process) (err error) {
		f.Visits, err = r.counting(ctx, p, func() error {
			proof, err := verify.Run(ctx, d, verify.Options{Jobs: 2, Limit: 1})
			if err == nil {
				f.Seconds, f.Violations = proof.Seconds, proof.Violations
			}
			return err
		})
		return err
	})
}
