package counter_test

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/record"
	"footfall/visit"
	"footfall/visit/tag"
)

func ptr[T any](v T) *T { return &v }

// shop adds an app that counts shop.example.
func (in *instance) shop(t *testing.T, s app.Settings) {
	t.Helper()
	if s.Sites == nil {
		s.Sites = []string{"shop.example"}
	}
	if s.PublicCounts == nil && (s.Access == nil || *s.Access == "sites") {
		s.PublicCounts = ptr(app.PublicAnswers)
	}
	require.NoError(t, in.Admin.AddApp(t.Context(), "shop", s))
}

// stranger returns a visit of a browser to the app shop, from its own address.
func stranger(from, path string) counter.Request {
	return counter.Request{App: "shop", Peer: netip.MustParseAddr(from), Agent: browser, URI: "https://shop.example" + path}
}

// kindOf visits and returns the kind of the error, or 0 if the visit was answered.
func (in *instance) kindOf(t *testing.T, r counter.Request) visit.Kind {
	t.Helper()
	_, err := in.Visit(t.Context(), r)
	if err == nil {
		return 0
	}
	var verr *visit.Error
	require.ErrorAs(t, err, &verr)
	return verr.Kind
}

// TestKeys covers the format of keys, the time of last use and refused commands. The rest is in handler/attacks.
func TestKeys(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{})
	ctx := t.Context()

	key, err := in.Admin.AddKey(ctx, "shop", []app.Scope{app.ScopeAssert})
	require.NoError(t, err)
	require.Regexp(t, `^footfall_[a-z2-9]{8}_[A-Za-z0-9_-]{43}$`, key)
	next, err := in.Admin.AddKey(ctx, "shop", []app.Scope{app.ScopeRead, app.ScopeCount, app.ScopeRead})
	require.NoError(t, err)
	require.Zero(t, in.kindOf(t, counter.Request{App: "shop", IP: "198.51.100.1", URI: "https://shop.example/", Key: key}))
	in.Close() // also writes when each key was last used
	keys, err := in.Admin.Keys(ctx, "shop")
	require.NoError(t, err)
	require.Len(t, keys, 2)
	require.Equal(t, key[:17], keys[0].Name)
	require.Equal(t, []string{"assert"}, keys[0].Scopes)
	require.NotNil(t, keys[0].UsedAt)
	require.Nil(t, keys[0].RevokedAt)

	require.NoError(t, in.Admin.RevokeKey(ctx, "shop", key), "by all of it, as somebody has it who found it")
	require.ErrorContains(t, in.Admin.RevokeKey(ctx, "shop", key[:17]), "has no key")
	require.ErrorContains(t, in.Admin.RevokeKey(ctx, "demo", next[:17]), "app demo has no key")
	keys, err = in.Admin.Keys(ctx, "shop")
	require.NoError(t, err)
	require.NotNil(t, keys[0].RevokedAt)

	_, err = in.Admin.AddKey(ctx, "shop", nil)
	require.ErrorContains(t, err, "scope: it is missing")
	_, err = in.Admin.AddKey(ctx, "shop", []app.Scope{"everything"})
	require.ErrorContains(t, err, `scope: "everything" is not a scope`)
	_, err = in.Admin.AddKey(ctx, "nobody", []app.Scope{app.ScopeRead})
	require.ErrorContains(t, err, `there is no app "nobody"`)
}

// An open app trusts every caller, and counts every site unless it lists some.
func TestOpenAccess(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{Access: ptr("open")})
	r := counter.Request{App: "shop", Peer: peer, Agent: browser, URI: "http://elsewhere.example/", Origin: "https://third.example"}
	assert.Equal(t, visit.Forbidden, in.kindOf(t, r), "only shop.example is listed")
	r.URI, r.IP = "http://shop.example/", "198.51.100.1"
	assert.Zero(t, in.kindOf(t, r), "from any page, for any visitor")
	a, err := in.Counts(t.Context(), r)
	require.NoError(t, err, "any caller may ask about any visitor")
	require.Equal(t, "1 1 1 1 | 1 1 1 1", row(a))
	assert.False(t, in.AllowsOrigin(t.Context(), "shop", "https://third.example"))
	require.NoError(t, in.Admin.SetApp(t.Context(), "shop", app.Settings{Sites: []string{}}))
	r.URI = "http://elsewhere.example/"
	assert.Zero(t, in.kindOf(t, r), "any site where none is listed")
	require.ErrorContains(t, in.Admin.SetApp(t.Context(), "shop", app.Settings{Access: ptr("sites")}), "would count nothing")
	require.ErrorContains(t, in.Admin.SetApp(t.Context(), "shop", app.Settings{Access: ptr("closed")}), "access: ")
}

