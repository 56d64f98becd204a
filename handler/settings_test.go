package handler

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/web/words"
)

// changes returns a person who may change an app.
func (e *edge) changes(name, app string) *person {
	e.t.Helper()
	rights := account.Rights{Apps: map[string]account.Right{app: account.Change}}
	return &person{e, map[string]string{sessionCookie: e.SignIn(e.t, name, rights)}}
}

func (e *edge) owner() *person {
	e.t.Helper()
	return &person{e, map[string]string{sessionCookie: e.SignIn(e.t, desk.Owner, account.Rights{})}}
}

// sends sends a form: name, value, name, value …
func (p *person) sends(path string, form ...string) answer {
	p.t.Helper()
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		values.Add(form[i], form[i+1])
	}
	return p.do(http.MethodPost, path, values)
}

// helpOfShell returns the command line's help for its flags.
var helpOfShell = sync.OnceValue(func() map[string]string {
	help, name := map[string]string{}, ""
	text, _ := os.ReadFile("../cmd/footfall/help.txt")
	for line := range strings.Lines(string(text)) {
		if words := strings.TrimSpace(line); strings.HasPrefix(line, " ") {
			help[name] = strings.TrimSpace(help[name] + " " + words)
		} else if words != "" {
			name = words
		}
	}
	return help
})

// TestSettingsInChromium sets up an app by hand, with and without scripts, and checks each page, wide and on a phone,
// in light and dark mode. FOOTFALL_TEST_SHOTS names a folder for screenshots.
func TestSettingsInChromium(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.counting(0, "192.0.2.1", "http://hhui.top/home")
	w := newInternet(e)
	b, script := w.driveOwner(t), axe(t)
	e.SignIn(t, "Max", desk.Looks("shop"))
	looks := []struct {
		wide   int
		scheme string
	}{{1280, "light"}, {320, "dark"}}
	for _, look := range looks {
		b.look(look.wide, look.scheme)
		for name, path := range map[string]string{"service": "/settings", "app": "/settings/shop", "open": "/settings/demo",
			"account": "/settings?account=2", "new": "/new"} {
			b.open(dash + path)
			b.ask(`document.querySelectorAll('details').forEach(d => d.open = true)`, nil)
			assert.Regexp(t, "ettings|Your site", b.title())
			b.fits(script, look.wide)
			b.shot(name + "-" + look.scheme)
		}
	}
	fitsInEachLanguage(t, b, script, dash,
		[]string{"/settings", "/settings/shop", "/settings/demo", "/new", "/new/shop", "/settings?account=2", "/leave"})
	b.look(390, "light")
	for _, scripts := range []bool{false, true} {
		b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": !scripts}, nil)
		fill := func(form, name, value string) {
			b.ask(`document.querySelector('form:has([value="`+form+`"]) [name="`+name+`"]').value = `+"`"+value+"`", nil)
		}
		send := func(form string) {
			b.leads(func() { b.ask(`document.querySelector('form:has([value="`+form+`"])').requestSubmit()`, nil) })
		}
		says := func(text string) {
			t.Helper()
			var is string
			b.ask(`document.querySelector('main').innerText`, &is)
			assert.Contains(t, is, text)
		}
		days := map[bool]string{false: "60", true: "50"}[scripts]
		b.open(dash + "/settings/shop#limits") // an address with a folded section opens it
		var open bool
		b.ask(`document.querySelector('#limits').checkVisibility()`, &open)
		assert.True(t, open)
		b.open(dash + "/settings/shop")
		b.ask(`document.querySelector('#limits').checkVisibility() || !document.querySelector('#public').checkVisibility()`, &open)
		assert.False(t, open, "public numbers are at the top, and limits are folded")
		fill("kept", "retain-days", "x")
		send("kept")
		says(`"x" is not a number`)
		require.Eventually(t, func() (seen bool) {
			b.ask(`(at => at.top >= 0 && at.bottom <= innerHeight)(document.querySelector('.problem').getBoundingClientRect())`, &seen)
			return seen
		}, dbtest.Patience, dbtest.Tick, "a fault stands where nobody looks")
		b.shot("fault")
		fill("kept", "retain-days", days)
		send("kept")
		if scripts { // fewer days than before
			says("This cannot be undone")
			says("except the last 50 days will be deleted")
			b.shot("sure")
			send("yes")
		}
		says("Saved.")
		assert.Equal(t, days, e.texts(`SELECT retain_days::text FROM footfall.apps WHERE name = 'shop'`)[0])
	}
}

