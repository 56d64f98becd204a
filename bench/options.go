// Package bench is what all benchmarks have in common: their options, the PostgreSQL that they
// measure on, the processes that they load, and how figures are written. What is measured lies in
// the folders below.
package bench

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrUntrue comes with a complete report in which something is wrong that promises to be exact.
var ErrUntrue = errors.New("what was counted is not true")

// Options of a benchmark; each looks at those that it needs. A zero field means its default.
type Options struct {
	DatabaseURL string       // a server on which databases may be made; default: an embedded one
	Dir         string       // where the embedded one keeps its data; default: the system's folder for temporary files
	BinDir      string       // PostgreSQL's programs for the embedded one; default: looked for
	Rounds      int          // how often each has its turn
	Seed        uint64       // of all that is drawn; default 1
	Quick       bool         // smaller defaults: shows that all works, measures little
	Progress    func(string) // told what is being done; may be nil

	// Of comparisons.
	Contenders  []string // default: all
	Workloads   []string // default: all
	Old         string   // another version's binary, which takes its turn too
	Preload     []int    // how many rows visitors has before; each is measured; default 0
	Visits      int      // of a run in this process
	Clients     int      // who visit at once in this process
	HTTP        bool     // through processes that serve HTTP
	Connections int      // of wrk, an even number
	Duration    time.Duration

	// Of reports.
	Parts   []string // default: all
	Data    string   // a data directory that is kept: what was generated there is asked; default: none
	Rate    int      // visits a second that are counted meanwhile
	Runs    int      // of each report
	Samples int      // ranges of days whose uniques are compared
	Log     int      // visits of the log that is imported
}

// Completed has the defaults in place of what was not given.
func (o Options) Completed() Options {
	for value, usual := range map[*int][2]int{
		&o.Rounds: {5, 1}, &o.Visits: {100_000, 10_000}, &o.Clients: {2000, 2000}, &o.Connections: {256, 256},
		&o.Rate: {2000, 2000}, &o.Runs: {200, 3}, &o.Samples: {1000, 50}, &o.Log: {4_000_000, 10_000},
	} {
		if *value == 0 {
			*value = usual[0]
			if o.Quick {
				*value = usual[1]
			}
		}
	}
	if o.Duration == 0 {
		o.Duration = 10 * time.Second
		if o.Quick {
			o.Duration = time.Second
		}
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if len(o.Preload) == 0 {
		o.Preload = []int{0}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// Command is the command line that repeats a benchmark: what was given of the flags.
func (o Options) Command(name string) string {
	words := []string{name}
	add := func(flag string, given bool, value any) {
		if given {
			words = append(words, strings.TrimSpace(fmt.Sprintf("--%s %v", flag, value)))
		}
	}
	add("http", o.HTTP, "")
	add("quick", o.Quick, "")
	add("database-url", o.DatabaseURL != "", "…") // it may hold a password
	add("dir", o.Dir != "", o.Dir)
	add("data", o.Data != "", o.Data)
	add("old", o.Old != "", o.Old)
	add("contenders", len(o.Contenders) > 0, strings.Join(o.Contenders, ","))
	add("workloads", len(o.Workloads) > 0, strings.Join(o.Workloads, ","))
	add("preload", len(o.Preload) > 0, strings.Trim(strings.ReplaceAll(fmt.Sprint(o.Preload), " ", ","), "[]"))
	add("visits", o.Visits > 0, o.Visits)
	add("clients", o.Clients > 0, o.Clients)
	add("connections", o.Connections > 0, o.Connections)
	add("duration", o.Duration > 0, o.Duration)
	add("rounds", o.Rounds > 0, o.Rounds)
	add("parts", len(o.Parts) > 0, strings.Join(o.Parts, ","))
	add("rate", o.Rate > 0, o.Rate)
	add("runs", o.Runs > 0, o.Runs)
	add("samples", o.Samples > 0, o.Samples)
	add("log-visits", o.Log > 0, o.Log)
	add("seed", o.Seed > 0, o.Seed)
	return strings.Join(words, " ")
}
