package feed

import "footfall/record"

// batch is what is sent of entries.
type batch struct {
	record.Chunk
	places    []int         // of the visits, in the entries
	moves     []record.Step // of the parts of which nothing counts
	ends      []int         // of the moves: the last entries of these parts
	positions []*record.Position
}

// newBatch makes a batch of entries. One that does not count is passed by the transaction of the
// next visit of its part, or of the last one if none follows. Where a part has no visit, its
// position moves by itself.
func newBatch[T any](source Source[T], entries []Entry[T]) *batch {
	n := len(entries)
	b := &batch{Chunk: record.Chunk{Visits: make([]record.Visit, 0, n), Steps: make([]record.Step, 0, n)}, places: make([]int, 0, n)}
	type part struct {
		open  *record.Step // what comes behind its last visit
		visit int          // where in b.Steps that visit is; -1: it has none
		end   int          // its last entry
	}
	parts := map[*record.Position]*part{}
	for place := range entries {
		e := &entries[place]
		p, first := parts[e.Position], false
		if p == nil {
			p, first = &part{open: &record.Step{Position: e.Position}, visit: -1}, true
			parts[e.Position] = p
			b.positions = append(b.positions, e.Position)
		}
		p.open.Next, p.end = e.Next, place
		p.open.Refused = append(p.open.Refused, source.Keep(e, first)...)
		if e.Fate == Counts {
			p.visit = len(b.Steps)
			b.Visits, b.places, b.Steps = append(b.Visits, e.Visit), append(b.places, place), append(b.Steps, *p.open)
			p.open.Refused = nil
		}
	}
	for _, position := range b.positions {
		if p := parts[position]; p.visit < 0 {
			b.moves, b.ends = append(b.moves, *p.open), append(b.ends, p.end)
		} else {
			last := &b.Steps[p.visit]
			last.Next, last.Refused = p.open.Next, append(last.Refused, p.open.Refused...)
		}
	}
	return b
}
