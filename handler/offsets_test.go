package handler

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
)

// All-time totals and ranks include offsets in every response, and offsets=no leaves them out. The numbers of days and ranges
// are as counted.
func TestOffsetsOverHTTP(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps() // site 3 2 2 6, home 3 2 2 4
	public := "read"
	days := e.get("/api/apps/demo/days?site=hhui.top").body
	pages := e.get("/api/apps/demo/pages").body
	uniques := e.get("/api/apps/demo/uniques?site=hhui.top").body
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.SetOffsets(ctx, "demo", []admin.Offset{
			{URI: "http://hhui.top/home", Hot: 1000, PV: 200, UV: 100}, {URI: "hhui.top", Hot: 5000, PV: 500, UV: 400},
		}, false)
		if err != nil {
			return err
		}
		return a.SetApp(ctx, "demo", app.Settings{PublicCounts: &public, Sites: []string{"hhui.top"}})
	})
	const about = "?app=demo&ip=192.168.0.2&uri=http://hhui.top/home"
	const counted = `"site":{"pv":3,"uv":2,"rank":2,"hot":6},"page":{"pv":3,"uv":2,"rank":2,"hot":4}`
	const shown = `"site":{"pv":503,"uv":402,"rank":402,"hot":5006},"page":{"pv":203,"uv":102,"rank":102,"hot":1004}`
	many := func(more string) string {
		return e.do(http.MethodPost, e.public+"/counts", "application/json", `{"app":"demo","ip":"192.168.0.2","uris":["http://hhui.top/home"]`+
			more+`}`).body
	}
	for _, c := range []struct{ way, shown, counted, wantShown, wantCounted string }{
		{"GET /counts", e.get("/counts" + about).body, e.get("/counts" + about + "&offsets=no").body, "{" + shown + "}", "{" + counted + "}"},
		{"POST /counts", many(""), many(`,"offsets":"no"`), `{"counts":[{` + shown + `}]}`, `{"counts":[{` + counted + `}]}`},
	} {
		assert.JSONEq(t, c.wantShown, c.shown, c.way)
		assert.JSONEq(t, c.wantCounted, c.counted, c.way)
	}
	for query, want := range map[string]string{"": "visits: 1,004", "&offsets=no": "visits: 4", "&show=site.uv": "visitors: 402",
		"&show=site.uv&offsets=no": "visitors: 2"} {
		assert.Contains(t, e.get("/badge/demo.svg?uri=http://hhui.top/home"+query).body, "<title>"+want+"</title>", query)
	}
	for path, want := range map[string][2]string{
		"/api/apps/demo/sites?limit=1":                             {`"pv":503,"uv":402,"hot":5006`, `"pv":3,"uv":2,"hot":6`},
		"/api/apps/demo/ranks?uri=hhui.top/home&rank=102":          {`"rank":102,"visitor":"192.168.0.2"`, `{"ranks":[]}`},
		"/api/apps/demo/ranks?uri=hhui.top/home&rank=2":            {`{"ranks":[]}`, `"rank":2,"visitor":"192.168.0.2"`},
		"/api/apps/demo/ranks?site=hhui.top&ip=192.168.0.2":        {`"rank":402`, `"rank":2`},
		"/api/apps/demo/visitors?uri=hhui.top/home&day=2019-06-29": {`"visitor":"192.168.0.1","rank":101`, `"visitor":"192.168.0.1","rank":1`},
	} {
		assert.Contains(t, e.get(path).body, want[0], path)
		assert.Contains(t, e.get(path+"&offsets=no").body, want[1], path)
	}
	assert.Equal(t, days, e.get("/api/apps/demo/days?site=hhui.top").body)
	assert.Equal(t, pages, e.get("/api/apps/demo/pages").body)
	assert.Equal(t, uniques, e.get("/api/apps/demo/uniques?site=hhui.top").body)

	// Visits, in each way to send them. Each adds one.
	visited := func(n int, body string, offsets bool) {
		t.Helper()
		site, page := 6+n, 4+n
		if offsets {
			site, page = site+5000, page+1000
		}
		assert.Contains(t, body, fmt.Sprintf(`"hot":%d}`, site))
		assert.Contains(t, body, fmt.Sprintf(`"hot":%d}`, page))
	}
	visited(1, e.get("/visit"+about).body, true)
	visited(2, e.post(`{"app":"demo","ip":"192.168.0.2","uri":"http://hhui.top/home","offsets":"no"}`).body, false)
	const item = `[{"uri":"http://hhui.top/home","ip":"192.168.0.2"}]`
	visited(3, e.visits("app=demo", item, inArray...).body, true)
	visited(4, e.visits("app=demo&offsets=no", item, inArray...).body, false)

	assert.Contains(t, e.ask(http.MethodGet, "/busuanzi/api", "X-Bsz-Referer", "http://hhui.top/home").body,
		numbersOf("5010", "402", "1008", "102"))

	for _, a := range []answer{
		e.get("/visit" + about + "&offsets=yes"), e.get("/counts" + about + "&offsets="), e.get("/counts" + about + "&offsets=no&offsets=no"),
		e.post(`{"app":"demo","uri":"http://hhui.top/home","offsets":"yes"}`), e.visits("app=demo&offsets=yes", item, inArray...),
		e.get("/api/apps/demo/sites?offsets=0"), e.get("/api/apps/demo/ranks?site=hhui.top&rank=1&offsets=all"),
	} {
		require.Equal(t, http.StatusBadRequest, a.status, a.body)
		assert.True(t, strings.HasPrefix(a.body, `{"error":"offsets: `), a.body)
	}
	assert.Equal(t, http.StatusBadRequest, e.get("/api/apps/demo/days?site=hhui.top&offsets=no").status, "days have none")
	assert.Equal(t, "offsets: \"yes\" is not possible: write no, or leave it out",
		e.get("/badge/demo.svg?uri=http://hhui.top/home&offsets=yes").header.Get(errorHeader))

	var last int64
	require.NoError(t, e.Conn(e.t).QueryRow(t.Context(), `SELECT max(rank) FROM report.who_came('demo', 'hhui.top/home', 20190629,
		20190630)`).Scan(&last))
	assert.EqualValues(t, 102, last)
	assert.NotContains(t, e.get("/dash/demo/hhui.top?page=/home").body, "counted elsewhere", "of 30 days")
	page := e.get("/dash/demo/hhui.top?page=/home&range=all").body
	assert.Equal(t, 1, strings.Count(page, "1,008 page views, 203 visits, 102 visitors; of these, counted here: 8, 3 and 2."), page)
	assert.Equal(t, 1, strings.Count(page, "<b>no. 2</b>"), "the visitor's rank from before the offset")
	assert.Zero(t, strings.Count(e.get("/dash/demo/hhui.top?page=/index&range=all").body, "counted elsewhere"))
}
