package bench

import (
	"math"
	"strings"
	"testing"
	"time"
)

const wrkOutput = `Running 2s test @ http://127.0.0.1:41233
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.09ms    2.05ms  34.80ms   88.00%
  40000 requests in 2.00s, 9.47MB read
Requests/sec:  20000.00
result requests=40000 us=2000000 p50=2690 p95=8000 p99=11090 connect=0 read=0 write=0 status=0 timeout=0 ended=0 sent=20040,20024
`

func TestReadWrk(t *testing.T) {
	t.Parallel()
	got, err := readWrk(wrkOutput)
	want := measure{
		requests: 40000, perSecond: 20000,
		p50: 2690 * time.Microsecond, p95: 8 * time.Millisecond, p99: 11090 * time.Microsecond,
		sent: [wrkThreads]int64{20040, 20024},
	}
	if err != nil || got != want {
		t.Errorf("read %+v, %v, want %+v", got, err, want)
	}
}

func TestReadWrkRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"no connection":   {"connect=0", "connect=1"},
		"a broken read":   {"read=0", "read=1"},
		"a broken write":  {"write=0", "write=1"},
		"another status":  {"status=0", "status=7"},
		"a timeout":       {"timeout=0", "timeout=2"},
		"no answer":       {"requests=40000", "requests=0"},
		"no time":         {"us=2000000", "us=0"},
		"no result":       {"result ", "outcome "},
		"a field missing": {"p99=11090 ", ""},
		"no number":       {"p50=2690", "p50=nan"},
		"used up":         {"ended=0", "ended=1"},
		"an idle thread":  {"20040,20024", "40064,0"},
		"a thread more":   {"20040,20024", "20040,20020,4"},
		"a thread less":   {"20040,20024", "40064"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := strings.Replace(wrkOutput, change[0], change[1], 1)
			if out == wrkOutput {
				t.Fatalf("%q is not in the output", change[0])
			}
			if m, err := readWrk(out); err == nil {
				t.Errorf("read as %+v", m)
			}
		})
	}
}

// Of each connection's visits the last one alone may be without an answer.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	m := measure{requests: 100, sent: [wrkThreads]int64{60, 44}}
	for connections, well := range map[int]bool{2: false, 4: true, 64: true} {
		if err := m.unanswered(connections); (err == nil) != well {
			t.Errorf("%d connections: %v", connections, err)
		}
	}
	m.requests = 105
	if m.unanswered(64) == nil {
		t.Error("more answers than visits were believed")
	}
}

func TestReadPeak(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"Name:\tfootfall\nVmPeak:\t 999999 kB\nVmHWM:\t   40512 kB\nVmRSS:\t 100 kB\n": 40512 << 10,
		"Name:\tfootfall\n":   0,
		"VmHWM:\tplenty kB\n": 0,
	} {
		if got := readPeak(text); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{nil, spread{}},
		{[]float64{3, 1, 2}, spread{Median: 2, Min: 1, Max: 3}},
		{[]float64{4, 1, 2, 3}, spread{Median: 2.5, Min: 1, Max: 4}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("of %v: %+v, want %+v", c.values, got, c.want)
		}
	}
}

// Two visitors with one address would make one of them no newcomer, and the bytes of a key too few.
func TestAddressesAreDistinct(t *testing.T) {
	t.Parallel()
	seen := make([]bool, addresses)
	for n := range addresses {
		b := addressOf(n).As4()
		at := int(b[1])<<16 | int(b[2])<<8 | int(b[3])
		if seen[at] {
			t.Fatalf("visitor %d has the address of another: %s", n, addressOf(n))
		}
		seen[at] = true
	}
	if math.MaxInt == math.MaxInt32 {
		t.Error("the product of number and multiplier needs 64 bits")
	}
}
