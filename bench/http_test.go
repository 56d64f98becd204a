package bench

import (
	"net/netip"
	"os"
	"strings"
	"testing"
)

// sentVisits are three visitors, of whom the first comes again.
func sentVisits() []arrival {
	return []arrival{{page: 0, visitor: 0}, {page: 1, visitor: 1}, {page: 0, visitor: 0}, {page: 1, visitor: 2}}
}

// faultless is what the tables hold when these are counted.
func faultless() standing {
	s := newStanding()
	s.sums = map[string]sums{site: {pv: 3, uv: 3, hot: 4}, pageURI(0): {pv: 1, uv: 1, hot: 2}, pageURI(1): {pv: 2, uv: 2, hot: 2}}
	for rank, visitor := range []netip.Addr{addressOf(0), addressOf(1), addressOf(2)} {
		s.came(site, visitor, int64(rank+1))
	}
	s.came(pageURI(0), addressOf(0), 1)
	s.came(pageURI(1), addressOf(1), 1)
	s.came(pageURI(1), addressOf(2), 2)
	return s
}

func TestJudgeSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answered int64
		change   func(*standing)
		want     Errors
	}{
		"all is well":  {4, func(*standing) {}, Errors{}},
		"all, unheard": {3, func(*standing) {}, Errors{}},
		"one was on the way": {3, func(s *standing) {
			s.sums[site], s.sums[pageURI(1)] = sums{2, 2, 3}, sums{1, 1, 1}
			delete(s.ranks[site], addressOf(2))
			delete(s.ranks[pageURI(1)], addressOf(2))
		}, Errors{}},
		"an answered one is lost": {4, func(s *standing) {
			s.sums[site], s.sums[pageURI(1)] = sums{2, 2, 3}, sums{1, 1, 1}
			delete(s.ranks[site], addressOf(2))
			delete(s.ranks[pageURI(1)], addressOf(2))
		}, Errors{UV: 2, PV: 2, Hot: 2}},
		"a visitor twice": {4, func(s *standing) {
			s.sums[site] = sums{4, 4, 4}
		}, Errors{UV: 1, PV: 1, Ranks: 1}},
		"a visitor not seen": {4, func(s *standing) {
			s.sums[pageURI(1)] = sums{2, 1, 2}
			delete(s.ranks[pageURI(1)], addressOf(2))
		}, Errors{UV: 1}},
		"a day not counted":    {4, func(s *standing) { s.sums[site] = sums{2, 3, 4} }, Errors{PV: 1}},
		"a visit at nobody's":  {4, func(s *standing) { s.sums[pageURI(7)] = sums{0, 0, 1} }, Errors{Hot: 1}},
		"two with one rank":    {4, func(s *standing) { s.came(site, addressOf(2), 1) }, Errors{Ranks: 2}},
		"a rank that none has": {4, func(s *standing) { s.came(site, addressOf(2), 9) }, Errors{Ranks: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := faultless()
			c.change(&s)
			v := judgeSent(sentVisits(), c.answered, 16, s)
			if v.Errors != c.want {
				t.Errorf("%+v, want %+v", v.Errors, c.want)
			}
		})
	}
}

// No more can have been on the way than there are connections, whatever wrk says.
func TestJudgeSentBelievesNoMoreThanConnections(t *testing.T) {
	t.Parallel()
	if v := judgeSent(sentVisits(), 0, 2, newStanding()); v.Hot != 4 || v.UV != 2 {
		t.Errorf("3 or 4 visits are missing that cannot have been on the way: %+v", v.Errors)
	}
}

// The threads of wrk together send the sequence, each visit once.
func TestThreadsShareTheSequence(t *testing.T) {
	t.Parallel()
	s, err := newScript()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.remove(); err != nil {
			t.Error(err)
		}
	})
	sequence := []arrival{{page: 1, visitor: 0}, {page: 2, visitor: 1}, {page: 3, visitor: 2}}
	if err := s.write("first", sequence); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"first.1": "ip=" + addressOf(0).String() + "&uri=http://bench.example/page/1\nip=" + addressOf(2).String() + "&uri=http://bench.example/page/3\n",
		"first.2": "ip=" + addressOf(1).String() + "&uri=http://bench.example/page/2\n",
	} {
		if got, err := os.ReadFile(s.visits(file)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v, want %q", file, got, err, want)
		}
	}
	m := measure{sent: [wrkThreads]int64{2, 0}}
	if sent := m.sentOf(sequence); len(sent) != 2 || sent[0] != sequence[0] || sent[1] != sequence[2] {
		t.Errorf("sent are %+v", sent)
	}
}

func TestReadFigures(t *testing.T) {
	t.Parallel()
	f := readFigures("# HELP footfall_skipped_total What was spared.\n# TYPE footfall_skipped_total counter\n" +
		"footfall_skipped_total{by=\"a batch\"} 3\nfootfall_skipped_total{by=\"filter\"} 4\nfootfall_filter_bytes 1.5e+06\n\nodd\n")
	for name, want := range map[string]float64{"footfall_skipped_total": 7, "footfall_filter_bytes": 1_500_000} {
		if got, err := f.of(name); err != nil || got != want {
			t.Errorf("%s is %v, %v, want %v", name, got, err, want)
		}
	}
	if _, err := f.of("footfall_missing"); err == nil || !strings.Contains(err.Error(), "footfall_missing") {
		t.Errorf("of a metric that is not there: %v", err)
	}
}
