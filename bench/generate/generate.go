// Package generate generates visits, with which reports and checks can be tested. It either counts the visits for a new
// app, or writes them as an access log.
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

// Set describes the visits to generate. Its fields are flags. If a field is zero, its default is used.
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

// Completed returns a copy of s in which fields that were zero have their defaults.
func (s Set) Completed() Set {
	if err := kong.ApplyDefaults(&s); err != nil {
		panic(err) // only an invalid struct tag causes an error
	}
	if s.Until.IsZero() {
		s.Until = time.Now().AddDate(0, 0, -1)
	}
	s.Until = s.Until.UTC().Truncate(24 * time.Hour)
	return s
}

// Check returns the errors in the set. Zero fields are valid, because they have defaults.
func (s Set) Check() (f bench.Faults) {
	s = s.Completed()
	f.When(s.Pages < s.Sites, "pages: %d are too few for %d sites: each needs at least one", s.Pages, s.Sites)
	f.When(s.Visits < max(s.Pages, s.Visitors, s.Days),
		"visits: %d are too few: every page, visitor and day (%d, %d, %d) needs at least one",
		s.Visits, s.Pages, s.Visitors, s.Days)
	return f
}

// String returns a description of the set as text.
func (s Set) String() string {
	return fmt.Sprintf("app %s: %s visits over %d days by %s visitors to %s pages of %d sites, seed %d", s.App,
		bench.Grouped(float64(s.Visits)), s.Days, bench.Grouped(float64(s.Visitors)), bench.Grouped(float64(s.Pages)), s.Sites, s.Seed)
}

// Run creates an app in the database o.DatabaseURL, and counts the visits of the set for this app, in the order of their
// times. It counts with the same code as POST /visits. The caller must have validated the set with Check.
func Run(ctx context.Context, o bench.Options, set Set) error {
	set = set.Completed()
	d, err := bench.OpenMigrated(ctx, o.DatabaseURL)
	if err != nil {
		return err
	}
	defer d.Close()
	// The app counts in UTC, accepts any visitors and pages, and keeps all visits.
	open, unlimited, forever := "open", "0", 0
	settings := app.Settings{Access: &open, MaxNewPages: &unlimited, RetainDays: &forever, ForgetDays: &forever}
	if err := admin.NewAdmin(d, nil).AddApp(ctx, set.App, settings); err != nil {
		return err
	}
	if err = count(ctx, d, set, o); err == nil {
		err = bench.WithQueries(ctx, o.DatabaseURL, func(q *tables.Queries) error { return q.Vacuum(ctx) })
	}
	if err != nil {
		return fmt.Errorf("app: %s is incomplete: delete it with `footfall app delete %s`, or start with a new folder: %w",
			set.App, set.App, err)
	}
	return nil
}

// callVisits is the number of visits in one call. It is less than intake.MostItems, so that all visits of a call are
// counted before the call's timeout.
const callVisits = intake.MostItems / 2

