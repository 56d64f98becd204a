package handler

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/desk"
	"footfall/handler/routing"
	"footfall/report"
	"footfall/visit"
)

// administer changes apps and keys, as an operator does.
func (e *edge) administer(f func(ctx context.Context, a *admin.Admin) error) {
	e.t.Helper()
	require.NoError(e.t, f(context.Background(), e.Admin))
}

func (e *edge) key(app string, scopes ...app.Scope) (key string) {
	e.t.Helper()
	e.administer(func(ctx context.Context, a *admin.Admin) (err error) {
		key, err = a.AddKey(ctx, app, scopes)
		return err
	})
	return key
}

// ask sends a request with headers: name, value, name, value …
func (e *edge) ask(method, pathAndQuery string, headers ...string) answer {
	e.t.Helper()
	return e.askWith("", method, pathAndQuery, headers...)
}

func (e *edge) askWith(body, method, pathAndQuery string, headers ...string) answer {
	e.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, e.public+pathAndQuery, strings.NewReader(body))
	require.NoError(e.t, err)
	r.Header.Set("User-Agent", desk.Browser)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(e.t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	require.NoError(e.t, err)
	e.t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return answer{response.StatusCode, response.Header, string(read)}
}

// counting counts a visit to app demo, on a day after the first.
func (e *edge) counting(day int, ip, uri string) {
	e.t.Helper()
	now := noon.AddDate(0, 0, day)
	e.Clock.Set(now)
	a := e.get("/visit?" + url.Values{"app": {"demo"}, "ip": {ip}, "uri": {uri}}.Encode())
	require.Equal(e.t, http.StatusOK, a.status, a.body)
}

// sixSteps counts the visits of the contract.
func (e *edge) sixSteps() {
	e.t.Helper()
	for _, step := range []struct {
		day      int
		ip, path string
	}{
		{0, "192.168.0.1", "/home"}, {0, "192.168.0.1", "/home"}, {0, "192.168.0.1", "/index"},
		{0, "192.168.0.2", "/index"}, {0, "192.168.0.2", "/home"}, {1, "192.168.0.2", "/home"},
	} {
		e.counting(step.day, step.ip, "http://hhui.top"+step.path)
	}
}

