package handler

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/web"
)

// share makes a link to an app, or to one of its sites, and returns its path.
func (e *edge) share(app, site string) (path string) {
	e.t.Helper()
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		token, _, err := a.AddShare(ctx, app, site, "")
		path = "/share/" + token
		return err
	})
	return path
}

// newSharingEdge returns an edge with visits to two sites of shop, which lists only example.com, and of demo.
func newSharingEdge(t *testing.T) *edge {
	t.Helper()
	e := newEdge(t)
	key := e.key("shop", app.ScopeAssert)
	for _, uri := range []string{"http://example.com/", "http://example.com/secret?x", "http://other.example/there"} {
		sites := []string{"other.example", "example.com"}
		e.administer(func(ctx context.Context, a *admin.Admin) error {
			return a.SetApp(ctx, "shop", app.Settings{Sites: sites})
		})
		a := e.ask(http.MethodGet, "/visit?"+url.Values{"app": {"shop"}, "ip": {"192.0.2.77"}, "uri": {uri}}.Encode(), "Authorization", "Bearer "+
			key)
		require.Equal(t, http.StatusOK, a.status, a.body)
	}
	require.Equal(t, http.StatusOK, e.ask(http.MethodGet, "/visit?app=shop&event=signup").status)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.AddNote(ctx, "shop", "2019-06-29", "Now with other.example", "")
		require.NoError(t, err)
		_, err = a.AddNote(ctx, "shop", "2019-06-29", "A new version", "example.com")
		require.NoError(t, err)
		_, err = a.AddSites(ctx, "shop", []string{"*.example.com", "example.com:81"})
		require.NoError(t, err)
		_, err = a.RemoveSites(ctx, "shop", []string{"other.example"})
		return err
	})
	e.counting(0, "192.0.2.77", "http://hhui.top/home")
	return e
}

var linked = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)

// A shared page has no link out of the shared part, at any depth.
func TestSharedPagesLeadNowhereElse(t *testing.T) {
	t.Parallel()
	e := newSharingEdge(t)
	for name, c := range map[string]struct {
		path, first  string
		never, shown []string
	}{
		"an app": {e.share("shop", ""), "", []string{"hhui.top", "demo"}, []string{"other.example", "example.com", "(events)",
			"/signup", "A new version", "Now with other.example"}},
		"a site": {e.share("shop", "example.com"), "", []string{"hhui.top", "demo", "other.example", "(events)", "signup"},
			[]string{"/secret", "A new version"}},
		"a site, in a frame": {e.share("shop", "example.com"), "?embed", []string{"hhui.top", "demo", "other.example", "(events)", "signup"},
			[]string{"/secret", "A new version"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen, files, all := map[string]bool{c.path + c.first: true}, 0, ""
			for next := []string{c.path + c.first}; len(next) > 0 && len(seen) < 1000; next = next[1:] {
				a := e.get(next[0])
				require.Equal(t, http.StatusOK, a.status, "%s: %s", next[0], a.body)
				assert.Empty(t, a.header.Values("Set-Cookie"))
				assert.Equal(t, "no-referrer", a.header.Get("Referrer-Policy"))
				assert.Equal(t, "noindex", a.header.Get("X-Robots-Tag"))
				assert.NotContains(t, a.body, "192.0.2.77")
				for _, never := range c.never {
					assert.NotContains(t, a.body, never, next[0])
				}
				if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
					files++
					continue
				}
				assert.Contains(t, a.body, `<meta name="robots" content="noindex">`)
				assert.NotContains(t, a.body, "/leave")
				all += a.body
				for _, found := range linked.FindAllStringSubmatch(a.body, -1) {
					to, _, _ := strings.Cut(html.UnescapeString(found[1]), "#")
					if to == "" || strings.HasPrefix(to, "/dash/style.css") || to == "/dash/icon.svg" || strings.HasPrefix(to, "/dash/dash.js") {
						continue
					}
					if c.first == "" && regexp.MustCompile(`^https://(example\.com|other\.example)(/|$)`).MatchString(to) {
						continue // the page itself
					}
					assert.Regexp(t, "^"+regexp.QuoteMeta(c.path)+"(/|[?]|$)", to, "on %s", next[0])
					stays := mustQuery(t, to).Has("embed") || strings.HasPrefix(found[0], "action=") && strings.Contains(a.body, `name="embed"`)
					assert.Equal(t, c.first != "", stays, "%s on %s", to, next[0])
					if !seen[to] && !strings.HasPrefix(found[0], "action=") { // a form sends more parameters
						seen[to] = true
						next = append(next, to)
					}
				}
			}
			for _, shown := range c.shown {
				assert.Contains(t, all, shown)
			}
			assert.Greater(t, files, 5)
		})
	}
}

