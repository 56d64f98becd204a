package record

import (
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"footfall/db"
	"footfall/visit"
)

const (
	// batchVisits is the maximum number of visits in a batch. A larger batch would save little time per visit, and
	// all of its visits would wait for the whole batch.
	batchVisits = 1000
	// waitingAlways is how many visits may always wait in a lane, even if the lane is slow. These visits fit into one
	// batch. Lanes with overflow do not use waitingAlways, because they can send visits to the inbox instead.
	waitingAlways = batchVisits
	// waitingAtMost is the maximum number of visits in a lane. It limits the lane's memory.
	waitingAtMost = 100 * batchVisits
	// A batch that waits to be written has a time limit: twice MaxWait, but at least leastPatience. On a slow disk,
	// every batch may take longer than MaxWait. Without this minimum, most visits would then go to the inbox, and few
	// would be counted immediately.
	leastPatience = 100 * time.Millisecond
	// Every batch has a fixed cost, which is as high as the cost of about ten visits. So a few larger batches are
	// cheaper than many small ones. Most clients send their next visit right after a response. So after a batch of
	// gatherFrom or more visits, a lane waits until half as many new visits have arrived. The lane waits for at most
	// gatherAtMost, and at most half as long as the previous batch took.
	gatherFrom   = 16
	gatherAtMost = 10 * time.Millisecond
	// overflowPause is how long a lane with overflow refuses all visits, once one visit would have waited too long.
	// The callers put the refused visits into the inbox, which is much cheaper than counting, so that clients get
	// their responses sooner.
	overflowPause = 2 * time.Second
	// overflowsFor is how long Overflows returns true after the last visit that had to go to the inbox.
	overflowsFor = 100 * time.Millisecond
)

// ErrOverloaded is the cause of the error for a visit that is refused because it would wait too long.
var ErrOverloaded = errors.New("the visit would wait too long to be written")

// Record counts a visit, and returns when the visit has committed or failed. It has no context parameter, because an
// accepted visit is counted with its batch even if its caller leaves. A batch that waits too long is refused, so
// Record always returns after a limited time.
func (r *Recorder) Record(v Visit) (visit.Answer, error) {
	e := &entry{Visit: v}
	if now := r.caches.current.Load(); now != nil {
		now.lookUp(e) // here, because many goroutines run Record concurrently, but each lane has only one goroutine
	}
	b, err := r.laneOf(&v).accept(e)
	if err != nil {
		e.err = err
	} else {
		<-b.done
	}
	if e.err == nil {
		r.presence.add(e)
		r.titles.processVote(e, r.caches.current.Load())
	}
	if r.caches.options.Overflow && errors.Is(e.err, ErrOverloaded) {
		r.overflowed.Store(time.Now().UnixNano())
	} else {
		r.metrics.outcome(e)
	}
	return e.answer, e.err
}

func (r *Recorder) laneOf(v *Visit) *lane {
	past := len(r.lanes) - 1
	if v.When == Past {
		return r.lanes[past]
	}
	return r.lanes[maphash.String(r.seed, v.Target.Site)%uint64(past)] //nolint:gosec // there are at most five
}

// Overflows reports whether a visit recently had to go to the inbox, because it would have waited too long in its
// lane.
func (r *Recorder) Overflows() bool {
	return time.Since(time.Unix(0, r.overflowed.Load())) < overflowsFor
}

// waitingBatch collects the visits of a batch that is not being written yet. lane.mu guards entries until run or
// expire removes the batch from lane.waiting. The goroutine that removed the batch may then change the entries until
// it closes done. After that, the entries do not change.
type waitingBatch struct {
	entries []*entry
	since   time.Time // when its first visit was accepted
	done    chan struct{}
	expiry  *time.Timer // timer that fails the batch if it waits too long; nil if the lane has no overflow
}

// lane is a queue of batches. One goroutine writes these batches one after another.
type lane struct {
	writer   *writer // only used by run
	maxWait  time.Duration
	overflow bool // callers put visits that would wait longer than maxWait into the inbox
	now      func() time.Time
	metrics  *metrics
	runEnded chan struct{} // closed when run returns

	mu             sync.Mutex // guards the following fields
	wake           sync.Cond  // signals changes of waiting and closed
	closed         bool
	waiting        []*waitingBatch // the last batch collects new visits
	pending        int             // number of visits in waiting and in the batch that is being written
	since          time.Time       // when run took the batch that is being written; zero if there is none
	overflowUntil  time.Time       // until this time, every visit is refused
	pace           pace
	visitsToGather int // number of visits to wait for in the first waiting batch; 0: do not wait
}

func newLane(d *db.DB, c *caches, p *pulse, o Options, m *metrics) *lane {
	l := &lane{writer: newWriter(d, c, p, o, m), maxWait: o.MaxWait, overflow: o.Overflow, now: o.now, metrics: m,
		runEnded: make(chan struct{})}
	l.wake.L = &l.mu
	return l
}

