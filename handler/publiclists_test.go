package handler

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
)

// sets changes settings of shop.
func (e *edge) sets(s app.Settings) {
	e.t.Helper()
	e.administer(func(ctx context.Context, a *admin.Admin) error { return a.SetApp(ctx, "shop", s) })
}

// here waits until this number of visitors are on example.com.
func (e *edge) here(n int64) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return e.One(e.t, `SELECT report.here('shop', 'example.com')`) == n }, dbtest.Patience,
		dbtest.Tick)
}

// A request may select today's numbers, and the number of visitors at this moment.
func TestCountsOfTheMoment(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	asserting := []string{"Authorization", "Bearer " + e.key("shop", app.ScopeAssert)}
	come := func(ip, path string) {
		require.Equal(t, 200, e.ask(http.MethodGet, "/visit?app=shop&ip="+ip+"&uri=http://example.com"+path, asserting...).status)
	}
	counts := func(with string, headers ...string) answer {
		return e.ask(http.MethodGet, "/counts?app=shop&uri=http://example.com/a"+with, headers...)
	}
	come("192.0.2.1", "/a")
	e.Clock.Set(noon.AddDate(0, 0, 1))
	come("192.0.2.1", "/a")
	come("192.0.2.1", "/a")
	come("192.0.2.2", "/b")
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.SetOffsets(ctx, "shop", []admin.Offset{{URI: "http://example.com/a", Hot: 1000, PV: 200, UV: 100}}, false)
		return err
	})
	const site, page = `"site":{"pv":3,"uv":2,"rank":0,"hot":4`, `"page":{"pv":202,"uv":101,"rank":0,"hot":1003`
	assert.Equal(t, "{"+site+"},"+page+"}}", counts("").body)
	assert.Equal(t, "{"+site+`,"today":{"hot":3,"pv":2}},`+page+`,"today":{"hot":2,"pv":1}}}`, counts("&with=today").body)
	const never = `/counts?app=shop&uri=http://example.com/never&with=today`
	assert.Contains(t, e.get(never).body, `"page":{"pv":0,"uv":0,"rank":0,"hot":0,"today":{"hot":0,"pv":0}}`)
	many := func(with string, headers ...string) answer {
		return e.askWith(`{"app":"shop","uris":["http://example.com/a","ftp://x","http://example.com/b"]`+with+`}`, http.MethodPost, "/counts",
			append(headers, "Content-Type", "application/json")...)
	}
	a := many(`,"with":"today"`)
	assert.Contains(t, a.body, `{"counts":[{`+site+`,"today":{"hot":3,"pv":2}},`+page+`,"today":{"hot":2,"pv":1}}},{"error":"uri: `)
	assert.Contains(t, a.body, `"page":{"pv":1,"uv":1,"rank":0,"hot":1,"today":{"hot":1,"pv":1}}}]}`)
	assert.NotContains(t, many("").body, "today")

	// With public numbers, here needs the setting read, or any key.
	a = counts("&with=here")
	assert.Equal(t, http.StatusForbidden, a.status)
	assert.Contains(t, a.error(t), "with: \"here\" needs a key")
	assert.Equal(t, http.StatusForbidden, counts("&with=today,here").status)
	assert.Equal(t, http.StatusForbidden, many(`,"with":"here"`).status)
	e.here(2)
	assert.Contains(t, counts("&with=here", asserting...).body, site+`,"here":2},`)
	for _, public := range []string{"read", "count"} {
		e.sets(app.Settings{PublicCounts: &public})
		assert.Equal(t, "{"+site+`,"today":{"hot":3,"pv":2},"here":2},`+page+`,"today":{"hot":2,"pv":1}}}`, counts("&with=here,today").body)
		assert.Equal(t, "{"+site+`,"here":2},`+page+`}}`, counts("&with=here").body)
		assert.Contains(t, many(`,"with":"here"`).body, `"here":2`)
	}
	for _, with := range []string{"&with=", "&with=all", "&with=today,", "&with=Today", "&with=today&with=here"} {
		assert.Equal(t, http.StatusBadRequest, counts(with).status, with)
	}
	assert.Equal(t, http.StatusBadRequest, many(`,"with":"tomorrow"`).status)
	assert.Equal(t, http.StatusBadRequest, many(`,"with":1`).status)
	assert.Equal(t, http.StatusBadRequest, e.ask(http.MethodGet, "/counts?app=shop&event=signup&with=today", asserting...).status)
	assert.Equal(t, 200, e.get("/visit?app=shop&uri=http://example.com/a&with=nonsense").status, "a visit has no such field")
	e.sets(app.Settings{PublicCounts: ptr("off")})
	for _, a := range []answer{counts("&with=today"), counts("&with=here"), many(`,"with":"today"`)} {
		assert.Equal(t, http.StatusForbidden, a.status)
		assert.NotContains(t, a.body, `"hot"`)
	}
}

