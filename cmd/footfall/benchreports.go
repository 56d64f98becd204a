package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"footfall/bench"
)

// benchReportsCmd measures reading. What is not given is nil.
type benchReportsCmd struct {
	benchServer
	Parts   []string `placeholder:"NAME,…" help:"What to measure: uniques (of targets, compared with a plain count), answers (how long reports take while visits are counted). Default: both."`
	Visits  *int     `placeholder:"N" help:"Visits that are generated where there are none: see bench generate. Default: 10000000."`
	Rate    int      `default:"2000" help:"Visits a second that are counted meanwhile. Default: 2000."`
	Runs    *int     `placeholder:"N" help:"How often each report is asked for. Default: 200."`
	Samples *int     `placeholder:"N" help:"Ranges of days at random whose uniques are compared. Default: 1000."`
	Seed    uint64   `default:"1" help:"Of what is asked at random. Default: 1."`
	Quick   bool     `help:"50,000 visits and little of everything: shows that all works, measures little."`
}

func (b *benchReportsCmd) check(globals) []error {
	faults := append(unknown("parts", b.Parts, bench.ReportsParts()), positive("rate", b.Rate))
	set := map[string]*int{"runs": b.Runs, "samples": b.Samples, "visits": b.Visits}
	for _, flag := range []string{"visits", "runs", "samples"} {
		if set[flag] != nil {
			faults = append(faults, positive(flag, *set[flag]))
			if b.Quick {
				faults = append(faults, fmt.Errorf("%s: it means nothing with --quick, which sets it: leave it out", flag))
			}
		}
	}
	if b.Seed == 0 {
		faults = append(faults, errors.New("seed: 0 will not do: give 1 or more"))
	}
	return present(faults)
}

// run keeps what it generates where a folder is named with --data; that of the service is never used unasked. It fails where uniques
// are not what they should be, after it has shown the figures.
func (b *benchReportsCmd) run(ctx context.Context, p *program) error {
	o := bench.ReportsOptions{
		DatabaseURL: p.DatabaseURL, Dir: b.Dir, BinDir: p.PostgresBin, Parts: slices.Clone(b.Parts), Rate: b.Rate,
		Made: bench.GenerateOptions{Visits: given(b.Visits)}, Runs: given(b.Runs), Samples: given(b.Samples),
		Seed: b.Seed, Quick: b.Quick, Progress: p.progress,
	}
	if p.embedded() && p.Data != defaultData() {
		o.Data = p.Data
	}
	report, err := bench.Reports(ctx, o)
	if err != nil && !errors.Is(err, bench.ErrUntrue) {
		return err
	}
	return errors.Join(b.publish(report, p), err)
}
