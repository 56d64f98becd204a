package handler

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/desk"
	"footfall/intake"
	"footfall/visit"
)

var (
	inArray = []string{"Content-Type", "application/json"}
	inLines = []string{"Content-Type", "application/x-ndjson"}
)

// manyResult is the result of one of many visits.
type manyResult struct {
	Counted, Repeated *visit.Answer
	Skipped, Error    string
}

func manyResults(t *testing.T, a answer) []manyResult {
	t.Helper()
	require.Equal(t, http.StatusOK, a.status, a.body)
	var said struct{ Visits []manyResult }
	d := json.NewDecoder(strings.NewReader(a.body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&said), a.body)
	return said.Visits
}

func (e *edge) visits(query, body string, headers ...string) answer {
	e.t.Helper()
	return e.askWith(body, http.MethodPost, "/visits?"+query, headers...)
}

// hotOf returns the number of counted visits.
func (e *edge) hotOf() (hot int) {
	e.t.Helper()
	require.NoError(e.t, e.Conn(e.t).QueryRow(e.t.Context(), `SELECT coalesce(sum(c.hot), 0)
		FROM footfall.counters AS c JOIN footfall.pages AS p ON p.id = c.page_id WHERE p.site_id IS NULL`).Scan(&hot))
	return hot
}

func packed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// The six steps except the last, which is on another day, in one call, in each spelling.
func TestManyVisits(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	item := func(ip, path string) string { return `{"uri":"http://SITE` + path + `","ip":"` + ip + `"}` }
	steps := []string{item("192.168.0.1", "/home"), item("192.168.0.1", "/home"), item("192.168.0.1", "/index"),
		item("192.168.0.2", "/index"), item("192.168.0.2", "/home")}
	array, lines := "["+strings.Join(steps, ",")+"]", strings.Join(steps, "\n")
	plain := func(text string) string { return text }
	for n, send := range []struct {
		body    string
		as      func(string) string
		headers []string
	}{
		{array, plain, inArray}, {lines, plain, inLines},
		{array, packed, append([]string{"Content-Encoding", "gzip"}, inArray...)},
		{lines, packed, append([]string{"Content-Encoding", "gzip"}, inLines...)},
		{array, plain, []string{"Content-Type", "application/json; charset=utf-8", "Content-Encoding", "identity"}},
	} {
		body := strings.ReplaceAll(send.body, "SITE", fmt.Sprintf("s%d.example", n))
		var answers []visit.Answer
		for _, one := range manyResults(t, e.visits("app=demo", send.as(body), send.headers...)) {
			require.NotNil(t, one.Counted)
			answers = append(answers, *one.Counted)
		}
		assert.Equal(t, []visit.Answer{
			{Site: counts(1, 1, 1, 1), Page: counts(1, 1, 1, 1)}, {Site: counts(1, 1, 1, 2), Page: counts(1, 1, 1, 2)},
			{Site: counts(1, 1, 1, 3), Page: counts(1, 1, 1, 1)}, {Site: counts(2, 2, 2, 4), Page: counts(2, 2, 2, 2)},
			{Site: counts(2, 2, 2, 5), Page: counts(2, 2, 2, 3)},
		}, answers, send.headers)
	}
}

