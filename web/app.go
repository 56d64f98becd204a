package web

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"slices"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

// appPage is the page of an app: all of its sites.
type appPage struct {
	frame
	Heading heading
	Range   rangeBar
	Columns []column
	Sites   []siteRow
	Source  source
	Cut     bool // there may be more sites
	Part    part
	InPages string // the page with what to put into pages; "": the reader has come by a link
}

// column is one by which sites may be ordered.
type column struct {
	Said, Means, Link string
	Chosen            bool
	Class             string
}

type siteRow struct {
	report.SiteBetween
	Name, Link string
	Spark      template.HTML
	Change     change
}

func (d *Dashboard) appPage(ctx context.Context, v view) (*appPage, []report.SiteBetween, error) {
	sites, err := d.reader.SitesBetween(ctx, v.look())
	if err != nil {
		return nil, nil, err
	}
	page := &appPage{frame: v.frame(), Heading: v.heading(), Source: v.source("sites", sites.SQL), Cut: len(sites.Rows) == report.DeepestTop}
	first := v.with(func(o *view) { o.skip = 0 })
	page.Range = first.rangeBar()
	if v.app.Shared == nil {
		page.InPages = "/embed?app=" + v.app.Name
	}
	compared := v.daysBefore() > 0
	for _, c := range []struct{ sort, said, means, class string }{
		{"site", "Site", "", ""}, {"", "30 days", "visitors of each", "wide"}, {"today", "Today", "visitors today, so far", ""},
		{"uniques", "Visitors", means["Visitors"], ""}, {"change", "Change", "of visitors", "change"},
		{"pv", "Daily visitors", means["Daily visitors"], "wide"}, {"hot", "Page views", means["Page views"], "wide"},
	} {
		if c.sort == "change" && !compared {
			continue
		}
		to := column{Said: c.said, Means: c.means, Chosen: c.sort == v.sort, Class: c.class}
		if c.sort != "" {
			to.Link = first.with(func(o *view) { o.sort = c.sort }).link()
		}
		page.Columns = append(page.Columns, to)
	}
	for _, s := range sites.Rows {
		least, most := slices.Min(s.Last30Days), slices.Max(s.Last30Days)
		said := fmt.Sprintf("30 days: from %s to %s visitors a day", number(least), number(most))
		page.Sites = append(page.Sites, siteRow{
			SiteBetween: s, Name: visit.Shown(s.Site), Link: v.of(s.Site, "").link(),
			Spark:  template.HTML(draw.Spark(said, s.Last30Days)), //nolint:gosec // draw escapes what it is given
			Change: changeOf(s.Uniques, s.UniquesBefore, compared),
		})
	}
	slices.SortStableFunc(page.Sites, v.order)
	page.Part = v.part(len(page.Sites))
	page.Sites = page.Sites[min(v.skip, len(page.Sites)):min(v.skip+listedRows, len(page.Sites))]
	return page, sites.Rows, nil
}

// order is that of sites: names from the first letter, numbers from the highest.
func (v view) order(a, b siteRow) int {
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
		return cmp.Compare(growth(b), growth(a))
	}
	return cmp.Compare(b.PV, a.PV)
}

func growth(s siteRow) float64 {
	return float64(s.Uniques-s.UniquesBefore) / float64(max(s.UniquesBefore, 1))
}
