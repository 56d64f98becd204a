// Package reports measures all but the counting of visits itself: whether uniques are true, how
// long reports take while visits are counted, and how logs are imported.
package reports

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"footfall/bench"
	"footfall/bench/generate"
	"footfall/counter"
	"footfall/db/embedded"
)

// Options of a measurement of reports, as flags. A zero field means its default.
type Options struct {
	bench.Options
	Data    string   `placeholder:"DIR" help:"Folder of an embedded PostgreSQL that is kept: what bench generate made there is asked. Default: none."`
	Parts   []string `placeholder:"NAME,…" help:"What to measure: uniques (of targets, compared with a plain count), answers (how long reports and pages of the dashboard take while visits are counted), dashboards (how visits fare beside 20 that are open), embedded, proving, imports. Default: all."`
	Visits  int      `placeholder:"N" help:"Visits that are generated where there are none: see bench generate. Default: 10000000."`
	Rate    int      `placeholder:"N" help:"Visits a second that are counted meanwhile. Default: 2000."`
	Runs    int      `placeholder:"N" help:"How often each report is asked for. Default: 200."`
	Samples int      `placeholder:"N" help:"Ranges of days at random whose uniques are compared. Default: 1000."`
	Log     int      `name:"log-visits" placeholder:"N" help:"Visits of the log that is imported. Default: 4000000."`
}

// Completed has the defaults in place of what was not given.
func (o Options) Completed() Options {
	o.Options = o.Options.Completed()
	o.Rate = bench.Usual(o.Options, o.Rate, 2000, 2000)
	o.Runs = bench.Usual(o.Options, o.Runs, 200, 3)
	o.Samples = bench.Usual(o.Options, o.Samples, 1000, 50)
	o.Log = bench.Usual(o.Options, o.Log, 4_000_000, 10_000)
	return o
}

// set is what is generated.
func (o Options) set() generate.Set {
	if o.Quick && o.Visits == 0 {
		return generate.Set{Visits: 50_000, Pages: 2000, Visitors: 10_000, Sites: 5}
	}
	return generate.Set{Visits: o.Visits}
}

type part struct {
	name    string
	measure func(*asking, context.Context) error
	fresh   bool // it makes tables of its own
}

// parts in the order in which they are measured: those first that want the tables as they were
// generated.
var parts = []part{
	{"uniques", (*asking).compareUniques, false},
	{"answers", (*asking).measureAnswers, false},
	{"dashboards", (*asking).measureDashboards, false},
	{"embedded", (*asking).measureEmbedded, false},
	{"proving", (*asking).measureProving, false},
	{"imports", (*asking).measureImports, true},
}

// Check tells what is wrong with the options of a measurement of reports. What is not given is
// right.
func Check(o Options) (faults []error) {
	o = o.Completed()
	faults = append(o.Options.Check(), o.set().Check()...)
	for flag, n := range map[string]int{"rate": o.Rate, "runs": o.Runs, "samples": o.Samples, "log-visits": o.Log} {
		if n < 1 {
			faults = append(faults, fmt.Errorf("%s: %d will not do: give 1 or more", flag, n))
		}
	}
	for _, name := range o.Parts {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			faults = append(faults, fmt.Errorf("parts: there is no %q: choose from uniques,answers,dashboards,embedded,proving,imports", name))
		}
	}
	return faults
}

// asking is a run of Run. One goroutine uses it, but for what a part starts and ends.
type asking struct {
	Options
	made    generate.Set
	server  *bench.Server
	address string // of the database
	world   *world
	report  *Report
}

// Run measures reading on tables that package generate made, and makes them first where there are
// none: whether uniques are true, and how long reports take while visits are counted. An error that
// wraps bench.ErrUntrue comes with a report.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	r := &asking{Options: o.Completed(), made: o.set().Completed(), report: &Report{Command: o.Command, Load: loadAverage()}}
	r.report.Rate, r.report.Seed = r.Rate, r.Seed
	closeAll, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	if r.report.Machine, err = r.server.Machine(ctx); err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return len(o.Parts) > 0 && !slices.Contains(o.Parts, p.name) })
	if slices.ContainsFunc(chosen, func(p part) bool { return !p.fresh }) {
		if err := r.prepare(ctx); err != nil {
			return nil, err
		}
	}
	for _, part := range chosen {
		r.Progress("measuring " + part.name)
		if err := part.measure(r, ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	r.report.LoadAfter = loadAverage()
	return r.report, r.report.untrue()
}

// open finds the database: in the directory that is kept, or a new one.
func (r *asking) open(ctx context.Context) (closeAll func() error, err error) {
	if r.Data == "" {
		if r.server, err = bench.OpenServer(ctx, r.DatabaseURL, r.Dir, r.PostgresBin); err != nil {
			return nil, err
		}
		address, drop, err := r.server.Database(ctx, "")
		if err != nil {
			return nil, errors.Join(err, r.server.Close())
		}
		r.address = address
		return func() error { return errors.Join(drop(), r.server.Close()) }, nil
	}
	address, release, err := embedded.Use(ctx, embedded.Config{Dir: r.Data, BinDir: r.PostgresBin})
	if err != nil {
		return nil, err
	}
	if r.server, err = bench.OpenServer(ctx, address, "", ""); err != nil {
		return nil, errors.Join(err, release())
	}
	r.address = address
	return func() error { return errors.Join(r.server.Close(), release()) }, nil
}

// prepare generates an app where there is none, and closes the days that are over. It refuses
// tables in which somebody else has counted: the benchmark adds visits to them.
func (r *asking) prepare(ctx context.Context) error {
	d, err := bench.Migrated(ctx, r.address)
	if err != nil {
		return err
	}
	defer d.Close()
	apps, err := r.appsThatCounted(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(apps) == 0:
		if _, err := generate.Run(ctx, bench.Options{DatabaseURL: r.address, Progress: r.Progress}, r.made); err != nil {
			return err
		}
	case len(apps) > 1 || apps[0] != r.made.App:
		return fmt.Errorf("data: the app %s has counted there, and this benchmark adds visits of its own: choose a folder that is new, or that bench generate filled", apps[0])
	}
	if err := counter.NewAdmin(d, nil).SetApp(ctx, r.made.App, generate.KeepForever()); err != nil {
		return err
	}
	if r.world, err = r.newWorld(ctx); err != nil {
		return err
	}
	return r.closeDays(ctx)
}
