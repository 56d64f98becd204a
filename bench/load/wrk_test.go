package load

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const wrkOutput = `Running 2s test @ http://127.0.0.1:41233
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.09ms    2.05ms  34.80ms   88.00%
  40000 requests in 2.00s, 9.47MB read
Requests/sec:  20000.00
result {"requests":40000,"us":2000000,"p50":2690,"p99":11090,"errors":0,"ended":0,"sent":[20040,20024]}
`

func TestReadWrk(t *testing.T) {
	t.Parallel()
	got, sent, err := readWrk(wrkOutput, 64)
	want := Measure{
		Requests: 40000, PerSecond: 20000,
		P50Ms: 2.69, P99Ms: 11.09,
	}
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, []int{20040, 20024}, sent)
}

func TestReadWrkRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"errors":          {`"errors":0`, `"errors":7`},
		"no answer":       {`"requests":40000`, `"requests":0`},
		"no time":         {`"us":2000000`, `"us":0`},
		"no result":       {"result ", "outcome "},
		"a field missing": {`"p99":11090,`, ""},
		"no number":       {`"p50":2690`, `"p50":nan`},
		"used up":         {`"ended":0`, `"ended":1`},
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
			if m, _, err := readWrk(out, 64); err == nil {
				t.Errorf("read as %+v", m)
			}
		})
	}
}

// Of each connection's visits the last one alone may be without an answer.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	for connections, well := range map[int]bool{62: false, 64: true, 100: true} {
		if _, _, err := readWrk(wrkOutput, connections); (err == nil) != well {
			t.Errorf("%d connections: %v", connections, err)
		}
	}
	_, _, err := readWrk(strings.Replace(wrkOutput, "40000,", "40065,", 1), 64)
	require.Error(t, err, "more answers than visits were believed")
}

// The threads of wrk together send the sequence, each visit once.
func TestThreadsShareTheSequence(t *testing.T) {
	t.Parallel()
	sequence := []Arrival{{Page: 1, Visitor: 0}, {Page: 2, Visitor: 1}, {Page: 3, Visitor: 2}}
	j := Job{Dir: t.TempDir(), Name: "first", Visits: sequence}
	require.NoError(t, j.write())
	for file, want := range map[string]string{
		"first.1": "bench.example/page/1\t" + Address(0).String() + "\nbench.example/page/3\t" + Address(2).String() + "\n",
		"first.2": "bench.example/page/2\t" + Address(1).String() + "\n",
	} {
		got, err := os.ReadFile(j.file(file))
		require.NoError(t, err)
		assert.Equal(t, want, string(got), file)
	}
	assert.Equal(t, []Arrival{sequence[0], sequence[2]}, sentOf(sequence, []int{2, 0}))
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
