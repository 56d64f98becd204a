package handler

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/verify"
)

// Events are counted like page views: exactly, with ranks, and separately.
func TestEvents(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	key := []string{"Authorization", "Bearer " + e.key("demo", app.ScopeAssert)} // without a key no numbers are returned
	does := func(visitor, what, numbers string) {
		t.Helper()
		a := e.ask(http.MethodGet, "/visit?app=demo&ip=192.0.2."+visitor+"&"+what, key...)
		assert.Equal(t, http.StatusOK, a.status, a.body)
		assert.Equal(t, numbers, a.body, what)
	}
	does("1", "uri=http://hhui.top/home", `{"site":{"pv":1,"uv":1,"rank":1,"hot":1},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}`)
	does("2", "event=signup", `{"site":{"pv":1,"uv":1,"rank":1,"hot":1},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}`)
	does("1", "event=signup", `{"site":{"pv":2,"uv":2,"rank":2,"hot":2},"page":{"pv":2,"uv":2,"rank":2,"hot":2}}`)
	does("1", "event=signup", `{"site":{"pv":2,"uv":2,"rank":2,"hot":3},"page":{"pv":2,"uv":2,"rank":2,"hot":3}}`)
	does("1", "event=..", `{"site":{"pv":2,"uv":2,"rank":2,"hot":4},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}`)
	does("1", "uri=http://hhui.top/home", `{"site":{"pv":1,"uv":1,"rank":1,"hot":2},"page":{"pv":1,"uv":1,"rank":1,"hot":2}}`)
	assert.Equal(t, `{"site":{"pv":2,"uv":2,"rank":2,"hot":4},"page":{"pv":2,"uv":2,"rank":2,"hot":3}}`,
		e.ask(http.MethodGet, "/counts?app=demo&ip=192.0.2.1&event=signup", key...).body)

	a := e.visits("app=demo", `[{"event":"many","ip":"192.0.2.1"},{"event":"Many","ip":"192.0.2.1"},{"event":"many",`+
		`"uri":"http://hhui.top/","ip":"192.0.2.1"},{"event":"","ip":"192.0.2.1"}]`, append(key, "Content-Type", "application/json")...)
	for _, says := range []string{`{"counted":{"site":{"pv":2,"uv":2,"rank":2,"hot":5},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}}`,
		"event: \\\"Many\\\" is not the name", "event: it replaces uri", "event: it is empty"} {
		assert.Contains(t, a.body, says)
	}

	for what, fault := range map[string]string{
		"event=signup&uri=http://hhui.top/": "event: it replaces uri", "event=": "event: it is empty",
		"event=a&event=b": "event: it is given twice",
		"event=Signup":    "event: ", "event=a%20b": "event: ", "event=a/%0A": "event: it contains", "event=/b": "event: ",
		"event=a/%2500":                        "event: it contains",
		"event=a/" + strings.Repeat("b", 2048): "event: ", "event=%C3%A4": "event: ", "event=(other)": "event: ",
		"event=" + strings.Repeat("a", 65): "event: ",
		"uri=http://(events)/signup":       "uri: ", "uri=HTTPS://%2528Events%2529/signup": "uri: ", "uri=//(events)/signup": "uri: ",
		"uri=(events)/signup": "uri: ",
	} {
		for _, path := range []string{"/visit", "/counts"} {
			a := e.get(path + "?app=demo&ip=192.0.2.9&" + what)
			assert.Equal(t, http.StatusBadRequest, a.status, what)
			assert.True(t, strings.HasPrefix(a.error(t), fault), "%s: %s", what, a.body)
		}
	}
	// For an address after the name only the path is kept, as for a page.
	for _, to := range []string{"cdn.example/A b.pdf?who=me#notes", "x/../cdn.example/A%20b.pdf", "//"} {
		require.Equal(t, http.StatusOK, e.get("/visit?app=demo&ip=192.0.2.1&event="+url.QueryEscape("download/"+to)).status, to)
	}
	for path, hot := range map[string]string{"(events)/download/cdn.example/A%20b.pdf": "2", "(events)/download///": "1"} {
		assert.Contains(t, e.get("/api/apps/demo/days?uri="+url.QueryEscape(path)).body, `"hot":`+hot+`}`, path)
	}
	for where, pv := range map[string]string{"download/*": "1", "download/cdn.example/A%20b.pdf": "1", "signup": "1"} {
		assert.Contains(t, e.get("/api/apps/demo/days?uri=hhui.top&where="+url.QueryEscape("event:"+where)).body, `"pv":`+pv, where)
	}
	for origin, status := range map[string]int{"http://example.com": http.StatusOK, "http://other.example": http.StatusForbidden,
		"null": http.StatusForbidden, "http://(events)": http.StatusForbidden} {
		assert.Equal(t, status, e.ask(http.MethodGet, "/visit?app=shop&event=buy", "Origin", origin).status, origin)
	}
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		assert.ErrorContains(t, a.SetApp(ctx, "shop", app.Settings{Sites: []string{"(events)"}}), "is not a site")
		return a.SetApp(ctx, "shop", app.Settings{PublicCounts: ptr("count"), MaxNewPages: ptr("4")})
	})
	assert.Contains(t, e.ask(http.MethodGet, "/badge/shop.svg?event=buy&count=1&show=event.uv", "User-Agent", camo).body,
		"<title>visitors: –</title>", "a badge has no key")
	for _, name := range []string{"b", "c", "d", "e"} {
		require.Equal(t, http.StatusOK, e.ask(http.MethodGet, "/visit?app=shop&event="+name).status)
	}

	// The reports list events next to the sites.
	assert.Equal(t, `{"days":[{"day":20190629,"pv":2,"new_visitors":2,"hot":3}]}`, e.get("/api/apps/demo/days?uri=(events)/signup").body)
	assert.Contains(t, e.get("/api/apps/demo/ranks?uri=(events)/signup&rank=2").body, `"192.0.2.1"`)
	sites := e.shown("/dash/demo?panel=sites&format=csv&range=today")
	assert.Less(t, strings.Index(sites, "hhui.top"), strings.Index(sites, "(events)"), "which are last, though they are more")
	sites = e.shown("/dash/demo?range=today&sort=hot")
	assert.Less(t, strings.Index(sites, ">hhui.top<"), strings.Index(sites, ">Events<"))
	for _, path := range []string{"/dash/demo/(events)?range=today", "/dash/demo/%28events%29?page=/signup&range=today",
		"/dash/demo/(events)?page=/..&range=today"} {
		assert.NotContains(t, e.shown(path), `//(events)`, "nothing is there to be opened")
	}
	assert.Contains(t, e.shown("/dash/demo/(events)?range=today"), "page=/signup")
	assert.NotContains(t, e.shown(e.share("demo", "hhui.top")+"?range=today"), "(events)")
	assert.Equal(t, http.StatusNotFound, e.get(e.share("demo", "hhui.top")+"/"+url.PathEscape("(events)")).status)

	e.administer(func(ctx context.Context, a *admin.Admin) error { return a.DeletePage(ctx, "demo", "(events)/signup") })
	conn := e.Conn(t)
	assert.Equal(t, []string{
		"demo (events) 8", "demo (events)/(deleted) 3", "demo (events)/.. 1", "demo (events)/download/// 1",
		"demo (events)/download/cdn.example/A%20b.pdf 2", "demo (events)/many 1", "demo hhui.top 2", "demo hhui.top/home 2",
		"shop (events) 5", "shop (events)/(other) 2", "shop (events)/b 1", "shop (events)/buy 1", "shop (events)/c 1",
	}, dbtest.Column[string](t, conn, `SELECT a.name || ' ' || p.uri || ' ' || c.hot FROM footfall.counters c
		JOIN footfall.pages p ON p.id = c.page_id JOIN footfall.apps a ON a.id = p.app_id ORDER BY a.name, p.uri COLLATE "C"`))
	_, err := conn.Exec(t.Context(), `BEGIN; UPDATE footfall.days SET day_id = footfall.today('UTC')`)
	require.NoError(t, err)
	today := dbtest.Column[int64](t, conn, `SELECT today FROM report.apps_today('{demo}')`)
	_, err = conn.Exec(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	assert.Equal(t, []int64{2}, today, "visits of an app are those to its sites")
	e.Close()
	proof, err := verify.Run(t.Context(), dbtest.Open(t, e.URL, db.Options{}), verify.Options{Limit: 3})
	require.NoError(t, err)
	for _, p := range proof.Promises {
		assert.Zero(t, p.Violations, "%s: %v", p.Name, p.Offenders)
	}
}