// The most visited pages are public if the app's settings permit it.
func TestTop(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	asserting := []string{"Authorization", "Bearer " + e.key("shop", app.ScopeAssert)}
	come := func(ip, path string) {
		require.Equal(t, 200, e.ask(http.MethodGet, "/visit?app=shop&title=Page&ip="+ip+"&uri="+url.QueryEscape("http://example.com"+path),
			asserting...).status)
	}
	const ask = "/top?app=shop&site=example.com"
	top := func(more string, headers ...string) answer { return e.ask(http.MethodGet, ask+more, headers...) }
	a := top("")
	assert.Equal(t, http.StatusForbidden, a.status)
	assert.Contains(t, a.error(t), "app shop has no public list of pages")
	e.sets(app.Settings{PublicTop: ptr("on"), MaxNewPages: ptr("62")})
	for i := range 55 {
		come("192.0.2.1", fmt.Sprintf("/tie/%02d", 54-i))
	}
	e.Clock.Set(noon.AddDate(0, 0, 1))
	for _, ip := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.2"} {
		come(ip, "/文章")
	}
	come("192.0.2.1", "/tie/07")
	for i := range 9 { // more than the limit of the day
		come(fmt.Sprint("192.0.2.", 10+i), fmt.Sprint("/more/", i))
	}
	e.visitEvent("shop", "signup")
	e.allIsCounted()
	const first = `{"uri":"example.com/tie/07","shown":"example.com/tie/07","title":"Page","hot":2,"pv":2,"visitors":1}`
	const second = `{"uri":"example.com/%E6%96%87%E7%AB%A0","shown":"example.com/文章","title":"Page","hot":3,"pv":2,"visitors":2}`
	require.Eventually(t, func() bool { return e.One(t, `SELECT count(*) FROM titles`) > 50 }, dbtest.Patience, dbtest.Tick)
	a = top("&days=7&n=50", "Origin", "http://example.com")
	assert.Equal(t, 200, a.status, a.body)
	assert.Equal(t, "http://example.com", a.header.Get("Access-Control-Allow-Origin"))
	assert.True(t, strings.HasPrefix(a.body, `{"pages":[`+second+","+first+`,{"uri":"example.com/more/0"`), "%.400s", a.body)
	assert.Equal(t, 50, strings.Count(a.body, `"uri"`))
	assert.NotContains(t, a.body, "(other)")
	assert.NotContains(t, a.body, "signup")
	tie, next := strings.Index(a.body, "/tie/00"), strings.Index(a.body, "/tie/01")
	assert.True(t, 0 < tie && tie < next, "by URI where pv is the same")
	assert.Equal(t, `{"pages":[`+second+`]}`, top("&days=7&n=1").body)
	assert.Contains(t, top("&days=1&n=2").body, `"hot":3,"pv":2,"visitors":2},{"uri":"example.com/more/0"`)

	// A list is kept for a minute.
	come("192.0.2.3", "/文章")
	assert.Contains(t, top("&days=7&n=1").body, `"hot":3`)
	assert.Contains(t, top("&days=30&n=1").body, `"hot":4`)

	for more, status := range map[string]int{"&days=2": 400, "&days=x": 400, "&days=": 200, "&n=51": 400, "&n=0": 400, "&n=-1": 400} {
		assert.Equal(t, status, top(more).status, more)
	}
	for _, site := range []string{"", "other.example", "example.com/tie", "(events)", "(other)", "example.com:81"} {
		assert.Equal(t, http.StatusBadRequest, e.get("/top?app=shop&site="+url.QueryEscape(site)).status, site)
	}
	assert.Equal(t, http.StatusForbidden, top("", "Origin", "https://evil.example").status)
	assert.Equal(t, http.StatusForbidden, top("", "Origin", "null").status)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "shop", app.Settings{MaxRequests: ptr("1")})
	})
	top("")
	assert.Equal(t, http.StatusTooManyRequests, top("").status)
	e.sets(app.Settings{MaxRequests: ptr("default"), PublicCounts: ptr("off")})
	assert.Equal(t, http.StatusForbidden, top("").status)
	e.sets(app.Settings{PublicCounts: ptr("answers"), PublicTop: ptr("off")})
	assert.Equal(t, http.StatusForbidden, top("&days=7").status, "also where it was kept")
}

