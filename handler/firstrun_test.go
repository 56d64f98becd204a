package handler

import (
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
)

// shot saves a screenshot for people if the environment names a folder.
func (d *devtools) shot(name string) {
	folder := os.Getenv("FOOTFALL_TEST_SHOTS")
	if folder == "" {
		return
	}
	var taken struct{ Data string }
	d.do("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &taken)
	picture, err := base64.StdEncoding.DecodeString(taken.Data)
	require.NoError(d.t, err)
	require.NoError(d.t, os.WriteFile(folder+"/"+name+".png", picture, 0o600))
}

// fits checks the layout of a page.
func (d *devtools) fits(script string, wide int) {
	d.t.Helper()
	var is int
	d.ask(`document.documentElement.scrollWidth`, &is)
	assert.LessOrEqual(d.t, is, wide, d.where())
	assertAccessible(d.t, d, script)
}

// A new owner follows the printed address to the first number on their own page, and a colleague sees this site
// without rights to change anything.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	for i, with := range []struct {
		wide    int
		scheme  string
		scripts bool
	}{{390, "light", true}, {1280, "dark", false}, {390, "dark", false}, {1280, "light", true}}[:dbtest.LongOrShort(4, 2)] {
		t.Run(fmt.Sprintf("%d px, scripts %v", with.wide, with.scripts), func(t *testing.T) {
			t.Parallel()
			w := newInternet(newEdge(t))
			w.administer(func(ctx context.Context, a *admin.Admin) error { return a.DeleteApp(ctx, "shop") })
			w.rest = w.proxy()
			start, err := account.Open(w.DB).NewStart(t.Context())
			require.NoError(t, err)
			b, script := w.drive(t), axe(t)
			b.do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
			b.do("Emulation.setTimezoneOverride", map[string]any{"timezoneId": "Asia/Kolkata"}, nil)
			b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": !with.scripts}, nil)
			b.look(with.wide, with.scheme)
			page := func(name string) {
				t.Helper()
				b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil) // for axe
				b.fits(script, with.wide)
				b.shot(fmt.Sprintf("%d-%s", i, name))
				b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": !with.scripts}, nil)
			}
			send := func() { b.leads(func() { b.ask(`document.querySelector('main form').requestSubmit()`, nil) }) }

			const base = "http://count.example"
			b.open(base + "/start/" + start)
			assert.Equal(t, base+"/begin", b.where(), "the token is gone from the address")
			page("1-account")
			inEachLanguage := func(path string) {
				if t.Helper(); i == 0 {
					fitsInEachLanguage(t, b, script, base, []string{path})
					b.look(with.wide, with.scheme)
					b.open(base + path)
				}
			}
			inEachLanguage("/begin")
			b.ask(`document.querySelector('#name').value = 'Olga', document.querySelector('#password').value = 'qwertyuiop'`, nil)
			send()
			page("1-account-problem")
			b.ask(`document.querySelector('#password').value = '`+desk.Password+`'`, nil)
			send()
			require.Equal(t, base+"/new", b.where())
			page("2-site")
			var zone string
			b.ask(`document.querySelector('#zone').value`, &zone)
			assert.Equal(t, map[bool]string{true: "Asia/Kolkata", false: "UTC"}[with.scripts], strings.Replace(zone, "Calcutta", "Kolkata", 1))
			b.ask(`document.querySelector('#host').value = 'blog example'`, nil)
			send()
			page("2-site-problem")
			b.ask(`document.querySelector('#host').value = 'https://Blog.example/', document.querySelector('[value=yes]').checked = true`, nil)
			send()
			require.Equal(t, base+"/new/blog-example", b.where())
			page("3-waiting")
			var line string
			b.ask(`document.querySelector('pre').textContent`, &line)
			var sentence string
			b.ask(`document.querySelector('#number + pre').textContent`, &sentence)
			assert.Equal(t, rankSentence, sentence, "since its pages show numbers")

			// The problem is shown on the page, and then fixed.
			b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil) // for readers of the site
			for _, host := range []string{"www.blog.example", "blog.example"} {
				w.put(host+"/hello", line+sentence)
			}
			b.open("http://www.blog.example/hello")
			require.Eventually(t, func() bool { _, is := w.LastRefused("blog-example"); return is }, dbtest.Patience, dbtest.Tick)
			b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": !with.scripts}, nil)
			b.open(base + "/new/blog-example")
			page("3-waiting-unlisted")
			inEachLanguage("/new/blog-example")
			send()
			b.open(base + "/new/blog-example")
			var text string
			b.ask(`document.querySelector('main').textContent`, &text)
			assert.NotContains(t, text, "not a site of app")
			assert.Contains(t, text, "www.blog.example is counted now: open its page again")
			assert.NotContains(t, text, "something is blocking the call")
			page("3-waiting-listed")

			if with.scripts { // the page moves on by itself
				a := w.do(http.MethodGet, w.public+"/visit?app=blog-example&uri=http://blog.example/first", "", "")
				require.Equal(t, http.StatusOK, a.status, a.body)
				b.ask(`dispatchEvent(new Event('visibilitychange'))`, nil)
				b.await(`document.querySelector('h1').textContent.startsWith('Received: /first, ')`)
			}
			b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
			b.open("http://blog.example/hello")
			b.await(`document.querySelector('b').textContent === '1'`)
			b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": !with.scripts}, nil)
			b.open(base + "/new/blog-example")
			page("3-received")
			b.ask(`document.querySelector('h1').textContent`, &text)
			assert.Regexp(t, `^Received: /(hello|first), \d\d:\d\d$`, text)
			b.open(base + "/")
			assert.Equal(t, base+"/dash/blog-example/blog.example", b.where(), "the one app with one site opens at once")
			page("4-numbers")

			t.Run("a colleague", func(t *testing.T) {
				w.administer(func(ctx context.Context, a *admin.Admin) error {
					return a.AddApp(ctx, "secret", app.Settings{Sites: []string{"secret.example"}})
				})
				b.open(base + "/settings")
				b.leads(func() {
					b.ask(`{
						const form = document.querySelector('[name=do][value=invite]').form
						form.elements['app.blog-example'].value = 'look'
						form.requestSubmit()
					}`, nil)
				})
				var link string
				b.ask(`document.querySelector('main').textContent.match(/http:\S+\/start\/[\w-]{43}/)?.[0] ?? ''`, &link)
				require.NotEmpty(t, link)
				b.do("Network.clearBrowserCookies", nil, nil)
				b.open(link)
				page("5-invited")
				b.ask(`document.querySelector('#name').value = 'Ann', document.querySelector('#password').value = '`+desk.Password+`'`, nil)
				send()
				assert.Equal(t, base+"/dash/blog-example/blog.example", b.where(), "they see one app")
				for path, title := range map[string]string{"/new": "Forbidden", "/dash/secret": "Forbidden", "/new/secret": "Forbidden",
					"/settings/blog-example": "Forbidden", "/settings/secret": "Forbidden"} {
					b.open(base + path)
					assert.Equal(t, title, b.title(), path)
				}
				b.open(base + "/leave")
				send()
				b.open(base + "/dash/blog-example")
				assert.Equal(t, "Sign in", b.title())
				page("6-sign-in")
			})
			for _, said := range b.console {
				if !strings.Contains(said, "status of 4") && !strings.Contains(said, "recommendation") && !strings.Contains(said, "CORS") &&
					!strings.Contains(said, "ERR_FAILED") {
					assert.Fail(t, "Chromium reports an error or a violated rule", said)
				}
			}
		})
	}
}

