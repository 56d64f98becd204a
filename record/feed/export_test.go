package feed

import "context"

// ReadChunk reads the next chunk.
func (f *Feed[T]) ReadChunk(ctx context.Context) ([]Entry[T], error) { return f.read(ctx) }

// RecordOnce counts entries, as far as possible without a retry.
func (f *Feed[T]) RecordOnce(ctx context.Context, entries []Entry[T]) error {
	return f.recordOnce(ctx, entries)
}
