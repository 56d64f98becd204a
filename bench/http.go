package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"footfall/bench/tables"
	"footfall/visit"
)

// HTTPOptions of a comparison over HTTP. A zero field means its default.
type HTTPOptions struct {
	DatabaseURL string        // a server on which databases may be made; default: an embedded one
	Dir         string        // where the embedded one keeps its data; default: the system's folder for temporary files
	BinDir      string        // PostgreSQL's programs for the embedded one; default: looked for
	Contenders  []string      // default: all
	Workloads   []string      // default: all
	Connections int           // of wrk, an even number; default 256
	Rounds      int           // default 3
	Duration    time.Duration // of each run of wrk, whole seconds; default 10 s
	Seed        uint64        // of the workloads; default 1
	Quick       bool          // one round of a second each
	Progress    func(string)  // told what is being done; may be nil
}

func (o *HTTPOptions) complete() {
	if o.Quick {
		o.Rounds, o.Duration = 1, time.Second
	}
	if o.Connections == 0 {
		o.Connections = 256
	}
	if o.Rounds == 0 {
		o.Rounds = 3
	}
	if o.Duration == 0 {
		o.Duration = 10 * time.Second
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

const (
	// throughHTTP is what Comparison.Through says of HTTP.
	throughHTTP = "http"
	// mostPerSecond is how many visits are prepared for each second and processor: more than any contender could answer that counts.
	mostPerSecond = 60_000
	// describedBy is how many visits of a workload tell its share of first visits.
	describedBy = 100_000
)

// httpComparison is a run of HTTP. One goroutine uses it.
type httpComparison struct {
	HTTPOptions
	server    *server
	script    script
	sequences map[string][]arrival // by workload, as they are written for wrk
	report    *Comparison
}

// HTTP compares contenders as processes of their own, loaded by wrk: one after the other on every workload in each round, each
// time with a new database. After each run the tables are checked. An error that wraps ErrUntrue comes with a report.
func HTTP(ctx context.Context, o HTTPOptions) (_ *Comparison, err error) {
	o.complete()
	if o.Connections < wrkThreads || o.Connections%wrkThreads != 0 || o.Rounds < 1 || o.Duration < time.Second || o.Duration%time.Second != 0 {
		return nil, fmt.Errorf("bench: %d connections, %d rounds of %v will not do: give an even number, 1 or more, whole seconds",
			o.Connections, o.Rounds, o.Duration)
	}
	chosen, err := named("contender", overHTTP, contender.title, o.Contenders)
	if err != nil {
		return nil, err
	}
	loads, err := workloadsNamed(o.Workloads)
	if err != nil {
		return nil, err
	}
	c := &httpComparison{HTTPOptions: o, sequences: map[string][]arrival{}, report: &Comparison{
		Through: throughHTTP, Command: o.command(), Clients: o.Connections, Rounds: o.Rounds, Seed: o.Seed,
	}}
	if c.script, err = newScript(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.script.remove()) }()
	if c.server, err = openServer(ctx, o.DatabaseURL, o.Dir, o.BinDir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.server.close()) }()
	if c.report.Machine, err = c.server.machine(ctx); err != nil {
		return nil, err
	}
	if err := c.prepare(loads); err != nil {
		return nil, err
	}
	for _, one := range chosen {
		c.report.Contenders = append(c.report.Contenders, one.ContenderAbout)
	}
	for round := 1; round <= o.Rounds; round++ {
		for _, workload := range loads {
			for i := range chosen { // another begins in each round
				if err := c.turn(ctx, chosen[(i+round-1)%len(chosen)], workload.name, round); err != nil {
					return nil, err
				}
			}
		}
	}
	c.report.summarize()
	return c.report, c.report.untrue()
}

// prepare writes the workloads down for wrk.
func (c *httpComparison) prepare(loads []workload) error {
	visits := mostPerSecond * c.report.Machine.CPUs * int(c.Duration.Seconds())
	for _, w := range loads {
		c.Progress(fmt.Sprintf("preparing %d visits of %s", visits, w.name))
		sequence := w.sequence(c.Seed, visits)
		if err := c.script.write(w.name, sequence); err != nil {
			return err
		}
		c.sequences[w.name] = sequence
		c.report.Workloads = append(c.report.Workloads, WorkloadAbout{
			Name: w.name, About: w.about, First: firstShare(sequence[:min(describedBy, visits)]),
		})
	}
	return nil
}

