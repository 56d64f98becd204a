package handler

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/desk"
)

// enters sends a name and a password.
func (p *person) enters(name, password string, headers ...string) answer {
	p.t.Helper()
	return p.do(http.MethodPost, "/enter", url.Values{"name": {name}, "password": {password}}, headers...)
}

// Sessions can be ended, and each belongs to one account.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	ann, bob := e.member("Ann", "shop"), e.member("Bob", "demo")
	session := ann.cookies[sessionCookie]
	may := func(session string) int {
		return (&person{e, map[string]string{sessionCookie: session}}).get("/dash/shop").status
	}
	require.Equal(t, http.StatusOK, may(session))
	assert.Equal(t, http.StatusForbidden, may(session[:len(session)-2]))
	assert.Equal(t, http.StatusForbidden, may(""))
	assert.Equal(t, http.StatusForbidden, may(bob.cookies[sessionCookie]), "one who may look at another app")
	assert.NotContains(t, bob.get("/dash/shop").body, "password", "who is signed in already")

	// Fixation: a cookie from before signing in is worthless afterwards.
	fixed := &person{e, map[string]string{sessionCookie: "chosen-by-another"}}
	require.Equal(t, http.StatusSeeOther, fixed.enters("Ann", desk.Password).status)
	assert.NotEqual(t, "chosen-by-another", fixed.cookies[sessionCookie])
	assert.Equal(t, http.StatusForbidden, may("chosen-by-another"))
	again := newPerson(e)
	require.Equal(t, http.StatusSeeOther, again.enters("Ann", desk.Password).status)
	assert.NotEqual(t, fixed.cookies[sessionCookie], again.cookies[sessionCookie])

	assert.Contains(t, ann.get("/dash/shop").body, "/leave")
	require.Equal(t, http.StatusSeeOther, ann.do(http.MethodPost, "/leave", url.Values{}).status)
	assert.NotContains(t, ann.cookies, sessionCookie)
	assert.Equal(t, http.StatusForbidden, may(session), "not only the cookie is gone")
	assert.Equal(t, http.StatusOK, may(again.cookies[sessionCookie]), "another browser stays")

	assert.Zero(t, e.One(t, `SELECT count(*) FROM account_sessions WHERE hash IN ($1, $2)`, secretOf(t, again.cookies[sessionCookie]),
		[]byte(again.cookies[sessionCookie])), "nobody who reads the tables is signed in by that")
	e.Exec(t, `UPDATE account_sessions SET created_at = now() - interval '30 days'`)
	assert.Equal(t, http.StatusForbidden, may(again.cookies[sessionCookie]))
	e.SignIn(t, "Cem", account.Rights{})
	assert.EqualValues(t, 1, e.One(t, `SELECT count(*) FROM account_sessions`), "expired sessions are deleted")
}

// secretOf decodes the secret in a token.
func secretOf(t *testing.T, token string) []byte {
	t.Helper()
	secret, err := base64.RawURLEncoding.DecodeString(token)
	require.NoError(t, err)
	return secret
}

// A form of another site's page is refused, whatever cookies the browser sends with it.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	ann := e.member("Ann", "shop")
	form := url.Values{"name": {"Ann"}, "password": {desk.Password}}
	olga := &person{e, map[string]string{sessionCookie: e.SignIn(t, desk.Owner, account.Rights{})}}
	all := account.Open(e.DB)
	entry, err := all.Find(t.Context(), "Ann")
	require.NoError(t, err)
	link, err := all.NewLink(t.Context(), entry.ID)
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, ann.get("/start/"+link).status)
	for path, form := range map[string]url.Values{"/enter": form, "/leave": form, "/begin": form,
		"/new": {"host": {"evil.example"}, "zone": {"UTC"}, "visitor": {"hashed"}}, "/new/shop": {"host": {"evil.example"}}} {
		who := ann
		if strings.HasPrefix(path, "/new") {
			who = olga
		}
		for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"},
			{"Origin", "null"}, {"Origin", strings.Replace(e.public, "127.0.0.1", "localhost", 1)}} {
			a := who.do(http.MethodPost, path, form, headers...)
			assert.Equal(t, http.StatusForbidden, a.status, "%s %v", path, headers)
			assert.Contains(t, a.body, "page of another site")
			assert.Empty(t, a.header.Get("Set-Cookie"))
		}
	}
	assert.Equal(t, http.StatusOK, ann.get("/dash/shop").status)
	for _, headers := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Origin", e.public}} {
		assert.Equal(t, http.StatusSeeOther, newPerson(e).do(http.MethodPost, "/enter", form, headers...).status)
	}
	assert.Equal(t, http.StatusBadRequest, ann.do(http.MethodPost, "/enter", url.Values{"name": {strings.Repeat("k", 20<<10)}}).status,
		"too large")
	assert.Equal(t, http.StatusForbidden, newPerson(e).do(http.MethodPost, "/enter?name=Ann&password="+url.QueryEscape(desk.Password),
		url.Values{}).status, "an address is no form")
}

