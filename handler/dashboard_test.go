package handler

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/embed"
	"footfall/web"
)

// person is a client with a browser that keeps cookies and follows no redirect by itself.
type person struct {
	*edge
	cookies map[string]string
}

func (p *person) do(method, path string, form url.Values, headers ...string) answer {
	p.t.Helper()
	if form != nil {
		headers = append(headers, "Content-Type", "application/x-www-form-urlencoded")
	}
	return p.send(method, path, form.Encode(), headers...)
}

func (p *person) send(method, path, body string, headers ...string) answer {
	p.t.Helper()
	headers = append(headers, "Cookie", p.cookie())
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(context.Background(), method, p.public+path, strings.NewReader(body))
	require.NoError(p.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(r)
	require.NoError(p.t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	for _, c := range response.Cookies() {
		p.cookies[c.Name] = c.Value
		if c.MaxAge < 0 {
			delete(p.cookies, c.Name)
		}
	}
	return answer{response.StatusCode, response.Header, string(read)}
}

func (p *person) cookie() string {
	var all []string
	for name, value := range p.cookies {
		all = append(all, name+"="+value)
	}
	return strings.Join(all, "; ")
}

func (p *person) get(path string) answer { p.t.Helper(); return p.do(http.MethodGet, path, nil) }

// signsIn enters a name and a password on the page at path.
func (p *person) signsIn(path, name, password string, headers ...string) answer {
	p.t.Helper()
	require.Contains(p.t, p.get(path).body, `name="password"`, path)
	return p.do(http.MethodPost, "/enter", url.Values{"to": {path}, "name": {name}, "password": {password}}, headers...)
}

// member returns a signed-in person who may see some apps.
func (e *edge) member(name string, apps ...string) *person {
	e.t.Helper()
	return &person{e, map[string]string{sessionCookie: e.SignIn(e.t, name, desk.Looks(apps...))}}
}

func newPerson(e *edge) *person { return &person{e, map[string]string{}} }

func TestDashboardNeedsRights(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.counting(0, "192.0.2.1", "http://hhui.top/home")
	t.Run("an open app is everybody's", func(t *testing.T) {
		a := newPerson(e).get("/dash/demo/hhui.top")
		assert.Equal(t, http.StatusOK, a.status)
		assert.NotContains(t, a.body, "/leave")
		assert.Empty(t, a.header.Values("Set-Cookie"))
		home := newPerson(e).get("/").body
		assert.NotContains(t, home, "demo", "it is in no list where there is another app")
		assert.NotContains(t, home, "shop")
	})
	t.Run("a closed app and a missing one get the same response", func(t *testing.T) {
		p := newPerson(e)
		p.get("/enter")
		closed, missing := p.get("/dash/shop/example.com?range=7d"), p.get("/dash/shoq/example.com?range=7d")
		assert.Equal(t, http.StatusForbidden, closed.status)
		assert.Equal(t, closed.status, missing.status)
		assert.Equal(t, strings.ReplaceAll(closed.body, "/dash/shop/", "/dash/shoq/"), missing.body)
		for _, a := range []*answer{&closed, &missing} {
			a.header.Del("Date")
		}
		assert.Equal(t, closed.header, missing.header)
		assert.Equal(t, "no-store", closed.header.Get("Cache-Control"))
	})
	t.Run("a name and its password open the account's apps, at the address that the reader requested", func(t *testing.T) {
		p := newPerson(e)
		e.SignIn(t, "Björn", desk.Looks("shop"))
		for _, wrong := range [][2]string{{"Björn", desk.Password + "x"}, {"Björn", ""}, {"Bjorn", desk.Password}, {"", ""}} {
			a := p.signsIn("/dash/shop?range=7d", wrong[0], wrong[1])
			assert.Equal(t, http.StatusForbidden, a.status)
			assert.Contains(t, a.body, "The name or the password is wrong")
			assert.Contains(t, a.body, `value="/dash/shop?range=7d"`)
		}
		a := p.signsIn("/dash/shop?range=7d", " bjo\u0308rn ", desk.Password)
		assert.Equal(t, http.StatusSeeOther, a.status)
		assert.Equal(t, "/dash/shop?range=7d", a.header.Get("Location"))
		given := a.header.Get("Set-Cookie")
		for _, part := range []string{"footfall_session=", "Path=/", "Max-Age=2592000", "HttpOnly", "SameSite=Lax"} {
			assert.Contains(t, given, part)
		}
		assert.NotContains(t, given, "Secure", "which over plain http a browser would not keep")
		assert.Equal(t, http.StatusOK, p.get("/dash/shop?range=7d").status)
		opens := func() string { return p.get("/").header.Get("Location") }
		assert.Equal(t, "/new/shop", opens(), "nothing was counted yet")
		e.administer(func(ctx context.Context, a *admin.Admin) error {
			_, err := a.AddSites(ctx, "shop", []string{"www.example.com"})
			return err
		})
		for _, counted := range [][2]string{{"event=signup", "/dash/shop"}, {"uri=http://example.com/a", "/dash/shop/example.com"},
			{"uri=http://www.example.com/a", "/dash/shop"}} {
			require.Equal(t, http.StatusOK, e.ask(http.MethodGet, "/visit?app=shop&"+counted[0], "User-Agent", desk.Browser).status)
			assert.Equal(t, counted[1], opens(), counted[0])
		}
	})
}

var (
	panelSQL  = regexp.MustCompile(`(?s)<a href="([^"]*)" download>CSV</a> <a href="([^"]*)">JSON</a>.*?<pre tabindex="0">(.*?)</pre>`)
	panelName = regexp.MustCompile(`/api/apps/demo/([a-z-]*)`)
)

// Each panel of a page can be read in three ways, with the same content.
func TestDashboardPanelsAreTheirSQL(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.counting(0, "192.168.0.3", "http://hhui.top/home?utm_campaign=it's")
	e.sixSteps()
	e.counting(3, "192.168.0.1", "http://hhui.top/o'clock?;--")
	e.counting(1, "192.168.0.1", "http://hhui.top/it's/half/past")
	e.counting(3, "192.168.0.1", "http://other.example/x?utm_campaign=it's")
	e.Close() // also adds up tags
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.SetOffsets(ctx, "demo", []admin.Offset{{URI: "hhui.top", Hot: 300, PV: 200, UV: 100}}, false)
		if err == nil {
			_, err = a.AddNote(ctx, "demo", "2019-06-30", "=a 'new' version, at last", "hhui.top")
		}
		return err
	})
	e.Exec(t, `INSERT INTO titles (page_id, title, told_at) SELECT id, 'It''s; ' || uri, now() FROM pages WHERE site_id IS NOT NULL`)
	for _, at := range []string{"/dash/demo/hhui.top?range=all", "/api/apps/demo/pages?site=hhui.top&order=uri"} {
		assert.Contains(t, e.get(at+"&find=IT%27s%3b%20hh").body, "/home", "a part of its title: %s", at)
	}
	conn := e.Conn(e.t)
	panels := map[string]int{}
	for _, path := range []string{
		"/dash/demo", "/dash/demo?range=all", "/dash/demo/hhui.top", "/dash/demo/hhui.top?range=all&period=week&by=hot",
		"/dash/demo/hhui.top?range=today&compare=year",
		"/dash/demo/hhui.top?page=/home&from=2019-06-29&to=2019-06-30&compare=none", "/dash/demo/hhui.top?page=/o%27clock&range=7d",
		"/dash/demo/never.example",
		"/dash/demo/hhui.top?range=today&period=hour", "/dash/demo/hhui.top?from_by=campaign&value=it%27s",
		"/dash/demo/hhui.top?find=HOM&range=all", "/dash/demo/hhui.top?find=o%27clock",
	} {
		page := e.get(path)
		require.Equal(t, http.StatusOK, page.status, page.body)
		for _, found := range panelSQL.FindAllStringSubmatch(page.body, -1) {
			asCSV, asJSON, statement := html.UnescapeString(found[1]), html.UnescapeString(found[2]), html.UnescapeString(found[3])
			if strings.HasPrefix(statement, "SELECT * FROM report.") { // report/panels_test.go tests these
				continue
			}
			var told string
			require.NoError(t, conn.QueryRow(t.Context(), `SELECT coalesce(json_agg(t), '[]')::text
				FROM (`+strings.TrimSuffix(statement, ";")+`) AS t`).Scan(&told), statement)
			shown := e.get(asJSON)
			saysTheSame(t, told, shown.body)
			assertCSV(t, shown.body, e.get(asCSV).body)
			panels[panelName.FindStringSubmatch(asCSV)[1]] += strings.Count(shown.body, "{")
		}
	}
	for _, name := range []string{"sites-between", "numbers", "chart", "pages", "returns", "first-visits", "totals", "tags", "tag-pages"} {
		assert.Positive(t, panels[name], name)
	}
	for _, wrong := range []string{"panel=x&format=csv", "panel=search&format=csv", "find=x&panel=pages&format=csv", "find=%00",
		"panel=folders&format=csv", "find=" + strings.Repeat("f", 201), "panel=pages&format=x", "panel=sites&format=csv", "range=x", "from=x",
		"from=0001-01-01&to=2019-06-29", "page=home", "page=%00", "page=/%00", "compare=x", "by=x", "period=x", "sort=x", "page=%zz"} {
		a := e.get("/dash/demo/hhui.top?" + wrong)
		assert.Equal(t, http.StatusBadRequest, a.status, wrong)
		assert.Contains(t, a.body, "<h1>", wrong)
	}
}

