package attacks

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/stretchr/testify/assert"

	"footfall/embed"
)

const (
	errorHeader = "Footfall-Error"
	camo        = "github-camo (876de43e)"

	badgeOwn = "GET /badge/own.svg?uri=http://own.example/{path}"
	jsonpOwn = "GET /busuanzi?jsonpCallback=f\nReferer: http://own.example/{path}"
	hostile  = `"/></title></svg><script>hacked=1</script>`
)

var badgeAttacks = []attack{
	{
		name:   "of an app without public numbers, or of no app",
		sent:   "a badge of an app without `--public-counts`, of a missing one, of another app's site, as SVG and JSON, with `count=1`",
		status: 200, says: "–",
		headers: map[string]string{"Cache-Control": "no-store"},
		requests: []string{
			"GET /badge/shop.svg?uri={uri}", "GET /badge/shop.json?uri={uri}&count=1", "GET /badge/nobody.svg?uri={uri}",
			"GET /badge/shown.svg?uri={uri}",
			"GET /badge/own.svg?uri={uri}&count=1", "GET /badge/own.svg?count=1", "GET /badge/..%2fshop.svg?uri={uri}",
		},
	},
	{
		name:   "that counts although badges may only show",
		sent:   "`count=1` to an app with `--public-counts read`, by camo, a browser, with a key of another app",
		status: 200, says: "–",
		headers: map[string]string{
			errorHeader: "app shown does not allow this for badges: its operator can change --public-counts (footfall app set)",
		},
		requests: []string{
			"GET /badge/shown.svg?uri=http://shown.example/{path}&count=1",
			"GET /badge/shown.svg?uri=http://shown.example/{path}&count=1\nUser-Agent: " + camo,
			"GET /badge/shown.json?uri=http://shown.example/{path}&count=1" + bearerOf + "{assert}",
		},
	},
	{
		name:   "that counts as a given visitor",
		sent:   "`count=1` with `ip=`, `visitor=`, forwarded addresses, keys, from any page",
		status: 200, stores: "own.example/{path} fd00::ba:d9e",
		requests: []string{
			badgeOwn + "&count=1&ip=203.0.113.5", badgeOwn + "&count=1&visitor=me", badgeOwn + "&count=1\nX-Forwarded-For: 203.0.113.5",
			badgeOwn + "&count=1" + bearerOf + "{assert}", badgeOwn + "&count=1\nOrigin: https://evil.example", badgeOwn +
				"&count=1\nReferer: https://evil.example/",
		},
	},
	{
		name:     "with markup",
		sent:     "tags, quotes, entities and bad UTF-8 in label, colour, style, show, chart and uri, in SVG and JSON",
		answered: "200, escaped or refused; no script, no link", stored: "nothing", story: hostileBadges,
	},
	{
		name:     "without end",
		sent:     "700 badges for one address in a minute",
		answered: "200, 600 with a number", stored: "nothing", story: manyBadges,
	},
}

func hostileBadges(w *world) {
	before := w.tables()
	for _, name := range []string{"label", "color", "style", "show", "chart", "uri", "count"} {
		for _, value := range []string{hostile, `red" onload="hacked=1`, "url(http://evil.example/)", "]]>", "&lt;script&gt;", "\xff",
			"javascript:hacked=1"} {
			for _, kind := range []string{"svg", "json"} {
				// these may be cached, unlike our JSON
				a := w.raw(w.public[direct], http.MethodGet, wire("GET /badge/own."+kind+"?"+name+"="+url.QueryEscape(value)+
					"&uri=http://own.example/"))
				assert.Equal(w.t, http.StatusOK, a.status)
				assert.NotRegexp(w.t, `<script|<image|<a |href=|fill="url\(http`, a.body, value)
				assert.NotContains(w.t, a.body, `" onload="`)
				assert.Equal(w.t, "default-src 'none'; style-src 'unsafe-inline'; sandbox", a.header.Get("Content-Security-Policy"))
				assert.Equal(w.t, "nosniff", a.header.Get("X-Content-Type-Options"))
				assert.NotRegexp(w.t, `[\x00-\x1f\x7f-\xff]`, a.header.Get(errorHeader))
			}
		}
	}
	assert.Empty(w.t, w.tables().since(before))
}

func manyBadges(w *world) {
	numbers := 0
	for range usualRequests + 100 {
		a := w.send(direct, "GET /badge/shown.svg?uri=http://shown.example/")
		if assert.Equal(w.t, http.StatusOK, a.status); strings.Contains(a.body, ">visits: 0</title>") {
			numbers++
		} else {
			assert.Contains(w.t, a.header.Get(errorHeader), "too many requests to app shown from one address")
		}
	}
	assert.Equal(w.t, usualRequests, numbers)
}

