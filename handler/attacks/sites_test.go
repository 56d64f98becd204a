package attacks

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/stretchr/testify/assert"
)

// visitsTo returns a visit of an app to each URI.
func visitsTo(app string, uris ...string) (requests []string) {
	for _, uri := range uris {
		requests = append(requests, "GET /visit?app="+app+"&uri="+url.QueryEscape(uri))
	}
	return requests
}

var siteAttacks = []attack{
	{
		name:   "hosts that are not listed",
		sent:   "another host, sub- and super-domains, another port, a trailing dot, addresses",
		status: 403, says: "uri: app shop does not count the site",
		requests: append(visitsTo("shop", "http://evil.example/", "http://www.example.com/", "http://com/", "http://example.co/",
			"http://example.com:8080/", "http://example.com:443/",
			"https://example.com:80/", "http://example.com./", "http://localhost/", "http://127.0.0.1/", "http://2130706433/", "http://[::1]/",
			"http://example.org/", "http://xexample.com/",
			"http://example-com/", "http://example.com.:80/", "http://*.example.com/", "http://*/", "http://other/"),
			visitsTo("shop", "http://evil.example/")[0]+bearerOf+"{assert}", "GET /counts?app=shop&uri=http://evil.example/",
			"POST /visit\n\n"+`{"app":"shop","uri":"http://evil.example/"}`),
	},
	{
		name:   "hosts that look like a listed one",
		sent:   "user-info, backslashes, homographs, the listed host in path, query, fragment or as a part",
		status: 403,
		says:   "uri: app shop does not count the site",
		requests: visitsTo("shop", "http://example.com@evil.example/", "http://example.com:80@evil.example/",
			`http://evil.example\@example.com/`, `http://evil.example\.example.com/`, "http://evil.example/@example.com/",
			"http://evil.example?@example.com/", "http://evil.example#@example.com/",
			"http://evil.example/http://example.com/", "http://example.com.evil.example/", "http://evilexample.com/",
			"http://example.com-evil.example/", "http://ex\u0430mple.com/",
			"http://xn--exmple-4nf.com/", "http://ex%d0%b0mple.com/", "http://exampl\u00e9.com/", "http://example.com\u3002evil.example/",
			"http://a@example.com@evil.example/", "http://example.com%2eevil.example/"),
	},
	{
		name:   "a listed host in another spelling",
		sent:   "user-info, upper case, escapes, full-width letters, its default port: a browser would go there",
		status: 200,
		stores: "{page} 127.0.0.1",
		requests: []string{
			"GET /visit?app=shop&uri=http://user:password@{page}", "GET /visit?app=shop&uri=http://evil.example@{page}",
			"GET /visit?app=shop&uri=HTTPS://{page}",
			"GET /visit?app=shop&uri=http://EXAMPLE.com/{path}", "GET /visit?app=shop&uri=http://ex%2561mple.com/{path}",
			"GET /visit?app=shop&uri=http://example%252Ecom/{path}",
			"GET /visit?app=shop&uri=http://%EF%BD%85xample%E3%80%82com/{path}", "GET /visit?app=shop&uri=https://example.com:443/{path}",
			`GET /visit?app=shop&uri=http://example.com\{path}`,
			"GET /visit?app=shop&uri=http://example.com/evil/../{path}", "GET /visit?app=shop&uri=http://evil.example%2540@{page}",
			"GET /visit?app=shop&uri=http://evil.example:80%40{page}",
			"GET /visit?app=shop&uri={uri}?ip=203.0.113.5%23x", "GET /visit?app=shop&uri={uri}%23@evil.example/",
		},
	},
	{
		name:     "the pages for collected visits",
		sent:     "`http://example.com/(other)` and `/(deleted)`, in all spellings",
		answered: "200", stored: "example.com/%28other%29 and /%28deleted%29, which are pages like others",
		story: gatheringPages,
	},
	{
		name:   "around a wildcard",
		sent:   "to an app with `*.wild.example`: its apex, hosts that end alike, another port, an empty label",
		status: 403, says: "uri: app wide does not count the site",
		requests: visitsTo("wide", "http://wild.example/", "http://evilwild.example/", "http://a.evilwild.example/",
			"http://wild.example.evil.example/", "http://.wild.example/",
			"http://a.wild.example:8080/", "http://a.wild.example./", "http://example/", "http://a.wild.example@evil.example/",
			"http://evil.example/.wild.example",
			`http://evil.example\.wild.example/`, "http://a-wild.example/", "http://*.wild.example.evil.example/"),
	},
	{
		name: "URIs that are not a page",
		sent: "other schemes, no host, a zone or a slash or a space in the host, bad ports, bad Punycode, control characters, NUL, bad " +
			"UTF-8, 2,049 bytes",
		status: 400, says: "uri: ",
		requests: append(visitsTo("shop", "javascript:alert(1)//example.com", "data:text/html,example.com", "file:///etc/passwd",
			"ftp://example.com/", "//example.com/", "example.com/",
			"http:example.com/", "http:/example.com/", "http:///example.com/", `http:\\example.com/`, "http://", "http://@/",
			"http://[fe80::1%25eth0]/", "http://example.com%2f.evil.example/", "http://example.com%40evil.example/",
			"http://exa mple.com/", "http://example.com:99999/", "http://example.com:-1/", "http://example.com:8o/", "http://xn--/",
			"http://xn--a.com/", "http://example.com/\x00",
			"http://example.com/\r\nX: y", "http://example.com/\x1b[2J", "http://example.com/%00", "http://example.com/%ff",
			"http://example.com/\xff", "http://exa\tmple.com/",
			"\x01http://example.com/", "http://example.com/"+string(make([]byte, 10)), "http://[::1", "http://256.256.256.256/",
			"http://example.com<>/", "http://exam\u200dple.com/", "http://(other)/", "http://%28other%29/", "http://(events)/buy",
			"http://%28events%29/buy"),
			"GET /visit?app=shop&uri=http://example.com/{long}", "GET /visit?app=shop&uri=%zz",
			"GET /visit?app=shop&uri={uri}&uri=http://evil.example/", "GET /visit?app=shop&uri="),
	},
}