// If no visit arrives, accounts that may see the app get the reason, and no other reader does.
func TestWaitingSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	ann, bob := e.member("Ann", "shop"), e.member("Bob", "demo")
	waiting := func() string {
		t.Helper()
		a := ann.get("/new/shop")
		require.Equal(t, http.StatusOK, a.status)
		return regexp.MustCompile(`(?s)<div class="found">.*?</div>`).FindString(a.body)
	}
	visit := func(uri string, headers ...string) {
		e.ask(http.MethodGet, "/visit?app=shop&uri="+url.QueryEscape(uri), append([]string{"User-Agent", desk.Browser}, headers...)...)
	}
	assert.Empty(t, waiting())
	assert.Contains(t, ann.get("/new/shop").body, `href="/embed?app=shop"`)
	assert.Contains(t, html.UnescapeString(ann.get("/new/shop").body), `['script', {src: '…', 'data-app': '…', defer: ''}]`)
	assert.Contains(t, ann.get("/new/shop").body, "data-footfall-sentence")
	require.NoError(t, e.Admin.SetApp(t.Context(), "shop", app.Settings{PublicCounts: ptr("off")}))
	assert.NotContains(t, ann.get("/new/shop").body, "data-footfall-sentence", "it tells pages no numbers")
	e.ask(http.MethodGet, "/count.js", "Referer", "http://other.example/x")
	assert.Empty(t, waiting(), "no page of the app")
	e.ask(http.MethodGet, "/count.js", "Referer", "http://example.com/x")
	assert.Contains(t, waiting(), "something is blocking the call")
	e.ask(http.MethodGet, "/count.js", "Referer", "http://other.example/x")
	assert.Contains(t, waiting(), "something is blocking the call", "also where another site's page has loaded it since")
	visit("http://www.example.com/")
	assert.Contains(t, waiting(), "www.example.com</bdi></strong> arrived. It is not a site of app shop")
	assert.NotContains(t, waiting(), "<button>", "a member who may only look")
	visit("http://<b>.example/")
	assert.NotContains(t, waiting(), "<b>")
	visit("http://example.com/", "Origin", "https://other.example")
	assert.Contains(t, waiting(), "other.example</bdi></strong> sent a visit for another site")
	visit("http://example.com/", "Origin", "null")
	assert.Contains(t, waiting(), "that hides its address")
	visit("http://example.com/", "User-Agent", "curl/8.0")
	assert.Contains(t, waiting(), "deliberately not counted: bot")
	visit("http://example.com/", "Origin", "https://other.example")
	assert.Equal(t, http.StatusForbidden, bob.get("/new/shop").status)
	assert.Equal(t, http.StatusForbidden, newPerson(e).get("/new/shop").status)
	assert.Equal(t, http.StatusForbidden, ann.do(http.MethodPost, "/new/shop", url.Values{"host": {"evil.example"}}).status)
	olga := &person{e, map[string]string{sessionCookie: e.SignIn(t, desk.Owner, account.Rights{})}}
	assert.Equal(t, http.StatusBadRequest, olga.do(http.MethodPost, "/new/shop", url.Values{"host": {"a/b"}}).status)
	assert.Equal(t, http.StatusSeeOther, olga.do(http.MethodPost, "/new/shop", url.Values{"host": {"www.example.com"}}).status)
	assert.EqualValues(t, 1, e.One(t, `SELECT count(*) FROM changes WHERE who = 'account Olga' AND app = 'shop'`))
	assert.Contains(t, waiting(), "sent a visit for another site", "another one was added")
	assert.Equal(t, http.StatusSeeOther, olga.do(http.MethodPost, "/new/shop", url.Values{"host": {"other.example"}}).status)
	assert.NotContains(t, waiting(), "sent a visit for another site")
	visit("http://www.example.com/here")
	assert.Contains(t, ann.get("/new/shop").body, "Received: <bdi>/here</bdi>")

	for _, made := range [][2]string{{"www.new.example:81", "new-example-81"}, {"new.example", "new-example"},
		{"NEW.example/", "new-example-2"}, {"日本.example", "example"}} {
		a := olga.do(http.MethodPost, "/new", url.Values{"host": {made[0]}, "zone": {"Europe/Berlin"}, "visitor": {"hashed"}, "numbers": {"no"}})
		require.Equal(t, http.StatusSeeOther, a.status, a.body)
		assert.Equal(t, "/new/"+made[1], a.header.Get("Location"))
	}
	for _, wrong := range []url.Values{{"host": {"c.example"}, "zone": {"Mars/Olympus"}, "visitor": {"hashed"}},
		{"host": {""}, "zone": {"UTC"}, "visitor": {"hashed"}}, {"host": {"c.example"}, "zone": {"UTC"}, "visitor": {"x"}}} {
		a := olga.do(http.MethodPost, "/new", wrong)
		assert.Equal(t, http.StatusBadRequest, a.status)
		assert.Contains(t, a.body, `role="alert"`)
	}
	assert.Equal(t, http.StatusForbidden, ann.do(http.MethodPost, "/new", url.Values{"host": {"c.example"}}).status)
}
