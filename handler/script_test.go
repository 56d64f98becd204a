package handler

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/embed"
	"footfall/visit"
)

// ofDocs returns the blocks of HTML in docs/embed.md, for app shop of a service, by their purpose.
func ofDocs(t *testing.T, service string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/embed.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```html\n(.*?)```").FindAllSubmatch(text, -1)
	names := []string{"line", "numbers", "now", "list", "top", "event", "telling", "like", "canonical", "named",
		"own", "thousandth", "manual", "pinned", "busuanzi", "cc", "image"}
	require.Len(t, found, len(names), "each block of docs/embed.md is tried below")
	blocks := map[string]string{}
	ours := strings.NewReplacer("https://count.example", service, `data-app="blog"`, `data-app="shop"`, "app=blog&", "app=shop&",
		"https%3A%2F%2Fblog.example%2F", "http%3A%2F%2Fexample.com%2F", "https://blog.example", "http://example.com", "VERSION", embed.Version,
		"HASH", embed.Integrity)
	for i, name := range names {
		blocks[name] = ours.Replace(string(found[i][1]))
	}
	blocks["badge"] = strings.Replace(string(regexp.MustCompile(`!\[visits\]\(https://count\.example(.*)\)`).FindSubmatch(text)[1]),
		"/blog.svg", "/shop.svg", 1)
	blocks["badge"] = strings.Replace(blocks["badge"], "https%3A%2F%2Fblog.example", "http%3A%2F%2Fexample.com", 1)
	require.Equal(t, embed.Line(service, "shop")+"\n", blocks["line"])
	require.Equal(t, embed.PinnedLine(service, "shop")+"\n", blocks["pinned"])
	return blocks
}

// listening reports each answered visit, and keeps the page's requests. It is served as /listening.js.
const listening = `
	const asked = [], ask = fetch
	fetch = (...how) => { asked.push(String(how[0])); return ask(...how) }
	const text = () => document.body.innerText.replace(/\s+/g, ' ').trim()
	document.addEventListener('footfall', e => {
		ask('/told', {method: 'POST', body: JSON.stringify({At: location.pathname + location.search + location.hash, Hot: e.detail.page.hot,` +
	` Site: e.detail.site.hot, Text: text()})})
	})
	// settled returns after all requests that were due have been sent.
	const settled = () => new Promise(done => setTimeout(() => setTimeout(done)))
	const until = async test => { while (!test()) await new Promise(done => setTimeout(done, 10)) }
`

// visited is a page's report of a visit.
type visited struct {
	At        string // where the reader is
	Hot, Site int64
	Text      string // the reader's present address
}

func (v visited) brief() string { return v.At + " " + v.Text }

func (w *internet) hearVisit(t *testing.T) (v visited) {
	t.Helper()
	w.hear(t, &v)
	return v
}