// The files of a panel are reports for everyone who may see the app, and for no other caller. Their former addresses redirect
// to the reports. With a shared link, the addresses of the files are below the link.
func TestFilesAreReports(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "demo", app.Settings{Access: ptr("key"), Sites: []string{"hhui.top"}})
	})
	owner, anybody := e.member("Ann", "demo"), newPerson(e)
	for old, now := range map[string]string{
		"/dash/demo/hhui.top?from=2019-06-29&to=2019-06-29&panel=numbers&format=csv&compare=none": "/api/apps/demo/numbers?" +
			"format=csv&from=20190629&site=hhui.top&to=20190629",
		"/dash/demo/hhui.top?page=/home&from=2019-06-29&to=2019-06-30&panel=chart&format=json": "/api/apps/demo/chart?" +
			"format=json&from=20190629&period=day&to=20190630&uri=hhui.top%2Fhome",
		"/dash/demo/hhui.top?find=om&by=hot&range=today&compare=before&panel=search&format=csv": "/api/apps/demo/pages?" +
			"find=om&format=csv&from=20190630&limit=all&order=hot&site=hhui.top&to=20190630",
		"/dash/demo?panel=sites&format=json&from=2019-06-29&to=2019-06-29&compare=none": "/api/apps/demo/sites-between?" +
			"format=json&from=20190629&to=20190629",
		"/dash/demo/hhui.top?who&range=today&panel=who&format=json&compare=none": "/api/apps/demo/who-came?" +
			"format=json&from=20190630&limit=all&site=hhui.top&to=20190630",
	} {
		a := owner.get(old)
		assert.Equal(t, http.StatusFound, a.status, a.body)
		assert.Equal(t, now, a.header.Get("Location"), old)
		assert.Equal(t, http.StatusOK, owner.get(now).status, now)
		assert.Equal(t, http.StatusUnauthorized, anybody.get(now).status, now)
		assert.Equal(t, http.StatusForbidden, anybody.get(old).status, old)
	}
	share := e.share("demo", "hhui.top")
	page := html.UnescapeString(anybody.get(share + "?range=all").body)
	assert.NotContains(t, page, "/api/")
	for _, found := range regexp.MustCompile(`<a href="(/share/[^"]*format=csv)"`).FindAllStringSubmatch(page, -1) {
		a := anybody.get(found[1])
		assert.Equal(t, http.StatusOK, a.status, found[1])
		assert.Equal(t, "no-referrer", a.header.Get("Referrer-Policy"))
		assert.Contains(t, a.header.Get("Content-Disposition"), "attachment")
	}
	assert.Equal(t, http.StatusBadRequest, anybody.get(share+"?panel=numbers&format=x").status)
}