func TestReportsOfTheSixSteps(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	// GoatCounter has counted the day before, and the first day, which was also counted here.
	e.Exec(t, `INSERT INTO history_imports (app_id, source, files) SELECT id, 'goatcounter', '{a}' FROM apps WHERE name = 'demo'`)
	e.Exec(t, `INSERT INTO history_days (app_id, import_id, day_id, site)
		SELECT i.app_id, i.id, d, 'hhui.top' FROM history_imports AS i, unnest(ARRAY[20190628, 20190629]) AS d`)
	e.Exec(t, `INSERT INTO history (day, uri, page_views, visits) SELECT id, 'hhui.top', 7, 3 FROM history_days`)
	const home = `{"uri":"hhui.top/home","pv":3,"new_visitors":2,"uniques":2,"hot":4,"shown":"hhui.top/home"}`
	const index = `{"uri":"hhui.top/index","pv":2,"new_visitors":2,"uniques":2,"hot":2,"shown":"hhui.top/index"}`
	for _, c := range []struct{ ask, says string }{
		{"pages", `{"pages":[` + home + `,` + index + `]}`},
		{"pages?order=uv&limit=1&from=20190629&to=20190629",
			`{"pages":[{"uri":"hhui.top/home","pv":2,"new_visitors":2,"uniques":2,"hot":3,"shown":"hhui.top/home"}],"next":"dXYgMSAyIDI"}`},
		{"pages?order=uv&limit=1&from=20190629&to=20190629&after=dXYgMSAyIDI", `{"pages":[` + index + `]}`},
		{"pages?order=uv&from=20190630", `{"pages":[]}`},
		{"pages?order=uri&from=2019-06-30", `{"pages":[{"uri":"hhui.top/home","pv":1,"new_visitors":0,"uniques":1,"hot":1,"shown":"hhui.top/home"},{"uri":"hhui.top/index","pv":0,"new_visitors":0,"uniques":0,"hot":0,"shown":"hhui.top/index"}]}`},
		{"pages?order=uri&limit=1", `{"pages":[` + home + `],"next":"hhui.top/home"}`},
		{"pages?order=uri&after=hhui.top/home&site=hhui.top", `{"pages":[` + index + `]}`},
		{"pages?site=other.example", `{"pages":[]}`},
		{"days?site=hhui.top", `{"days":[{"day":20190629,"pv":2,"new_visitors":2,"hot":5},{"day":20190630,"pv":1,"new_visitors":0,"hot":1}]}`},
		{"days?uri=HTTPS://HHUI.top:443/./home%23top",
			`{"days":[{"day":20190629,"pv":2,"new_visitors":2,"hot":3},{"day":20190630,"pv":1,"new_visitors":0,"hot":1}]}`},
		{"days?site=http://HHUI.top&from=yesterday&to=today",
			`{"days":[{"day":20190629,"pv":2,"new_visitors":2,"hot":5},{"day":20190630,"pv":1,"new_visitors":0,"hot":1}],"from":20190629,"to":20190630}`},
		{"days?site=hhui.top&to=yesterday", `{"days":[{"day":20190629,"pv":2,"new_visitors":2,"hot":5}],"to":20190629}`},
		{"days?site=hhui.top&from=7d&to=2019-06-28", `{"days":[],"from":20190622,"to":20190628}`},
		{"days?site=hhui.top&limit=1", `{"days":[{"day":20190629,"pv":2,"new_visitors":2,"hot":5}],"next":"20190629"}`},
		{"days?site=hhui.top&after=20190629", `{"days":[{"day":20190630,"pv":1,"new_visitors":0,"hot":1}]}`},
		{"days?site=never.example", `{"days":[]}`},
		{"days?site=hhui.top&history=yes&limit=2",
			`{"days":[{"day":20190628,"pv":null,"new_visitors":null,"hot":7,"visits":3,"source":"goatcounter"},` +
				`{"day":20190629,"pv":2,"new_visitors":2,"hot":5,"visits":null,"source":""}],"next":"20190629"}`},
		{"days?site=hhui.top&history=yes&after=20190628&to=20190629",
			`{"days":[{"day":20190629,"pv":2,"new_visitors":2,"hot":5,"visits":null,"source":""}],"to":20190629}`},
		{"visitors?site=hhui.top", `{"visitors":[{"visitor":"192.168.0.2","rank":2,"new":false}],"day":20190630,"pv":1,"kept":true}`},
		{"visitors?site=hhui.top&day=20190629&limit=1",
			`{"visitors":[{"visitor":"192.168.0.1","rank":1,"new":true}],"next":"20190629-192.168.0.1","day":20190629,"pv":2,"kept":true}`},
		{"visitors?site=hhui.top&limit=1&after=20190629-192.168.0.1",
			`{"visitors":[{"visitor":"192.168.0.2","rank":2,"new":true}],"day":20190629,"pv":2,"kept":true}`},
		{"visitors?uri=http://hhui.top/never", `{"visitors":[],"day":20190630,"pv":0,"kept":true}`},
		{"ranks?site=hhui.top&rank=2", `{"ranks":[{"rank":2,"visitor":"192.168.0.2","first_day":20190629,"last_day":20190630,"erased":false}]}`},
		{"ranks?uri=http://hhui.top/index&ip=192.168.0.1",
			`{"ranks":[{"rank":1,"visitor":"192.168.0.1","first_day":20190629,"last_day":20190629,"erased":false}]}`},
		{"ranks?site=hhui.top&rank=3", `{"ranks":[]}`},
		{"ranks?site=hhui.top&ip=192.168.0.9", `{"ranks":[]}`},
		{"uniques?site=hhui.top", `{"uniques":2,"exact":true,"standard_error":0,"erased":0}`},
		{"uniques?site=hhui.top&from=20190630", `{"uniques":1,"exact":true,"standard_error":0,"erased":0}`},
		{"uniques?site=hhui.top&from=20190630&site=never.example", `{"uniques":1,"exact":true,"standard_error":0,"erased":0}`},
		{"uniques?uri=http://hhui.top/home&uri=http://hhui.top/index", `{"uniques":2,"exact":true,"standard_error":0,"erased":0}`},
		{"uniques?prefix=http://hhui.top/", `{"uniques":2,"exact":true,"standard_error":0,"erased":0}`},
	} {
		a := e.get("/api/apps/demo/" + c.ask)
		assert.Equal(t, http.StatusOK, a.status, c.ask)
		assert.Equal(t, c.says, a.body, c.ask)
	}
	assert.Regexp(t, `^{"sites":\[{"site":"hhui.top","pv":3,"uv":2,"hot":6,"since":"2019-06-29T00:00:00Z","shown":"hhui.top"}\]}$`,
		e.get("/api/apps/demo/sites").body)
	assert.Equal(t, `{"sites":[]}`, e.get("/api/apps/demo/sites?after=hhui.top").body)

	e.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.EraseVisitor(ctx, "demo", "192.168.0.1")
		return err
	})
	assert.Equal(t, `{"ranks":[{"rank":1,"erased":true}]}`, e.get("/api/apps/demo/ranks?site=hhui.top&rank=1").body)
	assert.Equal(t, "rank,visitor,first_day,last_day,erased\r\n1,,,,true\r\n",
		e.get("/api/apps/demo/ranks?site=hhui.top&rank=1&format=csv").body)
	assert.Equal(t, `{"uniques":2,"exact":true,"standard_error":0,"erased":0}`, e.get("/api/apps/demo/uniques?site=hhui.top").body)
	assert.Equal(t, `{"uniques":1,"exact":false,"standard_error":0,"erased":2}`,
		e.get("/api/apps/demo/uniques?uri=http://hhui.top/home&uri=http://hhui.top/index").body)
	assert.Equal(t, `{"uniques":2,"exact":true,"standard_error":0,"erased":0}`, e.get("/api/apps/demo/uniques?prefix=http://hhui.top/").body,
		"a whole site is one target")

	// A day whose rows are gone is distinguished from one without visitors.
	e.Exec(t, `INSERT INTO footfall.visits_kept (app_id, from_day) SELECT id, 20190630 FROM footfall.apps WHERE name = 'demo'`)
	e.Exec(t, `DELETE FROM footfall.visits WHERE day_id < 20190630`)
	for ask, says := range map[string]string{
		"day=20190629": `{"visitors":[],"day":20190629,"pv":2,"kept":false}`,
		"day=20190628": `{"visitors":[],"day":20190628,"pv":0,"kept":true}`,
		"day=20190630": `{"visitors":[{"visitor":"192.168.0.2","rank":2,"new":false}],"day":20190630,"pv":1,"kept":true}`,
	} {
		assert.Equal(t, says, e.get("/api/apps/demo/visitors?site=hhui.top&"+ask).body)
	}
}

