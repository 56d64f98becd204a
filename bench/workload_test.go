package bench

import (
	"slices"
	"testing"
)

func workloadNamed(t *testing.T, name string) workload {
	t.Helper()
	at := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
	if at < 0 {
		t.Fatalf("there is no workload %s", name)
	}
	return workloads[at]
}

// What a workload is for is how many of its visits are new; it must be so for those who take the beginning alone, too.
func TestWorkloadsShareOfFirstVisits(t *testing.T) {
	t.Parallel()
	shares := map[string]struct{ least, most float64 }{
		"first": {1, 1}, "mixed": {0.4, 0.6}, "returning": {0.045, 0.06}, "burst": {0.04, 0.06},
	}
	if len(shares) != len(workloads) {
		t.Fatalf("%d workloads, %d shares", len(workloads), len(shares))
	}
	for _, w := range workloads {
		for _, visits := range []int{10_000, 100_000} {
			if got, want := firstShare(w.sequence(1, visits)), shares[w.name]; got < want.least || got > want.most {
				t.Errorf("%s: %.3f of %d visits are a visitor's first to the page, want %v to %v", w.name, got, visits, want.least, want.most)
			}
		}
	}
}

func TestWorkloadsRepeat(t *testing.T) {
	t.Parallel()
	for _, w := range workloads {
		long := w.sequence(7, 5000)
		if short := w.sequence(7, 500); !slices.Equal(short, long[:500]) {
			t.Errorf("%s: a shorter sequence is not the beginning of a longer one", w.name)
		}
		if w.name != "first" && slices.Equal(long, w.sequence(8, 5000)) {
			t.Errorf("%s: the seed changes nothing", w.name)
		}
	}
}

// The repeats of the burst lie near each other, on one page.
func TestBurst(t *testing.T) {
	t.Parallel()
	sequence := workloadNamed(t, "burst").sequence(1, 100_000)
	begin := map[int32]int{}
	for at, a := range sequence {
		if a.page != 0 {
			t.Fatalf("visit %d is to page %d", at, a.page)
		}
		if _, came := begin[a.visitor]; !came {
			begin[a.visitor] = at
		}
		if at-begin[a.visitor] > burstVisits*burstCrowd {
			t.Fatalf("visitor %d comes at %d and still at %d", a.visitor, begin[a.visitor], at)
		}
	}
}

func TestPagesOfWorkloads(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"first", "mixed", "returning"} {
		visited := map[int32]int{}
		for _, a := range workloadNamed(t, name).sequence(1, 100_000) {
			visited[a.page]++
			if a.page < 0 || a.page >= pages || a.visitor < 0 || a.visitor >= 100_000 {
				t.Fatalf("%s: no such visit: %+v", name, a)
			}
		}
		if len(visited) < pages/2 || visited[0] < 10*visited[100] {
			t.Errorf("%s: %d pages, page 0 %d times, page 100 %d times", name, len(visited), visited[0], visited[100])
		}
	}
}

func TestTruth(t *testing.T) {
	t.Parallel()
	got := truthOf([]arrival{{page: 1, visitor: 1}, {page: 1, visitor: 1}, {page: 2, visitor: 1}, {page: 2, visitor: 2}, {page: 1, visitor: 2}})
	want := map[string]sums{site: {2, 2, 5}, pageURI(1): {2, 2, 3}, pageURI(2): {2, 2, 2}}
	if all := got.byURI(); len(all) != len(want) || got.firsts != 4 {
		t.Errorf("%d targets, %d firsts", len(all), got.firsts)
	}
	for uri, s := range got.byURI() {
		if s != want[uri] {
			t.Errorf("%s: %+v, want %+v", uri, s, want[uri])
		}
	}
}
