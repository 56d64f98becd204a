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

// Report is one of the reports. The API serves a report under its name, the dashboard offers the report for download,
// and `footfall report` prints the same rows.
type Report struct {
	Name       string
	Parameters []string // names of the URL parameters that the report accepts
	Repeats    []string // parameters that may be repeated
	OfSite     bool     // the report is about one site, which the caller must name
	OfApp      bool     // without a page or a site, the report is about all sites of the app together
	ToNamed    bool     // the report lists visitors: only for callers who may see the visitors' identities
	Read       func(ctx context.Context, from *Reader, l Look) (*Rows, error)

	place func(text string, l *Look) bool // parses the cursor of the next page of results into Look.After; nil: there is only one page
}

// Look selects the subject of a report: a page or a site of an app, or the whole app, in a range of days.
type Look struct {
	App      string
	Today    int32
	Target   string      // the page or site; "": the whole app, unless Targets or Prefix is set
	In       visit.Range // the days of the report
	Before   int         // the days in Compared are compared with the days that are so many days earlier; 0: no comparison
	Compared visit.Range // starts on the same day as In, except in a chart
	Where    []string    // filter: conditions that a site's visitors must match; empty: all visitors
	OfSite   bool        // leave out notes that belong to all sites of the app
	History  bool        // include days that another tool has counted
	Counted  bool        // leave out offsets; the caller must then use a Reader that Reader.Counted has returned

	Targets     []string     // several pages or sites, instead of Target
	Prefix      string       // a prefix of pages' URIs, instead of Target
	By          string       // order of pages: by pv, uv or hot, descending, or by uri
	Find        string       // part of a page's path or title
	Period      string       // length of the periods in a chart: day, week or month
	Name, Value string       // name and value of a tag
	Goal        string       // a single goal; "": the app's goals
	Split       string       // "day": one row per day; name of a tag: one row per value of the tag; "": totals
	Steps       []string     // steps of a funnel
	Names       []string     // names of several tags
	Parts       []string     // names of the parts to read; set by Filter, which lists them
	Filtered    *Filtered    // the result of Filter, from which reports take their rows; nil: they read from the database
	Day         int32        // the day whose visitors are read
	Rank        int64        // a visitor's rank; 0: find the visitor by Stored
	Stored      []netip.Addr // addresses under which a visitor may be stored
	After       Cursor
	N           int // maximum number of rows; 0: all
}

// Cursor identifies the last row of a page of results. The next page of results starts after this row. The zero value is the
// start of the list.
type Cursor struct {
	Name    string // site, or URI of a page
	Day     int32
	Visitor netip.Addr

	Before int   // number of web pages that were listed so far
	Number int64 // the number by which the row is sorted
	PageID int64
}

// Reports lists all reports.
var Reports = []Report{
	{Name: "sites", Parameters: words("after limit offsets"), Read: readSites, place: parseNameCursor},
	{Name: "pages", Parameters: words("site from to order find days_before compared_to after limit where"), Repeats: words("where"),
		Read: readPages, place: parsePageCursor},
	{Name: "days", Parameters: words("uri site from to history after limit where"), Repeats: words("where"), Read: readDays, place: parseDayCursor},
	{Name: "tags", Parameters: words("uri site name from to days_before compared_to limit where"), Repeats: words("where"), OfApp: true,
		Read: readTags},
	{Name: "visitors", Parameters: words("uri site day after limit offsets"), Read: readVisitors, place: parseVisitorCursor},
	{Name: "ranks", Parameters: words("uri site rank ip visitor offsets"), Read: readRanks},
	{Name: "uniques", Parameters: words("uri site prefix from to where"), Repeats: words("uri site where"), Read: readUniques},
	{Name: "numbers", Parameters: words("uri site from to days_before compared_to where"), Repeats: words("where"), OfApp: true,
		Read: panel("numbers", (*Reader).Numbers)},
	{Name: "totals", Parameters: words("uri site"), Read: panel("totals", (*Reader).Totals)},
	{Name: "chart", Parameters: words("uri site from to period days_before compared_from compared_to where"), Repeats: words("where"), OfApp: true,
		Read: readChart},
	{Name: "returns", Parameters: words("uri site from to"), Read: panel("returns", (*Reader).ReturnedAfter)},
	{Name: "first-visits", Parameters: words("uri site"), Read: panel("first_visits", (*Reader).FirstVisits)},
	{Name: "tag-pages", Parameters: words("site name value from to"), OfSite: true, Read: panel("pages", (*Reader).TagPages)},
	{Name: "who-came", Parameters: words("uri site from to after limit"), ToNamed: true, Read: readWhoCame, place: parseVisitorCursor},
	{Name: "events", Parameters: words("site from to limit where"), Repeats: words("where"), OfApp: true, Read: panel("events", (*Reader).Events)},
	{Name: "goals", Parameters: words("site from to goal by limit where"), Repeats: words("where"), OfSite: true, Read: readGoals},
	{Name: "funnel", Parameters: words("site from to step where"), Repeats: words("step where"), OfSite: true,
		Read: panel("funnel", (*Reader).Funnel)},
	{Name: "one-page", Parameters: words("site from to where"), Repeats: words("where"), OfSite: true,
		Read: panel("one_page", (*Reader).OnePage)},
	{Name: "here", Parameters: words("site"), OfSite: true, Read: panel("here", (*Reader).Here)},
	{Name: "sites-between", Parameters: words("from to days_before compared_to"), Read: panel("sites", (*Reader).SitesBetween)},
}

func words(text string) []string { return strings.Fields(text) }

// FindReport returns the report with this name, which must exist.
func FindReport(name string) Report {
	return Reports[slices.IndexFunc(Reports, func(k Report) bool { return k.Name == name })]
}

// AllowsAllRows reports whether callers may request all rows of the report, however many there are.
func (k Report) AllowsAllRows() bool {
	return slices.Contains([]string{"pages", "days", "tags", "who-came"}, k.Name)
}

// ParseCursor parses the text of a cursor from Rows.Next, and stores the cursor in l.After. The caller has already stored the
// other parameters of the request in l.
func (k Report) ParseCursor(text string, l *Look) error {
	if k.place(text, l) {
		return nil
	}
	return visit.Errorf(visit.Invalid, "after", "it does not fit this order of rows: pass the value of next")
}

// Query returns the URL parameters with which a client requests the report k for l.
func (k Report) Query(l Look) url.Values {
	q := url.Values{}
	put := func(name, value string) {
		if value != "" && slices.Contains(k.Parameters, name) {
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
	if l.N == 0 && k.AllowsAllRows() {
		put("limit", "all")
	}
	return q
}
