package attacks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/desk"
)

func posts(bodies ...string) (requests []string) {
	for _, body := range bodies {
		requests = append(requests, "POST /visit\n\n"+body)
	}
	return requests
}

const validBody = `{"app":"demo","uri":"{uri}"`

var requestAttacks = []attack{
	{
		name:   "oversized headers",
		sent:   "more than 32 KB: one header, 100,000 headers, a URI, a million query parameters, a key",
		status: 431, says: "Request Header Fields Too Large",
		requests: []string{
			visitShop + "\nCookie: " + strings.Repeat("c", 40_000), visitShop + strings.Repeat("\nX-Forwarded-For: 203.0.113.5", 100_000),
			"GET /visit?app=demo&uri={uri}" + strings.Repeat("a", 40_000),
			"GET /visit?" + strings.Repeat("a=b&", 1_000_000) + "app=demo&uri={uri}&ip=203.0.113.5",
			forged + bearerOf + "{assert}" + strings.Repeat("k", 40_000),
			visitShop + "\n" + strings.Repeat("N", 40_000) + ": x",
		},
	},
	{
		name:   "oversized bodies",
		sent:   "more than 16 KB: spaces, one value, names, nested arrays, in chunks",
		status: 413, says: "body: it is larger than 16384 bytes",
		requests: append(posts(validBody+strings.Repeat(" ", 20_000)+"}", `{"app":"demo","ip":"`+strings.Repeat("1", 20_000),
			strings.Repeat(`{"app":`, 5_000), strings.Repeat("[", 1_000_000),
			strings.Repeat("\x00", 20_000)),
			"POST /visit\nTransfer-Encoding: chunked\n-Content-Length\n\n"+strings.Repeat("2000\r\n"+strings.Repeat(" ", 0x2000)+"\r\n",
				100)+"0\r\n\r\n"),
	},
	{
		name: "JSON that is not a visit",
		sent: "8,000 levels deep, unknown names, a key, ip in upper case, two objects, half an object, comments, UTF-16, gzip, a byte order " +
			"mark, bad UTF-8",
		status: 400, says: "body: ",
		requests: posts(validBody+`,"key":"{assert}"}`, validBody+`,"authorization":"Bearer {assert}"}`, strings.Repeat("[", 8_000),
			strings.Repeat(`{"a":`, 2_000), `{"app":"demo","uri":"{uri}","x":`+strings.Repeat("[", 8_000)+strings.Repeat("]", 8_000)+"}", validBody,
			validBody+`,"IP":"203.0.113.5"}`, validBody+`,"Ip":"203.0.113.5"}`, validBody+`,"ip ":"203.0.113.5"}`,
			validBody+`,"ip\u0000":"203.0.113.5"}`, validBody+`,"__proto__":{"ip":"203.0.113.5"}}`,
			validBody+`}{"ip":"203.0.113.5"}`, validBody+`},`, validBody+`/*,"ip":"203.0.113.5"*/}`, "["+validBody+"}]", "null", `"demo"`, "0",
			"1e999999", "{", "{}}", "\ufeff"+validBody+"}",
			"\xff\xfe{\x00}\x00", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", validBody+"\xff}", validBody+`,}`, validBody+`,"ip"}`,
			`{'app':'demo'}`,
			"app=demo&uri={uri}", "<visit/>", " ", "\x00"),
	},
	{
		name:   "fields that are not texts, or repeated",
		sent:   "numbers, lists, objects, null, nothing, in a GET and in a POST",
		status: 400, says: ": it is ",
		requests: append(posts(validBody+`,"ip":1}`, validBody+`,"ip":null}`, validBody+`,"ip":["203.0.113.5"]}`, validBody+`,"ip":{"$ne":""}}`,
			validBody+`,"ip":1e999999}`, validBody+`,"ip":true}`,
			validBody+`,"ip":"203.0.113.5","ip":"203.0.113.6"}`, validBody+`,"uri":"{uri}"}`, validBody+`,"\u0061pp":"shop"}`, validBody+`,"ip":""}`,
			`{"app":["demo"],"uri":"{uri}"}`, "{}"),
			"GET /visit?app=demo&app=shop&uri={uri}", "GET /visit?app=demo&uri={uri}&%61pp=shop",
			"GET /visit?app=demo&uri={uri}&ip=203.0.113.5&ip=203.0.113.6", "GET /visit?app=demo&uri={uri}&ip=",
			"GET /visit?app=&uri={uri}", "GET /visit?app=demo", "GET /visit"),
	},
	{
		name: "control characters in headers",
		sent: "NUL, ESC, DEL, a bare CR, a folded line, a space before the colon, around a key and a forwarded address",
		via:  proxied, status: 400, says: "Bad Request",
		requests: append(forgedWith("Authorization: Bearer \x00", "Authorization: Bearer {assert}\x00", "Authorization: Bearer \x1b[31m{assert}",
			"Authorization: Bearer {assert}\x7f",
			"Authorization: Bearer \r{assert}", "Authorization: Bearer\r\n {assert}", "Authorization\x00: Bearer {assert}",
			"Authorization : Bearer {assert}"),
			visitsWith(append(forwarded("203.0.113.5\x00", "\x00", "203.0.113.5, \x1b[2J198.51.100.7", "203.0.113.5\rX-Forwarded-For: 198.51.100.7"),
				"X-Forwarded-For : 203.0.113.5", "X-Forwarded-For\x00: 203.0.113.5", "X Forwarded-For: 203.0.113.5")...)...),
	},
	{
		name:     "bytes that are not HTTP",
		sent:     "a TLS handshake, HTTP/0.9, /2 and /3, no Host, two, bad lines, header names and lengths, NULs",
		answered: "400, 404, 505, or nothing", stored: "nothing", story: notHTTP,
	},
	{
		name: "a request within a request",
		sent: "Content-Length against Transfer-Encoding, two lengths, odd encodings: a visit with a forged X-Forwarded-For hidden in a " +
			"body, through a trusted proxy",
		answered: "one answer, 400, 404, 413 or 501, and the end of the connection",
		stored:   "nothing of the hidden part", story: smuggled,
	},
}