// Goals, steps and conditions may be written as on pages, or as stored.
func TestGoalsAreWrittenAsPeopleReadThem(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.brings(1, "http://hhui.top/日本", "")
	e.brings(2, "http://hhui.top/home", "")
	require.Equal(t, http.StatusOK, e.get("/visit?app=demo&ip=192.0.2.1&event=download/A%20b.pdf").status)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "demo", app.Settings{Goals: []string{"page:/日本", "event:download/A b.pdf", "page:/%E6%97%A5%E6%9C%AC"}})
	})
	assert.Equal(t, "goal,value,visitors,of_visitors\r\npage:/%E6%97%A5%E6%9C%AC,,1,2\r\nevent:download/A%20b.pdf,,1,2\r\n",
		e.get("/api/apps/demo/goals?site=hhui.top&format=csv").body)
	for _, c := range []string{"page:/日本", "page:/日本|/日本", "event:download/A b.pdf"} {
		c = url.QueryEscape(c)
		assert.Contains(t, e.get("/api/apps/demo/numbers?site=hhui.top&where="+c).body, `"uniques":1,`, c)
		assert.Contains(t, e.get("/api/apps/demo/funnel?site=hhui.top&format=csv&step="+c).body, ",1,1\r\n", c)
		assert.Contains(t, e.get("/api/apps/demo/goals?site=hhui.top&format=csv&goal="+c).body, ",,1,2\r\n", c)
	}
	const site = "/dash/demo/hhui.top?range=today&"
	shown := e.shown(site + url.Values{"where": {"page:/日本"}}.Encode())
	assert.Contains(t, shown, `class="big">1<`)
	assert.Contains(t, shown, "<bdi>/日本</bdi>")
	assert.Contains(t, e.shown(site+"funnel&"+url.Values{"step": {"page:/日本"}}.Encode()), `<bdi>/日本</bdi></th><td class="n">1</td>`)
	assert.Contains(t, e.shown(site+url.Values{"goal": {"event:download/A b.pdf"}}.Encode()), `<td class="n">1</td>`)
}

