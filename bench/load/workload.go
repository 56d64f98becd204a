// Package load contains the visits that benchmarks send (the same visits for all contenders), the expected numbers,
// and the clients that send visits over HTTP.
package load

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/cespare/xxhash/v2"
)

// All visits of a workload are for pages of one site of one app.
const (
	App   = "demo"
	Site  = "bench.example"
	Pages = 1000
)

// Arrival is one visit of a workload.
type Arrival struct{ Page, Visitor int32 }

// Workload generates sequences of visits on one day.
type Workload struct {
	Name  string
	About string
	// begin returns a function. This function gets all visits so far, and returns the next visit.
	begin func(random *rand.Rand) func(before []Arrival) Arrival
}

// Sequence returns the first visits of the workload. The same seed returns the same visits, and a shorter sequence is a
// prefix of a longer one.
func (w Workload) Sequence(seed uint64, visits int) []Arrival {
	salt := xxhash.Sum64String(w.Name)                 // different random numbers for each workload
	next := w.begin(rand.New(rand.NewPCG(seed, salt))) //nolint:gosec // repeatable, not secret
	all := make([]Arrival, 0, visits)
	for range visits {
		all = append(all, next(all))
	}
	return all
}

const (
	pageSkew = 1.1 // page n of a site is visited in proportion to 1/n^pageSkew

	returningNew = 0.05 // share of visits by new visitors
	burstVisits  = 20   // number of visits of each visitor, approximately
	burstCrowd   = 2000 // number of concurrent visitors: as many as clients
)

// Workloads in display order.
var Workloads = []Workload{
	{"first", "every visit is by a new visitor, to one of 1,000 pages of a site (zipf)", first},
	{"returning", "95 % are by visitors who return to their page, about 20 times each, 5 % by new ones", returning},
	{"burst", "a flash sale: one page, and 2,000 visitors at a time, who each load it about 20 times and leave", burst},
}

func first(random *rand.Rand) func([]Arrival) Arrival {
	page := rand.NewZipf(random, pageSkew, 1, Pages-1)
	visitor := int32(-1)
	return func([]Arrival) Arrival {
		visitor++
		return Arrival{Page: int32(page.Uint64()), Visitor: visitor} //nolint:gosec // below Pages
	}
}

// returning lets each earlier visitor return with equal probability. If it repeated a random earlier visit instead,
// a few visitors would return thousands of times, and every batch would contain them repeatedly.
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
		return Arrival{Visitor: int32(newest - random.IntN(crowd))} //nolint:gosec // an index in the sequence
	}
}

// Sums are the numbers of one target.
type Sums struct{ PV, UV, Hot int64 }

// Plus returns the sum.
func (s Sums) Plus(t Sums) Sums { return Sums{s.PV + t.PV, s.UV + t.UV, s.Hot + t.Hot} }

// Beyond returns the amounts by which s exceeds t.
func (s Sums) Beyond(t Sums) Sums {
	return Sums{max(s.PV-t.PV, 0), max(s.UV-t.UV, 0), max(s.Hot-t.Hot, 0)}
}

// Truth returns the expected numbers of every target, by uri, for a sequence of visits on one day.
func Truth(sequence []Arrival) map[string]Sums {
	const site = -1 // not a page number
	came, sums := map[Arrival]bool{}, map[int32]Sums{}
	for _, a := range sequence {
		for _, at := range []Arrival{{site, a.Visitor}, a} {
			one := Sums{Hot: 1}
			if !came[at] {
				came[at], one = true, Sums{1, 1, 1} // there is only one day
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

// Address returns the address of visitor n in 10.0.0.0/8, far from visitor n-1, so that addresses do not arrive in the
// order of an index. The multiplier is odd, so the first 16 million addresses are distinct.
func Address(n int) netip.Addr {
	at := n * 0x9E3779 % Addresses
	return netip.AddrFrom4([4]byte{10, byte(at >> 16), byte(at >> 8), byte(at)})
}

// Addresses is the number of addresses.
const Addresses = 1 << 24

// PageURI returns a page's URI in canonical form. A caller sends it with http:// in front.
func PageURI(n int) string { return fmt.Sprintf("%s/page/%d", Site, n%Pages) }
