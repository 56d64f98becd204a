// Package load generates the visits that benchmarks send, and computes the expected numbers. All compared programs get the
// same visits. The package also contains clients that send visits over HTTP.
package load

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/cespare/xxhash/v2"
)

// All generated visits are for pages of one site of one app.
const (
	App   = "demo"
	Site  = "bench.example"
	Pages = 1000
)

// Arrival is one generated visit. Pages and visitors are numbered from 0.
type Arrival struct{ Page, Visitor int32 }

// Workload generates sequences of visits that all happen on one day.
type Workload struct {
	Name  string
	About string
	// begin returns a function that generates the next visit. before contains all previous visits.
	begin func(random *rand.Rand) func(before []Arrival) Arrival
}

// Sequence generates visits. For the same seed, it always generates the same visits, and a shorter sequence is the start of
// a longer one.
func (w Workload) Sequence(seed uint64, visits int) []Arrival {
	salt := xxhash.Sum64String(w.Name)                 // so that each workload uses other random numbers
	next := w.begin(rand.New(rand.NewPCG(seed, salt))) //nolint:gosec // repeatable, not secret
	all := make([]Arrival, 0, visits)
	for range visits {
		all = append(all, next(all))
	}
	return all
}

const (
	pageSkew = 1.1 // page n of a site gets visits in proportion to 1/n^pageSkew

	returningNew = 0.05 // share of visits by new visitors
	burstVisits  = 20   // approximate number of visits by each visitor
	burstCrowd   = 2000 // number of visitors at the same time, like the default number of clients
)

// Workloads contains all workloads, in the order in which reports show them.
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

// returning generates visits by returning visitors and a few new ones. All earlier visitors return with the same
// probability. If returning repeated a random earlier visit instead, a few visitors would return thousands of times, and
// every batch would contain several visits by them.
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

// Sums contains the numbers of one target (a page or a site).
type Sums struct{ PV, UV, Hot int64 }

// Plus returns the field-wise sum of s and t.
func (s Sums) Plus(t Sums) Sums { return Sums{s.PV + t.PV, s.UV + t.UV, s.Hot + t.Hot} }

// ExcessOver returns, for each field, by how much s exceeds t, or 0 if it does not.
func (s Sums) ExcessOver(t Sums) Sums {
	return Sums{max(s.PV-t.PV, 0), max(s.UV-t.UV, 0), max(s.Hot-t.Hot, 0)}
}

// ExpectedSums returns the correct numbers for a sequence of visits on one day. The result maps the uri of each target to
// its numbers.
func ExpectedSums(sequence []Arrival) map[string]Sums {
	const site = -1 // not the number of a page
	came, sums := map[Arrival]bool{}, map[int32]Sums{}
	for _, a := range sequence {
		for _, at := range []Arrival{{site, a.Visitor}, a} {
			one := Sums{Hot: 1}
			if !came[at] {
				came[at], one = true, Sums{1, 1, 1} // also for pv, because there is only one day
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

// Address returns the address of visitor n, in 10.0.0.0/8. The addresses of visitors n-1 and n are far apart, so that
// visitors do not arrive in the order of their addresses. The multiplier is odd, so that the first 16 million visitors have
// different addresses.
func Address(n int) netip.Addr {
	at := n * 0x9E3779 % Addresses
	return netip.AddrFrom4([4]byte{10, byte(at >> 16), byte(at >> 8), byte(at)})
}

// Addresses is the number of different addresses that Address returns.
const Addresses = 1 << 24

// PageURI returns the URI of a page as Footfall stores it, without http://.
func PageURI(n int) string { return fmt.Sprintf("%s/page/%d", Site, n%Pages) }
