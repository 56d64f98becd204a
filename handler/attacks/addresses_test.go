package attacks

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/stretchr/testify/assert"

	"footfall/desk"
)

// claims are headers by which clients and proxies name the client. X-Forwarded-For also has tests of its own.
var claims = []string{
	"X-Forwarded-For: 203.0.113.5", "X-Forwarded-For: 203.0.113.5, 127.0.0.1", "X-Forwarded-For: 127.0.0.1, 203.0.113.5", "X-Forwarded-For:",
	"X-Forwarded-For: unknown", "X-Forwarded-For: 203.0.113.5\nX-Forwarded-For: 203.0.113.6", "x-forwarded-for: 2001:db8::5",
	"X-Forwarded-For: ' OR '1'='1",
	"X-Forwarded-For: {long}",
}

// otherClaims are other headers than X-Forwarded-For and X-Real-Ip.
var otherClaims = []string{
	"Forwarded: for=203.0.113.5", `Forwarded: for="[2001:db8::5]:80";proto=http`, "True-Client-IP: 203.0.113.5",
	"CF-Connecting-IP: 203.0.113.5",
	"CF-Connecting-IPv6: 2001:db8::5", "CF-Pseudo-IPv4: 203.0.113.5", "Fastly-Client-IP: 203.0.113.5", "X-Client-IP: 203.0.113.5",
	"Client-IP: 203.0.113.5",
	"X-Cluster-Client-IP: 203.0.113.5", "X-Forwarded: for=203.0.113.5", "Forwarded-For: 203.0.113.5", "X-Originating-IP: [203.0.113.5]",
	"X-Remote-IP: 203.0.113.5",
	"X-Remote-Addr: 203.0.113.5", "Remote-Addr: 203.0.113.5", "X-Host: 203.0.113.5", "X-Azure-ClientIP: 203.0.113.5",
	"X-Envoy-External-Address: 203.0.113.5",
	"X-AppEngine-User-IP: 203.0.113.5", "Fly-Client-IP: 203.0.113.5", "X-ProxyUser-Ip: 203.0.113.5", "X_Forwarded_For: 203.0.113.5",
	"X-Forwarded-Host: 203.0.113.5",
	"X-Original-Forwarded-For: 203.0.113.5", "Via: 1.1 203.0.113.5", "WL-Proxy-Client-IP: 203.0.113.5",
}

const realClaim = "X-Real-Ip: 203.0.113.5"

// visitsWith returns a visit for each line of headers.
func visitsWith(headers ...string) (requests []string) {
	for _, header := range headers {
		requests = append(requests, visitShop+"\n"+header)
	}
	return requests
}

func forwarded(values ...string) (headers []string) {
	for _, value := range values {
		headers = append(headers, "X-Forwarded-For: "+value)
	}
	return headers
}

// asserting returns a visit for each address, with a key that may assert.
func asserting(ips ...string) (requests []string) {
	for _, ip := range ips {
		requests = append(requests, visitShop+"&ip="+ip+bearerOf+"{assert}")
	}
	return requests
}

