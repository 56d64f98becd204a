package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"footfall/bench"
)

// benchReportsCmd measures reading. What is not given is nil.
type benchReportsCmd struct {
	benchServer
	Parts       []string       `placeholder:"NAME,…" help:"What to measure: uniques (of targets, compared with a plain count), sketches (their size, and how far uniques of groups are from the truth), answers (how long reports take while visits are counted), counting (how much reports slow it down), drop (how long visits wait while a day is dropped). Default: all."`
	Visits      *int           `placeholder:"N" help:"Visits that are generated where there are none: see bench generate. Default: 10000000."`
	Rate        int            `default:"2000" help:"Visits a second that are counted meanwhile. Default: 2000."`
	Runs        *int           `placeholder:"N" help:"How often each report is asked for. Default: 200."`
	Samples     *int           `placeholder:"N" help:"Ranges of days at random whose uniques are compared. Default: 1000."`
	Rounds      *int           `placeholder:"N" help:"How often counting is measured with and without reports, and how many days are dropped. Default: 5."`
	Duration    *time.Duration `placeholder:"TIME" help:"Of each of these; whole seconds. Default: 10s."`
	Connections int            `default:"64" help:"Of wrk; an even number. Default: 64."`
	Seed        uint64         `default:"1" help:"Of what is asked at random. Default: 1."`
	Quick       bool           `help:"50,000 visits and little of everything: shows that all works, measures little."`
}

func (b *benchReportsCmd) check(globals) []error {
	faults := append(unknown("parts", b.Parts, bench.ReportsParts()), positive("rate", b.Rate), positive("connections", b.Connections))
	if b.Connections%2 != 0 {
		faults = append(faults, fmt.Errorf("connections: %d will not do: give an even number", b.Connections))
	}
	set := map[string]*int{"runs": b.Runs, "samples": b.Samples, "rounds": b.Rounds, "visits": b.Visits}
	for _, flag := range []string{"visits", "runs", "samples", "rounds"} {
		if set[flag] != nil {
			faults = append(faults, positive(flag, *set[flag]))
			if b.Quick {
				faults = append(faults, fmt.Errorf("%s: it means nothing with --quick, which sets it: leave it out", flag))
			}
		}
	}
	if d := b.Duration; d != nil {
		if *d < time.Second || *d%time.Second != 0 {
			faults = append(faults, fmt.Errorf("duration: %s will not do: give whole seconds, like 10s", *d))
		}
		if b.Quick {
			faults = append(faults, errors.New("duration: it means nothing with --quick, which sets it: leave it out"))
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
		Made: bench.GenerateOptions{Visits: given(b.Visits)}, Runs: given(b.Runs), Samples: given(b.Samples), Rounds: given(b.Rounds),
		Duration: given(b.Duration), Connections: b.Connections, Seed: b.Seed, Quick: b.Quick, Progress: p.progress,
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