// TestSettingsOfAnApp makes every change of a page of settings, by its forms.
func TestSettingsOfAnApp(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.counting(0, "192.0.2.1", "http://hhui.top/home")
	max, page := e.changes("Max", "shop"), "/settings/shop"
	var last answer
	send := func(status int, form ...string) {
		t.Helper()
		last = max.sends(page, form...)
		require.Equal(t, status, last.status, last.body)
	}
	one := func(sql string) string { t.Helper(); return strings.Join(e.texts(sql), "; ") }

	// Errors are next to their fields, in the words of the command line, and the typed values stay.
	send(400, "do", "set", "of", "counting", "tz", "Mars", "was.tz", "UTC", "keep-query", " p \r\nq", "was.keep-query", "")
	assert.Regexp(t, `(?s)id="set-counting-tz"[^>]*value="Mars"[^>]*aria-invalid="true".*id="set-counting-tz-problem"[^>]*>&#34;Mars&#34; `+
		`is not a time zone`, last.body)
	assert.Contains(t, last.body, " p \r\nq</textarea>")
	assert.Regexp(t, `list="set-counting-tz-list".*<option value="Europe/Berlin">`, last.body)
	assert.Contains(t, last.body, "IANA time zone whose calendar days are counted")
	assert.NotContains(t, last.body, "the app demo has", "a note for the command line only")
	send(400, "do", "set", "of", "kept", "retain-days", "x", "was.retain-days", "35", "forget-days", "-", "was.forget-days", "0")
	assert.Regexp(t, `(?s)&#34;x&#34; is not a number.*&#34;-&#34; is not a number`, last.body)
	send(303, "do", "set", "of", "counting", "tz", "Europe/Berlin", "was.tz", "UTC", "keep-query", " p \r\nq", "was.keep-query", "", "ignore",
		"192.0.2.7", "was.ignore", "")
	assert.Contains(t, max.do(http.MethodGet, last.header.Get("Location"), nil, "Referer", e.public+page).body, "Saved.")
	assert.NotContains(t, max.get(page+"?done=deleted").body, "Deleted.", "for an address that was typed")
	assert.Equal(t, "Europe/Berlin {p,q} {192.0.2.7/32}",
		one(`SELECT tz || ' ' || keep_query::text || ' ' || ignore::text FROM apps WHERE name = 'shop'`))

	var hosts []string
	for i := range 10_000 {
		hosts = append(hosts, fmt.Sprintf("from:spam-%d.example", i))
	}
	many := strings.Join(hosts, "\r\n")
	send(303, "do", "set", "of", "counting", "ignore", many, "was.ignore", "192.0.2.7/32")
	send(303, "do", "set", "of", "counting", "ignore", many, "was.ignore", many, "bots", "skip", "was.bots", "default")
	assert.Equal(t, "10000 skip", one(`SELECT cardinality(ignore) || ' ' || bots FROM apps WHERE name = 'shop'`))

	// Settings changed by another user in the meantime stay.
	days := 20
	require.NoError(t, e.Admin.SetApp(t.Context(), "shop", app.Settings{ForgetDays: ptr(0), RetainDays: &days}))
	send(303, "do", "set", "of", "kept", "retain-days", "35", "was.retain-days", "35")
	send(303, "do", "set", "of", "goals", "goal", "event:signup", "was.goal", "")
	assert.Equal(t, "20 {event:signup}", one(`SELECT retain_days || ' ' || goals::text FROM apps WHERE name = 'shop'`))

	// Lists have one entry per line. Only tags may also be separated by commas, as on the command line.
	send(303, "do", "set", "of", "counting", "keep-query", "p,q", "was.keep-query", "p\nq")
	assert.Equal(t, `{"p,q"}`, one(`SELECT keep_query::text FROM apps WHERE name = 'shop'`))
	send(303, "do", "set", "of", "tags", "tags", "source, plan", "was.tags", "")
	assert.Equal(t, "{source,hour,plan}", one(`SELECT tags::text FROM apps WHERE name = 'shop'`))
	send(303, "do", "set", "of", "tags", "tags", " \n", "was.tags", "source, plan")
	assert.Equal(t, "{hour}", one(`SELECT tags::text FROM apps WHERE name = 'shop'`))
	send(303, "do", "set", "of", "tags", "tags", "source, plan", "was.tags", "hour")

	// Deleting data for ever needs a confirmation.
	send(200, "do", "set", "of", "kept", "titles", "off", "was.titles", "on")
	assert.Contains(t, last.body, "The titles of its pages will be deleted.")
	send(303, "do", "set", "of", "kept", "titles", "off", "was.titles", "on", "sure", "yes")
	assert.Equal(t, "false", one(`SELECT titles::text FROM apps WHERE name = 'shop'`))
	send(200, "do", "set", "of", "kept", "retain-days", "7", "was.retain-days", "20")
	assert.Contains(t, last.body, "except the last 7 days will be deleted")
	assert.Equal(t, "20", one(`SELECT retain_days::text FROM apps WHERE name = 'shop'`))
	send(303, "do", "set", "of", "kept", "retain-days", "7", "was.retain-days", "20", "sure", "yes")
	assert.Equal(t, "7", one(`SELECT retain_days::text FROM apps WHERE name = 'shop'`))

	send(303, "do", "add", "of", "hosts", "site", "two.example")
	send(400, "do", "remove", "of", "hosts", "one", "three.example")
	send(303, "do", "remove", "of", "hosts", "one", "two.example")
	send(400, "do", "add", "of", "keys")
	send(400, "do", "add", "of", "keys", "scope", "admin")
	assert.Contains(t, last.body, "only owners and keys for all apps can set admin")
	send(200, "do", "add", "of", "keys", "scope", "read", "scope", "count")
	key := regexp.MustCompile(`footfall_(\w|-)+`).FindString(last.body)
	assert.Contains(t, last.body, "This is shown only once")
	assert.NotContains(t, max.get(page).body, key)
	assert.Equal(t, 200, e.manage("GET", "/api/apps/shop/sites", key, "").status)
	send(200, "do", "remove", "of", "keys", "one", key[:17])
	assert.Contains(t, last.body, "will be refused")
	send(303, "do", "remove", "of", "keys", "one", key[:17], "sure", "yes")
	assert.Equal(t, 401, e.manage("GET", "/api/apps/shop/sites", key, "").status)
	send(200, "do", "add", "of", "links", "until", "2030-01-01")
	link := regexp.MustCompile(e.public + `/share/(\w|-)+`).FindString(last.body)
	assert.Equal(t, 200, newPerson(e).get(strings.TrimPrefix(link, e.public)).status)
	send(400, "do", "add", "of", "notes", "day", "2026-11-22", "text", "a\u202eb")
	send(303, "do", "add", "of", "notes", "day", "2026-11-22", "text", "<b>A version</b>")
	assert.Contains(t, max.get(page).body, "&lt;b&gt;A version&lt;/b&gt;")
	send(303, "do", "remove", "of", "notes", "one", "1")
	day := regexp.MustCompile(`href="(/settings/demo\?day=2019-06-29&amp;site=hhui.top)#notes"`)
	assert.Regexp(t, day, e.owner().get("/dash/demo/hhui.top?from=2019-06-29&to=2019-06-29").body)
	assert.NotRegexp(t, day, max.get("/dash/demo/hhui.top?from=2019-06-29&to=2019-06-29").body, "who may not change it")
	assert.Contains(t, e.owner().get("/settings/demo?day=2019-06-29&site=hhui.top").body, `name="day" value="2019-06-29"`)
	send(303, "do", "add", "of", "offsets", "uri", "example.com/a", "hot", "3", "uv", "2")
	send(303, "do", "remove", "of", "offsets", "one", "example.com/a")
	hook := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"test":true`) || r.Header.Get("Webhook-Signature") == "" {
			out.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer hook.Close()
	send(400, "do", "add", "of", "webhooks", "url", hook.URL, "site", "example.com")
	assert.Contains(t, last.body, "is not a public address")
	assert.NotContains(t, last.body, `name="private"`)
	send(400, "do", "add", "of", "webhooks", "url", hook.URL, "site", "example.com", "private", "true")
	assert.Contains(t, last.body, "only owners and keys for all apps can set true")
	assert.Contains(t, e.owner().get(page).body, `name="private"`)
	last = e.owner().sends(page, "do", "add", "of", "webhooks", "url", hook.URL, "site", "example.com", "private", "true")
	assert.Contains(t, last.body, "whsec_")
	send(200, "do", "test", "of", "webhooks", "one", "1")
	assert.Contains(t, last.body, "The test call was accepted (200).")

	// A visitor, a page, the app: of demo, which has counts.
	page, max = "/settings/demo", e.owner()
	send(200, "do", "show", "visitor", "192.0.2.1")
	assert.Contains(t, last.body, "hhui.top/home")
	send(200, "do", "erase", "visitor", "192.0.2.1")
	send(303, "do", "erase", "visitor", "192.0.2.1", "sure", "yes")
	send(200, "do", "show", "visitor", "192.0.2.1")
	assert.Contains(t, last.body, "Nothing.")
	send(400, "do", "delete page", "uri", "hhui.top/never")
	assert.Contains(t, last.body, "has no page")
	send(200, "do", "delete page", "uri", "hhui.top/home")
	assert.Contains(t, last.body, "hot 1, pv 1, uv 1")
	send(303, "do", "delete page", "uri", "hhui.top/home", "sure", "yes")
	send(400, "do", "set", "of", "visitors", "visitor", "daily", "was.visitor", "address", "sure", "yes")
	send(200, "do", "set", "of", "visitors", "visitor", "hashed", "was.visitor", "address")
	assert.Contains(t, last.body, "addresses will be replaced by hashes")
	e.hashesWhereNobodyWaits(page, max)
	send(200, "do", "delete", "sure", "yes", "word", "shop")
	assert.Contains(t, last.body, "This is not demo")
	send(303, "do", "delete", "sure", "yes", "word", "demo")
	assert.Equal(t, "shop", one(`SELECT name FROM apps`))
	assert.Empty(t, one(`SELECT id::text FROM changes WHERE changes::text LIKE '%192.0.2%' OR changes::text LIKE '%whsec%' OR
		changes::text LIKE '%`+key[20:]+`%' OR changes::text LIKE '%`+link[len(link)-20:]+`%'`))
	e.close()
	for _, secret := range []string{key[20:], link[len(link)-20:], "192.0.2.1", "whsec"} {
		assert.NotContains(t, e.log.String(), secret)
	}
}

// hashesWhereNobodyWaits has a browser, or its proxy, disconnect before addresses are hashed: the hashing continues
// to its end, and the page shows this in the meantime.
func (e *edge) hashesWhereNobodyWaits(page string, who *person) {
	const hashing = "are being hashed. Until that is done, visits get the status 503."
	release := e.hold(`SELECT FROM footfall.epochs WHERE name = 'erasures' FOR UPDATE`)
	ctx, leave := context.WithCancel(context.Background())
	form := url.Values{"do": {"set"}, "of": {"visitors"}, "visitor": {"hashed"}, "was.visitor": {"address"}, "sure": {"yes"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.public+page, strings.NewReader(form.Encode()))
	require.NoError(e.t, err)
	r.Header.Set("Cookie", who.cookie())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	left := make(chan error, 1)
	go func() {
		response, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			_ = response.Body.Close()
		}
		left <- err
	}()
	e.blocked(1)
	assert.Contains(e.t, who.get(page).body, hashing)
	assert.Contains(e.t, who.do(http.MethodGet, page, nil, "Accept-Language", "de").body, "werden gerade gehasht")
	leave()
	require.ErrorIs(e.t, <-left, context.Canceled)
	release()
	require.Eventually(e.t, func() bool {
		body := who.get(page).body
		return strings.Contains(body, `value="hashed" checked>`) && !strings.Contains(body, hashing)
	}, dbtest.Patience, dbtest.Tick)
}

// TestSettingsOfTheService changes accounts, keys for all apps, and a user's own password.
func TestSettingsOfTheService(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	olga, page := e.owner(), "/settings"
	var last answer
	send := func(status int, form ...string) {
		t.Helper()
		last = olga.sends(page, form...)
		require.Equal(t, status, last.status, last.body)
	}
	assert.Contains(t, olga.get(page).body, `href="/new"`)
	require.NoError(t, e.Admin.AddApp(t.Context(), "docs", app.Settings{Sites: []string{"docs.example"}}))
	send(400, "do", "invite", "name", "Max", "app.nobody", "look")
	assert.Contains(t, last.body, "there is no app")
	send(400, "do", "invite", "name", "Max", "app.docs", "none", "was.app.docs", "none", "app.shop", "none", "was.app.shop", "none")
	assert.Contains(t, last.body, "sees nothing: choose an app below, or make it an owner")
	assert.NotContains(t, olga.get(page).body, "Max")
	send(200, "do", "invite", "name", "Max", "app.docs", "look", "was.app.docs", "none", "app.shop", "change", "was.app.shop", "none")
	link := regexp.MustCompile(e.public + `/start/(\w|-)+`).FindString(last.body)
	max := newPerson(e)
	require.Equal(t, 303, max.get(strings.TrimPrefix(link, e.public)).status)
	require.Equal(t, 303, max.sends("/begin", "name", "Max", "password", "eleven trombones").status)
	assert.Equal(t, []int{200, 200, 403, 403}, []int{max.get("/settings").status, max.get("/settings/shop").status,
		max.get("/settings/docs").status, max.get("/settings/demo").status})
	assert.NotRegexp(t, `Accounts|href="/new"`, max.get("/settings").body)
	assert.Contains(t, max.get("/settings").body, `id="apps"`)
	assert.NotContains(t, e.member("Lena", "shop").get("/settings").body, `id="apps"`, "who may change none")
	one := e.texts(`SELECT id::text FROM accounts WHERE name = 'Max'`)[0]
	assert.Contains(t, olga.get("/settings?account="+one).body, "Permissions of Max")
	assert.Regexp(t, `(?s)id="people".*account=1#account.*everything.*Max.*change.*settings\?invite=shop#accounts`,
		olga.get("/settings/shop").body)
	e.Exec(t, `INSERT INTO account_apps (account_id, app_id) SELECT 1, id FROM apps WHERE name = 'shop'`)
	assert.Regexp(t, `(?s)id="people".*account=1#account.{0,60}everything`, olga.get("/settings/shop").body, "a right from before")
	e.Exec(t, `DELETE FROM account_apps WHERE account_id = 1`)
	assert.NotContains(t, max.get("/settings/shop").body, `id="people"`, "owners alone see who has an account")
	assert.Regexp(t, `(?s)name="app.shop".{0,150}<option value="look" selected>view`, olga.get("/settings?invite=shop").body)
	assert.NotRegexp(t, `(?s)name="app.docs".{0,150}<option value="look" selected>view`, olga.get("/settings?invite=shop").body)
	send(303, "do", "rights", "one", one, "app.docs", "none", "was.app.docs", "look", "app.shop", "look", "was.app.shop", "change")
	assert.Equal(t, 403, max.get("/settings/shop").status)
	require.NoError(t, e.Admin.AddApp(t.Context(), "late", app.Settings{Sites: []string{"late.example"}}))
	send(303, "do", "rights", "one", one, "app.shop", "change", "was.app.shop", "change", "app.late", "look", "was.app.late", "none")
	assert.Equal(t, 403, max.get("/settings/shop").status, "what somebody else has changed meanwhile stays")
	for _, do := range []string{"link", "rights", "remove account"} {
		send(400, "do", do, "one", "999", "sure", "yes")
		assert.Contains(t, last.body, "there is no account")
	}
	e.Exec(t, `UPDATE accounts SET owner = true WHERE name = 'Max'`)
	send(303, "do", "rights", "one", one, "was.owner", "false", "app.docs", "none", "was.app.docs", "none")
	assert.Equal(t, 200, max.get("/settings/docs").status, "an owner meanwhile, and left so")
	send(303, "do", "rights", "one", one, "was.owner", "true")
	assert.Equal(t, 403, max.get("/settings/docs").status)
	send(400, "do", "rights", "one", e.texts(`SELECT id::text FROM accounts WHERE name = 'Olga'`)[0])
	assert.Contains(t, last.body, "it is the only owner")
	send(200, "do", "add", "of", "keys", "scope", "admin")
	key := regexp.MustCompile(`footfall_(\w|-)+`).FindString(last.body)
	assert.Equal(t, 200, e.manage("GET", "/api/apps", key, "").status)
	send(303, "do", "remove", "of", "keys", "one", key[:17], "sure", "yes")
	assert.Equal(t, 403, e.manage("GET", "/api/apps", key, "").status)

	// The own password and sessions.
	other := newPerson(e)
	require.Equal(t, 303, other.signsIn("/enter", "Max", "eleven trombones").status)
	assert.Equal(t, 400, max.sends(page, "do", "password", "old", "wrong", "password", "twelve trombones").status)
	assert.Equal(t, 400, max.sends(page, "do", "password", "old", "eleven trombones", "password", "short").status)
	assert.Equal(t, 303, max.sends(page, "do", "password", "old", "eleven trombones", "password", "twelve trombones").status)
	assert.Equal(t, []int{200, 403}, []int{max.get(page).status, other.get(page).status}, "all other sessions end")
	require.Equal(t, 303, other.signsIn("/enter", "Max", "twelve trombones").status)
	assert.Equal(t, 303, max.sends(page, "do", "end others").status)
	assert.Equal(t, 403, other.get(page).status)
	for range 11 {
		last = max.sends(page, "do", "password", "old", "wrong", "password", "thirteen trombones")
	}
	assert.Equal(t, []any{429, true}, []any{last.status, last.header.Get("Retry-After") != ""}, "who guesses is slowed down, and told when")
	send(200, "do", "remove account", "one", one)
	e.Exec(t, `ALTER TABLE account_apps RENAME TO gone`) // the database's message is not shown
	send(503, "do", "remove account", "one", one, "sure", "yes")
	assert.NotContains(t, last.body, "SQLSTATE")
	e.Exec(t, `ALTER TABLE gone RENAME TO account_apps`)
	send(303, "do", "remove account", "one", one, "sure", "yes")
	assert.Equal(t, 403, max.get(page).status)
	assert.Equal(t, []string{"account Olga | Max: look at docs, change shop", "account Max | Max: another password",
		"account Olga | Max: look at shop", "account Olga | Max: look at late, look at shop", "account Olga | Max: look at late, look at shop",
		"account Max | Max: another password", "account Olga | "},
		e.texts(`SELECT who || ' | ' || is_now FROM changes WHERE was LIKE 'Max%' OR is_now LIKE 'Max%' ORDER BY id`))
	assert.Empty(t, e.texts(`SELECT id::text FROM changes
		WHERE changes::text LIKE '%trombones%' OR changes::text LIKE '%`+link[len(link)-20:]+`%'`))
}

