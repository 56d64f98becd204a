// Package bench contains the code that all benchmarks share: options, a PostgreSQL server, service processes, and output.
// The benchmarks are in its subpackages.
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

// ErrUntrue is returned together with a complete report, if a measured program that promises exact numbers has counted
// wrong ones.
var ErrUntrue = errors.New("the counted numbers are wrong")

// Untrue returns an error that wraps ErrUntrue and lists up to ten faults, or nil if there are no faults.
func Untrue(faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", ErrUntrue, strings.Join(faults[:min(10, len(faults))], "\n"))
}

// Options are the flags that all benchmarks with a database share. Each benchmark adds its own flags. Integer flags must be
// at least 1.
type Options struct {
	DatabaseURL string `env:"FOOTFALL_DATABASE_URL" placeholder:"URL" help:"Create databases on this server, and drop them at the end. Default: an embedded PostgreSQL."`
	Dir         string `placeholder:"DIR" help:"Folder for the data of the embedded PostgreSQL, which are removed at the end. Choose one on the disk to measure. Default: the system's folder for temporary files."`
	PostgresBin string `env:"FOOTFALL_POSTGRES_BIN" placeholder:"DIR" help:"Folder of PostgreSQL's programs for the embedded one. Default: it is searched for."`
	Footfall    string `default:"bin/footfall" placeholder:"FILE" help:"The program to measure if a service is started. Default: ${default}."`
	Seed        uint64 `default:"1" placeholder:"N" help:"Seed of the random numbers: the same seed makes the same visits. Default: ${default}."`

	Progress func(string) `kong:"-"` // called with a text about the current step of the benchmark; may be nil
}

// Doing calls Progress, if it is set, with a text about the current step of the benchmark.
func (o Options) Doing(format string, of ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, of...))
	}
}

// Faults are errors in a command's flags. They are reported before the command runs.
type Faults []error

// When adds an error if the condition (is) is true. The other parameters are those of fmt.Errorf.
func (f *Faults) When(is bool, format string, of ...any) {
	if is {
		*f = append(*f, fmt.Errorf(format, of...))
	}
}

// Service adds an error if program does not exist. A benchmark starts this program as Footfall's service.
func (f *Faults) Service(program string) {
	_, err := exec.LookPath(program)
	f.When(err != nil, "footfall: there is no program %s: build it with make build, or name another", program)
}

// Spread contains the median, the minimum and the maximum of several values.
type Spread struct {
	Median float64
	Min    float64
	Max    float64
}

// SpreadOf returns the Spread of values. All fields are 0 if there are no values.
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

// Grouped rounds a number to an integer, and adds thousands separators.
func Grouped(v float64) string { return draw.Number(int64(math.Round(v))) }

// Short formats a number below 10 with two decimals, a number below 100 with one decimal, and any other number as an
// integer.
func Short(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return Grouped(v)
}

// FormatOrDash formats a number with the function write. For 0, which means that the number was not measured, it returns
// "-".
func FormatOrDash(v float64, write func(float64) string) string {
	if v == 0 {
		return "-"
	}
	return write(v)
}

// Table is a table for a terminal. The first row contains the column names. The first column is aligned left, and all other
// columns are aligned right.
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
	_ = w.Flush() // cannot fail, because it writes to memory
	return text.String()
}