// Every row of a report can be queried, even rows that no URI leads to.
func TestReportsKnowWhatTheyList(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.AddApp(ctx, "tight", app.Settings{Access: ptr("open"), MaxNewPages: ptr("8"), KeepQuery: []string{"q"}})
	})
	for _, uri := range []string{
		"http://a.example/", "https://a.example:80/x", "http://a.example:443/x", "http://a.example/%28other%29", "http://a.example/?q=a%26b",
		"http://a.example/%23",
		"http://a.example/x#/route", "http://[::1]:8080/", "http://a.example/9", "http://new.example/",
	} {
		a := e.get("/visit?" + url.Values{"app": {"tight"}, "ip": {"192.0.2.1"}, "uri": {uri}}.Encode())
		require.Equal(t, http.StatusOK, a.status, a.body)
	}
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.DeletePage(ctx, "tight", "http://a.example/")
	})
	sites := e.readAll("/api/apps/tight/sites?", "sites", "site", nil)
	pages := e.readAll("/api/apps/tight/pages?order=uri", "pages", "uri", nil)
	assert.Contains(t, sites, "(other)")
	assert.Subset(t, pages, []string{"a.example/%28other%29", "a.example/(other)", "a.example/(deleted)", "a.example:80/x", "a.example:443/x",
		"a.example/?q=a%26b"})
	for _, site := range sites {
		assert.Contains(t, e.get("/api/apps/tight/days?"+url.Values{"site": {site}}.Encode()).body, `"day":20190629`, site)
	}
	for _, page := range pages {
		assert.Contains(t, e.get("/api/apps/tight/days?"+url.Values{"uri": {page}}.Encode()).body, `"day":20190629`, page)
	}
}