// An address cannot redirect to another site after signing in.
func TestSigningInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"//evil.example", "https://evil.example/dash/shop", `/\evil.example`, "javascript:alert(1)",
		"/\t/evil.example",
		"evil.example", "", "\\\\evil.example", "/\n/evil.example", "http:/dash", "/%zz"} {
		assert.Equal(t, "/", ownPath(to), to)
	}
	for _, to := range []string{"/dash/shop?range=7d", "/embed?app=shop", "/", "/dash/shop/a%20b"} {
		assert.Equal(t, to, ownPath(to))
	}
}

// Guessing is stopped by address and by name, without revealing whether a guess was right.
func TestGuessingIsStopped(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	proxies, faults := NewProxies([]string{"127.0.0.0/8"}, "")
	require.Empty(t, faults)
	e.options.Proxies, e.options.Metrics = proxies, nil
	e.public = listen(t, publicHandler(e.options), e.options.Log)
	e.SignIn(t, "Ann", desk.Looks("shop"))
	p := newPerson(e)
	from := func(address string) []string { return []string{"X-Forwarded-For", address} }
	for range 10 {
		require.Equal(t, http.StatusForbidden, p.enters("nobody", "wrong wrong", from("192.0.2.1")...).status)
	}
	for _, password := range []string{"wrong wrong", desk.Password} {
		a := p.enters("Ann", password, from("192.0.2.1")...)
		assert.Equal(t, http.StatusTooManyRequests, a.status)
		assert.Equal(t, "6", a.header.Get("Retry-After"))
		assert.Contains(t, a.body, "try again in 6 s")
		assert.Equal(t, "text/html; charset=utf-8", a.header.Get("Content-Type"))
	}
	for i := range 10 { // one network counts as one address
		require.Equal(t, http.StatusForbidden, p.enters("another", "wrong wrong", from("2001:db8::"+string(rune('a'+i%6)))...).status)
	}
	assert.Equal(t, http.StatusTooManyRequests, p.enters("Ann", desk.Password, from("2001:db8::ffff")...).status)
	for i := range 20 { // from different addresses, and with different spellings
		require.Equal(t, http.StatusForbidden, p.enters([]string{"Bea", "BEA", " bea"}[i%3], "wrong wrong",
			from("198.51.100."+string(rune('1'+i%9)))...).status)
	}
	assert.Equal(t, http.StatusTooManyRequests, p.enters("bea", "wrong wrong", from("203.0.113.77")...).status)
	assert.Equal(t, http.StatusSeeOther, p.enters("Ann", desk.Password, from("203.0.113.78")...).status, "others are not disturbed")

	// Wrong links, which an image on any page can request, are slowed down, and lock out no user with a password.
	wrong := func(path string) int { return p.do(http.MethodGet, path, nil, from("203.0.113.79")...).status }
	for range 12 {
		require.Equal(t, http.StatusNotFound, wrong("/begin"))
	}
	for range 10 {
		require.Equal(t, http.StatusNotFound, wrong("/start/wrong"))
	}
	assert.Equal(t, http.StatusTooManyRequests, wrong("/start/wrong"))
	assert.Equal(t, http.StatusSeeOther, p.enters("Ann", desk.Password, from("203.0.113.79")...).status)
}

