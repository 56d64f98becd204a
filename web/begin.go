package web

import (
	"context"
	_ "embed" // for zones.txt
	"slices"
	"strings"
	"time"

	"footfall/embed"
	"footfall/report"
	"footfall/visit"
	"footfall/web/words"
)

// zones are the time zones that can be chosen: those of the tz database that are named after places.
//
//go:embed zones.txt
var zones string

// Zones are all of them.
func Zones() []string { return strings.Fields(zones) }

// NewSite is what the form of a new site says.
type NewSite struct {
	Host, Zone, Visitor string
	Numbers             bool // its pages show numbers
	Typed               bool // and not yet as it is offered
}

type newPage struct {
	frame
	NewSite
	Zones    []zoneGroup
	Visitors []choice
	Problem  string
}

type zoneGroup struct {
	Region string
	Names  []string
}

// choice is a value, and what is said of it.
type choice struct{ Value, Means string }

// visitors are the ways to tell visitors apart that are offered, the usual one first.
var visitors = []choice{
	{"hashed", "new.hashed"},
	{"browser", "new.browser"},
	{"daily", "new.daily"},
	{"address", "new.address"},
}

// regionOf is a part of the world, as time zones are named after it; "": where the service is.
func regionOf(l *words.Language, name string) string {
	if name == "" {
		return l.Say("regions.here")
	}
	return l.Say("regions." + strings.ToLower(name))
}

// New makes the page on which an owner says which site is counted. The problem is with what was typed;
// nil: nothing was yet.
func New(p Place, site NewSite, problem *visit.Error) Page {
	page := newPage{frame: frame{Place: p, Title: p.say("new.title"), Home: p.Root + "/"}, NewSite: site, Visitors: visitors,
		Problem: p.fault(problem)}
	for _, name := range Zones() {
		region, _, _ := strings.Cut(name, "/")
		if last := len(page.Zones) - 1; last < 0 || page.Zones[last].Region != region {
			page.Zones = append(page.Zones, zoneGroup{Region: region})
		}
		group := &page.Zones[len(page.Zones)-1]
		group.Names = append(group.Names, name)
	}
	if !slices.Contains(Zones(), site.Zone) {
		page.Zones = append([]zoneGroup{{Region: "", Names: []string{site.Zone}}}, page.Zones...)
	}
	return render("new", page)
}

// Seen is what an instance has seen of the pages of an app of which nothing was counted yet.
type Seen struct {
	Refused string // the site of the last visit that was refused, or skipped
	Why     string // unlisted, listed (meanwhile), origin, or why it was skipped
	At      time.Time
	Loaded  time.Time // when a page that is counted has loaded the script last; zero: none has
}

type waitingPage struct {
	frame
	App, Line, Origin string
	Generators        []choice
	Seen              Seen
	First             string // the page that was counted first; "": none was yet
	Numbers           string // the page with its numbers
	At, Loaded        string // times of the day
	MayChange, Tells  bool
}

// Sentence is one for a page to begin with.
func (page waitingPage) Sentence() string { return rankSentence(page.words()) }

// generators are where the line goes for those that people use.
var generators = []choice{
	{"Hugo", "waiting.hugo"},
	{"Hexo", "waiting.hexo"},
	{"Jekyll", "waiting.jekyll"},
	{"WordPress", "waiting.wordpress"},
	{"Ghost", "waiting.ghost"},
	{"Astro", "waiting.astro"},
	{"VitePress", "waiting.vitepress"},
	{"Next.js", "waiting.nextjs"},
}

// Waiting makes the page that has the line for the pages of an app, and waits for the first visit. origin
// is where people reach the service.
func (d *Dashboard) Waiting(ctx context.Context, app App, origin string, seen Seen, mayChange bool) (Page, error) {
	page := waitingPage{
		frame: frame{Place: app.Place, Title: app.say("waiting.title"), Home: app.Root + "/"}, App: app.Name,
		Line: embed.Line(origin, app.Name), Origin: origin, Generators: generators, Seen: seen, MayChange: mayChange, Tells: app.Tells(),
	}
	first, err := d.reader.FirstPage(ctx, app.Name)
	if err != nil {
		return Page{}, err
	}
	if first != nil {
		site, path, _ := strings.Cut(first.Uri, "/")
		if page.First = "/" + path; site == visit.EventSite {
			page.First = path
		}
		page.At = first.At.In(app.Zone).Format("15:04")
		page.Numbers = app.opensAt([]report.Site{{Site: site}})
		return render("waiting", page), nil
	}
	page.Live, page.At = true, seen.At.In(app.Zone).Format("15:04")
	if !seen.Loaded.IsZero() {
		page.Loaded = seen.Loaded.In(app.Zone).Format("15:04")
	}
	return render("waiting", page), nil
}

// opensAt leads to the one site of an app that was counted, or to all that it has.
func (a App) opensAt(sites []report.Site) string {
	sites = slices.DeleteFunc(sites, func(s report.Site) bool { return s.Site == visit.EventSite || s.Site == visit.OtherSite })
	if len(sites) != 1 {
		return usualView(a, "").link()
	}
	return usualView(a, sites[0].Site).link()
}

// Only leads to the numbers of the only app; "": there are several apps, or none, or nobody has counted
// anything for it.
func (d *Dashboard) Only(ctx context.Context, apps []App) (string, error) {
	if len(apps) != 1 {
		return "", nil
	}
	sites, err := d.reader.Sites(ctx, apps[0].Name, "", 4) // beside which two are no sites
	if err != nil {
		return "", err
	}
	told, err := d.reader.ToldSites(ctx, apps[0].Name, 2)
	if err != nil || len(sites)+len(told) == 0 {
		return "", err
	}
	for _, s := range told {
		sites = append(sites, report.Site{Site: s.Site})
	}
	return apps[0].opensAt(sites), nil
}
