package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"footfall/bench"
	"footfall/bench/load"
	"footfall/db"
	"footfall/verify"
)

// ProvingFigures are how visits fared while all numbers were recomputed: once at a steady rate, and
// once as many as could be counted.
type ProvingFigures struct {
	Visits        VisitWaits `json:"visits"` // none was refused
	SteadySeconds float64    `json:"steadySeconds"`
	FloodSeconds  float64    `json:"floodSeconds"`
	EachSeconds   float64    `json:"eachSeconds"` // how long each of the rates was measured
	Rates         []float64  `json:"rates"`       // visits a second, one after the other
}

// measureProving proves all numbers beside visits, twice. A visit that is refused is an error.
func (r *asking) measureProving(ctx context.Context) error {
	d, err := db.Open(ctx, r.address, db.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	var took float64
	prove := func() error {
		proof, err := verify.Run(ctx, d, verify.Options{Jobs: 2, Limit: 1})
		if err != nil {
			return err
		}
		if took = proof.Seconds; proof.Violations > 0 {
			return fmt.Errorf("%w: %d violations: see footfall verify", bench.ErrUntrue, proof.Violations)
		}
		return nil
	}
	return r.serving(ctx, func(p *bench.Process) error {
		f := &ProvingFigures{EachSeconds: r.warmUp().Seconds()}
		if f.Visits, err = r.whileCounting(ctx, p, prove); err != nil {
			return err
		}
		f.SteadySeconds = took
		if f.Rates, err = r.whileFlooded(ctx, p, func(*atomic.Int64) error { return prove() }); err != nil {
			return err
		}
		f.FloodSeconds = took
		r.report.Proving = f
		return nil
	})
}

// floodConnections keep the service as busy as it can be.
const floodConnections = 64

// whileFlooded runs f while each of many connections sends a visit as soon as the last one
// is answered, and returns the visits a second of each stretch as long as the warm-up,
// until f returned, which may look how many were answered.
func (r *asking) whileFlooded(ctx context.Context, p *bench.Process, f func(answered *atomic.Int64) error) (rates []float64, err error) {
	requests := r.visitsTo(p, distinctVisits)
	var answered atomic.Int64
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup // the connections' goroutines, who end with ctx
	for i := range floodConnections {
		all.Go(func() {
			if err := flood(ctx, p.URL, requests, i, &answered); err != nil {
				cancel(err)
			}
		})
	}
	proved := make(chan error, 1) // the result of f
	err = r.afterWarmUp(ctx, func() error {
		go func() { proved <- f(&answered) }()
		for {
			began, before := time.Now(), answered.Load()
			select {
			case err := <-proved:
				return err
			case <-ctx.Done():
				return errors.Join(context.Cause(ctx), <-proved)
			case <-time.After(r.warmUp()):
				rates = append(rates, float64(answered.Load()-before)/time.Since(began).Seconds())
			}
		}
	})
	cancel(errEnough)
	all.Wait()
	return rates, err
}

// flood sends every so many-th request, one after the other, until ctx ends. The number of requests
// is a multiple of that of connections.
func flood(ctx context.Context, url string, requests [][]byte, first int, answered *atomic.Int64) error {
	conn, err := load.Dial(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close()
	for n := first; ; n += floodConnections {
		status, err := conn.Exchange(requests[n%len(requests)])
		if ctx.Err() != nil {
			return nil
		}
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("it was answered %d", status)
		}
		if err != nil {
			return fmt.Errorf("visit %d: %w", n, err)
		}
		answered.Add(1)
	}
}

func (f *ProvingFigures) print(w io.Writer, rate int) {
	fmt.Fprintf(w, "\nwhile all was proved in %.0f s, %s visits/s were counted over HTTP (asked for: %s), none refused: these took p50 %s ms, p99 %s ms, at most %s ms\n",
		f.SteadySeconds, bench.Grouped(f.Visits.PerSecond), bench.Grouped(float64(rate)), bench.Millis(f.Visits.P50Ms), bench.Millis(f.Visits.P99Ms), bench.Millis(f.Visits.MaxMs))
	if len(f.Rates) == 0 {
		return
	}
	ends := max(1, min(len(f.Rates)/3, int(time.Minute.Seconds()/f.EachSeconds))) // a minute, or a third of a shorter proof
	first, last := slices.Max(f.Rates[:ends]), slices.Max(f.Rates[len(f.Rates)-ends:])
	fmt.Fprintf(w, "as many as could be, while it was proved in %.0f s: in %.0f s at most %s visits/s in its first %.0f s, and %s in its last (× %.2f)\n",
		f.FloodSeconds, f.EachSeconds, bench.Grouped(first), float64(ends)*f.EachSeconds, bench.Grouped(last), last/first)
}