// accept adds a visit to the batch that the lane is collecting, and returns the batch. It fails if the lane is
// closed, or if the visit would wait too long.
func (l *lane) accept(e *entry) (*waitingBatch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, visit.Errorf(visit.Unavailable, "", "the service is shutting down; try again")
	}
	if l.overflow && l.now().Before(l.overflowUntil) {
		return nil, overloaded(l.maxWait)
	}
	if wait := l.expectedWait(); wait > l.maxWait {
		l.overflowUntil = l.now().Add(overflowPause)
		return nil, overloaded(wait)
	}
	if len(l.waiting) == 0 || len(l.waiting[len(l.waiting)-1].entries) == batchVisits {
		b := &waitingBatch{since: l.now(), done: make(chan struct{})}
		if l.overflow {
			b.expiry = time.AfterFunc(l.patience(), func() { l.expire(b) })
		}
		l.waiting = append(l.waiting, b)
	}
	b := l.waiting[len(l.waiting)-1]
	b.entries = append(b.entries, e)
	if !l.shouldGather() {
		l.wake.Signal()
	}
	l.pending++
	l.metrics.waiting.Inc()
	return b, nil
}

// patience returns how long a batch may wait until it is written.
func (l *lane) patience() time.Duration { return max(2*l.maxWait, leastPatience) }

// expire fails a batch that has waited too long to be written.
func (l *lane) expire(b *waitingBatch) {
	l.mu.Lock()
	at := slices.Index(l.waiting, b)
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		l.pending -= len(b.entries)
	}
	l.mu.Unlock()
	if at < 0 { // run has already taken the batch
		return
	}
	newJob(b.entries).failAll(overloaded(l.maxWait))
	close(b.done)
	l.metrics.waiting.Sub(float64(len(b.entries)))
}

// overloaded returns the error for a visit that is refused because it would have to wait this long.
func overloaded(wait time.Duration) error {
	e := visit.Errorf(visit.Unavailable, "", "too many visits are waiting; try again later").Because(ErrOverloaded)
	e.RetryAfter = wait
	return e
}

// expectedWait estimates how long a new visit would wait. This is the expected time for writing all pending visits,
// but at least the time that the present batch has taken so far. If a lane has no overflow and its pending visits fit
// into one batch, only the time of the present batch counts. If the lane is full, the result is more than maxWait.
func (l *lane) expectedWait() time.Duration {
	var stalled time.Duration
	if !l.since.IsZero() {
		stalled = l.now().Sub(l.since)
	}
	switch {
	case l.pending >= waitingAtMost:
		return max(l.maxWait+1, stalled)
	case l.pending < waitingAlways && !l.overflow:
		return stalled
	}
	return max(stalled, time.Duration(l.pending)*l.pace.perVisit())
}

// run writes batches until the lane is closed and empty.
func (l *lane) run() {
	defer close(l.runEnded)
	for {
		b := l.take()
		if b == nil {
			return
		}
		begin, j := time.Now(), newJob(b.entries)
		written := l.now().Sub(b.since) <= l.patience()
		if written {
			l.writer.write(j)
		} else {
			// The batch has waited too long because the database hangs. Refusing the batch saves its callers a longer
			// wait. It is safe because no visit of the batch was sent to the database.
			j.failAll(overloaded(l.maxWait))
		}
		took := time.Since(begin)
		l.finish(len(b.entries), took, written)
		close(b.done)
		l.metrics.sizes.Observe(float64(len(b.entries)))
		l.metrics.flushes.Observe(took.Seconds())
		l.metrics.waiting.Sub(float64(len(b.entries)))
	}
}

// take waits for a batch. It returns nil when the lane is closed and empty.
func (l *lane) take() *waitingBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) == 0 || l.shouldGather() {
		if len(l.waiting) == 0 && l.closed {
			return nil
		}
		l.wake.Wait()
	}
	b := l.waiting[0]
	l.waiting[0] = nil // so that the array of l.waiting, which may stay in use for a long time, does not keep the batch in memory
	l.waiting = l.waiting[1:]
	if b.expiry != nil {
		b.expiry.Stop()
	}
	l.since = l.now()
	return b
}

// shouldGather reports whether the lane should wait for more visits before it writes the next batch.
func (l *lane) shouldGather() bool {
	return len(l.waiting) == 1 && len(l.waiting[0].entries) < l.visitsToGather && !l.closed
}

func (l *lane) stopGathering() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.visitsToGather = 0
	l.wake.Signal()
}

// finish records that a batch was written or refused, and how long it took.
func (l *lane) finish(visits int, took time.Duration, written bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending -= visits
	l.since = time.Time{}
	if l.visitsToGather = 0; visits >= gatherFrom {
		l.visitsToGather = visits / 2
		time.AfterFunc(min(took/2, gatherAtMost), l.stopGathering) // if a late call hits another wait, that wait only ends sooner
	}
	if written { // a refused batch takes no time, so it would make the lane look fast
		l.pace.add(visits, took)
	}
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wake.Signal()
}

// pace computes the average time for writing one visit. Recent batches have the highest weight.
type pace struct {
	visits float64
	took   float64 // nanoseconds
}

func (p *pace) add(visits int, took time.Duration) {
	const (
		keep = 0.9 // the weight of the earlier batches; the new batch has the weight 1
		// A batch with fewer visits is treated as a batch of this size, because it takes about as long. Otherwise a
		// quiet hour with small batches would make single visits look slow. The expected wait of the next burst would
		// then be far too long.
		least = batchVisits / 10
	)
	p.visits = keep*p.visits + float64(max(visits, least))
	p.took = keep*p.took + float64(took)
}

func (p *pace) perVisit() time.Duration {
	if p.visits == 0 {
		return 0
	}
	return time.Duration(p.took / p.visits)
}