// listIn returns the list in a report.
func listIn(t *testing.T, report string) (rows []map[string]any) {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(report), &members))
	for _, member := range members {
		if member[0] == '[' {
			decoder := json.NewDecoder(bytes.NewReader(member))
			decoder.UseNumber()
			require.NoError(t, decoder.Decode(&rows))
		}
	}
	return rows
}

// saysTheSame compares a report with the rows of its statement, except for differences by design: a report shows
// pages in readable form, and leaves out the previous period if none is compared.
func saysTheSame(t *testing.T, told, report string) {
	t.Helper()
	var rows []map[string]any
	decoder := json.NewDecoder(strings.NewReader(told))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&rows))
	listed := listIn(t, report)
	require.Len(t, listed, len(rows))
	for i, row := range rows {
		require.Greater(t, len(listed[i]), 2)
		for column, value := range listed[i] {
			if column != "shown" {
				require.Equal(t, row[column], value, column)
			}
		}
	}
}

// assertCSV compares rows of CSV with the same rows in JSON.
func assertCSV(t *testing.T, asJSON, asCSV string) {
	t.Helper()
	rows := listIn(t, asJSON)
	lines, err := csv.NewReader(strings.NewReader(asCSV)).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, len(rows)+1)
	for i, row := range rows {
		for column, name := range lines[0] {
			require.Contains(t, row, name)
			want := fmt.Sprint(row[name])
			if list, is := row[name].([]any); is && name == "notes" {
				want = strings.Trim(fmt.Sprint(list), "[]")
			}
			require.Equal(t, strings.TrimPrefix(want, "'"), strings.TrimPrefix(lines[i+1][column], "'"))
		}
	}
}

