package handler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/admin"
	"footfall/counter/app"
	"footfall/desk"
	"footfall/report"
)

// right is a row of the table of rights: the action, who may do it, and the requests for it. The test sends each
// request as each of the callers, and docs/security.md has the same rows.
type right struct {
	what  string
	may   string // names of callers
	calls []request
}

// request is a form on a page, if form is set, or else a program's request with a JSON body.
type request struct {
	method, path string
	form         url.Values
	body         string
}

// The callers, by name. Keys are of the app shop unless their name has another app. Callers that are refused come first,
// because the other callers delete things.
const (
	strangers = "nobody link wrong-cookie ended-session old-session"
	badKeys   = "wrong-key other-read other-assert other-admin"
	keys      = "count assert read admin admin-of-all"
	members   = "looks changes owner other none"
	everybody = strangers + " " + badKeys + " " + members + " " + keys
	anyKey    = "count assert read admin"
)

var rights = []right{
	{"pages of an app: `/dash/APP`, `/embed`, `/new/APP`", "looks changes owner", gets("/dash/shop", "/dash/shop/example.com",
		"/dash/shop/example.com?who", "/dash/shop?panel=sites&format=csv", "/embed?app=shop", "/new/shop")},
	{"reports: `/api/apps/APP/…`", "read looks changes owner", reportCalls()},
	{"`/share/LINK`, which shows an app or a site", everybody, gets("/share/{link}", "/share/{link}/example.com")},
	{"who came, behind a link", "", gets("/share/{link}/example.com?who")},
	{"`/settings/APP` and its forms, hosts on `/new/APP`", "changes owner", formsOfAnApp()},
	{"a key of the scope `admin` or a webhook with a private address, made there", "owner", []request{
		{method: "POST", path: "/settings/shop", form: url.Values{"do": {"add"}, "of": {"keys"}, "scope": {"admin"}}},
		{method: "POST", path: "/settings/shop", form: url.Values{"do": {"add"}, "of": {"webhooks"}, "url": {"http://127.0.0.1/"},
			"site": {"example.com"}, "private": {"true"}}}}},
	{"`/settings`: one's own language, password and sessions", members, append(gets("/settings"),
		forms("/settings", "keys", "password", "end", "language")...)},
	{"`/settings`: accounts, apps, keys of all apps; `/new`", "owner", append(append(gets("/new"),
		forms("/settings", "keys", "add", "remove", "invite", "link", "rights", "remove account")...),
		request{method: "POST", path: "/new", form: url.Values{"host": {"own.example"}, "zone": {"UTC"}, "visitor": {"address"}}})},
	{"a visit, `/counts` of a page", strangers + " " + anyKey + " " + members, []request{
		{method: "GET", path: "/visit?app=shop&uri=http://example.com/"}, {method: "GET", path: "/counts?app=shop&uri=http://example.com/"},
		{method: "POST", path: "/visit", body: `{"app":"shop","uri":"http://example.com/"}`},
		{method: "POST", path: "/counts", body: `{"app":"shop","uris":["http://example.com/"]}`}}},
	{"a visit of somebody else, `/visits`; who is whom", "assert", []request{
		{method: "GET", path: "/visit?app=shop&uri=http://example.com/&ip=192.0.2.9"},
		{method: "POST", path: "/visits?app=shop", body: `{"uri":"http://example.com/","ip":"192.0.2.9"}`},
		{method: "PUT", path: "/people?app=shop", body: `{"id":"a","is":"b"}`}}},
	{"`/counts` of a visitor, `/people`", "read", []request{
		{method: "GET", path: "/counts?app=shop&uri=http://example.com/&ip=192.0.2.9"}, {method: "GET", path: "/people?app=shop&id=a"},
		{method: "POST", path: "/people/lookup", body: `{"app":"shop","ids":["a"]}`}}},
	{"`/api/apps`, `/api/keys`, `/api/accounts`", "admin-of-all", []request{
		{method: "GET", path: "/api/apps"}, {method: "POST", path: "/api/apps", body: `{"name":"x","tz":"UTC","sites":["x.example"]}`},
		{method: "GET", path: "/api/accounts"}, {method: "POST", path: "/api/accounts", body: `{"x":1}`},
		{method: "PATCH", path: "/api/accounts/9", body: `{"owner":true}`}, {method: "DELETE", path: "/api/accounts/9"},
		{method: "POST", path: "/api/accounts/9/link"}, {method: "GET", path: "/api/keys"},
		{method: "POST", path: "/api/keys", body: `{"scope":"admin"}`}, {method: "DELETE", path: "/api/keys/none"}}},
	{"a key of the scope `admin` or a webhook with a private address of `/api/apps/APP`", "admin-of-all", []request{
		{method: "POST", path: "/api/apps/shop/keys", body: `{"scope":"admin"}`}, {method: "POST", path: "/api/apps/shop/webhooks",
			body: `{"url":"http://127.0.0.1/","site":"example.com","private":true}`}}},
	{"`/api/apps/APP` and what else is below", "admin admin-of-all", callsOfAnApp()},
}

