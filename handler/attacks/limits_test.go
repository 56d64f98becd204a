package attacks

import (
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"

	"footfall/counter/app"
	"footfall/db/dbtest"
)

// usualRequests is the number of requests that an address may send in a minute, as documented in `footfall app add
// --help`.
const usualRequests = 600

const (
	visitPlain = "GET /visit?app=plain&uri=http://example.com/"
	from       = "\nX-Forwarded-For: "
	often      = "too many requests to app plain from one address"
)

var limitAttacks = []attack{
	{
		name:     "more requests than people make",
		sent:     "700 visits from one address in a minute, to an app with the default limits",
		answered: "600 × 200, 100 × 429 with Retry-After",
		stored:   "the page, by 198.51.100.7 ×600", story: manyRequests,
	},
	{
		name:     "the neighbours of that address",
		sent:     "visits from the next address, from the same to another app, and for the same with a key that may assert",
		answered: "200", stored: "each", story: neighbours,
	},
	{
		name:     "the next minute of that address",
		sent:     "two visits after 0.1 s, and 700 after a minute",
		answered: "200, 429; 600 × 200, 100 × 429", stored: "601 visits", story: nextMinute,
	},
	{
		name:     "one /64 in place of many clients",
		sent:     "700 visits from 700 addresses of one /64",
		answered: "600 × 200, 100 × 429", stored: "the page, by 2001:db8:2:2:: ×600", story: networkRequests,
	},
	{
		name:     "endless queries",
		sent:     "700 from one address: `/counts`, prefetches, a crawler's visits",
		answered: "600 × 200, 100 × 429", stored: "nothing", story: manyQuestions,
	},
	{
		name:     "callers who may assert visitors",
		sent:     "700 visits for one address with a key that may assert, and to an open app",
		answered: "200", stored: "the page, by 203.0.113.5 ×700, each",
		story: believed,
	},
	{
		name:     "limits that an open app sets",
		sent:     "20 visits for one address with `--max-requests 5`, to 20 pages with `--max-new-pages 4`",
		answered: "5 and 20 × 200, the rest 429", stored: "5 visits; 3 pages and example.com/(other)", story: chosenLimits,
	},
	{
		name:     "made-up paths",
		sent:     "100 paths to an app with `--max-new-pages 10`, and the same again the next day",
		answered: "200",
		stored:   "the site and 9 pages, the rest on example.com/(other); 10 pages more the next day", story: madeUpPaths,
	},
	{
		name:     "made-up subdomains",
		sent:     "100 subdomains of `*.wild.example` with `--max-new-pages 10`",
		answered: "200", stored: "5 sites with a page each, the rest on the site (other)", story: madeUpSites,
	},
}

// wantLimited checks that a request is refused for its rate.
func (w *world) wantLimited(a answer, says string) {
	w.t.Helper()
	assert.Equal(w.t, http.StatusTooManyRequests, a.status)
	assert.Contains(w.t, a.body, says)
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	assert.NoError(w.t, err)
	assert.GreaterOrEqual(w.t, seconds, 1)
	assert.LessOrEqual(w.t, seconds, 60)
}

// exhaust uses up the minute of an address that was not used before.
func (w *world) exhaust(address string) {
	w.t.Helper()
	got := w.flood(proxied, usualRequests+100, func(int) string { return visitPlain + "many" + from + address })
	assert.Equal(w.t, map[int]int{200: usualRequests, 429: 100}, got)
}

func manyRequests(w *world) {
	before := w.tables()
	w.exhaust("198.51.100.7")
	w.wantLimited(w.send(proxied, visitPlain+from+"198.51.100.7"), often)
	assert.Equal(w.t, "example.com/many 198.51.100.7 ×600", w.tables().since(before))
}

