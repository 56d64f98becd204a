package report

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"footfall/visit"
)

// Report is one thing that can be asked of what was counted. The API serves it under its name, the
// files of the dashboard are made of it, and `footfall report` prints the same rows.
type Report struct {
	Name    string
	Takes   []string // parameters, as Look.Query writes them
	Repeats []string // those of them that may be given several times
	OfSite  bool     // it is of a site, which has to be named
	OfApp   bool     // where no page and no site is named, it is of all sites of the app as one
	ToNamed bool     // it is told to those alone who may see on pages who came
	Read    func(ctx context.Context, from *Reader, l Look) (*Rows, error)

	place func(text string, l *Look) bool // reads After; nil: the report is no list that goes on
}

// Look is what somebody looks at: a page or a site of an app, or the app, in a range of days. Some of
// these days are compared with those so many days before (0: none are); all but those of a chart
// begin with the range.
type Look struct {
	App      string
	Today    int32
	Target   string
	In       visit.Range
	Before   int
	Compared visit.Range
	Where    []string // conditions that hold for visitors of a site; none: all are asked for
	OfSite   bool     // nothing is shown that was noted of all sites of the app
	History  bool     // days that others have counted are among those of a target

	Targets     []string     // several, in place of Target
	Prefix      string       // of their URIs, in place of Target
	By          string       // the number by which pages are first: pv, uv, hot, or uri
	Find        string       // part of the paths or titles of pages
	Period      string       // of a chart: day, week or month
	Name, Value string       // of a tag
	Goal        string       // one; "": those of the app
	Split       string       // by which goals are told: day, or a tag; "": in all
	Steps       []string     // of a funnel
	Names       []string     // of several
	Parts       []string     // of Filter
	Filtered    *Filtered    // parts that were read already; nil: none
	Day         int32        // of visitors
	Rank        int64        // of a visitor; 0: it is one of Stored
	Stored      []netip.Addr // as whom a visitor may be stored
	After       Place
	N           int // rows; 0: all
}

// Place is where a list goes on: after the row that was the last one of its previous part. The zero
// value is the beginning.
type Place struct {
	Name    string // of a site, or the URI of a page
	Day     int32
	Visitor netip.Addr

	Before int   // how many pages were listed up to that page
	Number int64 // the number by which that page was ordered
	PageID int64
}

// Reports are all there are.
var Reports = []Report{
	{Name: "sites", Takes: words("after limit offsets"), Read: readSites, place: placeOfName},
	{Name: "pages", Takes: words("site from to order find days_before compared_to after limit where"), Repeats: words("where"),
		Read: readPages, place: placeOfPage},
	{Name: "days", Takes: words("uri site from to history after limit where"), Repeats: words("where"), Read: readDays, place: placeOfDay},
	{Name: "tags", Takes: words("uri site name from to days_before compared_to limit where"), Repeats: words("where"), OfApp: true,
		Read: readTags},
	{Name: "visitors", Takes: words("uri site day after limit offsets"), Read: readVisitors, place: placeOfVisitor},
	{Name: "ranks", Takes: words("uri site rank ip visitor offsets"), Read: readRanks},
	{Name: "uniques", Takes: words("uri site prefix from to where"), Repeats: words("uri site where"), Read: readUniques},
	{Name: "numbers", Takes: words("uri site from to days_before compared_to where"), Repeats: words("where"), OfApp: true,
		Read: panel("numbers", (*Reader).Numbers)},
	{Name: "totals", Takes: words("uri site"), Read: panel("totals", (*Reader).Totals)},
	{Name: "chart", Takes: words("uri site from to period days_before compared_from compared_to where"), Repeats: words("where"), OfApp: true,
		Read: readChart},
	{Name: "returns", Takes: words("uri site from to"), Read: panel("returns", (*Reader).ReturnedAfter)},
	{Name: "first-visits", Takes: words("uri site"), Read: panel("first_visits", (*Reader).FirstVisits)},
	{Name: "tag-pages", Takes: words("site name value from to"), OfSite: true, Read: panel("pages", (*Reader).TagPages)},
	{Name: "who-came", Takes: words("uri site from to after limit"), ToNamed: true, Read: readWhoCame, place: placeOfVisitor},
	{Name: "events", Takes: words("site from to limit where"), Repeats: words("where"), OfApp: true, Read: panel("events", (*Reader).Events)},
	{Name: "goals", Takes: words("site from to goal by limit where"), Repeats: words("where"), OfSite: true, Read: readGoals},
	{Name: "funnel", Takes: words("site from to step where"), Repeats: words("step where"), OfSite: true,
		Read: panel("funnel", (*Reader).Funnel)},
	{Name: "one-page", Takes: words("site from to where"), Repeats: words("where"), OfSite: true,
		Read: panel("one_page", (*Reader).OnePage)},
	{Name: "here", Takes: words("site"), OfSite: true, Read: panel("here", (*Reader).Here)},
	{Name: "sites-between", Takes: words("from to days_before compared_to"), Read: panel("sites", (*Reader).SitesBetween)},
}

func words(text string) []string { return strings.Fields(text) }

// Named returns the report of a name.
func Named(name string) Report {
	return Reports[slices.IndexFunc(Reports, func(k Report) bool { return k.Name == name })]
}

// Whole tells whether all rows may be asked for, however many there are.
func (k Report) Whole() bool {
	return slices.Contains([]string{"pages", "days", "tags", "who-came"}, k.Name)
}

// Place reads where a list goes on, as Rows.Next has it. l has the rest of the question.
func (k Report) Place(text string, l *Look) error {
	if k.place(text, l) {
		return nil
	}
	return visit.Errorf(visit.Invalid, "after", "it does not belong to this order of rows: give what next said")
}

// Query writes a question as the parameters that ask for it.
func (k Report) Query(l Look) url.Values {
	q := url.Values{}
	put := func(name, value string) {
		if value != "" && slices.Contains(k.Takes, name) {
			q.Set(name, value)
		}
	}
	number := func(name string, n int) {
		if n > 0 {
			put(name, strconv.Itoa(n))
		}
	}
	put(map[bool]string{true: "uri", false: "site"}[strings.Contains(l.Target, "/")], l.Target)
	if l.In != visit.AllDays {
		number("from", int(l.In.From))
		number("to", int(l.In.To))
	}
	if len(l.Where) > 0 {
		q["where"] = l.Where
	}
	if len(l.Steps) > 0 {
		q["step"] = l.Steps
	}
	if l.History {
		put("history", "yes")
	}
	put("goal", l.Goal)
	put("by", l.Split)
	put("order", l.By)
	put("find", l.Find)
	put("period", l.Period)
	put("name", l.Name)
	put("value", l.Value)
	if l.Before > 0 {
		number("days_before", l.Before)
		number("compared_from", int(l.Compared.From))
		number("compared_to", int(l.Compared.To))
	}
	if l.N == 0 && k.Whole() {
		put("limit", "all")
	}
	return q
}
