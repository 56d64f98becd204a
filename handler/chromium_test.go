package handler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/visit"
)

// snippet is what docs/embed.md says to put into a page, for app shop of a service.
func snippet(t *testing.T, service string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/embed.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```html\n(.*?)```").FindAllSubmatch(text, -1)
	require.Len(t, blocks, 1, "docs/embed.md shows one snippet")
	html := string(blocks[0][1])
	for placeholder, ours := range map[string]string{"https://count.example/": service + "/", "app=blog&": "app=shop&"} {
		require.Equal(t, 1, strings.Count(html, placeholder), placeholder)
		html = strings.Replace(html, placeholder, ours, 1)
	}
	return html
}

// shown is what a reader of the snippet's page sees.
type shown struct {
	Hidden  bool
	Numbers map[string]string // by what data-footfall says
}

// look defines what tells it, and calls then when the numbers appear.
const look = `<script>
	const line = document.getElementById('footfall')
	const shown = () => ({Hidden: line.hidden,
		Numbers: Object.fromEntries([...document.querySelectorAll('[data-footfall]')].map(e => [e.dataset.footfall, e.textContent]))})
	const appear = then => new MutationObserver(then).observe(line, {attributes: true})
</script>
`

// assertShown compares the numbers in a page with those of an answer.
func assertShown(t *testing.T, site, page visit.Counts, got shown) {
	t.Helper()
	assert.False(t, got.Hidden)
	want := map[string]string{}
	for target, n := range map[string]visit.Counts{"site": site, "page": page} {
		for number, value := range map[string]int64{"pv": n.PV, "uv": n.UV, "rank": n.Rank, "hot": n.Hot} {
			want[target+"."+number] = strconv.FormatInt(value, 10)
		}
	}
	assert.Greater(t, len(got.Numbers), 3)
	assert.Subset(t, want, got.Numbers)
}

func TestChromiumShowsNumbers(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	w.pages["example.com/hello"] = snippet(t, w.public) + look + `<script>
		appear(async () => {
			await tell(shown())
			if (sessionStorage.reloaded) return
			sessionStorage.reloaded = 'yes'
			location.reload()
		})
	</script>`
	w.open(t, browser, "http://example.com/hello?from=mail&to=me#notes")
	var first, reloaded shown
	w.hear(t, &first)
	assertShown(t, counts(1, 1, 1, 1), counts(1, 1, 1, 1), first)
	w.hear(t, &reloaded)
	assertShown(t, counts(1, 1, 1, 2), counts(1, 1, 1, 2), reloaded)
	assert.Equal(t, []string{"127.0.0.1"}, w.visitors(t))
}

func TestChromiumWithoutAPersonIsABot(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	w.pages["example.com/"] = snippet(t, w.public) + look + `<script>
		appear(async () => {
			tell(shown())
			const again = await fetch('` + w.public + `/visit?app=shop&uri=http://example.com/')
			tell({Agent: navigator.userAgent, Skipped: again.headers.get('` + skippedHeader + `')})
		})
	</script>`
	w.open(t, "", "http://example.com/")
	var seen shown
	w.hear(t, &seen)
	var said struct{ Agent, Skipped string }
	w.hear(t, &said)
	require.Contains(t, said.Agent, "HeadlessChrome")
	assert.Equal(t, string(visit.SkippedBot), said.Skipped, "%s, which a page may read", skippedHeader)
	assertShown(t, counts(0, 0, 0, 0), counts(0, 0, 0, 0), seen)
	assert.Zero(t, w.rows())
}

