package record

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/pause"
)

// caches provides the present generation, which is the set of caches that this instance uses now. If the generation
// is dropped, caches creates a new one. The methods of caches may be called concurrently.
type caches struct {
	db      *db.DB
	log     *slog.Logger
	options Options
	metrics *metrics

	filterFull sync.Once // so that the warning about the filter's memory is logged only once

	current  atomic.Pointer[generation] // nil if there is no generation; changed only while makeLock is held
	makeLock sync.Mutex                 // held while a generation is created or dropped

	// makeLock guards the following fields.
	generationsMade uint64             // number of generations created so far
	filter          *filter            // the last generation's filter
	filterVersion   string             // version of the stored visitors for which filter was made (second word of generation.basis)
	stopFilter      context.CancelFunc // stops the goroutine that fills the filter

	ctx    context.Context // canceled by close
	cancel context.CancelFunc
	warms  sync.WaitGroup // the goroutines that read visitors into filters
}

func newCaches(d *db.DB, o Options, m *metrics) *caches {
	ctx, cancel := context.WithCancel(context.Background())
	c := &caches{db: d, log: o.Log, options: o, metrics: m, ctx: ctx, cancel: cancel}
	m.describe(c)
	return c
}

// close stops the goroutines that read visitors into filters.
func (c *caches) close() {
	c.cancel()
	c.warms.Wait()
}

// get returns the present generation. If there is none, get reads the basis (a version of the tables) from the
// database, and creates a generation for it.
func (c *caches) get(ctx context.Context) (*generation, error) {
	if now := c.current.Load(); now != nil {
		return now, nil
	}
	c.makeLock.Lock()
	defer c.makeLock.Unlock()
	if now := c.current.Load(); now != nil {
		return now, nil
	}
	basis, err := c.db.Basis(ctx)
	if err != nil {
		return nil, err
	}
	people, unfiltered, err := c.db.ReadPeopleAndFilters(ctx)
	if err != nil {
		return nil, err
	}
	c.generationsMade++
	now := &generation{
		number: c.generationsMade, basis: basis, people: people, unfiltered: unfiltered,
		targets: newTargetIDs(), tags: newTagIDs(), memory: newMemory(c.options.Memory), filter: c.filterOn(basis),
		ballots: newBallots(),
	}
	c.current.Store(now)
	return now, nil
}

// filterOn returns the filter for a new generation with this basis. The second word of the basis is the version of
// the stored visitors. If this version is the same as before, filterOn returns the previous filter. This filter may
// still contain erased visitors, but they cost only a needless look-up if they return. If the version has changed,
// the tables may have visitors that the previous filter does not contain. Then filterOn creates a new filter.
func (c *caches) filterOn(basis string) *filter {
	_, visitors, _ := strings.Cut(basis, " ")
	if !c.options.Filter || c.filter != nil && c.filterVersion == visitors {
		return c.filter
	}
	first := c.filter == nil
	if !first {
		c.stopFilter()
	}
	filter := &filter{memory: c.options.FilterMemory, log: c.log, warned: &c.filterFull}
	warming, stop := context.WithCancel(c.ctx)
	c.filter, c.filterVersion, c.stopFilter = filter, visitors, stop
	c.warms.Go(func() { c.warm(warming, filter, first) })
	return filter
}

// drop discards the generation "was", if it is still the present generation. The next call of get then creates a new
// one.
func (c *caches) drop(was *generation) {
	c.makeLock.Lock()
	defer c.makeLock.Unlock()
	if was == nil || c.current.Load() != was {
		return
	}
	c.current.Store(nil)
	c.metrics.dropped.Inc()
}

// If a filter replaces a previous filter, it waits for warmPause before it reads the tables. The usual cause is an
// import, and further imports, which also replace the filter, often follow soon. If reading fails, the filter waits
// for warmPause before it retries. Each further error doubles this pause, up to warmPauseMax.
const (
	warmPause    = time.Second
	warmPauseMax = time.Minute
	warmDoubling = 6 // number of doublings until warmPauseMax is reached
)

// warm reads the visitors in the tables into a filter. It retries until it has read all of them or ctx is canceled.
// If first is true, the filter does not replace a previous filter.
func (c *caches) warm(ctx context.Context, f *filter, first bool) {
	if !first {
		if pause.For(ctx, warmPause) != nil {
			return
		}
		// The previous filter is outside of the Go heap. The garbage collector does not see its size and
		// might free it late. Run the garbage collector now, so that two filters are not in memory at the
		// same time.
		runtime.GC()
	}
	var w warming
	for try := 0; ; try++ {
		err := f.warm(ctx, c.db, &w)
		if err == nil || ctx.Err() != nil {
			return
		}
		again := min(warmPause<<min(try, warmDoubling), warmPauseMax)
		c.log.Warn("the filter could not read the visitors and will try again", "in", again, "error", err)
		if pause.For(ctx, again) != nil {
			return
		}
	}
}