// opens matches the one external link: from the numbers of a page to the page.
var opens = regexp.MustCompile(`<a class="open" href="https://hhui\.top(/home)?" rel="noreferrer">`)

var (
	ofMachines = regexp.MustCompile(`(?s)<pre.*?</pre>|<code.*?</code>|<[^>]*>|&[a-z0-9#]+;|\((pv|hot)\)`)
	theirWords = regexp.MustCompile(`(?i)\b(pv|uv|hot|rank)\b|[0-9]\x{202f}[0-9]|\b[0-9]{4,} (page|visitor)`)
)

// Pages name numbers in words, and group digits consistently. The legend lists the names in files and SQL.
func TestDashboardSpeaksToPeople(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.counting(0, "192.0.2.1", "http://hhui.top/home")
	e.manyPages(1500)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.SetOffsets(ctx, "demo", []admin.Offset{{URI: "hhui.top", Hot: 3000, PV: 2000, UV: 1000}}, false)
		return err
	})
	words := ""
	for _, path := range []string{"/", "/dash/demo", "/dash/demo/hhui.top", "/dash/demo/hhui.top?all",
		"/dash/demo/hhui.top?page=/p77&chart=views&from=2019-06-28&to=2019-06-29", "/dash/demo/hhui.top?range=7d&columns=more", "/proof",
		"/embed?app=demo"} {
		a := e.get(path)
		require.Equal(t, http.StatusOK, a.status, path)
		shown := ofMachines.ReplaceAllString(a.body, " ")
		assert.NotRegexp(t, theirWords, shown, path)
		words += shown
	}
	for _, said := range []string{"Visits", "Page views", "More columns", "The date of the last verification is not on record",
		"each counted once", "All 1,500", "Page views by day",
		"Most page views: Sat 29 June 2019 (3,"} {
		assert.Contains(t, words, said)
	}
	assert.Contains(t, e.get("/dash/demo").body, "Page views: each page opened.")
	assert.Regexp(t, opens, e.get("/dash/demo/hhui.top?page=/home").body)
	assert.NotRegexp(t, opens, e.get(e.share("demo", "hhui.top")+"?embed&page=/home").body, "in a frame of it")
}

