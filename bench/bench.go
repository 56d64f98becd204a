// Package bench contains the common parts of all benchmarks: options, the PostgreSQL server, processes under load, and
// output. The benchmarks are in its subpackages.
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

// ErrUntrue is returned with a complete report if an exact way of counting produced wrong numbers.
var ErrUntrue = errors.New("the counted numbers are wrong")

// Untrue returns an error that wraps ErrUntrue and lists the faults, or nil if there are no faults.
func Untrue(faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", ErrUntrue, strings.Join(faults[:min(10, len(faults))], "\n"))
}

// Options are the common flags of benchmarks on tables. Each benchmark adds its own flags. Integers must be at
// least 1.
type Options struct {
	DatabaseURL string `env:"FOOTFALL_DATABASE_URL" placeholder:"URL" help:"Create databases on this server, and drop them at the end. Default: an embedded PostgreSQL."`
	Dir         string `placeholder:"DIR" help:"Folder for the data of the embedded PostgreSQL, which are removed at the end. Choose one on the disk to measure. Default: the system's folder for temporary files."`
	PostgresBin string `env:"FOOTFALL_POSTGRES_BIN" placeholder:"DIR" help:"Folder of PostgreSQL's programs for the embedded one. Default: it is searched for."`
	Footfall    string `default:"bin/footfall" placeholder:"FILE" help:"The program to measure if a service is started. Default: ${default}."`
	Seed        uint64 `default:"1" placeholder:"N" help:"Seed of the random numbers: the same seed makes the same visits. Default: ${default}."`

	Progress func(string) `kong:"-"` // called with the current step; may be nil
}

// Doing reports the current step.
func (o Options) Doing(format string, of ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, of...))
	}
}

// Faults are the faults of a command's flags, reported before the command runs.
type Faults []error

// When adds a fault if is is true.
func (f *Faults) When(is bool, format string, of ...any) {
	if is {
		*f = append(*f, fmt.Errorf(format, of...))
	}
}

// Service adds a fault if the program of the service does not exist.
func (f *Faults) Service(program string) {
	_, err := exec.LookPath(program)
	f.When(err != nil, "footfall: there is no program %s: build it with make build, or name another", program)
}

// Spread is a median with minimum and maximum.
type Spread struct {
	Median float64
	Min    float64
	Max    float64
}

// SpreadOf returns the spread of values, or zeros if there are none.
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

// Grouped formats a number without decimals, with thousands separators.
func Grouped(v float64) string { return draw.Number(int64(math.Round(v))) }

// Short formats a number with three digits.
func Short(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return Grouped(v)
}

// OrNone formats a figure. A figure of 0 is missing, and is shown as "-".
func OrNone(v float64, write func(float64) string) string {
	if v == 0 {
		return "-"
	}
	return write(v)
}

// Table is a table for a terminal. The first row contains the column names. The first column is aligned left, the
// other columns right.
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
	_ = w.Flush() // writes to memory
	return text.String()
}