// TestScriptInChromium shows pages with the lines of docs/embed.md to one browser.
func TestScriptInChromium(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	docs := ofDocs(t, w.public)
	const listener = `<script src="/listening.js"></script>`
	proxy := http.StripPrefix("/numbers", w.proxy())
	arrives := make(chan struct{}) // the request of jquery-pjax
	w.rest = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/pjax/next":
			<-arrives
			fmt.Fprint(out, `next, opened <b data-footfall="page.hot"></b>`)
		case strings.HasPrefix(r.URL.Path, "/numbers/"): // like a reverse proxy of the site's own web server
			proxy.ServeHTTP(out, r)
		case r.URL.Path == "/listening.js":
			out.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(out, listening)
		case r.URL.Path == "/files/Paper.PDF":
			out.Header().Set("Content-Disposition", "attachment")
			fmt.Fprint(out, "%PDF")
		default:
			out.WriteHeader(http.StatusNotFound)
			fmt.Fprint(out, listener, docs["telling"], "not found")
		}
	})
	page := func(at string, parts ...string) string {
		w.put(strings.Split(at, "?")[0], listener+strings.Join(parts, ""))
		return "http://" + at
	}
	b := w.drive(t)
	// quiet checks that a page sends no request because of do.
	quiet := func(t *testing.T, do string) {
		t.Helper()
		var more int
		b.ask(`(async () => { await settled(); const before = asked.length; `+do+
			`; await settled(); await settled(); return asked.length - before })()`, &more)
		assert.Zero(t, more, do)
	}

	t.Run("numbers", func(t *testing.T) {
		at := page("example.com/hello", docs["line"], docs["numbers"])
		b.open(at + "?from=mail&to=me#notes")
		assert.Equal(t, visited{"/hello?from=mail&to=me#notes", 1, 1, "Opened 1 times; you are number 1. The whole site has 1 readers."},
			w.hearVisit(t))
		b.do("Page.reload", nil, nil)
		assert.Equal(t, visited{"/hello?from=mail&to=me#notes", 2, 2, "Opened 2 times; you are number 1. The whole site has 1 readers."},
			w.hearVisit(t))
	})
	t.Run("a page with the line twice, and an element of that name", func(t *testing.T) {
		b.open(page("example.com/twice", docs["line"], docs["line"], `<b id="footfall" data-footfall="page.hot"></b>`))
		assert.Equal(t, "1", w.hearVisit(t).Text)
		quiet(t, "0")
		assert.Equal(t, int64(1), w.counted(t, "twice"))
	})
	t.Run("as a module", func(t *testing.T) {
		b.open(page("example.com/module", strings.Replace(docs["pinned"], "<script ", `<script type="module" `, 1)))
		assert.Equal(t, int64(1), w.hearVisit(t).Hot)
	})
	t.Run("formats", func(t *testing.T) { tryFormats(t, w, b, page) })
	t.Run("routes", func(t *testing.T) {
		tryRoutes(t, w, b, quiet, page("example.com/spa", docs["line"], `<b data-footfall="page.hot"></b>`))
	})
	t.Run("jquery-pjax", func(t *testing.T) {
		jQuery, pjax := fromNPM(t, "jquery", "dist/jquery.min.js"), fromNPM(t, "jquery-pjax", "jquery.pjax.js")
		if jQuery == "" || pjax == "" {
			return
		}
		b.open(page("example.com/pjax", "<script>"+jQuery+"</script><script>"+pjax+"</script>", docs["line"],
			`<a href="/pjax/next">go</a> <div id="main"><i data-footfall="page.hot"></i></div>`))
		require.Equal(t, "/pjax go 1", w.hearVisit(t).brief())
		b.ask(`$(document).pjax('a', '#main', {timeout: 60000}); document.querySelector('a').click()`, nil)
		require.Equal(t, "/pjax/next", w.hearVisit(t).At)
		close(arrives) // after the response
		b.ask(`until(() => text() == 'go next, opened 1')`, nil)
		b.ask(`history.back()`, nil)
		require.Equal(t, "/pjax", w.hearVisit(t).At)
		b.ask(`until(() => text() == 'go 2')`, nil)
		for path, hot := range map[string]int64{"pjax": 2, "pjax/next": 1} {
			assert.Equal(t, hot, w.counted(t, path), path)
		}
	})
	t.Run("below the site itself", func(t *testing.T) {
		b.open(page("example.com/below", strings.Replace(docs["line"], w.public, "/numbers", 1), `<b data-footfall="page.hot"></b>`))
		assert.Equal(t, "/below 1", w.hearVisit(t).brief())
	})
	t.Run("a badge on any page", func(t *testing.T) {
		w.administer(func(ctx context.Context, a *admin.Admin) error {
			return a.SetApp(ctx, "shop", app.Settings{PublicCounts: ptr("read")})
		})
		b.open(page("other.example/readme", `<img src="`+w.public+docs["badge"]+`">`))
		var seen int
		b.ask(`document.images[0].naturalWidth`, &seen)
		assert.Greater(t, seen, 50)
	})
	t.Run("where the reader is", func(t *testing.T) {
		b.open(page("example.com/slow", `<script>
			let release
			const held = new Promise(done => { release = done }), through = fetch
			fetch = async (...how) => {
				const answer = await through(...how)
				if (/slow(&|$)/.test(how[0])) await held
				return answer
			}
		</script>`, docs["line"], `<b data-footfall="page.hot"></b>`))
		b.ask(`until(() => asked.length > 0)`, nil)
		b.ask(`history.pushState(0, '', '/slow/on')`, nil)
		assert.Equal(t, "/slow/on 1", w.hearVisit(t).brief())
		b.ask(`release(); settled().then(() => { footfall.visit() })`, nil)
		assert.Equal(t, "/slow/on 2", w.hearVisit(t).brief(), "and the late answer is heard of by nobody")
		assert.Equal(t, int64(1), w.counted(t, "slow"))
	})
	t.Run("tabs that nobody looks at", func(t *testing.T) { tryHidden(t, w, b, page("example.com/tab", docs["line"])) })
	t.Run("back", func(t *testing.T) {
		b.open(page("example.com/first", docs["line"], `<script>addEventListener('pageshow', e => { persisted = e.persisted })</script>`))
		assert.Equal(t, int64(1), w.hearVisit(t).Hot)
		b.open(page("example.com/second", docs["line"]))
		assert.Equal(t, "/second", w.hearVisit(t).At)
		b.ask(`history.back()`, nil)
		seen := w.hearVisit(t)
		assert.Equal(t, "/first", seen.At)
		assert.Equal(t, int64(2), seen.Hot)
		var persisted bool
		b.ask(`persisted`, &persisted)
		assert.True(t, persisted, "Chromium had kept the page")
	})
	t.Run("lists", func(t *testing.T) {
		before := w.siteHot(t)
		b.open(page("example.com/index", docs["line"], docs["list"], `
			<p data-footfall-sentence hidden>never <b data-footfall="page.hot" data-footfall-for="never/seen?x#y"></b></p>
			<p data-footfall-sentence hidden>elsewhere <b data-footfall="page.hot" data-footfall-for="https://other.example/"></b></p>
			<p data-footfall-sentence hidden>nothing <b data-footfall="page.hot" data-footfall-for="http://"></b></p>
			<p data-footfall-sentence hidden>rank <b data-footfall="page.rank" data-footfall-for="/hello"></b></p>`))
		w.hearVisit(t)
		b.ask(`until(() => text().includes('never'))`, nil)
		var seen string
		b.ask(`text()`, &seen)
		assert.Equal(t, "Hello 2 views never 0", seen)
		b.ask(`document.body.insertAdjacentHTML('beforeend', '<i data-footfall="site.hot" data-footfall-for="/"></i>'); `+
			`document.dispatchEvent(new Event('turbo:load'))`, nil)
		b.ask(`until(() => document.querySelector('i').textContent)`, nil)
		var calls int
		b.ask(`asked.filter(url => url.endsWith('/counts')).length`, &calls)
		assert.Equal(t, 2, calls, "one, and one for the place that came later")
		assert.Equal(t, before+1, w.siteHot(t))
	})
	t.Run("a script of one's own", func(t *testing.T) {
		b.open(page("example.com/own", docs["line"], docs["own"]))
		assert.Equal(t, int64(1), w.hearVisit(t).Hot)
		var seen struct {
			Welcome, Counts string
			Nothing         int
		}
		b.ask(`(async () => ({Welcome: document.getElementById('welcome').textContent,
			Counts: JSON.stringify(await footfall.counts(['/hello', 'own', 'https://other.example/'])),
			Nothing: (await footfall.counts([])).length}))()`, &seen)
		assert.Equal(t, "Reader 1", seen.Welcome)
		assert.Regexp(t, `^\[{"site":.*"page":{"pv":1,"uv":1,"rank":0,"hot":2}},{"site":.*"page":{"pv":1,"uv":1,"rank":0,"hot":1}},`+
			`{"error":"uri: app shop does not count`, seen.Counts)
		var drawn string
		b.ask(`(async () => {
			document.body.insertAdjacentHTML('beforeend', '<i data-footfall="page.hot"></i>')
			footfall.fill()
			return document.querySelector('i').textContent + (await footfall.visit()).page.hot
		})()`, &drawn)
		assert.Equal(t, "12", drawn)
		assert.Equal(t, int64(2), w.hearVisit(t).Hot)
		var many int
		b.ask(`footfall.counts(Array.from({length: 2001}, (_, i) => '/many/' + i)).then(all => all.filter(one => one.page.hot === 0).length)`,
			&many)
		assert.Equal(t, 2001, many)
		b.ask(`asked.filter(url => url.endsWith('/counts')).length`, &many)
		assert.Equal(t, 1+3, many, "one for each thousand")
	})
	t.Run("the thousandth visitor", func(t *testing.T) {
		for before, congratulated := range map[int64]bool{998: false, 999: true} {
			path := fmt.Sprintf("example.com/after%d", before)
			w.administer(func(ctx context.Context, a *admin.Admin) error {
				_, err := a.SetOffsets(ctx, "shop", []admin.Offset{{URI: path, Hot: before, PV: before, UV: before}}, false)
				return err
			})
			b.open(page(path, docs["line"], docs["thousandth"]))
			for range 2 {
				w.hearVisit(t)
				var seen bool
				b.ask(`settled().then(() => text() == 'You are reader number 1,000 of this page. Thank you!')`, &seen)
				assert.Equal(t, congratulated, seen, path)
				b.do("Page.reload", nil, nil)
			}
			w.hearVisit(t)
		}
	})
	t.Run("events", func(t *testing.T) {
		w.put("example.com/thanks", listener+docs["line"])
		b.open(page("example.com/join", docs["line"], docs["event"],
			`<a href="/thanks" data-footfall-event="go"><i>on</i></a> <u data-footfall-event>x</u>`))
		require.Equal(t, "/join", w.hearVisit(t).At)
		before := w.siteHot(t)
		b.ask(`document.addEventListener('click', e => e.stopPropagation(), true), document.querySelector('button').click(), `+
			`document.querySelector('u').click(), document.body.click()`, nil)
		assert.Equal(t, int64(1), w.happened(t, "signup"))
		var said string
		b.ask(`footfall.event('signup').then(JSON.stringify)`, &said)
		assert.Equal(t, "{}", said, "pages get no numbers of events")
		b.leads(func() { b.ask(`document.querySelector('i').click()`, nil) })
		require.Equal(t, "/thanks", w.hearVisit(t).At)
		assert.Equal(t, int64(1), w.happened(t, "go"), "the click has led on")
		assert.Equal(t, before+1, w.siteHot(t), "the visit to the next page")
		assert.Equal(t, int64(1), w.counted(t, "join"))
		b.ask(`footfall.event('No!')`, nil)
		assert.Equal(t, []string{`warning: footfall: event: "No!" is not the name of an event: write a-z, 0-9, _, . and -, 64 at most`}, b.spoken)
		var refused bool
		b.ask(`footfall.event().then(told => !told)`, &refused)
		assert.True(t, refused, "an event without a name")
		b.spoken, b.console = nil, nil
		b.open(page("example.com/join", docs["line"], docs["event"]) + "#footfall-ignore")
		w.hearVisit(t)
		b.ask(`document.querySelector('button').click(), footfall.event('signup')`, nil)
		b.ask(`localStorage.clear()`, nil)
		b.spoken = nil
		assert.Equal(t, int64(2), w.happened(t, "signup"), "of a browser that is left out")
		b.open(page("example.com/join", docs["manual"], docs["event"]))
		b.ask(`document.querySelector('button').click(), footfall.event('by.hand')`, nil)
		assert.Equal(t, int64(2), w.happened(t, "signup"))
		assert.Equal(t, int64(1), w.happened(t, "by.hand"))
	})
	t.Run("events that the script finds", func(t *testing.T) { tryTelling(t, w, b, page, docs) })
	t.Run("by hand only", func(t *testing.T) {
		b.open(page("example.com/manual", docs["manual"], docs["list"]))
		b.ask(`until(() => text() === 'Hello 2 views')`, nil)
		quiet(t, `history.pushState(0, '', '/manual/on')`)
		b.ask(`footfall.visit()`, nil)
		assert.Equal(t, "/manual/on", w.hearVisit(t).At)
		assert.Zero(t, w.counted(t, "manual"))
	})
	t.Run("leaving oneself out", func(t *testing.T) { tryIgnoring(t, w, b, page("example.com/me", docs["line"], docs["numbers"])) })
	t.Run("policies", func(t *testing.T) { tryPolicies(t, w, b, page, docs) })
	t.Run("no answer", func(t *testing.T) { tryFailures(t, w, b, page, docs) })
	t.Run("a page made for busuanzi", func(t *testing.T) {
		b.open(page("example.com/busuanzi", docs["busuanzi"]))
		b.ask(`until(() => text() == 'Opened 1 times')`, nil)
		assert.Equal(t, int64(1), w.counted(t, "busuanzi"))
	})
	t.Run("a page made for busuanzi.cc", func(t *testing.T) {
		b.open(page("example.com/cc", docs["cc"]))
		b.ask(`until(() => /^Today \d+ visits by 1 visitors, this page 1$/.test(text()))`, nil)
		assert.Equal(t, int64(1), w.counted(t, "cc"))
	})
	t.Run("numbers of the moment, lists and likes", func(t *testing.T) { tryPublicLists(t, w, b, page, docs) })
	t.Run("an image", func(t *testing.T) {
		before := w.counted(t, "hello")
		b.open(page("example.com/image", docs["image"]))
		assert.Equal(t, before+1, w.counted(t, "hello"))
	})
	t.Run("the identity of a page", func(t *testing.T) { tryNamed(t, w, b, page, docs) })
	t.Run("an app without public numbers", func(t *testing.T) { tryUntold(t, w, b, page, docs) })
	t.Run("headless browsers are bots", func(t *testing.T) {
		b.do("Emulation.setUserAgentOverride",
			map[string]any{"userAgent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 " +
				"Safari/537.36"}, nil)
		b.open(page("example.com/bot", docs["line"],
			`<p data-footfall-sentence hidden>you are number <b data-footfall="page.rank"></b></p><p><b data-footfall="page.hot"></b></p>`))
		assert.Equal(t, "/bot 0", w.hearVisit(t).brief())
	})
	assert.Equal(t, []string{"127.0.0.1"}, w.visitors(t))
	t.Run("titles", func(t *testing.T) { tryTitles(t, w, b, page, docs["line"]) })
}

