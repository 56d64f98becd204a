package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"footfall/bench/tables"
	"footfall/counter"
)

// turn is one contender's turn at one workload.
type turn struct {
	contender contender
	workload  workload
	sequence  []arrival
	clients   int
	round     int
}

// play gives a contender its turn, on a database of its own that is dropped at the end.
func (s *server) play(ctx context.Context, t turn) (_ Run, err error) {
	address, drop, err := s.database(ctx, "compare")
	if err != nil {
		return Run{}, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if err := t.contender.prepare(ctx, address); err != nil {
		return Run{}, err
	}
	before, err := s.rowsWritten(ctx, address)
	if err != nil {
		return Run{}, err
	}
	measured, err := s.measure(ctx, t, address)
	if err != nil {
		return Run{}, err
	}
	after, err := s.rowsWritten(ctx, address)
	if err != nil {
		return Run{}, err
	}
	measured.run.Written = float64(after-before) / float64(len(t.sequence))
	held, err := t.contender.read(ctx, address)
	if err != nil {
		return Run{}, err
	}
	v := judge(t.sequence, measured.told, held)
	measured.run.Errors, measured.run.Fault = v.Errors, v.brokenBy(t.contender.ContenderAbout)
	return measured.run, nil
}

// measured is what was seen while a contender counted.
type measured struct {
	run  Run
	told []toldRanks // beside the sequence
}

// measure opens the contender, sends it the visits, and closes it.
func (s *server) measure(ctx context.Context, t turn, address string) (m measured, err error) {
	visits := float64(len(t.sequence))
	sent := newTraffic(t.sequence) // before the memory is looked at: it is not the contender's
	empty := heldHeap()
	c, err := t.contender.open(ctx, address)
	if err != nil {
		return m, err
	}
	closed := sync.OnceFunc(c.close)
	defer closed()
	q := tables.New(s.admin)
	logged, err := q.WALPosition(ctx)
	if err != nil {
		return m, fmt.Errorf("bench: %w", err)
	}
	begin := time.Now()
	if err := sent.send(ctx, c, t.clients); err != nil {
		return m, err
	}
	took := time.Since(begin)
	ended, err := q.WALPosition(ctx)
	if err != nil {
		return m, fmt.Errorf("bench: %w", err)
	}
	spent, err := c.spent()
	if err != nil {
		return m, err
	}
	heap := max(0, heldHeap()-empty)
	closed() // and with it the sessions, which tell what they have written
	slices.Sort(sent.waits)
	at := func(percent int) float64 { return ms(sent.waits[len(sent.waits)*percent/100]) }
	return measured{told: sent.told, run: Run{
		Contender: t.contender.Name, Workload: t.workload.name, Round: t.round, Visits: len(t.sequence),
		PerSecond: visits / took.Seconds(), P50Ms: at(50), P95Ms: at(95), P99Ms: at(99),
		Asked: spent.asked / visits, WAL: float64(ended-logged) / visits,
		Memory: heap + spent.outside, Helpers: spent.helpers,
	}}, nil
}

// traffic is a sequence as clients send it, and what they are answered.
type traffic struct {
	requests []counter.Request
	told     []toldRanks     // each is set by the one client that sent the visit, as waits
	waits    []time.Duration // until the answer
}

func newTraffic(sequence []arrival) *traffic {
	t := &traffic{
		requests: make([]counter.Request, len(sequence)), told: make([]toldRanks, len(sequence)), waits: make([]time.Duration, len(sequence)),
	}
	for n, a := range sequence {
		t.requests[n] = counter.Request{App: app, URI: "http://" + pageURI(int(a.page)), IP: addressOf(int(a.visitor)).String()}
	}
	return t
}

// send sends every visit, as many at once as there are clients, each of whom takes the next one when he is answered.
func (t *traffic) send(ctx context.Context, to counting, clients int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup // the clients, who end when no visit is left, or the first has failed
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= len(t.requests) {
					return
				}
				begin := time.Now()
				answer, err := to.visit(ctx, t.requests[n])
				if err != nil {
					cancel(fmt.Errorf("visit %d: %w", n, err))
				}
				t.waits[n], t.told[n] = time.Since(begin), ranksOf(answer)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// rowsWritten is how many rows have been written into the tables of a database that nobody is connected to any more: a session
// need not tell before it ends.
func (s *server) rowsWritten(ctx context.Context, address string) (int64, error) {
	named, err := url.Parse(address)
	if err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}
	err = waitUntil(ctx, "all sessions have ended", func() (bool, error) {
		sessions, err := tables.New(s.admin).Sessions(ctx, path.Base(named.Path))
		return sessions == 0, err
	})
	if err != nil {
		return 0, err
	}
	conn, err := connect(ctx, address)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := tables.New(conn).RowsWritten(ctx)
	if err != nil {
		return 0, fmt.Errorf("bench: count the rows written: %w", err)
	}
	return rows, nil
}

// heldHeap is the memory of what the program holds at the moment.
func heldHeap() int64 {
	runtime.GC()
	runtime.GC() // what the first one found to be finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a size
}

const (
	patience  = time.Minute // for what takes a moment
	lookAgain = 2 * time.Millisecond
)

// waitUntil returns when done says so, or fails.
func waitUntil(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("bench: waited in vain until %s: %w", what, context.Cause(ctx))
		}
	}
}