func TestReportsRefuse(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, c := range []struct{ ask, says string }{
		{"sites?limit=0", "limit:"}, {"sites?limit=1001", "limit:"}, {"sites?limit=ten", "limit:"}, {"sites?limit=", "limit: it is empty"},
		{"sites?limit=1&limit=1", "limit: it is given twice"},
		{"sites?page=2", `"page": it is not a parameter of this report: use format, after, limit`},
		{"sites?LIMIT=1", `"LIMIT": it is not a parameter`}, {"sites?%zz=1", `"%zz": it is not`}, {"sites?after=%zz", "after: it has a %"},
		{"sites?after=%00", "after: it is not text"}, {"sites?after=%ff", "after: it is not text"}, {"sites?format=xml", "format:"},
		{"pages?order=rank", "order:"}, {"pages?from=20190231", `from: "20190231" is not a day`}, {"pages?to=2019-13-01", "to:"},
		{"pages?from=20190630&to=20190629", "from: 20190630 is after the last day, 20190629"}, {"pages?site=ftp://example.com", "site:"},
		{"pages?after=hhui.top/home", "after: it does not fit this order of rows"},
		{"pages?order=hot&after=dXYgMSAyIDI", "after: it does not fit this order of rows"},
		{"pages?after=cHYgMTAwMDEgMCAw", "after:"}, {"pages?after=cHYgMSAwIDAAA", "after:"},
		{"pages?limit=all&after=cHYgMSAwIDA", "after: it is given together with limit=all"}, {"sites?limit=all", "limit:"},
		{"pages?find=x", "site: it is missing"},
		{"numbers?site=a.example&days_before=7", "from: it is missing"}, {"numbers?site=a.example&from=7d&days_before=0", "days_before:"},
		{"chart?site=a.example&period=hour", "period:"},
		{"numbers?site=a.example&from=20190601&to=20190628&days_before=7&compared_to=20190629", "compared_to: 20190629 is after the last day"},
		{"numbers?site=a.example&from=20190601&compared_to=20190629", "compared_to: it is given without days_before"},
		{"chart?site=a.example&from=20190601&compared_from=20190602", "compared_from: it is given without days_before"},
		{"tag-pages?site=a.example", "value: it is missing"}, {"tag-pages?value=x", "site: it is missing"},
		{"days", "uri: it is missing"}, {"days?uri=ftp://hhui.top/", "uri: it does not begin with http"},
		{"days?uri=a%20b/(other)", "uri: its host is not a valid"}, {"days?uri=http://a.example/&site=a.example",
			"site: it is given together with uri"},
		{"days?uri=http://a.example/&uri=http://b.example/", "uri: it is given twice"}, {"days?site=a.example&after=soon", "after:"},
		{"visitors?day=20190631&site=a.example", "day:"}, {"visitors?site=a.example&after=192.0.2.1", "after:"},
		{"visitors?site=a.example&after=20190629-x", "after:"},
		{"visitors?site=a.example&after=20190629-fe80::1%25eth0", "after:"}, {"visitors?site=a.example&day=20190630&after=20190629-192.0.2.1",
			"after:"},
		{"ranks?site=a.example", "rank: it is missing"}, {"ranks?site=a.example&rank=0", "rank:"},
		{"ranks?site=a.example&rank=1&ip=192.0.2.1", "ip: it is given together with rank"},
		{"ranks?site=a.example&ip=192.0.2", "ip: it is not an IPv4 or IPv6 address"},
		{"ranks?site=a.example&visitor=me", "visitor: app demo distinguishes visitors by address"},
		{"uniques", "uri: it is missing"}, {"uniques?prefix=http://a.example/&site=a.example", "prefix: it is given together with"},
		{"uniques?prefix=ftp://a.example", "prefix: it does not begin with http"},
		{"uniques?prefix=http://a.example/?q", "prefix: it has a query"}, {"uniques?site=a.example&site=%20", "site:"},
	} {
		a := e.get("/api/apps/demo/" + c.ask)
		assert.Equal(t, http.StatusBadRequest, a.status, c.ask)
		assert.Contains(t, a.error(t), c.says, c.ask)
		assert.Equal(t, "no-store", a.header.Get("Cache-Control"))
	}
	for _, path := range []string{"/api/apps/demo/", "/api/apps/demo/secrets", "/api/apps/demo/sites/", "/api/apps//sites",
		"/api/"} {
		a := e.get(path)
		assert.Contains(t, []int{http.StatusNotFound, http.StatusBadRequest, http.StatusUnauthorized}, a.status, path)
	}
	a := e.do(http.MethodPost, e.public+"/api/apps/demo/sites", "", "")
	assert.Equal(t, http.StatusMethodNotAllowed, a.status)
	assert.Equal(t, "GET, HEAD", a.header.Get("Allow"))
}

