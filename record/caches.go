package record

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
)

// caches hands out the present generation, and begins another when that is dropped. Its methods may be called concurrently.
type caches struct {
	db      *db.DB
	log     *slog.Logger
	options Options
	metrics *metrics

	current atomic.Pointer[generation] // nil: it was dropped; set under making
	making  sync.Mutex                 // held while the next is made, or the current one dropped
	made    uint64                     // how many have been; guarded by making

	ctx    context.Context // ends with cancel
	cancel context.CancelFunc
	warms  sync.WaitGroup // the goroutines that warm filters
}

func newCaches(d *db.DB, o Options, m *metrics) *caches {
	ctx, cancel := context.WithCancel(context.Background())
	c := &caches{db: d, log: o.Log, options: o, metrics: m, ctx: ctx, cancel: cancel}
	m.describe(c)
	return c
}

// close ends what runs in the background.
func (c *caches) close() {
	c.cancel()
	c.warms.Wait()
}

// get returns the present generation. It asks the database only when that was dropped.
func (c *caches) get(ctx context.Context) (*generation, error) {
	if now := c.current.Load(); now != nil {
		return now, nil
	}
	c.making.Lock()
	defer c.making.Unlock()
	if now := c.current.Load(); now != nil {
		return now, nil
	}
	basis, err := c.db.Basis(ctx)
	if err != nil {
		return nil, err
	}
	warming, stop := context.WithCancel(c.ctx)
	c.made++
	now := &generation{number: c.made, basis: basis, targets: newTargetIDs(), memory: newMemory(c.options.Memory), filter: newFilter(c.options), stop: stop}
	if now.filter != nil {
		first := c.made == 1
		c.warms.Go(func() { c.warm(warming, now.filter, first) })
	}
	c.current.Store(now)
	return now, nil
}

// drop forgets a generation, if it still is the present one.
func (c *caches) drop(was *generation) {
	c.making.Lock()
	defer c.making.Unlock()
	if was == nil || c.current.Load() != was {
		return
	}
	was.stop()
	c.current.Store(nil)
	c.metrics.dropped.Inc()
}

// Between two attempts to warm a filter, and before the first after a drop: one erasure is often followed by another, and a
// database that went away may go again.
const (
	warmPause    = time.Second
	warmAtLeast  = time.Minute
	warmAttempts = 6 // until warmAtLeast is reached
)

// warm fills a filter, however often that takes.
func (c *caches) warm(ctx context.Context, f *filter, first bool) {
	if !first {
		if !sleep(ctx, warmPause) {
			return
		}
		// The filter before lies outside the Go heap, whose growth alone would let it be given back: not two of them at once.
		runtime.GC()
	}
	var w warming
	for try := 0; ; try++ {
		err := f.warm(ctx, c.db, &w)
		if err == nil || ctx.Err() != nil {
			return
		}
		again := min(warmPause<<min(try, warmAttempts), warmAtLeast)
		c.log.Warn("the filter could not read the visitors; it will try again", "in", again, "error", err)
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