// Every field refuses values that cannot be stored, and each setting is in exactly one form.
func TestFieldsOfSettings(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	owner := e.owner()
	for _, wrong := range []string{"a\x00b", "\xff", "\u202e", strings.Repeat("w", 9000)} { // refused like any other value
		for _, c := range []string{"site", "text", "tz", "visitor", "uri", "name", "one", "of", "do"} {
			for _, path := range []string{"/settings/shop", "/settings"} {
				form := url.Values{"do": {"add"}, "of": {"hosts"}, "one": {"x"}, "was.tz": {""}}
				form.Set(c, wrong)
				a := owner.do(http.MethodPost, path, form)
				assert.Equal(t, 400, a.status, "%s: %q: %s", path, c, a.body)
			}
		}
	}
	for _, s := range app.AllSettings { // is in one form
		forms := 0
		for _, g := range slices.Concat(groups, moreGroups, []group{unlistedHosts}) {
			forms += strings.Count(" "+strings.Join(g.names, " ")+" ", " "+s.Name+" ")
		}
		assert.Equal(t, 1, forms, s.Name)
	}
	for _, l := range words.All() { // a choice has words, and then the value that the shell takes
		page := owner.do(http.MethodGet, "/settings/shop", nil, "Accept-Language", l.Tag).body
		for _, s := range app.AllSettings {
			for _, value := range s.Choices {
				assert.Regexp(t, `name="`+s.Name+`" value="`+value+`"( checked)?> <span>[^<]+ <code>`+value+`</code>`, page, l.Tag)
			}
		}
	}
	a := owner.get("/settings/shop")
	assert.Contains(t, a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	assert.Equal(t, "no-store", a.header.Get("Cache-Control"))
}
