// Package generate generates visits. It counts them for a new app, to test reports and checks, or writes them as an
// access log.
package generate

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"footfall/admin"
	"footfall/bench"
	"footfall/bench/tables"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/intake"
)

// Set describes the generated visits, as flags. A zero field means its default.
type Set struct {
	App      string    `default:"generated" placeholder:"NAME" help:"The app to create; it must not exist yet. It counts in UTC. Default: ${default}."`
	Visits   int       `default:"10000000" placeholder:"N" help:"How many visits. Default: ${default}."`
	Days     int       `default:"60" range:"1..10000" placeholder:"N" help:"Number of days over which the visits are spread. Default: ${default}."`
	Until    time.Time `placeholder:"DAY" format:"2006-01-02" help:"The last day, like 2019-06-29. Default: yesterday."`
	Pages    int       `default:"100000" placeholder:"N" help:"How many pages, few of which are visited often. Default: ${default}."`
	Visitors int       `default:"1000000" range:"1..16000000" placeholder:"N" help:"How many visitors; few visit often. Default: ${default}."`
	Sites    int       `default:"20" placeholder:"N" help:"How many sites, few of which are large. Default: ${default}."`
	Seed     uint64    `default:"1" placeholder:"N" help:"The same seed makes the same visits. Default: ${default}."`
}

// Completed returns the set with defaults filled in.
func (s Set) Completed() Set {
	if err := kong.ApplyDefaults(&s); err != nil {
		panic(err) // invalid tag
	}
	if s.Until.IsZero() {
		s.Until = time.Now().AddDate(0, 0, -1)
	}
	s.Until = s.Until.UTC().Truncate(24 * time.Hour)
	return s
}

// Check returns the faults of the set. Missing fields are valid.
func (s Set) Check() (f bench.Faults) {
	s = s.Completed()
	f.When(s.Pages < s.Sites, "pages: %d are too few for %d sites: each needs at least one", s.Pages, s.Sites)
	f.When(s.Visits < max(s.Pages, s.Visitors, s.Days),
		"visits: %d are too few: every page, visitor and day (%d, %d, %d) needs at least one",
		s.Visits, s.Pages, s.Visitors, s.Days)
	return f
}

// String describes the set.
func (s Set) String() string {
	return fmt.Sprintf("app %s: %s visits over %d days by %s visitors to %s pages of %d sites, seed %d", s.App,
		bench.Grouped(float64(s.Visits)), s.Days, bench.Grouped(float64(s.Visitors)), bench.Grouped(float64(s.Pages)), s.Sites, s.Seed)
}

// Run creates an app in the database Options.DatabaseURL and counts the set's visits day by day, like POST /visits. The
// set must have passed Check.
func Run(ctx context.Context, o bench.Options, set Set) error {
	set = set.Completed()
	d, err := bench.Migrated(ctx, o.DatabaseURL)
	if err != nil {
		return err
	}
	defer d.Close()
	// The app counts in UTC, accepts everything that callers send, and keeps all visits.
	open, unlimited, forever := "open", "0", 0
	settings := app.Settings{Access: &open, MaxNewPages: &unlimited, RetainDays: &forever, ForgetDays: &forever}
	if err := admin.NewAdmin(d, nil).AddApp(ctx, set.App, settings); err != nil {
		return err
	}
	if err = count(ctx, d, set, o); err == nil {
		err = bench.Ask(ctx, o.DatabaseURL, func(q *tables.Queries) error { return q.Vacuum(ctx) })
	}
	if err != nil {
		return fmt.Errorf("app: %s is incomplete: delete it with `footfall app delete %s`, or start with a new folder: %w",
			set.App, set.App, err)
	}
	return nil
}

// callVisits is the number of visits per call. The number is limited so that each call gets its
// response before a timeout.
const callVisits = intake.MostItems / 2

// Values for visitors. Frequent values are repeated.
var (
	languages = []string{"en", "de", "en", "ja", "en", "fr", "de", "zh", "en", "de", "es"}
	countries = []string{"DE", "US", "DE", "JP", "US", "FR", "AT", "GB", "DE", "IN", "US", "CH", "NL"}
)

