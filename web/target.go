package web

import (
	"context"
	"fmt"
	"html/template"
	"strings"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

// targetPage is the page of a site, or of one of its pages.
type targetPage struct {
	frame
	Heading     heading
	Range       rangeBar
	Nobody      bool // nothing was counted in the range
	Never       bool // nor at any time
	Tiles       []tile
	NumbersFrom source
	AllTime     *report.Totals // with what was counted elsewhere; nil: nothing was
	AllTimeFrom source
	Who         string // link to who came; "": the reader may not see it
	Chart       chart
	Mix         mix
	Pages       []pageRow // of a site
	PagesBy     []option
	Find        search
	PagesFrom   source
	All         string // what leads to all of them, where there are more
	AllPages    string // link to that
	Part        part   // of all
	Numbers     string // link to the numbers, from all pages; "": they are here
	IsSite      bool
	Returns     []returnRow
	ReturnsFrom source
	Latest      []report.FirstVisit
	Round       []report.FirstVisit
	FirstsFrom  source
}

// heading is what a page is about.
type heading struct {
	Name, Stored  string
	Open          string // where it can be opened; "": nowhere
	Range, Before string // the days, in words; Before "": compared with none
	Zone          string
	Today         bool // they include today
}

// tile is one of the four numbers.
type tile struct {
	Name, Means string
	Number      string
	Change      change
	Before      string
}

// mix is who came: those who were new, and those who had been there before.
type mix struct {
	New, Back int64
	Drawing   template.HTML
}

type chart struct {
	Said    string
	Title   string
	Drawing template.HTML
	Views   bool // it shows page views
	Shows   []option
	By      []option
	Before  string // what the line is; "": there is none
	Bars    []barRow
	Notes   []note
	Source  source
}

type barRow struct {
	Said string
	report.Period
	Noted string
}

type pageRow struct {
	report.FirstPage
	Name   string // without the site
	Link   string
	Bar    template.HTML
	Change change
}

// search is the form by which pages are found.
type search struct {
	Part   string // "": nothing is looked for
	Action string
	Keeps  [][2]string
	All    string // the link to the first pages
}

type returnRow struct {
	report.Returned
	Part string
	Bar  template.HTML
}

// option is one of several ways to look at something.
type option struct {
	Said, Link string
	Chosen     bool
	Key        string // that leads to it; "": none
}

const firstVisits = 4

// targetRows reads the rows of one panel.
func (d *Dashboard) targetRows(ctx context.Context, v view, panel string) (rows any, rest more, err error) {
	look := v.look()
	switch panel {
	case "numbers":
		p, err := d.reader.Numbers(ctx, look)
		return p.Rows, nil, err
	case "totals":
		p, err := d.reader.Totals(ctx, look.App, look.Target)
		return p.Rows, nil, err
	case "chart":
		if _, err := d.begins(ctx, &v); err != nil {
			return nil, nil, err
		}
		p, err := d.chartRows(ctx, v)
		return p.Rows, nil, err
	case "returns":
		p, err := d.reader.ReturnedAfter(ctx, look)
		return p.Rows, nil, err
	case "first-visits":
		p, err := d.reader.FirstVisits(ctx, look.App, look.Target, firstVisits)
		return p.Rows, nil, err
	case "pages", "search":
		if v.path == "" && (panel == "search") == (v.find != "") {
			return d.allPages(ctx, v)
		}
	}
	return nil, nil, noPanel(panel)
}

// begins reads the numbers, and lets a range of all days begin with the first that was counted.
func (d *Dashboard) begins(ctx context.Context, v *view) (report.Panel[report.Numbers], error) {
	p, err := d.reader.Numbers(ctx, v.look())
	if v.in.From == visit.AllDays.From {
		v.in.From = v.in.To
		if len(p.Rows) > 0 {
			v.in.From = p.Rows[0].FirstDay
		}
	}
	return p, err
}

func (d *Dashboard) chartRows(ctx context.Context, v view) (report.Panel[report.Period], error) {
	look := v.look()
	in, by, _ := v.charted()
	look.In = in
	return d.reader.Chart(ctx, look, by)
}

func (d *Dashboard) targetPage(ctx context.Context, v view) (*targetPage, error) {
	asked := v.with(func(o *view) { o.skip = 0 })
	numbers, err := d.begins(ctx, &v)
	if err != nil {
		return nil, err
	}
	page := &targetPage{
		frame: v.frame(), Heading: v.heading(), Range: asked.rangeBar(), IsSite: v.path == "",
		Nobody: true, Never: len(numbers.Rows) == 0, NumbersFrom: v.source("numbers", numbers.SQL),
	}
	if page.Never {
		return page, nil
	}
	if v.all {
		page.Numbers = asked.with(func(o *view) { o.all = false }).link()
		return page, d.pages(ctx, v, page)
	}
	now := numbers.Rows[0]
	page.Nobody = now.Hot == 0
	if v.app.Names {
		page.Who = asked.with(func(o *view) { o.who, o.find = true, "" }).link()
	}
	page.Tiles = tilesOf(numbers.Rows)
	page.Mix = mix{New: now.NewVisitors, Back: max(now.Uniques-now.NewVisitors, 0)}
	page.Mix.Drawing = template.HTML(draw.Parts(page.Mix.New, page.Mix.Back)) //nolint:gosec // numbers alone
	if err := d.allTime(ctx, v, page); err != nil {
		return nil, err
	}
	if err := d.chart(ctx, v, asked, page); err != nil {
		return nil, err
	}
	if page.IsSite {
		if err := d.pages(ctx, v, page); err != nil {
			return nil, err
		}
	}
	return page, d.visitors(ctx, v, page)
}

// allTime reads what is shown of all time, where a part of it is from elsewhere: of the days there
// are numbers of their own.
func (d *Dashboard) allTime(ctx context.Context, v view, page *targetPage) error {
	totals, err := d.reader.Totals(ctx, v.app.Name, v.target())
	if err == nil && len(totals.Rows) > 0 && totals.Rows[0].Hot > totals.Rows[0].CountedHot {
		page.AllTime, page.AllTimeFrom = &totals.Rows[0], v.source("totals", totals.SQL)
	}
	return err
}

func tilesOf(rows []report.Numbers) []tile {
	now, before := rows[0], report.Numbers{}
	if len(rows) > 1 {
		before = rows[1]
	}
	one := func(name string, n, was int64) tile {
		t := tile{Name: name, Means: means[name], Number: number(n), Change: changeOf(n, was, len(rows) > 1)}
		if len(rows) > 1 && t.Change.Said != fromNothing {
			t.Before = number(was)
		}
		return t
	}
	tiles := []tile{
		one("Visitors", now.Uniques, before.Uniques),
		one("New", now.NewVisitors, before.NewVisitors),
		one("Daily visitors", now.PV, before.PV),
		one("Page views", now.Hot, before.Hot),
	}
	if !now.Exact {
		tiles[0].Means = "each counted once, estimated within 2" + thin + "%"
	}
	return tiles
}

func (d *Dashboard) chart(ctx context.Context, v, asked view, page *targetPage) error {
	rows, err := d.chartRows(ctx, v)
	if err != nil {
		return err
	}
	in, by, may := v.charted()
	c := chart{Said: chartSaid(rows.Rows, by, v.app.Today), Title: "Visitors by " + by, Source: asked.with(func(o *view) { o.period = v.period }).source("chart", rows.SQL)}
	if c.Views = v.chart == charts[1]; c.Views {
		c.Said, c.Title = viewsSaid(rows.Rows, by), "Page views by "+by
	}
	for i, said := range []string{"visitors", "page views"} {
		c.Shows = append(c.Shows, option{said, asked.with(func(o *view) { o.chart = charts[i] }).link(), v.chart == charts[i], ""})
	}
	if in != v.in {
		c.Title += ", and the days before"
	}
	for _, period := range may {
		c.By = append(c.By, option{period, asked.with(func(o *view) { o.period = period }).link(), period == by, ""})
	}
	back := v.daysBefore()
	if back > 0 {
		c.Before = count(int64(back), "day") + " earlier"
	}
	plot := draw.Plot{Compared: back > 0 && !c.Views}
	for _, b := range rows.Rows {
		said, notes := periodSaid(b, by), notesOf(b)
		c.Bars = append(c.Bars, barRow{said, b, strings.Join(b.Notes, "; ")})
		c.Notes = append(c.Notes, notes...)
		told := fmt.Sprintf("%s: %s, %s of them new; %s", said, count(b.Visitors, "visitor"), number(b.NewVisitors), count(b.Hot, "page view"))
		if back > 0 {
			told += fmt.Sprintf("; %s: %s", c.Before, number(b.VisitorsBefore))
		}
		told += strings.TrimSuffix("."+noted(notes), ".")
		bar := draw.PlotBar{
			Name: barName(b, by), Said: told, Visitors: b.Visitors, New: b.NewVisitors, Before: b.VisitorsBefore, Beside: b.FirstDay < v.in.From, Noted: len(notes) > 0,
		}
		if c.Views {
			bar.Visitors, bar.New, bar.Before = b.Hot, b.Hot, 0
		}
		plot.Bars = append(plot.Bars, bar)
	}
	c.Said += noted(c.Notes)
	plot.Said = c.Said
	var out strings.Builder
	err = draw.WritePlot(&out, plot)
	c.Drawing = template.HTML(out.String()) //nolint:gosec // draw escapes what it is given
	page.Chart = c
	return err
}

func (d *Dashboard) pages(ctx context.Context, v view, page *targetPage) error {
	first := v.with(func(o *view) { o.skip = 0 })
	action, _, _ := strings.Cut(v.link(), "?")
	page.Find = search{Part: v.find, Action: action, Keeps: v.keeps("find", "skip"), All: first.with(func(o *view) { o.find = "" }).link()}
	panel := "pages"
	if v.find != "" {
		panel = "search"
	}
	for _, by := range []struct{ name, said string }{{"pv", "daily visitors"}, {"uv", "new"}, {"hot", "page views"}} {
		page.PagesBy = append(page.PagesBy, option{by.said, first.with(func(o *view) { o.by = by.name }).link(), v.by == by.name, ""})
	}
	listed, all, err := d.listed(ctx, v)
	if err != nil {
		return err
	}
	page.PagesFrom = v.source(panel, listed.SQL)
	switch {
	case v.all:
		page.Part = v.part(all)
	case all > report.DeepestTop:
		page.All, page.AllPages = "All, more than "+number(report.DeepestTop), v.with(func(o *view) { o.all = true }).link()
	case all > firstPages:
		page.All, page.AllPages = "All "+number(int64(all)), v.with(func(o *view) { o.all = true }).link()
	}
	most := int64(0) // the bar of the first page of the list is full
	for _, p := range listed.Rows {
		most = max(most, v.ordered(p))
	}
	for _, p := range listed.Rows {
		path := strings.TrimPrefix(p.URI, v.site)
		page.Pages = append(page.Pages, pageRow{
			FirstPage: p, Name: strings.TrimPrefix(visit.Shown(p.URI), visit.Shown(v.site)), Link: v.of(v.site, path).link(),
			Bar:    template.HTML(draw.Share("rank", v.ordered(p), most)), //nolint:gosec // numbers alone
			Change: changeOf(p.Uniques, p.UniquesBefore, v.daysBefore() > 0),
		})
	}
	return nil
}

// visitors reads who comes back, and who came first.
func (d *Dashboard) visitors(ctx context.Context, v view, page *targetPage) error {
	returns, err := d.reader.ReturnedAfter(ctx, v.look())
	if err != nil {
		return err
	}
	page.ReturnsFrom = v.source("returns", returns.SQL)
	sum, most := int64(0), int64(0)
	for _, r := range returns.Rows {
		sum, most = sum+r.Visitors, max(most, r.Visitors)
	}
	for _, r := range returns.Rows {
		if sum > 0 {
			page.Returns = append(page.Returns, returnRow{r, share(r.Visitors, sum), template.HTML(draw.Share("after", r.Visitors, most))}) //nolint:gosec // numbers alone
		}
	}
	first, err := d.reader.FirstVisits(ctx, v.app.Name, v.target(), firstVisits)
	if err != nil {
		return err
	}
	page.FirstsFrom = v.source("first-visits", first.SQL)
	for _, f := range first.Rows {
		if f.IsRound {
			page.Round = append(page.Round, f)
		} else {
			page.Latest = append(page.Latest, f)
		}
	}
	return nil
}