// tlsHello is the start of a TLS handshake.
const tlsHello = "\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03" + "0123456789abcdef0123456789abcdef" + "\x20" +
	"0123456789abcdef0123456789abcdef" + "\x00\x02\x13\x01\x01\x00\r\n\r\n"

// notRequests are not valid requests.
var notRequests = []string{
	tlsHello, "GET /visit?app=demo&uri=http://example.com/x\r\n\r\n", "GET /visit?app=demo&uri=http://example.com/x HTTP/0.9\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"GET /visit?app=demo&uri=http://example.com/x HTTP/3.0\r\nHost: a\r\n\r\n",
	"GET /visit?app=demo&uri=http://example.com/x HTTP/1.1\r\n\r\n",
	"\x00\x00\x00\x00\r\n\r\n",
	"GET /visit?app=demo&uri=http://example.com/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"GET /visit?app=demo&uri=http://example.com/x HTTP/1.1\r\nHost: a b\x00\r\n\r\n",
	"GET http://example.com/x y /visit?app=demo HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /visit?app=demo&uri=http://example.com/\x01 HTTP/1.1\r\nHost: a\r\n\r\n", " / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET %zz HTTP/1.1\r\nHost: a\r\n\r\n", "GET /visit HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
	"GET /visit HTTP/1.1\r\nHost: a\r\n: empty\r\n\r\n",
	"GET /visit HTTP/1.1\r\n leading: space\r\nHost: a\r\n\r\n",
	"POST /visit HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: -1\r\n\r\n",
	"POST /visit HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99999999999999999999\r\n\r\n",
	"\r\n\r\n\r\n\r\n", "FORGED \x1b[31m/visit HTTP/1.1\r\nHost: a\r\n\r\n", strings.Repeat("A", 100_000),
	"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
}

