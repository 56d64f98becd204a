package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"footfall/bench"
)

// benchEdgeCmd measures the service's edge. What is not given is nil.
type benchEdgeCmd struct {
	benchServer
	Parts       []string       `placeholder:"NAME,…" help:"What to measure: keys (what keys and limits cost), slow (what slow clients cost the others). Default: both."`
	Connections int            `default:"256" help:"Of wrk; an even number. Default: 256."`
	Slow        int            `default:"2000" help:"Slow clients. Default: 2000."`
	Rate        int            `default:"2000" help:"Visits a second that are sent beside them; far fewer than the service can answer. Default: 2000."`
	Rounds      *int           `placeholder:"N" help:"How often each way has its turn, on a new database every time; medians are shown. Default: 5."`
	Duration    *time.Duration `placeholder:"TIME" help:"Of each turn; whole seconds. Default: 10s."`
	Seed        uint64         `default:"1" help:"Of the workloads: the same seed makes the same visits. Default: 1."`
	Quick       bool           `help:"Every way once, for a second: shows that all is counted right, measures little."`
}

func (b *benchEdgeCmd) check(globals) []error {
	faults := append(unknown("parts", b.Parts, bench.EdgeParts()),
		positive("connections", b.Connections), positive("slow", b.Slow), positive("rate", b.Rate))
	if b.Connections%2 != 0 {
		faults = append(faults, fmt.Errorf("connections: %d will not do: give an even number", b.Connections))
	}
	if b.Rounds != nil {
		faults = append(faults, positive("rounds", *b.Rounds))
	}
	if d := b.Duration; d != nil && (*d < time.Second || *d%time.Second != 0) {
		faults = append(faults, fmt.Errorf("duration: %s will not do: give whole seconds, like 10s", *d))
	}
	if b.Seed == 0 {
		faults = append(faults, errors.New("seed: 0 will not do: give 1 or more"))
	}
	if b.Quick && b.Rounds != nil {
		faults = append(faults, errors.New("rounds: it means nothing with --quick, which sets it: leave it out"))
	}
	if b.Quick && b.Duration != nil {
		faults = append(faults, errors.New("duration: it means nothing with --quick, which sets it: leave it out"))
	}
	return present(faults)
}

// run fails where what was counted is not true, after it has shown the figures.
func (b *benchEdgeCmd) run(ctx context.Context, p *program) error {
	report, err := bench.Edge(ctx, bench.EdgeOptions{
		DatabaseURL: p.DatabaseURL, Dir: b.Dir, BinDir: p.PostgresBin, Parts: b.Parts,
		Connections: b.Connections, Slow: b.Slow, Rate: b.Rate,
		Rounds: given(b.Rounds), Duration: given(b.Duration), Seed: b.Seed, Quick: b.Quick, Progress: p.progress,
	})
	if err != nil && !errors.Is(err, bench.ErrUntrue) {
		return err
	}
	return errors.Join(b.publish(report, p), err)
}
