// Package compare lets ways of counting visits take turns on the same workloads, in this process or
// over HTTP, and holds what each counted against the truth.
package compare

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"footfall/bench"
	"footfall/bench/load"
)

// Options of a comparison, as flags. A zero field means its default.
type Options struct {
	bench.Options
	Contenders  []string      `placeholder:"NAME,…" help:"Which ways of counting: naive, naive+filter, believed, baseline, batched, batched+filter, batched+memory, batched+both; with --http guarded, stranger, inbox, overload, flash, calls and constant, too, and with --old old. Default: all."`
	Workloads   []string      `placeholder:"NAME,…" help:"Which workloads: first, mixed, returning, burst. Default: all."`
	Preload     []int         `placeholder:"ROWS,…" help:"Rows in the table visitors at the start, to see what growing tables cost. Several numbers are measured in turns: 0,5000000. Then only contenders that count in Footfall's tables are compared. Default: 0."`
	Rounds      int           `placeholder:"N" help:"How often each has its turn at each workload, on a new database every time; medians are shown. Default: 5."`
	Visits      int           `placeholder:"N" help:"Visits of each run. Contenders that count one visit a transaction get the first tenth of them, at least 1500. With --http only for the contender flash. Default: 100000."`
	Clients     int           `placeholder:"N" help:"How many clients visit at once; 2000 fill the batches. Not with --http. Default: 2000."`
	HTTP        bool          `name:"http" help:"Compare processes that serve HTTP, the service among them, loaded by wrk, which must be there."`
	Old         string        `placeholder:"FILE" help:"The program of another version, which has its turn beside the present one, on tables of its own; with --http."`
	Connections int           `placeholder:"N" help:"Connections of wrk, with --http; an even number. Default: 256."`
	Duration    time.Duration `placeholder:"TIME" help:"Duration of each run of wrk, with --http; whole seconds. Default: 10s."`
}

// Completed has the defaults in place of what was not given.
func (o Options) Completed() Options {
	o.Rounds = bench.Usual(o.Options, o.Rounds, 5, 1)
	o.Visits = bench.Usual(o.Options, o.Visits, 100_000, 10_000)
	o.Clients = bench.Usual(o.Options, o.Clients, 2000, 2000)
	o.Connections = bench.Usual(o.Options, o.Connections, 256, 256)
	o.Duration = bench.Usual(o.Options, o.Duration, 10*time.Second, time.Second)
	if len(o.Preload) == 0 {
		o.Preload = []int{0}
	}
	return o
}

