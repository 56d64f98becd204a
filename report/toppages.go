package report

import (
	"cmp"
	"context"
	"slices"

	"footfall/report/draw"
	"footfall/visit"
)

// DeepestTop is the maximum number of top pages that callers can read, in one or several requests.
const DeepestTop = 10000

// PageBetween holds the numbers of a page in a range of days.
type PageBetween struct {
	URI         string `json:"uri"`
	PV          int64  `json:"pv"`
	NewVisitors int64  `json:"new_visitors"`
	Uniques     int64  `json:"uniques"`
	Hot         int64  `json:"hot"`
	Shown       string `json:"shown"` // the URI as shown to people
}

// TitledPage is a page in lists without a comparison.
type TitledPage struct {
	PageBetween
	Title string `json:"title,omitzero"` // the page's own title; "": unknown
}

// Page is a page with its unique visitors in the compared days (UniquesCompared) and in the earlier days (UniquesBefore). If
// no days are compared, UniquesCompared is the number for the whole range.
type Page struct {
	PageBetween
	UniquesBefore   int64  `json:"uniques_before"`
	UniquesCompared int64  `json:"uniques_compared"`
	Title           string `json:"title,omitzero"`

	id int64 // determines the order of pages with the same number
}

func pageOf(p PanelPagesRow) Page {
	numbers := PageBetween{p.Uri, p.Pv, p.NewVisitors, p.Uniques, p.Hot, visit.Shown(p.Uri)}
	return Page{numbers, p.UniquesBefore, p.UniquesCompared, p.Title, p.PageID}
}

// TopPages reads the first l.N pages of an app, or of a site, in a range. They are sorted by pv (daily visitors), uv (new
// visitors) or hot (page views), the highest number first.
func (r *Reader) TopPages(ctx context.Context, l Look) (Panel[Page], error) {
	if len(l.Where) > 0 {
		return r.pagesWhere(ctx, l)
	}
	top, err := panelOf(ctx, r, "top pages", PanelPages, (*Queries).PanelPages, l)
	return Panel[Page]{convert(top.Rows, pageOf), top.SQL}, err
}

// FindPages reads the pages of a site with l.Find in their path or title, sorted like top pages (see TopPages). If more
// than DeepestTop pages match, it returns only the DeepestTop most visited pages of all time.
func (r *Reader) FindPages(ctx context.Context, l Look) (Panel[Page], error) {
	l.N = DeepestTop
	found, err := panelOf(ctx, r, "pages by part of path or title", PanelSearch, (*Queries).PanelSearch, l)
	pages := convert(found.Rows, func(f PanelSearchRow) Page { return pageOf(PanelPagesRow(f)) })
	slices.SortStableFunc(pages, func(a, b Page) int { return cmp.Compare(b.number(l.By), a.number(l.By)) })
	return Panel[Page]{pages, found.SQL}, err
}

// PagesAfter reads n pages in order of URI, starting after l.After. It selects the pages of the app, of the site l.Target, or
// with the URI prefix l.Prefix. If l.Find is not "", it selects only pages with this text in their path or title. It includes
// pages without visits in the range.
func (r *Reader) PagesAfter(ctx context.Context, l Look, n int) ([]Page, error) {
	if l.N = n; l.Target != "" {
		l.Prefix = l.Target + "/"
	}
	rows, err := runQuery(ctx, r, "pages", (*Queries).PagesAfter, l)
	return convert(rows, func(f PagesAfterRow) Page { return pageOf(PanelPagesRow(f)) }), err
}

// TopPagesAfter returns the first l.N top pages after the cursor l.After. next is the cursor for the next call, or nil if no
// page follows. Pages move up in the list while visits are counted. A page that was not listed yet is missed if it moves up
// past the cursor. A page that was already listed is not repeated.
func (r *Reader) TopPagesAfter(ctx context.Context, l Look) (pages []Page, next *Cursor, err error) {
	n := l.N
	for depth := l.After.Before + n + 1; ; depth *= 2 {
		l.N = min(depth, DeepestTop)
		top, err := r.TopPages(ctx, l)
		if err != nil {
			return nil, nil, err
		}
		before := slices.IndexFunc(top.Rows, func(p Page) bool { return l.After.precedes(p, l.By) })
		if before < 0 {
			before = len(top.Rows)
		}
		rest := top.Rows[before:]
		if len(rest) > n {
			last := rest[n-1]
			return rest[:n], &Cursor{Before: before + n, Number: last.number(l.By), PageID: last.id}, nil
		}
		if len(top.Rows) < l.N || l.N == DeepestTop {
			return rest, nil, nil
		}
	}
}

func (at Cursor) precedes(p Page, by string) bool {
	number := p.number(by)
	return at.Before == 0 || number < at.Number || number == at.Number && p.id > at.PageID
}

// number returns the number by which pages are sorted. by is the name of this number: pv, uv or hot.
func (p PageBetween) number(by string) int64 {
	return map[string]int64{"pv": p.PV, "uv": p.NewVisitors, "hot": p.Hot}[by]
}

func (a *Rows) pagesText(s draw.Style, list []TitledPage) string {
	of := a.Look.App
	if a.Look.Target != "" {
		of += ", " + visit.Shown(a.Look.Target)
	}
	if len(list) == 0 {
		return escapedf("%s: nothing was counted %s\n", of, a.Look.In)
	}
	place, by := int64(0), a.Look.By
	pages := draw.Table{
		Columns: []draw.Column{{Name: "#"}, {Name: "PAGE", MayBeCut: true}, {Name: "PV", Bar: by == "pv"}, {Name: "NEW", Bar: by == "uv"},
			{Name: "UNIQUES"}, {Name: "HOT", Bar: by == "hot"}},
		Rows: convert(list, func(p TitledPage) []any {
			place++
			return []any{place, p.Shown, p.PV, p.NewVisitors, orDash(p.Uniques), orDash(p.Hot)}
		}),
	}
	if slices.ContainsFunc(list, func(p TitledPage) bool { return p.Title != "" }) {
		pages.Columns = append(pages.Columns, draw.Column{Name: "TITLE", MayBeCut: true})
		for i, p := range list {
			pages.Rows[i] = append(pages.Rows[i], p.Title)
		}
	}
	return escapedf("%s: top pages by %s, %s\n\n", of, by, a.Look.In) + pages.Text(s)
}