func TestReportsAreForWhoMayRead(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, name := range []string{"shop", "demo"} { // filters for a missing site are refused
		require.Equal(t, http.StatusOK, e.get("/visit?app="+name+"&uri=http://example.com/").status)
	}
	read, count := e.key("shop", app.ScopeRead), e.key("shop", app.ScopeCount, app.ScopeAssert)
	foreign, revoked := e.key("demo", app.ScopeRead), e.key("shop", app.ScopeRead)
	e.administer(func(ctx context.Context, a *admin.Admin) error { return a.RevokeKey(ctx, "shop", revoked) })
	for _, k := range report.Reports {
		for _, c := range []struct {
			app, key, query string
			status          int
			says            string
		}{
			{"shop", read, "", 200, ""},
			{"shop", "", "", 401, "key: app shop shows its reports only with a key"},
			{"shop", "", "nonsense=1", 401, "key:"},
			{"shop", count, "", 403, "key: app shop shows its reports only with a key of the scope read, which"},
			{"shop", count, "nonsense=1", 403, "key:"},
			{"shop", foreign, "", 401, "key: it is not a key of app shop"},
			{"shop", revoked, "", 401, "key: it is not a key of app shop"},
			{"shop", read + "x", "nonsense=1", 401, "key: it is not a key of app shop"},
			{"shop", read, "nonsense=1", 400, `"nonsense": it is not a parameter`},
			{"nobody", read, "nonsense=1", 404, "app: there is no app"},
			{"demo", "", "", 200, ""},
			{"demo", read, "", 401, "key: it is not a key of app demo"},
		} {
			query := map[string]string{"sites": "", "pages": "", "sites-between": "", "ranks": "site=example.com&rank=1",
				"tag-pages": "site=example.com&value=x", "funnel": "site=example.com&step=new"}
			asked, is := query[k.Name]
			if !is {
				asked = "site=example.com"
			}
			if k.ToNamed && c.app == "demo" && c.status == 200 {
				c.status, c.says = 403, "key: visitors are listed only"
			}
			var headers []string
			if c.key != "" {
				headers = []string{"Authorization", "Bearer " + c.key}
			}
			a := e.ask(http.MethodGet, "/api/apps/"+c.app+"/"+k.Name+"?"+asked+"&"+c.query, headers...)
			require.Equal(t, c.status, a.status, "%s of %s: %s", k.Name, c.app, a.body)
			assert.Contains(t, a.body, strings.ReplaceAll(c.says, `"`, `\"`))
			assert.Equal(t, c.status == 401, a.header.Get("WWW-Authenticate") == "Bearer")
		}
	}
	assert.Equal(t, http.StatusUnauthorized, e.get("/api/apps/shop/sites?access_token="+read).status, "a key is no parameter")

	// The parts of an open app's response that a page of another site could read in a visitor's browser.
	for _, origin := range []string{"https://hhui.top", "https://example.com", "null"} {
		a := e.ask(http.MethodGet, "/api/apps/demo/sites", "Origin", origin)
		for name := range a.header {
			assert.NotContains(t, name, "Access-Control", "%s", origin)
		}
		assert.Equal(t, "same-origin", a.header.Get("Cross-Origin-Resource-Policy"))
		preflight := e.ask(http.MethodOptions, "/api/apps/demo/sites", "Origin", origin,
			"Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization")
		assert.Equal(t, http.StatusMethodNotAllowed, preflight.status)
		assert.Empty(t, preflight.header.Get("Access-Control-Allow-Origin"))
	}
}

// Visitors of deleted pages from before and after hashing cannot be counted together: lists have a dash, and a query only for
// these pages is refused with the reason.
func TestDeletedPagesAcrossHashing(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	e.counting(1, "192.168.0.1", "http://hhui.top/home")
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.DeletePage(ctx, "demo", "http://hhui.top/home")
	})
	const deleted = "uri=hhui.top/(deleted)"
	conn := e.Conn(t)
	for _, sql := range []string{
		`SELECT footfall.close_day(20190629)`,
		`INSERT INTO footfall.visits_kept (app_id, from_day, gone_before) VALUES (1, 20190630, 20190630)`,
		`DELETE FROM footfall.visits WHERE day_id < 20190630`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	told := map[string][2]string{ // before and after addresses are hashed
		"numbers?" + deleted + "&to=20190630": {`"uniques":2,`, `"uniques":null,"new_visitors":0,"pv":4,`},
		"pages?to=20190630":                   {`(deleted)","pv":4,"new_visitors":0,"uniques":2,`, `(deleted)","pv":4,"new_visitors":0,"uniques":null,`},
		"pages?order=uri&to=20190630":         {`(deleted)","pv":4,"new_visitors":0,"uniques":2,`, `(deleted)","pv":4,"new_visitors":0,"uniques":null,`},
		"pages?from=20190630&to=20190630":     {`(deleted)","pv":2,"new_visitors":0,"uniques":2,`, `(deleted)","pv":2,"new_visitors":0,"uniques":2,`},
		"pages?to=20190629":                   {`(deleted)","pv":2,"new_visitors":0,"uniques":2,`, `(deleted)","pv":2,"new_visitors":0,"uniques":2,`},
		"pages?to=20190630&format=csv":        {`(deleted)",4,0,2,`, `(deleted)",4,0,,`},
		"uniques?" + deleted + "&to=20190630": {`{"uniques":2,"exact":false,`, `visitors were counted by address before day 20190630`},
		"uniques?uri=hhui.top/index&" + deleted + "&to=20190630": {`{"uniques":2,"exact":false,`,
			`visitors were counted by address before day 20190630`},
		"uniques?uri=hhui.top/index&to=20190630": {`{"uniques":2,"exact":true,`, `{"uniques":2,"exact":true,`},
	}
	check := func(at int) {
		for ask, says := range told {
			assert.Contains(t, e.get("/api/apps/demo/"+ask).body, says[at], ask)
		}
	}
	check(0)
	hashed := app.ByHash
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "demo", app.Settings{Visitor: &hashed})
	})
	check(1)
	shown := e.shown("/dash/demo/hhui.top?page=/(deleted)&from=2019-06-29&to=2019-06-30")
	assert.Regexp(t, `(?s)Visitors</dt><dd class="big">–<.*not available: addresses were hashed during this period`, shown)
	assert.Regexp(t, `(?s)\(deleted\)</bdi></a></th><td[^>]*>–</td>`, e.shown("/dash/demo/hhui.top?from=2019-06-29&to=2019-06-30"))
}

