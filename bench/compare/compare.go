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

// Check tells what is wrong with the options of a comparison. What is not given is right.
func Check(o Options) (faults []error) {
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
	for flag, n := range map[string]int{"rounds": o.Rounds, "visits": o.Visits, "clients": o.Clients, "connections": o.Connections} {
		if n < 1 {
			faults = append(faults, fmt.Errorf("%s: %d will not do: give 1 or more", flag, n))
		}
	}
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
	return named("workloads", load.Workloads, func(w load.Workload) string { return w.Name }, o.Workloads)
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

// verdicts judge what a contender's tables hold.
type verdicts func(standing) verdict

// comparison is a run of Run. One goroutine uses it.
type comparison struct {
	Options
	server  *bench.Server
	script  load.Script     // for wrk
	written map[string]bool // what is in it
	layouts map[layoutKey]layout
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
	c := &comparison{Options: o.Completed(), layouts: map[layoutKey]layout{}, written: map[string]bool{}}
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
	defer func() { err = errors.Join(err, c.dropLayouts(), c.server.Close()) }()
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
			t.First = load.FirstShare(t.sequence[:min(len(t.sequence), describedBy)])
			all = append(all, t)
			c.report.Loads = append(c.report.Loads, t.Load)
		}
	}
	return all, nil
}

// describedBy is how many visits say the share of first visits of a workload.
const describedBy = 100_000

// layoutKey names an empty database, or one that is preloaded, as contenders share it.
type layoutKey struct {
	name    string
	preload int
}

type layout struct {
	address, key string
	drop         func() error
}

// layoutOf is the database of which a contender gets copies; it is made when it is first asked for.
func (c *comparison) layoutOf(ctx context.Context, of contender, preload int) (l layout, err error) {
	if of.layout == "" {
		return layout{}, nil
	}
	name := layoutKey{of.layout, preload}
	l, made := c.layouts[name]
	if made {
		return l, nil
	}
	if preload > 0 {
		c.Progress(fmt.Sprintf("filling visitors with %d rows", preload))
	}
	if l.address, l.drop, err = c.server.Database(ctx, ""); err != nil {
		return l, err
	}
	if l.key, err = of.setUp(ctx, l.address, preload); err != nil {
		return l, errors.Join(err, l.drop())
	}
	c.layouts[name] = l
	return l, nil
}

func (c *comparison) dropLayouts() (err error) {
	for _, l := range c.layouts {
		err = errors.Join(err, l.drop())
	}
	return err
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
			c.Progress("midnight came in between: once more")
			continue
		}
		r.Contender, r.Workload, r.Round = of.Name, t.Name, round
		c.report.Runs = append(c.report.Runs, r)
		c.Progress(fmt.Sprintf("round %d of %d, %s: %s %.0f visits/s, p99 %.1f ms", round, c.Rounds, t.Name, of.Name, r.PerSecond, r.P99Ms))
		return nil
	}
}

func (c *comparison) play(ctx context.Context, of contender, t task) (r Turn, err error) {
	if of.Name == constant { // which needs no database
		_, err = c.visitProcess(ctx, of, t, layout{}, &r)
		return r, err
	}
	from, err := c.layoutOf(ctx, of, t.preload)
	if err != nil {
		return r, err
	}
	address, drop, err := c.server.Database(ctx, from.address)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	in := layout{address: address, key: from.key}
	visit := c.visitHere
	if c.HTTP {
		visit = c.visitProcess
	}
	judge, err := visit(ctx, of, t, in, &r)
	if err != nil {
		return r, err
	}
	rows, err := c.server.RowsWritten(ctx, address)
	if err != nil {
		return r, err
	}
	stored, err := of.read(ctx, address)
	if err != nil {
		return r, fmt.Errorf("read what was counted: %w", err)
	}
	// Of all that were counted: over HTTP the last ones were not answered, but cost as much.
	counted := float64(max(stored.sums[load.Site].Hot, 1))
	r.Written, r.Asked, r.WAL = float64(rows)/counted, r.Asked/counted, r.WAL/counted
	v := judge(stored)
	r.Errors, r.Fault = v.Errors, v.brokenBy(of.About)
	return r, nil
}

// spent sets what a contender has used up since the log of the server was so long.
func (c *comparison) spent(ctx context.Context, logged int64, figures func() (bench.Figures, error), r *Turn) error {
	ended, err1 := c.server.WAL(ctx)
	f, err2 := figures()
	asked, err3 := f.Of(bench.MetricAsked)
	filter, err4 := f.Of(bench.MetricFilterBytes)
	memory, err5 := f.Of(bench.MetricMemoryBytes)
	r.WAL, r.Asked, r.Helpers = float64(ended-logged), asked, int64(filter+memory)
	return errors.Join(err1, err2, err3, err4, err5)
}