func neighbours(w *world) {
	w.exhaust("198.51.100.8")
	before := w.tables()
	for _, request := range []string{
		visitPlain + "near" + from + "198.51.100.9", "GET /visit?app=quiet&uri=http://example.com/near" + from + "198.51.100.8", visitPlain +
			"near",
		visitPlain + "near&ip=198.51.100.8" + from + "198.51.100.8" + bearerOf + "{plain}",
	} {
		assert.Equal(w.t, http.StatusOK, w.send(proxied, request).status, request)
	}
	assert.Equal(w.t, "example.com/near 198.51.100.9 127.0.0.1 198.51.100.8\nexample.com/near 198.51.100.8", w.tables().since(before))
}

func nextMinute(w *world) {
	w.exhaust("198.51.100.10")
	before := w.tables()
	visit := func() answer { return w.send(proxied, visitPlain+"many"+from+"198.51.100.10") }
	w.wantLimited(visit(), often)
	w.pass(100 * time.Millisecond)
	assert.Equal(w.t, http.StatusOK, visit().status)
	w.wantLimited(visit(), often)
	w.pass(time.Minute)
	w.exhaust("198.51.100.10")
	assert.Equal(w.t, "example.com/many ×601", w.tables().since(before))
}

func networkRequests(w *world) {
	before := w.tables()
	got := w.flood(proxied, 700, func(i int) string { return fmt.Sprintf("%snet%s2001:db8:2:2:%x::%x", visitPlain, from, i, i) })
	assert.Equal(w.t, map[int]int{200: usualRequests, 429: 100}, got)
	assert.Equal(w.t, http.StatusOK, w.send(proxied, visitPlain+"net2"+from+"2001:db8:2:3::1").status)
	assert.Equal(w.t, "example.com/net 2001:db8:2:2:: ×600\nexample.com/net2 2001:db8:2:3::", w.tables().since(before))
}

func manyQuestions(w *world) {
	w.send(proxied, visitPlain+from+"198.51.100.11")
	w.pass(time.Minute)
	before := w.tables()
	kinds := []string{"GET /counts?app=plain&uri=http://example.com/", visitPlain + "\nPurpose: prefetch", visitPlain +
		"\nUser-Agent: curl/8.5.0"}
	got := w.flood(proxied, 700, func(i int) string { return kinds[i%len(kinds)] + from + "198.51.100.12" })
	assert.Equal(w.t, map[int]int{200: usualRequests, 429: 100}, got)
	for _, request := range append(kinds, "HEAD /visit?app=plain&uri=http://example.com/") {
		assert.Equal(w.t, http.StatusTooManyRequests, w.send(proxied, request+from+"198.51.100.12").status, request)
	}
	assert.Empty(w.t, w.tables().since(before))
}

func believed(w *world) {
	before := w.tables()
	for _, request := range []string{
		"GET /visit?app=plain&uri=http://example.com/believed&ip=203.0.113.5" + bearerOf + "{plain}",
		"GET /visit?app=demo&uri=http://example.com/believed&ip=203.0.113.5",
	} {
		request = w.expand(request)
		assert.Equal(w.t, map[int]int{200: 700}, w.flood(direct, 700, func(int) string { return request }))
	}
	const each = "example.com/believed 203.0.113.5 ×700"
	assert.Equal(w.t, each+"\n"+each, w.tables().since(before))
}

func chosenLimits(w *world) {
	flood := func(app string, s app.Settings, path, ip string) (map[int]int, tables) {
		s.Access = ptr("open")
		w.add(app, s)
		got := w.flood(direct, 20, func(i int) string {
			return "GET /visit?app=" + app + strings.ReplaceAll("&uri=http://example.com/"+path+"&ip="+ip, "#", strconv.Itoa(i))
		})
		return got, w.tables()
	}
	got, now := flood("few", app.Settings{MaxRequests: ptr("5")}, "", "203.0.113.1")
	assert.Equal(w.t, map[int]int{200: 5, 429: 15}, got)
	assert.EqualValues(w.t, 5, now["few example.com"].hot)
	got, now = flood("fewpages", app.Settings{MaxNewPages: ptr("4")}, "#", "203.0.113.1")
	assert.Equal(w.t, map[int]int{200: 20}, got)
	assert.EqualValues(w.t, 20, now["fewpages example.com"].hot)
	assert.EqualValues(w.t, 17, now["fewpages example.com/(other)"].hot)
	assert.EqualValues(w.t, 5, w.One(w.t, `SELECT count(*) FROM pages p JOIN apps a ON a.id = p.app_id WHERE a.name = 'fewpages'`))
}