func notHTTP(w *world) {
	before := w.tables()
	for _, bytes := range notRequests {
		a := w.raw(w.public[direct], http.MethodGet, bytes)
		switch {
		case strings.HasPrefix(bytes, "OPTIONS *"):
			assert.Equal(w.t, http.StatusOK, a.status, "asks for nothing")
		case strings.HasPrefix(bytes, "CONNECT"), strings.HasPrefix(bytes, "PRI *"):
			assert.Equal(w.t, http.StatusNotFound, a.status)
		default:
			assert.Contains(w.t, []int{0, 400, 431, 505}, a.status, "%q", bytes[:min(len(bytes), 80)])
		}
	}
	assert.Empty(w.t, w.tables().since(before))
}

func smuggled(w *world) {
	const hidden = "GET /visit?app=shop&uri=http://example.com/hidden HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.5\r\nUser-Agent: " +
		desk.Browser + "\r\n\r\n"
	const head = "POST /visit HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nUser-Agent: " + desk.Browser + "\r\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)
	for _, bytes := range []string{
		head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n%s", len(chunked), chunked),
		head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(hidden), hidden),
		head + "Transfer-Encoding: chunked\r\n\r\n" + chunked,
		head + fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(hidden), hidden),
		head + fmt.Sprintf("Content-Length: 0, %d\r\n\r\n%s", len(hidden), hidden),
		head + fmt.Sprintf("Content-Length: +%d\r\n\r\n%s", len(hidden), hidden),
		head + fmt.Sprintf("Content-Length: 0x%x\r\n\r\n%s", len(hidden), hidden),
		head + "Transfer-Encoding: xchunked\r\n\r\n" + chunked,
		head + "Transfer-Encoding: chunked, identity\r\n\r\n" + chunked,
		head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunked,
		head + "Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: \x0bchunked\r\nContent-Length: 0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + hidden,
		head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + hidden,
		head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n" + hidden,
		head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		head + fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n0\r\n\r\n%s", 5+len(hidden), hidden),
		strings.Replace(head, "POST /visit", "GET /visit", 1) + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s",
			5+len(hidden), hidden),
		strings.Replace(head, "POST /visit", "GET /nothing", 1) +
			fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s",
				5+len(hidden), hidden),
	} {
		before := w.tables()
		answers := w.rawToTheEnd(w.public[proxied], bytes)
		assert.Equal(w.t, 1, strings.Count(answers, "HTTP/1.1 "), "%q\n%s", bytes, answers)
		assert.Regexp(w.t, `^HTTP/1.1 (400|404|413|501) `, answers, "%q", bytes)
		assert.Empty(w.t, w.tables().since(before), "%q", bytes)
	}
}

// bodiesBound is the limit for bodies of calls and their texts, plus the buffers that the texts of four compressed bodies
// outgrow while they are decompressed.
const bodiesBound = 64<<20 + 4*8<<20

// badBody is the start of a call that is never completed.
type badBody struct {
	header string
	body   []byte
	cut    bool // not sent completely
}

func badBodies(w *world) map[string]badBody {
	zip := func(size int) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(bytes.Repeat([]byte(" "), size))
		require.NoError(w.t, err)
		require.NoError(w.t, z.Close())
		return b.Bytes()
	}
	const packed = "Content-Encoding: gzip\r\n"
	bomb, large := zip(64<<20), zip(8<<20-1)
	return map[string]badBody{
		"slow":        {"Content-Length: 100000\r\n", []byte("["), true},
		"many":        {"Transfer-Encoding: chunked\r\n", []byte("400\r\n" + strings.Repeat(" ", 0x400) + "\r\n"), true},
		"huge":        {fmt.Sprintf("Content-Length: %d\r\n", 8<<20), bytes.Repeat([]byte(" "), 8<<20-1), true},
		"packed":      {packed + fmt.Sprintf("Content-Length: %d\r\n", len(bomb)), bomb, false},
		"packed, cut": {packed + fmt.Sprintf("Content-Length: %d\r\n", len(large)), large[:len(large)-1], true},
	}
}

