package load

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func workloadNamed(t *testing.T, name string) Workload {
	t.Helper()
	at := slices.IndexFunc(Workloads, func(w Workload) bool { return w.Name == name })
	require.NotEqual(t, -1, at, "workload %s does not exist", name)
	return Workloads[at]
}

// A workload is defined by its share of first visits. The first part of a workload must have the
// same share.
func TestWorkloadsShareOfFirstVisits(t *testing.T) {
	t.Parallel()
	shares := map[string]struct{ least, most float64 }{
		"first": {1, 1}, "returning": {0.045, 0.06}, "burst": {0.04, 0.06},
	}
	require.Len(t, Workloads, len(shares))
	for _, w := range Workloads {
		for _, visits := range []int{10_000, 100_000} {
			got, want := firstShare(w.Sequence(1, visits)), shares[w.Name]
			assert.True(t, got >= want.least && got <= want.most,
				"%s: %.3f of %d visits are a visitor's first to the page, want %v to %v", w.Name, got, visits, want.least, want.most)
		}
	}
}

func TestWorkloadsRepeat(t *testing.T) {
	t.Parallel()
	for _, w := range Workloads {
		long := w.Sequence(7, 5000)
		assert.Equal(t, long[:500], w.Sequence(7, 500), "%s: a shorter sequence is not the beginning of a longer one", w.Name)
		if w.Name != "first" {
			assert.NotEqual(t, long, w.Sequence(8, 5000), "%s: the seed changes nothing", w.Name)
		}
	}
}

// The repeats of the burst are close together, on one page.
func TestBurst(t *testing.T) {
	t.Parallel()
	begin := map[int32]int{}
	for at, a := range workloadNamed(t, "burst").Sequence(1, 100_000) {
		require.Zero(t, a.Page, "visit %d", at)
		if _, came := begin[a.Visitor]; !came {
			begin[a.Visitor] = at
		}
		require.LessOrEqual(
			t,
			at-begin[a.Visitor],
			burstVisits*burstCrowd,
			"visitor %d begins at %d and still comes at %d",
			a.Visitor,
			begin[a.Visitor],
			at,
		)
	}
}

func TestPagesOfWorkloads(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"first", "returning"} {
		visited := map[int32]int{}
		for _, a := range workloadNamed(t, name).Sequence(1, 100_000) {
			visited[a.Page]++
			require.True(t, a.Page >= 0 && a.Page < Pages && a.Visitor >= 0 && a.Visitor < 100_000, "%s: no such visit: %+v", name, a)
		}
		assert.GreaterOrEqual(t, len(visited), Pages/2, name)
		assert.Greater(t, visited[0], 10*visited[100], name)
	}
}

func TestTruth(t *testing.T) {
	t.Parallel()
	sequence := []Arrival{{Page: 1, Visitor: 1}, {Page: 1, Visitor: 1}, {Page: 2, Visitor: 1}, {Page: 2, Visitor: 2}, {Page: 1, Visitor: 2}}
	assert.Equal(t, map[string]Sums{Site: {2, 2, 5}, PageURI(1): {2, 2, 3}, PageURI(2): {2, 2, 2}}, ExpectedSums(sequence))
	assert.InDelta(t, 0.8, firstShare(sequence), 1e-9)
}

// Two visitors with one address would turn a newcomer into a returning visitor.
func TestAddressesAreDistinct(t *testing.T) {
	t.Parallel()
	require.NotEqual(t, math.MaxInt32, math.MaxInt, "the product of number and multiplier needs 64 bits")
	seen := make([]bool, Addresses)
	for n := range Addresses {
		b := Address(n).As4()
		at := int(b[1])<<16 | int(b[2])<<8 | int(b[3])
		if seen[at] {
			t.Fatalf("visitor %d has the address of another: %s", n, Address(n))
		}
		seen[at] = true
	}
}

// firstShare returns the share of visits that are a visitor's first visit to a page.
func firstShare(sequence []Arrival) float64 {
	firsts := map[Arrival]bool{}
	for _, a := range sequence {
		firsts[a] = true
	}
	return float64(len(firsts)) / float64(len(sequence))
}

func TestMeasureOf(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100-i) * time.Millisecond
	}
	assert.Equal(t, Measure{100, 50, 50, 99, 100}, MeasureOf(hundred, 2*time.Second))
	assert.Equal(t, Measure{99, 0, 50, 99, 99}, MeasureOf(hundred[:99], 0))
	assert.Equal(t, Measure{10, 0, 5, 10, 10}, MeasureOf(hundred[:10], 0))
	assert.Equal(t, Measure{2, 0, 1, 2, 2}, MeasureOf(hundred[:2], 0))
	assert.Equal(t, Measure{}, MeasureOf(nil, 0))
}

// A request that is sent late because of a slow response is timed from the moment when it was due.
func TestClients(t *testing.T) {
	t.Parallel()
	const slow = 50 * time.Millisecond
	var came atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if assert.Equal(t, fmt.Sprintf("/%d", came.Load()), r.URL.Path); came.Add(1) == 1 {
			<-time.After(slow)
		}
		if r.URL.Path == "/7" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, "an answer with a body")
	}))
	defer server.Close()
	s := Clients{URL: server.URL, Requests: 7, PerSecond: 1000, Connections: 1, Request: func(n int) []byte {
		return fmt.Appendf(nil, "GET /%d HTTP/1.1\r\nHost: here\r\n\r\n", n)
	}}
	require.NoError(t, s.Send(t.Context()))
	assert.Len(t, s.Waits, 7)
	for n, wait := range s.Waits {
		assert.GreaterOrEqual(t, wait, slow-time.Duration(n)*time.Millisecond, n)
	}
	came.Store(0)
	s.Requests = 8
	require.EqualError(t, s.Send(t.Context()), "visit 7 was answered 503")
	server.Close()
	require.ErrorContains(t, s.Send(t.Context()), "connection refused")
}
