package web

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

// importedNumbers contains the number of imported days in a range, and sums over these days. A sum is report.Unknown if one of
// these days lacks the number.
type importedNumbers struct {
	days                 int
	visitors, fresh, hot int64
}

// readImported reads the imported days of the view's range, and of the earlier days that the chart adds to a short range. If
// imported days start before v.since, readImported moves v.since back. Under a filter, imported numbers are not available.
func (d *Dashboard) readImported(ctx context.Context, v *view) (err error) {
	if v.site == "" || len(v.where) > 0 {
		return nil
	}
	in := visit.Range{From: min(v.days.From, visit.LastDays(chartedDays, v.days.To).From), To: v.days.To}
	v.importedDays, err = d.reader.ImportedDays(ctx, report.Look{App: v.app.Name, Target: v.target(), In: in})
	if err != nil || v.since > 0 {
		if len(v.importedDays) > 0 {
			v.since = min(v.since, v.importedDays[0].Day)
		}
		return err
	}
	v.since, err = d.firstImported(ctx, *v)
	return err
}

// firstImported returns the first day with imported numbers of the view's site or page, or 0 if it has no imported numbers.
func (d *Dashboard) firstImported(ctx context.Context, v view) (int32, error) {
	first, err := d.reader.ImportedDays(ctx, report.Look{App: v.app.Name, Target: v.target(), In: visit.AllDays, N: 1})
	if len(first) == 0 {
		return 0, err
	}
	return first[0].Day, err
}

// fillImportedOnly fills the page of a site or page that Footfall had not counted by the end of the range. It fills in only
// imported numbers. If there are no imported numbers either, it only sets page.Never.
func (d *Dashboard) fillImportedOnly(ctx context.Context, v view, page *targetPage) error {
	first, err := d.firstImported(ctx, v)
	if page.Never, page.Alone = first == 0, first > 0; page.Never {
		return err
	}
	page.setTiles(v, []report.Numbers{{Exact: true}})
	page.Heading.Compared, page.Numbers = "", ""
	return cmp.Or(d.chart(ctx, v, page), d.readImportedPages(ctx, v, page))
}

// addImportedSites adds the sites that have imported numbers but were never counted by Footfall. until contains a text for each
// added site, which names the source of its numbers and its last imported day.
func (d *Dashboard) addImportedSites(ctx context.Context, v view, sites *report.Panel[report.SiteBetween],
) (until map[string]string, err error) {
	told, err := d.reader.HistorySites(ctx, v.app.Name, report.DeepestTop)
	until = map[string]string{}
	for _, s := range told {
		until[s.Site] = v.importedUntilText(s.Source, s.Day)
		sites.Rows = append(sites.Rows, report.SiteBetween{Site: s.Site, Today: report.Unknown, Uniques: report.Unknown, Pv: report.Unknown,
			Hot: report.Unknown})
	}
	return until, err
}

// readImportedPages reads the imported numbers of a site's pages in the range, and adds the list of these pages. The list has all
// pages if v.fullPanel is "told", or else only the first ones.
func (d *Dashboard) readImportedPages(ctx context.Context, v view, page *targetPage) error {
	if v.path != "" || v.sumImported(v.stretch().In).days == 0 {
		return nil
	}
	told, err := d.reader.HistoryPages(ctx, v.look())
	rows, found := told.Rows, len(told.Rows)
	made := &list{ID: "told-pages", Class: "main", Title: v.say("history.pages"), Kind: "pages", From: source{SQL: told.SQL},
		Columns: v.columnsOf(v.say("pages.page"), "pv", "numbers.visits", "hot", "numbers.views")}
	made.Columns[2].Chosen = true
	if v.fullPanel == "told" {
		made.Part, made.Links = v.part(found), []option{{Label: v.say("layout.skip"), Link: page.Numbers}}
		rows = rows[min(v.skip, found):min(v.skip+listedRows, found)]
	} else if rows = rows[:min(firstPages, found)]; found > firstPages {
		all := v.copyWith(func(o *view) { o.fullPanel, o.skip = "told", 0 }).link()
		made.Links = []option{{Label: v.say("parts.all", "count", found), Link: all}}
	}
	for _, p := range rows {
		name := strings.TrimPrefix(visit.Shown(p.Uri), visit.Shown(v.site))
		link := v.withTarget(v.site, strings.TrimPrefix(p.Uri, v.site)).link()
		made.add(v, row{Name: name, Link: link, Stored: p.Uri, Bar: bar("rank", p.Hot, rows[0].Hot)}, map[string]any{"pv": p.Pv, "hot": p.Hot})
	}
	if len(made.Rows) > 0 {
		page.Told = made
	}
	return err
}

func (v view) sumImported(in visit.Range) (t importedNumbers) {
	for _, d := range v.importedDays {
		if d.Day >= in.From && d.Day <= in.To {
			t = importedNumbers{t.days + 1, report.Plus(t.visitors, d.Pv), report.Plus(t.fresh, d.NewVisitors), report.Plus(t.hot, d.Hot)}
		}
	}
	return t
}

// uncounted reports whether a range has neither counted nor imported numbers. For the page of all sites, it returns false,
// because this page does not read imported days.
func (v view) uncounted(in visit.Range) bool {
	return v.site != "" && (v.countedSince == 0 || in.To < v.countedSince) && v.sumImported(in).days == 0
}

// importedSources returns the sources of the imported days in a range. last contains the last of these days for each source.
func (v view) importedSources(in visit.Range) (sources []string, last map[string]int32) {
	last = map[string]int32{}
	for _, d := range v.importedDays {
		if d.Day >= in.From && d.Day <= in.To {
			if last[d.Source] == 0 {
				sources = append(sources, d.Source)
			}
			last[d.Source] = d.Day
		}
	}
	return sources, last
}