// crowdOf is the number of connections that repeatedly send a body.
var crowdOf = map[string]int{"slow": 40, "many": 100, "huge": 12, "packed": 4, "packed, cut": 20}

// floodOfBodies sends slow, huge, compressed and many bodies, in parallel to callers whose calls must all be counted.
func floodOfBodies(w *world) {
	host, bodies := strings.TrimPrefix(w.public[direct], "http://"), badBodies(w)
	const callers, calls, visits = 6, 5, 50
	call := "POST /visits?app=demo&answers=none\nContent-Type: application/json\n\n[" +
		strings.Repeat(`{"uri":"http://honest.example/","ip":"203.0.113.5"},`, visits-1) + `{"uri":"http://honest.example/","ip":"203.0.113.5"}]`
	w.send(direct, "GET /visit?app=demo&ip=203.0.113.5&uri=http://honest.example/")
	before := heap()

	over := make(chan struct{})
	var mu sync.Mutex // guards conns and answers
	var conns []net.Conn
	answers := map[string]map[int]int{}
	var there, sentAway atomic.Int64
	var crowd sync.WaitGroup
	attack := func(name string, bad badBody) {
		for first, answered := true, false; ; first = false {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			_, _ = io.WriteString(conn, "POST /visits?app=demo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+bad.header+"\r\n")
			if first {
				there.Add(1)
			}
			go func() { _, _ = conn.Write(bad.body) }() // returns when the connection is closed
			if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				_ = response.Body.Close()
				mu.Lock()
				if answers[name] == nil {
					answers[name] = map[int]int{}
				}
				answers[name][response.StatusCode]++
				mu.Unlock()
			}
			if !answered && (name == "slow" || name == "many") {
				answered = true
				sentAway.Add(1)
			}
			_ = conn.Close()
			select {
			case <-over:
				return
			default:
			}
		}
	}
	all := 0
	for name, n := range crowdOf {
		all += n
		for range n {
			crowd.Go(func() { attack(name, bodies[name]) })
		}
	}
	assert.Eventually(w.t, func() bool { return int(there.Load()) == all }, patience, time.Millisecond)

	var honest sync.WaitGroup
	for range callers {
		honest.Go(func() {
			for range calls {
				a := w.send(direct, call)
				for again := 0; a.status == http.StatusServiceUnavailable && again < 5; again++ { // a busy machine
					a = w.send(direct, call)
				}
				assert.Equal(w.t, http.StatusOK, a.status, a.body)
				assert.Contains(w.t, a.body, fmt.Sprintf(`"counted":%d,`, visits))
			}
		})
	}
	honest.Wait()
	grown := heap() - before
	for range 20 { // each measurement includes concurrent allocations, so the minimum is closest to the truth
		grown = min(grown, heap()-before)
	}
	w.t.Logf("heap: %+.1f MB under attack", float64(grown)/(1<<20))
	assert.Less(w.t, grown, int64(bodiesBound+heapBound))
	assert.Eventually(w.t, func() bool { return int(sentAway.Load()) == crowdOf["slow"]+crowdOf["many"] }, patience, time.Millisecond,
		"slow ones are sent away")

	close(over)
	mu.Lock()
	for _, conn := range conns {
		_ = conn.Close()
	}
	mu.Unlock()
	crowd.Wait()
	w.t.Log(answers)
	for name, got := range answers {
		for status := range got {
			assert.Contains(w.t, []int{http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable}, status, name)
		}
	}
	assert.Positive(w.t, answers["packed"][http.StatusRequestEntityTooLarge])
	assert.Equal(w.t, http.StatusOK, w.send(direct, call).status)
	slow := w.send(direct, "POST /visits?app=demo\nContent-Length: 100000\n\n[")
	assert.Equal(w.t, http.StatusRequestTimeout, slow.status, "a single one, too")
	assert.Contains(w.t, slow.body, "body: it arrives too slowly: send at least 16 KB a second")
	assert.EqualValues(w.t, 1+(callers*calls+1)*visits, w.tables()["demo honest.example"].hot)
	w.checkHeap(before)
}
