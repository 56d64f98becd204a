package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/counter/app"
	"footfall/desk"
	"footfall/handler/routing"
	"footfall/report"
	"footfall/visit"
)

// edge is the service on a desk, accessed over HTTP.
type edge struct {
	*desk.Desk
	t        *testing.T
	public   string // base URLs
	admin    string
	close    func()        // returns after every request to the public listener has been answered
	log      *bytes.Buffer // valid when no request is running
	stopping chan struct{}
	options  Options // of the public listener
}

// noon is in the middle of a day in every zone from UTC-11 to UTC+11.
var noon = time.Date(2019, 6, 29, 12, 0, 0, 0, time.UTC)

// one returns a service for a desk's database.
func one(d *desk.Desk) *routing.Cells {
	return routing.NewSingle(&routing.Cell{Counter: d.Counter, Admin: d.Admin, Reports: report.NewReader(d.DB)})
}

// newEdge returns an edge with two apps: demo, which is open, and shop, which counts example.com.
func newEdge(t *testing.T) *edge {
	t.Helper()
	e := &edge{t: t, log: new(bytes.Buffer), stopping: make(chan struct{})}
	e.Desk = desk.Open(t, desk.Options{Began: noon, Apps: map[string]app.Settings{"demo": {Access: ptr("open")},
		"shop": {Sites: []string{"example.com"}}}})
	e.options = Options{
		Log: slog.New(slog.NewTextHandler(e.log, nil)), Metrics: e.Metrics, Stopping: e.stopping,
		Cells: one(e.Desk), Accounts: account.Open(e.DB), Dashboard: true, Help: helpOfShell(),
		reportWait: time.Minute, reportWithin: time.Minute, panelWithin: time.Minute, readyWithin: time.Minute,
	}
	public := serve(t, publicHandler(e.options), e.options.Log)
	e.public, e.close = public.URL, public.Close
	e.admin = listen(t, adminHandler(e.options), e.options.Log)
	return e
}

// listen serves with the settings of Server.
func listen(t *testing.T, h http.Handler, log *slog.Logger) string {
	t.Helper()
	return serve(t, h, log).URL
}

func serve(t *testing.T, h http.Handler, log *slog.Logger) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config = newServer(h, log)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) error(t *testing.T) string {
	t.Helper()
	var said struct{ Error string }
	require.NoError(t, json.Unmarshal([]byte(a.body), &said), a.body)
	return said.Error
}

func (e *edge) do(method, target, contentType, body string) answer {
	e.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, target, strings.NewReader(body))
	require.NoError(e.t, err)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("X-Forwarded-For", "203.0.113.99") // to be ignored
	r.Header.Set("User-Agent", desk.Browser)
	response, err := http.DefaultClient.Do(r)
	require.NoError(e.t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	require.NoError(e.t, err)
	e.t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return answer{response.StatusCode, response.Header, string(read)}
}

func (e *edge) get(pathAndQuery string) answer {
	e.t.Helper()
	return e.do(http.MethodGet, e.public+pathAndQuery, "", "")
}

func (e *edge) post(body string) answer {
	e.t.Helper()
	return e.do(http.MethodPost, e.public+"/visit", "application/json", body)
}

// rows returns the number of rows in all tables of visits.
func (e *edge) rows() int64 {
	e.t.Helper()
	return e.One(e.t, `SELECT (SELECT count(*) FROM pages) + (SELECT count(*) FROM counters) + (SELECT count(*)
		FROM visitors) + (SELECT count(*) FROM visits)`)
}

func ptr[T any](v T) *T { return &v }

func counts(pv, uv, rank, hot int64) visit.Counts {
	return visit.Counts{PV: pv, UV: uv, Rank: rank, Hot: hot}
}

func expect(t *testing.T, site, page visit.Counts, a answer) {
	t.Helper()
	want, err := json.Marshal(visit.Answer{Site: site, Page: page})
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, a.status)
	assert.Equal(t, string(want), a.body)
}

