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

// App is an app that a reader may look at.
type App struct {
	Place
	Name    string
	Today   int32          // in its time zone
	Hour    int            // of today that it is there
	Zone    *time.Location // whose days it counts
	Closed  bool           // it is shown to those alone who have signed in
	Names   bool           // the reader may see who came
	Several bool           // it may have several sites
	Site    string         // one that it lists; "": it lists none
	Goals   []string       // as conditions
	Public  string         // the numbers that anybody is told: off, answers, read, count
	Shared  *Share         // nil: it is not looked at by a link

	// CountriesBy says who has made the file of countries, and under which licence; nil: there is none.
	CountriesBy func() string

	tags        map[string][]string // that its sites have, by panel, the usual one first
	noCountries bool                // they have the tag country, and no value of it
}

// Tells reports whether pages are told numbers.
func (a App) Tells() bool { return a.Public != "off" }

// Share is what a link shows to whoever has it.
type Share struct {
	Base  string // the path of the link, below which its pages are
	Site  string // the only one that is shown; "": all of the app
	Embed bool   // in a frame of another page
}

// home is the path of the pages of an app, and where these begin: at a site, or at all of them
// ("").
func (a App) home() (path, site string) {
	if a.Shared != nil {
		return a.Shared.Base, a.Shared.Site
	}
	return a.Root + "/dash/" + a.Name, ""
}

// ofOneSite reports whether nothing is shown but a site of the app, by a link.
func (a App) ofOneSite() bool { return a.Shared != nil && a.Shared.Site != "" }

// view is what somebody looks at, all of which is in the address of the page.
type view struct {
	app  App
	site string // "": all sites of the app
	path string // of a page, from its slash on; "": the site

	span    string      // the name of the range; "": from one day to another
	in      visit.Range // all of it up to today where span is "all"
	since   int32       // the first day of the site that can be shown; 0: none was counted, or it is not read
	began   int32       // the first that was counted, in the course of which counting began
	minute  int32       // of it, since midnight; -1: unknown, or the day is not in the range
	compare string
	chart   string // what it shows
	period  string // by which it does; "": what suits the range
	by      string // by which number pages are first, or by their change, as values of tags then are
	more    bool   // lists have all of their columns
	sort    string // by which column sites are
	find    string // part of the paths or titles of pages; "": none is looked for
	who     bool   // who came is shown, in place of numbers
	after   string // where the list of them goes on; "": from the first
	all     string // of which panel all rows are shown, in place of numbers; "": of none
	skip    int    // rows of a list
	fromBy  string // by which tag the panel Where from is
	withBy  string // and the panel With what
	goal    string // how many reached it is shown, in place of numbers; "": of none
	goalBy  string // by day or a tag
	funnel  bool   // how far visitors got is shown, in place of numbers
	steps   []string
	fields  int    // of the form of steps
	onePage bool   // it is told how many saw one page alone
	value   string // of fromBy: pages are those to which it brought visitors; "": all

	told   []report.ToldDay // by others, of what is looked at
	where  []string         // conditions: what is looked at are the visitors for whom they hold; none: all
	known  int32            // from which day on it is known with what all came; 0: on all days
	erased int64            // days of visitors who were erased, and are in no number of them

	filtered *report.Filtered // what was read about these visitors; nil: nothing
}

// hourly is the period of a chart of one day, and the tag that it shows.
const hourly = "hour"

const byChange = "change" // relative, the highest first

// What an address may say, the usual first.
var (
	compares = []string{"before", "right", "year", "none"}
	charts   = []string{"visitors", "views"}
	periods  = []string{"day", "week", "month", hourly}
	orders   = []string{"pv", "hot", "uv", "change"}
	sorts    = []string{"pv", "site", "today", "uniques", "change", "hot"}
	fromTags = []string{"source", "campaign", "country", "language"}
)

// usualView is what a site, or an app (""), opens with.
func usualView(a App, site string) view {
	return view{app: a, site: site, span: usualSpan, compare: compares[0], chart: charts[0], by: orders[0], sort: sorts[0]}
}

// readWho reads whether the list of who came is asked for, and behind which of them it goes on.
func (v *view) readWho(q url.Values) error {
	if v.who = q.Has("who") && v.site != ""; !v.who {
		return nil
	}
	if v.after = q.Get("after"); !v.app.Names {
		return visit.Errorf(visit.Forbidden, "who", "who came is shown to those alone who have signed in")
	}
	return nil
}

