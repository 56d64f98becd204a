package attacks

import (
	"fmt"
	"net/http"
	"runtime"

	"github.com/stretchr/testify/assert"

	"footfall/counter/app"
	"footfall/db/dbtest"
)

// Bounds on what the Go heap may grow by, whatever the numbers below are: the sum of the caches
// that an instance fills, each of which is bounded, and some room.
const heapBound = 32 << 20

// usualFlood is how many requests a flood has, unless a variable says another number.
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
		answered: "408, 413, 503; those of the callers 200",
		stored:   "all visits of the callers; heap + 128 MB at most meanwhile", story: floodOfBodies,
	},
}

// heap is what is alive.
func heap() int64 {
	runtime.GC()
	runtime.GC() // for what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below
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
	assert.Equal(w.t, http.StatusOK, w.send(proxied, request+"(Windows NT 10.0)\nX-Forwarded-For: 198.51.100.7").status, "they are known")
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
