package handler

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// history imports numbers of GoatCounter for hhui.top on the 40 days up to the second day that was counted here: page
// views, and visitors for two thirds of these days.
func (e *edge) history(app, visitors string) {
	e.t.Helper()
	e.Exec(e.t, `INSERT INTO history_imports (app_id, source, files) SELECT id, 'goatcounter', '{a}' FROM apps WHERE name = $1`, app)
	e.Exec(e.t, `INSERT INTO history_days (app_id, import_id, day_id, site)
		SELECT i.app_id, i.id, to_char(date '2019-06-30' - d, 'YYYYMMDD')::integer, 'hhui.top'
		FROM history_imports AS i, generate_series(0, 39) AS d WHERE i.app_id = (SELECT id FROM apps WHERE name = $1)`, app)
	e.Exec(e.t, `INSERT INTO history (day, uri, page_views, visitors, new_visitors)
		SELECT d.id, u, 10, `+visitors+`, NULL FROM history_days AS d, unnest('{hhui.top,hhui.top/home}'::text[]) AS u
		WHERE d.app_id = (SELECT id FROM apps WHERE name = $1)`, app)
}

// History is shown even if nothing has been counted yet: lists lead to the site, and it and its pages have charts.
func TestHistoryBeforeVisits(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.history("demo", "4")
	w := newInternet(e)
	b, script := w.driveOwner(t), axe(t)
	text := b.text
	const never = "Nothing has been counted here."
	for _, at := range []string{"/dash/demo/hhui.top?", "/dash/demo/hhui.top?page=/home&"} {
		for _, in := range []string{"range=30d", "range=90d&period=week", "range=all", "range=all&chart=views"} {
			is := text(at + in)
			assert.NotContains(t, is, never, at+in)
			assert.Contains(t, is, "Counted by GoatCounter until 29 June 2019.", at+in)
			var drawn int
			b.ask(`document.querySelectorAll('.plot .others').length`, &drawn)
			assert.Positive(t, drawn, at+in)
			assertAccessible(t, b, script)
			b.shot("history-first-" + map[bool]string{true: "page", false: "site"}[at[len(at)-1] == '&'] + "-" + in[6:9])
		}
		assert.Regexp(t, `(?i)Page views\s+300\s+including 300 counted elsewhere`, text(at+"range=30d"))
		assert.Contains(t, text(at+"from=20190601&to=20190601"), "including 10 counted elsewhere")
		assert.Contains(t, text(at+"from=20190101&to=20190102"), "22 May 2019", "where it begins")
	}
	// Pages, with the imported numbers of each.
	const pages = `Pages, as counted elsewhere\s+Page\s+Visits\s+Page views\s+`
	assert.Regexp(t, pages+`/home\s+120\s+300\s+Data`, text("/dash/demo/hhui.top?range=30d"))
	assert.NotRegexp(t, pages, text("/dash/demo/hhui.top?from=20190630&to=20190701"))
	e.Exec(t, `INSERT INTO history (day, uri, page_views) SELECT max(id), 'hhui.top/' || n, n
		FROM history_days, generate_series(1, 120) AS n GROUP BY n`)
	assert.Regexp(t, pages+`/home\s+156\s+390\s+/120\s+–\s+120\s+/119\s`, text("/dash/demo/hhui.top?range=all"))
	assert.Regexp(t, `Page views\s+/21\s+–\s+21\s(.|\s)*/1\s+–\s+1\s+101–121 of 121`,
		text("/dash/demo/hhui.top?range=all&all=told&skip=100"))
	assertAccessible(t, b, script)
	for _, path := range []string{"/dash/demo/hhui.top?page=/never", "/dash/demo/never.example?"} {
		assert.Contains(t, text(path), never, path)
	}
	assert.Regexp(t, `hhui\.top\s+Counted by GoatCounter until 30 June 2019\.\s+–\s+–\s+–\s+–`, text("/dash/demo?"), "zeros would be untrue")
	b.shot("history-first-app")
	assertAccessible(t, b, script)
	var led string
	e.history("shop", "4")
	text("/")
	b.ask(`location.pathname`, &led)
	assert.Equal(t, "/dash/shop/hhui.top", led, "the demo apart, it is the only one")

	// A page without counts here, on a site with counts.
	e.Exec(t, `UPDATE history SET uri = 'hhui.top/old' WHERE uri = 'hhui.top/home'`)
	e.sixSteps()
	is := text("/dash/demo/hhui.top?page=/old&range=30d")
	assert.Contains(t, is, "Counted by GoatCounter until 28 June 2019.")
	assert.Contains(t, text("/dash/demo/hhui.top?page=/never"), never)
}

