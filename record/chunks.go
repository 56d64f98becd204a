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
	// chunkTakes is about how long a chunk may hold its locks, for which others wait who count for
	// the same sites.
	chunkTakes = 25 * time.Millisecond
	// longChunkTakes is the same while no others count for them: the more visits a chunk has, the
	// less each of them takes. The first of others after a pause may wait for so long.
	longChunkTakes = 100 * time.Millisecond
	// longChunksAfter is for how long no others must have counted before chunks become long again.
	longChunksAfter = 10 * time.Second
	// Bounds of a chunk, in visits, and the size of the first one.
	chunkLeast = 100
	chunkFirst = 500
	chunkMost  = 4000
)

// Result is the answer to a visit of a chunk, or the error.
type Result struct {
	Answer visit.Answer
	Err    error
}

// What became of visits of a chunk, beside other errors.
var (
	// ErrNotReached: not counted, since one before it was not.
	ErrNotReached = visit.Errorf(visit.Unavailable, "", "not counted: send again")
	// ErrMoved: not counted, since somebody else has moved a position: FindPosition tells where to.
	// Up to there all is counted. Rows of the inbox are to be read anew.
	ErrMoved = errors.New("the position has moved")
	// ErrNumbersLost: counted, but the connection was lost before the numbers came.
	ErrNumbersLost = visit.Errorf(visit.Lost, "", "counted, but its numbers were lost: ask /counts")
)

// RecordChunk takes steps of sources, whose visits are counted together, beside the lanes, and
// returns what became of each: in one transaction with the positions, unless some of them cannot
// be. After the first that is not counted none is, so that the order stays where the rest is sent
// again. Visits may be of any sites and past days, in any order. They are counted fastest in order
// of time, with fastVisits of a day or more. It takes no context, for the reason for which Record
// takes none.
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

// NotCounted counts in the metrics a visit of a chunk that was not counted, or perhaps, and that
// nobody here tries again.
func (r *Recorder) NotCounted(why error) { r.metrics.notCounted(why) }

// ChunkVisits is how many visits the next chunk should have: as many as are written in chunkTakes,
// or in longChunkTakes.
func (r *Recorder) ChunkVisits() int { return int(r.chunks.best.Load()) }

// chunks writes one chunk at a time.
type chunks struct {
	metrics *metrics

	best atomic.Int64 // what size tells
	now  func() time.Time

	mu     sync.Mutex // guards what follows, and is held while a chunk is written
	writer *writer
	pace   pace
	left   map[int64]int64 // hot of sites as chunks have left it
	others time.Time       // when others were last found to have counted for the sites of a chunk
	closed bool
}

// leftMost bounds the sites in left. When there are more, it begins anew.
const leftMost = 10_000

func newChunks(d *db.DB, caches *caches, p *pulse, o Options, m *metrics) *chunks {
	c := &chunks{writer: newWriter(d, caches, p, o, m), metrics: m, now: o.now}
	c.best.Store(c.size())
	return c
}

// write waits for the chunk before, and writes this one.
func (c *chunks) write(steps []Step) []entry {
	entries := make([]entry, len(steps))
	all := make([]*entry, len(entries))
	visits := 0
	repeats := false // a step that is behind its position
	nowhere := true  // nothing is to be written
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
	// A caller may send steps again that were counted without its hearing of it. Their position has
	// passed them: they must not count from there.
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

// size is how many visits the next chunk should have.
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

// findOthers finds out whether others have counted for the sites of a chunk: lanes, other
// instances and imports all add to hot.
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

// close refuses new chunks, and returns when the present one is written.
func (c *chunks) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.writer.learning.Wait()
}

// announce is called before a batch of a chunk is sent. It has the positions move with it, and puts
// its pairs into the filter: a lane that asks meanwhile gets no hint, which costs it a look-up if
// the batch then fails, and nothing else.
func (w *writer) announce(sent []*entry) {
	move(&w.draft.batch, sent)
	p := &w.draft.batch.Pairs
	for place, target := range p.Targets {
		w.generation.filter.add(target, p.Visitors[place])
	}
}

// chunkCommitted is called when a batch of a chunk has committed. The caches learn while the next
// chunk is made: it is sent only when this one is answered.
func (w *writer) chunkCommitted(sent []*entry) {
	movePositions(sent)
	g := w.generation
	w.learning.Go(func() { w.draft.learn(g) })
}
