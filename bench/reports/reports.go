// Package reports measures all but the counting of visits itself: whether uniques are true, how
// long reports take while visits are counted, and how visits fare beside dashboards and verify.
package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"footfall/bench"
	"footfall/bench/generate"
	"footfall/bench/load"
	"footfall/bench/tables"
	"footfall/db/embedded"
	"footfall/retention"
)

// Options of a measurement of reports, as flags. A zero field means its default.
type Options struct {
	bench.Options
	Data    string   `placeholder:"DIR" help:"Folder of an embedded PostgreSQL that is kept: what bench generate made there is asked. One in which others have counted is refused. Default: none."`
	Parts   []string `placeholder:"NAME,…" help:"What to measure: uniques (of targets, compared with a plain count), answers (how long reports and pages of the dashboard take while visits are counted), dashboards (how visits fare beside 20 that are open), verify (how they fare while all numbers are recomputed), people (how long it takes to look up for whom ids stand, and to load these). Default: all."`
	Visits  int      `placeholder:"N" help:"Visits that are generated where there are none: see bench generate. Default: 10000000."`
	Rate    int      `placeholder:"N" help:"Visits a second that are counted meanwhile. Default: 2000."`
	People  int      `placeholder:"N" help:"Ids of people that are loaded where there are none. Default: 1000000."`
	Runs    int      `placeholder:"N" help:"How often each report is asked for. Default: 200."`
	Samples int      `placeholder:"N" help:"Ranges of days at random whose uniques are compared. Default: 1000."`
}

// Completed has the defaults in place of what was not given.
func (o Options) Completed() Options {
	o.Rate = bench.Usual(o.Options, o.Rate, 2000, 2000)
	o.People = bench.Usual(o.Options, o.People, 1_000_000, 5000)
	o.Runs = bench.Usual(o.Options, o.Runs, 200, 3)
	o.Samples = bench.Usual(o.Options, o.Samples, 1000, 50)
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
}

// parts in the order in which they are measured: that one first which wants the tables as they were
// counted.
var parts = []part{
	{"uniques", (*asking).compareUniques},
	{"answers", (*asking).measureAnswers},
	{"dashboards", (*asking).measureDashboards},
	{"verify", (*asking).measureVerify},
	{"people", (*asking).measurePeople},
}

// Check tells what is wrong with the options. What is not given is right.
func (o Options) Check() (faults []error) {
	o = o.Completed()
	faults = append(o.CheckService(), o.set().Check()...)
	faults = append(faults, bench.BelowOne(map[string]int{"rate": o.Rate, "people": o.People, "runs": o.Runs, "samples": o.Samples})...)
	if _, err := chosen(o); err != nil {
		faults = append(faults, err)
	}
	return faults
}

func chosen(o Options) ([]part, error) {
	return bench.Named("parts", parts, func(p part) string { return p.name }, o.Parts)
}

// Report is what Run measured.
type Report struct {
	Machine string   `json:"machine"`
	Command string   `json:"command"` // that repeats it
	Rate    int      `json:"rate"`    // visits a second that were to be counted meanwhile
	Notes   []string `json:"notes"`
	Rows    []Row    `json:"rows"`
	Wrong   []string `json:"wrong,omitempty"` // what makes the command fail
}

// Row is how long some answers took. Those of visits are from when they were due; none was refused,
// which would have been an error.
type Row struct {
	What string `json:"what"`
	load.Measure
}

func (r *Report) add(what string, m load.Measure) { r.Rows = append(r.Rows, Row{what, m}) }

func (r *Report) note(format string, of ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, of...))
}

// asking is a run of Run. One goroutine uses it, but for what a part starts and ends.
type asking struct {
	Options
	made    generate.Set
	address string   // of the database
	secret  []string // names the service the secret of its ids, if some are asked for
	world   *world
	report  *Report
}

// Run measures reading on tables that package generate filled, and fills them first where nobody
// has. An error that wraps bench.ErrUntrue comes with a report.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	r := &asking{Options: o.Completed(), made: o.set().Completed(), report: &Report{Command: o.Command}}
	r.report.Rate = r.Rate
	if o.Data != "" {
		var release func() error
		if o.DatabaseURL, release, err = embedded.Use(ctx, embedded.Config{Dir: o.Data, BinDir: o.PostgresBin}); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	server, err := bench.OpenServer(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if r.report.Machine, err = server.Machine(ctx); err != nil {
		return nil, err
	}
	if r.address = o.DatabaseURL; o.Data == "" {
		if r.address, err = server.Database(ctx, ""); err != nil {
			return nil, err
		}
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	parts, err := chosen(r.Options)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		r.Doing("measuring %s", part.name)
		if err := part.measure(r, ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return r.report, r.report.untrue()
}

// prepare generates an app where there is none, and closes the days that are over, as the service
// does each night. It refuses tables in which somebody else has counted: the benchmark adds visits
// to them.
func (r *asking) prepare(ctx context.Context) error {
	d, err := bench.Migrated(ctx, r.address)
	if err != nil {
		return err
	}
	defer d.Close()
	return bench.Ask(ctx, r.address, func(q *tables.Queries) error {
		apps, err := q.AppsThatCounted(ctx)
		switch {
		case err != nil:
			return err
		case len(apps) == 0:
			if err := generate.Run(ctx, bench.Options{DatabaseURL: r.address, Progress: r.Progress}, r.made); err != nil {
				return err
			}
		case len(apps) > 1 || apps[0] != r.made.App:
			return fmt.Errorf("data: the app %s has counted there, and this benchmark adds visits of its own: choose a folder that is new, or that bench generate filled", apps[0])
		}
		began := time.Now()
		done, err := retention.New(d, retention.Options{}).Run(ctx)
		if err != nil {
			return err
		}
		r.Doing("%d days were closed in %.0f s", len(done.Closed), time.Since(began).Seconds())
		if err := q.Vacuum(ctx); err != nil {
			return err
		}
		r.world, err = newWorld(ctx, q, r.made.App)
		return err
	})
}

// untrue is an error that wraps bench.ErrUntrue where something was wrong; else nil.
func (r *Report) untrue() error {
	if len(r.Wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", bench.ErrUntrue, strings.Join(r.Wrong[:min(10, len(r.Wrong))], "\n"))
}

// Print writes the report for people at a terminal.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\nvisits came at %d a second\n", r.Machine, r.Rate)
	for _, note := range r.Notes {
		fmt.Fprintln(w, note)
	}
	t := bench.Table{{"what", "times", "a second", "p50 ms", "p99 ms", "max ms"}}
	for _, row := range r.Rows {
		t = append(t, []string{row.What, strconv.Itoa(row.Requests), bench.OrNone(row.PerSecond, bench.Grouped), bench.Short(row.P50Ms), bench.Short(row.P99Ms), bench.Short(row.MaxMs)})
	}
	fmt.Fprintf(w, "\n%s\nRepeat it: %s\n", t, r.Command)
}
