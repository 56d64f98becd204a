// Package bench is what all benchmarks have in common: their options, the PostgreSQL that they
// measure on, the processes that they load, and how figures are written. What is measured lies in
// the folders below.
package bench

import (
	"errors"
	"fmt"
	"os/exec"
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
	Seed        uint64 `placeholder:"N" help:"Of all that is drawn: the same seed makes the same visits. Default: 1."`
	Quick       bool   `help:"Once, and little of everything: shows that all is counted right, measures little."`

	Command  string       `kong:"-"` // that repeats the benchmark
	Progress func(string) `kong:"-"` // is called with what is being done; may be nil
}

// Completed has the defaults in place of what was not given.
func (o Options) Completed() Options {
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
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