func count(ctx context.Context, d *db.DB, set Set, o bench.Options) error {
	o.Doing("drawing %d visits", set.Visits)
	drawn, now := drawVisits(set), d.Now()
	c, err := counter.Open(ctx, d, counter.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	desk, day, brings := intake.NewDesk(), -1, drawn.requestValues(set.Seed)
	for from := 0; from < set.Visits; from += callVisits {
		if drawn.dayOf(from) != day {
			day = drawn.dayOf(from)
			o.Doing("counting day %d of %d", day+1, set.Days)
		}
		var body bytes.Buffer
		for n := from; n < min(from+callVisits, set.Visits); n++ {
			at := drawn.moment(n)
			if at.After(now) { // the last day may not have ended
				at = now
			}
			query, from, agent := brings(n)
			fmt.Fprintf(&body, `{"uri":"http://%s","ip":"%s","at":"%s","agent":%q,"referrer":%q,"language":%q,"country":%q}`+"\n",
				drawn.uri(int(drawn.page[n]))+query, drawn.address(drawn.visitor[n]), at.Format(time.RFC3339), Agents[agent], from,
				languages[int(drawn.visitor[n])%len(languages)], countries[int(drawn.visitor[n])%len(countries)])
		}
		permit, err := c.AuthorizeOperator(ctx, set.App)
		if err != nil {
			return err
		}
		results, internal, err := desk.Count(ctx, intake.Call{Counting: permit, Body: &body, Length: int64(body.Len()), Lines: true,
			SumsOnly: true})
		if err := errors.Join(err, internal, ctx.Err()); err != nil {
			return err
		}
		for _, r := range results {
			if r.Outcome != intake.Counted {
				return fmt.Errorf("a visit was not counted: %s", cmp.Or(r.Fault, "the database is too slow"))
			}
		}
	}
	return nil
}

// Agents are the User-Agents of visitors. Each agent has half as many visitors as the agent before it. The last
// agent is a crawler.
var Agents = []string{
	"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
	"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
	"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
}

// referrers are the most frequent referrers from other sites. The other referrers each have a host of their own.
var referrers = []string{
	"https://www.google.com/", "https://www.google.de/", "https://duckduckgo.com/", "https://www.bing.com/", "https://t.co/",
	"https://news.ycombinator.com/",
	"android-app://com.google.android.gm/", "https://l.facebook.com/", "https://old.reddit.com/", "https://chatgpt.com/",
}

const (
	fromSite      = 0.4 // share of visits with a referrer on the same site
	fromElsewhere = 0.3 // share of visits with a referrer from another site; the other visits have no referrer
	fromLetter    = 0.02
	mostReferrers = 300
	referrerSkew  = 1.2
)

// requestValues returns a function for the other values of each request: the page's query, the referrer ("": none), and the
// index of the agent. The function must be called once per visit, in order.
func (c *drawnVisits) requestValues(seed uint64) func(n int) (query, from string, agent int) {
	random := rand.New(rand.NewPCG(seed, 0x726566)) //nolint:gosec // repeatable, not secret
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
		return query, from, bits.TrailingZeros32(uint32(c.visitor[n])+1) % (len(Agents) - 1) //nolint:gosec // not negative
	}
}

