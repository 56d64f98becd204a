package attacks

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/counter/app"
	"footfall/desk"
	"footfall/handler"
	"footfall/handler/routing"
	"footfall/report"
)

// TestPublicCounts checks which numbers are public, for each setting of public counts, each access, with and without
// a key, and each call that returns numbers. Refused calls have counted nothing.
func TestPublicCounts(t *testing.T) {
	t.Parallel()
	apps := map[string]app.Settings{}
	for _, public := range []string{app.PublicOff, app.PublicAnswers, app.PublicRead, "count"} {
		for _, access := range []string{app.AccessOpen, "sites", "key"} {
			if name := public + "-" + access; name != "count-key" {
				apps[name] = app.Settings{Access: &access, PublicCounts: &public, Sites: []string{name + ".example"}, MaxRequests: ptr("0")}
			}
		}
	}
	w := &world{t, &premises{log: new(records), words: map[string]string{}}}
	w.Desk = desk.Open(t, desk.Options{Began: noon, Apps: apps})
	proxies, faults := handler.NewProxies(nil, "")
	require.Empty(t, faults)
	public, _ := handler.Servers(handler.Options{Log: w.log.logger(), Metrics: prometheus.NewRegistry(), Proxies: proxies,
		Cells: routing.NewSingle(&routing.Cell{Counter: w.Counter, Reports: report.NewReader(w.DB)}), Accounts: account.Open(w.DB),
		Dashboard: true})
	w.public[direct] = w.serve(public)

	const numbers = `{"site":{"pv":1,"uv":1,`
	for _, name := range slices.Sorted(maps.Keys(apps)) {
		key, err := w.Admin.AddKey(t.Context(), name, []app.Scope{app.ScopeAssert, app.ScopeRead})
		require.NoError(t, err)
		bearer := "\nAuthorization: Bearer " + key
		public, access, _ := strings.Cut(name, "-")
		site := name + ".example"
		hot := func() (sum int64) {
			require.NoError(t, w.Tables().QueryRow(t.Context(), `
				SELECT coalesce(sum(c.hot), 0) FROM counters AS c JOIN pages AS p ON p.id = c.page_id
				JOIN apps AS a ON a.id = p.app_id WHERE a.name = $1 AND p.site_id IS NOT NULL`, name).Scan(&sum))
			return sum
		}
		asks := func(request string, status int, says string, counted int64) {
			before := hot()
			method, _, _ := strings.Cut(request, " ")
			a := w.raw(w.public[direct], method, wire(request))
			assert.Equal(t, status, a.status, "%s: %s: %s", name, request, a.body)
			if says == "{}" {
				assert.Equal(t, says, a.body, "%s: %s", name, request)
			}
			assert.Contains(t, a.body, says, "%s: %s", name, request)
			assert.Equal(t, counted, hot()-before, "%s: %s", name, request)
		}
		// With a key all numbers are returned, as to the first visitor of the page.
		page := "app=" + name + "&uri=https://" + site + "/"
		asks("GET /visit?"+page+bearer, 200, numbers, 1)
		asks("GET /counts?"+page+bearer, 200, numbers, 0)
		asks("GET /visit?app="+name+"&event=signup"+bearer, 200, numbers, 1)
		asks("GET /counts?app="+name+"&event=signup"+bearer, 200, numbers, 0)

		told, tells, counted, refused := 200, numbers, int64(1), 403
		if public == app.PublicOff {
			told, tells = 403, "shows no numbers without a key"
		}
		visited, says := 200, numbers
		if public == app.PublicOff {
			says = "{}"
		}
		event, eventSays := 200, "{}"
		if access == "key" {
			told, tells, visited, says, event, eventSays, counted, refused = 401, "without a key", 401, "without a key", 401, "without a key", 0, 401
		}
		asks("GET /visit?"+page, visited, says, counted)
		asks("GET /visit?app="+name+"&event=signup", event, eventSays, counted)
		asks("POST /visit\n\n"+fmt.Sprintf(`{"app":%q,"event":"signup"}`, name), event, eventSays, counted)
		asks("GET /counts?"+page, told, tells, 0)
		asks("GET /counts?app="+name+"&event=signup", refused, "key", 0)
		many := tells
		asks("POST /counts\n\n"+fmt.Sprintf(`{"app":%q,"uris":["https://%s/"]}`, name, site), told, many, 0)

		// The clients of other services need numbers.
		clients, clientCounts := told, int64(0)
		if told == 200 {
			clientCounts = 1
		}
		host := "https://" + site + "/"
		soxft, vercount := `"success":true`, `"status":"success"`
		switch clients {
		case 403:
			soxft, vercount = `"success":false,"message":"app `+name+` shows no`, `"status":"error","message":"app `+name+` shows no`
		case 401:
			soxft, vercount = "without a key", "without a key"
		}
		asks("POST /busuanzi/api\nContent-Length: 0\nx-bsz-referer: "+host, clients, soxft, clientCounts)
		asks("GET /busuanzi/api\nx-bsz-referer: "+host, clients, soxft, 0)
		asks("PUT /busuanzi/api\nContent-Length: 0\nx-bsz-referer: "+host, map[int]int{200: 204, 401: 401, 403: 403}[clients], "", clientCounts)
		asks("POST /api/v2/log\n\n"+fmt.Sprintf(`{"url":%q}`, host), clients, vercount, clientCounts)
		asks("GET /api/v2/log?url="+host, clients, vercount, 0)
		cc := map[int]string{200: `"busuanzi_page_uv"`}[clients]
		asks("POST /api.php\nOrigin: https://"+site+"\n\n"+fmt.Sprintf(`{"url":%q}`, host), clients, cc, clientCounts)
		asks("GET /busuanzi?url="+host, clients, "", clientCounts)
		asks("GET /busuanzi?jsonpCallback=f\nReferer: "+host, clients, "", clientCounts)

		// The clients of LeanCloud count like /visit. They get numbers if badges may show them.
		theme := "\nOrigin: https://" + site
		put := "PUT /1.1/classes/Counter/Lw" + theme + "\n\n" + `{"time":{"__op":"Increment","amount":1}}`
		status, begins := 401, ""
		if visited == 200 {
			status, begins = 200, `{"objectId":"Lw","updatedAt"`
		}
		asks(put, status, begins, counted)
		record := 200
		if access == "key" || public != app.PublicRead && public != "count" {
			record = 401
		}
		asks(`GET /1.1/classes/Counter?where={"url":"/"}`+theme, record, map[bool]string{true: `"time":`, false: `{"code":401`}[record == 200], 0)

		shows, counts := public == app.PublicRead || public == "count", public == "count"
		badge := func(query string, shown bool, counted int64) {
			before := hot()
			a := w.raw(w.public[direct], http.MethodGet, wire("GET /badge/"+name+".svg?"+query))
			assert.Equal(t, 200, a.status)
			assert.Equal(t, !shown, strings.Contains(a.body, "–"), "%s: badge of %s", name, query)
			assert.Equal(t, counted, hot()-before, "%s: badge of %s", name, query)
		}
		badge("uri="+host, shows, 0)
		badge("uri="+host+"&count=1", counts, map[bool]int64{true: 1}[counts])
		badge("event=signup", false, 0)
		badge("event=signup&count=1", false, 0)

		open := access == app.AccessOpen && shows
		asks("GET /api/apps/"+name+"/sites", map[bool]int{true: 200, false: 401}[open], "", 0)
		asks("GET /api/apps/"+name+"/sites"+bearer, 200, site, 0)
		items := fmt.Sprintf(`[{"ip":"192.0.2.9","uri":"https://%s/"},{"ip":"192.0.2.9","event":"signup"}]`, site)
		switch many := "POST /visits?app=" + name + "\n\n" + items; {
		case access != app.AccessOpen:
			asks(many, 401, "", 0)
		case public == app.PublicOff:
			asks(many, 200, `{"visits":[{"counted":{}},{"counted":{}}]}`, 2)
		default:
			asks(many, 200, `},{"counted":{}}]}`, 2)
		}
		asks("GET /dash/"+name, map[bool]int{true: 200, false: 403}[open], "", 0)
	}
}
