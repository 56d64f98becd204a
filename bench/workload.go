package bench

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
)

// arrival is one visit of a workload.
type arrival struct{ page, visitor int32 }

// workload makes sequences of visits, all of one day.
type workload struct {
	name  string
	about string
	// begin returns what names the next visit, given all before it.
	begin func(random *rand.Rand) func(before []arrival) arrival
}

// sequence returns the first so many visits. The same seed gives the same ones, and a shorter sequence is the beginning of a longer one.
func (w workload) sequence(seed uint64, visits int) []arrival {
	var salt uint64 // so that two workloads do not throw the same dice
	for _, letter := range []byte(w.name) {
		salt = salt*131 + uint64(letter)
	}
	next := w.begin(rand.New(rand.NewPCG(seed, salt))) //nolint:gosec // to be repeated, not to be secret
	all := make([]arrival, 0, visits)
	for range visits {
		all = append(all, next(all))
	}
	return all
}

const (
	pageSkew = 1.1 // page n of a site is visited in proportion to 1/n^pageSkew

	mixedNew     = 0.14 // share of the visits by visitors who never came to the site; half are the first to their page then
	returningNew = 0.05
	burstVisits  = 20   // of each visitor, about
	burstCrowd   = 2000 // visitors who are there at a time: as many as clients
)

// workloads in the order of the tables.
var workloads = []workload{
	{"first", "every visit is by a new visitor, to one of 1,000 pages of a site (zipf)", first},
	{"mixed", "1,000 pages and visitors of whom few come often and most seldom (zipf): about half of the visits are a visitor's first to that page", mixed},
	{"returning", "95 % are by visitors who come again to their page, about 20 times each, 5 % by new ones", returning},
	{"burst", "a flash sale: one page, and a crowd of 2,000 at a time, each of whom refreshes it about 20 times and leaves", burst},
}

func first(random *rand.Rand) func([]arrival) arrival {
	page := rand.NewZipf(random, pageSkew, 1, pages-1)
	visitor := int32(-1)
	return func([]arrival) arrival {
		visitor++
		return arrival{page: int32(page.Uint64()), visitor: visitor} //nolint:gosec // below pages
	}
}

// mixed lets the visitor of any earlier visit come again: who came often comes more often still, which makes the visits by
// visitor follow Zipf's law, and keeps the share of first visits the same however long the sequence.
func mixed(random *rand.Rand) func([]arrival) arrival {
	stranger := first(random)
	return func(before []arrival) arrival {
		a := stranger(before)
		if len(before) > 0 && random.Float64() >= mixedNew {
			a.visitor = before[random.IntN(len(before))].visitor
		}
		return a
	}
}

// returning lets each of those who came return as often as any other. (To repeat any earlier visit would let a few return by the
// thousand, whom every batch meets many times over.)
func returning(random *rand.Rand) func([]arrival) arrival {
	stranger := first(random)
	var came []arrival
	return func(before []arrival) arrival {
		if len(came) > 0 && random.Float64() >= returningNew {
			return came[random.IntN(len(came))]
		}
		came = append(came, stranger(before))
		return came[len(came)-1]
	}
}

func burst(random *rand.Rand) func([]arrival) arrival {
	return func(before []arrival) arrival {
		newest := len(before) / burstVisits
		crowd := min(newest+1, burstCrowd)
		return arrival{visitor: int32(newest - random.IntN(crowd))} //nolint:gosec // a place in the sequence
	}
}

// sums are the numbers of one target.
type sums struct{ pv, uv, hot int64 }

// truth is what a sequence of visits of one day must have been counted as.
type truth struct {
	site  sums
	pages map[int32]sums // those that were visited
	// firsts are the visits that were a visitor's first to their page.
	firsts int
}

// truthOf counts a sequence in the plainest way there is.
func truthOf(sequence []arrival) truth {
	t := truth{pages: map[int32]sums{}}
	ofSite, ofPage := map[int32]bool{}, map[arrival]bool{}
	for _, a := range sequence {
		page := t.pages[a.page]
		t.site.hot++
		page.hot++
		if !ofSite[a.visitor] {
			ofSite[a.visitor] = true
			t.site.uv++
		}
		if !ofPage[a] {
			ofPage[a] = true
			page.uv++
			t.firsts++
		}
		page.pv = page.uv // there is one day
		t.pages[a.page] = page
	}
	t.site.pv = t.site.uv
	return t
}

// firstShare is the share of the visits that are the first of a visitor to a page.
func firstShare(sequence []arrival) float64 {
	return ratio(float64(truthOf(sequence).firsts), float64(len(sequence)))
}

// byURI is the truth of every target, by the uri under which it is counted.
func (t truth) byURI() map[string]sums {
	all := map[string]sums{site: t.site}
	for page, s := range t.pages {
		all[pageURI(int(page))] = s
	}
	return all
}

// addressOf places visitor n in 10.0.0.0/8, far from visitor n-1: addresses do not come in the order of
// an index. The multiplier is odd, so that no two of the first 16 million meet.
const (
	multiplier = 0x9E3779
	addresses  = 1 << 24
)

func addressOf(n int) netip.Addr {
	at := n * multiplier % addresses
	return netip.AddrFrom4([4]byte{10, byte(at >> 16), byte(at >> 8), byte(at)})
}

// pageURI is a page as Footfall keeps it; with http:// before it, as a caller names it.
func pageURI(n int) string { return fmt.Sprintf("%s/page/%d", site, n%pages) }