// An account that may change an app can import its history, and remove it.
func TestHistoryIsUploaded(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	max := e.changes("Max", "shop")
	language := "en"
	send := func(as *person, text string, form ...string) answer {
		t.Helper()
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		for i := 0; i < len(form); i += 2 {
			require.NoError(t, w.WriteField(form[i], form[i+1]))
		}
		if text != "" {
			file, err := w.CreateFormFile("file", "a.csv")
			require.NoError(t, err)
			_, _ = io.WriteString(file, text)
		}
		require.NoError(t, w.Close())
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.public+"/settings/shop", &body)
		require.NoError(t, err)
		r.Header.Set("Content-Type", w.FormDataContentType())
		r.Header.Set("Cookie", as.cookie())
		r.Header.Set("Accept-Language", language)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		read, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return answer{response.StatusCode, response.Header, string(read)}
	}
	days := func() int64 { t.Helper(); return e.One(t, `SELECT count(*) FROM history_days`) }
	const text = "day,page,page_views\n2019-05-03,/a,9\n2019-05-04,/<b>,3\n"
	a := send(max, text, "do", "import history", "from", "csv", "site", "example.com", "try", "true")
	require.Equal(t, 200, a.status, a.body)
	assert.Contains(t, a.body, "Nothing has been imported yet. 2 lines read; days of sites: 2 added")
	assert.Contains(t, a.body, "<bdi>example.com/%3Cb%3E</bdi>")
	assert.Zero(t, days())
	a = send(max, text, "do", "import history", "from", "csv", "site", "example.com", "offsets", "true")
	assert.Contains(t, a.body, "Imported. 2 lines read")
	assert.Contains(t, a.body, "offsets: 3 added, 0 changed, 0 unchanged")
	assert.Contains(t, a.body, "another counter")
	assert.Equal(t, []int64{2, 3}, []int64{days(), e.One(t, `SELECT count(*) FROM offsets`)})
	for _, wrong := range []struct {
		text, from, site, says string
	}{
		{"day,page,page_views\n2019-05-03,/a,<i>\n", "csv", "example.com",
			"a.csv, line 2, column page_views: &#34;&lt;i&gt;&#34; is not a number"},
		{text, "nobody", "example.com", "&#34;nobody&#34; is not possible"}, {text, "csv", "other.example", "app shop does not count other.example"},
		{"PK\x03\x04", "csv", "", "it is damaged or incomplete"}, {"", "csv", "", "choose a file"},
	} {
		a = send(max, wrong.text, "do", "import history", "from", wrong.from, "site", wrong.site)
		require.Equal(t, 400, a.status, a.body)
		assert.Contains(t, a.body, wrong.says)
	}
	a = send(max, "date,nb_hits,nb_uniq_visitors,metadata_url\n2019-05-05,20,2,https://example.com/a\n", "do", "import history", "from",
		"matomo", "offsets", "true", "try", "true")
	assert.Regexp(t, `<th scope="row"><bdi>example.com/a</bdi></th><td data-of="Before"><bdi>hot 9, pv 0, uv 0</bdi></td>`+
		`<td data-of="After"><bdi>hot 29, pv 2, uv 0</bdi></td>`, a.body)
	assert.Contains(t, a.body, `<bdi>hot 12, pv 0, uv 0</bdi></td><td data-of="After"><bdi>hot 32, pv 0, uv 0</bdi></td>`)
	a = send(max, "uri,hot\nexample.com,7\nexample.com/new,5\n", "do", "import history", "from", "vercount", "try", "true")
	assert.Contains(t, a.body, "Nothing has been imported yet. offsets: 1 added, 1 changed, 0 unchanged")
	assert.Contains(t, a.body, `<bdi>hot 12, pv 0, uv 0</bdi></td><td data-of="After"><bdi>hot 19, pv 0, uv 0</bdi></td>`)
	assert.NotContains(t, a.body, "The first days")
	a = send(max, "uri,hot\nexample.com,7\n", "do", "import history", "from", "vercount")
	assert.Contains(t, a.body, "Imported. offsets: 0 added, 1 changed, 0 unchanged")
	const lean = `{"url":"/lean/","time":7}` + "\n" + `{"target":"site-pv","time":9}`
	a = send(max, lean, "do", "import history", "from", "leancloud", "site", "example.com")
	assert.Contains(t, a.body, "Imported. offsets: 1 added, 1 changed, 0 unchanged")
	a = send(max, `{"url":"/lean/"}`, "do", "import history", "from", "leancloud", "site", "example.com")
	assert.Contains(t, a.body, "line 1, column time: it is missing")
	a = send(max, text, "do", "import history", "from", "busuanzi", "site", "example.com")
	assert.Contains(t, a.body, "has totals, which become offsets")
	assert.Equal(t, 403, send(e.member("Lena", "shop"), text, "do", "import history", "from", "csv").status)
	assert.Equal(t, int64(2), days())
	assert.Equal(t, []string{"account Max | history | a.csv, 2 days added, 0 days replaced"},
		e.texts(`SELECT concat_ws(' | ', who, what, is_now) FROM changes WHERE what = 'history'`))
	asked := max.sends("/settings/shop", "do", "remove history", "one", "2").body
	assert.Contains(t, asked, "All days from this import will be removed.")
	assert.Contains(t, asked, `<bdi>hot 21, pv 0, uv 0</bdi></td><td data-of="After"><bdi>hot 9, pv 0, uv 0</bdi></td>`)
	assert.Equal(t, 400, max.sends("/settings/shop", "do", "remove history", "one", "1").status, "the trial has taken number 1")
	assert.Equal(t, 303, max.sends("/settings/shop", "do", "remove history", "one", "2", "sure", "yes").status)
	assert.Zero(t, days())
	language = "de"
	a = send(max, text, "do", "import history", "from", "csv", "site", "example.com", "try", "true")
	assert.Contains(t, a.body, "Noch ist nichts importiert. 2 Zeilen gelesen; Tage von Websites: 2 hinzugefügt, 0 ersetzt")
}

