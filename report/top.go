package report

import (
	"context"
	"slices"

	"footfall/visit"
)

// DeepestTop is how many top pages there are at most, however they are asked for.
const DeepestTop = 10000

// Place is where a list of top pages goes on: after the page that was the last one then. The zero value is the beginning.
type Place struct {
	Before int   // pages there were up to it
	Number int64 // its number
	PageID int64 // its own
}

// TopPagesAfter are the first n top pages after a place, and the place of the last one if more follow. While visits are counted,
// pages climb: one that was told stays before its place and is not told again; one that has overtaken the place meanwhile is not told.
func (r *Reader) TopPagesAfter(ctx context.Context, app, site string, in visit.Range, by string, after Place, n int) (pages []Page, next *Place, err error) {
	for depth := after.Before + n + 1; ; depth *= 2 {
		depth = min(depth, DeepestTop)
		top, err := r.TopPages(ctx, app, site, in, by, depth)
		if err != nil {
			return nil, nil, err
		}
		before := slices.IndexFunc(top, func(p Page) bool { return after.precedes(p, by) })
		if before < 0 {
			before = len(top)
		}
		rest := top[before:]
		if len(rest) > n {
			last := rest[n-1]
			return rest[:n], &Place{Before: before + n, Number: last.number(by), PageID: last.id}, nil
		}
		if len(top) < depth || depth == DeepestTop {
			return rest, nil, nil
		}
	}
}

// precedes reports whether a page comes after the place.
func (a Place) precedes(p Page, by string) bool {
	number := p.number(by)
	return a.Before == 0 || number < a.Number || number == a.Number && p.id > a.PageID
}

// number is the one by which pages are ordered.
func (p Page) number(by string) int64 {
	switch by {
	case "uv":
		return p.NewVisitors
	case "hot":
		return p.Hot
	}
	return p.PV
}
