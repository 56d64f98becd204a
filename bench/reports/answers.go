package reports

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync"
	"time"

	"footfall/bench"
	"footfall/bench/load"
	"footfall/bench/tables"
	"footfall/pause"
)

// compareUniques asks for the uniques of targets in ranges of days at random, and counts them in
// the plainest way.
func (r *asking) compareUniques(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 2)) //nolint:gosec // to be repeated, not to be secret
	var asked, counted []time.Duration
	err := bench.Ask(ctx, r.address, func(q *tables.Queries) error {
		for n := range r.Samples {
			target := r.world.randomPage(random)
			switch {
			case n%25 == 0:
				target = r.world.sites[random.IntN(len(r.world.sites))]
			case n%2 == 0: // as many that are hardly ever visited
				target = r.world.targets[random.IntN(len(r.world.targets))]
			}
			from, to := r.world.anyDays(random)
			began := time.Now()
			got, err := q.ReportUniques(ctx, tables.ReportUniquesParams{App: r.made.App, Target: target.Uri, FromDay: from, ToDay: to})
			if err != nil {
				return err
			}
			answered := time.Now()
			truth, err := q.UniquesCounted(ctx, tables.UniquesCountedParams{PageID: target.ID, FromDay: from, ToDay: to})
			if err != nil {
				return err
			}
			asked, counted = append(asked, answered.Sub(began)), append(counted, time.Since(answered))
			if got.Uniques != truth || !got.Exact {
				r.report.Wrong = append(r.report.Wrong, fmt.Sprintf("%s from %d to %d: %d uniques (exact: %t), and there were %d", target.Uri, from, to, got.Uniques, got.Exact, truth))
			}
		}
		return nil
	})
	r.report.add("uniques of a range at random", load.MeasureOf(asked, 0))
	r.report.add("the same by count(DISTINCT ip)", load.MeasureOf(counted, 0))
	r.report.note("%d ranges at random compared with count(DISTINCT ip): %d differ", r.Samples, len(r.report.Wrong))
	return err
}

// serving runs f on a service of its own process.
func (r *asking) serving(ctx context.Context, f func(p *bench.Process) error) (err error) {
	p, err := bench.Start(ctx, r.Footfall, func(addr, admin string) []string {
		return append([]string{"serve", "--addr", addr, "--admin-addr", admin, "--database-url", r.address, "--max-wait", "10s"}, r.secret...)
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
	distinctVisits = 200_000          // requests that are prepared; they come again when they are used up
	longestLoad    = 30 * time.Minute // bounds a steady load

	steadyConnections = 512 // so many that hardly any visit waits for an answer to another
)

var errEnough = errors.New("enough")

// whileCounting runs f while visits come at a steady rate, and returns how those fared that came
// meanwhile, and how long that was.
func (r *asking) whileCounting(ctx context.Context, p *bench.Process, f func() error) (waits []time.Duration, took time.Duration, err error) {
	random := rand.New(rand.NewPCG(r.Seed, uint64(time.Now().UnixNano()))) //nolint:gosec // new visitors each time
	requests := make([][]byte, distinctVisits)
	for i := range requests {
		ip, uri := r.world.nextVisit(random)
		requests[i] = fmt.Appendf(nil, "GET /visit?app=%s&ip=%s&uri=http://%s&referrer=https://from-%d.example/ HTTP/1.1\r\nHost: %s\r\n\r\n", r.made.App, ip, uri, i%100, load.HostOf(p.URL))
	}
	s := &load.Steady{URL: p.URL, Requests: r.Rate * int(longestLoad.Seconds()), PerSecond: float64(r.Rate), Connections: steadyConnections,
		Request: func(to []byte, n int) []byte { return append(to, requests[n%len(requests)]...) }}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sent := make(chan error, 1) // the result of the goroutine, which ends with ctx
	go func() { sent <- s.Send(ctx) }()
	// Visits come for a while before they, and what is asked beside them, are measured.
	warmUp := bench.Usual(r.Options.Options, 0, 3*time.Second, time.Second)
	if err = pause.For(ctx, warmUp); err == nil {
		began := time.Now()
		err = f()
		took = time.Since(began)
	}
	cancel(errEnough)
	if failed := <-sent; !errors.Is(failed, errEnough) {
		return nil, 0, errors.Join(failed, err)
	}
	waits = s.Waits[r.Rate*int(warmUp.Seconds()):]
	return slices.DeleteFunc(waits, func(w time.Duration) bool { return w == 0 }), took, err
}

// beside is whileCounting on a service of its own, summed up.
func (r *asking) beside(ctx context.Context, what string, f func(p *bench.Process) error) error {
	return r.serving(ctx, func(p *bench.Process) error {
		waits, took, err := r.whileCounting(ctx, p, func() error { return f(p) })
		r.report.add("visits beside "+what, load.MeasureOf(waits, took))
		return err
	})
}

// measureAnswers asks one report after the other while visits are counted, as one client that keeps
// its connection.
func (r *asking) measureAnswers(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 1)) //nolint:gosec // to be repeated, not to be secret
	took := make([][]time.Duration, len(questions))
	err := r.beside(ctx, "reports", func(p *bench.Process) error {
		for run := range r.Runs {
			if run%50 == 0 {
				r.Doing("%d of %d runs of %d reports", run, r.Runs, len(questions))
			}
			for i, q := range questions {
				began := time.Now()
				if _, err := bench.Fetch(ctx, p.URL+r.drawn(random, q)); err != nil {
					return fmt.Errorf("%s: %w", q, err)
				}
				took[i] = append(took[i], time.Since(began))
			}
		}
		return nil
	})
	for i, q := range questions {
		r.report.add(q, load.MeasureOf(took[i], 0))
	}
	return err
}