// happened returns the count of an event of shop, after it was counted.
func (w *internet) happened(t *testing.T, event string) int64 {
	t.Helper()
	var said visit.Answer
	key := w.key("shop", app.ScopeRead)
	require.Eventually(t, func() bool {
		a := w.ask(http.MethodGet, "/counts?app=shop&event="+event, "Authorization", "Bearer "+key)
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.NoError(t, json.Unmarshal([]byte(a.body), &said))
		return said.Page.Hot > 0
	}, dbtest.Patience, dbtest.Tick)
	return said.Page.Hot
}

// tryTitles shows pages to one visitor and a second one, whose addresses a proxy forwards.
func tryTitles(t *testing.T, w *internet, b *devtools, page func(string, ...string) string, line string) {
	proxied, address := w.options, atomic.Value{}
	proxied.Metrics = prometheus.NewRegistry()
	proxied.Proxies, _ = NewProxies([]string{"127.0.0.0/8", "::1"}, "")
	service := publicHandler(proxied)
	line = strings.Replace(line, w.public, serve(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		r.Header.Set("X-Forwarded-For", address.Load().(string))
		service.ServeHTTP(out, r)
	}), proxied.Log).URL, 1)
	b.do("Emulation.setUserAgentOverride", map[string]any{"userAgent": desk.Browser}, nil)
	titled := func(path, title string) string {
		return page("example.com/"+path, `<script>document.title = `+title+`</script>`, line)
	}
	hostile := titled("titled", `"\u202e<b onmouseover=hacked=1>שלום</b>\n & " + "価格 ".repeat(1e5)`)
	alone := titled("alone", `"Nobody else"`)
	for i, from := range []string{"203.0.113.7", "203.0.113.8"} {
		address.Store(from)
		for range 3 - 3*i {
			b.open(alone)
			w.hearVisit(t)
		}
		b.open(hostile)
		require.Equal(t, "/titled", w.hearVisit(t).At)
		b.ask(`document.title = 'of a route', history.pushState(0, '', '/titled/route')`, nil)
		require.Equal(t, "/titled/route", w.hearVisit(t).At)
		b.ask(`footfall.visit('/titled/other').then(() => 0)`, nil)
		require.Equal(t, "/titled/route", w.hearVisit(t).At)
	}
	told := func() []string {
		return desk.Column[string](t, w.Desk, `SELECT uri || ' ' || title FROM report.pages WHERE title IS NOT NULL ORDER BY uri`)
	}
	require.Eventually(t, func() bool { return len(told()) > 0 }, dbtest.Patience, dbtest.Tick)
	assert.Equal(t, []string{"example.com/titled <b onmouseover=hacked=1>שלום</b> & " +
		strings.TrimSpace(strings.Repeat("価格 ", 23))}, told())
}

