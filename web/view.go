package web

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"footfall/report"
	"footfall/visit"
)

// App is an app whose numbers the reader of a page may see.
type App struct {
	Place
	Name    string
	Today   int32          // current day in Zone
	Hour    int            // current hour in Zone
	Zone    *time.Location // the app's time zone
	Closed  bool           // not public, so only signed-in users can see the app
	Names   bool           // the reader may see the list of visitors
	Several bool           // the app may have several sites
	Site    string         // the first host in the app's list of sites, or ""
	Goals   []string       // the app's goals, written as conditions
	Public  string         // the setting for public numbers: off, answers, read or count
	Shared  *Share         // nil if the reader has not opened a shared link

	// CountriesBy returns the author and licence of the country database, or "". The function is nil if there is no database.
	CountriesBy func() string

	tags        map[string][]string // names of the recorded tags, by tag panel (from or with); the first is the default
	noCountries bool                // the app records the tag country, but has no value of it
}

// Tells reports whether the setting for public numbers lets the pages of the app's sites show numbers.
func (a App) Tells() bool { return a.Public != "off" }

// Share describes a shared link.
type Share struct {
	Base  string // path of the link; the link's pages are below this path
	Site  string // the only visible site; "" if all sites are visible
	Embed bool   // shown in a frame on another site
}

// home returns the path of the app's first page, and the site that this page shows. The site is "" if the page shows all sites.
func (a App) home() (path, site string) {
	if a.Shared != nil {
		return a.Shared.Base, a.Shared.Site
	}
	return a.Root + "/dash/" + a.Name, ""
}

// ofOneSite reports whether a shared link shows only one site of the app.
func (a App) ofOneSite() bool { return a.Shared != nil && a.Shared.Site != "" }

// view is the state of a page. The page's address contains the whole state, except the fields that are read from the database.
type view struct {
	app  App
	site string // "" means all sites of the app
	path string // path of a page, with a slash in front; "" if the view is about the site

	span          string      // name of the range, such as 30d; "" if the reader typed days
	days          visit.Range // days of the range; if span is "all", all days up to today
	since         int32       // first day with counted or imported numbers; 0 if there is none, or before it is read
	countedSince  int32       // first day counted by Footfall; 0 if there is none
	minute        int32       // minute of countedSince when counting started; -1 if unknown, or if this day is not in the range
	compare       string
	chart         string // numbers in the chart: visitors or views
	period        string // length of a bar's period, such as day; "" if it depends on the range
	sortedBy      string // order of the list of pages: a number, or change, which also sorts the values of tags
	more          bool   // lists show all columns
	sort          string // order of the list of sites
	find          string // part of paths or titles to search pages for, or ""
	showsVisitors bool   // shows the list of visitors
	after         string // the list of visitors starts after this visitor; "" to start with the first
	fullPanel     string // panel whose rows the page lists completely; "" on the page with numbers
	skip          int    // rows to skip in a list
	fromBy        string // tag that the panel "from" shows
	withBy        string // tag that the panel "with" shows
	goal          string // goal whose page is shown, or ""
	goalBy        string // day, or the tag by which the goal's numbers are split
	funnel        bool   // shows a funnel
	steps         []string
	fields        int    // number of input fields for the steps of the funnel
	onePage       bool   // shows how many visitors saw only one page
	value         string // list only pages to which this value of the tag fromBy brought visitors; "" for all pages

	importedDays []report.HistoryDay // imported days in the range, and among the earlier days that the chart adds
	where        []string            // conditions that filter the visitors
	taggedSince  int32               // the tags of all visitors are recorded from this day on; 0 if they are recorded on all days
	erased       int64               // number of (visitor, day) pairs of erased visitors, which filters leave out

	filtered *report.Filtered // the filtered numbers; nil if the view has no filter, or before they are read
}

// hourly is the period of a chart of one day, with a bar for each hour. It is also the name of the tag for the hour of a visit.
const hourly = "hour"

const byChange = "change" // the order by relative change, the highest first