// Every response of the dashboard has the same headers, including errors.
func TestDashboardHeaders(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	e.allIsCounted() // so that a page does not change between two requests
	for path, status := range map[string]int{
		"/": 200, "/dash/demo": 200, "/dash/demo/hhui.top": 200, "/dash/demo/hhui.top?page=/home": 200,
		"/dash/style.css": 200, "/dash/icon.svg": 200, "/dash/dash.js": 200, "/embed?app=demo": 200, "/embed": 403, "/enter": 200, "/leave": 200,
		"/dash/shop": 403, "/dash/demo/a%20b": 400, "/dash/demo?range=x": 400,
	} {
		a := e.get(path)
		assert.Equal(t, status, a.status, path)
		assert.Equal(t, web.Policy, a.header.Get("Content-Security-Policy"), path)
		assert.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"), path)
		assert.Empty(t, a.header.Get("Access-Control-Allow-Origin"), path)
		if strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			assert.NotRegexp(t, `(?i)<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|(src|href)=["']?(https?:)?//`, opens.ReplaceAllString(a.body, ""),
				path)
			assert.Equal(t, 1, strings.Count(a.body, "<h1"), path)
		}
	}
	require.Eventually(t, func() bool { return strings.Contains(e.get("/dash/demo/hhui.top").body, ", 12:00") }, dbtest.Patience, dbtest.Tick,
		"tags are added up, which changes the page")
	page := e.ask(http.MethodGet, "/dash/demo/hhui.top", "Accept-Encoding", "gzip")
	assert.Equal(t, "gzip", page.header.Get("Content-Encoding"))
	unzipped, err := gzip.NewReader(strings.NewReader(page.body))
	require.NoError(t, err)
	whole, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	assert.Equal(t, e.get("/dash/demo/hhui.top").body, string(whole))
	again := e.ask(http.MethodGet, "/dash/demo/hhui.top", "If-None-Match", page.header.Get("ETag"))
	assert.Equal(t, http.StatusNotModified, again.status)
	e.counting(1, "192.168.0.9", "http://hhui.top/home")
	again = e.ask(http.MethodGet, "/dash/demo/hhui.top", "If-None-Match", page.header.Get("ETag"))
	assert.Equal(t, http.StatusOK, again.status)

	off := Options{Log: slog.New(slog.DiscardHandler), Cells: e.options.Cells}
	server := httptest.NewServer(publicHandler(off))
	t.Cleanup(server.Close)
	for _, path := range []string{"/", "/dash/demo", "/enter", "/dash/style.css"} {
		assert.Equal(t, http.StatusNotFound, (&edge{t: t, public: server.URL}).get(path).status, path)
	}
}