// tryTelling clicks on links in every way, and opens missing pages.
func tryTelling(t *testing.T, w *internet, b *devtools, page func(string, ...string) string, docs map[string]string) {
	links := `<p><a id="out" href="http://www.other.example/a?who=me#notes"><i>out</i></a> <a id="here" href="http://www.example.com/">here</a>
		<a id="file" href="/files/Paper.PDF?who=me">file</a> <a id="away" href="http://other.example/a/b.zip">file</a>
		<a id="kept" href="report?who=me" download>file</a> <a id="mail" href="mailto:me@other.example">mail</a>
		<a id="own" href="http://other.example/" data-footfall-event="own.name">own</a> <a id="none">none</a> <b id="text">text</b>
		<svg width="20" height="20"><a href="http://svg.example/"><rect id="svg" width="20" height="20"/></a></svg><span id="shadow"></span></p>
		<script>
			const root = document.querySelector('#shadow').attachShadow({mode: 'open'})
			root.innerHTML = '<a href="http://shadow.example/">shadow</a>'
		</script>`
	const stay = `<script>
		for (const e of ['click', 'auxclick']) document.addEventListener(e, e => { e.preventDefault(), e.stopPropagation() }, true)
	</script>`
	told := func() (events []string) {
		b.ask(`asked.splice(0).map(url => new URL(url).searchParams.get('event')).filter(event => event)`, &events)
		return events
	}
	for _, c := range []struct{ line, out, file, away, kept, svg, shadow string }{
		{docs["telling"], "outbound/other.example", "download/files/Paper.PDF", "download/other.example/a/b.zip", "download/report",
			"outbound/svg.example", "outbound/shadow.example"},
		{strings.Replace(docs["telling"], "outbound download 404", "outbound", 1), "outbound/other.example", "", "outbound/other.example", "",
			"outbound/svg.example", "outbound/shadow.example"},
		{docs["line"], "", "", "", "", "", ""},
		{strings.Replace(docs["telling"], " data-events", " data-manual data-events", 1), "", "", "", "", "", ""},
	} {
		b.open(page("example.com/links", stay, c.line, links))
		if !strings.Contains(c.line, "data-manual") {
			w.hearVisit(t)
		}
		named := []string{"own.name"}
		if strings.Contains(c.line, "data-manual") {
			named = []string{}
		}
		told()
		for id, event := range map[string]string{"out": c.out, "file": c.file, "away": c.away, "kept": c.kept, "svg": c.svg, "shadow": c.shadow,
			"here": "", "mail": "", "none": "", "text": "", "own": "own"} {
			want := []string{event}
			switch event {
			case "":
				want = []string{}
			case "own":
				want = named
			}
			for _, button := range []string{"left", "middle", "right"} {
				b.point("#"+id, button, nil)
				if button == "right" {
					want = []string{}
				}
				assert.Equal(t, want, told(), "%s %s %s", c.line, id, button)
			}
		}
		b.point("#out", "left", map[string]any{"modifiers": 2}) // ctrl
		b.point("#out", "left", map[string]any{"clickCount": 2})
		b.ask(`document.querySelector('#out').focus()`, nil)
		b.press("Enter", 13)
		want := []string{}
		if c.out != "" {
			want = []string{c.out, c.out}
		}
		assert.Equal(t, want, told(), "by ctrl and by the keyboard, and no second click of two")
	}
	assert.Equal(t, int64(4+6), w.happened(t, "outbound/other.example"), "and none of them is lost")

	// Links to other sites.
	w.put("www.other.example/a", "there")
	b.open(page("example.com/links", docs["telling"], links))
	w.hearVisit(t)
	ours := b.session
	b.session = ""
	b.do("Browser.setDownloadBehavior", map[string]any{"behavior": "deny", "browserContextId": b.browses}, nil)
	b.session = ours
	b.point("#file", "left", nil)
	assert.Equal(t, []string{"download/files/Paper.PDF"}, told())
	b.point("#out", "middle", nil)
	assert.Equal(t, []string{"outbound/other.example"}, told())
	b.leads(func() { b.point("#out", "left", nil) })
	b.await(`document.body.innerText.includes('there')`)
	require.Eventually(t, func() bool { return w.happened(t, "outbound/other.example") == 12 }, dbtest.Patience, dbtest.Tick)

	// Missing pages, as detected by the browser, or by the page.
	b.open("http://example.com/lost/a%20b?who=me")
	w.hearVisit(t)
	b.ask(`footfall.visit()`, nil)
	w.hearVisit(t)
	assert.Equal(t, int64(1), w.happened(t, "404/lost/a%2520b"))
	assert.Equal(t, int64(2), w.counted(t, "lost/a%20b"))
	b.open(page("example.com/soft", strings.Replace(docs["telling"], " data-app", ` data-status="404" data-app`, 1)))
	w.hearVisit(t)
	assert.Equal(t, int64(1), w.happened(t, "404/soft"))
	events := dbtest.Column[string](t, w.Conn(t), `SELECT split_part(p.uri, '/', 2) || ' ' || sum(c.hot) FROM footfall.pages p
		JOIN footfall.counters c ON c.page_id = p.id
		WHERE p.uri ~ '^.events./(404|download|outbound|own.name)' GROUP BY split_part(p.uri, '/', 2) ORDER BY 1`)
	b.console = nil // it contains the status
	assert.Equal(t, []string{"404 2", "download 7", "outbound 20", "own.name 6"}, events, "and nothing else")
}

