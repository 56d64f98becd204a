package record

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"footfall/db"
	"footfall/visit"
)

// Step is one item of a source of visits, such as a call, a queue or a log, with the source's position after the
// item.
type Step struct {
	Visit    *Visit // nil if the item has no visit to count, and only moves the position
	Position *Position
	Next     int64      // the source's position after the item
	Refused  []Refusal  // messages before Next that cannot be counted, in their order in the queue
	Line     db.LogLine // the line of an access log that is recorded as counted
}

// Refusal is a message of a queue that cannot be counted.
type Refusal = db.Refusal

// Position is a stored position in a source: how far the source has been counted. If its db.Position is empty, the
// position is only in memory: if the source is sent again, its items are counted again.
type Position struct {
	db.Position
	Next      int64
	Read      uint64 // for inbox rows: the value of Recorder.Reading before the row was read; 0 for other sources
	Uncounted []byte // for calls: a digit for each item, '1' if the item must not be counted, else '0'
}

func (p *Position) isUnstored() bool { return p.Position == (db.Position{}) }

// uncounted returns the digits of Uncounted for the items between the present position (Next) and the new position
// (to).
func (p *Position) uncounted(to int64) []byte {
	if p.Uncounted == nil {
		return nil
	}
	return p.Uncounted[p.Next:to]
}

// Reading returns the value for Position.Read. Call it before reading rows of the inbox. The recorder counts these
// rows only as long as Reading still returns this value. A new value means that another database server, which may
// not have these rows, may have taken over since they were read.
func (r *Recorder) Reading(ctx context.Context) (uint64, error) {
	g, err := r.caches.get(ctx)
	if err != nil {
		return 0, err
	}
	return g.number, nil
}

// NewCallPosition returns the position at the start of a call that has this number of items.
func NewCallPosition(items int) *Position {
	return &Position{Uncounted: bytes.Repeat([]byte("0"), items)}
}

// OpenCall returns the position of the call p, which shows how far the call has been counted. p.Part contains the
// call's Idempotency-Key, and content is a hash of the call's body. If the same key was used before with another
// body, OpenCall fails with visit.Mismatch.
func (r *Recorder) OpenCall(ctx context.Context, p db.Position, content [32]byte, items int) (*Position, error) {
	ctx, cancel := r.db.InTime(ctx)
	defer cancel()
	row, err := r.db.OpenPosition(ctx, p, content[:])
	switch {
	case err != nil:
		return nil, openError(err)
	case [32]byte(row.Content) != content:
		return nil, visit.Errorf(visit.Mismatch, "Idempotency-Key", "it was sent before with another body: use a different key for each body")
	}
	at := NewCallPosition(items)
	at.Position, at.Next = p, row.Next
	return at, nil
}

// OpenQueue returns the position of p, which is a part of a queue. If this part has never been read, its position
// becomes first.
func (r *Recorder) OpenQueue(ctx context.Context, p db.Position, first int64) (*Position, error) {
	ctx, cancel := r.db.InTime(ctx)
	defer cancel()
	next, err := r.db.OpenQueue(ctx, p, first)
	if err != nil {
		return nil, openError(err)
	}
	return &Position{Position: p, Next: next}, nil
}

func openError(err error) error {
	if errors.Is(err, db.ErrAppGone) {
		return visit.Errorf(visit.NotFound, "app", "it has just been deleted").Because(err)
	}
	return visit.Unanswered(err)
}

// Uncounted returns a digit for each item before the call's stored position: 1 if the item was not counted, else 0.
func (r *Recorder) Uncounted(ctx context.Context, p *Position) (string, error) {
	ctx, cancel := r.db.InTime(ctx)
	defer cancel()
	uncounted, err := r.db.Uncounted(ctx, p.Position)
	if err != nil {
		return "", visit.Unanswered(err)
	}
	return uncounted, nil
}

// FindPosition sets p.Next to the stored position, which other writers may have moved.
func (r *Recorder) FindPosition(ctx context.Context, p *Position) error {
	if p.isUnstored() {
		return nil
	}
	ctx, cancel := r.db.InTime(ctx)
	defer cancel()
	next, err := r.db.PositionNext(ctx, p.Position)
	switch {
	case err != nil:
		return visit.Unanswered(err)
	case next < p.Next:
		return visit.Errorf(visit.NotFound, "app", "it has just been deleted, or its tables were replaced")
	}
	p.Next = next
	return nil
}

// setMoves sets three fields of a batch: the new positions of sources (Moves), the lines of access logs to record as
// counted (Lines), and the visits to delete from the inbox (Taken). The moves are in key order. Every batch locks its
// positions in this order, to avoid deadlocks.
func setMoves(b *db.Batch, sent []*entry) {
	b.Moves, b.Lines = b.Moves[:0], b.Lines[:0]
	t := &b.Taken
	t.Numbers, t.Froms, t.Untils = t.Numbers[:0], t.Froms[:0], t.Untils[:0]
	for _, e := range sent {
		step, at := e.step, e.step.Position
		if step.Line.Hour != nil {
			b.Lines = append(b.Lines, step.Line)
		}
		switch {
		case at.isUnstored():
			continue
		case at.Row != 0:
			last := len(t.Numbers) - 1
			if last < 0 || t.Numbers[last] != at.Row {
				t.Numbers, t.Froms, t.Untils = append(t.Numbers, at.Row), append(t.Froms, int32(at.Next)),
					append(t.Untils, 0) //nolint:gosec // a row has few visits
				last++
			}
			t.Untils[last] = int32(step.Next) //nolint:gosec // likewise
			continue
		}
		place, there := slices.BinarySearchFunc(b.Moves, at.Position, func(m db.Move, p db.Position) int { return m.Compare(p) })
		if !there {
			b.Moves = slices.Insert(b.Moves, place, db.Move{Position: at.Position, From: at.Next, To: at.Next})
		}
		m := &b.Moves[place]
		m.To, m.Uncounted, m.Refused = step.Next, at.uncounted(step.Next), append(m.Refused, step.Refused...)
	}
}

// movePositions is called after a batch has committed. It updates the positions of its entries' sources in memory.
func movePositions(sent []*entry) {
	for _, e := range sent {
		e.step.Position.Next = e.step.Next
		if hour := e.step.Line.Hour; hour != nil {
			hour.Version++
		}
	}
}
