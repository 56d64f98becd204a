package web

import (
	"context"
	"slices"

	"footfall/report"
)

// allTime reads what is shown of all time, where that is asked for, and a part of it is from elsewhere.
func (d *Dashboard) allTime(ctx context.Context, v view, page *targetPage) error {
	if v.span != "all" {
		return nil
	}
	totals, err := d.reader.Totals(ctx, v.look())
	if err == nil && len(totals.Rows) > 0 && totals.Rows[0].Hot > totals.Rows[0].CountedHot {
		page.AllTime, page.AllTimeFrom = &totals.Rows[0], v.source("totals", totals.SQL)
	}
	return err
}

// tiles are those of the numbers of a range, of those of its days that are compared, unless they are
// all, and of the days before, unless none are. On a single day visits are visitors.
func (v view) tiles(rows []report.Numbers) []tile {
	now := rows[0]
	one := func(name string, of func(report.Numbers) int64) tile {
		t := tile{Name: name, Means: means[name], Number: number(of(now))}
		if len(rows) == 1 {
			return t
		}
		compared, was := of(rows[len(rows)-2]), of(rows[len(rows)-1])
		if t.Change = changeOf(compared, was, true); t.Change.Text == fromNothing {
			return t
		}
		t.Before = "from " + number(was)
		if len(rows) > 2 {
			t.Before, t.Full = "without today", "from "+number(was)+" to "+number(compared)
		}
		return t
	}
	tiles := []tile{
		one("Visitors", func(n report.Numbers) int64 { return n.Uniques }),
		one("New", func(n report.Numbers) int64 { return n.NewVisitors }),
		one("Page views", func(n report.Numbers) int64 { return n.Hot }),
	}
	if v.path != "" {
		tiles[1].Means = "new to this page"
	}
	if now.Uniques < 0 {
		tiles[0].Means = "not known of all of these days"
	}
	if now.Hot < 0 {
		tiles[2].Means = "how often somebody came on a day is not kept"
	}
	if !now.Exact {
		tiles[0].Means = "each counted once, estimated within 2" + thin + "%"
	}
	if v.stretch().In.Days() > 1 {
		tiles = slices.Insert(tiles, 2, one("Visits", func(n report.Numbers) int64 { return n.Pv }))
	}
	return tiles
}

// head reads who is on a site now, or what a page calls itself.
func (d *Dashboard) head(ctx context.Context, v view, h *heading) (err error) {
	if v.path != "" {
		h.Title, err = d.reader.TitleOf(ctx, v.app.Name, v.target())
		return err
	}
	if len(v.where) == 0 && h.Today {
		var here report.Panel[report.Here]
		if here, err = d.reader.Here(ctx, v.look()); err == nil {
			h.Here = count(here.Rows[0].Visitors, "visitor")
		}
	}
	return err
}