// siteHot returns hot of example.com.
func (w *internet) siteHot(t *testing.T) (hot int64) {
	t.Helper()
	require.NoError(t, w.Conn(w.t).QueryRow(context.Background(),
		`SELECT coalesce(max(hot), 0) FROM report.sites WHERE app = 'shop' AND site = 'example.com'`).Scan(&hot))
	return hot
}

// tryFormats shows numbers that are too large to count in a test.
func tryFormats(t *testing.T, w *internet, b *devtools, page func(string, ...string) string) {
	const answer = `{"site":{"pv":1234567,"uv":1234,"rank":0,"hot":1234567},"page":{"pv":7,"uv":0,"rank":0,"hot":1234}}`
	line := embed.Line(w.public, "shop")
	numbers := `<script>fetch = async () => new Response('` + answer + `')</script>`
	b.open(page("example.com/formats", numbers, line, `
		<p><b data-footfall="site.hot"></b> <b data-footfall="site.hot" data-format="locale" lang="en"></b> <b data-footfall="site.hot" `+
		`data-format="short" lang="en"></b></p>
		<p lang="de"><b data-footfall="site.hot" data-format="locale"></b> <b data-footfall="site.hot" data-format="short"></b></p>
		<p lang="zh"><b data-footfall="site.hot" data-format="short"></b></p>
		<p lang="no_such!"><b data-footfall="site.hot" data-format="locale"></b></p>
		<p data-footfall-sentence hidden>you are number <b data-footfall="page.rank"></b></p>
		<p data-footfall-sentence hidden><b data-footfall="page.uv"></b> readers<i data-footfall-sentence>, you are number <b `+
		`data-footfall="site.rank"></b></i></p>
		<p data-footfall-sentence hidden>one of <b data-footfall="page.pv"></b> and <b data-footfall="page.visits"></b></p>
		<p data-footfall-sentence hidden>none of <b data-footfall="nothing"></b><b data-footfall></b></p>`))
	assert.Equal(t, "1234567 1,234,567 1.2M 1.234.567 1,2 Mio. 123.5万 1234567 0 readers", w.hearVisit(t).Text)
	b.open(page("example.com/format", numbers, strings.Replace(line, " defer", ` data-format="locale" defer`, 1),
		`<p lang="en"><b data-footfall="page.hot"></b> <b data-footfall="page.hot" data-format="short"></b></p>`))
	assert.Equal(t, "1,234 1.2K", w.hearVisit(t).Text, "all of a page")
}

// tryRoutes navigates in a single-page app.
func tryRoutes(t *testing.T, w *internet, b *devtools, quiet func(*testing.T, string), at string) {
	b.open(at)
	require.Equal(t, "/spa", w.hearVisit(t).At)
	for _, step := range []struct{ do, leads string }{
		{`history.pushState(0, '', '/spa/a')`, "/spa/a"},
		{`history.replaceState(0, '', '/spa/a?filter=x')`, ""},
		{`history.pushState(0, '', '/spa/a?filter=x')`, ""},
		{`history.pushState(0, '', '/spa/a?page=2')`, "/spa/a?page=2"},
		{`location.hash = 'notes'`, ""},
		{`location.hash = '#/cart'`, "/spa/a?page=2#/cart"},
		{`location.hash = '#!pay'`, "/spa/a?page=2#!pay"},
		{`history.back()`, "/spa/a?page=2#/cart"},
		{`history.pushState(0, '', '/spa/b'); history.replaceState(0, '', '/spa/login')`, "/spa/login"}, // a router that redirects
		{`history.replaceState(0, '', '/spa/home')`, "/spa/home"},
		{`history.go(-1)`, "/spa/a?page=2#/cart"},
		{`history.pushState(0, '', '/spa/turbo'); document.dispatchEvent(new Event('turbo:load'))`, "/spa/turbo"},
		{`document.dispatchEvent(new Event('turbo:load')); document.dispatchEvent(new Event('pjax:complete'))`, ""},
		{`History.prototype.pushState.call(history, 0, '', '/spa/pjax'); document.dispatchEvent(new Event('pjax:complete'))`, "/spa/pjax"},
		{`footfall.visit()`, "/spa/pjax"},
		{`footfall.visit(); footfall.visit()`, "/spa/pjax"}, // two calls at once count as one
	} {
		if step.leads == "" {
			quiet(t, step.do)
			continue
		}
		b.ask(step.do+`; 0`, nil)
		assert.Equal(t, step.leads, w.hearVisit(t).At, step.do)
		quiet(t, "0")
	}
	for path, hot := range map[string]int64{"spa": 1, "spa/a": 2, "spa/a%23/cart": 3, "spa/a%23!pay": 1, "spa/b": 0, "spa/login": 1,
		"spa/home": 1, "spa/turbo": 1, "spa/pjax": 3} {
		assert.Equal(t, hot, w.counted(t, path), path)
	}
	// Elements that a framework draws after the response.
	b.ask(`document.body.insertAdjacentHTML('beforeend', '<i data-footfall="page.hot"></i>'); document.dispatchEvent(new Event('turbo:load'))`,
		nil)
	var later string
	b.ask(`document.querySelector('i').textContent`, &later)
	assert.Equal(t, "3", later)
	var thrown string
	b.ask(`(() => { try { history.pushState(0, '', 'https://other.example/') } catch (e) { return e.name } })()`, &thrown)
	assert.Equal(t, "SecurityError", thrown, "the browser's own faults are the page's")
}