// Browsers get a page for every mistyped address, and programs get JSON. Crawlers are sent away.
func TestDashboardHasAPageForWrongAddresses(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, path := range []string{"/nothing", "/dashboard/demo", "/api"} {
		a := e.ask(http.MethodGet, path, "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		assert.Equal(t, http.StatusNotFound, a.status, path)
		assert.Equal(t, "text/html; charset=utf-8", a.header.Get("Content-Type"), path)
		assert.Contains(t, a.body, `<h1>Not Found</h1>`, path)
		assert.Contains(t, a.body, `href="/"`, path)
		assert.Equal(t, web.Policy, a.header.Get("Content-Security-Policy"), path)
		for _, accept := range []string{"*/*", "application/json"} {
			assert.NotEmpty(t, e.ask(http.MethodGet, path, "Accept", accept).error(t), path)
		}
	}
	assert.NotEmpty(t, (&edge{t: t, public: e.admin}).ask(http.MethodGet, "/nothing", "Accept", "text/html").error(t),
		"the operator's listener has no pages")
	p := newPerson(e)
	for _, path := range []string{"/dash", "/dash/"} {
		a := p.get(path)
		assert.Equal(t, http.StatusFound, a.status, path)
		at, err := url.Parse(e.public + path)
		require.NoError(t, err)
		to, err := at.Parse(a.header.Get("Location"))
		require.NoError(t, err)
		assert.Equal(t, e.public+"/", to.String(), path)
	}
	robots, icon := e.get("/robots.txt"), e.get("/favicon.ico")
	assert.Equal(t, "User-agent: *\nDisallow: /\n", robots.body)
	assert.Equal(t, "text/plain; charset=utf-8", robots.header.Get("Content-Type"))
	assert.Equal(t, http.StatusOK, icon.status)
	assert.Equal(t, "image/svg+xml", icon.header.Get("Content-Type"))
}

// The lines for pages are shown to accounts that may see the app, with the address of the request and the app's
// numbers.
func TestDashboardShowsLinesForPages(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	p := newPerson(e)
	assert.Contains(t, p.get("/embed?app=demo").body, "an example with real numbers will appear here")
	e.sixSteps()
	e.counting(0, "192.0.2.1", "http://quiet.example/")
	page := html.UnescapeString(p.get("/embed?app=demo").body)
	assert.Contains(t, page, embed.Line(e.public, "demo"))
	assert.Contains(t, page, embed.PinnedLine(e.public, "demo"))
	assert.Regexp(t, `hhui\.top.*\s.*viewed <b>6</b> times by <b>2</b> visitors`, page)

	closed, missing := p.get("/embed?app=shop"), p.get("/embed?app=shoq")
	assert.Equal(t, http.StatusForbidden, closed.status)
	assert.Equal(t, strings.ReplaceAll(closed.body, "app=shop", "app=shoq"), missing.body)
	e.SignIn(t, "Ann", desk.Looks("shop"))
	a := p.signsIn("/embed?app=shop", "Ann", desk.Password)
	assert.Equal(t, "/embed?app=shop", a.header.Get("Location"))
	shown := p.do(http.MethodGet, "/embed?app=shop", nil)
	assert.Contains(t, html.UnescapeString(shown.body), embed.Line(e.public, "shop"))
	assert.Contains(t, shown.body, "/badge/shop.svg?uri=https%3A%2F%2Fexample.com%2F)", "of a site that it counts")
	assert.Contains(t, page, "/badge/demo.svg?uri=https%3A%2F%2Fhhui.top%2F)")

	// The page names the numbers that are not shown yet, and the setting to change.
	assert.NotContains(t, page, "They show “–”")
	assert.NotContains(t, shown.body, "cannot show numbers")
	assert.Contains(t, shown.body, "They show “–” until Public numbers in the app’s settings is")
	require.NoError(t, e.Admin.SetApp(t.Context(), "shop", app.Settings{PublicCounts: ptr("off")}))
	assert.Contains(t, p.get("/embed?app=shop").body, "Your pages cannot show numbers at present.")
	owner := e.owner()
	assert.Contains(t, owner.get("/embed?app=shop").body, `until <a href="/settings/shop#public">Public numbers</a> in`)
	assert.Contains(t, owner.get("/settings/shop").body, `<h2 id="counting">`)
	for path, status := range map[string]int{"/proof": 200, "/enter": 200, "/nowhere": 404, "/dash/nowhere": 403} {
		a := owner.do(http.MethodGet, path, nil, "Accept", "text/html")
		assert.Equal(t, status, a.status, path)
		assert.Regexp(t, `<bdi>Olga</bdi>.*href="/settings">Settings</a>.*>Sign out</a>`, a.body, path)
		assert.NotContains(t, a.body, `href="/enter"`, path)
	}
}

// rankSentence is the sentence about a rank at the top of a page.
const rankSentence = `<p data-footfall-sentence hidden>You are visitor <b data-footfall="page.rank"></b> of this page.</p>`

// The first page of a new user leads to the first visit.
func TestDashboardBeginsWithOneLine(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.administer(func(ctx context.Context, a *admin.Admin) error { return a.DeleteApp(ctx, "shop") })
	first := html.UnescapeString(e.get("/").body)
	assert.Contains(t, first, "Footfall is running.")
	line := regexp.MustCompile(`curl '([^']*)'`).FindStringSubmatch(first)
	require.NotNil(t, line)
	assert.Equal(t, http.StatusOK, e.get(strings.TrimPrefix(line[1], e.public)).status)
	assert.Contains(t, first, embed.Line(e.public, "demo")+"\n"+rankSentence)
	assert.Contains(t, first, `href="/embed?app=demo"`)
	then := newPerson(e).get("/")
	assert.Equal(t, "/dash/demo/hhui.top", then.header.Get("Location"), "one app with one site opens at once")
	assert.True(t, bytes.Contains([]byte(e.get("/dash/demo").body), []byte("hhui.top")))
}

// A list without rows has no link to more columns.
func TestEmptyListsHaveNoEmptyLink(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	page := e.get("/dash/demo/hhui.top?page=/index&range=today").body
	assert.Contains(t, page, "No visitors on these days.")
	assert.NotContains(t, page, `<a href="">`)
}
