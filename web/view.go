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

// App is an app that the reader may see.
type App struct {
	Place
	Name    string
	Today   int32          // in the app's time zone
	Hour    int            // current hour there
	Zone    *time.Location // of the app
	Closed  bool           // visible only to signed-in users
	Names   bool           // the reader may see single visitors
	Several bool           // may have several sites
	Site    string         // a listed site; "": none
	Goals   []string       // as conditions
	Public  string         // public numbers: off, answers, read, count
	Shared  *Share         // nil: not opened by a shared link

	// CountriesBy returns the author and licence of the country database; nil: there is none.
	CountriesBy func() string

	tags        map[string][]string // recorded tags by panel, the default first
	noCountries bool                // the tag country is recorded, but has no values
}

// Tells reports whether the app shows numbers to pages.
func (a App) Tells() bool { return a.Public != "off" }

// Share describes a shared link.
type Share struct {
	Base  string // path of the link, below which its pages are
	Site  string // the only visible site; "": all of the app
	Embed bool   // in a frame of another page
}

// home returns the path of the app's pages, and the site that they start with ("": all sites).
func (a App) home() (path, site string) {
	if a.Shared != nil {
		return a.Shared.Base, a.Shared.Site
	}
	return a.Root + "/dash/" + a.Name, ""
}

// ofOneSite reports whether a shared link shows only one site of the app.
func (a App) ofOneSite() bool { return a.Shared != nil && a.Shared.Site != "" }

// view is the complete state of a page. The address contains all of it.
type view struct {
	app  App
	site string // "": all sites of the app
	path string // of a page, with its slash; "": the site

	span    string      // name of the range; "": typed days
	in      visit.Range // up to today if span is "all"
	since   int32       // first day with numbers; 0: none, or not read
	began   int32       // first counted day; 0: none
	minute  int32       // of that day, since midnight; -1: unknown, or the day is not in the range
	compare string
	chart   string // contents of the chart
	period  string // period of its bars; "": depends on the range
	by      string // order of pages: a number, or the change, which also sorts tag values
	more    bool   // lists show all columns
	sort    string // order of sites
	find    string // part of paths or titles to search pages for; "": none
	who     bool   // shows the list of visitors
	after   string // position in that list; "": start
	all     string // panel whose rows are all shown; "": none
	skip    int    // rows to skip in a list
	fromBy  string // tag of the first panel
	withBy  string // tag of the second panel
	goal    string // goal whose page is shown; "": none
	goalBy  string // day or a tag
	funnel  bool   // shows the funnel
	steps   []string
	fields  int    // number of fields for steps
	onePage bool   // shows how many visitors saw only one page
	value   string // of fromBy: lists only the pages to which it brought visitors; "": all

	told   []report.HistoryDay // imported days
	where  []string            // conditions that filter the visitors; none: all visitors
	known  int32               // first day with complete tags; 0: all days
	erased int64               // days of erased visitors, which are missing in the numbers

	filtered *report.Filtered // the filtered numbers; nil: none
}

// hourly is the period of a day's chart, and the tag that it shows.
const hourly = "hour"

const byChange = "change" // relative, the highest first

// Values of query parameters, the default first.
var (
	compares = []string{"before", "right", "year", "none"}
	charts   = []string{"visitors", "views"}
	periods  = []string{"day", "week", "month", hourly}
	orders   = []string{"pv", "hot", "uv", "change"}
	sorts    = []string{"pv", "site", "today", "uniques", "change", "hot"}
	fromTags = []string{"source", "campaign", "country", "language"}
)

// usualView returns the view with which a site, or an app (""), opens.
func usualView(a App, site string) view {
	return view{app: a, site: site, span: usualSpan, compare: compares[0], chart: charts[0], by: orders[0], sort: sorts[0]}
}

// readWho reads whether the list of visitors is requested, and the position in it.
func (v *view) readWho(q url.Values) error {
	if v.who = q.Has("who") && v.site != ""; !v.who {
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

// newView reads a page's address: the site and the query. It ignores unknown parameters.
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
		{"compare", compares, &v.compare}, {"chart", charts, &v.chart}, {"by", orders, &v.by}, {"sort", sorts, &v.sort},
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
		v.all = cmp.Or(q.Get("all"), "pages")
	}
	if pages := v.all == "pages" || v.all == "told"; pages && v.path != "" || v.all != "" && !pages && len(v.tags(v.all)) == 0 {
		v.all = ""
	}
	if skip := q.Get("skip"); skip != "" && (v.all != "" || site == "") {
		if v.skip, err = strconv.Atoi(skip); err != nil || v.skip < 0 || v.skip > report.DeepestTop {
			return v, visit.Errorf(visit.Invalid, "skip", "%.64q is not a number of rows: write one from 0 to %d", skip, report.DeepestTop)
		}
	}
	if v.period = q.Get("period"); v.period != "" && !slices.Contains(periods, v.period) {
		return v, visit.Errorf(visit.Invalid, "period", "%.64q is not possible: use %s", v.period, strings.Join(periods, ", "))
	}
	v.span, v.in, err = readSpan(q.Get("range"), q.Get("from"), q.Get("to"), app.Today)
	if v.span == "all" {
		v.compare = "none"
	}
	return v, err
}

