package handler

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/desk"
)

// guarded returns an edge behind a trusted proxy, which names the client in each request.
func guarded(t *testing.T) (e *edge, from func(address string) []string) {
	t.Helper()
	e = newEdge(t)
	proxies, faults := NewProxies([]string{"127.0.0.0/8"}, "")
	require.Empty(t, faults)
	e.options.Proxies, e.options.Metrics = proxies, nil
	e.options.Accounts = e.options.Accounts.SignDevices([]byte("a key"))
	e.public = listen(t, publicHandler(e.options), e.options.Log)
	return e, func(address string) []string { return []string{"X-Forwarded-For", address} }
}

// attackName sends wrong passwords for a name until strangers have no try left.
func (e *edge) attackName(name string, from func(string) []string) {
	e.t.Helper()
	status := 0
	for i := range 21 {
		status = newPerson(e).enters(name, "wrong wrong", from(fmt.Sprintf("198.51.100.%d", i))...).status
	}
	require.Equal(e.t, 429, status)
}

// Strangers who guess an owner's password do not lock the owner out of a browser that has signed in before.
func TestKnownBrowsersSignInDuringAnAttack(t *testing.T) {
	t.Parallel()
	e, from := guarded(t)
	e.SignIn(t, "Ann", desk.Looks("shop"))
	e.SignIn(t, "Bob", desk.Looks("shop"))
	home, work, bobs := newPerson(e), newPerson(e), newPerson(e)
	require.Equal(t, 303, home.enters("Ann", desk.Password, from("192.0.2.1")...).status)
	require.Equal(t, 303, work.enters("Ann", desk.Password, from("192.0.2.2")...).status)
	require.Equal(t, 303, bobs.enters("Bob", desk.Password, from("192.0.2.3")...).status)
	for _, p := range []*person{home, work, bobs} {
		require.Equal(t, 303, p.do(http.MethodPost, "/leave", url.Values{}).status)
		require.Len(t, p.cookies, 1, "leaving forgets the session, and not the browser")
	}
	device := slices.Collect(maps.Keys(home.cookies))[0]
	e.attackName("Ann", from)

	alone := &person{e, map[string]string{device: home.cookies[device]}}
	assert.Equal(t, 403, alone.get("/dash/shop").status, "it signs nobody in")
	assert.Equal(t, 429, newPerson(e).enters("Ann", desk.Password, from("192.0.2.77")...).status, "a new browser waits")
	assert.Equal(t, 303, home.enters("aNN ", desk.Password, from("198.51.100.1")...).status, "also at an address that is refused")
	value := work.cookies[device]
	first, rest, _ := strings.Cut(value, ".")
	bobs.cookies[device] = slices.Collect(maps.Values(bobs.cookies))[0]
	for why, forged := range map[string]string{"another account's": bobs.cookies[device], "cut": value[:len(value)-1], "empty": ".",
		"no time": rest, "another time": "9" + first + "." + rest, "older": "1." + rest} {
		assert.Equal(t, 429, (&person{e, map[string]string{device: forged}}).enters("Ann", desk.Password, from("192.0.2.78")...).status, why)
	}

	// A known browser has a limit of its own.
	for i := range 11 {
		a := work.enters("Ann", "wrong wrong", from("192.0.2.2")...)
		assert.Equal(t, map[bool]int{true: 403, false: 429}[i < 10], a.status, "try %d", i)
	}
	assert.Equal(t, 303, home.enters("Ann", desk.Password, from("192.0.2.1")...).status)

	// A new password, here set by the owner during the attack, invalidates remembered browsers.
	old := home.cookies[device]
	changed := home.do(http.MethodPost, "/settings", url.Values{"do": {"password"}, "old": {desk.Password}, "password": {"eight trombones"}},
		from("192.0.2.1")...)
	require.Equal(t, 303, changed.status, changed.body)
	assert.NotEqual(t, old, home.cookies[device])
	e.attackName("Ann", func(string) []string { return from("203.0.113.99") }) // no try is left for the name
	assert.Equal(t, 429, (&person{e, map[string]string{device: old}}).enters("Ann", "eight trombones", from("192.0.2.79")...).status)
	assert.Equal(t, 303, home.enters("Ann", "eight trombones", from("192.0.2.1")...).status)
}

// A client with a /48 of IPv6 has 65,536 networks that count as one address each, but at most 100 tries a minute in
// total.
func TestTriesAreCountedByNetworkToo(t *testing.T) {
	t.Parallel()
	e, from := guarded(t)
	e.SignIn(t, "Ann", desk.Looks("shop"))
	for i := range 101 {
		status := newPerson(e).enters(fmt.Sprint("nobody", i), "wrong wrong", from(fmt.Sprintf("2001:db8:1:%x::1", i))...).status
		require.Equal(t, map[bool]int{true: 403, false: 429}[i < 100], status, "try %d", i)
	}
	assert.Equal(t, 429, newPerson(e).enters("Ann", desk.Password, from("2001:db8:1:ffff::1")...).status)
	assert.Equal(t, 303, newPerson(e).enters("Ann", desk.Password, from("2001:db8:2:ffff::1")...).status)
}