// fromPages returns the call of busuanzi from each page, with the browser's Referer.
func fromPages(referers ...string) (requests []string) {
	for _, referer := range referers {
		call := "GET /busuanzi?jsonpCallback=f\nReferer: " + referer
		requests = append(requests, call, call+"\nSec-Fetch-Dest: script\n"+fetchSite+"cross-site",
			strings.Replace(call, "?jsonpCallback", "/jsonp?callback", 1))
	}
	return requests
}

// theirCalls are all calls of busuanzi and similar services about a page of own.example.
func theirCalls(headers string) []string {
	const page = "http://own.example/{path}"
	return []string{
		"GET /busuanzi?url=" + page + headers, "POST /busuanzi/api\nX-Bsz-Referer: " + page + headers + "\n\n",
		"PUT /busuanzi/api\nX-Bsz-Referer: " + page + headers + "\n\n",
		"POST /api/v2/log" + headers + "\n\n" + `{"url":"` + page + `"}`,
	}
}

// ccOwn is busuanzi.cc's call about a page of own.example.
func ccOwn(headers string) string {
	return "POST /api.php" + headers + "\n\n" + `{"url":"http://own.example/{path}"}`
}

var busuanziAttacks = []attack{
	{
		name:   "a script on another site's page",
		sent:   "its Referer: another host, a lookalike, another port, the listed host elsewhere in it",
		status: 403, says: "uri: no app lists the site",
		requests: fromPages("https://evil.example/", "http://evil.example/http://own.example/", "http://own.example@evil.example/",
			"http://own.example.evil.example/",
			"http://own.example:8080/", "http://www.own.example/", `http://evil.example\@own.example/`, "http://evil.example?http://own.example/"),
	},
	{
		name:   "a script on a page that hides its address",
		sent:   "no Referer, an empty one, with a page named in headers that a script tag cannot send",
		status: 403, says: "referer: it is missing",
		requests: []string{
			"GET /busuanzi?jsonpCallback=f", "GET /busuanzi/jsonp?callback=f\nReferer:",
			"GET /busuanzi?jsonpCallback=f\nX-Bsz-Referer: http://own.example/{path}",
			"GET /busuanzi?jsonpCallback=f&url=\nOrigin: http://own.example",
		},
	},
	{
		name:   "a script with an Origin of its own",
		sent:   "a Referer of a listed page with the Origin of another, or null",
		status: 403, says: "origin: app own does not count the site of the page that sent this request",
		requests: []string{jsonpOwn + "\nOrigin: https://evil.example", jsonpOwn + "\nOrigin: null", jsonpOwn + "\nOrigin: http://example.com"},
	},
	{
		name:   "loaded by other means than a script",
		sent:   "`Sec-Fetch-Dest` of pages, frames, images, styles, fetch",
		status: 403, says: "element of a page can make this call",
		requests: []string{
			jsonpOwn + "\nSec-Fetch-Dest: document", jsonpOwn + "\nSec-Fetch-Dest: iframe", jsonpOwn + "\nSec-Fetch-Dest: image", jsonpOwn +
				"\nSec-Fetch-Dest: style",
			jsonpOwn + "\nSec-Fetch-Dest: empty", jsonpOwn + "\nSec-Fetch-Dest: object",
		},
	},
	{
		name:   "callbacks that are more than a name",
		sent:   "calls, members, comments, line ends, markup, other letters, 65 letters, none",
		status: 400, says: "it is not the name of a function",
		requests: callbacks("", "alert(1)//", "a.b", "a[0]", "a;b", "a\n", "\u2028", "</script>", "eval`1`", "1a", "é", "\x00",
			strings.Repeat("a", 65), "a b", "/**/a", "\ufeffa"),
	},
	{
		name:   "another site's page calls",
		sent:   "every call about a listed page, with the Origin or the Referer of another site, hidden or null",
		status: 403, says: "origin: app own does not count the site of the page that sent this request",
		requests: append(append(append(theirCalls("\nOrigin: https://evil.example"), theirCalls("\nOrigin: null")...),
			theirCalls("\nReferer: https://evil.example/")...),
			theirCalls("\n"+fetchSite+"cross-site")...),
		headers: map[string]string{"Set-Cookie": ""},
	},
	{
		name:   "an app that takes keys, with a key",
		sent:   "every call about its page: they have no key, whatever is in Authorization",
		status: 401, says: "key: app keyed counts nothing without a key",
		requests: []string{
			"GET /busuanzi?url=http://keyed.example/", "GET /busuanzi?jsonpCallback=f\nReferer: http://keyed.example/",
			"POST /busuanzi/api\nX-Bsz-Referer: http://keyed.example/" + bearerOf + "{assert}\n\n", "POST /api/v2/log" + bearerOf + "{strict}\n\n" +
				`{"url":"http://keyed.example/"}`,
		},
	},
	{
		name:   "another visitor's visit",
		sent:   "an ip, forwarded addresses, keys, an identity of soxft's, in all places",
		status: 200, stores: "own.example/{path} 127.0.0.1",
		requests: []string{
			"GET /busuanzi?ip=203.0.113.5&visitor=me&app=shop&url=http://own.example/{path}", jsonpOwn + "\nX-Forwarded-For: 203.0.113.5",
			"POST /busuanzi/api\nX-Bsz-Referer: http://own.example/{path}" + bearerOf + "eyJhbGciOiJub25lIn0\n\n",
			"POST /busuanzi/api?ip=203.0.113.5\nX-Bsz-Referer: http://own.example/{path}" + bearerOf + "{assert}\n\n",
			"POST /api/v2/log\nX-Browser-Token: 203.0.113.5\n\n" +
				`{"url":"http://own.example/{path}","ip":"203.0.113.5","app":"shop","isNewUv":true}`,
			"POST /api.php?app=shop&ip=203.0.113.5" + bearerOf + "{assert}\n\n" + `{"url":"http://own.example/{path}","ip":"203.0.113.5"}`,
		},
	},
	{
		name:   "crawlers",
		sent:   "every call with a crawler's agent",
		status: 200, headers: skipped("bot"),
		requests: append(theirCalls("\nUser-Agent: Googlebot/2.1")[:2], jsonpOwn+"\nUser-Agent: curl/8", ccOwn("\nUser-Agent: curl/8")),
	},
	{
		name:   "control: a listed page",
		sent:   "every call, over http and https",
		status: 200, stores: "own.example/{path} 127.0.0.1",
		requests: []string{
			jsonpOwn + "?a=b\nSec-Fetch-Dest: script\n" + fetchSite + "cross-site",
			"GET /busuanzi/jsonp?callback=f\nReferer: https://own.example/{path}",
			theirCalls("\nOrigin: https://own.example")[0], theirCalls("\nOrigin: http://own.example")[1],
			theirCalls("\nOrigin: https://own.example")[3], ccOwn("\nOrigin: https://own.example"),
		},
	},
	{
		name:     "files that pages load",
		sent:     "`/count.js`, versions of it with odd names, and busuanzi's script, from another site's page, with parameters, by POST",
		answered: "the same bytes; 405", stored: "nothing", story: scriptsOfOthers,
	},
}