// Check tells what is wrong with the options of a comparison. What is not given is right.
func (o Options) Check() (faults []error) {
	if o.HTTP {
		faults = o.CheckService()
	}
	only := func(flag string, given, here bool, where string) {
		if given && !here {
			faults = append(faults, fmt.Errorf("%s: it means nothing %s: leave it out", flag, where))
		}
	}
	only("visits", o.Visits != 0, !o.HTTP || slices.Contains(o.Contenders, flash), "with --http, but for the contender "+flash)
	only("clients", o.Clients != 0, !o.HTTP, "with --http")
	only("connections", o.Connections != 0, o.HTTP, "without --http")
	only("duration", o.Duration != 0, o.HTTP, "without --http")
	only("old", o.Old != "", o.HTTP, "without --http")
	o = o.Completed()
	faults = append(faults, bench.BelowOne(map[string]int{"rounds": o.Rounds, "visits": o.Visits, "clients": o.Clients, "connections": o.Connections})...)
	if o.Connections%load.Threads != 0 {
		faults = append(faults, fmt.Errorf("connections: %d will not do: give an even number", o.Connections))
	}
	if o.Duration < time.Second || o.Duration%time.Second != 0 {
		faults = append(faults, fmt.Errorf("duration: %s will not do: give whole seconds, like 10s", o.Duration))
	}
	if slices.Min(o.Preload) < 0 {
		faults = append(faults, errors.New("preload: give 0 or more"))
	}
	if most := slices.Max(o.Preload)/2 + visitsOf(o); most > load.Addresses {
		faults = append(faults, fmt.Errorf("visits: with those of before, %d visitors are more than the %d addresses to give them", most, load.Addresses))
	}
	_, err1 := chosen(o)
	_, err2 := workloads(o)
	for _, err := range []error{err1, err2} {
		if err != nil {
			faults = append(faults, err)
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return faults
}

func workloads(o Options) ([]load.Workload, error) {
	return bench.Named("workloads", load.Workloads, func(w load.Workload) string { return w.Name }, o.Workloads)
}

// mostPerSecond is how many visits are prepared for each second and processor over HTTP: more than
// any contender could answer that counts.
const mostPerSecond = 60_000

// visitsOf is how many visits of each workload there are. Over HTTP as many are sent as fit the
// time.
func visitsOf(o Options) int {
	if o.HTTP {
		return max(mostPerSecond*runtime.GOMAXPROCS(0)*int(o.Duration.Seconds()), o.Visits)
	}
	return o.Visits
}

const (
	// Those who count one visit a transaction are slower by a factor of ten and more.
	fewerVisits = 10
	leastVisits = 1500
)

// share is how many visits of a workload a contender gets in this process.
func share(o Options, c contender) int {
	if c.alone {
		return max(o.Visits/fewerVisits, min(o.Visits, leastVisits))
	}
	return o.Visits
}

// comparison is a run of Run. One goroutine uses it.
type comparison struct {
	Options
	server  *bench.Server
	script  *load.Script // for wrk
	layouts map[layout]database
	report  *Report
}

// task is a workload on tables that hold so much before.
type task struct {
	Load
	preload  int
	sequence []load.Arrival
}

// Run lets every contender count every workload once in each round, on a new database each time,
// and checks the tables (and in this process all answers) afterwards. Only when all has been
// measured does an error of an exact contender make it fail, with bench.ErrUntrue.
func Run(ctx context.Context, o Options) (*Report, error) {
	contenders, err := chosen(o.Completed())
	if err != nil {
		return nil, err
	}
	return run(ctx, o, contenders)
}

func run(ctx context.Context, o Options, contenders []contender) (_ *Report, err error) {
	c := &comparison{Options: o.Completed(), layouts: map[layout]database{}}
	c.report = &Report{Command: o.Command, HTTP: o.HTTP, Clients: c.Clients, Rounds: c.Rounds, Seed: c.Seed}
	if o.HTTP {
		c.report.Clients = c.Connections
		if c.script, err = load.NewScript(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.script.Remove()) }()
	}
	if c.server, err = bench.OpenServer(ctx, o.Options); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.server.Close()) }()
	if c.report.Machine, err = c.server.Machine(ctx); err != nil {
		return nil, err
	}
	tasks, err := c.tasks()
	if err != nil {
		return nil, err
	}
	for _, one := range contenders {
		if visits := share(c.Options, one); !o.HTTP && visits < c.Visits {
			one.About.About += fmt.Sprintf("; takes the first %d visits", visits)
		}
		c.report.Contenders = append(c.report.Contenders, one.About)
	}
	// Rounds outermost, so that what else the machine does meets all alike; another contender
	// begins in each.
	for round := 1; round <= c.Rounds; round++ {
		for _, t := range tasks {
			for i := range contenders {
				if err := c.turn(ctx, contenders[(i+round-1)%len(contenders)], t, round); err != nil {
					return nil, err
				}
			}
		}
	}
	c.report.summarize()
	return c.report, c.report.untrue()
}

// tasks are the workloads, each on tables of every size.
func (c *comparison) tasks() (all []task, err error) {
	chosen, err := workloads(c.Options)
	if err != nil {
		return nil, err
	}
	for _, w := range chosen {
		for _, preload := range c.Preload {
			t := task{Load: Load{Name: w.Name, About: w.About}, preload: preload}
			if preload > 0 {
				t.Name = fmt.Sprintf("%s+%d", w.Name, preload)
				t.About += fmt.Sprintf("; %s rows of visitors are there before", bench.Grouped(float64(preload)))
			}
			t.sequence = w.Sequence(c.Seed, visitsOf(c.Options), preload/2)
			all = append(all, t)
			c.report.Loads = append(c.report.Loads, t.Load)
		}
	}
	return all, nil
}