// apart are routes without a row: they are public, or reveal nothing about an app that has not chosen to.
var apart = []string{"/count.js", "/count.:version", "/livez", "/readyz", "/healthz", "/openapi.json", "/badge/:file", "/top",
	"/", "/dash", "/dash/", "/enter", "/leave", "/start/:token", "/begin", "/proof", "/robots.txt", "/favicon.ico", "/dash/style.css",
	"/dash/dash.js", "/dash/icon.svg"}

func gets(paths ...string) (calls []request) {
	for _, path := range paths {
		calls = append(calls, request{method: "GET", path: path, form: url.Values{}})
	}
	return calls
}

func forms(path, of string, does ...string) (calls []request) {
	for _, do := range does {
		calls = append(calls, request{method: "POST", path: path, form: url.Values{"do": {do}, "of": {of}, "one": {"none"}}})
	}
	return calls
}

func formsOfAnApp() []request {
	calls := append(gets("/settings/shop"), request{method: "POST", path: "/new/shop", form: url.Values{"host": {"new.example"}}},
		request{method: "POST", path: "/settings/shop", form: url.Values{"do": {"add"}, "of": {"notes"}, "day": {"2019-06-29"}, "text": {"a"}}})
	for _, thing := range admin.ObjectKinds {
		calls = append(calls, forms("/settings/shop", thing.Name, "add", "remove")...)
	}
	return append(calls, forms("/settings/shop", "", "set", "test", "show", "erase", "delete page", "import history", "remove history",
		"delete", "nonsense")...)
}

func reportCalls() (calls []request) {
	for _, r := range report.Reports {
		calls = append(calls, request{method: "GET", path: "/api/apps/shop/" + r.Name + "?site=example.com"})
	}
	return calls
}

func callsOfAnApp() []request {
	calls := []request{{method: "GET", path: "/api/apps/shop"}, {method: "PATCH", path: "/api/apps/shop", body: `{"retain_days":60}`},
		{method: "POST", path: "/api/apps/shop/visitors/erase", body: `{"visitor":"192.0.2.1"}`},
		{method: "POST", path: "/api/apps/shop/pages/delete", body: `{"uri":"example.com/x"}`},
		{method: "POST", path: "/api/apps/shop/keys", body: `{"scope":"read"}`}}
	for _, thing := range admin.ObjectKinds {
		calls = append(calls, request{method: "GET", path: "/api/apps/shop/" + thing.Name},
			request{method: "POST", path: "/api/apps/shop/" + thing.Name, body: `{"nothing":1}`},
			request{method: "DELETE", path: "/api/apps/shop/" + thing.Name + "/none"})
	}
	return append(calls, request{method: "DELETE", path: "/api/apps/shop"})
}

func (r *right) lets(caller string) bool { return slices.Contains(strings.Fields(r.may), caller) }

// asEach are the callers with their credentials: a session's cookie, or a key.
func (e *edge) asEach(link string) map[string]person {
	e.t.Helper()
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.AddApp(ctx, "other", app.Settings{Sites: []string{"other.example"}})
	})
	cookie := func(session string) person { return person{e, map[string]string{sessionCookie: session}} }
	as := map[string]person{"nobody": cookie(""), "link": cookie(link), "wrong-cookie": cookie("wrong"), "wrong-key": cookie("")}
	for name, app := range map[string]string{"looks": "shop", "changes": "shop", "other": "other", "none": "", "ended-session": "shop",
		"old-session": "shop"} {
		right := account.Rights{Apps: map[string]account.Right{app: account.Change}}
		switch name {
		case "looks":
			right = desk.Looks(app)
		case "none":
			right = account.Rights{}
		}
		as[name] = cookie(e.SignIn(e.t, name, right))
	}
	as["owner"] = cookie(e.SignIn(e.t, desk.Owner, account.Rights{}))
	ended, old := as["ended-session"], as["old-session"]
	require.Equal(e.t, 303, ended.do("POST", "/leave", url.Values{}).status)
	ended = cookie(as["ended-session"].cookies[sessionCookie])
	hash := sha256.Sum256([]byte(old.cookies[sessionCookie]))
	e.Exec(e.t, `UPDATE account_sessions SET created_at = now() - interval '31 days' WHERE hash = $1`, hash[:])
	return as
}

