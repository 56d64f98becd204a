package handler

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/embed"
)

// newBusuanziInternet has the service at busuanzi's host, and at count.example. All other hosts serve files.
func newBusuanziInternet(t *testing.T, files map[string]string) *internet {
	t.Helper()
	w := newInternet(newEdge(t))
	proxy := w.proxy()
	w.rest = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		file, found := files[r.URL.Path]
		switch {
		case r.Host == "count.example" || r.Host == "busuanzi.ibruce.info":
			proxy.ServeHTTP(out, r)
		case strings.HasPrefix(r.URL.Path, "/numbers/"): // like a reverse proxy of a site's own web server
			http.StripPrefix("/numbers", proxy).ServeHTTP(out, r)
		case found:
			out.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(out, file)
		case r.URL.Path != "/favicon.ico":
			http.NotFound(out, r)
		}
	})
	return w
}

// places contains the elements for numbers in all forms: with the ids of busuanzi, of soxft's and of Vercount, and
// with classes.
const places = `
	<p id="busuanzi_container_site_pv" style="display: none">visits <span id="busuanzi_value_site_pv">…</span></p>
	<p class="busuanzi_container_site_uv" style="display: none">visitors <b class="busuanzi_value_site_uv"></b></p>
	<p class="busuanzi_container_site_uv" style="display: none">again <b class="busuanzi_value_site_uv"></b></p>
	<p>page <span id="busuanzi_page_pv"><i class="spinner"></i></span>, by <span id="busuanzi_page_uv"></span></p>
	<p id="vercount_container_page_pv" style="display: none">Vercount <span id="vercount_value_page_pv"></span></p>
	<p id="neighbour" style="display: none">hidden</p>
`

// In a page, until waits for a condition, and text returns the visible text.
const watching = `<script>
	const until = async test => { while (!test()) await new Promise(done => setTimeout(done, 10)) }
	const text = () => document.body.innerText.replace(/\s+/g, ' ').trim()
</script>`