// layout names an empty database, or one that is preloaded, as contenders share it.
type layout struct {
	name    string
	preload int
}

// database is where a contender counts, with the key that its visits show; "": none.
type database struct{ address, key string }

// copyFor makes a database for a contender: a copy of that of its layout, which is made when it is
// first asked for.
func (c *comparison) copyFor(ctx context.Context, of contender, preload int) (d database, err error) {
	name := layout{of.layout, preload}
	template, made := c.layouts[name]
	if !made && of.layout != "" {
		if preload > 0 {
			c.Doing("filling visitors with %d rows", preload)
		}
		if template.address, err = c.server.Database(ctx, ""); err != nil {
			return d, err
		}
		if template.key, err = of.setUp(ctx, template.address, preload); err != nil {
			return d, err
		}
		c.layouts[name] = template
	}
	d.key = template.key
	d.address, err = c.server.Database(ctx, template.address)
	return d, err
}

// turn is one contender's turn at one task, on a database of its own. All visits must be of one
// day, else the truth is another: if midnight comes in between over HTTP, the turn is repeated.
func (c *comparison) turn(ctx context.Context, of contender, t task, round int) error {
	for {
		day := time.Now().UTC().YearDay()
		r, err := c.play(ctx, of, t)
		if err != nil {
			return fmt.Errorf("round %d, %s, %s: %w", round, t.Name, of.Name, err)
		}
		if c.HTTP && time.Now().UTC().YearDay() != day {
			c.Doing("midnight came in between: once more")
			continue
		}
		r.Contender, r.Workload, r.Round = of.Name, t.Name, round
		c.report.Runs = append(c.report.Runs, r)
		c.Doing("round %d of %d, %s: %s %.0f visits/s, p99 %.1f ms", round, c.Rounds, t.Name, of.Name, r.PerSecond, r.P99Ms)
		return nil
	}
}

func (c *comparison) play(ctx context.Context, of contender, t task) (r Turn, err error) {
	if of.Name == constant { // which needs no database
		_, err = c.visitProcess(ctx, of, t, database{}, &r)
		return r, err
	}
	in, err := c.copyFor(ctx, of, t.preload)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.server.Drop(in.address)) }()
	visit := c.visitHere
	if c.HTTP {
		visit = c.visitProcess
	}
	judge, err := visit(ctx, of, t, in, &r)
	if err != nil {
		return r, err
	}
	rows, err := c.server.RowsWritten(ctx, in.address)
	if err != nil {
		return r, err
	}
	stored, err := of.read(ctx, in.address)
	if err != nil {
		return r, fmt.Errorf("read what was counted: %w", err)
	}
	// Of all that were counted: over HTTP the last ones were not answered, but cost as much.
	counted := float64(max(stored.sums[load.Site].Hot, 1))
	r.Written, r.Asked, r.WAL = float64(rows)/counted, r.Asked/counted, r.WAL/counted
	if r.Errors = judge(stored); of.Exact && r.Errors != (Errors{}) {
		r.Fault = r.Errors.String()
	}
	return r, nil
}

// spent sets what a contender has used up since the log of the server was so long.
func (c *comparison) spent(ctx context.Context, logged int64, f bench.Figures, r *Turn) error {
	ended, err := c.server.WAL(ctx)
	r.WAL, r.Asked, r.Helpers = float64(ended-logged), f[bench.MetricAsked], f[bench.MetricFilterBytes]+f[bench.MetricMemoryBytes]
	return errors.Join(err, f.Has(bench.MetricAsked, bench.MetricFilterBytes, bench.MetricMemoryBytes))
}

// answered sets how quickly visits were.
func (r *Turn) answered(m load.Measure) {
	r.Visits, r.PerSecond, r.P50Ms, r.P99Ms = m.Requests, m.PerSecond, m.P50Ms, m.P99Ms
}