func TestSites(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{Sites: []string{"Shop.example", "*.shop.example", "*.wild.example:8080", "BÜCHER.example", "localhost:3000"}})
	for uri, counts := range map[string]bool{ // more valid and invalid sites are in handler/attacks
		"https://a.shop.example/": true, "http://a.b.shop.example/": true, "http://a.wild.example:8080/": true, "http://a.wild.example/": false,
		"http://xn--bcher-kva.example/": true, "http://localhost:3000/": true, "http://localhost/": false,
	} {
		r := stranger("192.0.2.1", "/")
		r.URI = uri
		kind := in.kindOf(t, r)
		if counts {
			assert.Zero(t, kind, uri)
		} else {
			assert.NotZero(t, kind, uri)
		}
	}
	for _, site := range []string{"*.com", "*.", "*", "a.*.example", "*.1.2.3.4", "*.example.com/", "*.*.example.com", "**.example.com",
		"*.:80", "*.a@b.example", "*.[::1]"} {
		err := in.Admin.SetApp(t.Context(), "shop", app.Settings{Sites: []string{site}})
		assert.ErrorContains(t, err, "site: ", site)
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{Sites: []string{"shop.example", "*.shop.example", "[2001:db8::1]:8080"}})
	for origin, allowed := range map[string]bool{ // more invalid origins are in handler/attacks
		"https://shop.example": true, "https://a.shop.example": true, "http://[2001:db8::1]:8080": true,
		"https://evil.example": false, "null": false, "https://evilshop.example": false, "https://": false, "https://shop .example": false,
	} {
		assert.Equal(t, allowed, in.AllowsOrigin(t.Context(), "shop", origin), origin)
		assert.Equal(t, allowed || siteShaped(origin), in.AllowsOrigin(t.Context(), "demo", origin), "an open app: %s", origin)
		r := stranger("192.0.2.1", "/")
		r.Origin = origin
		assert.Equal(t, map[bool]visit.Kind{true: 0, false: visit.Forbidden}[allowed], in.kindOf(t, r), origin)
	}
	assert.False(t, in.AllowsOrigin(t.Context(), "nobody", "https://shop.example"))
	assert.True(t, in.AllowsOrigin(t.Context(), "", "https://shop.example"))
}

// siteShaped reports whether an origin could be a site's.
func siteShaped(origin string) bool {
	return regexp.MustCompile(`^https?://[a-z0-9.:\[\]-]+$`).MatchString(origin)
}

