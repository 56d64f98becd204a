package literal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"footfall/counter"
	"footfall/db/dbtest"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const today, tomorrow = 20190629, 20190630

var ways = map[string]Way{"naive": Naive, "naive+filter": NaiveFilter, "baseline": Baseline}

func open(t *testing.T, way Way) *Store {
	t.Helper()
	s, err := Open(t.Context(), dbtest.Empty(t), way, today)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func asks(path, ip string) counter.Request {
	return counter.Request{URI: "http://hhui.top" + path, IP: ip}
}

func address(n int) string { return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}).String() }

// Every way must count correctly without concurrency. Otherwise Footfall would be compared with a program that
// does less work.
func TestVisitsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	steps := []struct {
		ip, page   string
		day        int32
		site, want visit.Counts // PV, UV, Rank, Hot
		asked      map[Way]int64
	}{
		{"192.168.0.1", "/home", today, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 1}, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 1},
			map[Way]int64{Naive: 4, NaiveFilter: 0, Baseline: 0}},
		{"192.168.0.1", "/home", today, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 2}, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 2},
			map[Way]int64{Naive: 4, NaiveFilter: 4, Baseline: 4}},
		{"192.168.0.1", "/index", today, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 3}, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 1},
			map[Way]int64{Naive: 4, NaiveFilter: 2, Baseline: 2}},
		{"192.168.0.2", "/index", today, visit.Counts{PV: 2, UV: 2, Rank: 2, Hot: 4}, visit.Counts{PV: 2, UV: 2, Rank: 2, Hot: 2},
			map[Way]int64{Naive: 4, NaiveFilter: 0, Baseline: 0}},
		{"192.168.0.2", "/home", today, visit.Counts{PV: 2, UV: 2, Rank: 2, Hot: 5}, visit.Counts{PV: 2, UV: 2, Rank: 2, Hot: 3},
			map[Way]int64{Naive: 4, NaiveFilter: 2, Baseline: 2}},
		{"192.168.0.2", "/home", tomorrow, visit.Counts{PV: 3, UV: 2, Rank: 2, Hot: 6}, visit.Counts{PV: 3, UV: 2, Rank: 2, Hot: 4},
			map[Way]int64{Naive: 4, NaiveFilter: 2, Baseline: 2}},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, way)
			for i, step := range steps {
				before := s.asked.Load()
				s.day = step.day
				got, err := s.Visit(t.Context(), asks(step.page, step.ip))
				if want := (visit.Answer{Site: step.site, Page: step.want}); err != nil || got != want {
					t.Errorf("step %d: %+v, %v, want %+v", i+1, got, err, want)
				}
				if asked := s.asked.Load() - before; asked != step.asked[way] {
					t.Errorf("step %d: %d keys looked up, want %d", i+1, asked, step.asked[way])
				}
			}
			ranks, days := wrong(t, s)
			if ranks != 0 || days != 0 {
				t.Errorf("%d ranks lost and %d days counted twice without any concurrency", ranks, days)
			}
		})
	}
}

func wrong(t *testing.T, s *Store) (ranks, days int64) {
	t.Helper()
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	losses, err := New(conn).Losses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return losses.Ranks, losses.Days
}

// Without concurrency, the same visits get the same answers with and without the filter, and the filter saves
// look-ups.
func TestFilterChangesNoAnswer(t *testing.T) {
	t.Parallel()
	plain, filtered := open(t, Naive), open(t, NaiveFilter)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		request := asks(fmt.Sprintf("/%d", random.IntN(4)), address(random.IntN(40)))
		plain.day = int32(today + random.IntN(2))
		filtered.day = plain.day
		want, err := plain.Visit(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := filtered.Visit(t.Context(), request); err != nil || got != want {
			t.Fatalf("visit %d: %+v, %v, want %+v", i, got, err, want)
		}
	}
	if filtered.asked.Load() >= plain.asked.Load() {
		t.Errorf("%d keys looked up with the filter, %d without", filtered.asked.Load(), plain.asked.Load())
	}
}

// The filter must not contain the keys of a visit that was rolled back, because its visitor has no
// row.
func TestFilterLearnsAfterCommit(t *testing.T) {
	t.Parallel()
	s := open(t, NaiveFilter)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Visit(ended, asks("/home", address(1))); err == nil {
		t.Fatal("a visit was counted whose context had ended")
	}
	v := singleVisit{visitor: netip.MustParseAddr(address(1)), day: today}
	if s.known.Has(v.key(0, "hhui.top")) || s.known.Has(v.key(today, "hhui.top")) {
		t.Error("the filter knows a visitor who was not counted")
	}
}

// The baseline must be exact under concurrency, so that ratios to it compare equal work.
func TestBaselineIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	const clients, visits, visitors, pages = 50, 3000, 40, 3
	s := open(t, Baseline)
	answers := make([]visit.Answer, visits)
	var next atomic.Int64
	var all sync.WaitGroup // the goroutines return when every visit has been taken
	for range clients {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < visits; n = int(next.Add(1)) - 1 {
				var err error
				// Neighbours in the sequence are concurrent visits of one visitor.
				if answers[n], err = s.Visit(t.Context(), asks(fmt.Sprintf("/%d", n%pages), address(n/25%visitors))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	type key struct {
		uri     string
		visitor int
	}
	hots, ranks, holders := map[key]bool{}, map[key]int64{}, map[key]int{} // keys: uri with hot, with visitor, and with rank
	for n, a := range answers {
		for uri, counts := range map[string]visit.Counts{"hhui.top": a.Site, fmt.Sprintf("hhui.top/%d", n%pages): a.Page} {
			if hot := (key{uri, int(counts.Hot)}); hots[hot] || counts.Hot < 1 {
				t.Errorf("visit %d: hot %d of %s was given twice, or is out of range", n, counts.Hot, uri)
			} else {
				hots[hot] = true
			}
			visitor := n / 25 % visitors
			if was := ranks[key{uri, visitor}]; was != 0 && was != counts.Rank {
				t.Errorf("visit %d: rank %d of visitor %d at %s, but %d before", n, counts.Rank, visitor, uri, was)
			}
			ranks[key{uri, visitor}] = counts.Rank
			if holder, held := holders[key{uri, int(counts.Rank)}]; held && holder != visitor {
				t.Errorf("visit %d: rank %d of %s belongs to visitor %d, too", n, counts.Rank, uri, holder)
			}
			holders[key{uri, int(counts.Rank)}] = visitor
			if counts.Rank < 1 || counts.Rank > counts.UV || counts.UV > visitors || counts.PV != counts.UV || counts.Hot < counts.PV {
				t.Errorf("visit %d: impossible numbers of %s: %+v", n, uri, counts)
			}
		}
	}
	if len(hots) != 2*visits || len(ranks) != (1+pages)*visitors || len(holders) != len(ranks) {
		t.Errorf("%d different hots, %d ranks, %d holders of one", len(hots), len(ranks), len(holders))
	}
	if ranks, days := wrong(t, s); ranks != 0 || days != 0 {
		t.Errorf("%d ranks lost and %d days counted twice", ranks, days)
	}
}
