package compare

import (
	"fmt"
	"net/netip"

	"footfall/bench/load"
	"footfall/visit"
)

// standing is what a contender's tables hold after a run, beyond what was there before.
type standing struct {
	before   map[string]int64     // visitors who were there: ranks begin behind theirs
	sums     map[string]load.Sums // by uri, as all
	ranks    map[string]map[netip.Addr]int64
	unproven int64 // sums that the contender's own rows do not bear out
}

func newStanding() standing {
	return standing{before: map[string]int64{}, sums: map[string]load.Sums{}, ranks: map[string]map[netip.Addr]int64{}}
}

// came adds a visitor of a target.
func (s standing) came(uri string, visitor netip.Addr, rank int64) {
	if s.ranks[uri] == nil {
		s.ranks[uri] = map[netip.Addr]int64{}
	}
	s.ranks[uri][visitor] = rank
}

// toldRanks are the two ranks of one answer.
type toldRanks struct{ site, page int64 }

func ranksOf(a visit.Answer) toldRanks { return toldRanks{a.Site.Rank, a.Page.Rank} }

// verdict is what a run got wrong.
type verdict struct {
	Errors
	unproven int64
}

// judge compares what was answered and what the tables hold with the truth.
func judge(sequence []load.Arrival, told []toldRanks, s standing) verdict {
	v := verdict{unproven: s.unproven}
	truth := load.Truth(sequence)
	for uri, want := range truth {
		v.compare(s.sums[uri], want)
	}
	for uri, got := range s.sums {
		if _, visited := truth[uri]; !visited {
			v.compare(got, load.Sums{})
		}
	}
	for n, a := range sequence {
		visitor := load.Address(int(a.Visitor))
		page := load.PageURI(int(a.Page))
		v.answer(told[n].site-s.before[load.Site], s.ranks[load.Site][visitor])
		v.answer(told[n].page-s.before[page], s.ranks[page][visitor])
	}
	for uri, ranks := range s.ranks {
		v.Ranks += misplaced(ranks, s.sums[uri].UV)
	}
	return v
}

func (v *verdict) compare(got, want load.Sums) {
	v.UV += distance(got.UV, want.UV)
	v.PV += distance(got.PV, want.PV)
	v.Hot += distance(got.Hot, want.Hot)
}

// answer compares the rank that a visitor was told with the one that the table holds.
func (v *verdict) answer(told, held int64) {
	if told < 1 || told != held {
		v.Ranks++
	}
}

// misplaced is how many rows hold a rank that is not in 1..uv, or that another row holds, too.
func misplaced(ranks map[netip.Addr]int64, uv int64) (n int64) {
	held := make(map[int64]bool, len(ranks))
	for _, rank := range ranks {
		if rank < 1 || rank > uv || held[rank] {
			n++
		}
		held[rank] = true
	}
	return n
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// brokenBy tells all errors of a contender that promises to make none, or "".
func (v verdict) brokenBy(about About) string {
	if !about.Exact || v.Errors == (Errors{}) && v.unproven == 0 {
		return ""
	}
	return fmt.Sprintf("uv is off by %d, pv by %d, hot by %d; %d ranks are wrong; %d sums are not what their rows say",
		v.UV, v.PV, v.Hot, v.Ranks, v.unproven)
}

// judgeSent compares what the tables hold with the truth of all that wrk sent. When its time is up
// it hangs up, with a visit on the way on each connection at most: these were counted, or not, and
// nobody was told. So as many may be missing. What was answered is not known: ranks are wrong here
// that nobody holds, or that are not one visitor's alone.
func judgeSent(sent []load.Arrival, answered, connections int64, s standing) verdict {
	v := verdict{unproven: s.unproven}
	truth := load.Truth(sent)
	all := int64(len(sent))
	lost := max(min(all-s.sums[load.Site].Hot, all-answered, connections), 0)
	var missing load.Sums // over all targets
	for uri, want := range truth {
		got := s.sums[uri]
		missing.Hot += max(want.Hot-got.Hot, 0)
		missing.PV += max(want.PV-got.PV, 0)
		missing.UV += max(want.UV-got.UV, 0)
	}
	for uri, got := range s.sums {
		want := truth[uri]
		v.Hot += max(got.Hot-want.Hot, 0)
		v.PV += max(got.PV-want.PV, 0)
		v.UV += max(got.UV-want.UV, 0)
		wrong := misplaced(s.ranks[uri], got.UV)
		unheld := got.UV - (int64(len(s.ranks[uri])) - wrong)
		v.Ranks += wrong + unheld
	}
	v.Hot += max(missing.Hot-2*lost, 0) // a lost visit is missing at its page and at the site
	v.PV += max(missing.PV-2*lost, 0)
	v.UV += max(missing.UV-2*lost, 0)
	return v
}