// Imported numbers have another shade next to counted ones, and totals show the imported part, or why it is not
// recorded.
func TestHistoryOnTheDashboard(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	e.history("demo", "4")
	w := newInternet(e)
	b, script := w.driveOwner(t), axe(t)
	text := b.text
	const until = "Counted by GoatCounter until 28 June 2019."
	drawn := func() (n int) { b.ask(`document.querySelectorAll('.plot .others').length`, &n); return n }
	for _, path := range []string{"/dash/demo/hhui.top", "/dash/demo/hhui.top?path=/home"} {
		is := text(path + map[bool]string{true: "?", false: "&"}[path[len(path)-1] == 'p'] + "range=30d")
		assert.Contains(t, is, until, path)
		assert.Regexp(t, `(?i)Visitors\s+–\s+some days were counted elsewhere, so returning visitors cannot be recognised`, is, path)
		assert.Regexp(t, `(?i)Visits\s+115\s+including 112 counted elsewhere`, is, path)
		assert.Regexp(t, `(?i)new\s+–\s+not reported by the tool`, is, path)
		assert.Equal(t, 28, drawn(), path)
		assertAccessible(t, b, script)
	}
	for _, look := range []struct {
		wide   int
		scheme string
	}{{1280, "light"}, {390, "dark"}} {
		b.look(look.wide, look.scheme)
		for name, query := range map[string]string{"30d": "?range=30d", "all": "?range=all", "week": "?range=all&period=week"} {
			b.open(dash + "/dash/demo/hhui.top" + query)
			var wide int
			b.ask(`document.documentElement.scrollWidth`, &wide)
			assert.LessOrEqual(t, wide, look.wide)
			b.shot(fmt.Sprintf("history-%s-%s", name, look.scheme))
		}
	}
	b.look(1280, "light")

	// A single day has visitors, also without counts of our own.
	is := text("/dash/demo/hhui.top?from=20190620&to=20190620")
	assert.Regexp(t, `(?i)Visitors\s+4\s+including 4 counted elsewhere`, is)
	is = text("/dash/demo/hhui.top?from=20190601&to=20190620")
	assert.Contains(t, is, "Counted by GoatCounter until 20 June 2019.")
	assert.Regexp(t, `(?i)Page views\s+200\s+including 200 counted elsewhere`, is)
	// The chart's file has days of both, with their source.
	file := e.get("/dash/demo/hhui.top?range=30d&panel=chart&format=csv").body
	assert.Contains(t, file, "\n20190628,4,,10,,goatcounter\r\n20190629,2,2,5,,\r\n")
	assert.Equal(t, 1+30, strings.Count(file, "\n"))
	assert.Contains(t, e.get("/dash/demo/hhui.top?range=30d").body,
		"/api/apps/demo/days?format=csv&amp;from=20190601&amp;history=yes&amp;limit=all&amp;site=hhui.top&amp;to=20190630")
	assert.Equal(t, file, e.get(e.share("demo", "hhui.top")+"?range=30d&panel=chart&format=csv&period=week").body, "by a link, too")
	// A filter excludes history, and days counted here are unchanged.
	assert.NotContains(t, text("/dash/demo/hhui.top?range=30d&where=page:/home"), "GoatCounter")
	is = text("/dash/demo/hhui.top?from=20190629&to=20190630")
	assert.NotRegexp(t, `\d counted elsewhere`, is)
	assert.Contains(t, is, until, "next to them")
	assert.Regexp(t, `Pages, as counted elsewhere\s(.|\s)*Everything below was counted here\.\s(.|\s)*`+
		`Pages\s+Page`, text("/dash/demo/hhui.top?range=30d"))

	// The total is never less than a part of it, whatever the offsets are.
	e.Exec(t, `INSERT INTO offsets (app_id, uri, hot, pv, uv) SELECT id, 'hhui.top', 400, 0, 0 FROM apps WHERE name = 'demo'`)
	tiles := regexp.MustCompile(`(?s)Visitors\n.*?counted elsewhere\n\n`)
	is = text("/dash/demo/hhui.top?range=all")
	assert.Regexp(t, `(?i)Page views\s+386\s+including 380 counted elsewhere`, is)
	assert.Equal(t, tiles.FindString(text("/dash/demo/hhui.top?range=year")), tiles.FindString(is), "all of history is of this year")
	assert.Contains(t, is, "406 page views")
	assert.Contains(t, is, until)

	// If the import has no visitors, the page states this.
	e.Exec(t, `UPDATE history SET visitors = NULL`)
	is = text("/dash/demo/hhui.top?range=30d")
	assert.Contains(t, is, "Some days counted elsewhere have no visitor numbers. Show page views.")
	assert.Zero(t, drawn())
	text("/dash/demo/hhui.top?range=30d&chart=views")
	assert.Equal(t, 28, drawn())
}