// The header of a proxy counts only if the proxy is trusted.
func TestSignedInByAProxy(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	trusted, faults := NewProxies([]string{"127.0.0.0/8"}, "")
	require.Empty(t, faults)
	through := func(proxies *Proxies) *person {
		options := e.options
		options.Proxies, options.SignInHeader, options.Metrics = proxies, "Remote-User", nil
		return newPerson(&edge{t: t, Desk: e.Desk, public: listen(t, publicHandler(options), options.Log)})
	}
	p, direct := through(trusted), through(nil)
	look := func(p *person, headers ...string) answer { return p.do(http.MethodGet, "/dash/shop", nil, headers...) }
	assert.Equal(t, http.StatusForbidden, look(p, "Remote-User", "Ann").status)
	assert.Zero(t, e.One(t, `SELECT count(*) FROM accounts`), "only its link creates the first account")
	owner := e.SignIn(t, desk.Owner, account.Rights{})

	a := look(p, "Remote-User", "Ann")
	assert.Equal(t, http.StatusForbidden, a.status)
	assert.Contains(t, a.body, "The account Ann may not see this page")
	assert.EqualValues(t, 2, e.One(t, `SELECT count(*) FROM accounts`), "one without apps")
	e.Exec(t, `INSERT INTO account_apps (account_id, app_id) SELECT a.id, p.id FROM accounts AS a, apps AS p
		WHERE a.name = 'Ann' AND p.name = 'shop'`)
	a = look(p, "Remote-User", "aNN")
	assert.Equal(t, http.StatusOK, a.status)
	assert.NotContains(t, a.body, "/leave", "the proxy lets in")
	assert.Equal(t, http.StatusOK, p.do(http.MethodGet, "/api/apps/shop/sites", nil, "Remote-User", "Ann").status)
	assert.Equal(t, http.StatusForbidden, look(p).status, "it says nobody")
	assert.Equal(t, http.StatusForbidden, look(direct, "Remote-User", "Ann").status, "no proxy says so")
	assert.Equal(t, http.StatusBadRequest, look(p, "Remote-User", "Ann\u202e").status)
	assert.Equal(t, http.StatusForbidden, look(p, "X-Remote-User", "Ann").status)
	p.cookies[sessionCookie] = owner
	assert.Equal(t, http.StatusForbidden, look(p, "Remote-User", "Bob").status, "not whom the cookie is of")
	assert.Equal(t, http.StatusOK, look(p).status)
	assert.Equal(t, http.StatusForbidden, p.enters("Ann", desk.Password).status, "there is no password")

	request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	request.RemoteAddr = "127.0.0.1:1"
	request.Header["Remote-User"] = []string{"Olga", "Ann"}
	assert.Empty(t, trusted.signedInUser(request, "Remote-User"), "two lines are not both the proxy's")
	for _, header := range []string{"Cookie", "X-Forwarded-For", "a b", "Host"} {
		assert.Error(t, CheckSignInHeader(header, []string{"10.0.0.1"}), header)
	}
	assert.Error(t, CheckSignInHeader("Remote-User", nil))
	single, faults := NewProxies([]string{"10.0.0.1", "2001:db8::1"}, "")
	require.Empty(t, faults)
	assert.Equal(t, []bool{true, false}, []bool{trusted.TrustNetworks(), single.TrustNetworks()}, "serve warns of these")
	assert.NoError(t, CheckSignInHeader("Remote-User", []string{"10.0.0.1"}))
}