// WriteLog writes the visits as an access log in the format Combined with a leading virtual host. It also writes
// other lines that servers write: two of five lines are visits. The same set produces the same log.
func WriteLog(w io.Writer, set Set) error {
	set = set.Completed()
	drawn := drawVisits(set)
	brings := drawn.requestValues(set.Seed)
	out := bufio.NewWriterSize(w, 1<<20)
	var at []byte
	line := func(visitor int32, host, path string, status int, from string, agent int) {
		fmt.Fprintf(out, "%s %s - - [%s] \"GET %s HTTP/1.1\" %d 5120 %q %q\n", host, drawn.address(visitor), at, path, status,
			cmp.Or(from, "-"), Agents[agent])
	}
	for n, page := range drawn.page {
		at = drawn.moment(n).AppendFormat(at[:0], "02/Jan/2006:15:04:05 -0700")
		visitor, host := drawn.visitor[n], siteName(int(drawn.siteOf[page]))
		query, from, agent := brings(n)
		line(visitor, host, drawn.uri(int(page))[len(host):]+query, 200, from, agent)
		line(visitor, host, "/assets/style.css", 200, "https://"+host+"/", agent)
		switch n % 4 {
		case 0:
			line(visitor, host, "/wp-login.php", 404, "", agent)
		case 2:
			line(visitor, host, "/", 200, "", len(Agents)-1)
		}
	}
	return out.Flush()
}

// Behavior of the generated visitors. Returning visitors are drawn from earlier visits, so that a few visitors
// visit often, and most visitors rarely.
const (
	inSession = 0.5 // share of return visits that follow a visit of the last minutes; other return visits follow one of the last week
	samePage  = 0.3 // share of return visits to the same page
	sameSite  = 0.55
	weekendOf = 0.7 // visits on a Saturday or Sunday, relative to other days
	pageSkew  = 1.1 // page n of a site is visited in proportion to 1/n^pageSkew
	siteSkew  = 1.05
	ipv6Share = 4 // one of this many visitors has an IPv6 network, and all other visitors have an IPv4 address
)

// sections are the first parts of paths.
var sections = []string{"blog", "docs", "help", "news", "shop"}

// drawnVisits is a set of visits in the order of time. Sites, pages and visitors are numbered from 0.
type drawnVisits struct {
	days    []time.Time // starts of the days
	dayEnds []int       // for each day: the index of the first visit after the day
	siteOf  []int32     // by page
	people  int
	page    []int32 // by visit
	visitor []int32 // by visit

	random    *rand.Rand
	site      *rand.Zipf
	pages     [][]int32    // by site
	popular   []*rand.Zipf // parallel to pages
	order     []int        // order in which pages that were not drawn are visited
	visited   []bool
	unvisited int
}

// drawVisits generates the visits. The same set produces the same visits.
func drawVisits(o Set) *drawnVisits {
	random := rand.New(rand.NewPCG(o.Seed, 0x6670)) //nolint:gosec // repeatable, not secret
	c := &drawnVisits{people: o.Visitors, page: make([]int32, o.Visits), visitor: make([]int32, o.Visits), random: random}
	c.divideDays(o)
	c.spreadPages(o)
	newcomers, step := 0, coprime(o.Visitors)
	week, minutes := max(1, 7*o.Visits/o.Days), max(1, o.Visits/o.Days/100)
	for n := range o.Visits {
		left := o.Visits - n
		if n == 0 || random.IntN(left) < o.Visitors-newcomers {
			// Spread the first visits over all addresses.
			c.visitor[n] = int32(newcomers * step % o.Visitors) //nolint:gosec // checked by Check
			newcomers++
			c.page[n] = c.anyPage()
		} else {
			back := week
			if random.Float64() < inSession {
				back = minutes
			}
			followed := n - 1 - random.IntN(min(back, n))
			c.visitor[n] = c.visitor[followed]
			c.page[n] = c.nextPage(c.page[followed])
		}
		c.page[n] = c.visit(c.page[n], left)
	}
	return c
}

// divideDays sets the days, and how many visits each day has.
func (c *drawnVisits) divideDays(o Set) {
	var weights []float64
	sum := 0.0
	for i := range o.Days {
		day := o.Until.AddDate(0, 0, i+1-o.Days)
		weight := 1.0
		if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
			weight = weekendOf
		}
		sum += weight
		c.days, weights = append(c.days, day), append(weights, sum)
	}
	for _, until := range weights {
		c.dayEnds = append(c.dayEnds, int(float64(o.Visits)*until/sum))
	}
	c.dayEnds[o.Days-1] = o.Visits
}