// A link to a site shows neither the tags of visits to other sites, nor whether these visits had tags.
func TestSharedSitesKnowNoTagsOfOthers(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for i, uri := range []string{"http://one.example/?utm_campaign=spring", "http://two.example/?utm_campaign=takeover"} {
		require.Equal(t, http.StatusOK, e.get("/visit?"+url.Values{"app": {"demo"}, "ip": {fmt.Sprintf("192.0.2.%d", i)},
			"uri": {uri}}.Encode()).status)
	}
	one := e.share("demo", "one.example")
	for range 2 { // the second time soon after the visit
		for _, ask := range []string{"?range=today&where=campaign:", "?range=today&funnel&step=campaign:"} {
			assert.Equal(t, http.StatusOK, e.get(one+ask+"spring").status)
			hers, nobodys := e.get(one+ask+"takeover"), e.get(one+ask+"nonsense")
			assert.Contains(t, html.UnescapeString(hers.body), `o visitor ever had campaign "takeover": there are`)
			assert.Equal(t, nobodys.status, hers.status)
			assert.Equal(t, strings.ReplaceAll(nobodys.body, "nonsense", "x"), strings.ReplaceAll(hers.body, "takeover", "x"))
			assert.NotContains(t, nobodys.body, "takeover")
			assert.Contains(t, e.get("/dash/demo/two.example"+ask+"takeover").body, "takeover")
		}
		e.Close() // also adds up tags
	}
	assert.Contains(t, e.get(one+"?range=today&where=campaign:nonsense").body, "there are spring")
	assert.EqualValues(t, 1, e.One(t, `SELECT visitors FROM report.numbers_where('demo', '', 20190629, 20190629, '{campaign:takeover}')`))
}

// A caller without a working link cannot learn which links exist.
func TestSharedLinksThatShowNothingAnswerAlike(t *testing.T) {
	t.Parallel()
	e := newSharingEdge(t)
	all, site := e.share("shop", ""), e.share("shop", "example.com")
	revoked, gone := e.share("shop", ""), e.share("demo", "")
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		require.NoError(t, a.DeleteApp(ctx, "demo"))
		return a.RevokeShare(ctx, "shop", "https://count.example"+revoked+"/example.com")
	})
	require.Equal(t, http.StatusOK, e.get(all).status)
	nothing := e.get(revoked)
	require.Equal(t, http.StatusNotFound, nothing.status)
	nothing.header.Del("Date")
	for name, path := range map[string]string{
		"of an app that was deleted": gone, "cut": all[:len(all)-1], "longer": all + "A", "never made": "/share/abcdefgh_" +
			strings.Repeat("A", 43),
		"a name alone": all[:len("/share/12345678")], "another site": site + "/other.example", "its own site, once more": site + "/example.com",
		"no token": "/share/%20",
	} {
		a := e.get(path)
		a.header.Del("Date")
		assert.Equal(t, nothing, a, name)
	}
	assert.NotContains(t, nothing.body, `href="/"`)

	var last answer
	for range 11 { // 10 a minute
		last = e.get("/share/wrong")
	}
	assert.Equal(t, http.StatusTooManyRequests, last.status)
	assert.NotEmpty(t, last.header.Get("Retry-After"))
	assert.Equal(t, http.StatusTooManyRequests, e.get(revoked).status)
	assert.Equal(t, http.StatusOK, e.get(all).status, "another caller's wrong links do not affect a working one")

	most := "2"
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "shop", app.Settings{MaxRequests: &most})
	})
	statuses := []int{}
	for range 3 {
		statuses = append(statuses, e.get(site).status)
	}
	assert.Contains(t, statuses, http.StatusTooManyRequests)
	assert.Contains(t, statuses, http.StatusOK)

	later := noon.AddDate(20, 0, 0)
	e.Clock.Set(later)
	over := e.get(all)
	over.header.Del("Date")
	assert.Equal(t, nothing, over)
}

// After the command that revokes a link has returned, no instance shows anything by it.
func TestSharedLinksAreRevokedEverywhere(t *testing.T) {
	t.Parallel()
	e := newSharingEdge(t)
	other := e.another(t)
	for range 20 {
		path := e.share("shop", "")
		for _, at := range []*edge{e, other} {
			require.Equal(t, http.StatusOK, at.get(path).status)
		}
		e.administer(func(ctx context.Context, a *admin.Admin) error { return a.RevokeShare(ctx, "shop", path) })
		for _, at := range []*edge{e, other} {
			require.Contains(t, []int{http.StatusNotFound, http.StatusTooManyRequests}, at.get(path).status)
		}
	}
	var stored string
	path := e.share("shop", "")
	require.NoError(t, e.Conn(e.t).QueryRow(t.Context(), `SELECT string_agg(s::text, '') FROM footfall.shares AS s`).Scan(&stored))
	assert.NotContains(t, stored, path[len("/share/12345678_"):])
}