// The six steps of the contract, with GET and POST in turns.
func TestSixSteps(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for i, step := range []struct {
		day        int
		ip, path   string
		site, page visit.Counts
	}{
		{0, "192.168.0.1", "/home", counts(1, 1, 1, 1), counts(1, 1, 1, 1)},
		{0, "192.168.0.1", "/home", counts(1, 1, 1, 2), counts(1, 1, 1, 2)},
		{0, "192.168.0.1", "/index", counts(1, 1, 1, 3), counts(1, 1, 1, 1)},
		{0, "192.168.0.2", "/index", counts(2, 2, 2, 4), counts(2, 2, 2, 2)},
		{0, "192.168.0.2", "/home", counts(2, 2, 2, 5), counts(2, 2, 2, 3)},
		{1, "192.168.0.2", "/home", counts(3, 2, 2, 6), counts(3, 2, 2, 4)},
	} {
		e.Clock.Set(noon.AddDate(0, 0, step.day))
		uri, a := "http://hhui.top"+step.path, answer{}
		if i%2 == 0 {
			a = e.get("/visit?" + url.Values{"app": {"demo"}, "ip": {step.ip}, "uri": {uri}}.Encode())
		} else {
			a = e.post(`{"app":"demo","ip":"` + step.ip + `","uri":"` + uri + `"}`)
		}
		expect(t, step.site, step.page, a)
		assert.Equal(t, "application/json", a.header.Get("Content-Type"))
		assert.Equal(t, "no-store", a.header.Get("Cache-Control"))
		assert.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	}
	expect(t, counts(3, 2, 0, 6), counts(3, 2, 0, 4), e.get("/counts?app=demo&uri=http://hhui.top/home"))
	expect(t, counts(3, 2, 1, 6), counts(3, 2, 1, 4), e.get("/counts?app=demo&uri=http://hhui.top/home&ip=192.168.0.1"))
	zero := counts(0, 0, 0, 0)
	expect(t, counts(3, 2, 1, 6), zero, e.get("/counts?app=demo&uri=http://hhui.top/never&ip=192.168.0.1"))
	expect(t, zero, zero, e.get("/counts?app=demo&uri=http://a.example/&ip=192.0.2.1"))

	// If no ip is asserted the peer is the visitor, also for an open app.
	one := counts(1, 1, 1, 1)
	expect(t, one, one, e.get("/visit?app=shop&uri=http://example.com/"))
	expect(t, one, one, e.get("/visit?app=demo&uri=http://example.com/"))
	expect(t, one, one, e.get("/counts?app=demo&uri=http://example.com/&ip=127.0.0.1"))
	expect(t, counts(1, 1, 0, 1), counts(1, 1, 0, 1), e.get("/counts?app=demo&uri=http://example.com/&ip=203.0.113.99"))
}

func tags(n int) (query string) {
	for i := range n {
		query += "&tag.t" + strconv.Itoa(i) + "=1"
	}
	return query[1:]
}

