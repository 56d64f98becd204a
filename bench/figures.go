package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"footfall/report/draw"
)

// Untold stands where a figure is missing: there is nothing to compare with, or nothing is known.
const Untold = "-"

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

// Millis keeps three digits.
func Millis(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return Grouped(v)
}

// UpTo writes at most so many decimals.
func UpTo(v float64, decimals int) string {
	power := math.Pow10(decimals)
	return strconv.FormatFloat(math.Round(v*power)/power, 'f', -1, 64)
}

// Megabytes writes a size; nothing known where it is 0.
func Megabytes(bytes int64) string {
	switch mb := float64(bytes) / 1e6; {
	case bytes == 0:
		return Untold
	case mb < 10:
		return fmt.Sprintf("%.1f", mb)
	default:
		return Grouped(mb)
	}
}

// Times writes a ratio.
func Times(v float64) string {
	switch {
	case v == 0:
		return Untold
	case v < 10:
		return fmt.Sprintf("×%.2f", v)
	}
	return "×" + UpTo(v, 1)
}