// Languages and countries of visitors. A value that a list contains several times is more frequent.
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
			if at.After(now) { // the last day may not have ended yet
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

// Agents are values of the header User-Agent. Each of them has half as many visitors as the previous one, except the last
// one, which belongs to a crawler. Only WriteLog uses the last one.
var Agents = []string{
	"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
	"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
	"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
}

// referrers are the most frequent referrers on other sites. Less frequent referrers are generated, each with its own host.
var referrers = []string{
	"https://www.google.com/", "https://www.google.de/", "https://duckduckgo.com/", "https://www.bing.com/", "https://t.co/",
	"https://news.ycombinator.com/",
	"android-app://com.google.android.gm/", "https://l.facebook.com/", "https://old.reddit.com/", "https://chatgpt.com/",
}

const (
	fromSite      = 0.4 // share of visits whose referrer is on the same site
	fromElsewhere = 0.3 // share of visits whose referrer is on another site; all other visits have no referrer
	fromLetter    = 0.02
	mostReferrers = 300
	referrerSkew  = 1.2
)

// requestValues returns a function that generates further values of visit n: the query of the page's URI, the referrer ("":
// none), and an index in Agents. The caller must call this function once for each visit, in order.
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

// WriteLog writes the visits as an access log, in the combined format with a virtual host at the start of each line. As in
// a real log, many lines are not visits: only two of five lines are. The same set produces the same log.
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

// Behavior of the generated visitors. For each return visit, an earlier visit is chosen at random, and its visitor returns.
// So a few visitors visit often, and most visitors rarely.
const (
	inSession = 0.5 // share of return visits for which a visit of the last minutes is chosen; for others: of the last week
	samePage  = 0.3 // share of return visits to the same page as the chosen earlier visit
	sameSite  = 0.55
	weekendOf = 0.7 // number of visits on a Saturday or Sunday, divided by the number on another day
	pageSkew  = 1.1 // page n of a site gets visits in proportion to 1/n^pageSkew
	siteSkew  = 1.05
	ipv6Share = 4 // 1/ipv6Share of the visitors have IPv6 addresses; all others have IPv4 addresses
)

// sections are the possible first parts of a page's path.
var sections = []string{"blog", "docs", "help", "news", "shop"}

// drawnVisits contains the generated visits, in the order of time. Sites, pages and visitors are numbered from 0.
type drawnVisits struct {
	days    []time.Time // the start of each day
	dayEnds []int       // for each day, the index of the first visit after it
	siteOf  []int32     // for each page, its site
	people  int
	page    []int32 // the page of each visit
	visitor []int32 // the visitor of each visit

	random    *rand.Rand
	site      *rand.Zipf
	pages     [][]int32    // the pages of each site
	popular   []*rand.Zipf // for each site, generates an index in its pages
	order     []int        // the order in which visit chooses pages that have no visit yet
	visited   []bool
	unvisited int
}

// drawVisits generates the visits of a set. The same set always produces the same visits.
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
			// A new visitor. The numbers of new visitors do not ascend, so that their addresses are spread over all
			// addresses.
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

// divideDays sets c.days, divides the visits among these days, and stores the result in c.dayEnds.
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

// dayOf returns the index in c.days for the day on which visit n happens.
func (c *drawnVisits) dayOf(n int) int {
	day, _ := slices.BinarySearch(c.dayEnds, n+1)
	return day
}

// moment returns the time of visit n.
func (c *drawnVisits) moment(n int) time.Time {
	day, begin := c.dayOf(n), 0
	if day > 0 {
		begin = c.dayEnds[day-1]
	}
	return c.days[day].Add(time.Duration(float64(n-begin) / float64(c.dayEnds[day]-begin) * float64(24*time.Hour)))
}

// spreadPages distributes the pages over the sites. A few sites get many pages.
func (c *drawnVisits) spreadPages(o Set) {
	c.site = rand.NewZipf(c.random, siteSkew, 1, uint64(o.Sites-1)) //nolint:gosec // not negative
	c.pages, c.order, c.visited, c.unvisited = make([][]int32, o.Sites), c.random.Perm(o.Pages), make([]bool, o.Pages), o.Pages
	for page := range o.Pages {
		site := page // give each site at least one page
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

// nextPage returns the page for a return visit. before is the page of the chosen earlier visit.
func (c *drawnVisits) nextPage(before int32) int32 {
	switch luck := c.random.Float64(); {
	case luck < samePage:
		return before
	case luck < samePage+sameSite:
		return c.pageOf(int(c.siteOf[before]))
	}
	return c.anyPage()
}

// visit marks a page as visited, and returns this page. To make sure that every page is visited at least once, it sometimes
// chooses a page without visits instead of page. left is the number of remaining visits.
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

// coprime returns a number near 0.62 n that has no common divisor with n except 1. So the first n multiples of this number,
// modulo n, are all different.
func coprime(n int) int {
	for k := max(1, n*618/1000); ; k++ {
		if new(big.Int).GCD(nil, nil, big.NewInt(int64(n)), big.NewInt(int64(k))).Int64() == 1 {
			return k
		}
	}
}

func siteName(site int) string { return fmt.Sprintf("site-%02d.example", site+1) }

// uri returns the URI of a page as Footfall stores it, without http://.
func (c *drawnVisits) uri(page int) string {
	return fmt.Sprintf("%s/%s/%06d", siteName(int(c.siteOf[page])), sections[page*7%31%len(sections)], page)
}

// address returns the address of a visitor. A visitor with a higher number has a higher address in PostgreSQL's order:
// first IPv4 and then IPv6.
func (c *drawnVisits) address(visitor int32) netip.Addr {
	four := c.people - c.people/ipv6Share
	if n := int(visitor); n < four {
		at := n * (1 << 24 / four)
		return netip.AddrFrom4([4]byte{10, byte(at >> 16), byte(at >> 8), byte(at)})
	}
	at := (int(visitor) - four) * (1 << 32 / max(1, c.people/ipv6Share))
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(at >> 24), byte(at >> 16), byte(at >> 8), byte(at)})
}