// A call has visits of all kinds, and the response has the result of each in its place.
func TestManyVisitsOfAllKinds(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	key := e.key("shop", app.ScopeAssert)
	headers := append([]string{"Authorization", "Bearer " + key}, inArray...)
	body := `[{"uri":"http://example.com/","ip":"192.0.2.1","agent":"` + desk.Browser + `"},
		{"uri":"http://example.com/","ip":"192.0.2.1","agent":"Googlebot/2.1 (+http://www.google.com/bot.html)"},
		{"uri":"http://example.com/"}, {"uri":"ftp://example.com/","ip":"192.0.2.1"}, {"ip":"192.0.2.1"}, {"uri":"http://other.example/","ip":"192.0.2.1"},
		{"uri":"http://example.com/","ip":"1.2.3"}, {"uri":"http://example.com/","visitor":"me"}, 7, {"uri":"http://example.com/\u0000","ip":"192.0.2.1"},
		{"uri":"http://example.com/","ip":"192.0.2.2"}]`
	got := manyResults(t, e.visits("app=shop", body, headers...))
	require.Len(t, got, 11)
	assert.Equal(t, &visit.Answer{Site: counts(1, 1, 1, 1), Page: counts(1, 1, 1, 1)}, got[0].Counted)
	assert.Equal(t, manyResult{Skipped: "bot"}, got[1])
	for i, want := range []string{"ip: it is missing", "uri: ", "uri: it is missing", "uri: app shop does not count the site other.example",
		"ip: it is not", "visitor: app shop distinguishes visitors by address", "it is not an object", "uri: "} {
		assert.Contains(t, got[2+i].Error, want)
	}
	assert.Equal(t, &visit.Answer{Site: counts(2, 2, 2, 2), Page: counts(2, 2, 2, 2)}, got[10].Counted, "without an agent it is not a bot")

	a := e.visits("answers=none&app=shop", body, headers...)
	require.Equal(t, http.StatusOK, a.status)
	var said sums
	require.NoError(t, json.Unmarshal([]byte(a.body), &said), a.body)
	require.Len(t, said.Errors, 8)
	assert.Equal(t, 9, said.Errors[7].Item)
	assert.Contains(t, said.Errors[7].Error, "uri: ")
	said.Errors = nil
	assert.Equal(t, sums{Counted: 2, Skipped: map[visit.Skipped]int{"bot": 1}, Failed: 8}, said)
	assert.Equal(t, `{"visits":[]}`, e.visits("app=demo", "[]", inArray...).body)
	assert.Equal(t, `{"counted":0,"repeated":0,"skipped":{},"failed":0,"unknown":0,"unreached":0,"errors":[]}`,
		e.visits("app=demo&answers=none", "", inLines...).body)
	many := e.visits("app=demo&answers=none", "["+strings.Repeat("1,", 500)+"1]", inArray...)
	require.NoError(t, json.Unmarshal([]byte(many.body), &said))
	assert.Len(t, said.Errors, mostErrors)
	assert.Equal(t, 501, said.Failed)
}

// A fault of the whole call counts nothing.
func TestManyVisitsRefused(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const valid = `[{"uri":"http://a/","ip":"192.0.2.1"}]`
	with := func(name, value string) []string { return append([]string{name, value}, inArray...) }
	for _, c := range []struct {
		query, body string
		headers     []string
		status      int
		says        string
	}{
		{"", valid, inArray, 400, "app: it is missing"},
		{"app=demo&app=demo", valid, inArray, 400, "app: it is given twice"},
		{"app=demo&answers=all", valid, inArray, 400, "answers: write none"},
		{"app=demo&answer=later", valid, inArray, 400, "answer: visits of this call are always counted immediately"},
		{"app=demo&offsets=no&offsets=no", valid, inArray, 400, "offsets: it is given twice"},
		{"app=demo", valid, nil, 415, "send a JSON array"},
		{"app=demo", valid, with("Content-Encoding", "br"), 415, "compress it with gzip"},
		{"app=demo", valid, with("Content-Encoding", "gzip"), 400, "gzip data cannot be decompressed"},
		{"app=demo", packed(valid)[:20], with("Content-Encoding", "gzip"), 400, "gzip data is incomplete"},
		{"app=demo", packed(valid)[:len(packed(valid))-8] + "checksum", with("Content-Encoding", "gzip"), 400, "gzip data cannot be decompressed"},
		{"app=demo", packed(strings.Repeat(" ", intake.MostBytes+1)), with("Content-Encoding", "gzip"), 413, "larger than 8388608 bytes"},
		{"app=demo", "[" + strings.Repeat("1,", intake.MostItems) + "1]", inArray, 400, "more than 10000 visits"},
		{"app=demo", valid[:20], inArray, 400, "line 1, column"},
		{"app=demo", "[{}\n,{\"uri\":\"\x01\"}]", inArray, 400, "line 2, column 10"},
		{"app=demo", valid, with("Idempotency-Key", strings.Repeat("k", 256)), 400, "Idempotency-Key: give one"},
		{"app=demo", valid, with("Idempotency-Key", "é"), 400, "Idempotency-Key: give one"},
		{"app=demo", valid, with("Idempotency-Key", ""), 400, "Idempotency-Key: give one"},
	} {
		a := e.visits(c.query, c.body, c.headers...)
		assert.Equal(t, c.status, a.status, "%s: %s", c.says, a.body)
		assert.Contains(t, a.error(t), c.says)
	}
	assert.Equal(t, 405, e.ask(http.MethodGet, "/visits?app=demo").status)
	assert.Zero(t, e.rows())
	e.visits("app=demo", valid, inArray...)
	assert.Equal(t, 1, e.hotOf(), "the call itself is right")
}

