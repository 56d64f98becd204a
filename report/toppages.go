package report

import (
	"context"
	"slices"

	"footfall/report/draw"
	"footfall/visit"
)

// DeepestTop is how many top pages anybody can ask for, at once or part by part.
const DeepestTop = 10000

// Page is a page and its numbers in a range of days.
type Page struct {
	URI         string `json:"uri"`
	PV          int64  `json:"pv"`
	NewVisitors int64  `json:"new_visitors"`
	Uniques     int64  `json:"uniques"`
	Hot         int64  `json:"hot"`
	Shown       string `json:"shown"` // the URI as people read it

	id int64 // orders top pages of the same number
}

// TopPages returns the first n pages of an app, or of one of its sites, in a range by "pv", "uv"
// (new visitors) or "hot".
func (r *Reader) TopPages(ctx context.Context, app, site string, in visit.Range, by string, n int) ([]Page, error) {
	p := PagesTopParams{App: app, FromDay: in.From, ToDay: in.To, N: int32(n), By: by} //nolint:gosec // at most DeepestTop
	if site != "" {
		p.Site = &site
	}
	rows, err := ask(ctx, r, "top pages", (*Queries).PagesTop, p)
	return convert(rows, func(p PagesTopRow) Page {
		return Page{URI: p.Uri, PV: p.Pv, NewVisitors: p.NewVisitors, Uniques: p.Uniques, Hot: p.Hot, Shown: visit.Shown(p.Uri), id: p.PageID}
	}), err
}

// PagesByURI returns the first n pages of an app whose URI begins with a prefix, in order of URI,
// after the one named (none: from the first), with their numbers in a range. The pages of a site
// begin with its name and a slash.
func (r *Reader) PagesByURI(ctx context.Context, app, prefix, after string, in visit.Range, n int) ([]Page, error) {
	p := PagesAfterParams{App: app, Prefix: prefix, After: after, FromDay: in.From, ToDay: in.To, N: int32(n)} //nolint:gosec // a page of an answer
	rows, err := ask(ctx, r, "pages", (*Queries).PagesAfter, p)
	return convert(rows, func(p PagesAfterRow) Page {
		return Page{URI: p.Uri, PV: p.Pv, NewVisitors: p.NewVisitors, Uniques: p.Uniques, Hot: p.Hot, Shown: visit.Shown(p.Uri)}
	}), err
}

// Place is where a list of top pages continues: after the page that was the last one of its
// previous part. The zero value is the beginning.
type Place struct {
	Before int   // how many pages were listed up to that page
	Number int64 // the number by which that page was ordered
	PageID int64
}

// TopPagesAfter returns the first n top pages after a place, and the place of the last of them if
// more follow. While visits are counted, pages climb: a page that was listed stays before the place
// and is not listed again, and a page that has climbed past the place since is not listed at all.
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

func (a Place) precedes(p Page, by string) bool {
	number := p.number(by)
	return a.Before == 0 || number < a.Number || number == a.Number && p.id > a.PageID
}

func (p Page) number(by string) int64 {
	switch by {
	case "uv":
		return p.NewVisitors
	case "hot":
		return p.Hot
	}
	return p.PV
}

type top struct {
	App         string `json:"app"`
	Site        string `json:"site,omitempty"`
	visit.Range        // of days
	By          string `json:"by"` // pv, uv (new visitors) or hot
	Pages       []Page `json:"pages"`
}

// Top makes an answer of TopPages.
func (r *Reader) Top(ctx context.Context, app, site string, in visit.Range, by string, n int) (Answer, error) {
	pages, err := r.TopPages(ctx, app, site, in, by, n)
	return top{app, site, in, by, pages}, err
}

func (a top) rows() ([]string, [][]any) { return table(a.Pages) }

func (a top) text(s draw.Style) string {
	of := a.App
	if a.Site != "" {
		of += ", " + visit.Shown(a.Site)
	}
	if len(a.Pages) == 0 {
		return say("%s: nothing was counted %s\n", of, a.Range)
	}
	place := int64(0)
	pages := draw.Table{
		Columns: []draw.Column{{Name: "#"}, {Name: "PAGE", Gives: true}, {Name: "PV", Bar: a.By == "pv"}, {Name: "NEW", Bar: a.By == "uv"},
			{Name: "UNIQUES"}, {Name: "HOT", Bar: a.By == "hot"}},
		Rows: convert(a.Pages, func(p Page) []any {
			place++
			return []any{place, p.Shown, p.PV, p.NewVisitors, p.Uniques, p.Hot}
		}),
	}
	return say("%s: first pages by %s, %s\n\n", of, a.By, a.Range) + pages.Text(s)
}
