package visit

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
)

// known is what an instance remembers of the tables, to save work. All of it was learned from batches that committed on its
// basis, or read after the basis was. Every batch that uses it says so, and the database refuses the batch where the basis
// is another one by then.
type known struct {
	basis   string
	targets *targetIDs
	memory  *memory // nil: none
	filter  *filter // nil: none
	forget  context.CancelFunc
}

// recognize sets what is known of an entry: the ids of its targets, and whether its visitor is counted at them on its day.
func (k *known) recognize(e *entry) {
	e.known, e.other = k, false
	e.site, e.page = subject{}, subject{}
	k.targets.find(e)
	k.remember(&e.site, e)
	k.remember(&e.page, e)
}

func (k *known) remember(s *subject, e *entry) {
	if s.id == 0 || k.memory == nil {
		return
	}
	if m, ok := k.memory.get(pairOf(s.id, e.visitor)); ok && m.day >= e.day {
		s.settled, s.rank = true, m.rank
	}
}

// knowledge hands out what is known at present, and begins anew when that is dropped. Its methods may be called concurrently.
type knowledge struct {
	db      *db.DB
	log     *slog.Logger
	options Options
	metrics *metrics

	current atomic.Pointer[known] // nil: nothing is known; set under making
	making  sync.Mutex            // held while the next is made, or the current one dropped
	made    int                   // how many have been; guarded by making

	ctx    context.Context // ends with cancel
	cancel context.CancelFunc
	warms  sync.WaitGroup // the goroutines that warm filters
}

func newKnowledge(d *db.DB, o Options, m *metrics) *knowledge {
	ctx, cancel := context.WithCancel(context.Background())
	k := &knowledge{db: d, log: o.Log, options: o, metrics: m, ctx: ctx, cancel: cancel}
	m.describe(k)
	return k
}

// close ends what runs in the background.
func (k *knowledge) close() {
	k.cancel()
	k.warms.Wait()
}

// get returns what is known. It asks the database only when that was dropped.
func (k *knowledge) get(ctx context.Context) (*known, error) {
	if now := k.current.Load(); now != nil {
		return now, nil
	}
	k.making.Lock()
	defer k.making.Unlock()
	if now := k.current.Load(); now != nil {
		return now, nil
	}
	basis, err := k.db.Basis(ctx)
	if err != nil {
		return nil, err
	}
	warming, forget := context.WithCancel(k.ctx)
	now := &known{basis: basis, targets: newTargetIDs(), memory: newMemory(k.options.Memory), filter: newFilter(k.options), forget: forget}
	k.made++
	if now.filter != nil {
		first := k.made == 1
		k.warms.Go(func() { k.warm(warming, now.filter, first) })
	}
	k.current.Store(now)
	return now, nil
}

// drop forgets what was known, if it still is what is known.
func (k *knowledge) drop(was *known) {
	k.making.Lock()
	defer k.making.Unlock()
	if was == nil || k.current.Load() != was {
		return
	}
	was.forget()
	k.current.Store(nil)
	k.metrics.dropped.Inc()
}

// Between two attempts to warm a filter, and before the first after a drop: one erasure is often followed by another, and a
// database that went away may go again.
const (
	warmPause    = time.Second
	warmAtLeast  = time.Minute
	warmAttempts = 6 // until warmAtLeast is reached
)

// warm fills a filter, however often that takes.
func (k *knowledge) warm(ctx context.Context, f *filter, first bool) {
	if !first {
		if !sleep(ctx, warmPause) {
			return
		}
		// The filter before lies outside the Go heap, whose growth alone would let it be given back: not two of them at once.
		runtime.GC()
	}
	var w warming
	for try := 0; ; try++ {
		err := f.warm(ctx, k.db, &w)
		if err == nil || ctx.Err() != nil {
			return
		}
		again := min(warmPause<<min(try, warmAttempts), warmAtLeast)
		k.log.Warn("the filter could not read the visitors; it will try again", "in", again, "error", err)
		if !sleep(ctx, again) {
			return
		}
	}
}

// sleep waits; false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