// another returns another instance on the database of an edge.
func (e *edge) another(t *testing.T) *edge {
	t.Helper()
	o := desk.Options{}
	o.Clock = e.Clock.Now
	other, options := desk.On(t, e.URL, o), e.options
	options.Log, options.Metrics, options.Cells = slog.New(slog.DiscardHandler), prometheus.NewRegistry(), one(other)
	return &edge{t: t, Desk: e.Desk, public: listen(t, publicHandler(options), options.Log)}
}

// A call with a key counts once, however often and by however many callers it is sent at once, to two instances.
// Another body with the same key is refused to a caller with a key of the app. Other keys, apps and callers have
// separate calls.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const visits, callers = 1300, 6
	var items []string
	for i := range visits {
		items = append(items, fmt.Sprintf(`{"uri":"http://example.com/%d","ip":"10.0.%d.%d"}`, i%7, i/250, i%250))
	}
	items[visits/2] = `{"uri":"http://example.com/","ip":"192.0.2.1","agent":"Googlebot/2.1"}`
	body := "[" + strings.Join(items, ",") + "]"
	one := append([]string{"Idempotency-Key", "one"}, inArray...)
	counted := make([]int, visits)
	var mu sync.Mutex
	var all sync.WaitGroup
	other := e.another(t)
	for n := range callers {
		to := []*edge{e, other}[n%2]
		all.Go(func() {
			a := to.visits("app=demo", body, one...)
			for a.status == http.StatusServiceUnavailable { // too many at once
				a = to.visits("app=demo", body, one...)
			}
			mu.Lock()
			defer mu.Unlock()
			for i, got := range manyResults(t, a) {
				switch {
				case got.Counted != nil:
					counted[i]++
				case i == visits/2:
					assert.Equal(t, "bot", got.Skipped)
				default:
					assert.NotNil(t, got.Repeated, "%d: %+v", i, got)
				}
			}
		})
	}
	all.Wait()
	for i, times := range counted {
		assert.Equal(t, i != visits/2, times == 1, "visit %d was counted %d times", i, times)
	}
	require.Equal(t, visits-1, e.hotOf())
	again := manyResults(t, e.visits("app=demo", packed(body), append([]string{"Content-Encoding", "gzip"}, one...)...))
	for i, got := range again {
		if i == visits/2 {
			continue
		}
		require.NotNil(t, got.Repeated)
		now := e.get(fmt.Sprintf("/counts?app=demo&uri=http://example.com/%d&ip=10.0.%d.%d", i%7, i/250, i%250))
		if i%100 == 0 {
			expect(t, got.Repeated.Site, got.Repeated.Page, now)
		}
	}
	a := other.visits("app=demo&answers=none", body, one...)
	assert.Equal(t, fmt.Sprintf(`{"counted":0,"repeated":%d,"skipped":{"bot":1},"failed":0,"unknown":0,"unreached":0,"errors":[]}`, visits-1),
		a.body)

	ours := append([]string{"Authorization", "Bearer " + e.key("shop", app.ScopeAssert)}, one...)
	require.Equal(t, http.StatusOK, e.visits("app=shop", "[]", ours...).status)
	a = other.visits("app=shop", "[] ", ours...)
	assert.Equal(t, http.StatusUnprocessableEntity, a.status)
	assert.Contains(t, a.error(t), "it was sent before with another body")
	require.Equal(t, visits-1, e.hotOf())
	for n, headers := range [][]string{ // separate calls
		append([]string{"Idempotency-Key", "One"}, inArray...),
		one, // with another body, without a key of the app
		append([]string{"Authorization", "Bearer " + e.key("shop", app.ScopeAssert)}, one...),
		append([]string{"Authorization", "Bearer " + e.key("shop", app.ScopeAssert)}, one...),
	} {
		app := map[bool]string{true: "demo", false: "shop"}[n < 2]
		got := manyResults(t, e.visits("app="+app, `[{"uri":"http://example.com/","ip":"192.0.2.1"}]`, headers...))
		assert.NotNil(t, got[0].Counted)
	}
}

