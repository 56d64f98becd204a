package handler

import (
	"bytes"
	"fmt"
	"footfall/counter"
	"footfall/db/dbtest"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// driving is what a person does with the page. It is loaded as the page's own script is, under the
// page's own rules.
const driving = `
const tell = what => fetch('/told', {method: 'POST', body: JSON.stringify(what)})
const violations = []
addEventListener('error', e => tell('fault: ' + e.message))
addEventListener('unhandledrejection', e => tell('fault: ' + e.reason))
document.addEventListener('securitypolicyviolation', e => violations.push(e.violatedDirective + ' ' + e.blockedURI))
const until = async (what, test) => {
	for (let i = 0; i < 1000; i++) {
		const found = test()
		if (found) return found
		await new Promise(done => setTimeout(done, 20))
	}
	throw new Error('there is no ' + what)
}
// send fills a form, sends it, and says what the page shows then.
const send = async (call, values) => {
	const form = await until('form of ' + call, () => document.getElementById(call))
	const out = form.nextElementSibling
	form.parentElement.open = true
	form.reset()
	for (const [name, value] of Object.entries(values)) form.elements[name].value = value
	out.replaceChildren()
	form.querySelector('button').click()
	return shown(out, await until('answer to ' + call, () => out.querySelector('pre')))
}
const shown = (out, pre) => ({
	asked: out.querySelector('code').textContent,
	status: out.querySelectorAll('p')[1].textContent,
	said: [...out.querySelectorAll('p')].map(p => p.textContent).slice(2).join(),
	text: pre.textContent,
	cells: [...out.querySelectorAll('td')].map(td => td.textContent),
	bars: [...out.querySelectorAll('svg rect')].map(bar => Number(bar.getAttribute('height'))),
	more: [...out.querySelectorAll('button')].map(button => button.textContent),
})
const next = async call => {
	const out = document.getElementById(call).nextElementSibling
	const before = out.querySelector('pre')
	out.querySelector('button').click()
	return shown(out, await until('next part', () => out.querySelector('pre') !== before && out.querySelector('pre')))
}
addEventListener('load', async () => {
	const R = 'GET /api/apps/{app}/'
	const learnt = {}
	await until('form', () => document.querySelector('form'))
	learnt.calls = [...document.querySelectorAll('form')].map(form => form.getAttribute('id'))
	learnt.filled = [...document.querySelectorAll('input')].filter(input => input.value || input.placeholder).map(input => input.name)
	learnt.visit = await send('GET /visit', {app: 'demo', ip: '192.0.2.1', uri: 'http://hhui.top/<b>bold</b>'})
	learnt.post = await send('POST /visit', {app: 'demo', ip: '192.0.2.2', uri: 'http://hhui.top/<b>bold</b>'})
	learnt.many = await send('POST /visits', {app: 'demo', body: '[{"uri":"http://many.example/","ip":"192.0.2.1"}]'})
	learnt.counts = await send('POST /counts', {app: 'demo', uris: 'http://many.example/ /'})
	learnt.pages = await send(R + 'pages', {app: 'demo', order: 'uri', limit: '2'})
	learnt.stored = [...document.getElementById(R + 'pages').nextElementSibling.querySelectorAll('td[title]')].map(td => td.title)
	learnt.rest = await next(R + 'pages')
	learnt.days = await send(R + 'days', {app: 'demo', site: 'hhui.top'})
	learnt.gaps = await send(R + 'days', {app: 'demo', site: 'hhui.top', from: '20190628', to: '2019-07-03'})
	learnt.gone = await send(R + 'visitors', {app: 'demo', site: 'hhui.top', day: '20190629'})
	learnt.nobody = await send(R + 'visitors', {app: 'demo', site: 'hhui.top', day: '20190628'})
	learnt.group = await send(R + 'uniques', {app: 'demo', site: 'hhui.top a.example', from: '20190630'})
	learnt.csv = await send(R + 'sites', {app: 'demo', format: 'csv'})
	learnt.wrong = await send(R + 'days', {app: '../<i>', site: 'hhui.top'})
	learnt.closed = await send(R + 'sites', {app: 'shop'})
	document.getElementById('key').value = KEY
	learnt.opened = await send(R + 'sites', {app: 'shop'})
	learnt.alsoOpen = await send(R + 'days', {app: 'demo', site: 'hhui.top'})
	learnt.hint = document.getElementById(R + 'days').elements.app.nextElementSibling.textContent
	learnt.alien = document.querySelectorAll('img, b, i, iframe, main script, [onerror], [style]').length
	learnt.hacked = String(window.hacked)
	learnt.origins = [...new Set(performance.getEntriesByType('resource').map(r => new URL(r.name).origin))]
	learnt.violations = violations
	await tell(learnt)
	// That a violation would be seen.
	const image = document.createElement('img')
	image.src = 'http://other.example/'
	document.body.append(image)
	try { document.body.innerHTML = '<p>' } catch (refused) { violations.push(refused.name) }
	await until('violation', () => violations.length > 2)
	await tell(violations)
})
`

type shownAnswer struct {
	Asked, Status, Text string
	Said                string
	Cells, More         []string
	Bars                []float64
}

// behindDriver is the service with one more script in its page.
func behindDriver(t *testing.T, service, key string) (h http.Handler, asked func() []string) {
	t.Helper()
	target, err := url.Parse(service)
	require.NoError(t, err)
	var mu sync.Mutex
	var paths []string
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path != "/api" {
			return nil
		}
		page, err := io.ReadAll(r.Body)
		page = bytes.Replace(page, []byte("<link"), []byte(`<script src="/driver.js"></script><link`), 1)
		r.Body = io.NopCloser(bytes.NewReader(page))
		r.Header.Set("Content-Length", strconv.Itoa(len(page)))
		r.ContentLength = int64(len(page))
		return err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/driver.js" {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprintf(w, "const KEY = %q\n%s", key, driving)
			return
		}
		if strings.HasSuffix(r.Host, ".google.com") || strings.HasSuffix(r.Host, ".googleapis.com") {
			http.NotFound(w, r) // Chromium asks for itself
			return
		}
		mu.Lock()
		paths = append(paths, r.Host+" "+r.URL.RequestURI())
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}), func() []string { mu.Lock(); defer mu.Unlock(); return paths }
}