var addressAttacks = []attack{
	{
		name:   "forwarded headers, nobody trusted",
		status: 200,
		sent:   fmt.Sprintf("X-Forwarded-For in %d forms, X-Real-Ip, and %d other headers that name a client", len(claims), len(otherClaims)),
		stores: "{page} 127.0.0.1", requests: visitsWith(append(append(claims, realClaim), otherClaims...)...),
	},
	{
		name: "other headers through a trusted proxy",
		sent: "all but X-Forwarded-For, to a service that trusts the proxy only about that header",
		via:  proxied, status: 200,
		stores: "{page} 127.0.0.1", requests: visitsWith(append(otherClaims, realClaim)...),
	},
	{
		name: "X-Forwarded-For, X-Real-Ip being the header",
		sent: "both, forged and true, to a service that trusts the proxy only about X-Real-Ip",
		via:  named, status: 200,
		stores: "{page} 198.51.100.7", requests: func() (requests []string) {
			for _, claim := range append(claims, otherClaims...) {
				requests = append(requests, visitShop+"\n"+claim+"\nX-Real-Ip: 198.51.100.7")
			}
			return requests
		}(),
	},
	{
		name:   "a forged part left of the client",
		sent:   "addresses, private ones, trusted ones, nonsense before what the trusted proxy wrote, in one line or several",
		via:    proxied,
		status: 200, stores: "{page} 198.51.100.7",
		requests: visitsWith(append(forwarded("198.51.100.7", "203.0.113.5, 198.51.100.7", "203.0.113.5,198.51.100.7", "10.0.0.1, 198.51.100.7",
			"127.0.0.1, 198.51.100.7",
			"::1, 198.51.100.7", "unknown, 198.51.100.7", "' OR '1'='1, 198.51.100.7", ",,,, 198.51.100.7", "fe80::1%eth0, 198.51.100.7",
			"<script>, 198.51.100.7",
			"203.0.113.5, 198.51.100.7, 127.0.0.9", "203.0.113.5, 198.51.100.7, 127.0.0.9, 127.1.2.3", "198.51.100.7:4711", "::ffff:198.51.100.7",
			"{long}, 198.51.100.7",
			strings.Repeat("203.0.113.5, ", 1000)+"198.51.100.7"),
			"X-Forwarded-For: 203.0.113.5\nX-Forwarded-For: 198.51.100.7",
			"X-Forwarded-For: nonsense\nx-forwarded-for: 203.0.113.5, 198.51.100.7\nX-FORWARDED-FOR: 127.0.0.2",
			"X-Forwarded-For: 198.51.100.7\nX-Real-Ip: 203.0.113.5\nForwarded: for=203.0.113.5")...),
	},
	{
		name:   "nonsense in place of the client",
		sent:   "words, SQL, a host's name, a zone, half an address, nothing, a network, after the client's own entries",
		via:    proxied,
		status: 400, says: "ip: the header X-Forwarded-For of the trusted proxy",
		requests: visitsWith(append(forwarded("203.0.113.5, unknown", "203.0.113.5, _hidden", "203.0.113.5, ' OR '1'='1",
			"203.0.113.5, example.com",
			"203.0.113.5, fe80::1%eth0",
			"203.0.113.5, 198.51.100.7%1", "203.0.113.5, 198.51.100", "203.0.113.5, 198.51.100.7.8", "203.0.113.5,", "203.0.113.5, ,127.0.0.2",
			"203.0.113.5, 198.51.100.0/24",
			"203.0.113.5, 198.51.100.07", "203.0.113.5, 0x7f000001", "203.0.113.5, 3325256711", "203.0.113.5, 198.51.100.7:port",
			"203.0.113.5, [198.51.100.7]",
			"203.0.113.5, for=198.51.100.7", "203.0.113.5, \"198.51.100.7\"", "203.0.113.5; 198.51.100.7", "203.0.113.5, {long}",
			strings.Repeat("127.0.0.1, ", 1000)+"127.0.0.1"),
			"X-Forwarded-For: 203.0.113.5\nX-Forwarded-For: nonsense, 127.0.0.2")...),
	},
	{
		name:     "a forwarded header in a trailer",
		sent:     "X-Forwarded-For after the chunks of a POST, through a trusted proxy",
		answered: "200",
		stored:   "the page, by 127.0.0.1", story: trailer,
	},
	{
		name:   "zones",
		sent:   "`ip=fe80::1%25eth0` and the like, with a key that may assert",
		status: 400, says: "ip: it has a zone",
		requests: asserting("fe80::1%25eth0", "fe80::1%251", "2001:db8::1%25", "::ffff:198.51.100.7%25eth0", "198.51.100.7%25eth0", "%25eth0"),
	},
	{
		name:   "values that are not an address",
		sent:   "`ip=` with a port, brackets, octal, hexadecimal or few parts, a network, a name, spaces, SQL, NUL, 30,000 letters",
		status: 400, says: "ip: it ",
		requests: asserting("198.51.100.7:80", "[2001:db8::1]", "[2001:db8::1]:80", "0306.051.0144.07", "198.51.100.07", "0x7f000001", "127.1",
			"3325256711", "198.51.100.0/24",
			"localhost", "+198.51.100.7", "198.51.100.7+", "198.51.100.7,203.0.113.5", "%27+OR+%271%27=%271", "198.51.100.7%00", "%ff",
			"2001:db8:::1", "1:2:3:4:5:6:7:8:9", "{long}", "null"),
	},
	{
		name:     "one IPv4 address in six spellings",
		sent:     "mapped into IPv6, in three forms, through a key and through a proxy",
		answered: "200, the same rank",
		stored:   "one visitor, 198.51.100.8", story: mapped,
	},
	{
		name:     "one /64, rotated",
		sent:     "200 addresses of a /64, then one of the next, through a trusted proxy",
		answered: "200, rank 1; then rank 2",
		stored:   "two visitors, 2001:db8:1:1:: and 2001:db8:1:2::", story: rotated,
	},
}

