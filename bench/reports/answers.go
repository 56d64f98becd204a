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
)

// AnswerFigures are how long reports took while visits were counted.
type AnswerFigures struct {
	Reports []AnswerRow `json:"reports"`
	Visits  VisitWaits  `json:"visits"`
}

// AnswerRow is how long one report took.
type AnswerRow struct {
	Report string  `json:"report"`
	Runs   int     `json:"runs"`
	P50Ms  float64 `json:"p50Ms"`
	P99Ms  float64 `json:"p99Ms"`
	MaxMs  float64 `json:"maxMs"`
}

// VisitWaits is how long visits took that came at a steady rate, from when they were due.
type VisitWaits struct {
	Visits    int     `json:"visits"`
	PerSecond float64 `json:"perSecond"`
	P50Ms     float64 `json:"p50Ms"`
	P99Ms     float64 `json:"p99Ms"`
	MaxMs     float64 `json:"maxMs"`
}

// serving runs f on a service of its own process, with more flags than the usual ones.
func (r *asking) serving(ctx context.Context, f func(p *bench.Process) error, more ...string) (err error) {
	p, err := bench.Start(ctx, r.Footfall, func(addr, admin string) []string {
		return append([]string{"serve", "--addr", addr, "--admin-addr", admin, "--database-url", r.address, "--max-wait", "10s"}, more...)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	// Reading millions of visitors takes longer than anything else that is waited for.
	for range filterPatience {
		if err = p.Shows(ctx, bench.MetricFilterReady, 1); err == nil || ctx.Err() != nil {
			break
		}
		r.Progress("the service is still reading visitors into its filter")
	}
	if err != nil {
		return err
	}
	return f(p)
}

// filterPatience is how often the usual time is waited for the filter.
const filterPatience = 30

// askAs runs f with somebody who may read reports only.
func (r *asking) askAs(ctx context.Context, seed uint64, f func(a *asker) error) error {
	return r.asOwner(ctx, func(q owners) error {
		if err := q.AskAs(ctx); err != nil {
			return err
		}
		return f(&asker{world: r.world, q: q.Queries, random: rand.New(rand.NewPCG(r.Seed, seed))}) //nolint:gosec // to be repeated, not to be secret
	})
}

// distinctVisits are how many requests are prepared; they come again when they are used up.
const distinctVisits = 200_000

// longestLoad bounds a steady load.
const longestLoad = 30 * time.Minute

// steadyConnections are those over which steady visits come: so many that hardly any visit waits
// for an answer to another.
const steadyConnections = 512

var errEnough = errors.New("enough")

// whileCounting runs f while visits come at a steady rate, and tells how those fared that came
// until f returned.
func (r *asking) whileCounting(ctx context.Context, p *bench.Process, f func() error) (VisitWaits, error) {
	visits := r.Rate * int(longestLoad.Seconds())
	requests := r.visitsTo(p, min(distinctVisits, visits))
	s := &load.Steady{URL: p.URL, Requests: visits, PerSecond: float64(r.Rate), Connections: steadyConnections,
		Request: func(to []byte, n int) []byte { return append(to, requests[n%len(requests)]...) }}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sent := make(chan error, 1) // the result of the goroutine, which ends with ctx
	began := time.Now()
	go func() { sent <- s.Send(ctx) }()
	err := r.afterWarmUp(ctx, f)
	took := time.Since(began)
	cancel(errEnough)
	if sendErr := <-sent; !errors.Is(sendErr, errEnough) {
		return VisitWaits{}, errors.Join(sendErr, err)
	}
	return r.waitsOf(s.Waits, took), err
}

// visitsTo makes requests of visits.
func (r *asking) visitsTo(p *bench.Process, n int) [][]byte {
	random := rand.New(rand.NewPCG(r.Seed, uint64(time.Now().UnixNano()))) //nolint:gosec // new visitors each time
	requests := make([][]byte, n)
	for i := range requests {
		ip, uri := r.world.nextVisit(random)
		requests[i] = fmt.Appendf(nil, "GET /visit?app=%s&ip=%s&uri=http://%s HTTP/1.1\r\nHost: %s\r\n\r\n", r.world.app, ip, uri, load.HostOf(p.URL))
	}
	return requests
}

// afterWarmUp runs f when visits have come for a while.
func (r *asking) afterWarmUp(ctx context.Context, f func() error) error {
	if err := pause(ctx, r.warmUp()); err != nil {
		return err
	}
	return f()
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
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitsOf sums up the visits that were answered.
func (r *asking) waitsOf(waits []time.Duration, took time.Duration) VisitWaits {
	warm := r.Rate * int(r.warmUp().Seconds())
	waits = slices.DeleteFunc(slices.Clone(waits[min(warm, len(waits)):]), func(w time.Duration) bool { return w == 0 })
	slices.Sort(waits)
	if len(waits) == 0 {
		return VisitWaits{}
	}
	return VisitWaits{
		Visits: len(waits), PerSecond: float64(len(waits)) / (took - r.warmUp()).Seconds(),
		P50Ms: bench.Ms(bench.Percentile(waits, 50)), P99Ms: bench.Ms(bench.Percentile(waits, 99)), MaxMs: bench.Ms(waits[len(waits)-1]),
	}
}

// measureAnswers asks one report after the other while visits are counted.
func (r *asking) measureAnswers(ctx context.Context) error {
	return r.serving(ctx, func(p *bench.Process) error {
		all := slices.Concat(sqlQuestions(), httpQuestions(p.URL), pageQuestions(p.URL))
		took := make([][]time.Duration, len(all))
		waits, err := r.whileCounting(ctx, p, func() error {
			return r.askAs(ctx, 1, func(a *asker) error {
				for run := range r.Runs {
					if run%50 == 0 {
						r.Progress(fmt.Sprintf("%d of %d runs of %d reports", run, r.Runs, len(all)))
					}
					for i, q := range all {
						began := time.Now()
						if err := q.ask(ctx, a); err != nil {
							return fmt.Errorf("%s: %w", q.name, err)
						}
						took[i] = append(took[i], time.Since(began))
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		r.report.Answers = &AnswerFigures{Visits: waits}
		for i, q := range all {
			r.report.Answers.add(q.name, took[i])
		}
		return nil
	})
}

func (f *AnswerFigures) add(name string, took []time.Duration) {
	f.Reports = append(f.Reports, answerRow(name, took))
}

func answerRow(name string, took []time.Duration) AnswerRow {
	if len(took) == 0 {
		return AnswerRow{Report: name}
	}
	sorted := slices.Sorted(slices.Values(took))
	return AnswerRow{
		Report: name, Runs: len(took), P50Ms: bench.Ms(bench.Percentile(sorted, 50)), P99Ms: bench.Ms(bench.Percentile(sorted, 99)),
		MaxMs: bench.Ms(sorted[len(sorted)-1]),
	}
}
