package web

import (
	"cmp"
	"context"
	"net/url"
	"slices"

	"footfall/embed"
	"footfall/report"
	"footfall/visit"
)

type embedPage struct {
	frame
	App          string
	Line, Pinned string
	Badge        string       // its address, of the first page of a site
	Public       string       // the numbers that anybody is told
	Change       string       // where that is changed; "": the reader may not
	Site         *report.Site // with whose numbers the example is; nil: nothing was counted yet
}

const sitesLooked = 200

// Embed makes the page that says what to put into other pages. origin is where people reach the
// service.
func (d *Dashboard) Embed(ctx context.Context, app App, origin string) (Page, error) {
	v, err := newView(app, "", nil)
	if err != nil {
		return Page{}, err
	}
	page := embedPage{
		frame: v.frame(), App: app.Name,
		Line: embed.Line(origin, app.Name), Pinned: embed.PinnedLine(origin, app.Name), Public: app.Public,
	}
	if settings := "/settings/" + app.Name; app.Reader.Settings == settings {
		page.Change = app.Root + settings + "#counting"
	}
	page.Title = "In your pages · " + page.Title
	sites, err := d.reader.Sites(ctx, app.Name, "", sitesLooked)
	if err != nil {
		return Page{}, err
	}
	example := cmp.Or(app.Site, "blog.example")
	sites = slices.DeleteFunc(sites, func(s report.Site) bool { return s.Site == visit.EventSite || s.Site == visit.OtherSite })
	if len(sites) > 0 {
		site := slices.MaxFunc(sites, func(a, b report.Site) int { return int(a.Hot - b.Hot) })
		page.Site = &site
		example = site.Site
	}
	page.Badge = origin + "/badge/" + app.Name + ".svg?uri=" + url.QueryEscape("https://"+example+"/")
	return render("embed", page), nil
}
