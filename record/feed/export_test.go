package feed

import "context"

// ReadChunk reads the next chunk.
func (f *Feed[T]) ReadChunk(ctx context.Context) ([]Entry[T], error) { return f.read(ctx) }

// RecordMoved counts entries as if somebody else had moved their positions.
func (f *Feed[T]) RecordMoved(ctx context.Context, entries []Entry[T]) (done bool, err error) {
	b := newBatch(f.Source, entries)
	for i := range b.Steps {
		b.Steps[i].Next = 0
	}
	return f.recordVisits(ctx, entries, b)
}