// The days of a goal are complete, unless the caller requests fewer rows.
func TestGoalsByDayAreWhole(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "demo", app.Settings{Goals: []string{"page:/a", "page:/b", "page:/c"}})
	})
	for day := range 35 {
		e.Clock.Set(noon.AddDate(0, 0, day))
		e.brings(1, "http://hhui.top/c", "")
	}
	read := e.get("/api/apps/demo/goals?site=hhui.top&by=day&format=csv").body
	assert.Equal(t, 1+3*35, strings.Count(read, "\r\n"))
	assert.Contains(t, read, "page:/c,20190802,1,1\r\n")
	assert.Equal(t, 1+2, strings.Count(e.get("/api/apps/demo/goals?site=hhui.top&by=day&format=csv&limit=2").body, "\r\n"))
}

// A site's page shows the events of its visitors. A link to one site shows none, because events belong to the app.
// For days whose rows are gone the page gives the reason.
func TestEventsOfASite(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.brings(1, "http://hhui.top/home", "")
	e.brings(2, "http://hhui.top/home", "")
	const site = "/dash/demo/hhui.top?range=today"
	assert.NotContains(t, e.shown(site), `id="events"`)
	for _, who := range []string{"2", "3"} { // visitors that have not been on any site
		require.Equal(t, http.StatusOK, e.get("/visit?app=demo&event=signup&ip=192.0.2."+who).status)
	}
	shown := e.shown(site)
	assert.Contains(t, shown, `where=event%3Asignup&range=today"><bdi>signup</bdi></a></th><td class="n">1</td><td class="n">50.0`)
	assert.Contains(t, shown, "anywhere in this app")
	assert.NotContains(t, e.shown("/dash/demo/(events)?range=today"), `id="events"`)
	assert.NotContains(t, e.shown(e.share("demo", "hhui.top")+"?range=today"), `id="events"`)
	link := e.share("demo", "")
	shown = e.shown(link + "/hhui.top?range=today")
	assert.Contains(t, shown, `<bdi>signup</bdi></th><td class="n">1</td>`, "and leads nowhere")
	assert.Contains(t, e.get(link+"/hhui.top?range=today&panel=events&format=csv").body, "signup,1,2\r\n")
	assert.Equal(t, http.StatusBadRequest, e.get(e.share("demo", "hhui.top")+"?range=today&panel=events&format=csv").status)

	goals := []string{"event:signup", "page:/home", "event:never"}
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		for _, wrong := range []string{"signup", "event:No", "page:home", "new", "source:google"} {
			assert.ErrorContains(t, a.SetApp(ctx, "demo", app.Settings{Goals: []string{wrong}}), "goal: ", wrong)
		}
		return a.SetApp(ctx, "demo", app.Settings{Goals: goals})
	})
	shown = e.shown(site)
	assert.Regexp(t, `(?s)id="goals".*signup</bdi></a></th><td class="n">1</td><td class="n">50.0%.*/home</bdi></a></th>`+
		`<td class="n">2</td><td class="n">100.0%.*never</bdi></a></th><td class="n">0</td><td class="n">0.0%`, shown)
	assert.NotContains(t, shown, `id="events"`, "signup is a goal, and shown there")
	require.Equal(t, http.StatusOK, e.get("/visit?app=demo&event=download&ip=192.0.2.2").status)
	shown = e.shown(site)
	_, events, _ := strings.Cut(shown, `id="events"`)
	assert.Equal(t, 1, strings.Count(shown, "<bdi>signup</bdi>"))
	assert.Contains(t, events, "The CSV and JSON files have all events.")
	bars := regexp.MustCompile(`<rect width="([0-9]+)[.0-9]*%".*?<bdi>(signup|/home|download)</bdi></a></th>` +
		`<td class="n">.</td><td class="n">([0-9]+)\.0`)
	_, did, _ := strings.Cut(shown, `id="goals"`)
	for _, bar := range bars.FindAllStringSubmatch(did, -1) {
		assert.Equal(t, bar[3], bar[1], "the bar of %s shows its share", bar[2])
	}
	assert.Len(t, bars.FindAllString(did, -1), 3)
	assert.Contains(t, e.get("/api/apps/demo/goals?site=hhui.top&format=csv").body,
		"event:signup,,1,2\r\npage:/home,,2,2\r\nevent:never,,0,2\r\n")
	assert.NotContains(t, e.shown(e.share("demo", "hhui.top")+"?range=today"), `id="goals"`)
	for query, status := range map[string]int{"funnel&step=page:/home": 200, "funnel&step=event:signup": 403, "goal=event:signup": 403} {
		assert.Equal(t, status, e.get(e.share("demo", "hhui.top")+"?"+query).status, query)
	}
	for query, says := range map[string]string{"goal=event:no": "there are signup", "goal=source:google": "is not a goal",
		"funnel&step=page:/no": "has no page /no", "funnel" + strings.Repeat("&step=new", 9): "here are 9 steps"} {
		assert.Contains(t, e.shown(site+"&"+query), says)
	}
	assert.Equal(t, http.StatusBadRequest, e.get(site+"&goal=new&goal_by=colour").status)
	assert.Equal(t, http.StatusBadRequest, e.get("/api/apps/demo/funnel?site=hhui.top").status, "step is missing")

	for _, page := range []string{"/a", "/b"} {
		e.brings(1, "http://hhui.top"+page, "")
	}
	e.brings(4, "http://hhui.top/home", "")
	asked := e.shown(site)
	assert.Contains(t, asked, `range=today&one#pages"`)
	assert.NotContains(t, asked, "Saw only one page")
	assert.Contains(t, e.shown(site+"&one"), "Saw only one page: <b>2</b> of 3, 66.7%")
	assert.Contains(t, e.shown(site+"&one&where=event:signup"), "Saw only one page: <b>1</b> of 1, 100.0%")
	e.Exec(t, `UPDATE footfall.pages SET uri = 'hhui.top/(other)' WHERE uri = 'hhui.top/home'`)
	assert.Contains(t, e.shown(site+"&one"), "<b>0</b> of 3, 0.0%, counting each visitor once a day. Not available for 2 more")
	e.Exec(t, `UPDATE footfall.pages SET uri = 'hhui.top/home' WHERE uri = 'hhui.top/(other)'`)

	const whole = "/dash/demo?range=today"
	assert.NotContains(t, e.shown(whole), "as one", "there is one site")
	e.brings(1, "http://other.example/", "")
	e.brings(5, "http://other.example/", "")
	assert.Regexp(t, `(?s)aria-label="All sites as one".*Visitors</dt><dd class="big">4<.*New</dt><dd class="big">4<.*`+
		`Page views</dt><dd class="big">7<`, e.shown(whole))
	shown = e.shown(whole)
	assert.Regexp(t, `(?s)Visitors by day.*4 visitors so far.*<bdi>hhui.top/home</bdi>.*<bdi>other.example/</bdi>.*`+
		`id="from".*>Direct</bdi></th><td class="n">4<`, shown)
	assert.Regexp(t, `(?s)<h2 id="events">.*<bdi>signup</bdi></th><td class="n">1</td><td class="n">25.0%`, shown)
	assert.NotContains(t, shown, `type="search"`)
	assert.Equal(t, http.StatusOK, e.get(whole+"&find=x&columns=more&by=change&chart=views&where=new").status)
	for ask, told := range map[string]string{
		"numbers?offsets=no":         `offsets`,
		"numbers?":                   `{"numbers":[{"first_day":20190629,"last_day":99991231,"uniques":4,"new_visitors":4,"pv":4,"hot":7,"exact":true}]}`,
		"chart?from=2019-06-28":      `"visitors":4,"new_visitors":4,"pv":4,"hot":7,"visitors_before":0,"compared":false,"notes":[]}]}`,
		"tags?from=2019-06-29":       `{"tags":[{"value":"(none)","pv":4,"newcomers":4}],"name":"source","since":20190629}`,
		"events?":                    `{"events":[{"event":"signup","visitors":1,"of_visitors":4}`,
		"events?where=new":           `give it as site`,
		"numbers?where=new":          `give it as site`,
		"tags?from=7d&days_before=7": `all sites of an app together cannot be compared`,
	} {
		assert.Contains(t, e.get("/api/apps/demo/"+ask).body, told, ask)
	}
	assert.Contains(t, e.get(e.share("demo", "")+"?range=today&panel=chart&format=csv").body, "20190629,20190629,4,4,4,7,")

	hasty := e.options
	hasty.panelWithin, hasty.Metrics = 1, prometheus.NewRegistry()
	slow := e.do(http.MethodGet, serve(t, publicHandler(hasty), hasty.Log).URL+whole, "", "")
	assert.Regexp(t, `(?s)Visitors</dt><dd class="big">–<.*Page views</dt><dd class="big">7<.*Reading this many days takes too long.*`+
		`Page views by day.*<bdi>hhui.top/home</bdi>`, slow.body, "the rest of the page is shown")

	for _, of := range [][2]int{{9, 2}, {16, 3}} { // in this order, because days never go backwards
		e.Clock.Set(noon.AddDate(0, 0, of[0]))
		for i := range of[1] {
			e.brings(i, "http://hhui.top/home", "")
			e.brings(i, "http://other.example/", "")
		}
	}
	e.Clock.Set(noon.AddDate(0, 0, 20))
	assert.Regexp(t, `(?s)Visitors</dt><dd class="big">3<.*50%</span> <span class="was">from 2<.*Page views</dt><dd class="big">6<.*from 4<`,
		e.shown("/dash/demo?from=2019-07-15&to=2019-07-15"))
	e.Clock.Set(noon)

	e.Exec(t, `INSERT INTO footfall.visits_kept (app_id, from_day) SELECT id, 20190630 FROM footfall.apps WHERE name = 'demo'`)
	shown = e.shown(site)
	assert.Contains(t, shown, "Visitors before 2019-06-30 are not on record")
	assert.NotContains(t, shown, "<bdi>signup</bdi>")
	assert.Contains(t, e.shown(site+"&one"), "Saw only one page: –. Visitors before 2019-06-30")
	assert.Regexp(t, `(?s)Visitors</dt><dd class="big">–<.*Page views</dt><dd class="big">7<.*`+
		`Visitors before 2019-06-30 are not on record.*Page views by day.*<bdi>hhui.top/home</bdi>`, e.shown(whole))
	assert.NotContains(t, e.shown(whole), `id="from"`)
	for _, of := range []string{"", "hhui.top"} {
		assert.Equal(t, []int32{20190630}, dbtest.Column[int32](t, e.Conn(t),
			`SELECT since FROM report.filters_since('demo', $1, 20190601, 20190630)`, of))
	}
}

