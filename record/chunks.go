package record

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"footfall/db"
	"footfall/visit"
)

const (
	// chunkTakes is about how long a chunk may hold its locks, for which others wait who count for
	// the same sites.
	chunkTakes = 25 * time.Millisecond
	// chunkTakesAlone is the same where nobody else counts for them: the more visits a chunk has,
	// the less each of them takes. Whoever comes first after a pause may wait for so long.
	chunkTakesAlone = 100 * time.Millisecond
	// aloneAfter is how long nobody else has to stay away until chunks are taken to be alone again.
	aloneAfter = 10 * time.Second
	// Bounds of a chunk, in visits, and the size of the first one.
	chunkLeast = 100
	chunkFirst = 500
	chunkMost  = 4000
)

// Chunk is visits that are counted together, in their order: in one transaction, unless some of
// them cannot be. Those of past days may be of any, in any order. They are counted
// fastest in order of time, with fastVisits of a day or more.
type Chunk struct {
	Visits []Visit
	// Steps has one for each visit, and the transaction that counts the visit takes it; nil: the
	// sources of the visits have no positions.
	Steps []Step
}

// Result is the answer to a visit of a chunk, or the error.
type Result struct {
	Answer visit.Answer
	Err    error
}

// What became of visits of a chunk, beside other errors.
var (
	// ErrNotReached: not counted, since one before it was not.
	ErrNotReached = visit.Errorf(visit.Unavailable, "", "not counted: send again")
	// ErrMoved: not counted, since somebody else has moved a position. The positions of the chunk
	// have where they are; up to there all is counted.
	ErrMoved = errors.New("the position has moved")
	// ErrNumbersLost: counted, with numbers that nobody knows.
	ErrNumbersLost = &visit.Error{Kind: visit.Lost, Message: "counted, but its numbers were lost: ask /counts"}
)

// RecordChunk counts many visits of any sites, beside the lanes, and returns what became of each.
// After the first that is not counted none is, so that whoever sends the rest again keeps the
// order; where there is no position, one that the tables do not accept is left out. It takes no
// context, for the reason for which Record takes none.
func (r *Recorder) RecordChunk(c Chunk) []Result {
	entries := r.chunks.write(c)
	results := make([]Result, len(entries))
	for i := range entries {
		e := &entries[i]
		results[i] = Result{e.answer, e.err}
		if errors.Is(e.err, ErrMoved) {
			continue
		}
		r.metrics.outcome(e.err)
		if e.other.Page != "" && e.err == nil {
			r.metrics.other.Inc()
		}
	}
	return results
}

// ChunkVisits is how many visits the next chunk should have: as many as are written in chunkTakes,
// or in chunkTakesAlone.
func (r *Recorder) ChunkVisits() int { return r.chunks.size() }

// chunks writes one chunk at a time.
type chunks struct {
	metrics *metrics

	mu     sync.Mutex // guards what follows, and is held while a chunk is written
	writer *writer
	closed bool

	paceMu sync.Mutex // guards what follows
	pace   pace
	others time.Time // when others were last found to have counted for the sites of a chunk

	now func() time.Time
}

func newChunks(d *db.DB, c *caches, p *pulse, o Options, m *metrics) *chunks {
	w := newWriter(d, c, p, o, m)
	w.chunk = &chunkState{left: map[int64]int64{}}
	return &chunks{writer: w, metrics: m, now: o.now}
}

func (c *chunks) size() int {
	c.paceMu.Lock()
	defer c.paceMu.Unlock()
	each, takes := c.pace.perVisit(), chunkTakesAlone
	if each == 0 {
		return chunkFirst
	}
	if c.now().Sub(c.others) < aloneAfter {
		takes = chunkTakes
	}
	return min(max(int(takes/each), chunkLeast), chunkMost)
}

// write waits for the chunk before, and writes this one.
func (c *chunks) write(chunk Chunk) []entry {
	entries := make([]entry, len(chunk.Visits))
	for i, v := range chunk.Visits {
		entries[i].Visit = v
		if chunk.Steps != nil {
			entries[i].step = chunk.Steps[i]
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		fail(entries, visit.Errorf(visit.Unavailable, "", "the service is shutting down; try again"))
		return entries
	}
	// Whoever sends again what was counted, since the database was away before they could look,
	// would have it counted from where the position is now.
	if slices.ContainsFunc(entries, func(e entry) bool { return e.step.Position != nil && e.step.Next <= e.step.Position.Next }) {
		fail(entries, ErrMoved)
		return entries
	}
	begin := time.Now()
	c.writer.write(entries)
	c.metrics.sizes.Observe(float64(len(entries)))
	c.metrics.flushes.Observe(time.Since(begin).Seconds())
	c.paceMu.Lock()
	defer c.paceMu.Unlock()
	c.pace.add(len(entries), c.writer.chunk.held)
	if c.writer.chunk.others {
		c.others = c.now()
	}
	return entries
}

// close refuses new chunks, and returns when the present one is written.
func (c *chunks) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.writer.learning.Wait()
}

