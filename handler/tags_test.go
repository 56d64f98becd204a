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
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
)

// The tags of a visit are in its fields. The Referer of an image or a script is the counted page, and does not show
// where its visitor came from.
func TestVisitsBringTags(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, path := range []string{
		"/visit?app=demo&ip=192.0.2.1&uri=http://a/%3Futm_campaign=Spring&referrer=https://www.news.example/secret%3Fq=1",
		"/visit?app=demo&ip=192.0.2.2&uri=http://a/&referrer=",
		"/visit?app=demo&ip=192.0.2.3&uri=http://a/&referrer=http://a/before",
		"/visit?app=demo&ip=192.0.2.4&uri=http://a/%3Futm_source=letter&referrer=no+address",
		"/counts?app=demo&ip=192.0.2.6&uri=http://a/&referrer=https://news.example/",
	} {
		a := e.get(path)
		assert.Equal(t, http.StatusOK, a.status, "%s: %s", path, a.body)
	}
	assert.Equal(t, http.StatusOK, e.post(`{"app":"demo","ip":"192.0.2.7","uri":"http://a/","referrer":"android-app://com.slack/"}`).status)
	assert.Equal(t, http.StatusBadRequest, e.get("/visit?app=demo&uri=http://a/&referrer=https://x/&referrer=https://y/").status)
	e.askWith("", http.MethodGet, "/visit?app=demo&ip=192.0.2.8&uri=http://a/", "Referer", "https://cdn.example/")
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "shop", app.Settings{PublicCounts: ptr("count")})
	})
	a := e.askWith("", http.MethodGet, "/badge/shop.svg?uri=http://example.com/&count=1", "User-Agent", camo, "Referer",
		"https://forge.example/readme")
	assert.Contains(t, a.body, "<title>visits: 1</title>")
	// A browser's headers give the tags of its own visitor, but not the tags of visitors that a backend names.
	e.askWith("", http.MethodGet, "/visit?app=shop&uri=http://example.com/", "Accept-Language", "de-AT,en;q=0.5",
		"User-Agent", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
		"Sec-CH-UA", `"Chromium";v="140", "Brave";v="140"`, "Sec-CH-UA-Mobile", "?0", "Sec-CH-UA-Platform", `"Windows"`)
	assert.Equal(t, http.StatusOK, e.visits("app=demo",
		`[{"uri":"http://many/","ip":"192.0.2.9","referrer":"https://www.google.de/","language":"fr-CA,en","country":"ca"},
		{"uri":"http://many/?utm_source=letter","ip":"192.0.2.10","agent":"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
		"at":"2019-06-29T07:00:00Z"}]`, inArray...).status)

	e.Close() // also adds up the remaining tags
	conn := e.Conn(t)
	assert.Equal(t, []string{"campaign spring 1", "hour 12 6", "source letter 1", "source news.example 1", "source slack 1"},
		dbtest.Column[string](t, conn, `
		SELECT format('%s %s %s', t.name, t.value, d.pv)
		FROM footfall.tag_days d JOIN footfall.tags t ON t.id = d.tag_id JOIN footfall.pages p ON p.id = d.page_id
		WHERE p.uri = 'a' ORDER BY 1`))
	assert.Equal(t, []string{"browser Safari", "country CA", "device phone", "hour 07", "hour 12", "language fr", "source google",
		"source letter", "system iOS"}, dbtest.Column[string](t, conn, `
		SELECT t.name COLLATE "C" || ' ' || t.value
		FROM footfall.tag_days d JOIN footfall.tags t ON t.id = d.tag_id JOIN footfall.pages p ON p.id = d.page_id
		WHERE p.uri = 'many' ORDER BY 1`))
	assert.Equal(t, []string{
		"browser (other)", "browser Brave", "device (other)", "device desktop", "hour 12", "language de", "system (other)", "system Windows",
	}, dbtest.Column[string](t, conn, `
		SELECT t.name COLLATE "C" || ' ' || t.value
		FROM footfall.tag_days d JOIN footfall.tags t ON t.id = d.tag_id JOIN footfall.pages p ON p.id = d.page_id
		WHERE p.uri LIKE 'example.com%' ORDER BY 1`))
	require.Empty(t, dbtest.Column[int](t, conn, `SELECT 1 FROM `+db.Schema+`.tag_news`))

	for ask, says := range map[string]string{
		"site=a":                                 `{"tags":[{"value":"news.example","pv":1,"newcomers":1},{"value":"letter","pv":1,"newcomers":1},{"value":"slack","pv":1,"newcomers":1},{"value":"(none)","pv":3,"newcomers":3}],"name":"source","since":20190629}`,
		"site=a&limit=1":                         `{"tags":[{"value":"news.example","pv":1,"newcomers":1},{"value":"(none)","pv":3,"newcomers":3}],"name":"source","since":20190629}`,
		"uri=http://a/&name=campaign&from=today": `{"tags":[{"value":"spring","pv":1,"newcomers":1},{"value":"(none)","pv":5,"newcomers":5}],"name":"campaign","since":20190629}`,
		"site=a&name=campaign&to=20190628":       `{"tags":[],"name":"campaign"}`,
		"site=a&name=hour&format=csv":            "value,pv,newcomers\r\n12,6,6\r\n\"(none)\",0,0\r\n",
	} {
		assert.Equal(t, says, e.get("/api/apps/demo/tags?"+ask).body, ask)
	}
	for ask, fault := range map[string]string{
		"site=a&name=colour":          "name: \\\"colour\\\" is not a tag of this app: use source, campaign,",
		"uri=http://a/&name=browser":  "pages only have source and campaign: request browser for the site",
		"site=a&name=hour&limit=5000": "limit: ",
	} {
		a := e.get("/api/apps/demo/tags?" + ask)
		assert.Equal(t, http.StatusBadRequest, a.status, ask)
		assert.Contains(t, a.body, fault, ask)
	}
}

