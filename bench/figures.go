package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"footfall/report/draw"
)

// Spread is a median between the least and the most.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf is that of some values; zeros where there are none.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return Spread{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1]}
}

// Percentile is the least of the sorted that so many percent do not exceed.
func Percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// Ms is a time in milliseconds.
func Ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Ratio is a/b, and 0 where b is.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Grouped writes a number without decimals, its digits in threes.
func Grouped(v float64) string { return draw.Number(int64(math.Round(v))) }

// Short keeps three digits.
func Short(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return Grouped(v)
}

// Megabytes writes a size.
func Megabytes(bytes float64) string { return OrNone(bytes/1e6, Short) }

// OrNone writes a figure, unless it is missing: there is nothing to compare with, or nothing is
// known.
func OrNone(v float64, write func(float64) string) string {
	if v == 0 {
		return "-"
	}
	return write(v)
}

// Table is lines of cells below one of names, for people at a terminal. The first column is aligned
// to the left, figures to the right.
type Table [][]string

func (t Table) String() string {
	var widths []int
	for _, line := range t {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, line := range t {
		fmt.Fprintf(&text, "%-*s", widths[0], line[0])
		for i, cell := range line[1:] {
			fmt.Fprintf(&text, "  %*s", widths[i+1], cell)
		}
		text.WriteByte('\n')
	}
	return text.String()
}