// tryUntold opens pages of an app without public numbers: they keep their own text, and the console gives the reason.
func tryUntold(t *testing.T, w *internet, b *devtools, page func(string, ...string) string, docs map[string]string) {
	set := func(public string) {
		w.administer(func(ctx context.Context, a *admin.Admin) error {
			return a.SetApp(ctx, "shop", app.Settings{PublicCounts: &public})
		})
	}
	set(app.PublicOff)
	const places = `<p>Opened <b data-footfall="page.hot">often</b>, <i data-footfall="page.hot" data-footfall-for="/hello">too</i></p>
		<p data-footfall-sentence hidden>you are number <b data-footfall="page.rank"></b></p>`
	b.spoken = []string{}
	for _, c := range []struct{ at, places, text, says string }{
		{"example.com/plain", "none", "none", ""},
		{"example.com/plain/me#footfall-ignore", "none", "none", ""},
		{"example.com/places/me#footfall-ignore", places, "Opened often, too", "app shop shows no numbers without a key: send one as " +
			"Authorization: Bearer …, or have its operator make them public"},
		{"example.com/places#footfall-count", places, "Opened often, too",
			"app shop tells pages no numbers: see Settings, or footfall app set --public-counts"},
	} {
		path, fragment, _ := strings.Cut(c.at, "#")
		b.open(page(path, docs["line"], c.places) + "#" + fragment)
		b.ask(`document.dispatchEvent(new Event('turbo:load')); until(() => asked.length)`, nil)
		var told string
		b.ask(`footfall.visit().then(JSON.stringify)`, &told)
		assert.Equal(t, "{}", told, c.at)
		b.ask(`document.querySelectorAll('b[role=status]').forEach(p => p.remove()); document.dispatchEvent(new Event('turbo:load'))`, nil)
		var seen string
		b.ask(`settled().then(text)`, &seen)
		assert.Equal(t, c.text, seen, c.at)
		says := []string{}
		if c.says != "" {
			says = []string{"warning: footfall: " + c.says}
		}
		assert.Equal(t, says, slices.DeleteFunc(b.spoken, func(line string) bool { return !strings.HasPrefix(line, "warning") }), c.at)
		b.spoken, b.console = []string{}, nil
	}
	var seen string
	b.ask(`(async () => {
		const was = fetch
		for (const answer of [() => Promise.reject(), async () => new Response('{"later":true}', {status: 202})]) {
			window.fetch = answer
			await footfall.visit()
		}
		window.fetch = was
		return text()
	})()`, &seen)
	assert.Equal(t, "Opened often, too", seen, "where a later visit is not answered, or not yet")
	set(app.PublicRead)
	for path, hot := range map[string]int64{"plain": 2, "plain/me": 0, "places/me": 0, "places": 2} {
		assert.Equal(t, hot, w.counted(t, path), path)
	}
}

// tryNamed shows pages that name the address to count.
func tryNamed(t *testing.T, w *internet, b *devtools, page func(string, ...string) string, docs map[string]string) {
	w.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "shop", app.Settings{Sites: []string{"example.com", "www.example.com"}})
	})
	before := w.counted(t, "hello")
	canonical := func(address string) string {
		return strings.Replace(docs["canonical"], "http://example.com/hello", address, 1)
	}
	for _, c := range []struct{ at, says, counts string }{
		{"example.com/hello/", docs["canonical"], "hello"},
		{"www.example.com/hello", docs["canonical"], "hello"},
		{"example.com/named", canonical("/elsewhere") + docs["named"], "hello"},
		{"example.com/relative/", canonical("."), "relative/"},
		{"example.com/not/mine", canonical("https://other.example/mine"), "not/mine"},
		{"example.com/no/address", canonical("http://"), "no/address"},
		{"example.com/no/href", `<link rel="canonical">`, "no/href"},
		{"example.com/app#/route", canonical("/app"), "app%23/route"},
	} {
		was := w.counted(t, c.counts)
		line := docs["line"]
		if strings.Contains(c.says, "<script") {
			line = ""
		}
		at, fragment, _ := strings.Cut(c.at, "#")
		b.open(page(at, c.says, line) + "#" + fragment)
		w.hearVisit(t)
		assert.Equal(t, was+1, w.counted(t, c.counts), c.at)
	}
	assert.Equal(t, before+3, w.counted(t, "hello"))

	// A router navigates, and leaves both unchanged. Then the reader returns.
	b.open(page("example.com/start", canonical("/begin"), docs["line"]))
	require.Equal(t, "/start", w.hearVisit(t).At)
	for _, step := range []struct{ do, counts string }{
		{`history.pushState(0, '', '/start/on')`, "start/on"}, {`history.back()`, "begin"}, {`footfall.visit('on')`, "on"},
		{`footfall.visit(new Event('click'))`, "begin"},
	} {
		was := w.counted(t, step.counts)
		b.ask(step.do+`; 0`, nil)
		w.hearVisit(t)
		assert.Equal(t, was+1, w.counted(t, step.counts), step.do)
	}
	w.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.RemoveSites(ctx, "shop", []string{"www.example.com"})
		return err
	})
}

// tryHidden opens pages in a background tab.
func tryHidden(t *testing.T, w *internet, b *devtools, at string) {
	ours := b.session
	b.session = ""
	front := b.newPage("about:blank")
	b.session = ours
	b.await(`document.visibilityState === 'hidden'`)
	b.open(at)
	var asked int
	b.ask(`settled().then(() => { history.pushState(0, '', '/tab/on'); return settled() }).then(() => asked.length)`, &asked)
	assert.Zero(t, asked)
	b.do("Page.bringToFront", nil, nil)
	assert.Equal(t, "/tab/on ", w.hearVisit(t).brief())
	assert.Zero(t, w.counted(t, "tab"))
	b.session = ""
	b.do("Target.closeTarget", map[string]any{"targetId": front}, nil)
	b.session = ours
}

