package perrequest

import (
	"context"
	"net/netip"
	"testing"

	"footfall/db/dbtest"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// The baseline must count right where nothing is concurrent; else the comparison would be with something that does less.
func TestVisitsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), dbtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	const today, tomorrow = 20190629, 20190630
	steps := []struct {
		ip, page   string
		day        int32
		site, want visit.Counts // PV, UV, Rank, Hot
	}{
		{"192.168.0.1", "/home", today, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 1}, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 1}},
		{"192.168.0.1", "/home", today, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 2}, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 2}},
		{"192.168.0.1", "/index", today, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 3}, visit.Counts{PV: 1, UV: 1, Rank: 1, Hot: 1}},
		{"192.168.0.2", "/index", today, visit.Counts{PV: 2, UV: 2, Rank: 2, Hot: 4}, visit.Counts{PV: 2, UV: 2, Rank: 2, Hot: 2}},
		{"192.168.0.2", "/home", today, visit.Counts{PV: 2, UV: 2, Rank: 2, Hot: 5}, visit.Counts{PV: 2, UV: 2, Rank: 2, Hot: 3}},
		{"192.168.0.2", "/home", tomorrow, visit.Counts{PV: 3, UV: 2, Rank: 2, Hot: 6}, visit.Counts{PV: 3, UV: 2, Rank: 2, Hot: 4}},
	}
	for i, step := range steps {
		target := visit.Target{Site: "hhui.top", Page: "hhui.top" + step.page}
		got, err := s.Visit(t.Context(), target, netip.MustParseAddr(step.ip), step.day)
		if want := (visit.Answer{Site: step.site, Page: step.want}); err != nil || got != want {
			t.Errorf("step %d: %+v, %v, want %+v", i+1, got, err, want)
		}
	}
	conn, err := s.pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if ranks, days, err := Wrong(t.Context(), conn.Conn()); ranks != 0 || days != 0 || err != nil {
		t.Errorf("%d ranks lost and %d days counted twice (%v) without any concurrency", ranks, days, err)
	}
}
