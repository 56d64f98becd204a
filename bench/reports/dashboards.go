package reports

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"footfall/bench"
)

// DashboardFigures are how visits fared beside open dashboards, and without them.
type DashboardFigures struct {
	Dashboards int   `json:"dashboards"`
	Beside     Waits `json:"beside"`
	Alone      Waits `json:"alone"`
	Pages      Waits `json:"pages"`   // of the dashboards
	Refused    int   `json:"refused"` // of the pages, since the service was busy
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
	turns, turn := dashboardTurns, dashboardTurn
	if r.Quick {
		turns, turn = 1, time.Second
	}
	return r.serving(ctx, func(p *bench.Process) error {
		d := &dashboards{asking: r, process: p}
		var alone, beside []time.Duration
		for n := range 2 * turns {
			r.Progress(fmt.Sprintf("turn %d of %d beside %d dashboards and without", n/2+1, turns, openDashboards))
			waits, look := &alone, func() error { return pause(ctx, turn) }
			if n%4 == 1 || n%4 == 2 {
				waits, look = &beside, func() error { return d.open(ctx, turn) }
			}
			some, err := r.whileCounting(ctx, p, look)
			if err != nil {
				return err
			}
			*waits = append(*waits, some...)
		}
		r.report.Dashboards = &DashboardFigures{openDashboards, waitsOf(beside), waitsOf(alone), waitsOf(d.took), d.refused}
		return nil
	})
}

// dashboards are open on a service.
type dashboards struct {
	*asking
	process *bench.Process

	mu      sync.Mutex // guards what follows
	took    []time.Duration
	refused int
	err     error
}

// open keeps all open for a while. They have been opened one after the other, so that they do not
// all ask at once.
func (d *dashboards) open(ctx context.Context, long time.Duration) error {
	until, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	var all sync.WaitGroup // goroutines, which end with until, once their page is read
	for i := range openDashboards {
		all.Go(func() {
			page := fmt.Sprintf("%s/dash/%s/%s", d.process.URL, d.world.app, d.world.sites[i%len(d.world.sites)])
			for rest := min(refreshAfter, long) * time.Duration(i) / openDashboards; pause(until, rest) == nil; {
				began := time.Now()
				_, err := bench.Fetch(ctx, page) // to its end
				took := time.Since(began)
				d.asked(took, err)
				rest = max(refreshAfter, refreshRests*took)
			}
		})
	}
	all.Wait()
	return d.err
}

func (d *dashboards) asked(took time.Duration, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case errors.Is(err, bench.ErrBusy):
		d.refused++
	case err != nil:
		d.err = err
	default:
		d.took = append(d.took, took)
	}
}