func TestReportsFindVisitorsAsCountsDoes(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, c := range []struct{ app, visitor, who, sameAs, other string }{
		{"ids", "id", "visitor=you", "visitor=you", "visitor=other"},
		{"hashed", "hashed", "ip=2001:db8::7", "ip=2001:db8::8", "ip=2001:db8:1::7"},
		{"daily", "daily", "ip=192.0.2.7", "ip=::ffff:192.0.2.7", "ip=192.0.2.8"},
		{"wide", "address", "ip=2001:db8::7", "ip=2001:db8::8", "ip=2001:db8:1::7"},
		{"browsers", "browser", "ip=192.0.2.7&agent=Mozilla/5.0+(X11;+Linux+x86_64;+rv:140.0)+Gecko/20100101+Firefox/140.0",
			"ip=::ffff:192.0.2.7", "ip=192.0.2.8"},
	} {
		e.administer(func(ctx context.Context, a *admin.Admin) error {
			return a.AddApp(ctx, c.app, app.Settings{Sites: []string{"example.com"}, Visitor: &c.visitor})
		})
		key := e.key(c.app, app.ScopeAssert, app.ScopeRead)
		ask := func(path string) answer { return e.ask(http.MethodGet, path, "Authorization", "Bearer "+key) }
		a := ask("/visit?app=" + c.app + "&uri=http://example.com/&" + c.who)
		require.Equal(t, http.StatusOK, a.status, a.body)
		ranks := "/api/apps/" + c.app + "/ranks?site=example.com&"
		c.who, _, _ = strings.Cut(c.who, "&")
		assert.Contains(t, ask(ranks+c.who).body, `{"ranks":[{"rank":1,"visitor":"`, c.app)
		assert.Equal(t, ask(ranks+c.who).body, ask(ranks+c.sameAs).body, c.app)
		assert.Equal(t, `{"ranks":[]}`, ask(ranks+c.other).body, c.app)
	}
}

func TestReportIsAskedForAgain(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	const path = "/api/apps/demo/pages?limit=1"
	first := e.get(path)
	tag := first.header.Get("ETag")
	assert.Regexp(t, `^W/"[\w-]{43}"$`, tag)
	strong := strings.TrimPrefix(tag, "W/")
	assert.Equal(t, "private, no-cache", first.header.Get("Cache-Control"))
	assert.Equal(t, "Authorization, Cookie, Accept, Accept-Encoding", first.header.Get("Vary"))
	assert.Equal(t, "nosniff", first.header.Get("X-Content-Type-Options"))
	for said, status := range map[string]int{
		tag: 304, strong: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200, strings.Trim(strong, `"`): 200, "": 200,
	} {
		a := e.ask(http.MethodGet, path, "If-None-Match", said)
		assert.Equal(t, status, a.status, said)
		assert.Equal(t, tag, a.header.Get("ETag"))
		assert.Equal(t, first.header.Get("Link"), a.header.Get("Link"))
		assert.Equal(t, status == 200, a.body == first.body, said)
	}
	for encoding, packed := range map[string]string{"gzip, br": "gzip", "identity": ""} {
		a := e.ask(http.MethodGet, path, "Accept-Encoding", encoding)
		assert.Equal(t, packed, a.header.Get("Content-Encoding"))
		assert.Equal(t, tag, a.header.Get("ETag"))
		if packed != "" {
			unpacked, err := gzip.NewReader(strings.NewReader(a.body))
			require.NoError(t, err)
			plain, err := io.ReadAll(unpacked)
			require.NoError(t, err)
			a.body = string(plain)
		}
		assert.Equal(t, first.body, a.body)
	}
	other := e.ask(http.MethodGet, path+"&format=csv", "If-None-Match", tag)
	assert.Equal(t, http.StatusOK, other.status, "CSV is something else")
	head := e.ask(http.MethodHead, path)
	assert.Equal(t, tag, head.header.Get("ETag"))
	assert.Empty(t, head.body)
	e.counting(1, "192.168.0.3", "http://hhui.top/home")
	assert.Equal(t, http.StatusOK, e.ask(http.MethodGet, path, "If-None-Match", tag).status)
}