func TestRights(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.ask(http.MethodGet, "/visit?app=shop&uri=http://example.com/", "User-Agent", desk.Browser)
	link := strings.TrimPrefix(e.share("shop", ""), "/share/")
	as := e.asEach(link)
	bearer := map[string]string{"wrong-key": "footfall_wrong", "admin-of-all": e.newKey("", app.ScopeAdmin)}
	for _, scope := range app.Scopes {
		bearer[string(scope)], bearer["other-"+string(scope)] = e.newKey("shop", scope), e.newKey("other", scope)
	}
	state := func() []string {
		return e.Table(t, `SELECT (SELECT count(*) FROM changes), (SELECT count(*) FROM accounts), (SELECT sum(hot) FROM counters),
			(SELECT string_agg(c.account_id || c.hash::text, ',' ORDER BY c.id) FROM account_sessions AS c)`)
	}
	for i := range rights {
		row := &rights[i]
		for _, c := range row.calls {
			for _, name := range strings.Fields(everybody) {
				p, isPerson := as[name]
				if !isPerson {
					p = person{e, map[string]string{}}
				}
				before := []string{}
				if !row.lets(name) {
					before = state()
				}
				a := e.sendsAs(&p, c, link, bearer[name], name == "owner")
				refused := a.status == http.StatusUnauthorized || a.status == http.StatusForbidden ||
					a.status == http.StatusBadRequest && strings.Contains(a.body, "only owners and keys for all apps can set") // the form's error
				assert.Equal(t, !row.lets(name), refused, "%s: %s %s %v: %d", name, c.method, c.path, c.form, a.status)
				assert.NotEqual(t, http.StatusTooManyRequests, a.status)
				assert.Less(t, a.status, http.StatusInternalServerError, "%s: %s %s %v", name, c.method, c.path, c.form)
				if !row.lets(name) {
					assert.Equal(t, before, state(), "%s: %s %s %v changes nothing", name, c.method, c.path, c.form)
				}
				if refused && c.path == "/dash/shop" {
					assert.Contains(t, a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
				}
			}
		}
	}
	e.close()
	bearer["link"] = link
	for _, secret := range bearer {
		if len(secret) > 30 {
			assert.NotContains(t, e.log.String(), secret[18:])
			assert.Empty(t, e.Table(t, `SELECT * FROM changes WHERE changes::text LIKE '%`+secret[30:]+`%'`))
		}
	}
}

// sendsAs sends a request with the cookies of a person, or with a key. If forged, it is sent like a form on a page of
// another site.
func (e *edge) sendsAs(p *person, c request, link, bearer string, forged bool) answer {
	e.t.Helper()
	e.Clock.Set(e.Clock.Now().Add(6 * time.Second)) // because ten wrong keys a minute are allowed
	as := person{e, map[string]string{}}
	for name, value := range p.cookies {
		as.cookies[name] = value
	}
	headers := []string{"User-Agent", desk.Browser}
	if bearer != "" {
		headers = append(headers, "Authorization", "Bearer "+bearer)
	}
	path := strings.Replace(c.path, "{link}", link, 1)
	if c.form == nil {
		headers = append(headers, "Content-Type", "application/json")
		return as.send(c.method, path, c.body, headers...)
	}
	form := c.form
	if c.method == http.MethodGet {
		form = nil
	}
	if c.method == http.MethodPost && forged {
		for _, from := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			a := as.do(c.method, path, form, append(from, headers...)...)
			assert.Equal(e.t, http.StatusForbidden, a.status, "%s %v of another site", path, form)
		}
	}
	return as.do(c.method, path, form, headers...)
}

// Each route, with each of its methods, is in the table of rights, or public.
func TestRightsHaveAllRoutes(t *testing.T) {
	t.Parallel()
	s := newService(newEdge(t).options)
	withoutKeys := (&busuanzi{s}).routes() // they show and count like visits without a key, as do those of LeanCloud
	for _, r := range s.publicRoutes() {
		if slices.Contains(apart, r.path) || slices.ContainsFunc(withoutKeys, func(b route) bool { return b.path == r.path }) ||
			strings.HasPrefix(r.path, "/1.1/") {
			continue
		}
		for _, method := range r.methods {
			if method == http.MethodHead || method == http.MethodOptions {
				continue
			}
			assert.True(t, slices.ContainsFunc(rights, func(row right) bool {
				return slices.ContainsFunc(row.calls, func(c request) bool { return c.method == method && leadsTo(r.path, c.path) })
			}), "%s %s has no line in the table of rights", method, r.path)
		}
	}
}

// leadsTo reports whether a route matches a path.
func leadsTo(route, path string) bool {
	path, _, _ = strings.Cut(path, "?")
	of, is := strings.Split(route, "/"), strings.Split(path, "/")
	return slices.EqualFunc(of, is, func(of, is string) bool { return strings.HasPrefix(of, ":") || of == is })
}

// The table in docs/security.md has the same rows as rights.
func TestDocumentedRights(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../docs/security.md")
	require.NoError(t, err)
	const head = "| | nobody | link | key | looking | changing | owner | another app's |\n|---|---|---|---|---|---|---|---|\n"
	var table strings.Builder
	for i := range rights {
		row := &rights[i]
		yes := func(caller string) string { return map[bool]string{true: "yes", false: "no"}[row.lets(caller)] }
		var of []string
		for _, key := range strings.Fields(keys) {
			if row.lets(key) {
				of = append(of, strings.Replace("`"+key+"`", "-of-all`", "` of all", 1))
			}
		}
		key := cmp.Or(strings.Join(of, ", "), "no")
		if row.lets("nobody") {
			key = "yes"
		}
		table.WriteString("| " + strings.Join([]string{row.what, yes("nobody"), yes("link"), key, yes("looks"), yes("changes"), yes("owner"),
			yes("other")}, " | ") + " |\n")
	}
	_, after, _ := strings.Cut(string(docs), head)
	is, _, _ := strings.Cut(after, "\n\n")
	assert.Equal(t, table.String(), is+"\n", "docs/security.md")
}
