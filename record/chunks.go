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
	// A chunk is a group of visits that RecordChunk counts together. chunkTakes is about how long the database may
	// take for a chunk. It is short because the locks of a chunk block other writers that count for the same sites.
	chunkTakes = 25 * time.Millisecond
	// longChunkTakes replaces chunkTakes while no other writer counts for the chunk's sites, because larger chunks
	// need less time per visit. If another writer starts to count for these sites, it may have to wait for one such
	// chunk.
	longChunkTakes = 100 * time.Millisecond
	// longChunksAfter is how long chunks stay short (chunkTakes) after another writer has counted for a chunk's
	// sites.
	longChunksAfter = 10 * time.Second
	// Minimum, first and maximum size of a chunk, in visits.
	chunkLeast = 100
	chunkFirst = 500
	chunkMost  = 4000
)

// Result is the result of one step of a chunk: the answer to its visit, or an error.
type Result struct {
	Answer visit.Answer
	Err    error
}

// Errors of the visits of a chunk. ErrNumbersLost is also possible for a visit outside of a chunk.
var (
	// ErrNotReached means that the visit was not counted, because an earlier visit of the chunk failed.
	ErrNotReached = visit.Errorf(visit.Unavailable, "", "not counted: send again")
	// ErrMoved means that the visit was not counted. There are two causes. Another writer may have moved the position
	// of the visit's source (how far the source was counted). FindPosition then reads the new position, and the
	// visits before it are already counted. Or the caches were dropped after the visit was read from the inbox. The
	// inbox must then be read again.
	ErrMoved = errors.New("the position has moved")
	// ErrNumbersLost means that the visit was counted, but the connection was lost before its numbers arrived.
	ErrNumbersLost = visit.Errorf(visit.Lost, "", "counted, but its numbers were lost: query /counts")
)

// RecordChunk counts the visits of the steps together, without the lanes that Record uses, and returns the result of
// each step. Usually one transaction counts all visits and moves the positions of their sources. Several transactions
// are needed if some visits cannot be counted, and often if the visits are of several days. After the first visit
// that fails, no further visit is counted, so that the visits stay in order if the caller sends the rest again. The
// visits may be of any sites and past days, in any order. A chunk is written fastest if its visits are in order of
// time, and if it has fastVisits or more visits per day. RecordChunk takes no context, because it counts the visits
// even if its caller leaves.
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

// NotCounted adds a visit of a chunk to the metrics. The visit is added as lost if it is unknown whether it was
// counted, otherwise as refused. Do not call NotCounted if this instance retries the visit.
func (r *Recorder) NotCounted(why error) { r.metrics.notCounted(why) }

// ChunkVisits returns the best size of the next chunk: the number of visits that can be written in chunkTakes, or in
// longChunkTakes if no other writer counts for the same sites.
func (r *Recorder) ChunkVisits() int { return int(r.chunks.best.Load()) }

// chunks writes one chunk at a time, with a writer of its own.
type chunks struct {
	metrics *metrics

	best  atomic.Int64 // the best size of the next chunk, as returned by the last call of size
	clock func() time.Time

	mu            sync.Mutex // guards the following fields; held while a chunk is written
	writer        *writer
	pace          pace
	lastHot       map[int64]int64 // by site id: the site's page views (hot) after its last visit in a chunk
	otherWriterAt time.Time       // when chunks last noticed that another writer had counted for a chunk's sites
	closed        bool
}

// lastHotMost bounds the number of sites in lastHot. If there are more, lastHot is cleared.
const lastHotMost = 10_000

func newChunks(d *db.DB, caches *caches, p *pulse, o Options, m *metrics) *chunks {
	c := &chunks{writer: newWriter(d, caches, p, o, m), metrics: m, clock: o.now}
	c.best.Store(c.size())
	return c
}

// write waits until the previous chunk is written, and then writes the steps as one chunk.
func (c *chunks) write(steps []Step) []entry {
	entries := make([]entry, len(steps))
	all := make([]*entry, len(entries))
	visits := 0
	repeats := false // at least one step is before its position, so it was already counted
	isEmpty := true  // no step has a visit or a stored position
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
		isEmpty = isEmpty && step.Visit == nil && step.Position.isUnstored()
	}
	j := newJob(all)
	j.chunk, j.readGeneration = true, read
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		j.failAll(visit.Errorf(visit.Unavailable, "", "the service is shutting down; try again"))
		return entries
	}
	// Some steps are before their position, so they were already counted. This happens if a caller did not get the
	// response, and sends the same steps again. They must not be counted a second time.
	if repeats {
		j.failAll(ErrMoved)
		return entries
	}
	if isEmpty {
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
	if c.clock().Sub(c.otherWriterAt) < longChunksAfter {
		takes = chunkTakes
	}
	return min(max(int64(takes/each), chunkLeast), chunkMost)
}

// findOthers checks whether other writers (lanes, other instances, imports) have counted for a chunk's sites. Every
// visit adds 1 to its site's counter hot. So if hot has grown by more than 1 since the site's previous visit in a
// chunk, another writer has counted for this site.
func (c *chunks) findOthers(entries []entry) {
	if c.lastHot == nil || len(c.lastHot) > lastHotMost {
		c.lastHot = map[int64]int64{}
	}
	for i := range entries {
		e := &entries[i]
		if e.err != nil {
			continue
		}
		previousHot, counted := c.lastHot[e.site.id]
		if counted && e.answer.Site.Hot != previousHot+1 {
			c.otherWriterAt = c.clock()
		}
		c.lastHot[e.site.id] = e.answer.Site.Hot
	}
}

// close refuses new chunks, and returns when the present chunk has been written.
func (c *chunks) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.writer.learning.Wait()
}

// prepareChunk is called before a batch of a chunk is sent. It adds the new positions of the sources to the batch. It
// also adds the (target, visitor) pairs of the batch to the filter. So the filter does not report these visitors as
// new to a lane while the batch is being written. If the batch fails, the only cost is that these visitors are later
// looked up needlessly.
func (w *writer) prepareChunk(sent []*entry) {
	setMoves(&w.draft.batch, sent)
	p := &w.draft.batch.Pairs
	for place, target := range p.Targets {
		w.generation.filter.add(target, p.Visitors[place])
	}
}

// chunkCommitted is called after a batch of a chunk has committed. It updates the sources' positions in memory. A new
// goroutine then adds the batch's visitors to the caches, while the caller prepares the next chunk. The writer's next
// attempt waits for this goroutine.
func (w *writer) chunkCommitted(sent []*entry) {
	movePositions(sent)
	g := w.generation
	w.learning.Go(func() { w.draft.learn(g) })
}
