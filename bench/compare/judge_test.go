package compare

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"footfall/bench/load"
)

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

// Each kind of error is found.
func TestJudge(t *testing.T) {
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
		"unproven sums":        {func(s *standing) { s.unproven = 1 }, Errors{Unproven: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := faultless()
			c.change(&s)
			assert.Equal(t, c.want, judge(sentVisits(), s))
		})
	}
}
