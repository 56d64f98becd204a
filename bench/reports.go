package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"footfall/counter"
	"footfall/db/embedded"
)

// ReportsOptions of a measurement of reports. A zero field means its default.
type ReportsOptions struct {
	DatabaseURL string          // a server on which a database may be made; default: an embedded one
	Dir         string          // where the embedded one keeps its data; default: the system's folder for temporary files
	Data        string          // a data directory that is kept: what was generated there is measured; default: none
	BinDir      string          // PostgreSQL's programs for the embedded one; default: looked for
	Parts       []string        // default: all of ReportsParts
	Made        GenerateOptions // what is generated where nothing is
	Rate        int             // visits a second that are counted meanwhile; default 2,000
	Runs        int             // of each report; default 200
	Samples     int             // ranges of days whose uniques are compared; default 1,000
	Seed        uint64          // default 1
	Quick       bool            // little of everything: shows that all works, measures little
	Progress    func(string)    // told what is being done; may be nil
}

// reportsParts in the order in which they are measured: those first that want the tables as they were generated.
var reportsParts = []struct {
	name    string
	measure func(*reportsRun, context.Context) error
}{
	{"uniques", (*reportsRun).compareUniques},
	{"answers", (*reportsRun).measureAnswers},
}

// ReportsParts are the names of what Reports measures.
func ReportsParts() (names []string) {
	for _, part := range reportsParts {
		names = append(names, part.name)
	}
	return names
}

func (o *ReportsOptions) complete() {
	if o.Quick {
		o.Runs, o.Samples = 10, 50
		if o.Made.Visits == 0 {
			o.Made.Visits, o.Made.Days, o.Made.Pages, o.Made.Visitors, o.Made.Sites = 50_000, 60, 2000, 10_000, 5
		}
	}
	for value, whole := range map[*int]int{&o.Rate: 2000, &o.Runs: 200, &o.Samples: 1000} {
		if *value == 0 {
			*value = whole
		}
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if len(o.Parts) == 0 {
		o.Parts = ReportsParts()
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	o.Made.Progress = o.Progress
	o.Made.complete()
}

// command is the command line that repeats the measurement.
func (o *ReportsOptions) command() string {
	own := []string{"--rate", strconv.Itoa(o.Rate), "--seed", strconv.FormatUint(o.Seed, 10)}
	if o.Data != "" {
		own = append(own, "--data", o.Data)
	}
	if len(o.Parts) < len(reportsParts) {
		own = append(own, "--parts", strings.Join(o.Parts, ","))
	}
	if o.Quick {
		own = append(own, "--quick")
	} else {
		own = append(own, "--runs", strconv.Itoa(o.Runs), "--samples", strconv.Itoa(o.Samples))
	}
	return commandLine("footfall bench reports", o.DatabaseURL, o.Dir, nil, nil, own...)
}

// reportsRun is a run of Reports. One goroutine uses it, but for what a part starts and ends.
type reportsRun struct {
	ReportsOptions
	server  *server
	address string // of the database
	world   *world
	report  *ReportsReport
}

// Reports measures reading on tables that Generate made: how long reports take while visits are counted, and whether uniques are true. An error that wraps ErrUntrue comes with a report.
func Reports(ctx context.Context, o ReportsOptions) (_ *ReportsReport, err error) {
	o.complete()
	if o.Rate < 1 || o.Runs < 1 || o.Samples < 1 {
		return nil, fmt.Errorf("bench: %d visits a second, %d runs, %d samples will not do: give 1 or more", o.Rate, o.Runs, o.Samples)
	}
	for _, part := range o.Parts {
		if !slices.Contains(ReportsParts(), part) {
			return nil, fmt.Errorf("parts: there is no %q: choose from %s", part, strings.Join(ReportsParts(), ","))
		}
	}
	r := &reportsRun{ReportsOptions: o, report: &ReportsReport{Command: o.command(), Rate: o.Rate, Seed: o.Seed, Load: loadAverage()}}
	closeAll, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	if r.report.Machine, err = r.server.machine(ctx); err != nil {
		return nil, err
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	for _, part := range reportsParts {
		if slices.Contains(o.Parts, part.name) {
			o.Progress("measuring " + part.name)
			if err := part.measure(r, ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	r.report.LoadAfter = loadAverage()
	return r.report, r.report.untrue()
}

// open finds the database: in the directory that is kept, or a new one.
func (r *reportsRun) open(ctx context.Context) (closeAll func() error, err error) {
	if r.Data == "" {
		if r.server, err = openServer(ctx, r.DatabaseURL, r.Dir, r.BinDir); err != nil {
			return nil, err
		}
		address, drop, err := r.server.database(ctx, "reports")
		if err != nil {
			return nil, errors.Join(err, r.server.close())
		}
		r.address = address
		return func() error { return errors.Join(drop(), r.server.close()) }, nil
	}
	address, release, err := embedded.Use(ctx, embedded.Config{Dir: r.Data, BinDir: r.BinDir})
	if err != nil {
		return nil, err
	}
	if r.server, err = openServer(ctx, address, "", ""); err != nil {
		return nil, errors.Join(err, release())
	}
	r.address = address
	return func() error { return errors.Join(r.server.close(), release()) }, nil
}

// prepare generates an app where there is none, and closes the days that are over. It refuses tables in which somebody else has counted:
// the benchmark adds visits to them.
func (r *reportsRun) prepare(ctx context.Context) error {
	d, err := openMigrated(ctx, r.address)
	if err != nil {
		return err
	}
	defer d.Close()
	apps, err := r.appsThatCounted(ctx)
	if err != nil {
		return err
	}
	r.Made.DatabaseURL, r.Made.Migrate = r.address, true
	switch {
	case len(apps) == 0:
		if _, err := Generate(ctx, r.Made); err != nil {
			return err
		}
	case len(apps) > 1 || apps[0] != r.Made.App:
		return fmt.Errorf("data: the app %s has counted there, and this benchmark adds visits of its own: choose a folder that is new, or that bench generate filled", apps[0])
	}
	if err := counter.NewAdmin(d, nil).SetApp(ctx, r.Made.App, keepForever()); err != nil {
		return err
	}
	if r.world, err = r.newWorld(ctx); err != nil {
		return err
	}
	return r.closeDays(ctx)
}