// checkValue checks the parameter value, which lists the pages to which a tag's value brought visitors.
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

// ofEvents reports whether the view shows events, or one event. They are stored as pages of a pseudo-site, but pages describe
// them in other words: an event cannot be opened, and has no source.
func (v view) ofEvents() bool { return v.site == visit.EventSite }

// nameOf returns the name of a site or a page.
func (v view) nameOf(uri string) string {
	name := visit.Shown(uri)
	if event, is := strings.CutPrefix(name, visit.EventSite); is {
		return cmp.Or(strings.TrimPrefix(event, "/"), v.say("did.events"))
	}
	return name
}

// pageName returns the name of a page in the list of its site.
func (v view) pageName(uri string) string {
	return strings.TrimPrefix(v.nameOf(uri), visit.Shown(v.site))
}

// target returns the page or site of the view; "" for all sites of an app.
func (v view) target() string { return v.site + v.path }

// address returns the URL of the site or page. Schemes are not recorded: a host with a port is most likely a local machine,
// so it gets http. It returns "" for events, for sums of several pages, and within a frame on that site.
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

// stretch returns the part of the range that can be shown.
func (v view) stretch() stretch { return v.counted().of(v.in, v.daysBefore()) }

// counted returns the days that can be shown. Under a filter they may begin later than the site.
func (v view) counted() counted {
	return counted{v.since, max(v.since, dayAfter(cmp.Or(v.began, v.app.Today))), v.app.Today}
}

// look returns the report parameters of the view.
func (v view) look() report.Look {
	shared, s := v.app.Shared, v.stretch()
	look := report.Look{App: v.app.Name, Target: v.target(), In: v.in, By: v.by, Find: v.find, OfSite: shared != nil && shared.Site != "",
		Filtered: v.filtered}
	if v.by == byChange || len(v.where) > 0 {
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

// sitesLook returns the report parameters for the list of sites, each of which has its own first day.
func (v view) sitesLook() report.Look {
	look, back := v.look(), v.daysBefore()
	if over := countedFrom(firstDay, v.app.Today).of(v.in, back).Over; back > 0 && over != none {
		look.Before, look.Compared = back, over
	}
	return look
}

// link returns the address of the view. It omits default values.
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
		put("from", visit.DayText(v.in.From), "")
		put("to", visit.DayText(v.in.To), "")
	}
	put("compare", v.compare, compares[0])
	put("chart", v.chart, charts[0])
	put("period", v.period, "")
	put("by", v.by, orders[0])
	if v.more {
		put("columns", "more", "")
	}
	put("sort", v.sort, sorts[0])
	put("find", v.find, "")
	put("after", v.after, "")
	if v.all == "pages" {
		query = append(query, "all")
	} else {
		put("all", v.all, "")
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

// flags returns the parameters without a value.
func (v view) flags() (flags []string) {
	for _, flag := range []struct {
		name string
		is   bool
	}{{"who", v.who}, {"funnel", v.funnel}, {"one", v.onePage}} {
		if flag.is {
			flags = append(flags, flag.name)
		}
	}
	return flags
}

func (v view) with(change func(*view)) view {
	change(&v)
	return v
}

// of returns the view of another site or page in the same range.
func (v view) of(site, path string) view {
	return v.with(func(o *view) {
		o.site, o.path, o.find, o.who, o.after, o.all, o.skip, o.value = site, path, "", false, "", "", 0, ""
		o.where, o.known, o.erased, o.goal, o.funnel, o.steps, o.onePage = nil, 0, 0, "", false, nil, false
	})
}

// keeps returns hidden fields for a form that changes the parameters in but, and keeps the other parameters.
func (v view) keeps(but ...string) (fields [][2]string) {
	at, _ := url.Parse(v.link()) // always valid
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
	mostPath = 2048 // bytes; the limit of a target
	mostFind = 200  // bytes
)
