package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is given is kept, and what is not has a default, a smaller one where all is to be quick.
func TestUsual(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 5, Usual(Options{}, 0, 5, 1))
	assert.Equal(t, 1, Usual(Options{Quick: true}, 0, 5, 1))
	assert.Equal(t, time.Minute, Usual(Options{Quick: true}, time.Minute, time.Hour, time.Second))
}

func TestReadFigures(t *testing.T) {
	t.Parallel()
	f := readFigures("# HELP footfall_skipped_total What was spared.\n# TYPE footfall_skipped_total counter\n" +
		"footfall_skipped_total{by=\"a batch\"} 3\nfootfall_skipped_total{by=\"filter\"} 4\nfootfall_filter_bytes 1.5e+06\n\nodd\n")
	for name, want := range map[string]float64{"footfall_skipped_total": 7, "footfall_filter_bytes": 1_500_000} {
		require.NoError(t, f.Has(name))
		assert.InDelta(t, want, f[name], 0, name)
	}
	assert.ErrorContains(t, f.Has("footfall_filter_bytes", "footfall_missing"), "footfall_missing")
}

func TestReadPeak(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"Name:\tfootfall\nVmPeak:\t 999999 kB\nVmHWM:\t   40512 kB\nVmRSS:\t 100 kB\n": 40512 << 10,
		"Name:\tfootfall\n":   0,
		"VmHWM:\tplenty kB\n": 0,
	} {
		assert.InDelta(t, want, readPeak(text), 0, text)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	assert.Equal(t, Spread{}, SpreadOf(nil))
	assert.Equal(t, Spread{Median: 2, Min: 1, Max: 3}, SpreadOf([]float64{3, 1, 2}))
	assert.Equal(t, Spread{Median: 2.5, Min: 1, Max: 4}, SpreadOf([]float64{4, 1, 2, 3}))
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		of      []time.Duration
		percent int
		want    time.Duration
	}{
		{nil, 99, 0}, {hundred[:1], 50, 1}, {hundred[:1], 99, 1}, {hundred[:2], 50, 1}, {hundred[:3], 50, 2},
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred[:99], 99, 99}, {hundred[:10], 99, 10},
	} {
		assert.Equal(t, c.want, Percentile(c.of, c.percent), "%d %% of %d", c.percent, len(c.of))
	}
}

func TestFiguresAsText(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{Grouped(0), "0"}, {Grouped(999.4), "999"}, {Grouped(999.6), "1,000"}, {Grouped(1234567), "1,234,567"}, {Grouped(-1000), "-1,000"}, {Grouped(-0.1), "0"},
		{Short(0.123), "0.12"}, {Short(12.34), "12.3"}, {Short(1234), "1,234"},
		{Megabytes(0), "-"}, {Megabytes(2_340_000), "2.34"}, {Megabytes(1_500_000_000), "1,500"},
		{Table{{"of", "n"}, {"ähre", "1,234"}}.String(), "  of        n\n  ähre  1,234\n"},
	} {
		assert.Equal(t, c[1], c[0])
	}
}

func TestWaitUntil(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := WaitUntil(ended, "the end", func() (bool, error) { return false, nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "the end")
	fault := errors.New("no")
	require.ErrorIs(t, WaitUntil(t.Context(), "the end", func() (bool, error) { return false, fault }), fault)
	tries := 0
	require.NoError(t, WaitUntil(t.Context(), "the end", func() (bool, error) { tries++; return tries == 3, nil }))
	assert.Equal(t, 3, tries)
}
