package intake

import (
	"context"

	"footfall/counter"
	"footfall/record/feed"
)

// Decide converts item to a visit, and stores the visit in e. It also sets the fate of e, so that the feed counts, skips or
// refuses the visit.
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