// measureVerify proves all numbers beside visits.
func (r *asking) measureVerify(ctx context.Context) error {
	return r.beside(ctx, "verify", func(*bench.Process) error {
		began := time.Now()
		out, err := exec.CommandContext(ctx, r.Footfall, "verify", "--database-url", r.address).CombinedOutput() //nolint:gosec // the program that is measured
		if err != nil {
			r.report.Wrong = append(r.report.Wrong, fmt.Sprintf("verify: %s: %s", err.Error(), out))
		}
		r.report.note("all was verified in %.0f s", time.Since(began).Seconds())
		return ctx.Err()
	})
}

const (
	openDashboards = 20
	dashboardTurns = 6
	dashboardTurn  = 10 * time.Second
	refreshAfter   = 5 * time.Second // as web/dash.js does
	refreshRests   = 50              // times as long as it took
)

// measureDashboards counts visits in turns with 20 dashboards that are open and without them. Each
// shows the last 30 days of a site. Every other turn begins with them, so that what gets slower or
// faster in the meantime is on both sides.
func (r *asking) measureDashboards(ctx context.Context) error {
	turns := bench.Usual(r.Options.Options, 0, dashboardTurns, 1)
	turn := bench.Usual(r.Options.Options, 0, dashboardTurn, time.Second)
	var alone, beside, took []time.Duration
	err := r.serving(ctx, func(p *bench.Process) error {
		for n := range 2 * turns {
			r.Doing("turn %d of %d beside %d dashboards and without", n/2+1, turns, openDashboards)
			waits, look := &alone, func() error { return pause.For(ctx, turn) }
			if n%4 == 1 || n%4 == 2 {
				waits, look = &beside, func() error {
					some, err := r.look(ctx, p, turn)
					took = append(took, some...)
					return err
				}
			}
			some, _, err := r.whileCounting(ctx, p, look)
			if err != nil {
				return err
			}
			*waits = append(*waits, some...)
		}
		return nil
	})
	r.report.add(fmt.Sprintf("visits beside %d open dashboards", openDashboards), load.MeasureOf(beside, 0))
	r.report.add("visits without", load.MeasureOf(alone, 0))
	r.report.add("their pages, of a site and 30 days", load.MeasureOf(took, 0))
	return err
}

// look keeps all dashboards open for a while, and returns how long their pages took. They have been
// opened one after the other, so that they do not all ask at once.
func (r *asking) look(ctx context.Context, p *bench.Process, long time.Duration) (took []time.Duration, err error) {
	until, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	var mu sync.Mutex // guards took and err
	refused := 0
	var all sync.WaitGroup // goroutines, which end with until, once their page is read
	for i := range openDashboards {
		all.Go(func() {
			page := fmt.Sprintf("%s/dash/%s/%s", p.URL, r.made.App, r.world.sites[i%len(r.world.sites)].Uri)
			for rest := min(refreshAfter, long) * time.Duration(i) / openDashboards; pause.For(until, rest) == nil; {
				began := time.Now()
				_, failed := bench.Fetch(ctx, page) // to its end
				passed := time.Since(began)
				rest = max(refreshAfter, refreshRests*passed)
				mu.Lock()
				switch {
				case errors.Is(failed, bench.ErrBusy):
					refused++
				case failed != nil:
					err = failed
				default:
					took = append(took, passed)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if refused > 0 {
		r.report.note("%d pages of dashboards were refused, since the service was busy", refused)
	}
	return took, err
}