// A program that sends an old key does not prevent signing in from its address, and vice versa.
func TestWrongKeysKeepNobodyFromSigningIn(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.SignIn(t, "Ann", desk.Looks("shop"))
	for i := range 11 {
		assert.Equal(t, map[bool]int{true: 401, false: 429}[i < 10], e.manage("GET", "/api/apps/shop", "footfall_wrong", "").status)
	}
	assert.Equal(t, 303, newPerson(e).enters("Ann", desk.Password).status)
	for range 10 {
		newPerson(e).enters("Ann", "wrong wrong")
	}
	assert.Equal(t, 429, newPerson(e).enters("Ann", desk.Password).status)
	e.Clock.Set(e.Clock.Now().Add(6e9))
	assert.Equal(t, 401, e.manage("GET", "/api/apps/shop", "footfall_wrong", "").status)
}

// Cookies over https have name prefixes that restrict them to this host, and a browser that signed in with 0.2.0
// stays signed in.
func TestCookiesOverTLS(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.SignIn(t, "Ann", desk.Looks("shop"))
	trusted, faults := NewProxies([]string{"127.0.0.0/8"}, "")
	require.Empty(t, faults)
	for name, c := range map[string]struct {
		proxies                  *Proxies
		publicURL, proto, prefix string
	}{
		"a trusted proxy says https":    {trusted, "", "https", "__Host-"},
		"the first of two proxies does": {trusted, "", "https, http", "__Host-"},
		"only the second one does":      {trusted, "", "http,https", ""},
		"a trusted proxy says http":     {trusted, "", "http", ""},
		"nobody is trusted":             {nil, "", "https", ""},
		"the public URL says so":        {nil, "https://count.example", "", "__Host-"},
		"it has a path":                 {nil, "https://blog.example/numbers", "", "__Secure-"},
	} {
		options := Options{Proxies: c.proxies, PublicURL: c.publicURL, Dashboard: true, Cells: e.options.Cells, Accounts: account.Open(e.DB)}
		p := newPerson(&edge{t: t, Desk: e.Desk, public: listen(t, publicHandler(options), e.options.Log)})
		do := func(p *person, method, path string, form url.Values) answer {
			return p.do(method, path, form, "X-Forwarded-Proto", c.proto)
		}
		form := url.Values{"name": {"Ann"}, "password": {desk.Password}}
		a := do(p, http.MethodPost, "/enter", form)
		require.Equal(t, http.StatusSeeOther, a.status, name)
		set := strings.Join(a.header.Values("Set-Cookie"), "\n")
		assert.Equal(t, 2, strings.Count(set, c.prefix+"footfall_"), "%s: %s", name, set)
		assert.Equal(t, c.prefix != "", strings.Count(set, "; Secure") == 2, name)
		assert.Equal(t, c.prefix == "__Secure-", strings.Contains(set, "Path=/numbers/"), name)
		assert.Contains(t, set, "Max-Age=31536000")
		session := p.cookies[c.prefix+sessionCookie]
		assert.Equal(t, 200, do(p, http.MethodGet, "/dash/shop", nil).status, name)
		tossed := &person{p.edge, map[string]string{sessionCookie: session}}
		assert.Equal(t, map[bool]int{true: 200, false: 403}[c.prefix == ""], do(tossed, http.MethodGet, "/dash/shop", nil).status, name)

		// Signing in again ends the previous session.
		require.Equal(t, http.StatusSeeOther, do(p, http.MethodPost, "/enter", form).status, name)
		assert.Equal(t, 403, do(&person{p.edge, map[string]string{c.prefix + sessionCookie: session}}, http.MethodGet, "/dash/shop", nil).status,
			name)

		// A session as created by 0.2.0.
		_, link, err := account.Open(e.DB).Add(t.Context(), "", desk.Looks("shop")) // a token of the same length
		require.NoError(t, err)
		e.Exec(t, `INSERT INTO account_sessions (account_id, hash, browser)
			SELECT id, sha256(convert_to($1, 'UTF8')), 'a test' FROM accounts WHERE name = 'Ann'`, link)
		former := &person{p.edge, map[string]string{sessionCookie: link}}
		assert.Equal(t, 200, do(former, http.MethodGet, "/dash/shop", nil).status, name)
		require.Equal(t, http.StatusSeeOther, do(former, http.MethodPost, "/leave", url.Values{}).status)
		assert.Empty(t, former.cookies, name)
		assert.Equal(t, 403, do(&person{p.edge, map[string]string{sessionCookie: link}}, http.MethodGet, "/dash/shop", nil).status, name)

		set = do(newPerson(p.edge), http.MethodGet, "/start/"+link, nil).header.Get("Set-Cookie")
		assert.Contains(t, set, c.prefix+linkCookie+"="+link)
		assert.Contains(t, set, "; Max-Age=3600;")
	}
}