// Events are stored as pages of a site. The list of events, and the page of one event, use other words than pages: events are
// not opened, and no source leads to them.
func TestEventsHaveWordsOfTheirOwn(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for day, path := range []string{
		"uri=http://hhui.top/home&referrer=https://a.example/", "event=signup", "event=signup", "event=download/a.pdf",
	} {
		e.Clock.Set(noon.AddDate(0, 0, day/2))
		require.Equal(t, http.StatusOK, e.get("/visit?app=demo&ip=192.0.2.1&"+path).status)
	}
	for path, has := range map[string][]string{
		"/dash/demo": {`title="(events)"><bdi>Events</bdi></a>`},
		"/dash/demo/(events)": {`<title>Events · demo</title>`, `title="(events)"><bdi>Events</bdi></h1>`, `<dt>Events</dt>`,
			"each time someone triggers one", "never triggered it before", `<h2 id="pages">Events</h2>`, `<th scope="col">Name</th>`, "<bdi>signup</bdi>",
			"<bdi>download/a.pdf</bdi>"},
		"/dash/demo/(events)?columns=more&chart=views": {`<h2 id="pages">Events</h2>`},
		"/dash/demo/(events)?all":                      {"<bdi>signup</bdi>"},
		"/dash/demo/(events)?page=/signup":             {`<title>signup · demo</title>`, `<bdi>signup</bdi></h1>`, `<dt>Events</dt>`},
	} {
		page := e.shown(path)
		for _, text := range has {
			assert.Contains(t, page, text, path)
		}
		if path == "/dash/demo" {
			continue
		}
		for _, never := range []string{"age views", "each page opened", "Pages", "path or title", "Sources", "Direct", "five minutes",
			"on this page", "saw", "The line for", "<bdi>/signup", "New and returning", "Newest visitors"} {
			assert.NotContains(t, page, never, path)
		}
	}
}