func TestReportAsCSV(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.counting(0, "192.0.2.1", "http://=1+1.example/,\"a\"")
	e.counting(0, "192.0.2.1", "http://-2.example/")
	e.Exec(t, `INSERT INTO titles (page_id, title, told_at) SELECT id, '=title', now() FROM pages WHERE uri LIKE '=%/%'`)
	a := e.get("/api/apps/demo/pages?format=csv&order=uri&limit=1")
	assert.Equal(t, "uri,pv,new_visitors,uniques,hot,shown,title\r\n'-2.example/,1,1,1,1,'-2.example/,\r\n", a.body)
	assert.Equal(t, `attachment; filename="footfall-demo-pages.csv"`, a.header.Get("Content-Disposition"))
	assert.Equal(t, "text/csv; charset=utf-8; header=present", a.header.Get("Content-Type"))
	assert.Equal(t, `<?after=-2.example%2F&format=csv&limit=1&order=uri>; rel="next"`, a.header.Get("Link"))
	a = e.get("/api/apps/demo/pages?after=-2.example%2F&format=csv&limit=1&order=uri")
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	require.NoError(t, err)
	assert.Equal(t, []string{"'=1+1.example/,%22a%22", "1", "1", "1", "1", "'=1+1.example/,%22a%22", "'=title"}, rows[1])
	assert.Empty(t, a.header.Get("Link"))

	_, err = e.Conn(e.t).Exec(t.Context(), `UPDATE footfall.pages SET uri = E'@SUM(1)\t"\r\n=2/' WHERE uri = '-2.example/'`)
	require.NoError(t, err)
	a = e.get("/api/apps/demo/pages?format=csv")
	assert.Contains(t, a.body, "\r\n\"'@SUM(1)\t\"\"\r\r\n=2/\",1", "what no URI can hold")

	for accept, kind := range map[string]string{
		"text/csv": "text/csv", "text/csv, application/json;q=0.9": "text/csv", "text/*": "text/csv",
		"application/json, text/csv;q=0.5": "application/json",
		"*/*":                              "application/json", "": "application/json", "text/html, */*;q=0.1": "application/json",
		"text/csv;q=0": "application/json",
		"TEXT/CSV;Q=1": "text/csv",
	} {
		a := e.ask(http.MethodGet, "/api/apps/demo/sites", "Accept", accept)
		got, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
		assert.Equal(t, kind, got, accept)
	}
	a = e.ask(http.MethodGet, "/api/apps/demo/sites?format=json", "Accept", "text/csv")
	assert.Equal(t, "application/json", a.header.Get("Content-Type"))
}

// readAll reads a list in parts, like a program that only uses next, and returns its names.
func (e *edge) readAll(path, list, name string, between func()) (names []string) {
	e.t.Helper()
	after := ""
	for {
		a := e.get(path + after)
		require.Equal(e.t, http.StatusOK, a.status, a.body)
		var said map[string]json.RawMessage
		require.NoError(e.t, json.Unmarshal([]byte(a.body), &said))
		var rows []map[string]any
		require.NoError(e.t, json.Unmarshal(said[list], &rows))
		for _, row := range rows {
			names = append(names, fmt.Sprint(row[name]))
		}
		if said["next"] == nil {
			return names
		}
		var next string
		require.NoError(e.t, json.Unmarshal(said["next"], &next))
		assert.Contains(e.t, a.header.Get("Link"), "after="+url.QueryEscape(next))
		after = "&after=" + url.QueryEscape(next)
		between()
	}
}

func TestListsAreWholeWhileVisitsAreCounted(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const pages = 36
	want := map[string]bool{}
	for i := range pages {
		for range i % 4 { // ties, and pages with only the first visitor
			e.counting(0, fmt.Sprintf("192.0.2.%d", i), fmt.Sprintf("http://s%d.example/%02d", i%3, i))
		}
		e.counting(0, "192.0.2.250", fmt.Sprintf("http://s%d.example/%02d", i%3, i))
		want[fmt.Sprintf("s%d.example/%02d", i%3, i)] = true
	}
	var visitor atomic.Int32
	climb := func() { // existing pages, the last ones and new ones
		n := int(visitor.Add(1))
		e.counting(0, fmt.Sprintf("198.18.%d.%d", n/256, n%256), fmt.Sprintf("http://s%d.example/%02d", n*7%pages%3, n*7%pages))
		e.counting(0, fmt.Sprintf("198.18.%d.%d", n/256, n%256), fmt.Sprintf("http://s1.example/new%d", n))
	}
	for _, order := range []string{"pv", "uv", "hot", "uri"} {
		for _, limit := range []int{5, pages} {
			still := e.readAll(fmt.Sprintf("/api/apps/demo/pages?order=%s&limit=%d", order, limit), "pages", "uri", func() {})
			assert.Equal(t, e.readAll("/api/apps/demo/pages?limit=1000&order="+order, "pages", "uri", nil), still, "%s by %d", order, limit)

			told := map[string]int{}
			for _, uri := range e.readAll(fmt.Sprintf("/api/apps/demo/pages?order=%s&limit=%d", order, limit), "pages", "uri", climb) {
				told[uri]++
				assert.Equal(t, 1, told[uri], "%s, by %s", uri, order)
			}
			for uri := range want {
				if order == "uri" {
					assert.Contains(t, told, uri)
				}
			}
		}
	}
	assert.Equal(t, []string{"s0.example", "s1.example", "s2.example"}, e.readAll("/api/apps/demo/sites?limit=1", "sites", "site", climb))
	visitors := e.readAll("/api/apps/demo/visitors?site=s1.example&day=20190629&limit=3", "visitors", "visitor", func() {})
	assert.Equal(t, visitors, e.readAll("/api/apps/demo/visitors?site=s1.example&day=20190629&limit=1000", "visitors", "visitor", nil))
	assert.Greater(t, len(visitors), 20)
}

