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
	Badge        string       // address of a badge for the start page of an example site
	Public       string       // the app's setting for public numbers
	Change       string       // link to change this setting; "" if the reader may not change it
	Site         *report.Site // the most viewed site, as an example; nil if no site was counted yet
}

// Setting returns the name of the setting for public numbers, as a link if the reader may change the setting.
func (page embedPage) Setting() template.HTML {
	if page.Change == "" {
		return page.words().HTML("embed.setting")
	}
	return page.words().HTML("embed.setting-link", "settings", page.Change)
}

// numberAttributes returns the text between the two tag names of an element like <b data-footfall="page.rank"></b>. The script
// replaces the element's content with the number name. more contains further attributes.
func numberAttributes(name, more string) template.HTML {
	return template.HTML(`data-footfall="` + name + `"` + more + `></`) //nolint:gosec // both are constants
}

// rankSentence returns the HTML of an example sentence that shows a visitor's rank.
func rankSentence(l *words.Language) string {
	return `<p data-footfall-sentence hidden>` + string(l.HTML("embed.rank", "rank", "<b "+numberAttributes("page.rank", "")+"b>")) + `</p>`
}

// siteSentence returns the HTML of an example sentence with two numbers of the site. In languages with spaces, it starts a new
// line before the second number.
func siteSentence(l *words.Language) string {
	const locale = ` data-format="locale"`
	text := string(l.HTML("embed.sentence", "times", "<b "+numberAttributes("site.hot", locale)+"b>", "visitors",
		"<b "+numberAttributes("site.uv", locale)+"b>"))
	if at := strings.LastIndex(text, " <b "); at > 0 {
		text = text[:at] + "\n " + text[at:]
	}
	return "  " + text
}

func viewsSentence(l *words.Language) string {
	return string(l.HTML("embed.views", "count", "<span "+numberAttributes("page.hot", ` data-footfall-for="/hello"`)+"span>"))
}

const sitesLooked = 200

// Embed makes the page that shows the HTML to put into the pages of a site. origin is the service's public origin.
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
		page.Change = app.Root + settings + "#public"
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
