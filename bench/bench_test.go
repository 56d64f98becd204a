package bench

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The error lists the wrong results. If there are many, it lists only the first ones.
func TestUntrue(t *testing.T) {
	t.Parallel()
	require.NoError(t, Untrue(nil))
	err := Untrue(append(slices.Repeat([]string{"an error"}, 10), "one more"))
	require.ErrorIs(t, err, ErrUntrue)
	assert.ErrorContains(t, err, "an error\nan error")
	assert.NotContains(t, err.Error(), "one more")
}

func TestReadFigures(t *testing.T) {
	t.Parallel()
	f := readFigures("# HELP footfall_skipped_total What was spared.\n# TYPE footfall_skipped_total counter\n" +
		"footfall_skipped_total{by=\"a batch\"} 3\nfootfall_skipped_total{by=\"filter\"} 4\nfootfall_filter_bytes 1.5e+06\n\nodd\n")
	for name, want := range map[string]float64{"footfall_skipped_total": 7, "footfall_filter_bytes": 1_500_000} {
		assert.InDelta(t, want, f[name], 0, name)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	assert.Equal(t, Spread{}, SpreadOf(nil))
	assert.Equal(t, Spread{Median: 2, Min: 1, Max: 3}, SpreadOf([]float64{3, 1, 2}))
	assert.Equal(t, Spread{Median: 2.5, Min: 1, Max: 4}, SpreadOf([]float64{4, 1, 2, 3}))
}

func TestFiguresAsText(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{Grouped(0), "0"}, {Grouped(999.4), "999"}, {Grouped(999.6), "1,000"}, {Grouped(1234567), "1,234,567"}, {Grouped(-1000), "-1,000"},
		{Grouped(-0.1), "0"},
		{Short(0.123), "0.12"}, {Short(12.34), "12.3"}, {Short(1234), "1,234"},
		{FormatOrDash(0, Short), "-"}, {FormatOrDash(2.34, Short), "2.34"},
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
