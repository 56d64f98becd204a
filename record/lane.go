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
	// batchVisits bounds a batch. Larger batches gain little, and all their visits wait for them.
	batchVisits = 1000
	// waitingAlways is how many visits may wait in a lane however slow the database is: they fit
	// one batch.
	waitingAlways = batchVisits
	// waitingAtMost bounds the visits in a lane, and with them its memory.
	waitingAtMost = 100 * batchVisits
	// leastPatience is how long a batch may wait for its turn at least. On a slow disk every batch
	// may last longer than visits should wait: if they overflowed sooner, few would ever be counted
	// at once.
	leastPatience = 100 * time.Millisecond
	// A batch costs as much as some ten visits more, and most of those who were answered at once come
	// again at once. So after a batch of gatherFrom visits a lane waits until half as many have come,
	// but for no longer than gatherAtMost, nor than half as long as that batch took.
	gatherFrom   = 16
	gatherAtMost = 10 * time.Millisecond
	// overflowPause is how long every visit to a lane overflows, once one would have had to wait
	// there for too long: the inbox costs a fraction of what counting does, and a crowd comes
	// sooner to its answers.
	overflowPause = 2 * time.Second
	// overflowsFor is how long after a visit that has overflowed more of them are expected.
	overflowsFor = 100 * time.Millisecond
)

// ErrOverloaded is the cause where a visit is not counted since it would wait for too long.
var ErrOverloaded = errors.New("it would wait for too long to be written")

// Record returns when the visit has committed or has failed. It takes no context, because a visit
// that was accepted is counted with its batch even if its caller leaves. A batch that waits too
// long is refused, so the time is bounded.
func (r *Recorder) Record(v Visit) (visit.Answer, error) {
	e := &entry{Visit: v}
	if now := r.caches.current.Load(); now != nil {
		now.lookUp(e) // here, where visits run side by side, rather than in the lane
	}
	b, err := r.laneOf(&v).accept(e)
	if err != nil {
		e.err = err
	} else {
		<-b.done
	}
	if e.err == nil {
		r.here.saw(e)
		r.titles.saw(e, r.caches.current.Load())
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

// Overflows reports whether visits have overflowed of late.
func (r *Recorder) Overflows() bool {
	return time.Since(time.Unix(0, r.overflowed.Load())) < overflowsFor
}

// waitingBatch gathers visits. The lane's lock guards entries until the lane takes the batch. Then
// they belong to the lane's goroutine, until it closes done; after that they do not change.
type waitingBatch struct {
	entries []*entry
	since   time.Time // when its first visit was accepted
	done    chan struct{}
	expiry  *time.Timer // fails it where its turn comes too late; nil unless its visits may overflow
}

// lane is a queue of batches and the goroutine that writes them, one after the other.
type lane struct {
	writer   *writer // used by run alone
	maxWait  time.Duration
	overflow bool // visits that would wait for longer go to the inbox
	now      func() time.Time
	metrics  *metrics
	ended    chan struct{} // closed by run

	mu      sync.Mutex // guards what follows
	wake    sync.Cond  // waiting or closed has changed
	closed  bool
	waiting []*waitingBatch // the last one gathers
	pending int             // visits in waiting, and in the batch that is being written
	since   time.Time       // when the present batch was taken; zero: there is none
	paused  time.Time       // until then every visit overflows
	pace    pace
	awaited int // visits that the first batch in waiting should have; 0: it is taken as it is
}

func newLane(d *db.DB, c *caches, p *pulse, o Options, m *metrics) *lane {
	l := &lane{writer: newWriter(d, c, p, o, m), maxWait: o.MaxWait, overflow: o.Overflow, now: o.now, metrics: m, ended: make(chan struct{})}
	l.wake.L = &l.mu
	return l
}

// accept puts a visit into the batch that gathers, and returns the batch.
func (l *lane) accept(e *entry) (*waitingBatch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, visit.Errorf(visit.Unavailable, "", "the service is shutting down; try again")
	}
	if l.overflow && l.now().Before(l.paused) {
		return nil, overloaded(l.maxWait)
	}
	if wait := l.expectedWait(); wait > l.maxWait {
		l.paused = l.now().Add(overflowPause)
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
	if !l.gathers() {
		l.wake.Signal()
	}
	l.pending++
	l.metrics.waiting.Inc()
	return b, nil
}

// patience is how long a batch waits for its turn at most.
func (l *lane) patience() time.Duration { return max(2*l.maxWait, leastPatience) }

// expire fails a batch whose turn does not come in time.
func (l *lane) expire(b *waitingBatch) {
	l.mu.Lock()
	at := slices.Index(l.waiting, b)
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		l.pending -= len(b.entries)
	}
	l.mu.Unlock()
	if at < 0 { // it is being written, or was
		return
	}
	newJob(b.entries).failAll(overloaded(l.maxWait))
	close(b.done)
	l.metrics.waiting.Sub(float64(len(b.entries)))
}

// overloaded is the error of a visit that would have to wait for so long.
func overloaded(wait time.Duration) error {
	e := visit.Errorf(visit.Unavailable, "", "too many visits are waiting; try again later").Because(ErrOverloaded)
	e.RetryAfter = wait
	return e
}

// expectedWait estimates how long a visit that came now would wait: as long as the visits before it
// should take, but at least as long as the batch that is being written has taken so far. Where it
// cannot overflow, and fewer wait than fit one batch, only that.
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
	defer close(l.ended)
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
			// The database hangs. Refusing is safe, since nothing was sent, and spares callers a
			// long wait.
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
	for len(l.waiting) == 0 || l.gathers() {
		if len(l.waiting) == 0 && l.closed {
			return nil
		}
		l.wake.Wait()
	}
	b := l.waiting[0]
	l.waiting[0] = nil // the array may stay in use for long: it must not keep the batch in memory
	l.waiting = l.waiting[1:]
	if b.expiry != nil {
		b.expiry.Stop()
	}
	l.since = l.now()
	return b
}

// gathers reports whether the lane had better wait for more visits.
func (l *lane) gathers() bool {
	return len(l.waiting) == 1 && len(l.waiting[0].entries) < l.awaited && !l.closed
}

func (l *lane) awaitNone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaited = 0
	l.wake.Signal()
}

// finish notes that a batch has been answered, and how long that took.
func (l *lane) finish(visits int, took time.Duration, written bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending -= visits
	l.since = time.Time{}
	if l.awaited = 0; visits >= gatherFrom {
		l.awaited = visits / 2
		time.AfterFunc(min(took/2, gatherAtMost), l.awaitNone) // after another batch, too: that is taken sooner then
	}
	if written { // what was refused would make the database look fast
		l.pace.add(visits, took)
	}
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wake.Signal()
}

// pace is how long it takes to write a visit, averaged so that recent batches weigh most.
type pace struct {
	visits float64
	took   float64 // nanoseconds
}

func (p *pace) add(visits int, took time.Duration) {
	const (
		keep = 0.9 // of the weight of earlier batches
		// A smaller batch counts as one of this size, since it takes about as long. Otherwise,
		// after the small batches of a quiet hour, the first burst would look endless.
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
