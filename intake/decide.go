package intake

import (
	"context"

	"footfall/counter"
	"footfall/record/feed"
)

// Decide converts item to a visit, stores the visit in e, and sets the fate of e.
func Decide[T any](ctx context.Context, g *counter.Counting, item counter.Item, e *feed.Entry[T]) error {
	v, skipped, err := g.Visit(ctx, item)
	e.Visit = v
	switch {
	case err != nil:
		return e.Refuse(err)
	case skipped != "":
		e.Fate, e.Why = feed.Skipped, skipped
	default:
		e.Fate = feed.Counts
	}
	return nil
}
