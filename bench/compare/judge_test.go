package compare

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"footfall/bench/load"
	"footfall/visit"
)

// Each kind of error is found.
func TestJudge(t *testing.T) {
	t.Parallel()
	const visitors = 4000
	sequence := load.Workloads[0].Sequence(1, visitors)
	site := load.Site
	for name, c := range map[string]struct {
		change func(told []visit.Answer, s *standing)
		want   Errors
	}{
		"true":            {func([]visit.Answer, *standing) {}, Errors{}},
		"a lost visit":    {func(_ []visit.Answer, s *standing) { s.add(site, load.Sums{Hot: -1}) }, Errors{Hot: 1}},
		"a day twice":     {func(_ []visit.Answer, s *standing) { s.add(site, load.Sums{PV: 1}) }, Errors{PV: 1}},
		"a visitor twice": {func(_ []visit.Answer, s *standing) { s.add(site, load.Sums{UV: 1}) }, Errors{UV: 1}},
		"nobody's page": {func(_ []visit.Answer, s *standing) { s.add("nobody.example", load.Sums{PV: 1, UV: 1, Hot: 1}) },
			Errors{UV: 1, PV: 1, Hot: 1}},
		"another's rank":   {func(told []visit.Answer, _ *standing) { told[3].Site.Rank = 1 }, Errors{Ranks: 1}},
		"a rank not told":  {func(told []visit.Answer, _ *standing) { told[3].Page.Rank = 0 }, Errors{Ranks: 1}},
		"a rank twice":     {func(told []visit.Answer, s *standing) { s.rank(told, 3, 1) }, Errors{Ranks: 1}},
		"a rank beyond uv": {func(told []visit.Answer, s *standing) { s.rank(told, 3, visitors+1) }, Errors{Ranks: 1}},
		"unproven sums":    {func(_ []visit.Answer, s *standing) { s.unproven = 1 }, Errors{Unproven: 1}},
		"visitors lost":    {func(told []visit.Answer, s *standing) { s.lose(told, 12) }, Errors{UV: 12, Ranks: 12}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, s := counted(sequence)
			c.change(told, &s)
			assert.Equal(t, c.want, judge(sequence, told, s))
		})
	}
}

// counted is what a faultless contender answers and holds, where every visitor comes once.
func counted(sequence []load.Arrival) ([]visit.Answer, standing) {
	s := newStanding()
	var told []visit.Answer
	for _, a := range sequence {
		page, visitor := load.PageURI(int(a.Page)), load.Address(int(a.Visitor))
		s.add(load.Site, load.Sums{PV: 1, UV: 1, Hot: 1})
		s.add(page, load.Sums{PV: 1, UV: 1, Hot: 1})
		s.came(load.Site, visitor, s.sums[load.Site].UV)
		s.came(page, visitor, s.sums[page].UV)
		told = append(told, visit.Answer{Site: visit.Counts{Rank: s.sums[load.Site].UV}, Page: visit.Counts{Rank: s.sums[page].UV}})
	}
	return told, s
}

func (s *standing) add(uri string, n load.Sums) {
	was := s.sums[uri]
	s.sums[uri] = load.Sums{PV: was.PV + n.PV, UV: was.UV + n.UV, Hot: was.Hot + n.Hot}
}

// rank gives a visitor of the site another rank, and says so in the answer.
func (s *standing) rank(told []visit.Answer, visitor int, rank int64) {
	told[visitor].Site.Rank = rank
	s.ranks[load.Site][load.Address(visitor)] = rank
}

// lose takes the last visitors of the site for known ones.
func (s *standing) lose(told []visit.Answer, visitors int) {
	s.add(load.Site, load.Sums{UV: -int64(visitors)})
	for n := len(told) - visitors; n < len(told); n++ {
		told[n].Site.Rank = 0
		delete(s.ranks[load.Site], load.Address(n))
	}
}

// sentVisits are three visitors, of whom the first comes again.
func sentVisits() []load.Arrival {
	return []load.Arrival{{Page: 0, Visitor: 0}, {Page: 1, Visitor: 1}, {Page: 0, Visitor: 0}, {Page: 1, Visitor: 2}}
}

// faultless is what the tables hold when these are counted.
func faultless() standing {
	s := newStanding()
	s.sums = map[string]load.Sums{load.Site: {PV: 3, UV: 3, Hot: 4}, load.PageURI(0): {PV: 1, UV: 1, Hot: 2},
		load.PageURI(1): {PV: 2, UV: 2, Hot: 2}}
	for rank, visitor := range []netip.Addr{load.Address(0), load.Address(1), load.Address(2)} {
		s.came(load.Site, visitor, int64(rank+1))
	}
	s.came(load.PageURI(0), load.Address(0), 1)
	s.came(load.PageURI(1), load.Address(1), 1)
	s.came(load.PageURI(1), load.Address(2), 2)
	return s
}

func TestJudgeSent(t *testing.T) {
	t.Parallel()
	site, page := load.Site, load.PageURI(1)
	missing := func(s *standing) {
		s.sums[site], s.sums[page] = load.Sums{PV: 2, UV: 2, Hot: 3}, load.Sums{PV: 1, UV: 1, Hot: 1}
		delete(s.ranks[site], load.Address(2))
		delete(s.ranks[page], load.Address(2))
	}
	for name, c := range map[string]struct {
		change func(*standing)
		want   Errors
	}{
		"all is well":     {func(*standing) {}, Errors{}},
		"one is lost":     {missing, Errors{UV: 2, PV: 2, Hot: 2}},
		"a visitor twice": {func(s *standing) { s.sums[site] = load.Sums{PV: 4, UV: 4, Hot: 4} }, Errors{UV: 1, PV: 1, Ranks: 1}},
		"a visitor not seen": {func(s *standing) {
			s.sums[page] = load.Sums{PV: 2, UV: 1, Hot: 2}
			delete(s.ranks[page], load.Address(2))
		}, Errors{UV: 1}},
		"a day not counted":    {func(s *standing) { s.sums[site] = load.Sums{PV: 2, UV: 3, Hot: 4} }, Errors{PV: 1}},
		"a visit at nobody's":  {func(s *standing) { s.sums[load.PageURI(7)] = load.Sums{Hot: 1} }, Errors{Hot: 1}},
		"two with one rank":    {func(s *standing) { s.came(site, load.Address(2), 1) }, Errors{Ranks: 1}},
		"a rank that none has": {func(s *standing) { s.came(site, load.Address(2), 9) }, Errors{Ranks: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := faultless()
			c.change(&s)
			assert.Equal(t, c.want, judgeSent(sentVisits(), s))
		})
	}
}
