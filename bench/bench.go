// Package bench is what all benchmarks have in common: their options, the PostgreSQL that they
// measure on, the processes that they load, and how figures are written. What is measured lies in
// the folders below.
package bench

import (
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"footfall/report/draw"
)

// ErrUntrue comes with a complete report in which something is wrong that promises to be exact.
var ErrUntrue = errors.New("what was counted is not true")

// Untrue is ErrUntrue with what is wrong; nil where nothing is.
func Untrue(faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", ErrUntrue, strings.Join(faults[:min(10, len(faults))], "\n"))
}

// Options of all benchmarks on tables, as flags of their commands; each adds its own. Numbers that
// are whole must be 1 or more.
type Options struct {
	DatabaseURL string `env:"FOOTFALL_DATABASE_URL" placeholder:"URL" help:"Make databases on this server, and drop them at the end. Default: an embedded PostgreSQL."`
	Dir         string `placeholder:"DIR" help:"Folder in which the embedded PostgreSQL keeps its data, which is removed at the end; choose one on the disk to be measured. Default: the system's folder for temporary files."`
	PostgresBin string `env:"FOOTFALL_POSTGRES_BIN" placeholder:"DIR" help:"Folder of PostgreSQL's programs for the embedded one. Default: looked for."`
	Footfall    string `default:"bin/footfall" placeholder:"FILE" help:"The program that is measured where a service is started. Default: ${default}."`
	Seed        uint64 `default:"1" placeholder:"N" help:"Of all that is drawn: the same seed makes the same visits. Default: ${default}."`

	Progress func(string) `kong:"-"` // is called with what is being done; may be nil
}

// Doing says what is being done.
func (o Options) Doing(format string, of ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, of...))
	}
}

// Faults are what is wrong with the flags of a command, which is told before anything is done.
type Faults []error

// When adds a fault where there is one.
func (f *Faults) When(is bool, format string, of ...any) {
	if is {
		*f = append(*f, fmt.Errorf(format, of...))
	}
}

// Service adds that there is no program to be started as a service.
func (f *Faults) Service(program string) {
	_, err := exec.LookPath(program)
	f.When(err != nil, "footfall: there is no program %s: build it with make build, or name another", program)
}

// Spread is a median between the least and the most.
type Spread struct {
	Median float64
	Min    float64
	Max    float64
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