func TestBadInputStoresNothing(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, c := range []struct {
		query  string
		status int
		says   string
	}{
		{"", 400, "app: it is missing"},
		{"app=&uri=http://a/", 400, "app: it is empty"},
		{"app=demo&ip=&uri=http://a/", 400, "ip: it is empty"},
		{"app=demo&ip=1.2.3.4", 400, "uri: it is missing"},
		{"app=demo&uri=http://a/&app=demo", 400, "app: it is given twice"},
		{"app=demo&ip=1.1.1.1&ip=1.1.1.1&uri=http://a/", 400, "ip: it is given twice"},
		{"app=demo&uri=http://a/&%75ri=http://a/", 400, "uri: it is given twice"},
		{"app=demo&uri=http://a/%", 400, "uri: it has a %"},
		{"app=demo&uri=http://a/&tag.plan=%", 400, "tag.plan: it has a %"},
		{"app=demo&uri=http://a/&tag.plan=a&tag.plan=b", 400, `tags: "plan" is given twice`},
		{"app=demo&uri=http://a/&tag.plan=a", 400, `tags: app demo has no tag "plan" of its own`},
		{"app=demo&uri=http://a/&tag.source=a", 400, `tags: app demo has no tag "source" of its own`},
		{"app=demo&uri=http://a/&tag.=a", 400, `tags: app demo has no tag "" of its own`},
		{"app=demo&uri=http://a/&" + tags(21), 400, "tags: there are more than 20"},
		{"app=demo&uri=http://a/%zz", 400, "uri: it has a %"},
		{"app=demo&ip=1.1.1&uri=http://a/", 400, "ip: it is not"},
		{"app=demo&uri=javascript:alert(1)", 400, "uri: "},
		{"app=nobody&uri=http://a/", 404, `app: there is no app "nobody"`},
		{"app=shop&ip=1.1.1.1&uri=http://example.com/", 403, "ip: app shop accepts it only with a key of the scope assert"},
		{"app=shop&uri=http://other.example/", 403, "uri: app shop does not count the site other.example"},
		// Only the first of several faults is reported.
		{"app=nobody&ip=x&uri=x", 404, "app: "},
		{"app=nobody&ip=&uri=%zz", 404, "app: "},
		{"app=shop&ip=192.0.2.1&uri=a&uri=b", 403, "ip: "},
		{"app=shop&uri=http://other.example/&uri=b", 400, "uri: it is given twice"},
		{"app=shop&ip=x&uri=x", 403, "ip: "},
		{"app=demo&ip=x&uri=x", 400, "ip: "},
	} {
		a := e.get("/visit?" + c.query)
		assert.Equal(t, c.status, a.status, c.query)
		assert.Contains(t, a.error(t), c.says, c.query)
		if c.status != 403 || !strings.Contains(c.query, "&ip=") { // the same rules hold for /counts
			assert.Equal(t, c.status, e.get("/counts?"+c.query).status, c.query)
		}
	}
	a := e.get("/visit?app=%3Cscript%3E&uri=http://a/")
	assert.Equal(t, []any{404, "application/json", "nosniff"},
		[]any{a.status, a.header.Get("Content-Type"), a.header.Get("X-Content-Type-Options")})
	assert.NotContains(t, a.body, "<")
	const valid = `{"app":"demo","uri":"http://a/"`
	for _, c := range []struct {
		kind, body string
		status     int
		says       string
	}{
		{"application/json", ``, 400, "body: it is empty"},
		{"application/json", `[]`, 400, "body: it is not a JSON object"},
		{"application/json", valid, 400, "body: it is not valid JSON"},
		{"application/json", valid + `,"IP":"1.1.1.1"}`, 400, `body: "IP" is not a field`},
		{"application/json", valid + `,"ip":null}`, 400, "ip: it is not a string"},
		{"application/json", valid + `,"ip":""}`, 400, "ip: it is empty"},
		{"application/json", valid + `,"uri":"http://b/"}`, 400, "uri: it is given twice"},
		{"application/json", valid + `,"tags":["plan"]}`, 400, "tags: they are not an object of strings"},
		{"application/json", valid + `,"tags":{"plan":{"a":"b"}}}`, 400, "tags: they are not an object of strings"},
		{"application/json", valid + `,"tags":{"plan":"a"},"tags":{}}`, 400, "tags: they are given twice"},
		{"application/json", valid + `,"tags":{"plan":"a","plan":"b"}}`, 400, `tags: "plan" is given twice`},
		{"application/json", valid + `,"tag.plan":"a"}`, 400, `body: "tag.plan" is not a field`},
		{"application/json", valid + `}{}`, 400, "body: something follows"},
		{"application/json", "{\"app\":\"demo\",\"uri\":\"http://a/\xff\"}", 400, "body: it is not valid UTF-8"},
		{"application/json", valid + `,"ip":"` + strings.Repeat(" ", int(oneVisit.most)) + `"}`, 413, "body: it is larger"},
		{"", valid + `}`, 415, "body: send JSON"},
		{"application/x-www-form-urlencoded", "app=demo&uri=http://a/", 415, "body: send JSON"},
	} {
		a := e.do(http.MethodPost, e.public+"/visit", c.kind, c.body)
		assert.Equal(t, c.status, a.status, c.body)
		assert.Contains(t, a.error(t), c.says, c.body)
	}
	assert.Zero(t, e.rows())

	assert.Equal(t, http.StatusOK, e.do(http.MethodPost, e.public+"/visit", "application/json; charset=utf-8", valid+"} \n").status)
	assert.NotZero(t, e.rows(), "counted visits do leave rows")
}