// Only callers who may assert visitors may pass their tags: a language, a country, and tags that the app lists.
func TestCallersWhoAssertPassTags(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "shop", app.Settings{Tags: []string{"default", "plan", "age"}})
	})
	asserts, counts := "Bearer "+e.key("shop", app.ScopeAssert), "Bearer "+e.key("shop", app.ScopeCount)
	const visit, shop = "/visit?app=shop&uri=http://example.com/", `{"app":"shop","uri":"http://example.com/",`
	for _, key := range []string{"", counts} {
		for field, query := range map[string]string{"language": "&language=de", "country": "&country=DE", "tags": "&tag.plan=pro"} {
			a := e.ask(http.MethodGet, visit+query, "Authorization", key)
			assert.Equal(t, http.StatusForbidden, a.status, query)
			assert.Contains(t, a.error(t), field+": app shop accepts it only with a key of the scope assert")
		}
	}
	for n, query := range []string{
		"&language=de-AT,en&country=at&tag.plan=%20Pro&tag.age=", "&country=XX&tag.plan=" + strings.Repeat("p", 101),
		"&language=&country=&tag.plan=a@b.example",
	} {
		a := e.ask(http.MethodGet, fmt.Sprint(visit, "&ip=192.0.2.", n, query), "Authorization", asserts, "Accept-Language", "en")
		assert.Equal(t, http.StatusOK, a.status, a.body)
	}
	post := func(path, body string) answer {
		return e.askWith(body, http.MethodPost, path, "Authorization", asserts, "Content-Type", "application/json")
	}
	assert.Equal(t, http.StatusOK, post("/visit", shop+`"ip":"192.0.2.9","tags":{"plan":"pro","age":"30"},"country":"CH"}`).status)
	for _, wrong := range []answer{
		post("/visit", shop+`"ip":"192.0.2.9","tags":{"plan":"pro","plann":"x"}}`),
		e.ask(http.MethodGet, visit+"&tag.plann=x", "Authorization", asserts),
	} {
		assert.Equal(t, http.StatusBadRequest, wrong.status)
		assert.Contains(t, wrong.error(t), `tags: app shop has no tag "plann" of its own: leave it out, or have its operator list it (app `+
			`set --tags)`)
	}
	a := post("/visits?app=shop", `[{"uri":"http://example.com/","ip":"192.0.2.20","tags":{"plan":"team"}},{"uri":"http://example.com/",`+
		`"ip":"192.0.2.21","tags":{"hour":"00"}}]`)
	assert.Equal(t, http.StatusOK, a.status, a.body)
	assert.Contains(t, a.body, `tags: app shop has no tag \"hour\" of its own`)

	e.Close() // also adds up the remaining tags
	assert.Equal(t, []string{
		"age 30 1", "country AT 1", "country CH 1", "hour 12 5", "language de 1", "plan (other) 2", "plan pro 2", "plan team 1",
	}, desk.Column[string](t, e.Desk, `
		SELECT format('%s %s %s', t.name, t.value, d.pv) COLLATE "C"
		FROM footfall.tag_days d JOIN footfall.tags t ON t.id = d.tag_id JOIN footfall.pages p ON p.id = d.page_id
		ORDER BY 1`), "and none of the page")
}

// A country header counts for every visitor behind a proxy, but only if the proxy is trusted and has sent the header.
func TestCountryOfATrustedProxy(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for n, c := range []struct {
		trusts, header string
		query, sent    string
	}{
		{"127.0.0.0/8", "CF-IPCountry", "", "de"},
		{"127.0.0.0/8", "cf-ipcountry", "", "XX"},
		{"127.0.0.0/8", "CF-IPCountry", "&ip=192.0.2.1", "FR"},
		{"127.0.0.0/8", "CF-IPCountry", "&ip=192.0.2.2&country=CH", "FR"},
		{"127.0.0.0/8", "CF-IPCountry", "&country=AT", "FR"},
		{"127.0.0.0/8", "", "", "FR"},
		{"127.0.0.0/8", "X-Country", "", "FR"},
		{"10.0.0.0/8", "CF-IPCountry", "", "FR"}, // sent by a stranger
	} {
		options := e.options
		options.Metrics, options.CountryHeader = nil, c.header
		var faults []error
		options.Proxies, faults = NewProxies([]string{c.trusts}, "")
		require.Empty(t, faults)
		through := &edge{t: t, public: listen(t, publicHandler(options), options.Log)}
		a := through.ask(http.MethodGet, fmt.Sprintf("/visit?app=demo&uri=http://s%d%s", n, c.query), "X-Forwarded-For", "198.51.100.7",
			"CF-IPCountry", c.sent)
		assert.Equal(t, http.StatusOK, a.status, a.body)
	}
	e.Close() // also adds up the remaining tags
	assert.Equal(t, []string{"s0 DE", "s3 CH", "s4 AT"}, desk.Column[string](t, e.Desk, `
		SELECT p.uri || ' ' || t.value FROM footfall.tag_days d JOIN footfall.tags t ON t.id = d.tag_id JOIN footfall.pages p ON p.id = d.page_id
		WHERE t.name = 'country' ORDER BY p.uri`))
}
