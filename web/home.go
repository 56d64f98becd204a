package web

import (
	"context"
	"fmt"
	"html/template"
	"slices"

	"footfall/embed"
	"footfall/report"
	"footfall/report/draw"
)

// homePage is where everybody begins.
type homePage struct {
	frame
	Apps   []appRow
	Source string // the statement
	Origin string // of this service
	Line   string // for the pages of the app to begin with
	Try    string // that app, nothing having been counted yet; "": something was
	ByHand bool   // it believes anybody who says who came
}

type appRow struct {
	report.AppToday
	Link  string
	Spark template.HTML
}

// Sentence is one for a page to begin with.
func (homePage) Sentence() string { return embed.Sentence }

// Home makes the first page, of the apps that a reader may look at.
func (d *Dashboard) Home(ctx context.Context, apps []App, origin string) (Page, error) {
	page := homePage{frame: frame{Title: "Footfall", Home: "/", Live: true}, Origin: origin}
	names := make([]string, len(apps))
	for i, app := range apps {
		names[i] = app.Name
		page.Leave = page.Leave || app.Closed
	}
	rows, err := d.reader.AppsToday(ctx, names)
	if err != nil {
		return Page{}, err
	}
	page.Source = rows.SQL
	for _, app := range rows.Rows {
		said := fmt.Sprintf("30 days: from %s to %s page views a day", number(slices.Min(app.Last30Days)), number(slices.Max(app.Last30Days)))
		page.Apps = append(page.Apps, appRow{app, view{app: App{Name: app.App}, span: usualSpan, compare: compares[0], chart: charts[0], by: orders[0], sort: sorts[0]}.link(),
			template.HTML(draw.Spark(said, app.Last30Days))}) //nolint:gosec // draw escapes what it is given
	}
	counted := slices.ContainsFunc(page.Apps, func(a appRow) bool { return a.Sites > 0 })
	if len(page.Apps) > 0 && !counted {
		page.Try = page.Apps[0].App
		page.Line = embed.Line(origin, page.Try)
		page.ByHand = slices.ContainsFunc(apps, func(a App) bool { return a.Name == page.Try && !a.Closed })
	}
	return render("home", page)
}
