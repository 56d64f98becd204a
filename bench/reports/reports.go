// Package reports measures all but the counting of visits itself: whether uniques are true, how
// long reports take while visits are counted, and how visits fare beside dashboards and verify.
package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"footfall/admin"
	"footfall/bench"
	"footfall/bench/generate"
	"footfall/bench/tables"
	"footfall/db/embedded"
	"footfall/retention"
)

// Options of a measurement of reports, as flags. A zero field means its default.
type Options struct {
	bench.Options
	Data    string   `placeholder:"DIR" help:"Folder of an embedded PostgreSQL that is kept: what bench generate made there is asked. One in which others have counted is refused. Default: none."`
	Parts   []string `placeholder:"NAME,…" help:"What to measure: uniques (of targets, compared with a plain count), answers (how long reports and pages of the dashboard take while visits are counted), dashboards (how visits fare beside 20 that are open), verify (how they fare while all numbers are recomputed). Default: all."`
	Visits  int      `placeholder:"N" help:"Visits that are generated where there are none: see bench generate. Default: 10000000."`
	Rate    int      `placeholder:"N" help:"Visits a second that are counted meanwhile. Default: 2000."`
	Runs    int      `placeholder:"N" help:"How often each report is asked for. Default: 200."`
	Samples int      `placeholder:"N" help:"Ranges of days at random whose uniques are compared. Default: 1000."`
}