func trailer(w *world) {
	before := w.tables()
	a := w.raw(w.public[proxied], http.MethodPost,
		"POST /visit HTTP/1.1\r\nHost: a\r\nUser-Agent: "+desk.Browser+"\r\nConnection: close\r\nContent-Type: application/json\r\n"+
			"Trailer: X-Forwarded-For\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"31\r\n"+`{"app":"shop","uri":"http://example.com/trailer"}`+"\r\n0\r\nX-Forwarded-For: 203.0.113.5\r\n\r\n")
	assert.Equal(w.t, http.StatusOK, a.status, a.body)
	assert.Equal(w.t, "example.com/trailer 127.0.0.1", w.tables().since(before))
}

func mapped(w *world) {
	before := w.tables()
	for i, spelling := range []string{"198.51.100.8", "::ffff:198.51.100.8", "::FFFF:c633:6408", "0:0:0:0:0:ffff:198.51.100.8"} {
		_, page := w.counted(w.send(direct, "GET /visit?app=shop&uri=http://example.com/mapped&ip="+spelling+bearerOf+"{assert}"))
		assert.Equal(w.t, fmt.Sprintf("1 1 1 %d", i+1), page, spelling)
	}
	for i, spelling := range []string{"::ffff:198.51.100.8", "[::ffff:c633:6408]:4711"} {
		_, page := w.counted(w.send(proxied, "GET /visit?app=shop&uri=http://example.com/mapped\nX-Forwarded-For: "+spelling))
		assert.Equal(w.t, fmt.Sprintf("1 1 1 %d", i+5), page, spelling)
	}
	assert.Equal(w.t, "example.com/mapped 198.51.100.8 ×6", w.tables().since(before))
}

func rotated(w *world) {
	before := w.tables()
	const request = "GET /visit?app=shop&uri=http://example.com/rotated\nX-Forwarded-For: 203.0.113.5, 2001:db8:1:"
	got := w.flood(proxied, 200, func(i int) string { return fmt.Sprintf("%s1:%x::%x", request, i, i*i) })
	assert.Equal(w.t, map[int]int{http.StatusOK: 200}, got)
	_, page := w.counted(w.send(proxied, request+"1:ffff:ffff:ffff:ffff"))
	assert.Equal(w.t, "1 1 1 201", page)
	_, page = w.counted(w.send(proxied, request+"2::1"))
	assert.Equal(w.t, "2 2 2 202", page, "the next network is another visitor")
	assert.Equal(w.t, "example.com/rotated 2001:db8:1:1:: 2001:db8:1:2:: ×202", w.tables().since(before))
}