// TestBusuanziInChromium shows pages made for busuanzi to one browser.
func TestBusuanziInChromium(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/original.js": fromNPM(t, "busuanzi.pure.js", "busuanzi.pure.js"),
		"/react.js":    `export const useState = v => [v, now => { self.seen = now }], useRef = current => ({current}), useEffect = run => run()`,
	}
	w := newBusuanziInternet(t, files)
	files["/vercount.js"] = strings.ReplaceAll(fromNPM(t, "vercount-react", "dist/index.js"), "https://events.vercount.one", w.public)
	page := func(at string, parts ...string) string {
		w.put(at, watching+strings.Join(parts, ""))
		return "http://" + at
	}
	line := `<script async src="http://count.example` + embed.BusuanziPath + `"></script>`
	b := w.drive(t)
	sees := func(t *testing.T, said string) {
		t.Helper()
		b.ask(fmt.Sprintf(`until(() => text() == %q)`, said), nil)
	}

	t.Run("our script", func(t *testing.T) {
		b.open(page("example.com/ours", line, places))
		sees(t, "visits 1 visitors 1 again 1 page 1, by 1 Vercount 1")
		assert.Equal(t, int64(1), w.counted(t, "ours"))
		var display []string
		b.ask(`[...document.querySelectorAll('p')].map(p => p.style.display)`, &display)
		assert.Equal(t, []string{"inline", "inline", "inline", "", "inline", "none"}, display)
	})
	t.Run("the functions that pages call after a change", func(t *testing.T) {
		b.ask(`history.pushState(0, '', '/ours/next'); bszCaller.fetch('//busuanzi.ibruce.info/busuanzi?jsonpCallback=BusuanziCallback', `+
			`told => { bszTag.texts(told); bszTag.shows() }); 0`, nil)
		sees(t, "visits 2 visitors 1 again 1 page 1, by 1 Vercount 1")
		b.ask(`bszTag.hides()`, nil)
		sees(t, "page 1, by 1")
		b.ask(`bszTag.shows()`, nil)
		sees(t, "visits 2 visitors 1 again 1 page 1, by 1 Vercount 1")
		assert.Equal(t, int64(1), w.counted(t, "ours/next"))
		// Like themes that run their scripts again.
		b.ask(`history.pushState(0, '', '/ours/last'); document.body.append(Object.assign(document.createElement('script'), {src: `+
			`'http://count.example`+embed.BusuanziPath+`'})); 0`, nil)
		sees(t, "visits 3 visitors 1 again 1 page 1, by 1 Vercount 1")
		assert.Equal(t, int64(1), w.counted(t, "ours/last"))
	})
	t.Run("our script as a module, below the site itself, and without a place", func(t *testing.T) {
		b.open(page("example.com/module", strings.Replace(line, "async", `type="module"`, 1), places))
		sees(t, "visits 4 visitors 1 again 1 page 1, by 1 Vercount 1")
		b.open(page("example.com/below", strings.Replace(line, "http://count.example", "/numbers", 1), places))
		sees(t, "visits 5 visitors 1 again 1 page 1, by 1 Vercount 1")
		b.open(page("example.com/bare", line))
		b.ask(`until(() => self.bszTag)`, nil)
	})
	t.Run("our script under a policy", func(t *testing.T) {
		policy := `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src ` +
			`'unsafe-inline' http://count.example; connect-src http://count.example; require-trusted-types-for 'script'; trusted-types 'none'">`
		b.open(page("example.com/policy", policy, line, places))
		b.ask(`until(() => text().includes('page 1, by 1'))`, nil)
		assert.Empty(t, b.console)
	})
	t.Run("a page of another site", func(t *testing.T) {
		before := w.rows()
		b.open(page("other.example/", line, places))
		b.ask(`until(() => document.getElementById('busuanzi_container_site_pv').style.display == 'none' && self.bszTag)`, nil)
		for len(b.spoken) == 0 {
			b.ask(`0`, nil)
		}
		assert.Equal(t, "warning: footfall: http://count.example/busuanzi gives no numbers: uri: no app lists the site other.example: the "+
			"operator of an app can add the site to it", b.spoken[0])
		assert.Equal(t, before, w.rows())
		b.spoken, b.console = nil, nil
	})
	t.Run("tabs that nobody looks at", func(t *testing.T) {
		b.open(page("example.com/hidden", `<script>Object.defineProperty(document, 'hidden', {get: () => self.away ?? true})</script>`, line,
			places))
		b.ask(`until(() => self.bszCaller)`, nil)
		b.ask(`history.pushState(0, '', '/hidden/on'); bszCaller.fetch('', bszTag.texts); new Promise(done => setTimeout(done))`, nil)
		b.ask(`away = false; document.dispatchEvent(new Event('visibilitychange')); until(() => text().includes('page 1, by 1'))`, nil)
		assert.Zero(t, w.counted(t, "hidden"))
		assert.Equal(t, int64(1), w.counted(t, "hidden/on"))
	})
	t.Run("the original's script", func(t *testing.T) { tryOriginal(t, w, b, files["/original.js"], page) })
	t.Run("busuanzi.cc's script and calls", func(t *testing.T) { tryBusuanziCC(t, w, b, page) })
	t.Run("the requests of soxft's script", func(t *testing.T) { trySoxft(t, w, b, page) })
	t.Run("a component for Vercount", func(t *testing.T) {
		if files["/vercount.js"] == "" {
			return
		}
		b.open(page("example.com/vercount", `<script>HTMLCanvasElement.prototype.getContext = () => null // it looks at WebGL, which takes `+
			`seconds here</script>
			<script type="importmap">{"imports": {"react": "/react.js"}}</script>
			<script type="module">import {useVercount} from '/vercount.js'; useVercount()</script>`))
		b.ask(`until(() => self.seen?.pagePv == 1)`, nil)
		assert.Equal(t, int64(1), w.counted(t, "vercount"))
	})
	// the requests refused above
	b.console = slices.DeleteFunc(b.console, func(fault string) bool { return strings.Contains(fault, `"source":"network"`) })
	assert.Empty(t, b.console)
	assert.Empty(t, b.spoken)
}

