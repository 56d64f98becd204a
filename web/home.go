package web

import (
	"context"
	"html/template"
	"slices"

	"footfall/embed"
	"footfall/report"
)

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
func (page homePage) Sentence() string { return rankSentence(page.words()) }

// Home makes the first page, of the apps that a reader may look at.
// all pages are.
func (d *Dashboard) Home(ctx context.Context, p Place, apps []App, origin string) (Page, error) {
	page := homePage{frame: frame{Place: p, Title: "Footfall", Home: p.Root + "/", Live: true}, Origin: origin}
	names, today := make([]string, len(apps)), map[string]int32{}
	for i, app := range apps {
		names[i], today[app.Name] = app.Name, app.Today
	}
	rows, err := d.reader.AppsToday(ctx, names)
	if err != nil {
		return Page{}, err
	}
	page.Source = rows.SQL
	for _, app := range rows.Rows {
		page.Apps = append(page.Apps, appRow{app, usualView(App{Place: p, Name: app.App}, "").link(),
			countedFrom(app.FirstDay, today[app.App]).spark(p.words(), app.Last30Days, "views")})
	}
	counted := slices.ContainsFunc(page.Apps, func(a appRow) bool { return a.Sites > 0 })
	if len(page.Apps) > 0 && !counted {
		page.Try = page.Apps[0].App
		page.Line = embed.Line(origin, page.Try)
		page.ByHand = slices.ContainsFunc(apps, func(a App) bool { return a.Name == page.Try && !a.Closed })
	}
	return render("home", page), nil
}