func TestChromiumCountsRoutes(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	w.pages["example.com/"] = snippet(t, w.public) + look + `<script>
		addEventListener('hashchange', footfall)
		const routes = ['#/cart', '#!pay', '#/cart']
		appear(async () => {
			if (line.hidden) return
			await tell(shown())
			line.hidden = true
			if (routes.length) location.hash = routes.shift()
		})
	</script>`
	w.open(t, browser, "http://example.com/")
	for i, page := range []visit.Counts{counts(1, 1, 1, 1), counts(1, 1, 1, 1), counts(1, 1, 1, 1), counts(1, 1, 1, 2)} {
		var seen shown
		w.hear(t, &seen)
		assertShown(t, counts(1, 1, 1, int64(i+1)), page, seen)
	}
	assert.Equal(t, int64(1), w.counted(t, ""))
	assert.Equal(t, int64(2), w.counted(t, "%23/cart"))
	assert.Equal(t, int64(1), w.counted(t, "%23!pay"))
}

// An answer that comes after the reader went on does not replace the numbers of where they are.
func TestChromiumShowsWhereTheReaderIs(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	w.pages["example.com/slow"] = `<script>
		const ask = fetch
		let release
		const held = new Promise(done => { release = done })
		fetch = async (...asked) => {
			const answer = await ask(...asked)
			if (asked[0].endsWith('slow')) await held
			return answer
		}
	</script>` + snippet(t, w.public) + look + `<script>
		addEventListener('load', async () => {
			const late = footfall()
			location.hash = '#/on'
			for (let i = 0; i < 3; i++) await footfall()
			release()
			await late
			tell(shown())
		})
	</script>`
	w.open(t, browser, "http://example.com/slow")
	var seen shown
	w.hear(t, &seen)
	assert.Equal(t, "3", seen.Numbers["page.hot"])
	assert.Equal(t, int64(2), w.counted(t, "slow"))
}

// What a browser loads ahead is counted when somebody sees it, and not before.
func TestChromiumPrerenders(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	click := make(chan struct{})
	w.gates["/click"] = click
	w.pages["example.com/"] = `<script type="speculationrules">{"prerender": [{"urls": ["/ahead"], "eagerness": "immediate"}]}</script>
		<script>fetch('/click').then(() => { location.href = '/ahead' })</script>`
	// A script that does not wait is not counted at all: its request says that it comes too early.
	w.pages["example.com/ahead"] = snippet(t, w.public) + look + `<script>
		appear(() => tell({Ahead: document.prerendering, ...shown()}))
		fetch('` + w.public + `/visit?app=shop&uri=http://example.com/hasty').then(() => tell({Ahead: document.prerendering, ...shown()}))
	</script>`
	w.open(t, browser, "http://example.com/")
	var seen struct {
		Ahead bool
		shown
	}
	w.hear(t, &seen)
	require.True(t, seen.Ahead, "Chromium prerenders")
	assert.True(t, seen.Hidden)
	assert.Zero(t, w.rows())
	close(click)
	w.hear(t, &seen)
	assert.False(t, seen.Ahead)
	assertShown(t, counts(1, 1, 1, 1), counts(1, 1, 1, 1), seen.shown)
	assert.Equal(t, int64(1), w.counted(t, "ahead"))
	assert.Zero(t, w.counted(t, "hasty"))
}

func TestChromiumKeepsThePageWhole(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	cases := map[string]struct {
		service, connect string
		counted          int64
	}{
		"allowed":   {w.public, w.public, 1},
		"forbidden": {w.public, "", 0},
		"offline":   {gone.URL, gone.URL, 0},
		"refused":   {w.public + "/nowhere", w.public, 0},
	}
	var pages []string
	for path, c := range cases {
		pages = append(pages, "http://example.com/"+path)
		w.pages["example.com/"+path] = `<meta http-equiv="Content-Security-Policy" content="default-src 'self' 'unsafe-inline'; connect-src 'self' ` +
			c.connect + `">` + snippet(t, c.service) + look + `<script>
				footfall().then(() => setTimeout(async () => {
					await tell({Path: location.pathname.slice(1), ...shown()})
					location.href = '/next'
				}))
			</script>`
	}
	w.open(t, browser, pages...)
	for range cases {
		var seen struct {
			Path string
			shown
		}
		w.hear(t, &seen)
		c, found := cases[seen.Path]
		require.True(t, found, seen.Path)
		assert.Equal(t, c.counted == 0, seen.Hidden, seen.Path)
		assert.Equal(t, 2*c.counted, w.counted(t, seen.Path), "%s: asked for twice", seen.Path)
	}
}