// tryOriginal runs busuanzi's own script, which calls a host that no longer exists. Here the service responds under that host's
// name.
func tryOriginal(t *testing.T, w *internet, b *devtools, script string, page func(string, ...string) string) {
	if script == "" {
		return
	}
	before := w.siteHot(t)
	open := func(at, policy string) {
		b.open(page(at, policy, `<script>module = {}</script><script src="/original.js"></script>
			<p id="busuanzi_container_page_pv" style="display: none">page <b id="busuanzi_value_page_pv"></b></p><p>site <b `+
			`id="busuanzi_value_site_pv"></b>, <b id="busuanzi_value_site_uv"></b></p>`))
	}
	open("example.com/original", `<meta name="referrer" content="no-referrer-when-downgrade">`)
	b.ask(fmt.Sprintf(`until(() => text() == 'page 1 site %d, 1')`, before+1), nil)
	assert.Equal(t, int64(1), w.counted(t, "original"))
	// If the browser cuts its Referer, as it does by default, all pages count as one.
	open("example.com/original/cut", "")
	b.ask(fmt.Sprintf(`until(() => text() == 'page 1 site %d, 1')`, before+2), nil)
	assert.Zero(t, w.counted(t, "original/cut"))
	assert.Equal(t, int64(1), w.counted(t, ""))
	b.ask(`document.querySelector('meta[name=referrer]') ?? document.head.insertAdjacentHTML('beforeend', '<meta name="referrer" `+
		`content="no-referrer-when-downgrade">'); history.pushState(0, '', '/original/on'); module.exports.fetch()`, nil)
	b.ask(fmt.Sprintf(`until(() => text() == 'page 1 site %d, 1')`, before+3), nil)
	assert.Equal(t, int64(1), w.counted(t, "original/on"))
	stranger := w.rows()
	for _, at := range []string{"other.example/original", "example.com/original/hides"} {
		policy := `<meta name="referrer" content="no-referrer-when-downgrade">`
		if strings.HasSuffix(at, "hides") {
			policy = `<meta name="referrer" content="no-referrer">`
		}
		open(at, policy)
		var read string
		b.ask(`text()`, &read)
		assert.Equal(t, "site ,", read, at)
	}
	assert.Equal(t, stranger, w.rows())
	b.console = nil // of the refused scripts
}

// trySoxft sends the requests of the script of github.com/soxft/busuanzi, which is in no package, also with an
// identity that its own service has issued.
func trySoxft(t *testing.T, w *internet, b *devtools, page func(string, ...string) string) {
	for _, identity := range []string{"", "eyJhbGciOiJIUzI1NiJ9.eyJ1IjoiMSJ9.x"} {
		hot := w.counted(t, "soxft")
		b.open(page("example.com/soxft", `<b id="busuanzi_page_pv"></b> <b id="busuanzi_page_uv"></b><script>
			const call = new XMLHttpRequest
			call.open('POST', 'http://count.example/busuanzi/api')
			if ('`+identity+`') call.setRequestHeader('Authorization', 'Bearer `+identity+`')
			call.setRequestHeader('x-bsz-referer', location.href)
			call.onload = () => {
				const told = JSON.parse(call.responseText)
				if (told.success !== true) throw told.message
				for (const name of ['page_pv', 'page_uv']) document.getElementById('busuanzi_' + name).innerHTML = told.data[name]
				identity = call.getResponseHeader('Set-Bsz-Identity')
			}
			call.send()
		</script>`))
		b.ask(fmt.Sprintf(`until(() => text() == '%d 1')`, hot+1), nil)
		var given bool
		b.ask(`identity != null`, &given)
		assert.False(t, given)
	}
}

