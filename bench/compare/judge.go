package compare

import (
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

// judge compares what was answered and what the tables hold with the truth.
func judge(sequence []load.Arrival, answers []visit.Answer, s standing) Errors {
	v := compared(sequence, 0, s)
	for n, a := range sequence {
		visitor, page := load.Address(int(a.Visitor)), load.PageURI(int(a.Page))
		v.answer(answers[n].Site.Rank-s.before[load.Site], s.ranks[load.Site][visitor])
		v.answer(answers[n].Page.Rank-s.before[page], s.ranks[page][visitor])
	}
	return v
}

// judgeSent compares what the tables hold with the truth of all that wrk sent. When its time is up
// it hangs up, with a visit on the way on each connection at most: these were counted, or not, and
// nobody heard of it. So as many may be missing. What was answered is not known: ranks are wrong
// here that nobody has, or that are not one visitor's alone.
func judgeSent(sent []load.Arrival, answered, connections int, s standing) Errors {
	all := len(sent)
	v := compared(sent, int64(max(min(all-int(s.sums[load.Site].Hot), all-answered, connections), 0)), s)
	for uri, got := range s.sums {
		v.Ranks += got.UV - (int64(len(s.ranks[uri])) - misplaced(s.ranks[uri], got.UV))
	}
	return v
}

// compared compares sums and ranks with the truth, of which so many visits may be missing.
func compared(sequence []load.Arrival, lost int64, s standing) Errors {
	v := Errors{Unproven: s.unproven}
	truth := load.Truth(sequence)
	missing := load.Sums{PV: -2 * lost, UV: -2 * lost, Hot: -2 * lost} // at the page and at the site
	for uri, want := range truth {
		got := s.sums[uri]
		missing.PV += max(want.PV-got.PV, 0)
		missing.UV += max(want.UV-got.UV, 0)
		missing.Hot += max(want.Hot-got.Hot, 0)
	}
	v.PV, v.UV, v.Hot = max(missing.PV, 0), max(missing.UV, 0), max(missing.Hot, 0)
	for uri, got := range s.sums {
		want := truth[uri]
		v.PV += max(got.PV-want.PV, 0)
		v.UV += max(got.UV-want.UV, 0)
		v.Hot += max(got.Hot-want.Hot, 0)
	}
	for uri, ranks := range s.ranks {
		v.Ranks += misplaced(ranks, s.sums[uri].UV)
	}
	return v
}

// answer compares the rank that a visitor was answered with the one that the table has.
func (v *Errors) answer(answered, stored int64) {
	if answered < 1 || answered != stored {
		v.Ranks++
	}
}

// misplaced is how many rows have a rank that is not in 1..uv, or that another row has, too.
func misplaced(ranks map[netip.Addr]int64, uv int64) (n int64) {
	taken := make(map[int64]bool, len(ranks))
	for _, rank := range ranks {
		if rank < 1 || rank > uv || taken[rank] {
			n++
		}
		taken[rank] = true
	}
	return n
}
