package web

import (
	"cmp"
	"html/template"
	"slices"
	"strings"

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
	Away   string // cells whose apps are not known now
	ByHand bool   // it believes anybody who says who came
}

type appRow struct {
	report.AppToday
	Link  string
	Spark template.HTML
}

// Sentence is one for a page to begin with.
func (page homePage) Sentence() string { return rankSentence(page.words()) }

// Home makes the first page, of the apps that a reader may look at. away are the cells whose apps are not
// known now.
func Home(p Place, apps []App, rows report.Panel[report.AppToday], away []string, origin string) Page {
	page := homePage{frame: frame{Place: p, Title: "Footfall", Home: p.Root + "/", Live: true}, Origin: origin}
	today := map[string]int32{}
	for _, app := range apps {
		today[app.Name] = app.Today
	}
	page.Source, page.Away = rows.SQL, strings.Join(away, ", ")
	slices.SortFunc(rows.Rows, func(a, b report.AppToday) int { return cmp.Compare(a.App, b.App) })
	for _, app := range rows.Rows {
		page.Apps = append(page.Apps, appRow{app, usualView(App{Place: p, Name: app.App}, "").link(),
			countedFrom(app.FirstDay, today[app.App]).spark(p.words(), app.Last30Days, "views")})
	}
	counted := slices.ContainsFunc(page.Apps, func(a appRow) bool { return a.Sites > 0 })
	if len(page.Apps) > 0 && !counted && len(away) == 0 {
		page.Try = page.Apps[0].App
		page.Line = embed.Line(origin, page.Try)
		page.ByHand = slices.ContainsFunc(apps, func(a App) bool { return a.Name == page.Try && !a.Closed })
	}
	return render("home", page)
}