// turn is one contender's run at one workload. All visits must be of one day, else the truth is another: if midnight
// comes in between, the run is repeated.
func (c *httpComparison) turn(ctx context.Context, of contender, workload string, round int) error {
	for {
		day := visit.DayOf(time.Now(), time.UTC)
		run, err := c.run(ctx, of, workload)
		if err != nil {
			return fmt.Errorf("round %d, %s, %s: %w", round, workload, of.Name, err)
		}
		if visit.DayOf(time.Now(), time.UTC) != day {
			c.Progress("midnight came in between: once more")
			continue
		}
		run.Round = round
		c.report.Runs = append(c.report.Runs, run)
		c.Progress(fmt.Sprintf("round %d of %d, %s: %s %.0f visits/s, p99 %.1f ms", round, c.Rounds, workload, of.Name, run.PerSecond, run.P99Ms))
		return nil
	}
}

func (c *httpComparison) run(ctx context.Context, of contender, workload string) (run Run, err error) {
	run = Run{Contender: of.Name, Workload: workload}
	if of.Name == constant {
		_, err := c.load(ctx, of, "", &run)
		return run, err
	}
	address, drop, err := c.server.database(ctx, "http")
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if err := of.prepare(ctx, address); err != nil {
		return run, err
	}
	before, err := c.server.rowsWritten(ctx, address)
	if err != nil {
		return run, err
	}
	m, err := c.load(ctx, of, address, &run)
	if err != nil {
		return run, err
	}
	after, err := c.server.rowsWritten(ctx, address)
	if err != nil {
		return run, err
	}
	held, err := of.read(ctx, address)
	if err != nil {
		return run, err
	}
	// Of all that were counted: the last ones were not answered, but cost as much.
	counted := float64(max(held.sums[site].hot, 1))
	run.Written, run.Asked, run.WAL = float64(after-before)/counted, run.Asked/counted, run.WAL/counted
	v := judgeSent(m.sentOf(c.sequences[workload]), m.requests, int64(c.Connections), held)
	run.Errors, run.Fault = v.Errors, v.brokenBy(of.ContenderAbout)
	return run, nil
}

// load starts the contender, lets wrk visit it, and reads its figures before it ends: Asked and WAL in all, not for each visit.
func (c *httpComparison) load(ctx context.Context, of contender, address string, run *Run) (m measure, err error) {
	p, err := startProcess(ctx, func(addr, admin string) []string { return of.arguments(addr, admin, address) })
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if of.alone {
		p.admin = p.url
	}
	if of.helpers.Filter {
		if err := p.shows(ctx, metricFilterReady, 1); err != nil {
			return m, err
		}
	}
	q := tables.New(c.server.admin)
	before, err := q.WALPosition(ctx)
	if err != nil {
		return m, fmt.Errorf("bench: %w", err)
	}
	if m, err = c.script.run(ctx, load{
		url: p.url, workload: run.Workload, again: of.Name == constant, connections: c.Connections, duration: c.Duration,
	}); err != nil {
		return m, err
	}
	run.Visits, run.PerSecond, run.P50Ms, run.P95Ms, run.P99Ms = int(m.requests), m.perSecond, ms(m.p50), ms(m.p95), ms(m.p99)
	run.Memory = p.peakMemory()
	if of.Name == constant {
		return m, nil
	}
	if err := p.shows(ctx, metricWaiting, 0); err != nil {
		return m, err
	}
	after, err := q.WALPosition(ctx)
	if err != nil {
		return m, fmt.Errorf("bench: %w", err)
	}
	run.WAL = float64(after - before)
	return m, p.tell(ctx, run)
}

// command is the command line that repeats the comparison.
func (o HTTPOptions) command() string {
	return commandLine("footfall bench --http", o.DatabaseURL, o.Dir, o.Contenders, o.Workloads,
		"--connections", strconv.Itoa(o.Connections), "--rounds", strconv.Itoa(o.Rounds),
		"--duration", o.Duration.String(), "--seed", strconv.FormatUint(o.Seed, 10))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
