package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"footfall/bench"
)

// benchCompareCmd compares ways of counting, in this process or over HTTP. What is not given is nil, or empty: the two have
// different defaults.
type benchCompareCmd struct {
	benchServer
	HTML        string         `name:"html" placeholder:"FILE" help:"Write the figures to this file as a page with plots, too. It needs nothing else to be looked at."`
	Contenders  []string       `placeholder:"NAME,…" help:"Which ways of counting: ${contenders}; with --http constant, too. Default: all."`
	Workloads   []string       `placeholder:"NAME,…" help:"Which workloads: ${workloads}. Default: all."`
	Rounds      *int           `placeholder:"N" help:"How often each has its turn at each workload, on a new database every time; medians are shown. Default: 5, with --http 3."`
	Seed        uint64         `default:"1" help:"Of the workloads: the same seed makes the same visits. Default: 1."`
	Quick       bool           `help:"Every contender on every workload once, and briefly: shows that all is counted right, measures little."`
	Visits      *int           `placeholder:"N" help:"Visits of each run. Those who count one visit a transaction get the first tenth of them, at least 1500. Not with --http. Default: 100000."`
	Clients     *int           `placeholder:"N" help:"Who visit at once; 2000 fill the batches. Not with --http. Default: 2000."`
	HTTP        bool           `name:"http" help:"Compare processes that serve HTTP, the service among them, loaded by wrk, which must be there."`
	Connections *int           `placeholder:"N" help:"Of wrk, with --http; an even number. Default: 256."`
	Duration    *time.Duration `placeholder:"TIME" help:"Of each run of wrk, with --http; whole seconds. Default: 10s."`
}

func (b *benchCompareCmd) check(globals) []error {
	known := bench.ContenderNames()
	if b.HTTP {
		known = bench.HTTPContenderNames()
	}
	faults := append(unknown("contenders", b.Contenders, known), unknown("workloads", b.Workloads, bench.WorkloadNames())...)
	if b.Seed == 0 {
		faults = append(faults, errors.New("seed: 0 will not do: give 1 or more"))
	}
	for _, f := range []struct {
		flag string
		n    *int
	}{{"rounds", b.Rounds}, {"visits", b.Visits}, {"clients", b.Clients}, {"connections", b.Connections}} {
		if f.n != nil {
			faults = append(faults, positive(f.flag, *f.n))
		}
	}
	if b.Visits != nil && *b.Visits > bench.MostVisits {
		faults = append(faults, fmt.Errorf("visits: %d will not do: give %d at most", *b.Visits, bench.MostVisits))
	}
	if b.Connections != nil && *b.Connections%2 != 0 {
		faults = append(faults, fmt.Errorf("connections: %d will not do: give an even number", *b.Connections))
	}
	if d := b.Duration; d != nil && (*d < time.Second || *d%time.Second != 0) {
		faults = append(faults, fmt.Errorf("duration: %s will not do: give whole seconds, like 10s", *d))
	}
	return present(append(faults, b.misplaced()...))
}

// misplaced are faults of flags that would be ignored.
func (b *benchCompareCmd) misplaced() (faults []error) {
	only := func(flag string, given, here bool, where string) {
		if given && !here {
			faults = append(faults, fmt.Errorf("%s: it means nothing %s: leave it out", flag, where))
		}
	}
	only("visits", b.Visits != nil, !b.HTTP, "with --http")
	only("clients", b.Clients != nil, !b.HTTP, "with --http")
	only("connections", b.Connections != nil, b.HTTP, "without --http")
	only("duration", b.Duration != nil, b.HTTP, "without --http")
	only("visits", b.Visits != nil, !b.Quick, "with --quick, which sets it")
	only("rounds", b.Rounds != nil, !b.Quick, "with --quick, which sets it")
	only("duration", b.Duration != nil, !b.Quick, "with --quick, which sets it")
	return faults
}

// unknown is a fault for each name that nothing has.
func unknown(flag string, names, known []string) (faults []error) {
	for _, name := range names {
		if !slices.Contains(known, name) {
			faults = append(faults, fmt.Errorf("%s: there is no %q: choose from %s", flag, name, strings.Join(known, ",")))
		}
	}
	return faults
}

func (b *benchCompareCmd) run(ctx context.Context, p *program) error {
	report, err := b.compare(ctx, p)
	return b.show(p, report, err)
}

// show fails as the comparison did; where it was that what was counted is not true, after it has shown the figures.
func (b *benchCompareCmd) show(p *program, report *bench.Comparison, err error) error {
	if err != nil && !errors.Is(err, bench.ErrUntrue) {
		return err
	}
	shown := []error{b.publish(report, p)}
	if b.HTML != "" {
		var page bytes.Buffer
		shown = append(shown, report.WriteHTML(&page), os.WriteFile(b.HTML, page.Bytes(), 0o644)) //nolint:gosec // figures, for everybody
	}
	if b.JSON == "" && b.HTML == "" {
		p.progress("With --json FILE the figures are written to a file, with --html FILE as a page with plots.")
	}
	return errors.Join(append(shown, err)...)
}

func (b *benchCompareCmd) compare(ctx context.Context, p *program) (*bench.Comparison, error) {
	if b.HTTP {
		return bench.HTTP(ctx, bench.HTTPOptions{
			DatabaseURL: p.DatabaseURL, Dir: b.Dir, BinDir: p.PostgresBin, Contenders: b.Contenders, Workloads: b.Workloads,
			Connections: given(b.Connections), Duration: given(b.Duration),
			Rounds: given(b.Rounds), Seed: b.Seed, Quick: b.Quick, Progress: p.progress,
		})
	}
	return bench.Compare(ctx, bench.CompareOptions{
		DatabaseURL: p.DatabaseURL, Dir: b.Dir, BinDir: p.PostgresBin, Contenders: b.Contenders, Workloads: b.Workloads,
		Visits: given(b.Visits), Clients: given(b.Clients),
		Rounds: given(b.Rounds), Seed: b.Seed, Quick: b.Quick, Progress: p.progress,
	})
}

// given is a flag's value, or the zero value of one that was not given.
func given[T any](flag *T) (value T) {
	if flag != nil {
		value = *flag
	}
	return value
}