// Completed has the defaults in place of what was not given.
func (o Options) Completed() Options {
	o.Options = o.Options.Completed()
	o.Rate = bench.Usual(o.Options, o.Rate, 2000, 2000)
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

// parts in the order in which they are measured: that one first which wants the tables as they were
// generated.
var parts = []struct {
	name    string
	measure func(*asking, context.Context) error
}{
	{"uniques", (*asking).compareUniques},
	{"answers", (*asking).measureAnswers},
	{"dashboards", (*asking).measureDashboards},
	{"verify", (*asking).measureVerify},
}

// Check tells what is wrong with the options. What is not given is right.
func Check(o Options) (faults []error) {
	o = o.Completed()
	faults = append(o.CheckService(), o.set().Check()...)
	for flag, n := range map[string]int{"rate": o.Rate, "runs": o.Runs, "samples": o.Samples} {
		if n < 1 {
			faults = append(faults, fmt.Errorf("%s: %d will not do: give 1 or more", flag, n))
		}
	}
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	for _, name := range o.Parts {
		if !slices.Contains(names, name) {
			faults = append(faults, fmt.Errorf("parts: there is no %q: choose from %s", name, strings.Join(names, ",")))
		}
	}
	return faults
}

// Report is what Run measured; what was not asked for is nil.
type Report struct {
	Machine    bench.Machine     `json:"machine"`
	Command    string            `json:"command"` // that repeats it
	Load       string            `json:"load"`    // of the machine before and after: what else it was busy with, too
	LoadAfter  string            `json:"loadAfter"`
	Rate       int               `json:"rate"` // visits a second that were to be counted meanwhile
	Uniques    *UniquesFigures   `json:"uniques,omitempty"`
	Answers    *AnswerFigures    `json:"answers,omitempty"`
	Dashboards *DashboardFigures `json:"dashboards,omitempty"`
	Verify     *VerifyFigures    `json:"verify,omitempty"`
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
// none. An error that wraps bench.ErrUntrue comes with a report.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	r := &asking{Options: o.Completed(), made: o.set().Completed(), report: &Report{Command: o.Command, Load: loadAverage()}}
	r.report.Rate = r.Rate
	closeAll, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	if r.report.Machine, err = r.server.Machine(ctx); err != nil {
		return nil, err
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	for _, part := range parts {
		if len(o.Parts) > 0 && !slices.Contains(o.Parts, part.name) {
			continue
		}
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
		if r.server, err = bench.OpenServer(ctx, r.Options.Options); err != nil {
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
	if r.server, err = bench.OpenServer(ctx, bench.Options{DatabaseURL: address}); err != nil {
		return nil, errors.Join(err, release())
	}
	r.address = address
	return func() error { return errors.Join(r.server.Close(), release()) }, nil
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
	return r.asOwner(ctx, func(q *tables.Queries) error {
		apps, err := q.AppsThatCounted(ctx)
		switch {
		case err != nil:
			return err
		case len(apps) == 0:
			if _, err := generate.Run(ctx, bench.Options{DatabaseURL: r.address, Progress: r.Progress}, r.made); err != nil {
				return err
			}
		case len(apps) > 1 || apps[0] != r.made.App:
			return fmt.Errorf("data: the app %s has counted there, and this benchmark adds visits of its own: choose a folder that is new, or that bench generate filled", apps[0])
		}
		if err := admin.New(d, nil).SetApp(ctx, r.made.App, generate.KeepForever()); err != nil {
			return err
		}
		began := time.Now()
		done, err := retention.New(d, retention.Options{}).Run(ctx)
		if err != nil {
			return err
		}
		r.Progress(fmt.Sprintf("%d days were closed in %.0f s", len(done.Closed), time.Since(began).Seconds()))
		if err := q.ClosedVacuum(ctx); err != nil {
			return err
		}
		r.world, err = newWorld(ctx, q, r.made.App)
		return err
	})
}

// asOwner runs f on a connection of its own that sees Footfall's tables.
func (r *asking) asOwner(ctx context.Context, f func(q *tables.Queries) error) error {
	conn, err := bench.Connect(ctx, r.address, nil)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	return f(tables.New(conn))
}

// untrue is an error that wraps bench.ErrUntrue where exact uniques were not, or verify has found
// something; else nil.
func (r *Report) untrue() error {
	if r.Verify != nil && r.Verify.Violations > 0 {
		return fmt.Errorf("%w: %d violations: see footfall verify", bench.ErrUntrue, r.Verify.Violations)
	}
	if r.Uniques == nil || len(r.Uniques.Different) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", bench.ErrUntrue, strings.Join(r.Uniques.Different[:min(10, len(r.Uniques.Different))], "\n"))
}

// Print writes the report for people at a terminal.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\nload of the machine %s before and %s after; visits came at %d a second\n", r.Machine, r.Load, r.LoadAfter, r.Rate)
	if f := r.Uniques; f != nil {
		fmt.Fprintf(w, "\nuniques of one target: %d ranges at random (%d of a site), compared with count(DISTINCT ip): %d differ\n  %s; counted: %s\n",
			f.Ranges, f.Sites, len(f.Different), f.Asked, f.Counted)
	}
	if f := r.Answers; f != nil {
		fmt.Fprintf(w, "\nreports while %s visits/s were counted: these took %s\n", bench.Grouped(f.Visits.PerSecond), f.Visits)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprint(t, "  report\truns\tp50 ms\tp99 ms\tmax ms\n")
		for _, row := range f.Reports {
			fmt.Fprintf(t, "  %s\t%d\t%s\t%s\t%s\n", row.Report, row.Count, bench.Millis(row.P50Ms), bench.Millis(row.P99Ms), bench.Millis(row.MaxMs))
		}
		_ = t.Flush() // w is a person's
	}
	if f := r.Dashboards; f != nil {
		fmt.Fprintf(w, "\nvisits beside %d open dashboards took %s; without %s\n  a site's page of 30 days: %s (%d of them; %d more were refused)\n",
			f.Dashboards, f.Beside, f.Alone, f.Pages, f.Pages.Count, f.Refused)
	}
	if f := r.Verify; f != nil {
		fmt.Fprintf(w, "\nwhile all was verified in %.0f s, %s visits/s were counted, none refused: these took %s\n", f.Seconds, bench.Grouped(f.Visits.PerSecond), f.Visits)
	}
	fmt.Fprintf(w, "\nRepeat it: %s\n", r.Command)
}

// loadAverage is that of the machine in the last minute; "" where the system does not say.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