// tryBusuanziCC shows pages with the line of busuanzi.cc, and a page that calls it by itself.
func tryBusuanziCC(t *testing.T, w *internet, b *devtools, page func(string, ...string) string) {
	t.Helper()
	const line = `<script src="http://count.example/busuanzi/3.6.9/busuanzi.min.js" defer></script>`
	const spans = `<i id="busuanzi_today_pv">…</i>-<i id="busuanzi_today_uv"></i>-<i id="busuanzi_site_pv"></i>-` +
		`<i id="busuanzi_site_uv"></i>-<i id="busuanzi_page_pv"></i>-<i id="busuanzi_page_uv"></i>`
	at := page("example.com/cc", line, spans, line) // a second line in the same document counts nothing
	b.open(at)
	b.await(`text().endsWith('-1-1')`)
	assert.Equal(t, int64(1), w.counted(t, "cc"))
	b.open(at)
	b.await(`text().endsWith('-2-1')`)
	assert.Equal(t, int64(2), w.counted(t, "cc"))
	var told string
	b.ask(`text()`, &told)
	site := w.siteHot(t)
	assert.Equal(t, fmt.Sprintf("%d-1-%[1]d-1-2-1", site), told, "all visits are from today, by one visitor")
	b.ask(`delete busuanziRequestSent; history.pushState(0, '', '/cc/next'); document.head.append(Object.assign(document.createElement(`+
		`'script'), {src: document.querySelector('script[src]').src})); 0`, nil)
	b.await(`text().endsWith('-1-1')`)
	assert.Equal(t, int64(1), w.counted(t, "cc/next"))

	b.open(page("example.com/route", spans, `<script>
		const call = more => fetch('http://count.example/api.php', {method: 'POST', body: JSON.stringify({url: location.href, referrer: ''}), `+
		`credentials: 'omit', ...more}).then(a => a.json()).then(all => {
			for (const id in all) document.getElementById(id).innerText = all[id]
		})
		call()
	</script>`))
	b.await(`text().endsWith('-1-1')`)
	b.ask(`history.pushState(0, '', '/route/2'); call({headers: {'Content-Type': 'application/json'}})`, nil)
	b.ask(`history.pushState(0, '', '/route/3'); call({referrerPolicy: 'no-referrer'})`, nil)
	assert.Equal(t, site+4, w.siteHot(t))
	for _, route := range []string{"route", "route/2", "route/3"} {
		assert.Equal(t, int64(1), w.counted(t, route), route)
	}
	b.ask(`text()`, &told)
	assert.Equal(t, fmt.Sprintf("%d-1-%[1]d-1-1-1", site+4), told)
}

// TestThemesInChromium shows blogs with real themes whose settings name the service as the host of busuanzi: the
// numbers appear, and the rest of a page is unchanged.
func TestThemesInChromium(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("making the blogs takes half a minute; TestBusuanziInChromium has pages like theirs")
	}
	made, err := exec.Command("../scripts/fetch-themes").Output()
	require.NoError(t, err, "scripts/fetch-themes")
	settings, err := os.ReadFile("../scripts/fetch-themes")
	require.NoError(t, err)
	text, err := os.ReadFile("../docs/embed.md")
	require.NoError(t, err)
	for line := range strings.Lines(regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(string(text))[1]) {
		if line[0] != '#' {
			assert.Contains(t, string(settings), strings.ReplaceAll(line, "https:", "http:"), "the documented settings are those that are tried")
		}
	}
	w := newBusuanziInternet(t, nil)
	toService := w.rest
	w.rest = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		theme, of := strings.CutSuffix(r.Host, ".example")
		if !of || theme == "count" {
			toService.ServeHTTP(out, r)
			return
		}
		http.StripPrefix("/", http.FileServer(http.Dir(strings.TrimSpace(string(made))+"/"+theme))).ServeHTTP(out, r)
	})
	themes := []string{"next", "butterfly", "fluid"}
	w.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.AddApp(ctx, "blog", app.Settings{Sites: []string{"next.example", "butterfly.example", "fluid.example"},
			PublicCounts: ptr("read")})
	})
	b := w.drive(t)
	for _, theme := range themes {
		t.Run(theme, func(t *testing.T) {
			site := "http://" + theme + ".example"
			value := func(name string) string {
				var text string
				b.ask(`(async () => {
					const place = () => document.getElementById('busuanzi_value_`+name+`')
					while (!/^\d+$/.test(place()?.textContent)) await new Promise(done => setTimeout(done, 10))
					return place().offsetParent ? place().innerText : 'out of sight'
				})()`, &text)
				return text
			}
			b.open(site + "/hello/")
			assert.Equal(t, "1", value("page_pv"))
			b.open(site + "/hello/")
			assert.Equal(t, "2", value("page_pv"))
			b.open(site + "/")
			assert.Equal(t, "3", value("site_pv"))
			assert.Equal(t, "1", value("site_uv"))
			var others []string
			b.ask(`(async () => {
				const changes = []
				const watch = new MutationObserver(all => changes.push(...all))
				let told
				await new Promise(done => bszCaller.fetch('', answer => { told = answer; done() }))
				watch.observe(document, {subtree: true, childList: true, attributes: true, characterData: true})
				bszTag.texts(told)
				bszTag.shows()
				changes.push(...watch.takeRecords())
				watch.disconnect()
				if (!changes.length) return ['nothing']
				return changes.map(c => c.target.id || c.target.parentElement?.id || c.target.tagName).filter(id => `+
				`!/^busuanzi_(value|container)_(site|page)_[pu]v$/.test(id))
			})()`, &others)
			assert.Empty(t, others)
		})
	}
}