// A working link appears neither in the log nor in the metrics, whatever fails.
func TestSharedLinksAreNotLogged(t *testing.T) {
	t.Parallel()
	e := newSharingEdge(t)
	path := e.share("shop", "")
	secret := path[len("/share/12345678_"):]
	for _, more := range []string{"", "/example.com", "/example.com?range=x", "/a%20b", "/example.com/more", "?a;b",
		"/example.com?panel=x&format=csv"} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, "FORGED"} {
			a := e.ask(method, path+more)
			if a.status != http.StatusOK {
				assert.Equal(t, strings.Count(a.body, secret), strings.Count(a.body, `href="`+path+`"`), "%s %s: but to the beginning: %s", method,
					more, a.body)
			}
		}
	}
	conn := e.Conn(e.t)
	_, err := conn.Exec(t.Context(), `ALTER TABLE footfall.counters RENAME TO away`)
	require.NoError(t, err)
	a := e.get(path + "/example.com")
	assert.Equal(t, http.StatusServiceUnavailable, a.status)
	metrics := e.do(http.MethodGet, e.admin+"/metrics", "", "").body
	e.close()
	assert.Contains(t, metrics, `route="/share/:token"`)
	assert.NotContains(t, metrics, secret)
	assert.Contains(t, e.log.String(), "/share/:token/:site", "the error is logged")
	assert.NotContains(t, e.log.String(), secret)
	assert.NotContains(t, e.log.String(), path[len("/share/"):])
}

func ancestors(a answer) string {
	_, named, _ := strings.Cut(a.header.Get("Content-Security-Policy"), "frame-ancestors ")
	return named
}

func TestSharedPagesInFrames(t *testing.T) {
	t.Parallel()
	w := newInternet(newSharingEdge(t))
	path, open, app := w.share("shop", "example.com"), w.share("demo", ""), w.share("shop", "")
	assert.Equal(t, "'none'", ancestors(w.get(path)))
	assert.Equal(t, "*.example.com example.com example.com:81", ancestors(w.get(app+"?embed")))
	assert.Equal(t, "*.example.com example.com example.com:81", ancestors(w.get(app+"/other.example?embed")), "a link to the app")
	assert.Equal(t, "example.com", ancestors(w.get(path+"?embed")), "of the other sites it tells nothing")
	assert.Equal(t, strings.TrimSuffix(web.Policy, "'none'"), strings.TrimSuffix(w.get(path+"?embed").header.Get("Content-Security-Policy"),
		ancestors(w.get(path+"?embed"))))
	assert.Equal(t, "example.com", ancestors(w.get(path+"?embed&range=x")), "an error is a page")
	assert.Equal(t, "hhui.top", ancestors(w.get(w.share("demo", "hhui.top")+"?embed")), "a site of an app that lists none")
	assert.Equal(t, "'none'", ancestors(w.get(open+"?embed")), "an app without sites")
	assert.Equal(t, "'none'", ancestors(w.get(path+"x?embed")))
	assert.Equal(t, "'none'", ancestors(w.get("/dash/demo?embed")))

	frame := `<iframe src="` + w.public + path + `?embed"></iframe><iframe src="` + w.public + path + `"></iframe>`
	for _, host := range []string{"example.com", "www.example.com", "evil.example", "example.com.evil.example"} {
		w.pages[host+"/"] = frame
	}
	b := w.drive(t)
	for host, shown := range map[string][]string{
		"example.com": {path + "?embed"}, "www.example.com": {}, "evil.example": {}, "example.com.evil.example": {},
	} {
		b.open("http://" + host + "/")
		var targets struct {
			TargetInfos []struct{ TargetID, Type string }
		}
		b.do("Target.getTargets", nil, &targets)
		frames, page := []string{}, b.session
		for _, target := range targets.TargetInfos {
			if target.Type != "iframe" {
				continue
			}
			var attached struct{ SessionID string }
			b.do("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
			b.session = attached.SessionID
			var at string // for a refused page Chromium shows its own error
			if b.ask(`location.href`, &at); strings.HasPrefix(at, w.public) {
				frames = append(frames, strings.TrimPrefix(at, w.public))
			}
			b.session = page
		}
		assert.Equal(t, shown, frames, host)
	}
}
