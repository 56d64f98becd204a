package report

import (
	"cmp"
	"context"
	"slices"

	"footfall/report/draw"
	"footfall/visit"
)

// DeepestTop is how many top pages anybody can ask for, at once or part by part.
const DeepestTop = 10000

// PageBetween is a page and its numbers in a range of days.
type PageBetween struct {
	URI         string `json:"uri"`
	PV          int64  `json:"pv"`
	NewVisitors int64  `json:"new_visitors"`
	Uniques     int64  `json:"uniques"`
	Hot         int64  `json:"hot"`
	Shown       string `json:"shown"` // the URI as people read it
}

// TitledPage is a page as lists have it in which no days are compared.
type TitledPage struct {
	PageBetween
	Title string `json:"title,omitzero"` // what it calls itself; "": it is not known
}

// Page is a page beside its uniques of the days that are compared, now and before; now those of the
// range where none are.
type Page struct {
	PageBetween
	UniquesBefore   int64  `json:"uniques_before"`
	UniquesCompared int64  `json:"uniques_compared"`
	Title           string `json:"title,omitzero"`

	id int64 // orders top pages of the same number
}

func pageOf(p PanelPagesRow) Page {
	numbers := PageBetween{p.Uri, p.Pv, p.NewVisitors, p.Uniques, p.Hot, visit.Shown(p.Uri)}
	return Page{numbers, p.UniquesBefore, p.UniquesCompared, p.Title, p.PageID}
}

// TopPages reads the first N pages of an app, or of one of its sites, in a range by pv, uv (new
// visitors) or hot.
func (r *Reader) TopPages(ctx context.Context, l Look) (Panel[Page], error) {
	if len(l.Where) > 0 {
		return r.pagesWhere(ctx, l)
	}
	top, err := panelOf(ctx, r, "top pages", PanelPages, (*Queries).PanelPages, l)
	return Panel[Page]{convert(top.Rows, pageOf), top.SQL}, err
}

// FindPages reads the pages of a site whose path or title has a part, as they are in the range, ordered as top
// pages are: at most DeepestTop, those that have been visited most in all.
func (r *Reader) FindPages(ctx context.Context, l Look) (Panel[Page], error) {
	l.N = DeepestTop
	found, err := panelOf(ctx, r, "pages by part of path or title", PanelSearch, (*Queries).PanelSearch, l)
	pages := convert(found.Rows, func(f PanelSearchRow) Page { return pageOf(PanelPagesRow(f)) })
	slices.SortStableFunc(pages, func(a, b Page) int { return cmp.Compare(b.number(l.By), a.number(l.By)) })
	return Panel[Page]{pages, found.SQL}, err
}

// PagesAfter reads the first n pages of an app, of one of its sites, or those whose URI begins with a
// prefix or whose path or title has a part, in order of URI after one ("": from the first), and with them those
// that were not visited in the range.
func (r *Reader) PagesAfter(ctx context.Context, l Look, n int) ([]Page, error) {
	if l.N = n; l.Target != "" {
		l.Prefix = l.Target + "/"
	}
	rows, err := ask(ctx, r, "pages", (*Queries).PagesAfter, l)
	return convert(rows, func(f PagesAfterRow) Page { return pageOf(PanelPagesRow(f)) }), err
}

// TopPagesAfter returns the first N top pages after a place, and the place of the last of them if more
// follow. While visits are counted, pages climb: a page that was listed stays before the place and is
// not listed again, and a page that has climbed past the place since is not listed at all.
func (r *Reader) TopPagesAfter(ctx context.Context, l Look) (pages []Page, next *Place, err error) {
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
			return rest[:n], &Place{Before: before + n, Number: last.number(l.By), PageID: last.id}, nil
		}
		if len(top.Rows) < l.N || l.N == DeepestTop {
			return rest, nil, nil
		}
	}
}

func (at Place) precedes(p Page, by string) bool {
	number := p.number(by)
	return at.Before == 0 || number < at.Number || number == at.Number && p.id > at.PageID
}

// number is the one by which pages are ordered.
func (p PageBetween) number(by string) int64 {
	return map[string]int64{"pv": p.PV, "uv": p.NewVisitors, "hot": p.Hot}[by]
}

func (a *Rows) pagesText(s draw.Style, list []TitledPage) string {
	of := a.Look.App
	if a.Look.Target != "" {
		of += ", " + visit.Shown(a.Look.Target)
	}
	if len(list) == 0 {
		return say("%s: nothing was counted %s\n", of, a.Look.In)
	}
	place, by := int64(0), a.Look.By
	pages := draw.Table{
		Columns: []draw.Column{{Name: "#"}, {Name: "PAGE", Gives: true}, {Name: "PV", Bar: by == "pv"}, {Name: "NEW", Bar: by == "uv"},
			{Name: "UNIQUES"}, {Name: "HOT", Bar: by == "hot"}},
		Rows: convert(list, func(p TitledPage) []any {
			place++
			return []any{place, p.Shown, p.PV, p.NewVisitors, told(p.Uniques), told(p.Hot)}
		}),
	}
	if slices.ContainsFunc(list, func(p TitledPage) bool { return p.Title != "" }) {
		pages.Columns = append(pages.Columns, draw.Column{Name: "TITLE", Gives: true})
		for i, p := range list {
			pages.Rows[i] = append(pages.Rows[i], p.Title)
		}
	}
	return say("%s: top pages by %s, %s\n\n", of, by, a.Look.In) + pages.Text(s)
}
