package attacks

import (
	"net/http"

	"github.com/stretchr/testify/assert"
)

// skipped returns the header of a visit that is not counted on purpose.
func skipped(why string) map[string]string { return map[string]string{skippedHeader: why} }

// crawlers are the agents of programs.
var crawlers = []string{
	"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
	"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
	"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)", "curl/8.5.0", "Wget/1.21",
	"python-requests/2.32.3",
	"Go-http-client/1.1", "facebookexternalhit/1.1", "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)", "GOOGLEBOT/2.1",
	"Scrapy/2.11",
	"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/126.0.0.0 Safari/537.36",
}

func agents(request string, agents ...string) (requests []string) {
	for _, agent := range agents {
		requests = append(requests, request+"\nUser-Agent: "+agent)
	}
	return requests
}

var uncountedAttacks = []attack{
	{
		name:   "prefetched pages",
		sent:   "the headers with which browsers, now and before, fetch a page in advance",
		status: 200, headers: skipped("prefetch"),
		requests: append(visitsWith("Sec-Purpose: prefetch", "Sec-Purpose: prefetch;prerender", "Sec-Purpose: prefetch;anonymous-client-ip",
			"sec-purpose: PREFETCH", "Sec-Purpose: prerender",
			"Purpose: prefetch", "Purpose: preview", "X-Purpose: preview", "X-Purpose: prefetch", "X-moz: prefetch"),
			"GET /visit?app=demo&uri={uri}&ip=203.0.113.5\nSec-Purpose: prefetch", forged+"\nSec-Purpose: prefetch"+bearerOf+"{assert}",
			"POST /visit\nSec-Purpose: prefetch\n\n"+`{"app":"shop","uri":"{uri}"}`),
	},
	{
		name:   "HEAD",
		sent:   "`HEAD /visit` and `HEAD /counts`",
		status: 200,
		requests: []string{"HEAD /visit?app=shop&uri={uri}", "HEAD /visit?app=demo&uri={uri}&ip=203.0.113.5",
			"HEAD /visit?app=shop&uri={uri}&ip=203.0.113.5" + bearerOf + "{assert}",
			"HEAD /counts?app=shop&uri={uri}"},
	},
	{
		name:   "OPTIONS",
		sent:   "`OPTIONS /visit` and `OPTIONS /counts`",
		status: 204,
		requests: []string{"OPTIONS /visit?app=shop&uri={uri}", "OPTIONS /visit?app=demo&uri={uri}&ip=203.0.113.5",
			"OPTIONS /counts?app=shop&uri={uri}"},
	},
	{
		name:   "other methods",
		sent:   "PUT, DELETE, PATCH, TRACE, two made up, with X-HTTP-Method-Override",
		status: 405, says: "use GET, ",
		requests: []string{
			"PUT /visit?app=demo&uri={uri}", "DELETE /visit?app=demo&uri={uri}", "PATCH /visit?app=demo&uri={uri}",
			"TRACE /visit?app=demo&uri={uri}",
			"BREW /visit?app=demo&uri={uri}",
			"PUT /visit?app=demo&uri={uri}\nX-HTTP-Method-Override: GET",
			"get /visit?app=demo&uri={uri}",
		},
	},
	{
		name:   "other paths",
		sent:   "dots, double slashes, escapes, suffixes, the operator's paths",
		status: 404, says: "there is nothing here",
		requests: []string{
			"GET /?app=demo&uri={uri}", "GET //visit?app=demo&uri={uri}", "GET /visit/?app=demo&uri={uri}", "GET /visit/../visit?app=demo&uri={uri}",
			"GET /VISIT?app=demo&uri={uri}",
			"GET /visit.json?app=demo&uri={uri}", "GET /visit;x?app=demo&uri={uri}", "GET /metrics", "GET /debug/pprof/", "GET /debug/pprof/cmdline",
			"GET /../../etc/passwd", "GET /visit%00?app=demo&uri={uri}",
			"GET /visit%2f?app=demo&uri={uri}",
		},
	},
	{
		name:   "do not track, respected",
		sent:   "`DNT: 1` or `Sec-GPC: 1` to an app made with `--respect-dnt`",
		status: 200, headers: skipped("do-not-track"),
		requests: []string{"GET /visit?app=quiet&uri={uri}\nDNT: 1", "GET /visit?app=quiet&uri={uri}\nSec-GPC: 1",
			"GET /visit?app=quiet&uri={uri}\nSec-GPC: 1\nDNT: 0"},
	},
	{
		name:   "do not track, not respected",
		sent:   "the same to others; and other values to that app",
		status: 200, stores: "{page} 127.0.0.1", headers: skipped(""),
		requests: append(visitsWith("DNT: 1", "Sec-GPC: 1"), "GET /visit?app=quiet&uri={uri}\nDNT: 0", "GET /visit?app=quiet&uri={uri}"),
	},
	{
		name: "ignored visitors",
		sent: "`--ignore` an address, an IPv4 network, an IPv6 network, mapped too, an id",
		via:  proxied, status: 200, headers: skipped("ignored"),
		requests: []string{
			"GET /visit?app=quiet&uri={uri}\nX-Forwarded-For: 198.51.100.66", "GET /visit?app=quiet&uri={uri}\nX-Forwarded-For: 203.0.113.200",
			"GET /visit?app=quiet&uri={uri}\nX-Forwarded-For: ::ffff:203.0.113.1",
			"GET /visit?app=quiet&uri={uri}\nX-Forwarded-For: 2001:db8:66:1::9",
			"GET /visit?app=quiet&uri={uri}\nX-Forwarded-For: 198.51.100.7, 198.51.100.66",
			"GET /visit?app=ids&uri={uri}&visitor=me" + bearerOf + "{ids}",
		},
	},
	{
		name: "next to ignored visitors",
		sent: "the next address, ignored ones written by the client",
		via:  proxied, status: 200, stores: "{page} 198.51.100.67", headers: skipped(""),
		requests: []string{
			"GET /visit?app=quiet&uri={uri}\nX-Forwarded-For: 198.51.100.67",
			"GET /visit?app=quiet&uri={uri}\nX-Forwarded-For: 198.51.100.66, 198.51.100.67",
		},
	},
	{
		name:   "crawlers",
		sent:   "the agents of crawlers, HTTP libraries and headless browsers, or no User-Agent, to a closed app",
		status: 200, headers: skipped("bot"),
		requests: append(agents(visitShop, crawlers...), visitShop+"\nX-Forwarded-For: 198.51.100.7\nUser-Agent: "+crawlers[0],
			visitShop+"\nUser-Agent:", visitShop+"\n-User-Agent"),
	},
	{
		name:   "a crawler asserted by a caller",
		sent:   "`ip=` from a crawler, curl, or without a User-Agent, to an open app, or with a key that may assert",
		status: 200, stores: "{page} 203.0.113.5", headers: skipped(""),
		requests: append(agents("GET /visit?app=demo&uri={uri}&ip=203.0.113.5", crawlers[0], "", "curl/8.5.0"), agents(forged+bearerOf+"{assert}",
			crawlers[0], "", "curl/8.5.0")...),
	},
	{
		name:   "a crawler where crawlers count",
		sent:   "a crawler, or no User-Agent, to a closed app with `--bots count`",
		status: 200, stores: "{page} 127.0.0.1", headers: skipped(""),
		requests: agents("GET /visit?app=bots&uri={uri}", crawlers[0], ""),
	},
	{
		name:   "a crawler where an open app skips them",
		sent:   "the same to an open app with `--bots skip`",
		status: 200, headers: skipped("bot"),
		requests: agents("GET /visit?app=picky&uri={uri}&ip=203.0.113.5", crawlers[0], "", "curl/8.5.0"),
	},
	{
		name:     "a skipped visit is answered like /counts",
		sent:     "a known visitor's prefetch",
		answered: "200 with their rank and the numbers as they stand", stored: "nothing", story: skippedAnswer,
	},
}

func skippedAnswer(w *world) {
	w.page++
	w.send(direct, visitShop)
	before := w.tables()
	_, page := w.counted(w.send(direct, visitShop+"\nPurpose: prefetch"))
	assert.Equal(w.t, "1 1 1 1", page)
	a := w.send(direct, "HEAD /visit?app=shop&uri={uri}")
	assert.Equal(w.t, http.StatusOK, a.status)
	assert.Empty(w.t, a.body)
	assert.Empty(w.t, w.tables().since(before))
}