// tryIgnoring is the owner's visit to their own page.
func tryIgnoring(t *testing.T, w *internet, b *devtools, at string) {
	before := w.siteHot(t)
	var waits struct{ Identifier string }
	b.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `{
		const soon = setTimeout
		setTimeout = (what, ms, ...more) => ms >= 5000 ? (window.later = what, 0) : soon(what, ms, ...more)
	}`}, &waits)
	b.open(at + "#footfall-ignore")
	const unranked = "Opened 0 times. The whole site has 1 readers."
	assert.Equal(t, visited{"/me#footfall-ignore", 0, before, unranked}, w.hearVisit(t))
	told := func() (lines []string) {
		b.ask(`[...document.querySelectorAll('b[role=status]')].filter(p => p.checkVisibility() && p.getBoundingClientRect().bottom === `+
			`innerHeight).map(p => p.textContent)`, &lines)
		return lines
	}
	assert.Equal(t, []string{"footfall: visits of this browser to this site do not count"}, told(), "also on a phone, which shows no console")
	b.ask(`later()`, nil)
	assert.Empty(t, told(), "some seconds later")
	b.do("Page.removeScriptToEvaluateOnNewDocument", map[string]any{"identifier": waits.Identifier}, nil)
	b.open(at)
	assert.Equal(t, visited{"/me", 0, before, unranked}, w.hearVisit(t), "kept")
	b.ask(`location.hash = 'footfall-count'; settled().then(() => { footfall.visit() })`, nil)
	assert.Equal(t, int64(1), w.hearVisit(t).Hot)
	var kept int
	b.ask(`localStorage.length`, &kept)
	assert.Zero(t, kept)
	b.ask(`location.hash = 'footfall-ignore'; settled().then(() => { footfall.visit() })`, nil)
	assert.Equal(t, int64(1), w.hearVisit(t).Hot)
	b.ask(`localStorage.clear()`, nil)
	assert.Equal(t, []string{
		"info: footfall: visits of this browser to this site do not count", "info: footfall: visits of this browser to this site count",
		"info: footfall: visits of this browser to this site do not count",
	}, b.spoken)
	b.spoken = nil
}

// tryPolicies shows pages with very strict policies.
func tryPolicies(t *testing.T, w *internet, b *devtools, page func(string, ...string) string, docs map[string]string) {
	policy := func(rules string) string {
		return `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; require-trusted-types-for 'script'; trusted-types ` +
			`'none'; ` + rules + `">`
	}
	connects := "connect-src http://example.com " + w.public
	for name, parts := range map[string][]string{
		"policy":       {policy("script-src " + w.public + "; " + connects), docs["line"]},
		"policy/nonce": {policy("script-src 'nonce-abc'; " + connects), strings.Replace(docs["line"], "<script ", `<script nonce="abc" `, 1)},
		"policy/hash":  {policy("script-src '" + embed.Integrity + "'; " + connects), docs["pinned"]},
	} {
		b.open(page("example.com/"+name, append(parts, docs["numbers"])...))
		assert.Equal(t, "/"+name, w.hearVisit(t).At)
	}
	b.ask(`location.hash = 'footfall-count'; settled()`, nil)
	var fixed string
	b.ask(`getComputedStyle(document.querySelector('b[role=status]')).position`, &fixed)
	assert.Equal(t, "fixed", fixed, "a line of the script's own is styled where the page forbids styles")
	b.spoken = nil
	assert.Empty(t, b.console, "Chromium reports no violated rule")
	b.open(page("example.com/forged", strings.Replace(docs["pinned"], embed.Integrity, "sha384-"+strings.Repeat("A", 64), 1), docs["numbers"]))
	var runs bool
	b.ask(`'footfall' in self`, &runs)
	assert.False(t, runs, "a script with another hash")
	b.open(page("example.com/old", strings.Replace(docs["line"], "/count.js", "/count.0123456789ab.js", 1)))
	assert.Equal(t, int64(1), w.hearVisit(t).Hot, "a version that is gone")
	b.console = nil
}

// tryFailures shows pages when the service does not respond: the reader sees no error, and the console shows the
// reason, once.
func tryFailures(t *testing.T, w *internet, b *devtools, page func(string, ...string) string, docs map[string]string) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	w.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.AddApp(ctx, "keyed", app.Settings{Sites: []string{"keyed.example"}, Access: ptr("key")})
	})
	before := w.rows()
	nobody := func(origin, app string) string {
		return "warning: footfall: no answer from " + origin + "/: is it up, does app " + app + " list this site, does connect-src allow it?"
	}
	// The script is available, but the service that it calls is not.
	away := `<script>const down = fetch; fetch = (url, how) => down(url.replace('` + w.public + `', '` + gone.URL + `'), how)</script>`
	for _, c := range []struct{ at, line, said string }{
		{"example.com/forbidden", `<meta http-equiv="Content-Security-Policy" content="connect-src http://example.com">` + docs["line"],
			nobody(w.public, "shop")},
		{"example.com/offline", away + docs["line"], nobody(w.public, "shop")},
		{"other.example/", docs["line"], nobody(w.public, "shop")},
		{"a.example.com/", docs["line"], nobody(w.public, "shop")},
		{"example.com:81/", docs["line"], nobody(w.public, "shop")},
		{"keyed.example/", embed.Line(w.public, "keyed"), "warning: footfall: key: app keyed counts nothing without a key"},
		{"example.com/missing", embed.Line(w.public, "nowhere"), nobody(w.public, "nowhere")},
		{"example.com/" + strings.Repeat("long", 600), docs["line"], "warning: footfall: uri: its canonical form is longer than 2,048 bytes"},
	} {
		b.open(page(c.at, c.line, docs["numbers"], docs["list"], `<p>text</p>`))
		var seen string
		b.ask(`(async () => { await footfall.visit(); await footfall.counts(['/']); await settled(); return text() })()`, &seen)
		assert.Regexp(t, `^Hello( [02] views)? text$`, seen, c.at)
		require.Len(t, b.spoken, 1, c.at)
		assert.Contains(t, b.spoken[0], c.said)
		b.spoken = nil
	}
	assert.Equal(t, before, w.rows())
	b.console = nil
}

