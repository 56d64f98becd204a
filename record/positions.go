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
	Next     int64             // where the source goes on behind it
	Refused  []Refusal         // messages before Next that it passes, in their order
	Log      func() db.LogMark // of a log: what is kept of it at Next
}

// Refusal is a message of a queue that cannot be counted.
type Refusal = db.Refusal

// Position is a position in a source, and where it stands. One without a name is in no table: what it
// has passed is not known when the source comes again.
type Position struct {
	db.Position
	Next      int64
	Aside     []int32 // of the inbox: apps whose visits are put aside as it moves past them
	Uncounted []byte  // of a call, for each of its items: 1 where it is not to be counted, or 0
}

func (p *Position) isNowhere() bool { return p.Position == (db.Position{}) }

// uncounted is what is kept of the items that the position passes on its way to a place.
func (p *Position) uncounted(to int64) []byte {
	if p.Uncounted == nil {
		return nil
	}
	return p.Uncounted[p.Next:to]
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
	case next < p.Next && p.Log != 0:
		return ErrLookedAnew
	case next < p.Next:
		return visit.Errorf(visit.NotFound, "app", "it has just been deleted, or its tables are others than before")
	}
	p.Next = next
	return nil
}

// moves appends how positions move with the batch of some entries. They go by their keys, the order
// in which every batch takes its locks.
func moves(moves []db.Move, sent []*entry) []db.Move {
	for _, e := range sent {
		step := e.step
		if step.Position.isNowhere() {
			continue
		}
		place, there := slices.BinarySearchFunc(moves, step.Position.Position, func(m db.Move, p db.Position) int { return m.Compare(p) })
		if !there {
			moves = slices.Insert(moves, place, db.Move{Position: step.Position.Position, From: step.Position.Next, To: step.Position.Next, Aside: step.Position.Aside})
		}
		moves[place].To, moves[place].Log = step.Next, step.Log
		moves[place].Uncounted = step.Position.uncounted(step.Next)
		moves[place].Refused = append(moves[place].Refused, step.Refused...)
	}
	return moves
}

// movePositions notes that the batch of some entries has committed.
func movePositions(sent []*entry) {
	for _, e := range sent {
		e.step.Position.Next = e.step.Next
	}
}