func gatheringPages(w *world) {
	before := w.tables()
	for _, path := range []string{"(other)", "%2528other%2529", "x/../(other)", "(%256fther)", "(other)?query", "(other)%23", "(deleted)",
		"%2528deleted%2529"} {
		w.counted(w.send(direct, "GET /visit?app=shop&uri=http://example.com/"+path))
	}
	assert.Equal(w.t, "example.com/%28deleted%29 127.0.0.1 ×2\nexample.com/%28other%29 127.0.0.1 ×6", w.tables().since(before))
}

func fromOrigins(request string, origins ...string) (requests []string) {
	for _, origin := range origins {
		requests = append(requests, request+"\nOrigin: "+origin)
	}
	return requests
}

const (
	allowOrigin = "Access-Control-Allow-Origin"
	fetchSite   = "Sec-Fetch-Site: "
)

// shownBy returns a visit with each Referer, as a browser requests an image: over plain http, where it sends no
// Sec-Fetch-Site, and over TLS from anywhere.
func shownBy(referers ...string) (requests []string) {
	for _, referer := range referers {
		shown := "Sec-Fetch-Mode: no-cors\nReferer: " + referer + "\n" + fetchSite
		requests = append(requests, visitsWith("Referer: "+referer, shown+"cross-site", shown+"same-site", shown+"same-origin", shown+"none")...)
	}
	return requests
}

// strangeOrigins are pages of sites that the app shop does not count.
var strangeOrigins = []string{
	"https://evil.example", "null", "https://www.example.com", "https://example.com.evil.example", "https://evilexample.com",
	"https://example.com:8443", "http://example.com:8080",
	"https://example.com/", "https://example.com/path", "https://user@example.com", "https://evil.example@example.com", "https://example.com?",
	"https://example.com#", `https://evil.example\example.com`,
	"https://example.com evil.example", "https://example.com, https://evil.example", "file://", "chrome-extension://abcdef", "about:blank",
	"ftp://example.com", "example.com",
	"//example.com", "https:example.com", "*", "https://*", "https://*.example.com", "https://ex\u0430mple.com", "https://example.com.",
	"{long}",
}

