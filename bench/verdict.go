package bench

import (
	"fmt"
	"net/netip"

	"footfall/visit"
)

// standing is what a contender's tables hold after a run.
type standing struct {
	sums     map[string]sums // by uri, as all
	ranks    map[string]map[netip.Addr]int64
	unproven int64 // sums that the contender's own rows do not bear out
}

func newStanding() standing {
	return standing{sums: map[string]sums{}, ranks: map[string]map[netip.Addr]int64{}}
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
func judge(sequence []arrival, told []toldRanks, s standing) verdict {
	v := verdict{unproven: s.unproven}
	truth := truthOf(sequence).byURI()
	for uri, want := range truth {
		v.compare(s.sums[uri], want)
	}
	for uri, got := range s.sums {
		if _, visited := truth[uri]; !visited {
			v.compare(got, sums{})
		}
	}
	for n, a := range sequence {
		visitor := addressOf(int(a.visitor))
		v.answer(told[n].site, s.ranks[site][visitor])
		v.answer(told[n].page, s.ranks[pageURI(int(a.page))][visitor])
	}
	for uri, ranks := range s.ranks {
		v.Ranks += misplaced(ranks, s.sums[uri].uv)
	}
	return v
}

func (v *verdict) compare(got, want sums) {
	v.UV += distance(got.uv, want.uv)
	v.PV += distance(got.pv, want.pv)
	v.Hot += distance(got.hot, want.hot)
}

// answer compares the rank that a visitor was told with the one that the table holds.
func (v *verdict) answer(told, held int64) {
	if told == 0 || told != held {
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
func (v verdict) brokenBy(about ContenderAbout) string {
	if !about.Exact || v.Errors == (Errors{}) && v.unproven == 0 {
		return ""
	}
	return fmt.Sprintf("uv is off by %d, pv by %d, hot by %d; %d ranks are wrong; %d sums are not what their rows say",
		v.UV, v.PV, v.Hot, v.Ranks, v.unproven)
}
