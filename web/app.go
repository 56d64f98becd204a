package web

import (
	"cmp"
	"context"
	"html/template"
	"math"
	"slices"

	"footfall/report"
	"footfall/visit"
)

type appPage struct {
	frame
	Heading  heading
	Range    rangeBar
	Columns  []column
	Sites    []siteRow
	Tiles    []tile // of all sites as one; none: there are not several
	Reason   string // why some of them are not known; "": they are
	Source   source
	Cut      bool // there may be more sites
	Part     part
	Compared bool   // there is a column of changes
	InPages  string // the page with what to put into pages; "": the reader has come by a link
}

type column struct {
	Label, Means, Link string
	Chosen             bool
	Class              string
	sort               string // what is ordered by it; "": nothing is
}

type siteRow struct {
	report.SiteBetween
	Name, Link string
	Spark      template.HTML
	Change     change
	compared   bool // it says how much has changed
}

// asOne reads the numbers of all sites as one, each visitor once, from rows of visits; page views are a sum.
func (d *Dashboard) asOne(ctx context.Context, v view, sites []report.SiteBetween, page *appPage) error {
	of, hot := 0, int64(0)
	for _, s := range sites {
		if s.Site != visit.EventSite {
			of, hot = of+1, hot+s.Hot
		}
	}
	if of < 2 {
		return nil
	}
	look := v.look()
	look.Target = ""
	now, err := d.reader.AppNumbers(ctx, look)
	if page.Reason, err = reasonOf(err); err != nil {
		return err
	}
	if page.Reason != "" {
		now = report.Numbers{Uniques: report.Unknown, NewVisitors: report.Unknown, Pv: report.Unknown, Exact: true}
	}
	if now.Hot = hot; page.Cut {
		now.Hot = report.Unknown
	}
	page.Tiles = v.tiles([]report.Numbers{now})
	return nil
}

func (d *Dashboard) appPage(ctx context.Context, v view) (*appPage, error) {
	look, back := v.look(), v.daysBefore()
	sites, err := d.reader.SitesBetween(ctx, look)
	if err != nil {
		return nil, err
	}
	for _, s := range sites.Rows {
		if v.since == 0 || s.FirstDay > 0 && s.FirstDay < v.since {
			v.since, v.began = s.FirstDay, s.FirstDay
		}
	}
	page := &appPage{
		frame: v.frame(), Heading: v.heading(), Source: v.source("sites", sites.SQL),
		Cut: len(sites.Rows) == report.DeepestTop, Compared: look.Before > 0,
	}
	if err := d.asOne(ctx, v, sites.Rows, page); err != nil {
		return nil, err
	}
	first := v.with(func(o *view) { o.skip = 0 })
	page.Range = first.rangeBar()
	if v.app.Shared == nil {
		page.InPages = v.app.Root + "/embed?app=" + v.app.Name
	}
	for _, c := range []struct{ sort, label, means, class string }{
		{"site", "Site", "", ""}, {"", "30 days", "visitors of each", "wide"}, {"today", "Today", "visitors today, so far", ""},
		{"uniques", "Visitors", means["Visitors"], ""}, {"change", "Change", "of visitors", "change"},
		{"pv", "Visits", means["Visits"], "wide"}, {"hot", "Page views", means["Page views"], "wide"},
	} {
		if c.sort == "change" && !page.Compared {
			continue
		}
		to := column{Label: c.label, Means: c.means, Chosen: c.sort == v.sort, Class: c.class}
		if c.sort != "" {
			to.Link = first.with(func(o *view) { o.sort = c.sort }).link()
		}
		page.Columns = append(page.Columns, to)
	}
	for _, s := range sites.Rows {
		c := countedFrom(s.FirstDay, v.app.Today)
		row := siteRow{SiteBetween: s, Name: visit.Shown(s.Site), Link: v.of(s.Site, "").link(), Spark: c.spark(s.Last30Days, "visitors")}
		row.compared = c.of(v.in, back).changes()
		if row.Change = changeOf(s.UniquesCompared, s.UniquesBefore, row.compared); !row.compared && s.FirstDay > 0 {
			row.Change = change{"same", "since " + c.shortly()}
		}
		page.Sites = append(page.Sites, row)
	}
	slices.SortStableFunc(page.Sites, v.order)
	page.Part = v.part(len(page.Sites))
	page.Sites = page.Sites[min(v.skip, len(page.Sites)):min(v.skip+listedRows, len(page.Sites))]
	return page, nil
}

// order is that of sites: names from the first letter, numbers from the highest. Events are no
// site, and last.
func (v view) order(a, b siteRow) int {
	switch {
	case a.Site == visit.EventSite:
		return 1
	case b.Site == visit.EventSite:
		return -1
	}
	switch v.sort {
	case "site":
		return cmp.Compare(a.Name, b.Name)
	case "today":
		return cmp.Compare(b.Today, a.Today)
	case "uniques":
		return cmp.Compare(b.Uniques, a.Uniques)
	case "hot":
		return cmp.Compare(b.Hot, a.Hot)
	case "change":
		return cmp.Compare(growth(b.UniquesCompared, b.UniquesBefore, b.compared), growth(a.UniquesCompared, a.UniquesBefore, a.compared))
	}
	return cmp.Compare(b.Pv, a.Pv)
}

// growth is a change as lists are ordered by it: those that are not compared come last.
func growth(now, before int64, compared bool) float64 {
	if !compared {
		return math.Inf(-1)
	}
	return float64(now-before) / float64(max(before, 1))
}