// A caller who may not see the numbers causes no query for them.
func TestHiddenNumbersAreNotRead(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{PublicCounts: ptr("off")})
	r := stranger("192.0.2.1", "/")
	require.Zero(t, in.kindOf(t, r))
	tx, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE counters, pages`)
	require.NoError(t, err)
	r.Agent = "Googlebot/2.1"
	ctx, cancel := context.WithTimeout(t.Context(), dbtest.Patience)
	defer cancel()
	a, err := in.Visit(ctx, r)
	require.NoError(t, err)
	assert.Equal(t, visit.Answer{Skipped: visit.SkippedBot, Untold: true}, a)
	require.NoError(t, tx.Commit(t.Context()))
}

// Browsers behind one address are separate visitors, distinguished by the names of browser and system. A caller who
// asserts an address also passes the agent.
func TestVisitorsByBrowser(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	ctx := t.Context()
	in.shop(t, app.Settings{Visitor: ptr("browser"), Ignore: []string{"192.0.2.66"}})
	_, err := in.Tables().Exec(ctx, `INSERT INTO batches (id, schema_version) VALUES (gen_random_uuid(), 2)`)
	require.ErrorContains(t, err, "batches_by_this_version", "of an instance that would take them for one visitor")
	other := both.startOn(t, in.URL, counter.Options{})
	key, err := in.Admin.AddKey(ctx, "shop", []app.Scope{app.ScopeAssert, app.ScopeRead})
	require.NoError(t, err)
	const (
		firefox = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"
		newer   = "Mozilla/5.0 (Windows NT 11.0; Win64; x64; rv:141.0) Gecko/20100101 Firefox/141.0"
		onLinux = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
		chrome  = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
	)
	for i, c := range []struct{ agent, brands, numbers string }{
		{firefox, "", "1 1 1 1 | 1 1 1 1"}, {newer, "", "1 1 1 2 | 1 1 1 2"}, {onLinux, "", "2 2 2 3 | 2 2 2 3"},
		{chrome, "", "3 3 3 4 | 3 3 3 4"}, {chrome, `"Brave";v="140"`, "4 4 4 5 | 4 4 4 5"}, {firefox, "", "4 4 1 6 | 4 4 1 6"},
	} {
		r := counter.Request{App: "shop", URI: "http://shop.example/", Peer: peer, Agent: c.agent, Hints: tag.Hints{Brands: c.brands}}
		a, err := []*instance{in, other}[i%2].Visit(ctx, r)
		require.NoError(t, err)
		assert.Equal(t, c.numbers, row(a), c.agent)
	}
	asserted := counter.Request{App: "shop", URI: "http://shop.example/", Key: key, IP: peer.String(), Browser: onLinux, Agent: "curl/8"}
	a, err := other.Visit(ctx, asserted)
	require.NoError(t, err)
	assert.Equal(t, "4 4 2 7 | 4 4 2 7", row(a), "asserted by a backend")
	a, err = in.Counts(ctx, asserted)
	require.NoError(t, err)
	assert.Equal(t, "4 4 2 7 | 4 4 2 7", row(a))
	for agent, why := range map[string]visit.Skipped{"Googlebot/2.1": visit.SkippedBot, onLinux: visit.SkippedIgnored} {
		asserted := asserted
		asserted.Browser = agent
		if why == visit.SkippedIgnored {
			asserted.IP = "192.0.2.66"
		}
		a, err = in.Visit(ctx, asserted)
		require.NoError(t, err)
		assert.Equal(t, why, a.Skipped)
	}
	asserted.Browser = ""
	for _, ask := range []func(context.Context, counter.Request) (visit.Answer, error){in.Visit, in.Counts} {
		_, err = ask(ctx, asserted)
		require.ErrorContains(t, err, "agent: it is missing: app shop distinguishes visitors by address and browser")
	}
	many, err := in.AuthorizeCounting(ctx, counter.Request{App: "shop", Key: key})
	require.NoError(t, err)
	_, _, err = many.Visit(ctx, counter.Item{URI: "http://shop.example/", IP: peer.String()})
	require.ErrorContains(t, err, "agent: it is missing")
	v, _, err := many.Visit(ctx, counter.Item{URI: "http://shop.example/", IP: peer.String(), Agent: newer})
	require.NoError(t, err)
	assert.Equal(t, []int64{1}, dbtest.Column[int64](t, in.Tables(), fmt.Sprintf(
		`SELECT v.rank FROM visitors v JOIN pages p ON p.id = v.page_id AND p.site_id IS NULL WHERE v.ip = '%s'`, v.Visitor)))

	// An address selects the visitors of all browsers behind it.
	found, err := in.Admin.ShowVisitor(ctx, "shop", peer.String())
	require.NoError(t, err)
	assert.Len(t, found.Targets, 8)
	erased, err := in.Admin.EraseVisitor(ctx, "shop", peer.String())
	require.NoError(t, err)
	assert.EqualValues(t, 8, erased.Targets)
	assert.Empty(t, in.Table(t, `SELECT ip FROM visitors`))
	in.Check(t)
}

func TestVisitorModesRefuse(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	ctx := t.Context()
	in.shop(t, app.Settings{Visitor: ptr("id")})
	require.NoError(t, in.Admin.AddApp(ctx, "ids", app.Settings{Access: ptr("open"), Visitor: ptr("id")}))
	for _, c := range []struct {
		r    counter.Request
		kind visit.Kind
		says string
	}{
		{counter.Request{App: "demo", Visitor: "anna"}, visit.Invalid, "visitor: app demo distinguishes visitors by address: give ip instead"},
		{counter.Request{App: "ids", Peer: peer}, visit.Invalid, "visitor: it is missing"},
		{counter.Request{App: "ids", Visitor: strings.Repeat("a", 257)}, visit.Invalid, "visitor: it is longer than 256 bytes"},
		{counter.Request{App: "ids", Visitor: "a\x00"}, visit.Invalid, "visitor: it has control characters"},
		{counter.Request{App: "ids", Visitor: "\xff"}, visit.Invalid, "visitor: it is not valid UTF-8"},
		{counter.Request{App: "ids", Visitor: "anna", IP: "x"}, visit.Invalid, "ip: "},
		{counter.Request{App: "shop", Visitor: "anna"}, visit.Forbidden, "visitor: app shop accepts it only with a key"},
		{counter.Request{App: "shop", Browser: "Mozilla/5.0"}, visit.Forbidden, "agent: app shop accepts it only with a key"},
	} {
		c.r.URI = "http://shop.example/"
		_, err := in.Visit(ctx, c.r)
		var verr *visit.Error
		if assert.ErrorAs(t, err, &verr, c.says) {
			assert.Equal(t, c.kind, verr.Kind, c.says)
			assert.Contains(t, verr.Message(), c.says)
		}
	}
	assert.Empty(t, in.Table(t, `SELECT uri FROM pages`))

	// The visitor mode is fixed after the first visit, and needs a secret.
	_, err := in.Visit(ctx, counter.Request{App: "ids", Visitor: "anna", URI: "http://shop.example/"})
	require.NoError(t, err)
	require.ErrorContains(t, in.Admin.SetApp(ctx, "ids", app.Settings{Visitor: ptr("hashed")}),
		"visitor: app ids has distinguished visitors by id")
	require.NoError(t, in.Admin.SetApp(ctx, "shop", app.Settings{Visitor: ptr("address")}))
	require.ErrorContains(t, admin.NewAdmin(in.DB, nil).SetApp(ctx, "shop", app.Settings{Visitor: ptr("daily")}), "hashed with a secret")
	require.ErrorContains(t, in.Admin.SetApp(ctx, "shop", app.Settings{Visitor: ptr("cookie")}), `visitor: "cookie" is not a way`)
}

// An instance with another secret would count every visitor as new, so it refuses to count for such apps.
func TestAnotherSecret(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	require.NoError(t, in.Admin.AddApp(t.Context(), "hashed", app.Settings{Access: ptr("open"), Visitor: ptr("hashed")}))
	r := counter.Request{App: "hashed", IP: "192.0.2.1", URI: "http://a.example/"}
	require.Zero(t, in.kindOf(t, r))
	for _, another := range []app.Secret{nil, app.Secret("another one, just as long, is not it")} {
		d := dbtest.Open(t, in.URL, db.Options{})
		other, err := counter.Open(t.Context(), d, counter.Options{Options: record.Options{Clock: in.Clock.Now, MaxWait: time.Minute},
			Secret: another})
		require.NoError(t, err)
		_, err = other.Visit(t.Context(), r)
		require.ErrorContains(t, err, "--secret-file")
		var verr *visit.Error
		require.ErrorAs(t, err, &verr)
		require.Equal(t, visit.Unavailable, verr.Kind)
		require.NotContains(t, verr.Message(), "secret", "that is for the operator's log")
		r := r
		r.App = "demo"
		_, err = other.Visit(t.Context(), r)
		require.NoError(t, err, "others count")
		_, err = admin.NewAdmin(d, another).EraseVisitor(t.Context(), "hashed", "192.0.2.1")
		require.ErrorContains(t, err, "secret")
		other.Close()
	}
}

// Without the day's key, the address no longer leads to that day's visitor.
func TestDayKeysAreForgotten(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	require.NoError(t, in.Admin.AddApp(t.Context(), "daily", app.Settings{Access: ptr("open"), Visitor: ptr("daily")}))
	r := counter.Request{App: "daily", IP: "192.0.2.1", URI: "http://a.example/"}
	require.Zero(t, in.kindOf(t, r))
	require.Equal(t, []string{"20260629\n"}, in.Table(t, `SELECT day_id FROM day_keys ORDER BY 1 LIMIT 1`))
	later := desk.At(desk.Noon)
	later.Set(in.Clock.Now().AddDate(0, 0, 3))
	other := keepsUp(t, in.URL, counter.Options{Options: record.Options{Clock: later.Now}})
	require.Eventually(t, func() bool { return len(in.Table(t, `SELECT day_id FROM day_keys WHERE day_id <= 20260629`)) == 0 },
		dbtest.Patience, dbtest.Tick)
	prints, err := other.Admin.ShowVisitor(t.Context(), "daily", "192.0.2.1")
	require.NoError(t, err)
	require.Empty(t, prints.Targets)
}

func TestSkipped(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{Ignore: []string{"198.51.100.0/24", "2001:DB8:1::/48", "192.0.2.99", "::ffff:192.0.2.98", "from:Spam.example",
		"from:спам.рф"}, RespectDNT: ptr(true)})
	require.NoError(t, in.Admin.AddApp(t.Context(), "ids", app.Settings{Access: ptr("open"), Visitor: ptr("id"),
		Ignore: []string{"me", "id:192.0.2.1", "10.0.0.0/8"}, Bots: ptr("skip")}))
	require.Zero(t, in.kindOf(t, stranger("192.0.2.1", "/")))
	with := func(change func(*counter.Request)) counter.Request {
		r := stranger("192.0.2.1", "/")
		change(&r)
		return r
	}
	keyed := func(agent string, scope app.Scope) counter.Request {
		key, err := in.Admin.AddKey(t.Context(), "shop", []app.Scope{scope})
		require.NoError(t, err)
		return with(func(r *counter.Request) { r.Key, r.Agent = key, agent })
	}
	from := func(page string) counter.Request {
		return with(func(r *counter.Request) { r.Referrer = page })
	}
	id := func(id, ip, agent string) counter.Request {
		return counter.Request{App: "ids", Visitor: id, IP: ip, Agent: agent, URI: "http://a.example/"}
	}
	for name, c := range map[string]struct {
		r   counter.Request
		why visit.Skipped
	}{
		"a person":                             {stranger("192.0.2.1", "/"), ""},
		"a prefetch":                           {with(func(r *counter.Request) { r.Prefetch = true }), visit.SkippedPrefetch},
		"a visitor who asks not to be tracked": {with(func(r *counter.Request) { r.DoNotTrack = true }), visit.SkippedDNT},
		"nobody's agent":                       {with(func(r *counter.Request) { r.Agent = "" }), visit.SkippedBot},
		"a crawler": {with(func(r *counter.Request) { r.Agent = "Googlebot/2.1 (+http://www.google.com/bot.html)" }),
			visit.SkippedBot},
		"nobody's agent, from a caller who may say who came": {keyed("", app.ScopeAssert), ""},
		"nobody's agent, from one who may count":             {keyed("", app.ScopeCount), visit.SkippedBot},
		"a crawler asserted by a caller with a key":          {keyed("Googlebot/2.1", app.ScopeAssert), visit.SkippedBot},
		"an ignored network":                                 {stranger("198.51.100.77", "/"), visit.SkippedIgnored},
		"an ignored IPv6 network":                            {stranger("2001:db8:1:2::3", "/"), visit.SkippedIgnored},
		"beside it":                                          {stranger("2001:db8:2::3", "/"), ""},
		"an ignored address":                                 {stranger("192.0.2.99", "/"), visit.SkippedIgnored},
		"one written as IPv6":                                {stranger("192.0.2.98", "/"), visit.SkippedIgnored},
		"from an ignored host":                               {from("http://spam.example/free?offer"), visit.SkippedIgnored},
		"from below it":                                      {from("https://a.WWW.spam.example:8443"), visit.SkippedIgnored},
		"from one that utm_source names": {with(func(r *counter.Request) { r.URI += "?utm_source=WWW.spam.example" }),
			visit.SkippedIgnored},
		"or ref, as an address, beside a page": {
			with(func(r *counter.Request) { r.URI, r.Referrer = r.URI+"?ref=https://spam.example/x", "https://t.co/" }), visit.SkippedIgnored},
		"a utm_source that is no host": {with(func(r *counter.Request) { r.URI += "?utm_source=spam" }), ""},
		"from far below it": {from("https://" + strings.Repeat("a.", 60) + "spam.example/"),
			visit.SkippedIgnored},
		"from a host of another script":              {from("https://спам.рф/"), visit.SkippedIgnored},
		"from one that ends alike":                   {from("https://notspam.example/spam.example"), ""},
		"from one above":                             {from("https://example/"), ""},
		"an ignored id":                              {id("me", "", browser), visit.SkippedIgnored},
		"one that looks like a number":               {id("192.0.2.1", "", browser), visit.SkippedIgnored},
		"an id from ignored addresses":               {id("anna", "10.1.2.3", browser), visit.SkippedIgnored},
		"another id":                                 {id("anna", "", browser), ""},
		"a bot that is asserted, where the app asks": {id("anna", "", "Googlebot/2.1"), visit.SkippedBot},
	} {
		before := in.Table(t, `SELECT * FROM counters ORDER BY page_id`)
		a, err := in.Visit(t.Context(), c.r)
		if !assert.NoError(t, err, name) {
			continue
		}
		assert.Equal(t, c.why, a.Skipped, name)
		if c.why != "" {
			assert.Equal(t, before, in.Table(t, `SELECT * FROM counters ORDER BY page_id`), name)
			counts, err := in.Counts(t.Context(), counter.Request{App: c.r.App, HasNoVisitor: true, Peer: c.r.Peer, URI: c.r.URI})
			assert.NoError(t, err)
			assert.Equal(t, counts.Site.Hot, a.Site.Hot, name)
		}
	}
	a, err := in.Visit(t.Context(), with(func(r *counter.Request) { r.Prefetch = true }))
	require.NoError(t, err)
	require.Equal(t, int64(1), a.Page.Rank, "the visitor still gets their rank")

	many, err := in.AuthorizeOperator(t.Context(), "shop")
	require.NoError(t, err)
	_, why, err := many.Visit(t.Context(), counter.Item{URI: "https://shop.example/", IP: "192.0.2.1", Referrer: "https://spam.example/"})
	require.NoError(t, err)
	require.Equal(t, visit.SkippedIgnored, why, "also of many, as calls, queues and logs have them")

	open := counter.Request{App: "demo", Peer: peer, URI: "http://a.example/", DoNotTrack: true}
	a, err = in.Visit(t.Context(), open)
	require.NoError(t, err)
	require.Empty(t, a.Skipped, "an open app asks nothing of the kind")
	for _, wrong := range []string{"", "192.0.2.1/24", "::ffff:192.0.2.0/120", "192.0.2.0/33", "a\nb", "fe80::1%eth0/64", "from:", "from:com",
		"from:a b.example", "from:http://spam.example", "from:spam.example/x", "from:192.0.2.1", "from:me@spam.example", "from:*.spam.example"} {
		require.ErrorContains(t, in.Admin.SetApp(t.Context(), "shop", app.Settings{Ignore: []string{wrong}}), "ignore: ", wrong)
	}
}

// TestRequestLimit covers the limit of a key, and values that are not a limit. The rest is in handler/attacks.
func TestRequestLimit(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{MaxRequests: ptr("5")})
	many := func(pages int) error {
		fresh := counter.Request{App: "shop", HasNoVisitor: true, Peer: netip.MustParseAddr("192.0.2.77")}
		_, _, err := in.CountsForPages(t.Context(), fresh, slices.Repeat([]string{"http://shop.example/"}, pages))
		return err
	}
	require.NoError(t, many(99))
	var verr *visit.Error
	require.ErrorAs(t, many(25), &verr, "as many as their pages cost")
	require.Equal(t, visit.TooMany, verr.Kind)
	require.NoError(t, many(1))
	key, err := in.Admin.AddKey(t.Context(), "shop", []app.Scope{app.ScopeRead})
	require.NoError(t, err)
	ask := func() error {
		_, err := in.Counts(t.Context(), counter.Request{App: "shop", HasNoVisitor: true, Peer: peer, URI: "http://shop.example/", Key: key})
		return err
	}
	for range 5 {
		require.NoError(t, ask())
	}
	require.ErrorAs(t, ask(), &verr, "those of a key, too, since the app has set it")
	require.Equal(t, visit.TooMany, verr.Kind)
	elsewhere := stranger(peer.String(), "/")
	elsewhere.URI = "http://other.example/"
	assert.Equal(t, visit.Forbidden, in.kindOf(t, elsewhere), "the site is looked at before the rate")
	require.NoError(t, in.Admin.SetApp(t.Context(), "shop", app.Settings{MaxRequests: ptr("default")}))
	for range 700 {
		require.NoError(t, ask())
	}
	for _, wrong := range []string{"", "-1", "many", "1e3", "99999999999"} {
		err := in.Admin.SetApp(t.Context(), "shop", app.Settings{MaxRequests: &wrong, MaxNewPages: &wrong})
		for _, field := range []string{"max-requests: ", "max-new-pages: "} {
			assert.ErrorContains(t, err, field, wrong)
		}
	}
}

func TestNewPageLimit(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	other := both.startOn(t, in.URL, counter.Options{})
	in.shop(t, app.Settings{Sites: []string{"*.shop.example"}, MaxNewPages: ptr("4")})
	visitTo := func(at *instance, site, path string) string {
		t.Helper()
		r := stranger("192.0.2.1", "/")
		r.URI = "https://" + site + ".shop.example" + path
		a, err := at.Visit(t.Context(), r)
		require.NoError(t, err)
		return row(a)
	}
	assert.Equal(t, "1 1 1 1 | 1 1 1 1", visitTo(in, "a", "/1")) // a page and a site
	assert.Equal(t, "1 1 1 2 | 1 1 1 1", visitTo(other, "a", "/2"))
	assert.Equal(t, "1 1 1 3 | 1 1 1 1", visitTo(in, "a", "/3"))
	assert.Equal(t, "1 1 1 4 | 1 1 1 1", visitTo(in, "a", "/4"), "which is the page (other)")
	assert.Equal(t, "1 1 1 5 | 1 1 1 2", visitTo(other, "a", "/5"))
	assert.Equal(t, "1 1 1 6 | 1 1 1 2", visitTo(other, "a", "/1"), "what was there before")
	assert.Equal(t, "1 1 1 1 | 1 1 1 1", visitTo(other, "b", "/1"), "which is the site (other)")
	assert.Equal(t, "1 1 1 2 | 1 1 1 2", visitTo(in, "c", "/1"))
	assert.Equal(t, float64(2), in.Metric(t, "footfall_visits_other_total"))
	for _, at := range []*instance{in, other} {
		at.Clock.Set(at.Clock.Now().AddDate(0, 0, 1))
	}
	assert.Equal(t, "2 1 1 7 | 1 1 1 1", visitTo(in, "a", "/4"), "a new day")
	assert.Equal(t, "1 1 1 1 | 1 1 1 1", visitTo(other, "b", "/1"))
	assert.Equal(t, "2 1 1 8 | 1 1 1 1", visitTo(other, "a", "/6"))
	assert.Equal(t, "2 1 1 9 | 2 1 1 3", visitTo(in, "a", "/7"), "the limit of this day")
	require.NoError(t, in.Admin.SetApp(t.Context(), "shop", app.Settings{MaxNewPages: ptr("0")}))
	assert.Equal(t, "2 1 1 10 | 1 1 1 1", visitTo(other, "a", "/7"), "any number")
	in.Check(t)
	require.Equal(t, []string{"a.shop.example 10\n", "a.shop.example/(other) 3\n", "(other) 2\n", "(other)/(other) 2\n"},
		in.Table(t, `SELECT uri, hot FROM counters JOIN pages ON id = page_id WHERE uri LIKE '%(other)' OR uri = 'a.shop.example' ORDER BY id`))
	require.Equal(t, []string{"5\n"}, in.Table(t, `SELECT today FROM page_tallies`))
}

// A name that leads to a cell has no app here: requests are refused with the cell's name, until the name no longer leads to a
// cell.
func TestNamesLeadToCells(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	ctx := t.Context()
	claim := func(name, cell string) (leads string) {
		require.NoError(t, in.DB.InTx(ctx, func(q *db.Queries) (err error) {
			leads, err = q.NameClaim(ctx, name, cell)
			return err
		}))
		require.NoError(t, in.DB.WaitForInstances(ctx, dbtest.Patience))
		return leads
	}
	assert.Empty(t, claim("demo", "blogs"), "an app that is here")
	assert.Equal(t, "blogs", claim("shop", "blogs"))
	assert.Equal(t, "blogs", claim("shop", "other"), "who comes second")

	says := "app shop is in the cell blogs"
	_, err := in.Visit(ctx, stranger("192.0.2.1", "/"))
	require.ErrorContains(t, err, says)
	assert.Equal(t, visit.Unavailable, in.kindOf(t, stranger("192.0.2.1", "/")))
	_, err = in.AuthorizeOperator(ctx, "shop")
	require.ErrorContains(t, err, says)
	_, err = in.Admin.AddKey(ctx, "shop", []app.Scope{app.ScopeRead})
	require.ErrorContains(t, err, says)
	_, err = in.Admin.AppNamed(ctx, "shop")
	require.ErrorContains(t, err, says)
	_, err = in.Admin.App(ctx, "shop", "")
	require.ErrorContains(t, err, says)
	require.ErrorContains(t, in.Admin.AddApp(ctx, "shop", app.Settings{}), "there is an app shop already")
	apps, err := in.Admin.Apps(ctx)
	require.NoError(t, err)
	assert.Len(t, apps, 1)

	lead := func(from, to string) (led bool) {
		require.NoError(t, in.DB.InTx(ctx, func(q *db.Queries) (err error) {
			led, err = q.NameLead(ctx, db.NameLeadParams{Name: "shop", FromCell: from, ToCell: to})
			return err
		}))
		return led
	}
	letGo := func(name, cell string, seconds float64) {
		require.NoError(t, in.DB.InTx(ctx, func(q *db.Queries) error {
			return q.NameLetGo(ctx, db.NameLetGoParams{Name: name, Cell: cell, Seconds: seconds})
		}))
	}
	assert.False(t, lead("other", "third"))
	assert.True(t, lead("blogs", "third"))
	letGo("shop", "third", 60)
	assert.Equal(t, "third", claim("shop", "blogs"), "who was led there just now")
	letGo("shop", "blogs", 0)
	letGo("demo", "", 0)
	assert.Equal(t, "third", claim("shop", "blogs"))
	letGo("shop", "third", 0)
	assert.Equal(t, "blogs", claim("shop", "blogs"))
	assert.Zero(t, in.kindOf(t, counter.Request{App: "demo", IP: "198.51.100.1", URI: "https://shop.example/"}))
}

// A skipped visit keeps its reason if the current numbers that its caller requested cannot be read.
func TestSkippedWithoutCurrentNumbers(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	r := counter.Request{App: "demo", IP: "192.0.2.1", URI: page, Prefetch: true, Extra: counter.ExtraNumbers{Today: true, Here: true}}
	a, err := in.Visit(t.Context(), r)
	require.NoError(t, err)
	require.False(t, a.NoNumbers)
	in.Exec(t, `ALTER TABLE here RENAME TO elsewhere`)
	a, err = in.Visit(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, visit.Answer{NoNumbers: true, Skipped: visit.SkippedPrefetch}, a)
	in.Exec(t, `ALTER TABLE elsewhere RENAME TO here`)
	in.Check(t)
}