// Days without any counts are a gap and a dash, by day, week and month. A day of history can be opened by day. The
// legend names the series in the chart.
func TestHistoryHasGaps(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps() // on 29 and 30 June
	e.Exec(t, `INSERT INTO history_imports (app_id, source, files)
		SELECT id, s, '{a}' FROM apps, unnest('{goatcounter,plausible}'::text[]) AS s WHERE name = 'demo'`)
	e.Exec(t, `INSERT INTO history_days (app_id, import_id, day_id, site)
		SELECT i.app_id, i.id, to_char(d, 'YYYYMMDD')::integer, 'hhui.top'
		FROM history_imports AS i, generate_series('2019-02-25'::date, '2019-05-05', '1 day') AS d
		WHERE d <= '2019-03-05' AND i.source = 'goatcounter' OR d >= '2019-05-01' AND i.source = 'plausible'`)
	e.Exec(t, `INSERT INTO history (day, uri, page_views, visitors, new_visitors) SELECT id, 'hhui.top', 10, 4, 1 FROM history_days`)
	w := newInternet(e)
	b, script := w.driveOwner(t), axe(t)
	table := func() (rows string) {
		t.Helper()
		b.ask(`[...document.querySelectorAll('section[aria-labelledby=chart] .sortable tbody tr')]
			.map(row => [...row.cells].map(c => c.textContent).join(' ')).join('\n')`, &rows)
		return rows
	}
	titles := func() (all string) {
		t.Helper()
		b.ask(`[...document.querySelectorAll('.plot .bar title')].map(t => t.textContent).join('\n')`, &all)
		return all
	}
	legend := func() (all string) {
		t.Helper()
		b.ask(`[...document.querySelectorAll('.legend li')].map(t => t.textContent).join(' | ')`, &all)
		return all
	}
	for _, c := range []struct{ period, history, gap, legend string }{
		{"day", "Tue 5 March 2019 4 1 10", "Wed 6 March 2019 – – –",
			"new | returning, counted again in each bar | counted elsewhere | no count"},
		{"week", "4–10 March 2019 – 2 20", "11–17 March 2019 – – –",
			"new | counted elsewhere: sum of daily visitors | no count"},
		{"month", "March 2019 – 5 50", "April 2019 – – –", "new | counted elsewhere: sum of daily visitors | no count"},
	} {
		is := b.text("/dash/demo/hhui.top?range=all&period=" + c.period)
		assert.Contains(t, is, "Counted by GoatCounter until 5 March 2019. Counted by Plausible until 5 May 2019.", c.period)
		rows := table()
		assert.Contains(t, rows, c.history, c.period)
		assert.Contains(t, rows, c.gap, c.period)
		assert.NotContains(t, rows, " 0 0 0", c.period)
		assert.NotContains(t, titles(), ": 0 visitors", c.period)
		assert.Contains(t, titles(), strings.TrimSuffix(c.gap, " – – –")+": no count", c.period)
		assert.Contains(t, titles(), "counted by GoatCounter: daily visitors ", c.period)
		assert.Equal(t, c.legend, legend(), c.period)
		b.shot("history-gaps-" + c.period)
		assertAccessible(t, b, script)
	}
	b.text("/dash/demo/hhui.top?range=today&period=day&chart=views")
	assert.Equal(t, "page views", legend())

	// A day of history has no hours, and a day without counts has no numbers.
	for _, query := range []string{"", "&period=hour"} {
		is := b.text("/dash/demo/hhui.top?from=2019-05-03&to=2019-05-03" + query)
		assert.Contains(t, is, "Visitors by day, with earlier days")
		assert.Contains(t, is, "Days counted elsewhere have no numbers by hour.")
		assert.NotRegexp(t, "No visitors|No page was visited|Everything below", is)
		assert.Equal(t, "counted elsewhere", legend())
		b.shot("history-gaps-one-day")
		assertAccessible(t, b, script)
	}
	for _, query := range []string{"from=2019-05-04&to=2019-05-05", "from=2019-05-05&to=2019-05-06"} {
		assert.NotContains(t, b.text("/dash/demo/hhui.top?"+query), "Nothing was counted on these days", query)
	}
	for _, query := range []string{"from=2019-03-06&to=2019-03-06", "from=2019-03-06&to=2019-04-30",
		"from=2019-04-01&to=2019-04-30&period=week"} {
		is := b.text("/dash/demo/hhui.top?" + query)
		assert.Regexp(t, "Nothing was counted on these days.|Counting began on 29 June 2019, after these days.", is, query)
		assert.NotRegexp(t, `\s0\s|Nobody`, is, query)
	}
	csv := e.get("/dash/demo/hhui.top?from=2019-03-06&to=2019-03-06&panel=hours&format=csv").body
	assert.Contains(t, csv, "nothing was counted on these days")
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	n int64
}

func (c *counted) Read(into []byte) (n int, err error) {
	n, err = c.Reader.Read(into)
	c.n += int64(n)
	return n, err
}

// Files are read only if they are sent to an app's page by an account that may change the app.
func TestFilesAreSentToAppsAlone(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const begins = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
	file, ends := bytes.NewReader(make([]byte, 32<<20)), strings.NewReader("\r\n--x--\r\n")
	sent := &counted{Reader: io.MultiReader(strings.NewReader(begins), file, ends)}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.public+"/settings", io.NopCloser(sent))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	r.Header.Set("Cookie", e.member("Lena", "shop").cookie())
	if response, err := http.DefaultClient.Do(r); err == nil { // the service may hang up before the client has read
		defer response.Body.Close()
		assert.NotEqual(t, http.StatusServiceUnavailable, response.StatusCode)
	}
	assert.Less(t, sent.n, int64(16<<20))
}
