package web

import (
	"cmp"
	"context"
	"slices"

	"footfall/report"
)

const (
	firstPages = 10  // maximum rows of a list on a site's page
	listedRows = 100 // maximum rows of a list that has a page of its own
)

// part describes which rows of a list the page shows, and has links to more rows. Only the first report.DeepestTop rows of a list
// can be shown.
type part struct {
	Label       string // which rows are shown, in words; "" if the page shows all rows
	First, Next string // links to the first rows and the next rows, or ""
	Cut         bool   // the list has more than report.DeepestTop rows
}

// part returns the part of a list that the page shows: up to listedRows rows, after the first v.skip rows. rows is the length of
// the whole list.
func (v view) part(rows int) (p part) {
	if v.skip == 0 && rows <= listedRows {
		return p
	}
	p.Cut = rows > report.DeepestTop
	rows = min(rows, report.DeepestTop)
	if p.Label = v.say("parts.no-more", "count", rows); v.skip < rows {
		p.Label = v.say("parts.of", "first", v.skip+1, "last", min(v.skip+listedRows, rows), "count", rows)
	}
	if v.skip > 0 {
		p.First = v.copyWith(func(o *view) { o.skip = 0 }).link()
	}
	if v.skip+listedRows < rows {
		p.Next = v.copyWith(func(o *view) { o.skip += listedRows }).link()
	}
	return p
}

// toNumbers returns the link from the page with all rows of a list to the page with numbers. It returns "" on the page with
// numbers itself.
func (v view) toNumbers() string {
	if v.fullPanel == "" {
		return ""
	}
	return v.copyWith(func(o *view) { o.fullPanel = "" }).link()
}

// readListedPages returns the rows of the list of pages that the page shows, in the chosen order. The whole list has all visited
// pages, or those that match a search, or those to which a source or campaign brought visitors. all is the length of the whole
// list, at most DeepestTop + 1.
func (d *Dashboard) readListedPages(ctx context.Context, v view) (pages report.Panel[report.Page], all int, err error) {
	n := firstPages
	if v.fullPanel != "" {
		n = listedRows
	}
	end := min(v.skip+n, report.DeepestTop)
	look := v.look()
	switch look.N = end; {
	case v.value != "":
		pages, err = d.readTagPages(ctx, v)
	case v.find != "":
		pages, err = d.reader.FindPages(ctx, look)
	case len(v.where) > 0, v.sortedBy == byChange:
		look.N = report.DeepestTop
		if pages, err = d.reader.TopPages(ctx, look); v.sortedBy == byChange {
			grown := v.stretch().changes()
			slices.SortStableFunc(pages.Rows, func(a, b report.Page) int {
				return cmp.Compare(growth(b.UniquesCompared, b.UniquesBefore, grown), growth(a.UniquesCompared, a.UniquesBefore, grown))
			})
		}
	default:
		if pages, err = d.reader.TopPages(ctx, look); err == nil && len(pages.Rows) == end {
			var visited int64
			look.N = report.DeepestTop + 1
			visited, err = d.reader.PagesVisited(ctx, look)
			all = int(visited)
		}
	}
	all = max(all, len(pages.Rows))
	pages.Rows = pages.Rows[min(v.skip, len(pages.Rows)):min(end, len(pages.Rows))]
	return pages, all, err
}

// barOf returns the number that a page's bar shows. It is the number by which the list is sorted, or the visits if the list is
// sorted by change.
func (v view) barOf(p report.Page) int64 {
	switch v.pagesOrder() {
	case "hot":
		return p.Hot
	case "uv":
		return p.NewVisitors
	}
	return p.PV
}

// panelReport returns the name and the parameters of the report that reads a panel's rows. The CSV and JSON files of the panel
// use this report. The name is "" if the view has no such panel.
func (v view) panelReport(panel string) (name string, look report.Look) {
	look = v.look()
	switch {
	case v.site == "":
		name, look = v.appPanelReport(panel)
	case v.showsVisitors:
		if panel == "who" {
			name = "who-came"
		}
	case slices.Contains([]string{"numbers", "totals", "returns", "first-visits"}, panel):
		name = panel
	case panel == "chart" && !v.byHour() && len(v.importedDays) > 0: // the report days includes imported days and their source
		name, look = "days", report.Look{App: look.App, Target: look.Target, In: v.chartLook().In, OfSite: look.OfSite, History: true}
	case panel == "chart" && !v.byHour():
		name, look = "chart", v.chartLook()
	case panel == "hours" && v.byHour():
		name, look.Name, look.Before, look.Compared = "tags", hourly, v.daysBefore(), look.In
	case (panel == "pages" || panel == "search") && v.path == "" && (panel == "search") == (v.find != ""):
		name = "pages"
	case panel == "from" || panel == "with":
		if look.Name = v.chosenTag(panel); look.Name != "" {
			name = "tags"
		}
	case panel == "events" && v.path == "" && !v.app.ofOneSite():
		name = "events"
	case panel == "one-page" && v.path == "":
		name = "one-page"
	case panel == "goals" || panel == "goal" || panel == "funnel":
		name, look = v.reachedPanelReport(panel, look)
	case panel == "tag-pages" && v.value != "":
		name, look.Name, look.Value = "tag-pages", v.fromBy, v.value
	}
	return name, look
}

// appPanelReport is panelReport for the page of all sites of an app.
func (v view) appPanelReport(panel string) (name string, look report.Look) {
	switch look = v.look(); panel {
	case "sites":
		name, look = "sites-between", v.sitesLook()
	case "numbers", "pages", "events":
		name = panel
	case "chart":
		name, look = panel, v.chartLook()
	case "from", "with":
		if look.Name = v.chosenTag(panel); look.Name != "" {
			name = "tags"
		}
	}
	return name, look
}

type source struct {
	CSV, JSON string // links to the files
	SQL       string
}

// source returns the links to the files with a panel's rows. The links lead to the API. But a reader with a shared link may have
// no access to the API, so for this reader they are below the path of the shared link.
func (v view) source(panel, sql string) source {
	name, look := v.panelReport(panel)
	if name == "" || v.app.Shared != nil {
		return source{v.link("panel", panel, "format", "csv"), v.link("panel", panel, "format", "json"), sql}
	}
	link := v.app.Root + "/api/apps/" + v.app.Name + "/" + name + "?"
	query := report.FindReport(name).Query(look)
	query.Set("format", "csv")
	csv := link + query.Encode()
	query.Set("format", "json")
	return source{csv, link + query.Encode(), sql}
}