// chunkState is what a writer keeps in mind of the chunk that it writes. Its methods do nothing on
// nil, which lanes of live visits have.
type chunkState struct {
	ofMany  bool          // the visits are of many callers: what becomes of one is nothing to the others
	stopped bool          // a visit was not counted: those behind it must not be
	judged  bool          // it is known whether the visits are late
	late    bool          // they may be of days before the last one of their site, or of closed ones
	held    time.Duration // how long the database has had batches of it, and so its locks at most
	others  bool          // others have counted for its sites since the chunk before

	// left has hot of sites, as the chunks before have left it: lanes, other instances and imports
	// all change it. nil: nobody asks for others.
	left map[int64]int64
}

// leftMost bounds the sites in left. When there are more, it begins anew.
const leftMost = 10_000

func (s *chunkState) begin() {
	if s != nil {
		*s = chunkState{ofMany: s.ofMany, left: s.left}
	}
}

func (s *chunkState) hasStopped() bool { return s != nil && s.stopped }

func (s *chunkState) wrote(took time.Duration) {
	if s != nil {
		s.held += took
	}
}

// leave notes what a batch that has committed has found and left.
func (s *chunkState) leave(t *db.TargetColumns, sums []db.Sums) {
	if s == nil || s.left == nil {
		return
	}
	if len(s.left) > leftMost {
		clear(s.left)
	}
	for place, site := range t.IDs {
		if t.Sites[place] != 0 {
			continue
		}
		hot := sums[place].Hot
		left, known := s.left[site]
		s.others = s.others || known && left != hot-t.Hot[place]
		s.left[site] = hot
	}
}

func (s *chunkState) stop() {
	if s != nil && !s.ofMany {
		s.stopped = true
	}
}

// moves appends how positions move with the batch of some entries. They go by their keys, the order
// in which every batch takes its locks.
func moves(moves []db.Move, sent []entry) []db.Move {
	moves = moves[:0]
	for i := range sent {
		step := &sent[i].step
		if step.Position == nil {
			continue
		}
		place, there := slices.BinarySearchFunc(moves, step.Position.Position, func(m db.Move, p db.Position) int { return m.Compare(p) })
		if !there {
			moves = slices.Insert(moves, place, db.Move{Position: step.Position.Position, From: step.Position.Next, To: step.Position.Next})
		}
		if step.Position.OfCall {
			passed := int(step.Next - 1 - moves[place].To)
			moves[place].Uncounted = append(append(moves[place].Uncounted, bytes.Repeat([]byte("1"), passed)...), '0')
		}
		moves[place].To = step.Next
		moves[place].Visits++
		moves[place].Refused = append(moves[place].Refused, step.Refused...)
	}
	return moves
}

// moved notes that the batch of some entries has committed.
func moved(sent []entry) {
	for i := range sent {
		if step := &sent[i].step; step.Position != nil {
			step.Position.Next = step.Next
		}
	}
}

// leaveOut fails entries that the tables do not accept. A position cannot pass by them: whoever
// comes again would take them for counted.
func (w *writer) leaveOut(entries []entry, err error) {
	fail(entries, err)
	if entries[0].step.Position != nil {
		w.chunk.stop()
	}
}

// findPositions finds where the positions of a chunk are now. It returns what to tell of the
// visits.
func (w *writer) findPositions(ctx context.Context, entries []entry, cause error) error {
	others := false // have moved one
	asked := map[*Position]bool{nil: true}
	for i := range entries {
		p := entries[i].step.Position
		if asked[p] {
			continue
		}
		asked[p] = true
		next, err := w.db.PositionNext(ctx, p.Position)
		if err != nil || next < p.Next { // the tables are not those that it was read from, or its app is being deleted
			return visit.Errorf(visit.Unavailable, "", "%s", ErrNotReached.Message).Because(errors.Join(cause, err))
		}
		others = others || next > p.Next
		p.Next = next
	}
	if others {
		return ErrMoved
	}
	return visit.Errorf(visit.Unavailable, "", "%s", ErrNotReached.Message).Because(cause)
}