// A visit with an id counts once, by itself or in a call, and reports that it was counted before. A caller who may
// not assert visitors may not pass an id.
func TestRepeatedVisits(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const first = "/visit?app=demo&ip=192.0.2.1&uri=http://a/&id=x"
	a := e.get(first)
	assert.Empty(t, a.header.Get(repeatedHeader))
	again := e.get(first)
	assert.Equal(t, "id", again.header.Get(repeatedHeader))
	assert.Equal(t, a.body, again.body)
	assert.Equal(t, "id", e.post(`{"app":"demo","ip":"192.0.2.1","uri":"http://a/","id":"x"}`).header.Get(repeatedHeader))
	body := `[{"uri":"http://a/","ip":"192.0.2.1","id":"x"},{"uri":"http://a/","ip":"192.0.2.2","id":"y"},
		{"uri":"http://a/","ip":"192.0.2.2","id":"y"},{"uri":"http://a/","ip":"192.0.2.3","id":"` + strings.Repeat("i", 65) +
		`"},{"uri":"http://a/","ip":"192.0.2.3","id":""}]`
	now := &visit.Answer{Site: counts(2, 2, 1, 2), Page: counts(2, 2, 1, 2)}
	second := &visit.Answer{Site: counts(2, 2, 2, 2), Page: counts(2, 2, 2, 2)}
	assert.Equal(t, []manyResult{
		{Repeated: now}, {Counted: second}, {Repeated: second},
		{Error: "id: it is longer than 64 bytes: shorten it, or send a hash of it"}, {Error: "id: it is empty: give it a value, or leave it out"},
	}, manyResults(t, e.visits("app=demo", body, inArray...)))
	assert.Contains(t, e.visits("app=demo&answers=none", body, inArray...).body, `{"counted":0,"repeated":3,"skipped":{},"failed":2,`)
	assert.Equal(t, 2, e.hotOf())

	for path, status := range map[string]int{
		"/visit?app=demo&uri=http://a/&id=": 400, "/visit?app=demo&uri=http://a/&id=1&id=2": 400,
		"/visit?app=shop&uri=http://example.com/&id=x":  403,
		"/counts?app=shop&uri=http://example.com/&id=x": 200, // it has no effect here
	} {
		a := e.get(path)
		assert.Equal(t, status, a.status, "%s: %s", path, a.body)
		if status != http.StatusOK {
			assert.Contains(t, a.error(t), "id: ")
		}
	}
	assert.Equal(t, 400, e.askWith(`{"app":"demo","uris":[],"id":"x"}`, http.MethodPost, "/counts", inArray...).status)
	assert.Equal(t, 2, e.hotOf())
}