// dayOf returns the index of a visit's day.
func (c *drawnVisits) dayOf(n int) int {
	day, _ := slices.BinarySearch(c.dayEnds, n+1)
	return day
}

// moment returns the time of a visit.
func (c *drawnVisits) moment(n int) time.Time {
	day, begin := c.dayOf(n), 0
	if day > 0 {
		begin = c.dayEnds[day-1]
	}
	return c.days[day].Add(time.Duration(float64(n-begin) / float64(c.dayEnds[day]-begin) * float64(24*time.Hour)))
}

// spreadPages distributes the pages over the sites, so that some sites are large.
func (c *drawnVisits) spreadPages(o Set) {
	c.site = rand.NewZipf(c.random, siteSkew, 1, uint64(o.Sites-1)) //nolint:gosec // not negative
	c.pages, c.order, c.visited, c.unvisited = make([][]int32, o.Sites), c.random.Perm(o.Pages), make([]bool, o.Pages), o.Pages
	for page := range o.Pages {
		site := page // each site has at least one page
		if page >= o.Sites {
			site = int(c.site.Uint64()) //nolint:gosec // below the number of sites
		}
		c.siteOf = append(c.siteOf, int32(site))           //nolint:gosec // below the number of sites
		c.pages[site] = append(c.pages[site], int32(page)) //nolint:gosec // checked by Check
	}
	for _, pages := range c.pages {
		c.popular = append(c.popular, rand.NewZipf(c.random, pageSkew, 1, uint64(len(pages)-1)))
	}
}

func (c *drawnVisits) anyPage() int32 { return c.pageOf(int(c.site.Uint64())) } //nolint:gosec // below the number of sites

func (c *drawnVisits) pageOf(site int) int32 { return c.pages[site][c.popular[site].Uint64()] }

// nextPage returns the page that a visitor visits after the page before.
func (c *drawnVisits) nextPage(before int32) int32 {
	switch luck := c.random.Float64(); {
	case luck < samePage:
		return before
	case luck < samePage+sameSite:
		return c.pageOf(int(c.siteOf[before]))
	}
	return c.anyPage()
}

// visit returns page, or an unvisited page instead, so that every page is visited at least once in the end. left is the
// number of visits that remain.
func (c *drawnVisits) visit(page int32, left int) int32 {
	if c.unvisited > 0 && c.random.IntN(left) < c.unvisited {
		for c.visited[c.order[0]] {
			c.order = c.order[1:]
		}
		page = int32(c.order[0]) //nolint:gosec // checked by Check
	}
	if !c.visited[page] {
		c.visited[page] = true
		c.unvisited--
	}
	return page
}

// coprime returns a number near 0.62 n without a common divisor with n: its multiples modulo n are all numbers below n,
// each once.
func coprime(n int) int {
	for k := max(1, n*618/1000); ; k++ {
		if new(big.Int).GCD(nil, nil, big.NewInt(int64(n)), big.NewInt(int64(k))).Int64() == 1 {
			return k
		}
	}
}

func siteName(site int) string { return fmt.Sprintf("site-%02d.example", site+1) }

// uri returns a page's URI in canonical form.
func (c *drawnVisits) uri(page int) string {
	return fmt.Sprintf("%s/%s/%06d", siteName(int(c.siteOf[page])), sections[page*7%31%len(sections)], page)
}

// address returns a visitor's address. Addresses are in the order of the visitors' numbers, IPv4 first, as PostgreSQL
// sorts them.
func (c *drawnVisits) address(visitor int32) netip.Addr {
	four := c.people - c.people/ipv6Share
	if n := int(visitor); n < four {
		at := n * (1 << 24 / four)
		return netip.AddrFrom4([4]byte{10, byte(at >> 16), byte(at >> 8), byte(at)})
	}
	at := (int(visitor) - four) * (1 << 32 / max(1, c.people/ipv6Share))
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(at >> 24), byte(at >> 16), byte(at >> 8), byte(at)})
}
