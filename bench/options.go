// Package bench is what all benchmarks have in common: their options, the PostgreSQL that they
// measure on, the processes that they load, and how figures are written. What is measured lies in
// the folders below.
package bench

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// ErrUntrue comes with a complete report in which something is wrong that promises to be exact.
var ErrUntrue = errors.New("what was counted is not true")

// Options of all benchmarks on tables, as flags of their commands; each adds its own. A zero field
// means its default.
type Options struct {
	DatabaseURL string `env:"FOOTFALL_DATABASE_URL" placeholder:"URL" help:"Make databases on this server, and drop them at the end. Default: an embedded PostgreSQL."`
	Dir         string `placeholder:"DIR" help:"Folder in which the embedded PostgreSQL keeps its data, which is removed at the end; choose one on the disk to be measured. Default: the system's folder for temporary files."`
	PostgresBin string `env:"FOOTFALL_POSTGRES_BIN" placeholder:"DIR" help:"Folder of PostgreSQL's programs for the embedded one. Default: looked for."`
	Footfall    string `default:"bin/footfall" placeholder:"FILE" help:"The program that is measured where a service is started. Default: ${default}."`
	Seed        uint64 `default:"1" placeholder:"N" help:"Of all that is drawn: the same seed makes the same visits. Default: ${default}."`
	Quick       bool   `help:"Once, and little of everything: shows that all is counted right, measures little."`

	Command  string       `kong:"-"` // that repeats the benchmark
	Progress func(string) `kong:"-"` // is called with what is being done; may be nil
}

// Doing says what is being done.
func (o Options) Doing(format string, of ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, of...))
	}
}

// CheckService tells what is wrong with the program that is started as a service; where none is
// named, none is.
func (o Options) CheckService() []error {
	if o.Footfall != "" {
		if _, err := exec.LookPath(o.Footfall); err != nil {
			return []error{fmt.Errorf("footfall: there is no program %s: build it with make build, or name another", o.Footfall)}
		}
	}
	return nil
}

// Usual is what was given; where nothing was, the usual value, or a smaller one where all is to be
// quick.
func Usual[T comparable](o Options, given, usual, quick T) T {
	var none T
	switch {
	case given != none:
		return given
	case o.Quick:
		return quick
	}
	return usual
}

// BelowOne names the flags whose numbers are.
func BelowOne(flags map[string]int) (faults []error) {
	for flag, n := range flags {
		if n < 1 {
			faults = append(faults, fmt.Errorf("%s: %d will not do: give 1 or more", flag, n))
		}
	}
	return faults
}

// Named picks those with the names, in the order of all; all where none is named.
func Named[T any](what string, all []T, name func(T) string, names []string) (some []T, err error) {
	if len(names) == 0 {
		return all, nil
	}
	var there []string
	for _, one := range all {
		there = append(there, name(one))
		if slices.Contains(names, name(one)) {
			some = append(some, one)
		}
	}
	for _, asked := range names {
		if !slices.Contains(there, asked) {
			return nil, fmt.Errorf("%s: there is no %q here: choose from %s", what, asked, strings.Join(there, ","))
		}
	}
	return some, nil
}