// A funnel is built step by step in numbered fields. They accept the path of a page or the name of an event, as shown
// in other lists. Without script a button adds a field, and keeps the typed values.
func TestFunnelIsBuiltStepByStep(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, path := range []string{"uri=http://hhui.top/", "uri=http://hhui.top/pricing", "uri=http://hhui.top/日本",
		"event=signup", "event=outbound/a.example:81/x"} {
		require.Equal(t, http.StatusOK, e.get("/visit?app=demo&ip=192.0.2.1&"+path).status)
	}
	e.counting(0, "192.0.2.2", "http://hhui.top/")
	fields := regexp.MustCompile(`<label for="step-(\d)">(Step \d)</label> <input id="step-(\d)" name="step" list="steps" value="([^"]*)"`)
	rows := regexp.MustCompile(`<bdi>([^<]*)</bdi></th><td class="n">(\d)</td>`)
	for _, c := range []struct{ query, fields, rows string }{
		{"", "", ""},
		{"&step=&add=1", ",", ""},
		{"&step=/", "/", "/ 2"},
		{"&step=+/pricing+&add=1", "/pricing,", "/pricing 1"},
		{"&step=/&step=/pricing&step=signup", "/,/pricing,signup", "/ 2,/pricing 1,signup 1"},
		{"&step=page:/&step=&step=event:signup&step=", "/,signup", "/ 2,signup 1"},
		{"&step=/日本|/pricing&step=!/pricing", "/日本|/pricing,!/pricing", "/日本 or /pricing 1,not /pricing 0"},
		{"&step=event:outbound/a.example:81/x", "event:outbound/a.example:81/x", "outbound/a.example:81/x 1"},
		{"&step=new&step=!returning", "new,!returning", "new 2,not returning 2"},
		{"&step=/no&add=1", "/no,", ""},
		{strings.Repeat("&step=new", 8) + "&add=1", strings.Repeat(",new", 8)[1:], strings.Repeat(",new 2", 8)[1:]},
	} {
		page := e.shown("/dash/demo/hhui.top?range=today&funnel" + c.query)
		var typed, listed []string
		for i, f := range fields.FindAllStringSubmatch(page, -1) {
			number := strconv.Itoa(i + 1)
			assert.Equal(t, []string{number, "Step " + number, number}, f[1:4], c.query)
			typed = append(typed, f[4])
		}
		_, table, _ := strings.Cut(page, "<tbody>")
		for _, row := range rows.FindAllStringSubmatch(table, -1) {
			listed = append(listed, row[1]+" "+row[2])
		}
		assert.Equal(t, c.fields, strings.Join(typed, ","), c.query)
		assert.Equal(t, c.rows, strings.Join(listed, ","), c.query)
		assert.Equal(t, len(typed) < 8, strings.Contains(page, `<button name="add" value="1"`), c.query)
		assert.NotContains(t, page, "placeholder=\"page:", c.query)
	}
	const suggests = `<datalist id="steps"><option value="/"></option><option value="/pricing"></option><option value="/日本"></option>`
	assert.Contains(t, e.shown("/dash/demo/hhui.top?range=today&funnel"),
		suggests+`<option value="signup"></option><option value="event:outbound/a.example:81/x"></option></datalist>`)
	assert.Contains(t, e.shown(e.share("demo", "")+"/hhui.top?range=today&funnel"), suggests+`</datalist>`, "events are the app's")
}
