package moves

// form is how a counter writes what it has counted: as tables whose first line names the columns, or as
// lines of JSON. Names of columns are compared in lower case; of several the first that is there holds.
type form struct {
	source  string
	files   []string // those in a zip; each a pattern of its name
	day, at []string // a day, or a moment, which the time zone of the app puts on one
	page    []string
	query   string // of the page
	host    []string
	numbers [4][]string // page views, visits, visitors, new visitors
	visit   string      // a line is a page view of this visit
	visitor string
	keep    []kept
	sites   string   // a table without pages is of the site, if it has this column, and
	not     []string // none of these, by which numbers of pages would be split
	parts   bool     // lines of a page on a day are parts of what came to it
	ragged  bool     // lines may end before the columns that came up later
	what    string   // what is read of it, for those who have something else
}

// kept says which lines are counted: those with one of the values in a column, if it is there.
type kept struct {
	column string
	values []string
	others string // what the others are, as LeftOut has it
}

var forms = []form{
	{source: "goatcounter", files: []string{"*.csv"}, at: []string{"date"}, page: []string{"2path", "1path"}, visit: "session",
		visitor: "session", parts: true, what: "its export (Settings, Export)",
		keep: []kept{{"event", []string{"false", "0"}, "events"}, {"bot", []string{"0"}, "bots"}}},
	{source: "umami", files: []string{"website_event.csv"}, at: []string{"created_at"}, page: []string{"url_path"}, query: "url_query",
		host: []string{"hostname"}, visit: "visit_id", visitor: "session_id", keep: []kept{{"event_type", []string{"1"}, "events"}},
		what: "its table website_event as CSV, or a zip with that (what the page of a site exports tells no days)"},
	{source: "plausible", files: []string{"imported_visitors*.csv", "imported_pages*.csv"}, day: []string{"date"}, page: []string{"page"},
		host: []string{"hostname"}, numbers: [4][]string{{"pageviews"}, {"visits"}, {"visitors"}}, sites: "bounces",
		what: "its export (Site settings, Imports & exports)",
		not:  []string{"source", "browser", "country", "device", "operating_system", "entry_page", "exit_page", "name"}},
	{source: "matomo", files: []string{"*.csv"}, day: []string{"date"}, page: []string{"metadata_url", "url"}, sites: "nb_actions",
		not: []string{"label"}, ragged: true, what: "Actions.getPageUrls and API.get of its API, with period=day and format=CSV",
		numbers: [4][]string{{"nb_hits", "nb_pageviews"}, {"nb_visits"}, {"nb_uniq_visitors", "sum_daily_nb_uniq_visitors"}}},
	{source: "ga4", files: []string{"*.csv"}, day: []string{"date"}, host: []string{"hostname"},
		page: []string{"page path and screen class", "page path", "page path + query string", "page location", "pagepath"},
		numbers: [4][]string{{"views", "screenpageviews"}, {"sessions"}, {"total users", "totalusers", "active users", "activeusers"},
			{"new users", "newusers"}},
		sites: "date", what: "an exploration by Date and Page path, in English, as CSV (reports tell no days)",
		not: []string{"page title and screen name", "country", "browser", "session source", "device category"}},
	{source: "csv", files: []string{"*.csv"}, day: []string{"day"}, page: []string{"page"},
		what:    "a table whose first line names its columns, of day,page,page_views,visits,visitors,new",
		numbers: [4][]string{{"page_views"}, {"visits"}, {"visitors"}, {"new", "new_visitors"}}},
}

// ofTotals have no days. Their totals become offsets: ReadCSV reads them, and leanCloud those of leancloud.
var ofTotals = []string{"busuanzi", "vercount", fromLeanCloud}

// Sources are the names of those whose exports can be read.
func Sources() (names []string) {
	for _, f := range forms {
		names = append(names, f.source)
	}
	return append(names, ofTotals...)
}

// columnNames are those of the numbers, as a plain file has them.
var columnNames = [4]string{"page_views", "visits", "visitors", "new"}
