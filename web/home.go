package web

import (
	"cmp"
	"slices"
	"strings"

	"footfall/embed"
	"footfall/report"
)

type homePage struct {
	frame
	Apps   list
	Origin string // public origin of this service
	Line   string // script tag for the app's pages
	Try    string // the first app if nothing was counted yet, or else ""
	Away   string // names of the unavailable cells, joined with commas
	ByHand bool   // show a visit with curl, because callers without a key may send the address of a visitor
}

// Sentence returns the HTML of an example sentence, to copy into a page.
func (page homePage) Sentence() string { return rankSentence(page.words()) }

// Home makes the start page, with the apps that the reader may see. away contains the names of the cells that are unavailable
// now. A cell is a database with some of the apps.
func Home(p Place, apps []App, rows report.Panel[report.AppToday], away []string, origin string) Page {
	page := homePage{frame: frame{Place: p, Title: "Footfall", Home: p.Root + "/", Live: true}, Origin: origin}
	today := map[string]int32{}
	for _, app := range apps {
		today[app.Name] = app.Today
	}
	page.Away = strings.Join(away, p.say("sentences.comma"))
	slices.SortFunc(rows.Rows, func(a, b report.AppToday) int { return cmp.Compare(a.App, b.App) })
	v := view{app: App{Place: p}}
	page.Apps = list{Kind: "sites", From: source{SQL: rows.SQL}, Columns: v.columnsOf(p.say("home.app"), "spark", "ranges.30d",
		"today", "home.views-today", "sites", "home.sites", "zone", "home.days-in")}
	page.Apps.Columns[1].Class, page.Apps.Columns[4].Class = "n wide", "wide"
	for _, app := range rows.Rows {
		page.Apps.add(v, row{Name: app.App, Link: usualView(App{Place: p, Name: app.App}, "").link()}, map[string]any{
			"spark": countedFrom(app.FirstDay, today[app.App]).spark(p.words(), app.Last30Days, "views"),
			"today": app.Today, "sites": app.Sites, "zone": app.Tz})
	}
	counted := slices.ContainsFunc(rows.Rows, func(a report.AppToday) bool { return a.Sites > 0 })
	if len(rows.Rows) > 0 && !counted && len(away) == 0 {
		page.Try = rows.Rows[0].App
		page.Line = embed.Line(origin, page.Try)
		page.ByHand = slices.ContainsFunc(apps, func(a App) bool { return a.Name == page.Try && !a.Closed })
	}
	return render("home", page)
}