// say is a text in the language of the page, and number a number.
func (v view) say(key string, places ...any) string { return v.app.words().Say(key, places...) }

func (v view) number(n int64) string { return number(v.app.words(), n) }

// newView reads an address: the site and the parameters of its query. Parameters of which nobody
// knows are ignored.
func newView(app App, site string, q url.Values) (v view, err error) {
	v = view{app: app, site: site, path: q.Get("page"), minute: -1, more: q.Get("columns") == "more"}
	if v.path != "" && (v.path[0] != '/' || len(v.path) > mostPath || !utf8.ValidString(v.path) || strings.ContainsRune(v.path, 0)) {
		return v, visit.Errorf(visit.Invalid, "page", "it is not the path of a page: it begins with a slash, like /home")
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
			return v, visit.Errorf(visit.Invalid, choice.name, "%.64q is none: use %s", *choice.into, strings.Join(choice.of, ", "))
		}
	}
	if v.find = strings.TrimSpace(q.Get("find")); len(v.find) > mostFind || !utf8.ValidString(v.find) || strings.ContainsRune(v.find, 0) {
		return v, visit.Errorf(visit.Invalid, "find", "it is not part of a path of at most %d letters, like blog", mostFind)
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
		return v, visit.Errorf(visit.Invalid, "period", "%.64q is none: use %s", v.period, strings.Join(periods, ", "))
	}
	v.span, v.in, err = readSpan(q.Get("range"), q.Get("from"), q.Get("to"), app.Today)
	if v.span == "all" {
		v.compare = "none"
	}
	return v, err
}

// checkValue returns an error unless there may be pages to which a value of a tag brought visitors.
func (v view) checkValue() error {
	switch {
	case v.app.Shared != nil:
		return visit.Errorf(visit.Forbidden, "value", "what brought visitors to pages is shown to those alone who may look at the app")
	case !v.leadsToPages(v.fromBy) || v.site == "" || v.path != "" || v.find != "":
		return visit.Errorf(visit.Invalid, "value",
			"pages of a site are listed by source or campaign alone, and not by part of their path, too")
	case len(v.value) > mostFind || !utf8.ValidString(v.value) || strings.ContainsRune(v.value, 0):
		return visit.Errorf(visit.Invalid, "value", "it is no value of a tag")
	}
	return nil
}

// ofEvents reports whether events are looked at, or one of them. They are stored as pages of a site, and pages show them
// in words of their own: nobody opens an event, and it has no source.
func (v view) ofEvents() bool { return v.site == visit.EventSite }

// nameOf returns the name that pages show for a site or a page.
func (v view) nameOf(uri string) string {
	name := visit.Shown(uri)
	if event, is := strings.CutPrefix(name, visit.EventSite); is {
		return cmp.Or(strings.TrimPrefix(event, "/"), v.say("did.events"))
	}
	return name
}

// pageName returns the name that a list shows for a page of the site that is looked at.
func (v view) pageName(uri string) string {
	return strings.TrimPrefix(v.nameOf(uri), visit.Shown(v.site))
}

// target is the page or site that is looked at; "" for all sites of an app.
func (v view) target() string { return v.site + v.path }

// address is where the site or page that is looked at can be opened. Of its scheme nothing is
// counted: a host with a port is mostly a machine of one's own. "": it is an event or a sum of
// others, or stands around the frame in which this is.
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

// stretch is what can be shown of the range.
func (v view) stretch() stretch { return v.counted().of(v.in, v.daysBefore()) }

// counted are the days that can be shown. Under a filter they may begin later than those of the site.
func (v view) counted() counted {
	return counted{v.since, max(v.since, dayAfter(cmp.Or(v.began, v.app.Today))), v.app.Today}
}

// look is the view as reports take it.
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

// sitesLook is the view of a list of sites, each of which has a first day of its own.
func (v view) sitesLook() report.Look {
	look, back := v.look(), v.daysBefore()
	if over := countedFrom(firstDay, v.app.Today).of(v.in, back).Over; back > 0 && over != none {
		look.Before, look.Compared = back, over
	}
	return look
}

// link is the address of a view. Parts that are as usual are left out.
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

// flags are what an address has without a value.
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

// keeps are the fields of a form that changes some parameters, and leaves the others as they are.
func (v view) keeps(but ...string) (fields [][2]string) {
	at, _ := url.Parse(v.link()) // which is one
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
	mostPath = 2048 // bytes: a target can have no more
	mostFind = 200  // bytes
)