// The service fails in the middle of a call: the response has the counted visits, and the other visits count when the call is
// sent again.
func TestManyVisitsFailInTheMiddle(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	conn := e.Conn(e.t)
	refuse := func(yes bool) {
		t.Helper()
		sql := `ALTER TABLE footfall.visitors DROP CONSTRAINT nobody_else`
		if yes {
			sql = `ALTER TABLE footfall.visitors ADD CONSTRAINT nobody_else CHECK (ip <> '10.0.0.3')`
		}
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	var items []string
	for i := range 6 {
		items = append(items, fmt.Sprintf(`{"uri":"http://example.com/","ip":"10.0.0.%d"}`, i))
	}
	body, one := "["+strings.Join(items, ",")+"]", append([]string{"Idempotency-Key", "one"}, inArray...)
	refuse(true)
	got := manyResults(t, e.visits("app=demo", body, one...))
	for i, one := range got {
		switch {
		case i < 3:
			assert.NotNil(t, one.Counted)
		case i == 3:
			assert.Equal(t, "internal error", one.Error)
		default:
			assert.Equal(t, "not counted: send again", one.Error)
		}
	}
	assert.JSONEq(t, `{"counted":0,"repeated":3,"skipped":{},"failed":1,"unknown":0,"unreached":2,"errors":[{"item":3,"error":"internal `+
		`error"}]}`,
		e.visits("app=demo&answers=none", body, one...).body)
	for i, got := range manyResults(t, e.visits("app=demo", body, inArray...)) {
		assert.Equal(t, i == 3, got.Counted == nil, "without a key the others count, visit %d", i)
	}
	refuse(false)
	for i, got := range manyResults(t, e.visits("app=demo", body, one...)) {
		assert.Equal(t, i < 3, got.Repeated != nil)
		assert.Equal(t, i >= 3, got.Counted != nil)
	}
	assert.Equal(t, 11, e.hotOf())

	_, err := conn.Exec(t.Context(), `ALTER TABLE footfall.days RENAME TO lost_days`)
	require.NoError(t, err)
	for _, headers := range [][]string{append([]string{"Idempotency-Key", "two"}, inArray...), inArray} {
		a := e.visits("app=demo", body, headers...)
		assert.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
		assert.NotEmpty(t, a.header.Get("Retry-After"))
	}
	_, err = conn.Exec(t.Context(), `ALTER TABLE footfall.lost_days RENAME TO days`)
	require.NoError(t, err)
	assert.Equal(t, 11, e.hotOf())
	assert.Contains(t, e.do(http.MethodGet, e.admin+"/metrics", "", "").body, `footfall_visits_total{outcome="refused"} 19`)
}

// A visit counts on its given day in every way to send it, and errors in its time are reported with it.
func TestVisitsOfOtherDays(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		forever := 0
		return a.SetApp(ctx, "demo", app.Settings{RetainDays: &forever})
	})
	got := manyResults(t, e.visits("app=demo", `[{"uri":"http://a.example/","ip":"192.0.2.1"},
		{"uri":"http://a.example/","ip":"192.0.2.1","at":"2019-06-27T12:00:00Z"}, {"uri":"http://a.example/","ip":"192.0.2.2","at":"2019-06-29T12:04:00Z"},
		{"uri":"http://a.example/","ip":"192.0.2.1","at":"2019-06-29T12:06:00Z"}, {"uri":"http://a.example/","ip":"192.0.2.1","at":"noon"},
		{"uri":"http://a.example/","ip":"192.0.2.1","at":"2019-06-28T12:00:00Z"}, {"uri":"http://a.example/","ip":"192.0.2.1","at":"2019-06-27T23:00:00Z"}]`, inArray...))
	for i, want := range []visit.Counts{counts(1, 1, 1, 1), counts(2, 1, 1, 2), counts(3, 2, 2, 3), {}, {}, counts(4, 2, 1, 4),
		counts(4, 2, 1, 5)} {
		if want.Hot > 0 {
			require.Equal(t, &visit.Answer{Site: want, Page: want}, got[i].Counted, i)
		}
	}
	assert.Contains(t, got[3].Error, "at: it is in the future: give a day from 1991-01-01 to 2019-06-29")
	assert.Contains(t, got[4].Error, `at: "noon" is not a time`)

	a := e.get("/visit?app=demo&ip=192.0.2.3&uri=http://a.example/&at=2019-06-01T00:00:00%2B14:00")
	assert.Equal(t, `{"site":{"pv":5,"uv":3,"rank":3,"hot":6},"page":{"pv":5,"uv":3,"rank":3,"hot":6}}`, a.body)
	a = e.post(`{"app":"demo","ip":"192.0.2.3","uri":"http://a.example/","at":"2019-05-30T00:00:00Z"}`)
	assert.Equal(t, `{"site":{"pv":6,"uv":3,"rank":3,"hot":7},"page":{"pv":6,"uv":3,"rank":3,"hot":7}}`, a.body)
	assert.Equal(t, http.StatusBadRequest, e.get("/visit?app=demo&ip=192.0.2.3&uri=http://a.example/&at=1970-01-01T00:00:00Z").status)
	a = e.ask(http.MethodGet, "/visit?app=shop&uri=http://example.com/&at=2019-06-29T12:00:00Z", "User-Agent", desk.Browser)
	assert.Equal(t, http.StatusForbidden, a.status)
	assert.Contains(t, a.error(t), "at: app shop accepts it only with a key of the scope assert")
	assert.Equal(t, 7, e.hotOf())
}
