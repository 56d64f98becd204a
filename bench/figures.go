package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
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
	width := 0
	for _, line := range t {
		width = max(width, utf8.RuneCountInString(line[0]))
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range t {
		fmt.Fprintf(w, "%-*s\t%s\t\n", width, line[0], strings.Join(line[1:], "\t"))
	}
	_ = w.Flush() // into memory
	return text.String()
}
