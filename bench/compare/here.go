package compare

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"footfall/bench"
	"footfall/bench/load"
	"footfall/counter"
	"footfall/visit"
)

// visitHere opens the contender in this process, sends it the visits, and closes it. It returns what
// judges the tables then.
func (c *comparison) visitHere(ctx context.Context, of contender, t task, in database, r *Turn) (func(standing) Errors, error) {
	sequence := t.sequence[:share(c.Options, of)]
	sent := newTraffic(sequence) // before the memory is looked at: it is not the contender's
	empty := bench.LiveHeap()
	open, err := of.open(ctx, in.address)
	if err != nil {
		return nil, err
	}
	defer open.close() // and with it the sessions, which only then say what they have written
	logged, err := c.server.WAL(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := sent.send(ctx, open, c.Clients); err != nil {
		return nil, err
	}
	took := time.Since(begin)
	figures, err := open.figures()
	if err != nil {
		return nil, err
	}
	r.Memory = float64(max(0, bench.LiveHeap()-empty))
	if runtime.GOOS == "linux" { // where a filter is mapped, and no part of the heap
		r.Memory += figures[bench.MetricFilterBytes]
	}
	r.answered(load.MeasureOf(sent.waits, took))
	return func(s standing) Errors { return judge(sequence, sent.answers, s) }, c.spent(ctx, logged, figures, r)
}

// traffic is a sequence as clients send it, and what they are answered.
type traffic struct {
	requests []counter.Request
	answers  []visit.Answer  // each is set by the one client that sent the visit, as waits
	waits    []time.Duration // until the answer
}

func newTraffic(sequence []load.Arrival) *traffic {
	t := &traffic{make([]counter.Request, len(sequence)), make([]visit.Answer, len(sequence)), make([]time.Duration, len(sequence))}
	for n, a := range sequence {
		t.requests[n] = counter.Request{App: load.App, URI: "http://" + load.PageURI(int(a.Page)), IP: load.Address(int(a.Visitor)).String()}
	}
	return t
}

// send sends every visit, as many at once as there are clients, each of whom takes the next one
// when the last is answered.
func (t *traffic) send(ctx context.Context, to counting, clients int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup // the clients, who end when no visit is left, or the first has failed
	for range clients {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(t.requests) && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				begin := time.Now()
				answer, err := to.visit(ctx, t.requests[n])
				if err != nil {
					cancel(fmt.Errorf("visit %d: %w", n, err))
				}
				t.waits[n], t.answers[n] = time.Since(begin), answer
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