// These are the possible values of query parameters. The first value is the default.
var (
	compares = []string{"before", "right", "year", "none"}
	charts   = []string{"visitors", "views"}
	periods  = []string{"day", "week", "month", hourly}
	orders   = []string{"pv", "hot", "uv", "change"}
	sorts    = []string{"pv", "site", "today", "uniques", "change", "hot"}
	fromTags = []string{"source", "campaign", "country", "language"}
)

// usualView returns the view of a site with default values. The site "" means all sites of the app.
func usualView(a App, site string) view {
	return view{app: a, site: site, span: usualSpan, compare: compares[0], chart: charts[0], sortedBy: orders[0], sort: sorts[0]}
}

// readWho reads from the query whether the list of visitors is requested, and at which position. It fails if the reader may not
// see the list.
func (v *view) readWho(q url.Values) error {
	if v.showsVisitors = q.Has("who") && v.site != ""; !v.showsVisitors {
		return nil
	}
	if v.after = q.Get("after"); !v.app.Names {
		return visit.Errorf(visit.Forbidden, "who", "only people who are signed in can see the visitors")
	}
	return nil
}

// say returns a text in the language of the page.
func (v view) say(key string, places ...any) string { return v.app.words().Say(key, places...) }

func (v view) number(n int64) string { return number(v.app.words(), n) }

// newView reads a view from the site and the query of an address. It ignores unknown parameters.
func newView(app App, site string, q url.Values) (v view, err error) {
	v = view{app: app, site: site, path: q.Get("page"), minute: -1, more: q.Get("columns") == "more"}
	if v.path != "" && (v.path[0] != '/' || len(v.path) > mostPath || !utf8.ValidString(v.path) || strings.ContainsRune(v.path, 0)) {
		return v, visit.Errorf(visit.Invalid, "page", "it is not the path of a page: it must begin with a slash, like /home")
	}
	if v.path != "" && site == "" {
		return v, visit.Errorf(visit.Invalid, "page", "only a site has pages: open the site first")
	}
	for _, choice := range []struct {
		name string
		of   []string
		into *string
	}{
		{"compare", compares, &v.compare}, {"chart", charts, &v.chart}, {"by", orders, &v.sortedBy}, {"sort", sorts, &v.sort},
		{"from_by", app.tags["from"], &v.fromBy}, {"with_by", app.tags["with"], &v.withBy},
	} {
		if len(choice.of) == 0 {
			continue
		}
		if *choice.into = q.Get(choice.name); *choice.into == "" {
			*choice.into = choice.of[0]
		}
		if !slices.Contains(choice.of, *choice.into) {
			return v, visit.Errorf(visit.Invalid, choice.name, "%.64q is not possible: use %s", *choice.into, strings.Join(choice.of, ", "))
		}
	}
	if v.find = strings.TrimSpace(q.Get("find")); len(v.find) > mostFind || !utf8.ValidString(v.find) || strings.ContainsRune(v.find, 0) {
		return v, visit.Errorf(visit.Invalid, "find", "it is not part of a path: write at most %d letters, like blog", mostFind)
	}
	if err := cmp.Or(v.readWho(q), v.readWhere(q["where"]), v.readReached(q)); err != nil {
		return v, err
	}
	if len(v.where) == 0 {
		v.value = q.Get("value")
	}
	if v.value != "" {
		if err := v.checkValue(); err != nil {
			return v, err
		}
	}
	if q.Has("all") && site != "" {
		v.fullPanel = cmp.Or(q.Get("all"), "pages")
	}
	if pages := v.fullPanel == "pages" || v.fullPanel == "told"; pages && v.path != "" ||
		v.fullPanel != "" && !pages && len(v.tags(v.fullPanel)) == 0 {
		v.fullPanel = ""
	}
	if skip := q.Get("skip"); skip != "" && (v.fullPanel != "" || site == "") {
		if v.skip, err = strconv.Atoi(skip); err != nil || v.skip < 0 || v.skip > report.DeepestTop {
			return v, visit.Errorf(visit.Invalid, "skip", "%.64q is not a number of rows: write one from 0 to %d", skip, report.DeepestTop)
		}
	}
	if v.period = q.Get("period"); v.period != "" && !slices.Contains(periods, v.period) {
		return v, visit.Errorf(visit.Invalid, "period", "%.64q is not possible: use %s", v.period, strings.Join(periods, ", "))
	}
	v.span, v.days, err = readSpan(q.Get("range"), q.Get("from"), q.Get("to"), app.Today)
	if v.span == "all" {
		v.compare = "none"
	}
	return v, err
}

