package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"footfall/report"
	"footfall/visit"
)

const (
	firstPages = 15  // beside the numbers of a site
	listedRows = 100 // of a list on a page of its own
)

// part is what a page shows of a list, and where there is more of it. Of more than
// report.DeepestTop rows only so many can be put in order.
type part struct {
	Label       string // "": all of it is shown
	First, Next string // links; "": there is none
	Cut         bool   // there are more rows than can be put in order
}

// part is what is shown of a list that has so many rows: from those that are skipped on.
func (v view) part(rows int) (p part) {
	if v.skip == 0 && rows <= listedRows {
		return p
	}
	p.Cut = rows > report.DeepestTop
	rows = min(rows, report.DeepestTop)
	if p.Label = "No more of " + number(int64(rows)); v.skip < rows {
		p.Label = number(int64(v.skip+1)) + " – " + number(int64(min(v.skip+listedRows, rows))) + " of " + number(int64(rows))
	}
	if v.skip > 0 {
		p.First = v.with(func(o *view) { o.skip = 0 }).link()
	}
	if v.skip+listedRows < rows {
		p.Next = v.with(func(o *view) { o.skip += listedRows }).link()
	}
	return p
}

// listed are the pages that a page shows, of all that have been visited, or that are looked for: in
// the chosen order. They are counted no further than DeepestTop, and one more.
func (d *Dashboard) listed(ctx context.Context, v view) (pages report.Panel[report.FirstPage], all int, err error) {
	n := firstPages
	if v.all != "" {
		n = listedRows
	}
	end := min(v.skip+n, report.DeepestTop)
	switch {
	case v.value != "":
		pages, err = d.brought(ctx, v)
		all = len(pages.Rows)
	case v.find != "":
		pages, err = d.reader.FindPages(ctx, v.look(), v.find)
		slices.SortStableFunc(pages.Rows, func(a, b report.FirstPage) int { return cmp.Compare(v.ordered(b), v.ordered(a)) })
		all = len(pages.Rows)
	default:
		pages, err = d.reader.FirstPages(ctx, v.look(), v.by, end)
		if all = len(pages.Rows); err == nil && all == end {
			var visited int64
			visited, err = d.reader.PagesVisited(ctx, v.look(), v.by, report.DeepestTop+1)
			all = int(visited)
		}
	}
	pages.Rows = pages.Rows[min(v.skip, len(pages.Rows)):min(end, len(pages.Rows))]
	return pages, all, err
}

// ordered is the number by which pages are ordered.
func (v view) ordered(p report.FirstPage) int64 {
	return map[string]int64{"pv": p.Pv, "uv": p.NewVisitors, "hot": p.Hot}[v.by]
}

// allPages reads the rows of a file of all pages that have been visited, or that are looked for. As
// many as can be put in order are; where there are more, they come in order of their addresses, which
// does not change while they are read.
func (d *Dashboard) allPages(v view) more {
	after, ordered := "", true
	return func(ctx context.Context) (rows any, follow bool, err error) {
		var first report.Panel[report.FirstPage]
		if ordered && v.find != "" {
			first, err = d.reader.FindPages(ctx, v.look(), v.find)
		} else if ordered {
			first, err = d.reader.FirstPages(ctx, v.look(), v.by, report.DeepestTop)
		}
		if err != nil || ordered && len(first.Rows) < report.DeepestTop {
			return first.Rows, false, err
		}
		ordered = false
		pages, err := d.reader.PagesAfter(ctx, v.look(), v.find, after)
		if follow = len(pages) == report.DeepestTop; follow {
			after = pages[len(pages)-1].Uri
		}
		if v.find == "" {
			pages = slices.DeleteFunc(pages, func(p report.FirstPage) bool { return v.ordered(p) == 0 })
		}
		return pages, follow, err
	}
}

// more reads the rows of a file that follow those that have been read, and tells whether there are
// still more.
type more func(context.Context) (rows any, follow bool, err error)

// file is a file of rows, which are written part by part.
type file struct {
	csv         bool
	begun, rows bool // what has been written
}

// file makes a file of the rows of a panel.
func (v view) file(ctx context.Context, panel, format string, read more) (p Page, err error) {
	f := &file{csv: format == "csv"}
	switch format {
	case "csv":
		p.Type = "text/csv; charset=utf-8; header=present"
	case "json":
		p.Type = "application/json"
	default:
		return p, visit.Errorf(visit.Invalid, "format", "%.64q is none: use csv or json", format)
	}
	p.File = "footfall-" + v.app.Name + "-" + panel + "." + format
	rest := func(ctx context.Context) ([]byte, bool, error) {
		rows, follow, err := read(ctx)
		if err != nil {
			return nil, false, err
		}
		body, err := f.write(rows, !follow)
		return body, follow, err
	}
	var follow bool
	if p.Body, follow, err = rest(ctx); follow {
		p.Rest = rest
	}
	return p, err
}

// write writes rows that follow those that have been written.
func (f *file) write(rows any, last bool) ([]byte, error) {
	begun := f.begun
	f.begun = true
	if f.csv {
		lines := strings.ReplaceAll(report.CSVOf(rows), "\n", "\r\n") // the end of a line in RFC 4180
		if begun {
			_, lines, _ = strings.Cut(lines, "\r\n") // which names the columns
		}
		return []byte(lines), nil
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	list = bytes.TrimSuffix(list[1:], []byte("]"))
	switch {
	case !begun:
		list = append([]byte("["), list...)
	case f.rows && len(list) > 0:
		list = append([]byte(","), list...)
	}
	f.rows = f.rows || len(list) > 1
	if last {
		list = append(list, "]\n"...)
	}
	return list, nil
}
