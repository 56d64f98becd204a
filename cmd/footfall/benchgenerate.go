package main

import (
	"context"
	"fmt"
	"time"

	"footfall/bench"
)

// benchGenerateCmd fills tables, as nothing else here does to the data of a service: those that --data or --database-url name.
type benchGenerateCmd struct {
	App      string `default:"generated" help:"The app that is made; there must be none of this name. It counts in UTC. Default: generated."`
	Visits   int    `default:"10000000" help:"Visits in all. Default: 10000000."`
	Days     int    `default:"60" help:"Days over which they came. Default: 60."`
	Until    string `placeholder:"DAY" help:"The last day, like 2019-06-29. Default: yesterday."`
	Pages    int    `default:"100000" help:"Pages, few of which are visited often. Default: 100000."`
	Visitors int    `default:"1000000" help:"Visitors, few of whom come often. Default: 1000000."`
	Sites    int    `default:"20" help:"Sites, few of which are large. Default: 20."`
	Seed     uint64 `default:"1" help:"The same seed makes the same visits. Default: 1."`
	JSON     string `name:"json" placeholder:"FILE" help:"Write what was made to this file, too."`
}

func (b *benchGenerateCmd) until() (time.Time, error) {
	if b.Until == "" {
		return time.Time{}, nil
	}
	day, err := time.Parse(time.DateOnly, b.Until)
	if err != nil {
		return day, fmt.Errorf("until: %q is no day: write one like 2019-06-29", b.Until)
	}
	return day, nil
}

func (b *benchGenerateCmd) check(g globals) []error {
	_, err := b.until()
	faults := append(g.checkDatabase(), err, positive("visits", b.Visits), positive("days", b.Days), positive("pages", b.Pages),
		positive("visitors", b.Visitors), positive("sites", b.Sites))
	if b.Seed == 0 {
		faults = append(faults, fmt.Errorf("seed: 0 will not do: give 1 or more"))
	}
	return present(faults)
}

func (b *benchGenerateCmd) run(ctx context.Context, p *program) error {
	until, err := b.until()
	if err != nil {
		return err
	}
	return p.withURL(ctx, func(url string) error {
		report, err := bench.Generate(ctx, bench.GenerateOptions{
			DatabaseURL: url, Migrate: p.embedded(), App: b.App, Visits: b.Visits, Days: b.Days, Until: until, Pages: b.Pages,
			Visitors: b.Visitors, Sites: b.Sites, Seed: b.Seed, Progress: p.progress,
		})
		if err != nil {
			return err
		}
		return benchServer{JSON: b.JSON}.publish(report, p)
	})
}