// checkValue checks the query parameter value. This parameter limits the list of pages to those to which one source or campaign
// brought visitors.
func (v view) checkValue() error {
	switch {
	case v.app.Shared != nil:
		return visit.Errorf(visit.Forbidden, "value", "only people who may view the app can see the sources of its pages' visitors")
	case !v.leadsToPages(v.fromBy) || v.site == "" || v.path != "" || v.find != "":
		return visit.Errorf(visit.Invalid, "value",
			"pages of a site can be listed by source or by campaign, but not by part of their path at the same time")
	case len(v.value) > mostFind || !utf8.ValidString(v.value) || strings.ContainsRune(v.value, 0):
		return visit.Errorf(visit.Invalid, "value", "it is not a value of a tag")
	}
	return nil
}

// ofEvents reports whether the view shows events, or one event. Events are stored as pages of a pseudo-site. But the dashboard
// uses other words for them, because an event cannot be opened and has no source.
func (v view) ofEvents() bool { return v.site == visit.EventSite }

// nameOf returns the readable name of a site, a page or an event.
func (v view) nameOf(uri string) string {
	name := visit.Shown(uri)
	if event, is := strings.CutPrefix(name, visit.EventSite); is {
		return cmp.Or(strings.TrimPrefix(event, "/"), v.say("did.events"))
	}
	return name
}

// pageName returns the name of a page without its site.
func (v view) pageName(uri string) string {
	return strings.TrimPrefix(v.nameOf(uri), visit.Shown(v.site))
}

// target returns the page or site of the view; "" for all sites of an app.
func (v view) target() string { return v.site + v.path }

// address returns the URL of the site or page, or "" for events, for sums of several sites or pages, and within a frame. The
// scheme is not recorded, so address guesses it. A host with a port is most likely a local machine and gets http, unless the port
// ends in 443.
func (v view) address() string {
	at, err := url.Parse("//" + v.site)
	framed := v.app.Shared != nil && v.app.Shared.Embed
	switch {
	case err != nil || framed || v.site == visit.OtherSite || v.site == visit.EventSite:
		return ""
	case v.path == visit.OtherPage || v.path == visit.DeletedPage:
		return ""
	case at.Port() != "" && !strings.HasSuffix(at.Port(), "443"):
		return "http://" + v.target()
	}
	return "https://" + v.target()
}

// stretch returns the part of the view's range that has numbers to show.
func (v view) stretch() stretch { return v.counted().clip(v.days, v.daysBefore()) }

// counted returns the days that have numbers to show. Under a filter, they start with the first day on which the tags of all
// visitors are recorded.
func (v view) counted() countedDays {
	return countedDays{v.since, max(v.since, dayAfter(cmp.Or(v.countedSince, v.app.Today))), v.app.Today}
}

// look returns the parameters that reports need to read the view's numbers.
func (v view) look() report.Look {
	shared, s := v.app.Shared, v.stretch()
	look := report.Look{App: v.app.Name, Target: v.target(), In: v.days, By: v.sortedBy, Find: v.find,
		OfSite:   shared != nil && shared.Site != "",
		Filtered: v.filtered}
	if v.sortedBy == byChange || len(v.where) > 0 {
		look.By = "pv"
	}
	if s.In != none {
		look.In = s.In
	}
	if s.changes() && v.site != "" {
		look.Before, look.Compared = v.daysBefore(), s.Compared
	}
	if look.Where = v.where; len(v.where) > 0 {
		look.Find = ""
	}
	return look
}