// The script sends the source of a visitor once for each loaded page: only the origin of the page with the link. The Referer of
// the script's own call is not used.
func TestChromiumSaysWhereReadersComeFrom(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	w.rest = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(out, listening)
	})
	const elsewhere = "http://news.example/story?who=me"
	line := `<meta name="referrer" content="unsafe-url"><script src="/listening.js"></script>` + embed.Line(w.public, "shop")
	w.put("news.example/story", line)
	for _, path := range []string{"typed", "one", "two", "me"} {
		w.put("example.com/"+path, line)
	}
	b := w.drive(t)
	follow := func(to string) {
		b.leads(func() {
			b.ask(`document.body.innerHTML = '<a href="http://example.com/`+to+`">', document.links[0].click()`, nil)
		})
	}
	said := func(want string) {
		t.Helper()
		var referrers string
		b.ask(`asked.map(a => new URL(a, location)).filter(a => a.searchParams.has('app')).map(a => a.pathname + ' ' + `+
			`(a.searchParams.get('referrer') ?? '-')).join()`, &referrers)
		assert.Equal(t, want, referrers)
	}
	b.open(elsewhere)
	follow("one")
	require.Equal(t, "/one", w.hearVisit(t).At)
	for _, again := range []string{`history.pushState(0, '', '/route')`, `history.back()`, `footfall.visit()`} {
		b.ask(again+`; 0`, nil)
		w.hearVisit(t)
	}
	follow("two")
	require.Equal(t, "/two", w.hearVisit(t).At)
	said("/visit -")
	b.ask(`history.back()`, nil)
	require.Equal(t, visited{At: "/one", Hot: 4, Site: 6}, w.hearVisit(t))
	said("/visit http://news.example,/visit -,/visit -,/visit -,/visit -")
	b.open("http://example.com/typed")
	require.Equal(t, "/typed", w.hearVisit(t).At)
	said("/visit -")
	b.open(elsewhere)
	follow("me#footfall-ignore")
	w.hearVisit(t)
	said("/counts -")
	b.ask(`location.hash = 'footfall-count'; settled().then(() => { footfall.visit() })`, nil)
	w.hearVisit(t)
	said("/counts -,/visit http://news.example")

	w.put("example.com/named", `<link rel="canonical" href="/one?id=7">`+line)
	b.open("http://example.com/named?x=1&utm_source=letter&utm_campaign=a%26b")
	w.hearVisit(t)
	var counts string
	b.ask(`asked.map(a => new URL(a, location).searchParams.get('uri')).join('')`, &counts)
	assert.Equal(t, "http://example.com/one?id=7&utm_source=letter&utm_campaign=a%26b", counts, "a page that says what it is")
	w.put("example.com/theme", `<script async src="`+w.public+embed.BusuanziPath+`"></script><b id="busuanzi_value_page_pv"></b>`)
	b.open(elsewhere)
	follow("theme")
	b.await(`document.body.innerText === '1'`)
	b.ask(`history.pushState(0, '', '/theme/next'), bszCaller.fetch('', bszTag.texts).then(() => 0)`, nil)

	w.Close() // also adds up the remaining tags
	assert.Equal(t, []string{"example.com news.example 1", "example.com/me news.example 1", "example.com/one news.example 1",
		"example.com/theme news.example 1"}, desk.Column[string](t, w.Desk, `
		SELECT format('%s %s %s', p.uri, t.value, d.pv) FROM footfall.tag_days d JOIN footfall.tags t ON t.id = d.tag_id
		JOIN footfall.pages p ON p.id = d.page_id
		WHERE t.name = 'source' ORDER BY 1`))
}

// A page that a browser prerenders is counted when it is shown, and not before.
func TestChromiumPrerenders(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	click := make(chan struct{})
	w.gates["/click"] = click
	w.pages["example.com/"] = `<script type="speculationrules">{"prerender": [{"urls": ["/ahead"], "eagerness": "immediate"}]}</script>
		<script>fetch('/click').then(() => { location.href = '/ahead' })</script>`
	// A script that does not wait is not counted: its request reports that it is too early.
	w.pages["example.com/ahead"] = embed.Line(w.public, "shop") + `<script>
		document.addEventListener('footfall', e => tell({Ahead: document.prerendering, Hot: e.detail.page.hot}))
		addEventListener('load', () => fetch('` + w.public +
		`/visit?app=shop&uri=http://example.com/hasty').then(() => tell({Ahead: document.prerendering})))
	</script>`
	w.open(t, "http://example.com/")
	var seen struct {
		Ahead bool
		Hot   int64
	}
	w.hear(t, &seen)
	require.True(t, seen.Ahead, "Chromium prerenders")
	assert.Zero(t, w.rows())
	close(click)
	w.hear(t, &seen)
	assert.False(t, seen.Ahead)
	assert.Equal(t, int64(1), seen.Hot)
	assert.Equal(t, int64(1), w.counted(t, "ahead"))
	assert.Zero(t, w.counted(t, "hasty"))
}

// The script is small and public, and has cache headers and an ETag for each encoding.
func TestScript(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	assert.LessOrEqual(t, len(embed.Count.Gzipped), 3400, "readers load it")
	unpacked, err := gzip.NewReader(bytes.NewReader(embed.Count.Gzipped))
	require.NoError(t, err)
	plain, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	assert.Equal(t, string(embed.Count.Plain), string(plain))
	for path, cache := range map[string]string{
		"/count.js": "public, max-age=3600", "/count." + embed.Version + ".js": "public, max-age=31536000, immutable",
		"/count.000000000000.js": "public, max-age=3600",
	} {
		p := newPerson(e)
		a := p.do(http.MethodGet, path, nil, "Accept-Encoding", "identity")
		assert.Equal(t, http.StatusOK, a.status)
		assert.Equal(t, string(embed.Count.Plain), a.body)
		for name, value := range map[string]string{
			"Cache-Control": cache, "Content-Type": "text/javascript; charset=utf-8", "Access-Control-Allow-Origin": "*",
			"Cross-Origin-Resource-Policy": "cross-origin", "X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding",
		} {
			assert.Equal(t, value, a.header.Get(name), "%s of %s", name, path)
		}
		small := p.do(http.MethodGet, path, nil, "Accept-Encoding", "gzip, br")
		assert.Equal(t, "gzip", small.header.Get("Content-Encoding"))
		assert.Equal(t, strconv.Itoa(len(embed.Count.Gzipped)), small.header.Get("Content-Length"))
		assert.NotEqual(t, a.header.Get("Etag"), small.header.Get("Etag"))
		assert.Equal(t, http.StatusNotModified, p.do(http.MethodGet, path, nil, "Accept-Encoding", "identity", "If-None-Match",
			a.header.Get("Etag")).status)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, e.do(http.MethodPost, e.public+"/count.js", "", "").status)
	for _, word := range []string{"innerHTML", "insertAdjacentHTML", "document.write", "eval(", "cookie", "sessionStorage", "//", "\t"} {
		assert.NotContains(t, string(embed.Count.Plain)+string(embed.Busuanzi.Plain), word)
	}
}
