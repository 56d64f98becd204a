package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"footfall/bench"
)

// DashboardFigures are how visits fared beside open dashboards.
type DashboardFigures struct {
	Dashboards int       `json:"dashboards"`
	Turns      int       `json:"turns"`
	Without    []float64 `json:"without"` // visits a second, of each turn
	With       []float64 `json:"with"`
	Pages      AnswerRow `json:"pages"`   // how long the pages took beside that
	Refused    int       `json:"refused"` // of the pages, since the service was busy
}

const (
	openDashboards = 20
	dashboardTurns = 30              // each as long as a dashboard rests: it is read once in each
	refreshAfter   = 5 * time.Second // as web/dash.js does
	refreshRests   = 50              // times as long as it took
)

// measureDashboards counts as many visits as can be, in turns with 20 dashboards that are open and
// without them. Each shows the last 30 days of a site. Every other turn begins with them, so that
// what gets slower or faster in the meantime is on both sides.
func (r *asking) measureDashboards(ctx context.Context) error {
	turns := dashboardTurns
	if r.Quick {
		turns = 1
	}
	return r.serving(ctx, func(p *bench.Process) error {
		f := &DashboardFigures{Dashboards: openDashboards, Turns: turns}
		_, err := r.whileFlooded(ctx, p, func(answered *atomic.Int64) error {
			var took []time.Duration
			refused := 0
			for turn := range turns {
				r.Progress(fmt.Sprintf("%d of %d turns beside %d dashboards", turn, turns, openDashboards))
				for half := range 2 {
					if (turn+half)%2 == 0 {
						rate, err := r.rateOver(ctx, refreshAfter, answered)
						if err != nil {
							return err
						}
						f.Without = append(f.Without, rate)
						continue
					}
					rate, some, none, err := r.rateBeside(ctx, p, refreshAfter, answered)
					if err != nil {
						return err
					}
					f.With, took, refused = append(f.With, rate), append(took, some...), refused+none
				}
			}
			f.Pages = answerRow("a site's page of 30 days", took)
			f.Refused = refused
			return nil
		})
		r.report.Dashboards = f
		return err
	})
}

// rateOver is how many visits a second are answered for a while.
func (r *asking) rateOver(ctx context.Context, long time.Duration, answered *atomic.Int64) (float64, error) {
	began, before := time.Now(), answered.Load()
	err := pause(ctx, long)
	return float64(answered.Load()-before) / time.Since(began).Seconds(), err
}

// rateBeside is the same while dashboards are open, how long their pages took, and how many of
// these were refused. They have been opened one after the other, so that they do not all ask at
// once.
func (r *asking) rateBeside(ctx context.Context, p *bench.Process, long time.Duration, answered *atomic.Int64) (rate float64, took []time.Duration, refused int, err error) {
	until, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup // the goroutines of dashboards, which end with until
	var lock sync.Mutex     // over took, refused and err
	for i := range openDashboards {
		page := fmt.Sprintf("%s/dash/%s/%s", p.URL, r.world.app, r.world.sites[i%len(r.world.sites)])
		open.Go(func() {
			for rest := refreshAfter * time.Duration(i) / openDashboards; pause(until, rest) == nil; {
				began := time.Now()
				_, broken := bench.Fetch(until, page)
				if until.Err() != nil {
					return
				}
				rest = max(refreshAfter, refreshRests*time.Since(began))
				lock.Lock()
				switch {
				case errors.Is(broken, bench.ErrBusy):
					refused++
				case broken != nil:
					err = broken
				default:
					took = append(took, time.Since(began))
				}
				lock.Unlock()
			}
		})
	}
	rate, waited := r.rateOver(ctx, long, answered)
	cancel()
	open.Wait()
	if err == nil {
		err = waited
	}
	return rate, took, refused, err
}

func (f *DashboardFigures) print(w io.Writer) {
	ratios := make([]float64, len(f.With))
	for i := range ratios {
		ratios[i] = f.With[i] / f.Without[i]
	}
	slices.Sort(ratios)
	middle := bench.SpreadOf(ratios[len(ratios)/4 : len(ratios)-len(ratios)/4])
	ratio, with, without := bench.SpreadOf(ratios), bench.SpreadOf(f.With), bench.SpreadOf(f.Without)
	fmt.Fprintf(w, "\nbeside %d open dashboards, in %d turns: %s visits/s (%s to %s), without %s (%s to %s); × %.2f (half of the turns %.2f to %.2f, all %.2f to %.2f)\n", f.Dashboards, f.Turns,
		bench.Grouped(with.Median), bench.Grouped(with.Min), bench.Grouped(with.Max), bench.Grouped(without.Median), bench.Grouped(without.Min), bench.Grouped(without.Max),
		ratio.Median, middle.Min, middle.Max, ratio.Min, ratio.Max)
	fmt.Fprintf(w, "  their pages took p50 %s ms, p99 %s ms, at most %s ms (%d of them; %d more were refused)\n", bench.Millis(f.Pages.P50Ms), bench.Millis(f.Pages.P99Ms), bench.Millis(f.Pages.MaxMs), f.Pages.Runs, f.Refused)
}