// The number and lifetime of the lists are bounded.
func TestTopsAreBounded(t *testing.T) {
	t.Parallel()
	var all tops
	for i := range 3 * mostTops {
		all.put(topKey{app: fmt.Sprint(i)}, nil, noon)
		require.LessOrEqual(t, len(all.kept), mostTops)
	}
	last := topKey{app: fmt.Sprint(3*mostTops - 1)}
	_, found := all.get(last, noon.Add(topFor-1))
	assert.True(t, found)
	_, found = all.get(last, noon.Add(topFor))
	assert.False(t, found)
	all.put(topKey{}, nil, noon.Add(topFor))
	assert.Len(t, all.kept, 1)
}

// visitEvent counts an event.
func (e *edge) visitEvent(app, event string) answer {
	e.t.Helper()
	a := e.get("/visit?app=" + app + "&event=" + event)
	require.Equal(e.t, 200, a.status, a.body)
	return a
}

// Numbers of the events that the app lists are public.
func TestPublicEvents(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	counts := func(event string, headers ...string) answer {
		return e.ask(http.MethodGet, "/counts?app=shop&event="+event, headers...)
	}
	badge := func(query string) string {
		a := e.get("/badge/shop.json?" + query)
		if why := a.header.Get(errorHeader); why != "" {
			return why
		}
		return a.body
	}
	assert.Equal(t, "{}", e.visitEvent("shop", "like/hello").body)
	e.sets(app.Settings{PublicEvents: []string{"like/*", "signup"}})
	const liked = `{"page":{"pv":1,"uv":1,"rank":1,"hot":2}}`
	assert.Equal(t, liked, e.visitEvent("shop", "like/hello").body)
	assert.Equal(t, `{"page":{"pv":1,"uv":1,"rank":0,"hot":2}}`, counts("like/hello", "X-Forwarded-For", "x").body)
	assert.Equal(t, `{"page":{"pv":0,"uv":0,"rank":0,"hot":0}}`, counts("like/never").body)
	assert.Contains(t, badge("event=like/hello&show=event.hot"), `"message":"2"`)
	assert.Contains(t, badge("event=like/hello&show=event.uv"), `"message":"1"`)
	assert.Contains(t, badge("event=like/hello&count=1"), "event: badges of events do not count")
	assert.Contains(t, badge("event=like/hello&show=site.hot"), "show: ")
	for _, event := range []string{"download/a", "like", "liked/x", "signup/x", "(other)"} {
		if event != "(other)" {
			assert.Equal(t, "{}", e.visitEvent("shop", event).body, event)
			assert.Contains(t, badge("event="+event), "numbers of this event need a key")
		}
		assert.GreaterOrEqual(t, counts(event).status, 400, event)
	}
	assert.Equal(t, `{"page":{"pv":1,"uv":1,"rank":1,"hot":1}}`, e.visitEvent("shop", "signup").body)
	assert.Contains(t, counts("like/hello", "Authorization", "Bearer "+e.key("shop", app.ScopeRead)).body, `{"site":{`)
	assert.Equal(t, http.StatusForbidden, e.ask(http.MethodGet, "/counts?app=shop&event=like/hello", "Origin", "https://evil.example").status)

	// A caller never sees another visitor's state, even in an app in which anyone may count as anyone.
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "demo", app.Settings{PublicEvents: []string{"like/*"}})
	})
	assert.Equal(t, "{}", e.get("/visit?app=demo&event=like/x&ip=192.0.2.1").body)
	assert.Equal(t, http.StatusForbidden, e.get("/counts?app=demo&event=like/x&ip=192.0.2.1").status)
	assert.Equal(t, `{"page":{"pv":1,"uv":1,"rank":0,"hot":1}}`, e.get("/counts?app=demo&event=like/x").body)

	e.sets(app.Settings{PublicCounts: ptr("off")})
	assert.Equal(t, "{}", e.visitEvent("shop", "like/hello").body)
	assert.Equal(t, http.StatusForbidden, counts("like/hello").status)
	assert.Contains(t, badge("event=like/hello"), "need a key")

	for _, wrong := range []string{"", "*", "Like/*", "like*", "/x", "like/*/x", "a b", strings.Repeat("a", 65)} {
		err := e.Admin.SetApp(t.Context(), "shop", app.Settings{PublicEvents: []string{wrong}})
		require.ErrorContains(t, err, "public-events: ", wrong)
	}
	many := make([]string, 21)
	for i := range many {
		many[i] = fmt.Sprint("e", i)
	}
	err := e.Admin.SetApp(t.Context(), "shop", app.Settings{PublicEvents: many})
	require.ErrorContains(t, err, "public-events: there are 21: at most 20 are possible")
	e.sets(app.Settings{PublicEvents: []string{"like/文/*", "like/%e6%96%87/*"}})
	assert.Equal(t, []string{"like/%E6%96%87/*"}, e.texts(`SELECT unnest(public_events) FROM apps WHERE name = 'shop'`))
}