// One call returns the same for many pages as many calls, and the reason for a URI that is not a page.
func TestCountsOfMany(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	ask := func(body string) answer { return e.do(http.MethodPost, e.public+"/counts", "application/json", body) }
	e.get("/visit?app=demo&uri=http://a.example/one&ip=192.0.2.1")
	e.get("/visit?app=demo&uri=http://a.example/two&ip=192.0.2.2")
	rows := e.rows()
	a := ask(`{"app":"demo","ip":"192.0.2.2","uris":["http://a.example/two","http://a.example/one#top","gopher://a","http://b.example/",` +
		`"http://a.example/two"]}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	const (
		one   = `{"site":{"pv":2,"uv":2,"rank":2,"hot":2},"page":{"pv":1,"uv":1,"rank":0,"hot":1}}`
		two   = `{"site":{"pv":2,"uv":2,"rank":2,"hot":2},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}`
		none  = `{"site":{"pv":0,"uv":0,"rank":0,"hot":0},"page":{"pv":0,"uv":0,"rank":0,"hot":0}}`
		fault = `{"error":"uri: it does not begin with http:// or https:// and a host: write it like http://example.com/page"}`
	)
	assert.Equal(t, `{"counts":[`+strings.Join([]string{two, one, fault, none, two}, ",")+`]}`, a.body)
	assert.Equal(t, `{"counts":[]}`, ask(`{"app":"demo","uris":[]}`).body)

	page := `"http://a.example/` + strings.Repeat("x", 2000) + `",`
	a = ask(`{"app":"demo","uris":[` + strings.Repeat(page, mostList-1) + `"http://a.example/one"]}`)
	assert.Equal(t, http.StatusOK, a.status, "as many and as long as may be")
	assert.Equal(t, mostList, strings.Count(a.body, `"page"`))

	assert.Contains(t, ask(`{"app":"shop","uris":["http://a.example/"]}`).body,
		`{"counts":[{"error":"uri: app shop does not count the site a.example`)
	for body, says := range map[string]string{
		`{"app":"demo"}`:                                                    "uris: they are missing",
		`{"app":"demo","uris":null}`:                                        "uris: they are not a list",
		`{"app":"demo","uris":["http://a/",1]}`:                             "uris: they are not a list",
		`{"app":"demo","uris":[],"uris":[]}`:                                "uris: they are given twice",
		`{"app":"demo","uri":"http://a/"}`:                                  `body: "uri" is not a field`,
		`{"app":"demo","ip":"x","uris":["a"]}`:                              "ip: ",
		`{"app":"demo","uris":[` + strings.Repeat(`"",`, mostList) + `""]}`: "uris: there are 1001",
	} {
		a := ask(body)
		assert.Equal(t, http.StatusBadRequest, a.status, says)
		assert.Contains(t, a.error(t), says)
	}
	assert.Equal(t, rows, e.rows(), "nothing was counted")
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	both := func(path string) []answer {
		answers := []answer{e.get(path), e.do(http.MethodGet, e.admin+path, "", "")}
		if path == "/readyz" {
			answers = append(answers, e.get("/healthz"))
		}
		return answers
	}
	for _, a := range append(both("/livez"), both("/readyz")...) {
		assert.Equal(t, http.StatusOK, a.status)
	}
	_, err := e.Conn(e.t).Exec(context.Background(), "DROP TABLE footfall.visits_20190629")
	require.NoError(t, err)
	for _, a := range both("/readyz") {
		assert.Equal(t, http.StatusServiceUnavailable, a.status)
		assert.Equal(t, "visits cannot be counted now: there is no partition for [20190629]", a.error(t))
		assert.Equal(t, "1", a.header.Get("Retry-After"))
	}
	close(e.stopping)
	for _, a := range both("/readyz") {
		assert.Equal(t, "the service is shutting down", a.error(t))
	}
	for _, a := range both("/livez") {
		assert.Equal(t, http.StatusOK, a.status)
	}
}

func TestMetricsNameNobody(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.get("/visit?app=demo&ip=192.0.2.77&uri=http://secret.example/page")
	e.get("/visit?app=demo&ip=192.0.2.78&uri=ftp://secret.example/page")
	e.get("/secret.example/192.0.2.79")
	a := e.do(http.MethodGet, e.admin+"/metrics", "", "")
	require.Equal(t, http.StatusOK, a.status)
	for _, line := range []string{
		`footfall_http_requests_total{code="200",route="/visit"} 1`,
		`footfall_http_requests_total{code="400",route="/visit"} 1`,
		`footfall_http_requests_total{code="404",route="other"} 1`,
		`footfall_http_request_duration_seconds_count{route="/visit"} 2`,
		`footfall_visits_total{outcome="counted"} 1`,
	} {
		assert.Contains(t, a.body, line)
	}
	assert.NotRegexp(t, `secret|192\.0`, a.body)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/symbol"} {
		assert.Equal(t, http.StatusOK, e.do(http.MethodGet, e.admin+path, "", "").status, path)
	}

	// A page in the operator's browser, on a name that resolves to this service, can read neither profiles nor
	// metrics.
	own, err := os.Hostname()
	require.NoError(t, err)
	ask := func(path, host string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.admin+path, nil)
		require.NoError(t, err)
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	for _, host := range []string{"127.0.0.1:8081", "127.0.0.1", "[::1]:8081", "[::1]", "LOCALHOST:8081", "192.0.2.1", own, own + ":8081"} {
		assert.Equal(t, http.StatusOK, ask("/debug/pprof/cmdline", host), host)
		assert.Equal(t, http.StatusOK, ask("/metrics", host), host)
	}
	for _, host := range []string{"footfall:8081", "footfall", "footfall.ns.svc:8081", "footfall.ns.svc.cluster.local", "vm.internal"} {
		assert.Equal(t, http.StatusOK, ask("/metrics", host), host)
	}
	for _, host := range []string{"evil.example", "evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example:8081",
		"127.0.0.1:evil.example:8081"} {
		assert.Equal(t, http.StatusForbidden, ask("/debug/pprof/cmdline", host), host)
		assert.Equal(t, http.StatusForbidden, ask("/metrics", host), host)
	}
}