func callbacks(names ...string) (requests []string) {
	for _, name := range names {
		requests = append(requests, "GET /busuanzi?jsonpCallback="+url.QueryEscape(name)+"\nReferer: http://own.example/")
	}
	return requests
}

func scriptsOfOthers(w *world) {
	before := w.tables()
	for path, script := range map[string]embed.Script{
		embed.ScriptPath: embed.Count, "/count.js?app=" + url.QueryEscape(hostile): embed.Count, "/count." + url.PathEscape(hostile) +
			".js": embed.Count,
		"/count...%2f..%2fetc.js": embed.Count, embed.BusuanziPath: embed.Busuanzi, embed.BusuanziPath + "?jsonpCallback=alert": embed.Busuanzi,
		"/busuanzi/" + url.PathEscape(hostile) + "/busuanzi.min.js": embed.Busuanzi,
	} {
		a := w.raw(w.public[direct], http.MethodGet, wire("GET "+path+"\nOrigin: https://evil.example\nReferer: https://evil.example/"))
		assert.Equal(w.t, http.StatusOK, a.status, path)
		assert.Equal(w.t, string(script.Plain), a.body, path)
		assert.Equal(w.t, "nosniff", a.header.Get("X-Content-Type-Options"))
		assert.Empty(w.t, a.header.Get("Set-Cookie"))
		assert.Equal(w.t, http.StatusMethodNotAllowed, w.raw(w.public[direct], http.MethodPost, wire("POST "+path+"\n\nx")).status)
	}
	assert.Empty(w.t, w.tables().since(before))
}
