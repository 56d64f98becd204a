package handler

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/admin"
	"footfall/counter/app"
	"footfall/counter/desk"
)

// askers are those who ask for something, in the order of the columns of rights.
var askers = []string{"nobody", "link", "read key", "looks", "changes", "owner", "other's"}

// right is what each of them is answered: a status.
type right struct {
	method, path string
	form         url.Values
	answers      [7]int
}

// What somebody is answered who is not signed in (nobody), has a link to the app, shows a key of the
// scope read, is signed in as a member who looks at it, as one who changes it, as an owner, and as
// a member of another app. Each line is tried from outside.
var rights = []right{
	//                                                    nobody link read look change owner other
	{"GET", "/dash/shop", nil, [7]int{403, 403, 403, 200, 200, 200, 403}},
	{"GET", "/dash/shop/example.com", nil, [7]int{403, 403, 403, 200, 200, 200, 403}},
	{"GET", "/dash/shop/example.com?who", nil, [7]int{403, 403, 403, 200, 200, 200, 403}},
	{"GET", "/dash/shop?panel=sites&format=csv", nil, [7]int{403, 403, 403, 302, 302, 302, 403}},
	{"GET", "/embed?app=shop", nil, [7]int{403, 403, 403, 200, 200, 200, 403}},
	{"GET", "/api/apps/shop/sites", nil, [7]int{401, 401, 200, 200, 200, 200, 401}},
	{"GET", "/api/apps/shop/who-came?site=example.com", nil, [7]int{401, 401, 200, 200, 200, 200, 401}},
	{"GET", "/share/{link}", nil, [7]int{200, 200, 200, 200, 200, 200, 200}},
	{"GET", "/share/{link}/example.com?who", nil, [7]int{403, 403, 403, 403, 403, 403, 403}},
	{"GET", "/new", nil, [7]int{403, 403, 403, 403, 403, 200, 403}},
	{"GET", "/new/shop", nil, [7]int{403, 403, 403, 200, 200, 200, 403}},
	{"POST", "/new/shop", url.Values{"host": {"new.example"}}, [7]int{403, 403, 403, 403, 303, 303, 403}},
	{"GET", "/settings", nil, [7]int{403, 403, 403, 200, 200, 200, 200}},
	{"POST", "/settings", url.Values{"do": {"invite"}, "app.shop": {"look"}}, [7]int{403, 403, 403, 403, 403, 200, 403}},
	{"GET", "/settings/shop", nil, [7]int{403, 403, 403, 403, 200, 200, 403}},
	{"POST", "/settings/shop", url.Values{"do": {"add"}, "of": {"notes"}, "day": {"2019-06-29"}, "text": {"a note"}},
		[7]int{403, 403, 403, 403, 303, 303, 403}},
	{"POST", "/settings/shop", url.Values{"do": {"add"}, "of": {"webhooks"}, "url": {"http://127.0.0.1/"}, "site": {"example.com"},
		"private": {"true"}}, [7]int{403, 403, 403, 403, 400, 200, 403}},
	{"POST", "/settings/shop", url.Values{"do": {"add"}, "of": {"keys"}, "scope": {"admin"}}, [7]int{403, 403, 403, 403, 400, 200, 403}},
	{"PATCH", "/api/apps/shop", nil, [7]int{401, 401, 403, 401, 401, 401, 401}},
	{"POST", "/api/apps", nil, [7]int{401, 401, 403, 401, 401, 401, 401}},
	{"POST", "/new", url.Values{"host": {"own.example"}, "zone": {"UTC"}, "visitor": {"address"}}, [7]int{403, 403, 403, 403, 403, 303, 403}},
}

func TestRights(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.ask(http.MethodGet, "/visit?app=shop&uri=http://example.com/", "User-Agent", desk.Browser)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.AddApp(ctx, "other", app.Settings{Sites: []string{"other.example"}})
	})
	key, link := e.key("shop", app.ScopeRead), strings.TrimPrefix(e.share("shop", ""), "/share/")
	olga := e.SignIn(t, desk.Owner, account.Rights{})
	changes := e.SignIn(t, "Cem", account.Rights{Apps: map[string]account.Right{"shop": account.Change}})
	looks, others := e.member("Ann", "shop"), e.SignIn(t, "Bob", account.Rights{Apps: map[string]account.Right{"other": account.Change}})
	state := func() []string {
		return e.Table(t, `SELECT name, sites, public_counts, keep_query, (SELECT count(*) FROM keys), (SELECT count(*) FROM notes),
			(SELECT count(*) FROM accounts), (SELECT count(*) FROM webhooks) FROM apps ORDER BY 1`)
	}
	for _, line := range rights {
		for i, asker := range askers {
			p, headers := newPerson(e), []string{"X-Asker", asker}
			switch asker {
			case "link":
				require.Equal(t, http.StatusOK, p.get("/share/"+link).status)
			case "read key":
				headers = []string{"Authorization", "Bearer " + key}
			case "looks":
				p = looks
			default:
				if session := map[string]string{"changes": changes, "owner": olga, "other's": others}[asker]; session != "" {
					p.cookies[sessionCookie] = session
				}
			}
			before := state()
			a := p.do(line.method, strings.Replace(line.path, "{link}", link, 1), line.form, headers...)
			assert.Equal(t, line.answers[i], a.status, "%s: %s %s", asker, line.method, line.path)
			if a.status >= http.StatusBadRequest || line.method == http.MethodGet {
				assert.Equal(t, before, state(), "%s: %s %s changes nothing", asker, line.method, line.path)
			}
			if line.path == "/dash/shop" && a.status != http.StatusOK {
				assert.Contains(t, a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
			}
		}
	}
	// Each route of the dashboard stands in the table, or is here for a reason.
	apart := []string{"/", "/dash", "/dash/", "/enter", "/leave", "/start/:token", "/begin", "/proof", "/robots.txt", "/favicon.ico",
		"/dash/style.css", "/dash/dash.js", "/dash/icon.svg"} // nobody's in particular, or of one's own session
	for _, r := range (&reports{service: &service{Options: e.options}}).in(e.options.Cells.Home()).routes() {
		at := strings.NewReplacer(":app", "shop", ":site", "example.com", ":token", "{link}").Replace(r.path)
		tried := slices.ContainsFunc(rights, func(line right) bool { path, _, _ := strings.Cut(line.path, "?"); return path == at })
		assert.True(t, tried || slices.Contains(apart, r.path), "%s has no line in the table of rights", r.path)
		if tried && slices.Contains(r.methods, http.MethodPost) {
			assert.True(t, slices.ContainsFunc(rights, func(line right) bool { return line.path == at && line.method == "POST" }), "POST %s", at)
		}
	}
}