func (v view) importedUntilText(source string, until int32) string {
	l := v.app.words()
	return l.Say("history.until", "source", l.Translate(visit.CountedBy(source)), "day", l.LongDay(until))
}

// addTo adds the imported numbers t to the counted numbers n. days is the length of the range. For more than one day, the number
// of visitors is then unknown, because imports do not record which visitors returned on another day.
func (t importedNumbers) addTo(n report.Numbers, days int) report.Numbers {
	if t.days == 0 {
		return n
	}
	n.Pv, n.Hot, n.NewVisitors = report.Plus(n.Pv, t.visitors), report.Plus(n.Hot, t.hot), report.Plus(n.NewVisitors, t.fresh)
	if n.Uniques, n.Exact = report.Unknown, true; days == 1 {
		n.Uniques = t.visitors
	}
	return n
}

// setTiles sets the page's tiles from rows and the imported numbers. rows contains counted numbers: those of the range first,
// then those to compare. Imported numbers are added only to those of the range.
func (page *targetPage) setTiles(v view, rows []report.Numbers) {
	told := v.sumImported(v.stretch().In)
	page.OnlySums = page.OnlySums || told.days > 0
	rows[0] = told.addTo(rows[0], v.stretch().In.Days())
	page.Tiles = v.tiles(rows)
	told.explain(v, page.Tiles)
}

// explain writes into each tile which part of its number is imported, or why the number is unavailable.
func (t importedNumbers) explain(v view, tiles []tile) {
	if t.days == 0 {
		return
	}
	for name, of := range map[string]int64{"visitors": t.visitors, "new": t.fresh, "visits": t.visitors, "views": t.hot} {
		at := slices.IndexFunc(tiles, func(t tile) bool { return t.Name == v.say("numbers."+name) })
		switch {
		case at < 0:
		case name == "visitors" && v.stretch().In.Days() > 1:
			tiles[at].Means = v.say("history.uniques")
		case of == report.Unknown:
			tiles[at].Means = v.say("history.not-told")
		default:
			tiles[at].Means = v.say("history.part", "number", v.number(of))
		}
	}
}

// addImported adds imported numbers to the chart's table (c.Bars) and to the chart's drawn bars (plotted).
func (c *chart) addImported(v view, plotted []draw.PlotBar) {
	if c.ByHour || len(c.Bars) == 0 {
		return
	}
	l, all := v.app.words(), visit.Range{From: c.Bars[0].FirstDay, To: c.Bars[len(c.Bars)-1].LastDay}
	sources, last := v.importedSources(all)
	for _, source := range sources {
		c.Told = append(c.Told, v.importedUntilText(source, last[source]))
	}
	if sum := v.sumImported(all); sum.visitors == report.Unknown && !c.Views {
		c.ToldViews = c.Shows[1].Link
	}
	c.NoHours = v.path == "" && v.stretch().In.Days() == 1 && v.sumImported(v.stretch().In).days > 0
	for i := range c.Bars {
		b, plot := &c.Bars[i], &plotted[i]
		in := visit.Range{From: b.FirstDay, To: b.LastDay}
		t := v.sumImported(in)
		if t.days == 0 {
			continue
		}
		if plot.None {
			plot.None, b.Visitors, b.NewVisitors, b.Pv, b.Hot = false, 0, 0, 0, 0
		}
		plot.Imported = max(map[bool]int64{false: t.visitors, true: t.hot}[c.Views], 0)
		names, _ := v.importedSources(in)
		for i, source := range names {
			names[i] = l.Translate(visit.CountedBy(source))
		}
		text := l.Say("history.bar", "sources", strings.Join(names, v.say("sentences.comma")), "visitors", v.number(t.visitors),
			"views", v.number(t.hot))
		if plot.Label += v.say("sentences.semicolon") + text; b.Pv+b.Hot == 0 {
			plot.Label = b.Label + v.say("sentences.colon") + text
		}
		n := t.addTo(report.Numbers{Uniques: b.Visitors, NewVisitors: b.NewVisitors, Pv: b.Pv, Hot: b.Hot}, in.Days())
		b.Visitors, b.NewVisitors, b.Hot = n.Uniques, n.NewVisitors, n.Hot
	}
	if v.countedSince == 0 || all.To < v.countedSince { // no day in the chart was counted by Footfall
		c.Summary = ""
	}
}

// legend returns the entries of the chart's legend: one for each series that occurs in the bars.
func (c *chart) legend(v view, plotted []draw.PlotBar, by string) (series []option) {
	put := func(mark, key string, has func(draw.PlotBar) bool, places ...any) {
		if slices.ContainsFunc(plotted, has) {
			series = append(series, option{Key: mark, Label: v.say(key, places...)})
		}
	}
	fresh, others := "chart.new", "history.others"
	switch {
	case c.Views:
		fresh = "chart.views"
	case by != periods[0]:
		others = "history.others-added"
	}
	put("new", fresh, func(b draw.PlotBar) bool { return b.New > 0 })
	put("back", "chart.returning", func(b draw.PlotBar) bool { return b.Visitors > b.New })
	put("before", "chart.visitors-before", func(b draw.PlotBar) bool { return b.Compared }, "when", c.Before)
	put("others", others, func(b draw.PlotBar) bool { return b.Imported > 0 })
	put("none", "history.no-count", func(b draw.PlotBar) bool { return b.None })
	return series
}
