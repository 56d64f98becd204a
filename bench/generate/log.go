package generate

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
)

// Agents of a log's lines: each has half as many visitors as the one before. The last is a
// crawler's.
var agents = []string{
	"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
	"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
	"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
}

// referrers are the pages that lead to most visits from elsewhere. The others are of hosts of which
// each leads to one.
var referrers = []string{
	"https://www.google.com/", "https://www.google.de/", "https://duckduckgo.com/", "https://www.bing.com/", "https://t.co/", "https://news.ycombinator.com/",
	"android-app://com.google.android.gm/", "https://l.facebook.com/", "https://old.reddit.com/", "https://chatgpt.com/",
}

const (
	fromSite      = 0.4 // share of the visits that come from a page of the same site
	fromElsewhere = 0.3 // from another page; the others say nothing
	fromLetter    = 0.02
	mostReferrers = 300
	referrerSkew  = 1.2
)

// brings is what the requests of the visits say besides: the query of the page, the page that led
// to it ("": none), and the place of the agent. It is to be called once for each, in their order.
func (c *drawnVisits) brings(seed uint64) func(n int) (query, from string, agent int) {
	random := rand.New(rand.NewPCG(seed, 0x726566)) //nolint:gosec // to be repeated, not to be secret
	referrer := rand.NewZipf(random, referrerSkew, 1, mostReferrers-1)
	return func(n int) (query, from string, agent int) {
		switch luck := random.Float64(); {
		case luck < fromSite:
			from = "https://" + siteName(int(c.siteOf[c.page[n]])) + "/"
		case luck < fromSite+fromElsewhere:
			if n := referrer.Uint64(); n < uint64(len(referrers)) {
				from = referrers[n]
			} else {
				from = fmt.Sprintf("https://www.from-%03d.example/", n)
			}
		case luck > 1-fromLetter:
			query = fmt.Sprintf("?utm_source=Letter&utm_campaign=Week-%d", c.dayOf(n)/7)
		}
		return query, from, bits.TrailingZeros32(uint32(c.visitor[n])+1) % (len(agents) - 1) //nolint:gosec // not negative
	}
}

// WriteLog writes the visits as an access log in the format Combined with the virtual host in
// front, and as many other lines as servers write: of five lines two are visits. The same set makes
// the same log.
func WriteLog(w io.Writer, set Set) error {
	set = set.Completed()
	drawn := drawVisits(set)
	brings := drawn.brings(set.Seed)
	out := bufio.NewWriterSize(w, 1<<20)
	var at string
	var second int64
	line := func(visitor int32, host, path string, status int, from string, agent int) {
		fmt.Fprintf(out, "%s %s - - [%s] \"GET %s HTTP/1.1\" %d 5120 %q %q\n", host, drawn.address(visitor), at, path, status, cmp.Or(from, "-"), agents[agent])
	}
	for n, page := range drawn.page {
		moment := drawn.moment(n)
		if moment.Unix() != second {
			second, at = moment.Unix(), moment.Format("02/Jan/2006:15:04:05 -0700")
		}
		visitor, host := drawn.visitor[n], siteName(int(drawn.siteOf[page]))
		query, from, agent := brings(n)
		line(visitor, host, drawn.uri(int(page))[len(host):]+query, 200, from, agent)
		line(visitor, host, "/assets/style.css", 200, "https://"+host+"/", agent)
		switch n % 4 {
		case 0:
			line(visitor, host, "/wp-login.php", 404, "", agent)
		case 2:
			line(visitor, host, "/", 200, "", len(agents)-1)
		}
	}
	return out.Flush()
}
