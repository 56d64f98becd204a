package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"footfall/bench"
	"footfall/bench/generate"
)

// benchGenerateCmd fills tables, as nothing else here does to the data of a service: those that
// --data or --database-url name.
type benchGenerateCmd struct {
	App      string `default:"generated"`
	Visits   int    `default:"10000000"`
	Days     int    `default:"60"`
	Until    string `placeholder:"DAY"`
	Pages    int    `default:"100000"`
	Visitors int    `default:"1000000"`
	Sites    int    `default:"20"`
	Seed     uint64 `default:"1"`
	JSON     string `name:"json" placeholder:"FILE"`
	Log      string `placeholder:"FILE"`
}

func (b *benchGenerateCmd) set() (generate.Set, error) {
	var err error
	set := generate.Set{App: b.App, Visits: b.Visits, Days: b.Days, Pages: b.Pages, Visitors: b.Visitors, Sites: b.Sites, Seed: b.Seed}
	if b.Until != "" {
		if set.Until, err = time.Parse(time.DateOnly, b.Until); err != nil {
			err = fmt.Errorf("until: %q is not a day: write one like 2019-06-29", b.Until)
		}
	}
	return set, err
}

func (b *benchGenerateCmd) check(g globals) []error {
	set, err := b.set()
	faults := append(g.checkDatabase(), set.Check()...)
	if err != nil {
		faults = append(faults, err)
	}
	return faults
}

func (b *benchGenerateCmd) run(ctx context.Context, p *program) error {
	set, err := b.set()
	if err != nil {
		return err
	}
	if b.Log != "" {
		return writeLog(b.Log, set)
	}
	return p.makingData().withURL(ctx, func(url string) error {
		if p.embedded() { // it may have been made just now
			d, err := bench.Migrated(ctx, url)
			if err != nil {
				return err
			}
			d.Close()
		}
		report, err := generate.Run(ctx, bench.Options{DatabaseURL: url, Progress: p.progress}, set)
		return publish(p, b.JSON, report, err)
	})
}

// writeLog writes the visits as an access log, which takes longer to write than other files.
func writeLog(path string, set generate.Set) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(generate.WriteLog(file, set), file.Close())
}
