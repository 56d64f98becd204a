package generate

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// What the generated visitors do. Who comes again is drawn from who came, so that few come often
// and most seldom.
const (
	inSession = 0.5 // share of the visits that follow one of the last minutes; the others follow one of the last week
	samePage  = 0.3 // of those that follow a visit: to the same page
	sameSite  = 0.55
	weekendOf = 0.7 // visits of a Saturday or Sunday, those of another day being 1
	pageSkew  = 1.1 // page n of a site is visited in proportion to 1/n^pageSkew
	siteSkew  = 1.05
	ipv6Share = 4 // one visitor in so many has an IPv6 network, the others an IPv4 address
)

// sections are the first parts of paths.
var sections = []string{"blog", "docs", "help", "news", "shop"}

// drawnVisits is a set of visits in the order of time. Sites, pages and visitors are numbers from 0
// on.
type drawnVisits struct {
	days    []time.Time // the first moments of the days
	dayEnds []int       // beside days: the number of the first visit after the day
	siteOf  []int32     // by page
	people  int
	page    []int32 // by visit
	visitor []int32 // by visit
}

// drawVisits makes visits up. The same options give the same ones.
func drawVisits(o Set) *drawnVisits {
	c := &drawnVisits{people: o.Visitors, page: make([]int32, o.Visits), visitor: make([]int32, o.Visits)}
	c.divideDays(o)
	random := rand.New(rand.NewPCG(o.Seed, 0x6670)) //nolint:gosec // to be repeated, not to be secret
	d := newDrawing(c, o, random)
	newcomers, step := 0, coprime(o.Visitors)
	week, minutes := max(1, 7*o.Visits/o.Days), max(1, o.Visits/o.Days/100)
	for n := range o.Visits {
		left := o.Visits - n
		if n == 0 || random.IntN(left) < o.Visitors-newcomers {
			// Spread over all addresses, whoever comes first.
			c.visitor[n] = int32(newcomers * step % o.Visitors) //nolint:gosec // visitors are checked to fit
			newcomers++
			c.page[n] = d.anyPage()
		} else {
			back := week
			if random.Float64() < inSession {
				back = minutes
			}
			followed := n - 1 - random.IntN(min(back, n))
			c.visitor[n] = c.visitor[followed]
			c.page[n] = d.nextPage(c.page[followed])
		}
		c.page[n] = d.visit(c.page[n], left)
	}
	return c
}

// divideDays sets the days and how many visits each has.
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

// dayOf is the day of a visit, as a place in days.
func (c *drawnVisits) dayOf(n int) int {
	day, _ := slices.BinarySearch(c.dayEnds, n+1)
	return day
}

// moment is when a visit came.
func (c *drawnVisits) moment(n int) time.Time {
	day, begin := c.dayOf(n), 0
	if day > 0 {
		begin = c.dayEnds[day-1]
	}
	return c.days[day].Add(time.Duration(float64(n-begin) / float64(c.dayEnds[day]-begin) * float64(24*time.Hour)))
}

// drawing chooses pages.
type drawing struct {
	crowd     *drawnVisits
	random    *rand.Rand
	site      *rand.Zipf
	pages     [][]int32    // of each site
	popular   []*rand.Zipf // beside pages
	order     []int        // pages in the order in which those are visited whom chance left out
	visited   []bool
	unvisited int
}

// newDrawing spreads the pages over the sites, so that some sites are large.
func newDrawing(c *drawnVisits, o Set, random *rand.Rand) *drawing {
	d := &drawing{
		crowd: c, random: random, site: rand.NewZipf(random, siteSkew, 1, uint64(o.Sites-1)), //nolint:gosec // not negative
		pages: make([][]int32, o.Sites), order: random.Perm(o.Pages), visited: make([]bool, o.Pages), unvisited: o.Pages,
	}
	for page := range o.Pages {
		site := page // each has one at least
		if page >= o.Sites {
			site = int(d.site.Uint64()) //nolint:gosec // below sites
		}
		c.siteOf = append(c.siteOf, int32(site))           //nolint:gosec // below sites
		d.pages[site] = append(d.pages[site], int32(page)) //nolint:gosec // pages are checked to fit
	}
	for _, pages := range d.pages {
		d.popular = append(d.popular, rand.NewZipf(random, pageSkew, 1, uint64(len(pages)-1)))
	}
	return d
}

func (d *drawing) anyPage() int32 { return d.pageOf(int(d.site.Uint64())) } //nolint:gosec // below sites

func (d *drawing) pageOf(site int) int32 { return d.pages[site][d.popular[site].Uint64()] }

// nextPage is where somebody goes who was at a page.
func (d *drawing) nextPage(before int32) int32 {
	switch luck := d.random.Float64(); {
	case luck < samePage:
		return before
	case luck < samePage+sameSite:
		return d.pageOf(int(d.crowd.siteOf[before]))
	}
	return d.anyPage()
}

// visit leaves a page, or chooses another, so that with the visits that are left every page is
// visited once at least.
func (d *drawing) visit(page int32, left int) int32 {
	if d.unvisited > 0 && d.random.IntN(left) < d.unvisited {
		for d.visited[d.order[0]] {
			d.order = d.order[1:]
		}
		page = int32(d.order[0]) //nolint:gosec // pages are checked to fit
	}
	if !d.visited[page] {
		d.visited[page] = true
		d.unvisited--
	}
	return page
}

// coprime is a number about 0.62 n that shares no divisor with n: its multiples modulo n are all
// numbers below n, each once.
func coprime(n int) int {
	for k := max(1, n*618/1000); ; k++ {
		if new(big.Int).GCD(nil, nil, big.NewInt(int64(n)), big.NewInt(int64(k))).Int64() == 1 {
			return k
		}
	}
}

func siteName(site int) string { return fmt.Sprintf("site-%02d.example", site+1) }

// uri is a page's, as it is counted.
func (c *drawnVisits) uri(page int) string {
	return fmt.Sprintf("%s/%s/%06d", siteName(int(c.siteOf[page])), sections[page*7%31%len(sections)], page)
}

// address is a visitor's. Addresses are in the order of the numbers: those of IPv4 first, as in
// PostgreSQL.
func (c *drawnVisits) address(visitor int32) netip.Addr {
	four := c.people - c.people/ipv6Share
	if n := int(visitor); n < four {
		at := n * (1 << 24 / four)
		return netip.AddrFrom4([4]byte{10, byte(at >> 16), byte(at >> 8), byte(at)})
	}
	at := (int(visitor) - four) * (1 << 32 / max(1, c.people/ipv6Share))
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(at >> 24), byte(at >> 16), byte(at >> 8), byte(at)})
}