// A report that gets no place in time is refused with the time to retry.
func TestReportsTakeTurns(t *testing.T) {
	t.Parallel()
	r := &reports{&service{Options: Options{reportWait: time.Hour, reportWithin: time.Millisecond, Log: slog.New(slog.DiscardHandler)}}}
	cell, other := routing.NewSingle(&routing.Cell{}).Home(), routing.NewSingle(&routing.Cell{Name: "other"}).Home()
	quick := func(context.Context) error { return nil }
	slow := func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("read: %w", ctx.Err())
	}
	refused := func(ctx context.Context, f func(context.Context) error) *visit.Error {
		err := r.readInPlace(ctx, cell.Places, f)
		told, ok := errors.AsType[*visit.Error](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, visit.Unavailable, told.Kind)
		assert.Positive(t, told.RetryAfter)
		return told
	}
	assert.Contains(t, refused(t.Context(), slow).Message(), "the report takes too long")
	r.reportWithin = time.Hour
	assert.Equal(t, "the database does not respond; try again", refused(t.Context(), func(context.Context) error {
		return errors.New("no such table")
	}).Message())

	for range cap(cell.Places) {
		cell.Places <- struct{}{}
	}
	r.reportWait = time.Millisecond
	assert.Contains(t, refused(t.Context(), quick).Message(), "too many reports")
	gone, leave := context.WithCancel(t.Context())
	leave()
	r.reportWait = time.Hour
	require.NoError(t, r.readInPlace(t.Context(), other.Places, quick), "no cell takes the places of another")
	require.ErrorIs(t, r.readInPlace(gone, cell.Places, quick), context.Canceled)
	for len(cell.Places) > 0 {
		<-cell.Places
	}
	require.NoError(t, r.readInPlace(t.Context(), cell.Places, quick))
	assert.Empty(t, cell.Places, "each gives its place back")

	// The cells are queried at once, so that several unavailable ones take as long as one.
	var met sync.WaitGroup
	met.Add(2)
	fails := other
	ask := func(_ context.Context, _ int, of *routing.Cell) error {
		met.Done()
		met.Wait()
		if of == fails {
			panic("it goes")
		}
		return nil
	}
	away, err := r.forEachCell(t.Context(), []*routing.Cell{cell, other}, ask)
	require.NoError(t, err)
	assert.Equal(t, []string{"other"}, away)
	met.Add(2)
	fails = cell
	_, err = r.forEachCell(t.Context(), []*routing.Cell{cell, other}, ask)
	require.ErrorContains(t, err, "it goes", "of the database from which the service begins")
}

// A report about an app or a site without visits is empty, not an error.
func TestReportsWithoutVisits(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for range 2 { // without any site, and next to a visited one
		for ask, told := range map[string]string{
			"numbers": `"uniques":0,"new_visitors":0,"pv":0`, "events": `"events":[]`, "tags": `"tags":[`, "chart?from=today&to=today": `"chart":[`,
			"goals?site=new.example&goal=event:signup": "nobody ever triggered", "funnel?site=new.example&step=page:/": `"visitors":0`,
			"one-page?site=new.example": `"visits":0`, "events?site=new.example": `"events":[]`, "goals?site=new.example": `"goals":[]`,
			"events?site=new.example&where=source:google": "where: nothing was counted for new.example yet",
		} {
			if a := e.get("/api/apps/demo/" + ask); strings.Contains(ask, "site=") || e.One(t, `SELECT count(*) FROM footfall.pages`) == 0 {
				assert.Contains(t, a.body, told, ask)
				assert.Equal(t, strings.HasPrefix(told, `"`), a.status == http.StatusOK, ask)
			}
		}
		assert.Zero(t, e.One(t, `SELECT count(*) FROM report.visitors_where('demo', 'new.example', 20190629, 20190629, '{}')`))
		e.brings(1, "http://hhui.top/home", "")
	}
}