// tryPublicLists shows the pages of docs/embed.md with present numbers, a list of pages, and a like button.
func tryPublicLists(t *testing.T, w *internet, b *devtools, page func(string, ...string) string, docs map[string]string) {
	t.Helper()
	w.sets(app.Settings{PublicCounts: ptr("read"), PublicTop: ptr("on"), PublicEvents: []string{"like/*", "download/*"}})
	defer w.sets(app.Settings{PublicCounts: ptr("answers"), PublicTop: ptr("off"), PublicEvents: []string{}})
	site := w.siteHot(t)
	b.open(page("example.com/now", docs["line"], docs["now"]))
	w.hearVisit(t)
	b.ask(`until(() => /^Today \d+ page views by 1 visitors, of this page 1 by 1. \d are here now.$/.test(text()))`, nil)
	var calls []string
	b.ask(`asked.map(a => new URL(a, location)).map(a => a.pathname + (a.searchParams.get('with') ?? ''))`, &calls)
	assert.Equal(t, []string{"/visit", "/countstoday,here"}, calls, "once a page view")
	assert.Equal(t, site+1, w.siteHot(t))
	b.open(page("example.com/without", docs["line"], docs["numbers"]))
	w.hearVisit(t)
	b.ask(`asked.map(a => new URL(a, location).pathname)`, &calls)
	assert.Equal(t, []string{"/visit"}, calls, "a page without such an element")

	b.open(page("example.com/top", docs["line"], docs["top"]))
	w.hearVisit(t)
	b.ask(`until(() => document.querySelectorAll('ol li').length)`, nil)
	var list []string
	b.ask(`[...document.querySelectorAll('ol li')].map(li => li.firstChild.href + '|' + li.textContent)`, &list)
	assert.LessOrEqual(t, len(list), 10)
	assert.Regexp(t, `^http://example.com/.*\|.+ 1$`, list[0])

	b.open(page("example.com/like", docs["line"], docs["like"]))
	w.hearVisit(t)
	b.ask(`until(() => text() == 'Like 0')`, nil)
	for _, says := range []string{"Like 1 Thank you! You are number 1", "Like 1 You liked this already"} {
		b.ask(`document.getElementById('like').click()`, nil)
		b.ask(fmt.Sprintf(`until(() => text() == %q)`, says), nil)
	}
	b.open("http://example.com/like")
	w.hearVisit(t)
	b.ask(`until(() => text() == 'Like 1')`, nil)
	b.ask(`document.getElementById('like').click()`, nil)
	b.ask(`until(() => text() == 'Like 1 You liked this already')`, nil)
}
