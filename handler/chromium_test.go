package handler

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	{"other-site", `fetch(S + '/visit?app=shop&uri=http://other.example/').then(read)`,
		"403 uri: app shop does not count the site other.example", 0},
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
	{"form", `fetch(S + '/visit', {mode: 'no-cors', method: 'POST', body: JSON.stringify({app: 'shop', uri: U})}).then(r => r.type)`, "opaque",
		0},
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
		const run = async (name, attempt) => { learnt[name] = await attempt('http://example.com/' + location.host + '/' + name).catch(e => `+
		`e.name) }
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
	w.open(t, pages...)
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