// sitesLook returns the report parameters for the list of sites. Each site has its own first day. So the days to compare depend
// only on the range, and not on the first day of the view.
func (v view) sitesLook() report.Look {
	look, back := v.look(), v.daysBefore()
	if over := countedFrom(firstDay, v.app.Today).clip(v.days, back).Over; back > 0 && over != none {
		look.Before, look.Compared = back, over
	}
	return look
}

// link returns the address of the view. more contains the names and values of additional query parameters. Parameters with
// default values are left out.
func (v view) link(more ...string) string {
	path, first := v.app.home()
	if v.site != first {
		path += "/" + url.PathEscape(v.site)
	}
	var query []string
	if v.app.Shared != nil && v.app.Shared.Embed {
		query = append(query, "embed")
	}
	put := func(name, value, usual string) {
		if value != usual && value != "" {
			query = append(query, name+"="+strings.ReplaceAll(url.QueryEscape(value), "%2F", "/"))
		}
	}
	put("page", v.path, "")
	for _, c := range v.where {
		put("where", c, "")
	}
	if v.span != "" {
		put("range", v.span, usualSpan)
	} else {
		put("from", visit.DayText(v.days.From), "")
		put("to", visit.DayText(v.days.To), "")
	}
	put("compare", v.compare, compares[0])
	put("chart", v.chart, charts[0])
	put("period", v.period, "")
	put("by", v.sortedBy, orders[0])
	if v.more {
		put("columns", "more", "")
	}
	put("sort", v.sort, sorts[0])
	put("find", v.find, "")
	put("after", v.after, "")
	if v.fullPanel == "pages" {
		query = append(query, "all")
	} else {
		put("all", v.fullPanel, "")
	}
	put("from_by", v.fromBy, v.app.usualTag("from"))
	put("with_by", v.withBy, v.app.usualTag("with"))
	put("value", v.value, "")
	query = append(query, v.flags()...)
	if put("goal", v.goal, ""); v.goal != "" {
		put("goal_by", v.goalBy, byDay)
	}
	for _, step := range v.steps {
		put("step", step, "")
	}
	put("skip", strconv.Itoa(v.skip), "0")
	for i := 0; i < len(more); i += 2 {
		put(more[i], more[i+1], "")
	}
	if query == nil {
		return path
	}
	return path + "?" + strings.Join(query, "&")
}

// flags returns the names of the query parameters that have no value.
func (v view) flags() (flags []string) {
	for _, flag := range []struct {
		name string
		is   bool
	}{{"who", v.showsVisitors}, {"funnel", v.funnel}, {"one", v.onePage}} {
		if flag.is {
			flags = append(flags, flag.name)
		}
	}
	return flags
}

func (v view) copyWith(change func(*view)) view {
	change(&v)
	return v
}

// withTarget returns the view of a site, or of a page of this site if path is not "". It has the range of v, but no filter.
func (v view) withTarget(site, path string) view {
	return v.copyWith(func(o *view) {
		o.site, o.path, o.find, o.showsVisitors, o.after, o.fullPanel, o.skip, o.value = site, path, "", false, "", "", 0, ""
		o.where, o.taggedSince, o.erased, o.goal, o.funnel, o.steps, o.onePage = nil, 0, 0, "", false, nil, false
	})
}

// hiddenFields returns the hidden fields of a form. They contain the view's query parameters, except those named in but, which
// the form sets or drops.
func (v view) hiddenFields(but ...string) (fields [][2]string) {
	at, _ := url.Parse(v.link()) // cannot fail: link returns a valid address
	query := at.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(but, name) {
			for _, value := range query[name] {
				fields = append(fields, [2]string{name, value})
			}
		}
	}
	return fields
}

const (
	mostPath = 2048 // maximum bytes of a path or condition; no stored address is longer
	mostFind = 200  // maximum bytes of a search text or a tag's value
)
