package record

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"footfall/db"
	"footfall/visit"
)

// Step is what a source has at a place, and how that moves its position.
type Step struct {
	Visit    *Visit // nil: it has none that counts, and is only passed
	Position *Position
	Next     int64      // where the source goes on behind it
	Refused  []Refusal  // messages before Next that it passes, in their order
	Line     db.LogLine // the line of an access log that is recorded as counted
}

// Refusal is a message of a queue that cannot be counted.
type Refusal = db.Refusal

// Position is a position in a source, and where it stands. One without a name is in no table: what it
// has passed is not known when the source comes again.
type Position struct {
	db.Position
	Next      int64
	Read      uint64 // of a row of the inbox: what Recorder.Reading returned before it was read; 0: of other sources
	Uncounted []byte // of a call, for each of its items: 1 where it is not to be counted, or 0
}

func (p *Position) isNowhere() bool { return p.Position == (db.Position{}) }

// uncounted is what is kept of the items that the position passes on its way to a place.
func (p *Position) uncounted(to int64) []byte {
	if p.Uncounted == nil {
		return nil
	}
	return p.Uncounted[p.Next:to]
}

// Reading returns what the positions of rows need that are read after it. They are counted only where
// they were read: not by another server that has taken its place, which may not have them.
func (r *Recorder) Reading(ctx context.Context) (uint64, error) {
	g, err := r.caches.get(ctx)
	if err != nil {
		return 0, err
	}
	return g.number, nil
}

// OfItems is the position of a call of so many items, none of which has been counted.
func OfItems(items int) *Position { return &Position{Uncounted: bytes.Repeat([]byte("0"), items)} }

// OpenCall returns how far a call of so many items has been counted that has this Idempotency-Key
// and this content. It fails with visit.Mismatch if another content was sent as the same call before.
func (r *Recorder) OpenCall(ctx context.Context, p db.Position, content [32]byte, items int) (*Position, error) {
	ctx, cancel := r.db.InTime(ctx)
	defer cancel()
	row, err := r.db.OpenPosition(ctx, p, content[:])
	switch {
	case err != nil:
		return nil, unopened(err)
	case [32]byte(row.Content) != content:
		return nil, visit.Errorf(visit.Mismatch, "Idempotency-Key", "another body was sent with it: give each body a key of its own")
	}
	at := OfItems(items)
	at.Position, at.Next = p, row.Next
	return at, nil
}

// OpenQueue returns how far a part of a queue was counted; up to its first message, if nobody has
// read it before.
func (r *Recorder) OpenQueue(ctx context.Context, p db.Position, first int64) (*Position, error) {
	ctx, cancel := r.db.InTime(ctx)
	defer cancel()
	next, err := r.db.OpenQueue(ctx, p, first)
	if err != nil {
		return nil, unopened(err)
	}
	return &Position{Position: p, Next: next}, nil
}

func unopened(err error) error {
	if errors.Is(err, db.ErrAppGone) {
		return visit.Errorf(visit.NotFound, "app", "it has just been deleted").Because(err)
	}
	return visit.Unanswered(err)
}

// Uncounted has a 1 for each item of a call before its position that was not counted, and a 0 for
// each that was.
func (r *Recorder) Uncounted(ctx context.Context, p *Position) (string, error) {
	ctx, cancel := r.db.InTime(ctx)
	defer cancel()
	uncounted, err := r.db.Uncounted(ctx, p.Position)
	if err != nil {
		return "", visit.Unanswered(err)
	}
	return uncounted, nil
}

// FindPosition looks where a position is now.
func (r *Recorder) FindPosition(ctx context.Context, p *Position) error {
	if p.isNowhere() {
		return nil
	}
	ctx, cancel := r.db.InTime(ctx)
	defer cancel()
	next, err := r.db.PositionNext(ctx, p.Position)
	switch {
	case err != nil:
		return visit.Unanswered(err)
	case next < p.Next:
		return visit.Errorf(visit.NotFound, "app", "it has just been deleted, or its tables are others than before")
	}
	p.Next = next
	return nil
}

// move has a batch move the positions of some entries. They go by their keys, the order in which
// every batch takes its locks.
func move(b *db.Batch, sent []*entry) {
	b.Moves, b.Lines = b.Moves[:0], b.Lines[:0]
	t := &b.Taken
	t.Numbers, t.Froms, t.Untils = t.Numbers[:0], t.Froms[:0], t.Untils[:0]
	for _, e := range sent {
		step, at := e.step, e.step.Position
		if step.Line.Hour != nil {
			b.Lines = append(b.Lines, step.Line)
		}
		switch {
		case at.isNowhere():
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

// movePositions notes that the batch of some entries has committed.
func movePositions(sent []*entry) {
	for _, e := range sent {
		e.step.Position.Next = e.step.Next
		if hour := e.step.Line.Hour; hour != nil {
			hour.Version++
		}
	}
}
