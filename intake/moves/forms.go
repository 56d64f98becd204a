package moves

// form describes the exported tables of another counter. The first line of a table contains the column names. They are
// compared in lower case. If a field of form lists several columns, the first one that the table has is used.
type form struct {
	source      string
	files       []string // patterns for the names of files in a zip file
	day, moment []string // day: columns with a day. moment: columns with a time, whose day depends on the app's time zone
	page        []string
	query       string // column with the query part of the page's URL
	host        []string
	numbers     [4][]string // columns with page views, visits, visitors and new visitors, in this order
	visit       string      // column with the visit's id, if each line of the table is one page view
	visitor     string
	keep        []lineFilter
	sites       string // a table without a page column must have this column, and is then about the whole site
	// If a table has no page column, but one of these columns, it is left out. The other tool uses these columns to divide
	// its totals into parts, such as countries.
	splitColumns []string
	parts        bool   // add up the numbers of lines with the same page and day
	ragged       bool   // the last columns may be missing in some lines
	export       string // a description of the expected export, for errors
}

// lineFilter selects the lines to import. If the table has the column, only lines that contain one of the values in this
// column are imported.
type lineFilter struct {
	column string
	values []string
	others string // key in History.LeftOut under which the other lines are counted
}

var forms = []form{
	{source: "goatcounter", files: []string{"*.csv"}, moment: []string{"date"}, page: []string{"2path", "1path"}, visit: "session",
		visitor: "session", parts: true, export: "its export (Settings, Export)",
		keep: []lineFilter{{"event", []string{"false", "0"}, "events"}, {"bot", []string{"0"}, "bots"}}},
	{source: "umami", files: []string{"website_event.csv"}, moment: []string{"created_at"}, page: []string{"url_path"}, query: "url_query",
		host: []string{"hostname"}, visit: "visit_id", visitor: "session_id", keep: []lineFilter{{"event_type", []string{"1"}, "events"}},
		export: "its table website_event as CSV, or a zip that contains it (the export on the page of a site has no days)"},
	{source: "plausible", files: []string{"imported_visitors*.csv", "imported_pages*.csv"}, day: []string{"date"}, page: []string{"page"},
		host: []string{"hostname"}, numbers: [4][]string{{"pageviews"}, {"visits"}, {"visitors"}}, sites: "bounces",
		export:       "its export (Site settings, Imports & exports)",
		splitColumns: []string{"source", "browser", "country", "device", "operating_system", "entry_page", "exit_page", "name"}},
	{source: "matomo", files: []string{"*.csv"}, day: []string{"date"}, page: []string{"metadata_url", "url"}, sites: "nb_actions",
		splitColumns: []string{"label"}, ragged: true, export: "Actions.getPageUrls and API.get of its API, with period=day and format=CSV",
		numbers: [4][]string{{"nb_hits", "nb_pageviews"}, {"nb_visits"}, {"nb_uniq_visitors", "sum_daily_nb_uniq_visitors"}}},
	{source: "ga4", files: []string{"*.csv"}, day: []string{"date"}, host: []string{"hostname"},
		page: []string{"page path and screen class", "page path", "page path + query string", "page location", "pagepath"},
		numbers: [4][]string{{"views", "screenpageviews"}, {"sessions"}, {"total users", "totalusers", "active users", "activeusers"},
			{"new users", "newusers"}},
		sites: "date", export: "an exploration by Date and Page path, in English, as CSV (reports have no days)",
		splitColumns: []string{"page title and screen name", "country", "browser", "session source", "device category"}},
	{source: "csv", files: []string{"*.csv"}, day: []string{"day"}, page: []string{"page"},
		export:  "a table whose first line names its columns: day,page, and some of page_views,visits,visitors,new",
		numbers: [4][]string{{"page_views"}, {"visits"}, {"visitors"}, {"new", "new_visitors"}}},
}

// totalSources are the other counters whose exports contain totals, but no daily numbers. Their totals become offsets. The
// method leanCloud reads the exports of LeanCloud, and ReadCSV reads those of the other counters.
var totalSources = []string{"busuanzi", "vercount", fromLeanCloud}

// Sources returns the names of all supported sources.
func Sources() (names []string) {
	for _, f := range forms {
		names = append(names, f.source)
	}
	return append(names, totalSources...)
}

// columnNames are the names of the columns with numbers, for the source "csv".
var columnNames = [4]string{"page_views", "visits", "visitors", "new"}
