// Package load is the visits that benchmarks send, the same for all who are compared, with the truth
// of what must be counted, and who sends them over HTTP.
package load

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/cespare/xxhash/v2"
)

// All visits of a workload are counted for one app and go to pages of one site.
const (
	App   = "demo"
	Site  = "bench.example"
	Pages = 1000
)

// Arrival is one visit of a workload.
type Arrival struct{ Page, Visitor int32 }

// Workload makes sequences of visits, all of one day.
type Workload struct {
	Name  string
	About string
	// begin returns what names the next visit, given all before it.
	begin func(random *rand.Rand) func(before []Arrival) Arrival
}

// Sequence returns the first so many visits. The same seed gives the same ones, and a shorter sequence
// is the beginning of a longer one.
func (w Workload) Sequence(seed uint64, visits int) []Arrival {
	salt := xxhash.Sum64String(w.Name)                 // so that two workloads do not throw the same dice
	next := w.begin(rand.New(rand.NewPCG(seed, salt))) //nolint:gosec // to be repeated, not to be secret
	all := make([]Arrival, 0, visits)
	for range visits {
		all = append(all, next(all))
	}
	return all
}

const (
	pageSkew = 1.1 // page n of a site is visited in proportion to 1/n^pageSkew

	returningNew = 0.05 // share of the visits by visitors who never came before
	burstVisits  = 20   // of each visitor, about
	burstCrowd   = 2000 // visitors who are there at a time: as many as clients
)

// Workloads in the order of the tables.
var Workloads = []Workload{
	{"first", "every visit is by a new visitor, to one of 1,000 pages of a site (zipf)", first},
	{"returning", "95 % are by visitors who come again to their page, about 20 times each, 5 % by new ones", returning},
	{"burst", "a flash sale: one page, and a crowd of 2,000 at a time, each of whom refreshes it about 20 times and leaves", burst},
}

func first(random *rand.Rand) func([]Arrival) Arrival {
	page := rand.NewZipf(random, pageSkew, 1, Pages-1)
	visitor := int32(-1)
	return func([]Arrival) Arrival {
		visitor++
		return Arrival{Page: int32(page.Uint64()), Visitor: visitor} //nolint:gosec // below Pages
	}
}

// returning lets each of those who came return as often as any other. (To repeat any earlier visit
// would let a few return by the thousand, whom every batch meets many times over.)
func returning(random *rand.Rand) func([]Arrival) Arrival {
	stranger := first(random)
	var came []Arrival
	return func(before []Arrival) Arrival {
		if len(came) > 0 && random.Float64() >= returningNew {
			return came[random.IntN(len(came))]
		}
		came = append(came, stranger(before))
		return came[len(came)-1]
	}
}

func burst(random *rand.Rand) func([]Arrival) Arrival {
	return func(before []Arrival) Arrival {
		newest := len(before) / burstVisits
		crowd := min(newest+1, burstCrowd)
		return Arrival{Visitor: int32(newest - random.IntN(crowd))} //nolint:gosec // a place in the sequence
	}
}

// Sums are the numbers of one target.
type Sums struct{ PV, UV, Hot int64 }

// Plus is the sum of both.
func (s Sums) Plus(t Sums) Sums { return Sums{s.PV + t.PV, s.UV + t.UV, s.Hot + t.Hot} }

// Beyond is what is more than the other's.
func (s Sums) Beyond(t Sums) Sums {
	return Sums{max(s.PV-t.PV, 0), max(s.UV-t.UV, 0), max(s.Hot-t.Hot, 0)}
}

// Truth is what a sequence of visits of one day must have been counted as: the sums of every
// target, by the uri under which it is counted.
func Truth(sequence []Arrival) map[string]Sums {
	const site = -1 // beside the numbers of pages
	came, sums := map[Arrival]bool{}, map[int32]Sums{}
	for _, a := range sequence {
		for _, at := range []Arrival{{site, a.Visitor}, a} {
			one := Sums{Hot: 1}
			if !came[at] {
				came[at], one = true, Sums{1, 1, 1} // there is one day
			}
			sums[at.Page] = sums[at.Page].Plus(one)
		}
	}
	truth := map[string]Sums{Site: sums[site]}
	delete(sums, site)
	for page, s := range sums {
		truth[PageURI(int(page))] = s
	}
	return truth
}

// Address places visitor n in 10.0.0.0/8, far from visitor n-1: addresses do not come in the order
// of an index. The multiplier is odd, so that no two of the first 16 million meet.
func Address(n int) netip.Addr {
	at := n * 0x9E3779 % Addresses
	return netip.AddrFrom4([4]byte{10, byte(at >> 16), byte(at >> 8), byte(at)})
}

// Addresses are so many.
const Addresses = 1 << 24

// PageURI is a page as Footfall keeps it; with http:// before it, as a caller names it.
func PageURI(n int) string { return fmt.Sprintf("%s/page/%d", Site, n%Pages) }
