package handler

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/admin"
	"footfall/counter/app"
)

// An account that may change one app cannot take over another app's pages by listing their hosts.
func TestHostsOfOtherApps(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.AddApp(ctx, "bbb", app.Settings{Sites: []string{"b1.example", "*.b2.example", "x.b3.example:81"}, PublicCounts: ptr("answers")})
	})
	key, max := e.newKey("shop", app.ScopeAdmin), e.changes("Max", "shop")
	both := &person{e, map[string]string{sessionCookie: e.SignIn(t, "Bea",
		account.Rights{Apps: map[string]account.Right{"shop": account.Change, "bbb": account.Change}})}}
	sites := func() string { return e.texts(`SELECT sites::text FROM apps WHERE name = 'shop'`)[0] }
	for _, host := range []string{"b1.example", "B1.example", "*.b2.example", "y.b2.example", "*.y.b2.example", "*.b3.example:81"} {
		for what, a := range map[string]answer{
			"a key, one":    e.manage("POST", "/api/apps/shop/hosts", key, `{"site":"`+host+`"}`),
			"a key, all":    e.manage("PATCH", "/api/apps/shop", key, `{"sites":["example.com","`+host+`"]}`),
			"a form, one":   max.sends("/settings/shop", "do", "add", "of", "hosts", "site", host),
			"a form, all":   max.sends("/settings/shop", "do", "set", "of", "counting", "site", "example.com\n"+host, "was.site", "example.com"),
			"the first run": max.sends("/new/shop", "host", host),
		} {
			assert.Contains(t, []int{400, 403}, a.status, "%s: %s", what, host)
			assert.Contains(t, a.body, "is listed by another app", "%s: %s", what, host)
			assert.NotContains(t, a.body, "bbb", "%s: %s", what, host)
		}
	}
	assert.Equal(t, "{example.com}", sites())
	for _, host := range []string{"b3.example", "x.b3.example", "*.other.example"} { // no app lists these
		assert.Equal(t, 201, e.manage("POST", "/api/apps/shop/hosts", key, `{"site":"`+host+`"}`).status, host)
	}
	assert.Equal(t, 303, both.sends("/settings/shop", "do", "add", "of", "hosts", "site", "b1.example").status, "who may change both")
	assert.Equal(t, 200, e.ask(http.MethodGet, "/busuanzi?url=http://b1.example/").status, "it is counted all the same")
	assert.Equal(t, 200, e.manage("DELETE", "/api/apps/shop/hosts/b1.example", key, "").status)
	assert.Equal(t, 201, e.manage("POST", "/api/apps/shop/hosts", e.newKey("", app.ScopeAdmin), `{"site":"*.b2.example"}`).status)
	assert.Equal(t, 303, max.sends("/settings/shop", "do", "add", "of", "hosts", "site", "own.example").status, "what is listed twice stays")
}

// Entries that cannot be a host are refused, and existing ones stay unchanged.
func TestTextsThatAreNoHosts(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	max := e.changes("Max", "shop")
	for _, wrong := range []string{"'self'", "x.example;sandbox", "a,b.example", `"x"`, "a..b", "(x)", "$x", "*.a..b", "*.$x.example"} {
		a := max.sends("/settings/shop", "do", "add", "of", "hosts", "site", wrong)
		assert.Equal(t, 400, a.status, wrong)
		assert.Contains(t, a.body, "is not a site", wrong)
	}
	e.Exec(t, `UPDATE apps SET sites = '{example.com,$x.example}' WHERE name = 'shop'`)
	assert.Equal(t, 303, max.sends("/settings/shop", "do", "add", "of", "hosts", "site", "new.example:8080").status)
	assert.Equal(t, []string{"{example.com,$x.example,new.example:8080}"}, e.texts(`SELECT sites::text FROM apps WHERE name = 'shop'`))
}

// A test call reveals nothing about the service's own network, and each app makes only one at a time.
func TestTestCallsShowNoNetwork(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	arrived, release := make(chan bool, 9), make(chan bool)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- true; <-release }))
	defer hook.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(hook.URL, "http://"))
	require.NoError(t, err)
	owner, max := e.owner(), e.changes("Max", "shop")
	for _, url := range []string{"http://localhost:" + port, "http://no-such-name.invalid/"} {
		assert.Equal(t, 200, max.sends("/settings/shop", "do", "add", "of", "webhooks", "url", url, "site", "example.com").status)
	}
	for _, one := range []string{"1", "2"} {
		a := max.sends("/settings/shop", "do", "test", "of", "webhooks", "one", one)
		assert.Contains(t, a.body, "The test call was not accepted: its host cannot be reached, or is not public.")
		assert.NotRegexp(t, `dial|lookup|127\.0\.0\.1|\[::1\]`, a.body)
	}
	owner.sends("/settings/shop", "do", "add", "of", "webhooks", "url", hook.URL, "site", "example.com", "private", "true")
	first := make(chan answer)
	go func() { first <- owner.sends("/settings/shop", "do", "test", "of", "webhooks", "one", "3") }()
	select {
	case <-arrived:
	case <-t.Context().Done():
	}
	for _, one := range []string{"1", "3"} {
		assert.Equal(t, 429, max.sends("/settings/shop", "do", "test", "of", "webhooks", "one", one).status)
	}
	close(release)
	assert.Contains(t, (<-first).body, "The test call was accepted (200).")
	assert.Contains(t, max.sends("/settings/shop", "do", "test", "of", "webhooks", "one", "1").body, "not accepted", "the next one")
	e.close()
	assert.Regexp(t, `(?s)not a public address.*lookup no-such-name.invalid`, e.log.String(), "the log has the details")
}
