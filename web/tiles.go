package web

import (
	"context"
	"slices"

	"footfall/report"
)

// allTime reads the all-time totals if the range of the view is all days. It sets page.AllTime only if the totals include
// offsets, which are numbers counted elsewhere.
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

// tiles returns the page's tiles, each with a number of the range. rows contains the numbers of the range first, and with a
// comparison the numbers of the earlier days last. If only a part of the range is compared, the numbers of this part are between
// them. On a single day, visits equal visitors, so there is no tile for visits.
func (v view) tiles(rows []report.Numbers) []tile {
	now := rows[0]
	one := func(name string, of func(report.Numbers) int64) tile {
		t := tile{Name: v.say("numbers." + name), Means: v.say("means." + name), Number: v.number(of(now))}
		if len(rows) == 1 || slices.ContainsFunc(rows, func(n report.Numbers) bool { return of(n) == report.Unknown }) {
			return t
		}
		compared, was := of(rows[len(rows)-2]), of(rows[len(rows)-1])
		if t.Change = changeOf(v.app.words(), compared, was, true); t.Change.FromNothing {
			return t
		}
		t.Before = v.say("numbers.from", "was", v.number(was))
		if len(rows) > 2 {
			t.Before, t.Full = v.say("numbers.without-today"), v.say("numbers.from-to", "was", v.number(was), "is", v.number(compared))
		}
		return t
	}
	tiles := []tile{
		one("visitors", func(n report.Numbers) int64 { return n.Uniques }),
		one("new", func(n report.Numbers) int64 { return n.NewVisitors }),
		one("views", func(n report.Numbers) int64 { return n.Hot }),
	}
	if v.path != "" {
		tiles[1].Means = v.say("means.new-page")
	}
	if now.Uniques < 0 {
		if tiles[0].Means = v.say("means.unknown"); v.path != "" { // this page is the sum of all deleted pages
			tiles[0].Means = v.say("means.unknown-hashed")
		}
	}
	if now.Hot < 0 {
		tiles[2].Means = v.say("means.views-unknown")
	}
	if !now.Exact {
		tiles[0].Means = v.say("means.estimated", "percent", v.app.words().Percent(2, 0))
	}
	if v.ofEvents() {
		tiles[1].Means = v.say("means.new-event")
		tiles[2].Name, tiles[2].Means = v.say("did.events"), v.say("means.events")
	}
	if v.stretch().In.Days() > 1 {
		tiles = slices.Insert(tiles, 2, one("visits", func(n report.Numbers) int64 { return n.Pv }))
	}
	return tiles
}

// head reads the title of the view's page. For a site, it reads the number of visitors on the site now instead.
func (d *Dashboard) head(ctx context.Context, v view, h *heading) (err error) {
	if v.path != "" {
		h.Title, err = d.reader.TitleOf(ctx, v.app.Name, v.target())
		return err
	}
	if len(v.where) == 0 && h.Today && !v.ofEvents() {
		var here report.Panel[report.Here]
		if here, err = d.reader.Here(ctx, v.look()); err == nil {
			h.Here = visitorsIn(v.app.words(), here.Rows[0].Visitors)
		}
	}
	return err
}
