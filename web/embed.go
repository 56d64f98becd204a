package web

import (
	"cmp"
	"context"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"footfall/embed"
	"footfall/report"
	"footfall/visit"
	"footfall/web/words"
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

// Setting is what says which numbers pages are told.
func (page embedPage) Setting() template.HTML {
	if page.Change == "" {
		return page.words().HTML("embed.setting")
	}
	return page.words().HTML("embed.setting-link", "settings", page.Change)
}

// placed is a place of a number, as pages have it.
func placed(name, more string) template.HTML {
	return template.HTML(`data-footfall="` + name + `"` + more + `></`) //nolint:gosec // both are written here
}

// rankSentence is one for a page to begin with.
func rankSentence(l *words.Language) string {
	return `<p data-footfall-sentence hidden>` + string(l.HTML("embed.rank", "rank", "<b "+placed("page.rank", "")+"b>")) + `</p>`
}

// siteSentence tells of a site, a number a line where words have spaces between them.
func siteSentence(l *words.Language) string {
	const locale = ` data-format="locale"`
	text := string(l.HTML("embed.sentence", "times", "<b "+placed("site.hot", locale)+"b>", "visitors", "<b "+placed("site.uv", locale)+"b>"))
	if at := strings.LastIndex(text, " <b "); at > 0 {
		text = text[:at] + "\n " + text[at:]
	}
	return "  " + text
}

func viewsSentence(l *words.Language) string {
	return string(l.HTML("embed.views", "count", "<span "+placed("page.hot", ` data-footfall-for="/hello"`)+"span>"))
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
	page.Title = v.say("embed.title") + " · " + page.Title
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
	if l := app.words(); l != words.English() {
		page.Badge += "&label=" + url.QueryEscape(l.Say("embed.badge"))
	}
	return render("embed", page), nil
}
