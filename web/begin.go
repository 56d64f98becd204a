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

// zones lists the time zones to choose from: UTC, and the zones of the tz database that have the name of a place.
//
//go:embed zones.txt
var zones string

// Zones returns the time zones to choose from.
func Zones() []string { return strings.Fields(zones) }

// NewSite contains the values in the form for a new site.
type NewSite struct {
	Host, Zone, Visitor string
	Numbers             bool // the pages of the site will show numbers
	Typed               bool // a user has submitted the form and entered these values
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

// choice is a value in a list on a page. Means is the key of the text that describes the value.
type choice struct{ Value, Means string }

// visitors lists the ways in which an app can distinguish visitors. The first one is the default.
var visitors = []choice{
	{"hashed", "new.hashed"},
	{"browser", "new.browser"},
	{"daily", "new.daily"},
	{"address", "new.address"},
}

// regionOf returns the translated name of a region, which is the first part of a time zone's name, such as Europe. The region ""
// contains a zone that is not in Zones: the server's zone, or the zone that a user entered.
func regionOf(l *words.Language, name string) string {
	if name == "" {
		return l.Say("regions.here")
	}
	return l.Say("regions." + strings.ToLower(name))
}

// New makes the page where an owner adds a site. problem is the error in the submitted form, or nil.
func New(p Place, site NewSite, problem *visit.Error) Page {
	page := newPage{frame: frame{Place: p, Title: p.say("new.title"), Home: p.Root + "/"}, NewSite: site, Visitors: visitors,
		Problem: p.errorText(problem)}
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

// Seen describes what an instance has received from an app's pages while the app waits for its first counted visit: the last
// visit that was not counted, and the last time when a page loaded the script.
type Seen struct {
	Refused string // site of the last visit that was not counted
	Why     string // unlisted, origin (sent by a page of another site), listed (added since then), or why it was skipped
	At      time.Time
	Loaded  time.Time // when a page last loaded the script; zero if no page has loaded it
}

type waitingPage struct {
	frame
	App, Line, Origin string
	Generators        []choice
	Seen              Seen
	First             string // the first counted page; "" if there is none yet
	Numbers           string // link to the numbers of the site to which the page First belongs
	At, Loaded        string // times of day (15:04). At: of the first visit, or without one of Seen.At. Loaded: of Seen.Loaded
	MayChange, Tells  bool
}

// Sentence returns the HTML of an example sentence, to copy into a page.
func (page waitingPage) Sentence() string { return rankSentence(page.words()) }

// generators are the common site generators. Means is the key of the text that explains where to put the script tag.
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

// Waiting makes the page that shows the script tag and waits for the first visit. origin is the service's public origin.
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
		page.Numbers = app.linkToNumbers([]report.Site{{Site: site}})
		return render("waiting", page), nil
	}
	page.Live, page.At = true, seen.At.In(app.Zone).Format("15:04")
	if !seen.Loaded.IsZero() {
		page.Loaded = seen.Loaded.In(app.Zone).Format("15:04")
	}
	return render("waiting", page), nil
}

// linkToNumbers returns the link to the app's only counted site. If the app has several sites, or none, it returns the link to
// the list of sites.
func (a App) linkToNumbers(sites []report.Site) string {
	sites = slices.DeleteFunc(sites, func(s report.Site) bool { return s.Site == visit.EventSite || s.Site == visit.OtherSite })
	if len(sites) != 1 {
		return usualView(a, "").link()
	}
	return usualView(a, sites[0].Site).link()
}

// Only returns the link to the numbers of the only app in apps. It returns "" if apps contains several apps or none, or if the
// app has no numbers.
func (d *Dashboard) Only(ctx context.Context, apps []App) (string, error) {
	if len(apps) != 1 {
		return "", nil
	}
	sites, err := d.reader.Sites(ctx, apps[0].Name, "", 4) // two of the 4 may be pseudo-sites, which linkToNumbers ignores
	if err != nil {
		return "", err
	}
	told, err := d.reader.HistorySites(ctx, apps[0].Name, 2)
	if err != nil || len(sites)+len(told) == 0 {
		return "", err
	}
	for _, s := range told {
		sites = append(sites, report.Site{Site: s.Site})
	}
	return apps[0].linkToNumbers(sites), nil
}