func madeUpPaths(w *world) {
	w.add("paths", app.Settings{Sites: []string{"example.com"}, MaxNewPages: ptr("10"), MaxRequests: ptr("0")})
	pages := func() int64 {
		return w.One(w.t, `SELECT count(*) FROM pages p JOIN apps a ON a.id = p.app_id WHERE a.name = 'paths' AND p.uri NOT LIKE '%(other)'`)
	}
	walk := func() {
		got := w.flood(proxied, 100, func(i int) string {
			return fmt.Sprintf("GET /visit?app=paths&uri=http://example.com/%d%s198.51.100.%d", i, from, i)
		})
		assert.Equal(w.t, map[int]int{200: 100}, got)
	}
	walk()
	now := w.tables()
	assert.EqualValues(w.t, 10, pages(), "the site and nine pages")
	assert.EqualValues(w.t, 100, now["paths example.com"].hot)
	assert.EqualValues(w.t, 91, now["paths example.com/(other)"].hot)
	assert.EqualValues(w.t, 91, now["paths example.com/(other)"].uv)
	w.pass(24 * time.Hour)
	walk()
	now = w.tables()
	assert.EqualValues(w.t, 20, pages(), "ten more")
	assert.EqualValues(w.t, 200, now["paths example.com"].hot)
	assert.EqualValues(w.t, 91+81, now["paths example.com/(other)"].hot)
}

func madeUpSites(w *world) {
	w.add("wilds", app.Settings{Sites: []string{"*.wild.example"}, MaxNewPages: ptr("10"), MaxRequests: ptr("0")})
	got := w.flood(direct, 100, func(i int) string { return fmt.Sprintf("GET /visit?app=wilds&uri=http://w%d.wild.example/", i) })
	assert.Equal(w.t, map[int]int{200: 100}, got)
	now := w.tables()
	assert.EqualValues(w.t, 12, w.One(w.t, `SELECT count(*) FROM pages p JOIN apps a ON a.id = p.app_id WHERE a.name = 'wilds'`))
	assert.EqualValues(w.t, 95, now["wilds (other)"].hot)
	assert.EqualValues(w.t, 95, now["wilds (other)/(other)"].hot)
}

// heapBound limits the growth of the Go heap, however large the numbers below are: the sum of an instance's caches,
// each of which is bounded, and some room.
const heapBound = 32 << 20

// usualFlood is the number of requests in a flood, unless a variable sets another.
func usualFlood() int { return dbtest.LongOrShort(20_000, 3_000) }

var floodAttacks = []attack{
	{
		name:     "made-up paths",
		sent:     "3,000 paths (20,000 in `make race`, a million in `make attacks`) to an app with `--max-new-pages 100`",
		answered: "200",
		stored:   "100 rows and (other); hot of the site = visits; heap + 32 MB at most", story: floodOfPaths,
	},
	{
		name: "rotated addresses and agents",
		sent: "3,000 /64s (20,000 in `make race`, a million in `make attacks`), each with a User-Agent of its own, every hundredth a " +
			"crawler's; " +
			"among them 1,000 visits from one address with as many agents",
		answered: "200; that one 600 × 200, then 429",
		stored:   "all but the crawlers; heap + 32 MB at most", story: floodOfAddresses,
	},
	{
		name: "bodies of many visits",
		sent: "176 connections, again and again, with calls that end in the middle, of one byte, of 1 KB in chunks, of 8 MB, and packed, " +
			"or that unpack to 64 MB; among them 30 calls of callers who do nothing wrong",
		answered: "408, 413, 503; 200 for the callers",
		stored:   "all visits of the callers; heap + 128 MB at most in the meantime", story: floodOfBodies,
	},
}