// A link works once, for anyone who has it, and its secret is in no address after the first.
func TestLinksToAccounts(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	all := account.Open(e.DB)
	start, err := all.NewStart(t.Context())
	require.NoError(t, err)
	other, err := all.NewStart(t.Context())
	require.NoError(t, err)

	follow := func(token string) *person {
		p := newPerson(e)
		a := p.get("/start/" + token)
		require.Equal(t, http.StatusSeeOther, a.status, a.body)
		assert.Equal(t, "/begin", a.header.Get("Location"))
		assert.Equal(t, "no-referrer", a.header.Get("Referrer-Policy"))
		page := p.get("/begin")
		assert.Equal(t, http.StatusOK, page.status)
		assert.NotContains(t, page.body, token)
		assert.Equal(t, "no-store", page.header.Get("Cache-Control"))
		return p
	}
	choose := func(p *person, name, password string) answer {
		return p.do(http.MethodPost, "/begin", url.Values{"name": {name}, "password": {password}})
	}
	p, late := follow(start), follow(other)
	for _, wrong := range [][3]string{{"", desk.Password, "It is missing"}, {"Olga", "short", "fewer than 10"},
		{"Olga", "qwertyuiop", "most common passwords"}, {"Olga", "QWERTYuiop", "most common passwords"}, {"olga olga olga", "Olga olga olga",
			"is your name"},
		{"Olga\u202e", desk.Password, "invisible characters"}, {"Olga\x00", desk.Password, "invisible characters"}, {"Оlga", desk.Password,
			"several scripts"},
		{"12345", desk.Password, "no letter"}, {strings.Repeat("o", 101), desk.Password, "longer than"}} {
		a := choose(p, wrong[0], wrong[1])
		assert.Equal(t, http.StatusBadRequest, a.status)
		assert.Contains(t, a.body, wrong[2])
		assert.NotContains(t, a.body, wrong[1]+`"`, "the password is typed again")
	}
	assert.Zero(t, e.One(t, `SELECT count(*) FROM accounts`))
	require.Equal(t, http.StatusSeeOther, choose(p, "Olga", desk.Password).status)
	assert.Equal(t, http.StatusOK, p.get("/dash/shop").status, "an owner sees all")
	assert.NotContains(t, p.cookies, linkCookie)
	for _, q := range []*person{late, p} {
		assert.Equal(t, http.StatusNotFound, choose(q, "Eve", desk.Password).status, "all links to the first account have ended")
	}
	assert.Equal(t, http.StatusNotFound, newPerson(e).get("/start/"+other).status)
	assert.Equal(t, http.StatusNotFound, newPerson(e).get("/start/wrong").status)

	_, invited, err := all.Add(t.Context(), "", desk.Looks("shop"))
	require.NoError(t, err)
	member := follow(invited)
	assert.Contains(t, choose(member, "OLGA", desk.Password).body, "another account")
	require.Equal(t, http.StatusSeeOther, choose(member, "Ann", desk.Password).status)
	assert.Equal(t, http.StatusOK, member.get("/dash/shop").status)
	assert.Equal(t, http.StatusNotFound, newPerson(e).get("/start/"+invited).status)

	// A user who has forgotten the password gets a link. The sessions end, and the name stays.
	ann, err := all.Find(t.Context(), "ann")
	require.NoError(t, err)
	forgot, err := all.NewLink(t.Context(), ann.ID)
	require.NoError(t, err)
	replaced, err := all.NewLink(t.Context(), ann.ID)
	require.NoError(t, err)
	assert.Equal(t, http.StatusNotFound, newPerson(e).get("/start/"+forgot).status)
	assert.Equal(t, http.StatusOK, member.get("/dash/shop").status, "up to then all is as it was")
	again := follow(replaced)
	require.Equal(t, http.StatusSeeOther, choose(again, "Mallory", "eight trombones").status)
	assert.Equal(t, http.StatusForbidden, member.get("/dash/shop").status)
	assert.Equal(t, http.StatusForbidden, newPerson(e).enters("Ann", desk.Password).status)
	assert.Equal(t, http.StatusSeeOther, newPerson(e).enters("Ann", "eight trombones").status)

	over, err := all.NewLink(t.Context(), ann.ID)
	require.NoError(t, err)
	e.Exec(t, `UPDATE account_links SET created_at = now() - interval '7 days'`)
	assert.Equal(t, http.StatusNotFound, newPerson(e).get("/start/"+over).status)
	e.Close()
	for _, secret := range []string{start, other, invited, forgot, replaced, over, desk.Password} {
		assert.NotContains(t, e.log.String(), secret)
		if secret != desk.Password {
			assert.Zero(t, e.One(t, `SELECT count(*) FROM account_links WHERE hash IN ($1, $2)`, secretOf(t, secret), []byte(secret)))
		}
	}
}