// attempt is what a page tries. S is the service, U the uri of a page of example.com, and read
// makes text of an answer.
type attempt struct {
	name, script, says string
	hot                int64
}

// What a page can do whose site app shop counts.
var listedAttempts = []attempt{
	{"visit", `fetch(S + '/visit?app=shop&uri=' + U).then(read)`, "200 hot 1", 1},
	{"post", `fetch(S + '/visit', json({app: 'shop', uri: U})).then(read)`, "200 hot 1", 1},
	{"counts", `fetch(S + '/counts?app=shop&uri=' + U).then(read)`, "200 hot 0", 0},
	{"bad-uri", `fetch(S + '/visit?app=shop&uri=ftp:' + U).then(read)`, "400 uri: it does not begin with http", 0},
	{"other-site", `fetch(S + '/visit?app=shop&uri=http://other.example/').then(read)`, "403 uri: app shop does not count the site other.example", 0},
	{"asserted-ip", `fetch(S + '/visit?app=shop&ip=192.0.2.1&uri=' + U).then(read)`, "403 ip: app shop believes it", 0},
	{"key", `fetch(S + '/visit?app=shop&uri=' + U, {headers: {Authorization: 'Bearer footfall_key'}}).then(read)`, "TypeError", 0},
	// The browser sends this one and then keeps the answer from the page; before a POST it asks.
	{"cookies", `fetch(S + '/visit?app=shop&uri=' + U, {credentials: 'include'}).then(read)`, "TypeError", 1},
	{"cookies-post", `fetch(S + '/visit', {credentials: 'include', ...json({app: 'shop', uri: U})}).then(read)`, "TypeError", 0},
	{"prefetch", `put('link', {rel: 'prefetch', href: S + '/visit?app=shop&uri=' + U})`, "", 0},
	{"image", `put('img', {src: S + '/visit?app=shop&uri=' + U})`, "error", 1}, // for pages without scripts
	{"no-cors", `fetch(S + '/visit?app=shop&uri=' + U, {mode: 'no-cors'}).then(r => r.type)`, "opaque", 1},
}

// What one can do whose site it does not count.
var unlistedAttempts = []attempt{
	{"visit", `fetch(S + '/visit?app=shop&uri=' + U).then(read)`, "TypeError", 0},
	{"post", `fetch(S + '/visit', json({app: 'shop', uri: U})).then(read)`, "TypeError", 0},
	{"counts", `fetch(S + '/counts?app=shop&uri=' + U).then(read)`, "TypeError", 0},
	{"own-uri", `fetch(S + '/visit?app=shop&uri=' + encodeURIComponent(location.href)).then(read)`, "TypeError", 0},
	{"form", `fetch(S + '/visit', {mode: 'no-cors', method: 'POST', body: JSON.stringify({app: 'shop', uri: U})}).then(r => r.type)`, "opaque", 0},
	{"no-origin", `new Promise(done => {
		addEventListener('message', said => done(said.data), {once: true})
		put('iframe', {sandbox: 'allow-scripts', srcdoc: '<script>fetch("' + S + '/visit?app=shop&uri=' + U +
			'").then(() => parent.postMessage("read", "*"), e => parent.postMessage(e.name, "*"))<\/script>'})
	})`, "TypeError", 0},
	{"prefetch", `put('link', {rel: 'prefetch', href: S + '/visit?app=shop&uri=' + U})`, "", 0},
	// What the browser sends without an Origin.
	{"image", `put('img', {src: S + '/visit?app=shop&uri=' + U})`, "error", 0},
	{"image-without-referrer", `put('img', {referrerPolicy: 'no-referrer', src: S + '/visit?app=shop&uri=' + U})`, "error", 0},
	{"frame", `put('iframe', {src: S + '/visit?app=shop&uri=' + U})`, "load", 0},
	{"no-cors", `fetch(S + '/visit?app=shop&uri=' + U, {mode: 'no-cors'}).then(async r => r.type + (await r.text()))`, "opaque", 0},
}

