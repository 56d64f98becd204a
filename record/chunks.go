package record

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/visit"
)

const (
	// chunkTakes is about how long a chunk may hold its locks, which block other writers that count
	// for the same sites.
	chunkTakes = 25 * time.Millisecond
	// longChunkTakes is the limit while no other writer counts for these sites. Larger chunks need
	// less time per visit. The first other writer after a pause may have to wait this long.
	longChunkTakes = 100 * time.Millisecond
	// longChunksAfter is how long no other writer must have counted before chunks become long
	// again.
	longChunksAfter = 10 * time.Second
	// Bounds of a chunk, in visits, and the size of the first one.
	chunkLeast = 100
	chunkFirst = 500
	chunkMost  = 4000
)

// Result is the answer or the error for a visit of a chunk.
type Result struct {
	Answer visit.Answer
	Err    error
}

// Errors for visits of a chunk, in addition to other errors.
var (
	// ErrNotReached: not counted because an earlier visit failed.
	ErrNotReached = visit.Errorf(visit.Unavailable, "", "not counted: send again")
	// ErrMoved: not counted because another writer has moved the position. Everything up to the new
	// position, which FindPosition returns, is counted. Rows of the inbox must be read again.
	ErrMoved = errors.New("the position has moved")
	// ErrNumbersLost: counted, but the connection was lost before the response with the numbers
	// arrived.
	ErrNumbersLost = visit.Errorf(visit.Lost, "", "counted, but its numbers were lost: query /counts")
)

// RecordChunk counts the visits of steps together, outside of the lanes, and returns the result of
// each step. They are counted in one transaction with the positions, unless some of them cannot be
// counted. After the first visit that is not counted, no further visit is counted, so that sending
// the rest again keeps the order. Visits may be of any sites and past days, in any order. Visits in
// order of time, with fastVisits or more per day, are counted fastest. It takes no context for the
// same reason as Record.
func (r *Recorder) RecordChunk(steps []Step) []Result {
	entries, results := r.chunks.write(steps), make([]Result, len(steps))
	for i := range entries {
		e := &entries[i]
		results[i] = Result{e.answer, e.err}
		switch {
		case e.isPassed() && errors.Is(e.err, ErrRepeated):
			results[i].Err = nil
		case !e.isPassed():
			r.metrics.counted(e)
		}
	}
	return results
}

// NotCounted updates the metrics for a visit of a chunk that was not counted, or may not have been,
// and that this instance does not retry.
func (r *Recorder) NotCounted(why error) { r.metrics.notCounted(why) }

// ChunkVisits returns the best size of the next chunk: the number of visits that can be written in
// chunkTakes or longChunkTakes.
func (r *Recorder) ChunkVisits() int { return int(r.chunks.best.Load()) }

// chunks writes one chunk at a time.
type chunks struct {
	metrics *metrics

	best atomic.Int64 // the result of size
	now  func() time.Time

	mu     sync.Mutex // guards the following fields; held while a chunk is written
	writer *writer
	pace   pace
	left   map[int64]int64 // each site's hot after the last chunk
	others time.Time       // when another writer was last found to have counted for a chunk's sites
	closed bool
}

// leftMost bounds the sites in left. If there are more, left is cleared.
const leftMost = 10_000

func newChunks(d *db.DB, caches *caches, p *pulse, o Options, m *metrics) *chunks {
	c := &chunks{writer: newWriter(d, caches, p, o, m), metrics: m, now: o.now}
	c.best.Store(c.size())
	return c
}

// write waits for the previous chunk, and writes this one.
func (c *chunks) write(steps []Step) []entry {
	entries := make([]entry, len(steps))
	all := make([]*entry, len(entries))
	visits := 0
	repeats := false // some step is before its position
	nowhere := true  // there is nothing to write
	read := uint64(0)
	for i := range steps {
		e, step := &entries[i], &steps[i]
		all[i], e.step, e.repeated = e, step, step.Visit == nil
		if step.Visit != nil {
			e.Visit = *step.Visit
			visits++
		}
		read = step.Position.Read
		repeats = repeats || step.Next <= step.Position.Next
		nowhere = nowhere && step.Visit == nil && step.Position.isNowhere()
	}
	j := newJob(all)
	j.chunk, j.read = true, read
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		j.failAll(visit.Errorf(visit.Unavailable, "", "the service is shutting down; try again"))
		return entries
	}
	// A caller may send steps again because it did not get the response. Their position is already
	// past them, so they must not count from there.
	if repeats {
		j.failAll(ErrMoved)
		return entries
	}
	if nowhere {
		movePositions(all)
		return entries
	}
	begin := time.Now()
	c.writer.write(j)
	if visits == 0 {
		return entries
	}
	c.metrics.sizes.Observe(float64(visits))
	c.metrics.flushes.Observe(time.Since(begin).Seconds())
	c.pace.add(visits, j.took)
	c.findOthers(entries)
	c.best.Store(c.size())
	return entries
}

// size returns the number of visits that the next chunk should have.
func (c *chunks) size() int64 {
	each, takes := c.pace.perVisit(), longChunkTakes
	if each == 0 {
		return chunkFirst
	}
	if c.now().Sub(c.others) < longChunksAfter {
		takes = chunkTakes
	}
	return min(max(int64(takes/each), chunkLeast), chunkMost)
}

// findOthers checks whether other writers have counted for a chunk's sites: lanes, other instances
// and imports all increase hot.
func (c *chunks) findOthers(entries []entry) {
	if c.left == nil || len(c.left) > leftMost {
		c.left = map[int64]int64{}
	}
	for i := range entries {
		e := &entries[i]
		if e.err != nil {
			continue
		}
		left, counted := c.left[e.site.id]
		if counted && e.answer.Site.Hot != left+1 {
			c.others = c.now()
		}
		c.left[e.site.id] = e.answer.Site.Hot
	}
}

// close refuses new chunks, and returns when the present one has been written.
func (c *chunks) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.writer.learning.Wait()
}

// announce prepares a batch of a chunk before it is sent. The positions move with the batch. Its
// pairs are added to the filter now, so that lanes get no hints for them. If the batch fails, this
// only costs look-ups.
func (w *writer) announce(sent []*entry) {
	move(&w.draft.batch, sent)
	p := &w.draft.batch.Pairs
	for place, target := range p.Targets {
		w.generation.filter.add(target, p.Visitors[place])
	}
}

// chunkCommitted is called when a batch of a chunk has committed. The caches are updated while the
// next chunk is prepared: that is sent only after this one's results.
func (w *writer) chunkCommitted(sent []*entry) {
	movePositions(sent)
	g := w.generation
	w.learning.Go(func() { w.draft.learn(g) })
}