func TestChromiumTriesCalls(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	w.sixSteps()
	w.counting(1, "192.168.0.2", "http://hhui.top/evil")
	w.counting(3, "192.168.0.2", "http://hhui.top/主页")
	const evil = `hhui.top/<img src=x onerror="hacked=1"><script>hacked=1</script>`
	_, err := dbtest.Connect(w.t, w.database).Exec(t.Context(), `UPDATE footfall.pages SET uri = $1 WHERE uri = 'hhui.top/evil'`, evil)
	require.NoError(t, err)
	_, err = dbtest.Connect(w.t, w.database).Exec(t.Context(), `INSERT INTO footfall.visits_kept (app_id, from_day) SELECT id, 20190630 FROM footfall.apps`)
	require.NoError(t, err)
	_, err = dbtest.Connect(w.t, w.database).Exec(t.Context(), `DELETE FROM footfall.visits WHERE day_id = 20190629`)
	require.NoError(t, err)
	var asked func() []string
	w.rest, asked = behindDriver(t, w.public, w.key("shop", counter.ScopeRead))
	w.open(t, "http://try.example/api")

	var learnt struct {
		Calls, Stored, Filled                                                                                         []string
		Visit, Post, Many, Counts, Pages, Rest, Days, Gaps, Gone, Nobody, Group, Csv, Wrong, Closed, Opened, AlsoOpen shownAnswer
		Alien                                                                                                         int
		Hacked, Hint                                                                                                  string
		Origins, Violations                                                                                           []string
	}
	w.hear(t, &learnt)
	var calls []string
	for call := range readDocument(t).operations() {
		calls = append(calls, call)
	}
	assert.ElementsMatch(t, calls, learnt.Calls)
	assert.Equal(t, "200 OK", learnt.Visit.Status)
	assert.Contains(t, learnt.Visit.Text, `"page":{"pv":1,"uv":1,"rank":1,"hot":1}`)
	assert.Contains(t, learnt.Post.Text, `"page":{"pv":2,"uv":2,"rank":2,"hot":2}`)
	assert.Contains(t, learnt.Many.Text, `{"counted":{"site":{"pv":1,"uv":1,"rank":1,"hot":1},`)
	assert.Contains(t, learnt.Counts.Text, `"page":{"pv":1,"uv":1,"rank":0,"hot":1}},{"error":"uri: `)
	assert.Contains(t, learnt.Counts.Cells, `{"pv":1,"uv":1,"rank":0,"hot":1}`)
	assert.Equal(t, "GET /api/apps/demo/pages?order=uri&limit=2", learnt.Pages.Asked)
	require.Len(t, learnt.Pages.Cells, 10)
	assert.Equal(t, "hhui.top/%3Cb%3Ebold%3C/b%3E", learnt.Pages.Cells[0])
	assert.Equal(t, "hhui.top/主页", learnt.Pages.Cells[5], "as people read it")
	assert.Equal(t, []string{"hhui.top/%3Cb%3Ebold%3C/b%3E", "hhui.top/%E4%B8%BB%E9%A1%B5"}, learnt.Stored, "as it is stored, in the title")
	assert.Equal(t, []string{"Next"}, learnt.Pages.More)
	assert.Equal(t, []string{evil, "hhui.top/home"}, []string{learnt.Rest.Cells[0], learnt.Rest.Cells[5]}, "it stays text")
	assert.Equal(t, []string{"Next"}, learnt.Rest.More)
	assert.Empty(t, learnt.Filled, "what the fields hold is what was typed")
	assert.Contains(t, learnt.Hint, "For example: demo")
	assert.Equal(t, []string{"20190629", "2", "2", "5", "20190630", "1", "0", "2", "20190702", "3", "2", "3"}, learnt.Days.Cells)
	assert.Equal(t, []float64{64, 32, 0, 96}, learnt.Days.Bars, "pv is 2, 1, none and 3")
	assert.Equal(t, []float64{0, 64, 32, 0, 96, 0}, learnt.Gaps.Bars, "days at the ends on which nobody came")
	assert.Equal(t, "2 came on 20190629; who they were is not kept any more.", learnt.Gone.Said)
	assert.Equal(t, "Nothing.", learnt.Nobody.Said)
	assert.Equal(t, "GET /api/apps/demo/uniques?site=hhui.top&site=a.example&from=20190630", learnt.Group.Asked)
	assert.Contains(t, learnt.Group.Text, `"uniques":3`)
	assert.True(t, strings.HasPrefix(learnt.Csv.Text, "site,pv,uv,hot,since,shown\r\nhhui.top,6,4,10,"), learnt.Csv.Text)
	assert.Equal(t, "404 Not Found", learnt.Wrong.Status)
	assert.Contains(t, learnt.Wrong.Asked, "/api/apps/..%2F%3Ci%3E/days?")
	assert.Equal(t, "401 Unauthorized", learnt.Closed.Status)
	assert.Equal(t, `{"sites":[]}`, learnt.Opened.Text)
	assert.Equal(t, "200 OK", learnt.AlsoOpen.Status, "shop's key is no key of demo, which needs none")
	assert.Zero(t, learnt.Alien, "nothing that was stored became an element")
	assert.Equal(t, "undefined", learnt.Hacked)
	assert.Equal(t, []string{"http://try.example"}, learnt.Origins)
	assert.Empty(t, learnt.Violations)
	for _, path := range asked() {
		assert.True(t, strings.HasPrefix(path, "try.example "), path)
	}
	var violations []string
	w.hear(t, &violations)
	assert.Contains(t, violations, "img-src http://other.example/")
	assert.Contains(t, violations, "TypeError", "HTML out of text")
	assert.NotContains(t, strings.Join(asked(), "\n"), "other.example")
}

// What the page may do is said by headers, and holds for its files, too.
func TestPageIsClosed(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for path, kind := range map[string]string{
		"/api": "text/html; charset=utf-8", "/api/try.js": "text/javascript; charset=utf-8", "/api/try.css": "text/css; charset=utf-8", "/openapi.json": "application/json",
	} {
		a := e.get(path)
		assert.Equal(t, kind, a.header.Get("Content-Type"))
		assert.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
		policy := a.header.Get("Content-Security-Policy")
		assert.NotContains(t, policy, "unsafe")
		assert.NotContains(t, policy, "*")
		assert.Contains(t, policy, "default-src 'none'")
		assert.NotRegexp(t, `(?i)(src|href)=["']?(https?:)?//`, a.body, "no outside resource")
		assert.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
		assert.Equal(t, http.StatusMethodNotAllowed, e.do(http.MethodPost, e.public+path, "", "").status)
	}
	for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "localStorage", "sessionStorage"} {
		assert.NotContains(t, string(tryScript), word)
	}
}