// attempting makes all attempts one after the other, and tells what each has learnt.
func attempting(service string, attempts []attempt) string {
	page := new(strings.Builder)
	fmt.Fprintf(page, `<script>
		const S = %q, learnt = {}
		const json = body => ({method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)})
		const read = async r => { const a = await r.json(); return r.status + ' ' + (a.error || 'hot ' + a.page.hot) }
		const put = (tag, attributes) => new Promise(done => {
			const e = Object.assign(document.createElement(tag), attributes)
			e.onload = e.onerror = event => done(event.type)
			document.head.append(e)
		})
		const run = async (name, attempt) => { learnt[name] = await attempt('http://example.com/' + location.host + '/' + name).catch(e => e.name) }
		addEventListener('load', async () => {
	`, service)
	for _, a := range attempts {
		fmt.Fprintf(page, "await run(%q, U => %s)\n", a.name, a.script)
	}
	page.WriteString("await tell({Host: location.host, Learnt: learnt})\nlocation.href = '/next'\n})</script>")
	return page.String()
}

func TestChromiumKeepsSitesApart(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	cases := map[string][]attempt{
		"example.com":    listedAttempts,
		"example.com:81": unlistedAttempts,
		"a.example.com":  unlistedAttempts,
		"other.example":  unlistedAttempts,
	}
	var pages []string
	for host, attempts := range cases {
		pages = append(pages, "http://"+host+"/")
		w.pages[host+"/"] = attempting(w.public, attempts)
	}
	w.open(t, browser, pages...)
	for range cases {
		var told struct {
			Host   string
			Learnt map[string]string
		}
		w.hear(t, &told)
		require.Contains(t, cases, told.Host)
		for _, a := range cases[told.Host] {
			assert.Contains(t, told.Learnt[a.name], a.says, "%s: %s", told.Host, a.name)
			assert.Equal(t, a.hot, w.counted(t, told.Host+"/"+a.name), "%s: %s", told.Host, a.name)
		}
	}
	metrics := w.do(http.MethodGet, w.admin+"/metrics", "", "").body
	assert.True(t, strings.Contains(metrics, `footfall_visits_skipped_total{reason="prefetch"} 1`), "that of the listed page")
	assert.Equal(t, []string{"127.0.0.1"}, w.visitors(t))
}

// A script in an address does not run in the answer, even if the answer is opened as a page.
func TestChromiumRunsNoScriptOfAnAddress(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	const script = `<script>fetch('http://example.com/told', {method: 'POST', mode: 'no-cors', body: JSON.stringify(location.host)})</script>`
	counted, refused := "/visit?app=shop&uri="+url.QueryEscape("http://example.com/"+script), "/visit?uri=a&app="+url.QueryEscape(script)
	w.pages["example.com/control"] = script
	w.pages["example.com/"] = `<iframe src="` + w.public + counted + `"></iframe><iframe src="` + w.public + refused + `"></iframe>
		<script>addEventListener('load', () => { location.href = '/control' })</script>`
	w.open(t, browser, "http://example.com/")
	var ran string
	w.hear(t, &ran)
	assert.Equal(t, "example.com", ran, "where the text is HTML it does run, and nowhere else")
	assert.Equal(t, int64(1), w.counted(t, url.QueryEscape(script)))
	for _, path := range []string{counted, refused} {
		a := w.get(path)
		assert.Equal(t, "application/json", a.header.Get("Content-Type"))
		assert.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
		assert.NotContains(t, a.body, "<")
	}
}