// heap returns the size of the live heap.
func heap() int64 {
	runtime.GC()
	runtime.GC() // frees objects held by finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below the limit
}

func (w *world) checkHeap(before int64) {
	w.t.Helper()
	grown := heap() - before
	w.t.Logf("heap: %+.1f MB", float64(grown)/(1<<20))
	assert.Less(w.t, grown, int64(heapBound))
}

func floodOfPaths(w *world) {
	n := dbtest.FromEnv(w.t, "FOOTFALL_ATTACK_PATHS", usualFlood())
	w.add("pathflood", app.Settings{Sites: []string{"example.com"}, MaxNewPages: ptr("100"), MaxRequests: ptr("0")})
	before := heap()
	got := w.flood(direct, n, func(i int) string {
		return fmt.Sprintf("GET /visit?app=pathflood&uri=http://example.com/%d/made-up", i)
	})
	assert.Equal(w.t, map[int]int{http.StatusOK: n}, got)
	w.checkHeap(before)
	const of = ` FROM pages p JOIN apps a ON a.id = p.app_id JOIN counters c ON c.page_id = p.id WHERE a.name = 'pathflood'`
	assert.EqualValues(w.t, 101, w.One(w.t, `SELECT count(*)`+of), "the site, 99 pages and (other)")
	assert.EqualValues(w.t, n, w.One(w.t, `SELECT c.hot`+of+` AND p.uri = 'example.com'`))
	assert.EqualValues(w.t, n, w.One(w.t, `SELECT sum(c.hot)`+of+` AND p.site_id IS NOT NULL`))
	assert.EqualValues(w.t, n-99, w.One(w.t, `SELECT c.hot`+of+` AND p.uri = 'example.com/(other)'`))
}

func floodOfAddresses(w *world) {
	n := dbtest.FromEnv(w.t, "FOOTFALL_ATTACK_ADDRESSES", usualFlood())
	const steadily, crawler = 1000, 100
	w.add("addressflood", app.Settings{Sites: []string{"example.com"}})
	const request = "GET /visit?app=addressflood&uri=http://example.com/\nUser-Agent: Mozilla/5.0 "
	steady := make(chan map[int]int)
	before := heap()
	assert.Equal(w.t, http.StatusOK, w.send(proxied, request+"(Windows NT 10.0)\nX-Forwarded-For: 198.51.100.7").status, "a known visitor")
	go func() {
		steady <- w.flood(proxied, steadily, func(i int) string {
			return fmt.Sprintf("%s(Windows NT 10.0) Gecko/%d\nX-Forwarded-For: 198.51.100.7", request, i)
		})
	}()
	others := w.flood(proxied, n, func(i int) string {
		if i%crawler == 0 {
			return fmt.Sprintf("%s(compatible; Googlebot/2.%d)\nX-Forwarded-For: 2001:db9:%x:%x::1", request, i, i>>16, i&0xffff)
		}
		return fmt.Sprintf("%s(X11; Linux x86_64; rv:%d.0) Gecko/20100101 Firefox/%[2]d.0\nX-Forwarded-For: 2001:db8:%x:%x::1", request, i, i>>16,
			i&0xffff)
	})
	assert.Equal(w.t, map[int]int{200: usualRequests - 1, 429: steadily - usualRequests + 1}, <-steady)
	assert.Equal(w.t, map[int]int{200: n}, others)
	w.checkHeap(before)
	const of = ` FROM visitors v JOIN pages p ON p.id = v.page_id JOIN apps a ON a.id = p.app_id WHERE a.name = 'addressflood' AND p.uri ` +
		`= 'example.com'`
	counted := n - n/crawler
	assert.EqualValues(w.t, counted+1, w.One(w.t, `SELECT count(*)`+of), "the steady one is a visitor, too")
	assert.Zero(w.t, w.One(w.t, `SELECT count(*)`+of+` AND v.ip << '2001:db9::/32'`), "crawlers")
	assert.EqualValues(w.t, usualRequests+counted, w.tables()["addressflood example.com"].hot)
}