var originAttacks = []attack{
	{
		name:   "a page of another site sends requests",
		status: 403,
		sent: fmt.Sprintf("%d origins that are not the app's: another host, `null`, lookalikes, with a path, user-info or another port",
			len(strangeOrigins)),
		says:    "origin: app shop does not count the site of the page that sent this request",
		headers: map[string]string{allowOrigin: "", "Vary": "Origin"},
		requests: append(append(fromOrigins(visitShop, strangeOrigins...), fromOrigins("GET /counts?app=shop&uri={uri}", strangeOrigins...)...),
			"POST /visit\nOrigin: https://evil.example\n\n"+`{"app":"shop","uri":"{uri}"}`,
			"POST /counts\nOrigin: https://evil.example\n\n"+`{"app":"shop","uris":["{uri}"]}`,
			"POST /visit\nOrigin: null\nCookie: session=1\n\n"+`{"app":"shop","uri":"{uri}"}`,
			"POST /visit\nOrigin: https://evil.example"+bearerOf+"{assert}\n\n"+`{"app":"shop","uri":"{uri}","ip":"203.0.113.5"}`),
	},
	{
		name:    "it shows an image or a frame",
		sent:    "no Origin, but a Referer elsewhere or of a lookalike, with `Sec-Fetch-Site` of any kind and, as over plain http, without",
		status:  403,
		says:    "origin: app shop does not count the site of the page that sent this request",
		headers: map[string]string{allowOrigin: "", "Vary": "Origin"},
		requests: shownBy("https://evil.example/", "http://evil.example/", "http://www.example.com/", "https://evil.example/https://example.com/",
			"https://example.com@evil.example/", "https://example.com.evil.example/", "https://example.com:8443/",
			"example.com", "about:blank", "https://evil.example\nReferer: https://example.com/"),
	},
	{
		name:    "it shows an image and hides its address",
		sent:    "`Sec-Fetch-Site: cross-site` or `same-site`, and no Referer",
		status:  403,
		says:    "origin: app shop does not count the site of the page that sent this request",
		headers: map[string]string{allowOrigin: "", "Vary": "Origin"},
		requests: visitsWith(fetchSite+"cross-site", fetchSite+"same-site", fetchSite+"cross-site\nSec-Fetch-Mode: no-cors\nReferer:",
			fetchSite+"same-site\nReferer:"),
	},
	{
		name:   "it posts without a preflight",
		sent:   "JSON as text/plain, a form, or nothing",
		status: 415, says: "body: send JSON",
		requests: []string{
			"POST /visit\nOrigin: https://evil.example\nContent-Type: text/plain\n\n" + `{"app":"shop","uri":"{uri}"}`,
			"POST /visit\nOrigin: https://evil.example\nContent-Type: application/x-www-form-urlencoded\n\n" + `app=shop&uri={uri}`,
			"POST /visit\nOrigin: https://evil.example\nContent-Type: multipart/form-data; boundary=x\n\n--x--",
			"POST /visit\nContent-Type:\n\n" + `{"app":"shop","uri":"{uri}"}`,
			"POST /visit\nContent-Type: text/plain, application/json\n\n" + `{"app":"shop","uri":"{uri}"}`,
		},
	},
	{
		name:     "it sends a preflight",
		sent:     "OPTIONS from another site, for each method and path",
		answered: "204, nothing allowed", status: 204,
		headers: map[string]string{allowOrigin: "", "Access-Control-Allow-Methods": "", "Access-Control-Allow-Headers": "", "Vary": "Origin"},
		requests: append(fromOrigins("OPTIONS /visit?app=shop&uri={uri}\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: "+
			"authorization,content-type", strangeOrigins...),
			"OPTIONS /counts?app=shop&uri={uri}\nOrigin: https://evil.example\nAccess-Control-Request-Method: GET",
			"OPTIONS /visit?app=nobody\nOrigin: https://example.com"),
	},
	{
		name:   "control: a page of a listed site sends requests",
		sent:   "over http or https, on its default port, with cookies",
		status: 200, stores: "{page} 127.0.0.1",
		headers: map[string]string{"Vary": "Origin", "Access-Control-Allow-Credentials": ""},
		requests: append(fromOrigins(visitShop, "https://example.com", "http://example.com", "https://example.com:443", "HTTPS://EXAMPLE.COM",
			"https://example.com\nCookie: session=1"),
			"POST /visit\nOrigin: https://example.com\n\n"+`{"app":"shop","uri":"{uri}"}`),
	},
	{
		name:   "control: an image of a listed site",
		sent:   "its Referer, whole or cut to the origin, with `Sec-Fetch-Site` of any kind and without",
		status: 200, stores: "{page} 127.0.0.1",
		requests: shownBy("https://example.com/page?a=b", "http://example.com/", "https://example.com"),
	},
	{
		name:   "control: requests of no page",
		sent:   "no Referer, as backends and the address bar do, or a page of Footfall's own origin",
		status: 200, stores: "{page} 127.0.0.1",
		requests: visitsWith("Referer:", fetchSite+"none", fetchSite+"same-origin"),
	},
	{
		name:     "control: responses that its browser may read",
		sent:     "visits, counts, preflights and errors of every kind from a listed site",
		answered: "exactly that origin is allowed, no key, no credentials",
		stored:   "its one visit", story: ownPages,
	},
}

func ownPages(w *world) {
	w.page++
	before := w.tables()
	for _, origin := range []string{"https://example.com", "http://example.com", "https://example.com:443"} {
		for request, status := range map[string]int{
			visitShop: 200, "GET /counts?app=shop&uri={uri}": 200, "GET /visit?app=shop": 400, "GET /visit?app=shop&uri=http://evil.example/": 403,
			forged:                             403,
			visitShop + bearerOf + "{changed}": 401, "HEAD /visit?app=shop&uri={uri}": 200, "OPTIONS /visit?app=shop": 204,
		} {
			a := w.send(direct, request+"\nOrigin: "+origin)
			assert.Equal(w.t, status, a.status, request)
			assert.Equal(w.t, []string{origin}, a.header[allowOrigin], request)
			assert.Equal(w.t, "Origin", a.header.Get("Vary"), request)
			if a.status == http.StatusNoContent {
				assert.Equal(w.t, "GET, POST", a.header.Get("Access-Control-Allow-Methods"))
				assert.Equal(w.t, "Content-Type", a.header.Get("Access-Control-Allow-Headers"), "a key is nothing for a page")
			}
		}
		assert.Empty(w.t, w.send(direct, "GET /visit?app=nobody&uri={uri}\nOrigin: "+origin).header[allowOrigin], "no app, no site")
	}
	assert.Equal(w.t, w.expand("{page} 127.0.0.1 ×3"), w.tables().since(before))
}
