// Package compare measures several ways of counting visits (contenders) with the same visits, in this process or over HTTP.
// It also checks the counted numbers.
package compare

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"footfall/bench"
	"footfall/bench/load"
)

// Options are the flags of a comparison.
type Options struct {
	bench.Options
	Contenders  []string      `placeholder:"NAME,…" help:"Which ways of counting: naive, naive+filter, baseline, batched, batched+filter, batched+memory, batched+both; with --http only those that begin with batched; with --old also old. Default: all."`
	Workloads   []string      `enum:"first,returning,burst" default:"first,returning,burst" placeholder:"NAME,…" help:"Which workloads: ${enum}. Default: all."`
	Rounds      int           `default:"5" placeholder:"N" help:"How often to run each way on each workload, on a new database every time; medians are shown. Default: ${default}."`
	Visits      int           `default:"100000" placeholder:"N" help:"Visits of each run. Contenders that count one visit per transaction get the first tenth of them, at least 1500. Not with --http. Default: ${default}."`
	Clients     int           `default:"2000" placeholder:"N" help:"How many clients visit at once; 2000 fill the batches. Not with --http. Default: ${default}."`
	HTTP        bool          `name:"http" help:"Compare processes that serve HTTP, each over --connections connections."`
	Old         string        `placeholder:"FILE" help:"The program of another version, to compare with the current one, on its own tables; with --http."`
	Connections int           `default:"256" placeholder:"N" help:"Connections, with --http. Default: ${default}."`
	Duration    time.Duration `default:"10s" placeholder:"TIME" help:"How long to send visits to each process, with --http. Default: ${default}."`
}

// Check returns the errors in the options.
func (o Options) Check() (f bench.Faults) {
	if o.HTTP {
		f.Service(o.Footfall)
	}
	f.When(o.Old != "" && !o.HTTP, "old: it has no effect without --http: leave it out")
	f.When(o.Duration <= 0, "duration: %s is not positive: give a time like 10s", o.Duration)
	f.When(visitsOf(o) > load.Addresses, "visits: %d visitors need more than the %d available addresses: give fewer",
		visitsOf(o), load.Addresses)
	_, err := chooseContenders(o)
	f.When(err != nil, "%w", err)
	return f
}

// mostPerSecond is more visits than any contender can count in a second with one processor. Over HTTP, this number is
// generated for each second and processor, so that a run never runs out of visits.
const mostPerSecond = 200_000

// visitsOf returns the number of visits to generate for each workload. Over HTTP, not all of them are sent, because sending
// stops after o.Duration.
func visitsOf(o Options) int {
	if o.HTTP {
		return int(mostPerSecond * o.Duration.Seconds() * float64(runtime.GOMAXPROCS(0)))
	}
	return o.Visits
}

// comparison is the state of one call of Run. It is not safe for concurrent use.
type comparison struct {
	Options
	server    *bench.Server
	templates map[string]string // program ("": the version under test) → URL of a database with the program's tables and the app
	report    *Report
}

// task is a workload, together with the visits that it has generated.
type task struct {
	About
	sequence []load.Arrival
}

// Run lets every contender count the visits of every workload once per round, each time in a new database. Then it checks
// the counted numbers. If a contender that promises exact numbers was wrong, Run still finishes all measurements, and then
// returns an error that wraps bench.ErrUntrue.
func Run(ctx context.Context, o Options) (*Report, error) {
	contenders, err := chooseContenders(o)
	if err != nil {
		return nil, err
	}
	return run(ctx, o, contenders)
}

func run(ctx context.Context, o Options, contenders []contender) (_ *Report, err error) {
	c := &comparison{Options: o, templates: map[string]string{}}
	c.report = &Report{HTTP: o.HTTP, Clients: c.Clients, Rounds: c.Rounds, Seed: c.Seed}
	if o.HTTP {
		c.report.Clients = c.Connections
	}
	if c.server, err = bench.OpenServer(ctx, o.Options, ""); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.server.Close()) }()
	c.report.Machine = c.server.Machine
	var tasks []task
	for _, w := range load.Workloads {
		if slices.Contains(c.Workloads, w.Name) {
			t := task{About{Name: w.Name, About: w.About}, w.Sequence(c.Seed, visitsOf(c.Options))}
			tasks, c.report.Workloads = append(tasks, t), append(c.report.Workloads, t.About)
		}
	}
	for _, one := range contenders {
		c.report.Contenders = append(c.report.Contenders, one.About)
	}
	// The loop over rounds is the outermost one, so that other load on the machine affects all contenders in the same way.
	// Each round starts with a different contender.
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

// copyFor creates a database for a contender. A literal contender gets an empty database. All others get a copy of a
// template, which contains the tables of the contender's program. The first call for a program creates its template.
func (c *comparison) copyFor(ctx context.Context, of contender) (address string, err error) {
	if of.literal {
		return c.server.Database(ctx, "")
	}
	template, made := c.templates[of.program]
	if !made {
		if template, err = c.server.Database(ctx, ""); err != nil {
			return "", err
		}
		if err := of.setUp(ctx, template); err != nil {
			return "", err
		}
		c.templates[of.program] = template
	}
	return c.server.Database(ctx, template)
}

// turn measures one contender with one task, and adds the result to the report. The expected numbers are only right if all
// visits are on one day. So if midnight passes during a measurement, turn repeats the measurement.
func (c *comparison) turn(ctx context.Context, of contender, t task, round int) (err error) {
	var r Turn
	for day := 0; day != time.Now().UTC().YearDay(); {
		day = time.Now().UTC().YearDay()
		if r, err = c.play(ctx, of, t); err != nil {
			return fmt.Errorf("round %d, %s, %s: %w", round, t.Name, of.Name, err)
		}
	}
	r.Contender, r.Workload, r.Round = of.Name, t.Name, round
	c.report.Runs = append(c.report.Runs, r)
	c.Doing("round %d of %d, %s: %s %.0f visits/s, p99 %.1f ms", round, c.Rounds, t.Name, of.Name, r.PerSecond, r.P99Ms)
	return nil
}

func (c *comparison) play(ctx context.Context, of contender, t task) (r Turn, err error) {
	address, err := c.copyFor(ctx, of)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.server.Drop(address)) }()
	visit := c.visitHere
	if c.HTTP {
		visit = c.visitProcess
	}
	m, asked, sent, err := visit(ctx, of, t, address)
	if err != nil {
		return r, err
	}
	stored, err := of.read(ctx, address)
	if err != nil {
		return r, fmt.Errorf("read the counted numbers: %w", err)
	}
	return Turn{
		Visits: m.Requests, PerSecond: m.PerSecond, P50Ms: m.P50Ms, P99Ms: m.P99Ms,
		Asked: asked / float64(max(stored.sums[load.Site].Hot, 1)), Errors: judge(sent, stored),
	}, nil
}

// storedNumbers contains the numbers in a contender's tables after a measurement.
type storedNumbers struct {
	sums     map[string]load.Sums            // numbers of each target, by uri
	ranks    map[string]map[netip.Addr]int64 // rank of each visitor, by uri and visitor
	unproven int64                           // how much the numbers contradict other rows in the contender's tables; 0: not at all
}

func newStoredNumbers() storedNumbers {
	return storedNumbers{sums: map[string]load.Sums{}, ranks: map[string]map[netip.Addr]int64{}}
}

// addVisitor records in s.ranks that a visitor of a target has this rank.
func (s storedNumbers) addVisitor(uri string, visitor netip.Addr, rank int64) {
	if s.ranks[uri] == nil {
		s.ranks[uri] = map[netip.Addr]int64{}
	}
	s.ranks[uri][visitor] = rank
}

// judge compares the stored numbers with the numbers that the sent visits should have produced.
func judge(sent []load.Arrival, s storedNumbers) Errors {
	truth := load.ExpectedSums(sent)
	var off load.Sums
	for uri, want := range truth {
		off = off.Plus(want.ExcessOver(s.sums[uri]))
	}
	for uri, got := range s.sums {
		off = off.Plus(got.ExcessOver(truth[uri]))
	}
	v := Errors{PV: off.PV, UV: off.UV, Hot: off.Hot, Unproven: s.unproven}
	for uri, got := range s.sums { // count the ranks that belong to no visitor
		v.Ranks += max(got.UV-int64(len(s.ranks[uri])), 0)
	}
	for uri, ranks := range s.ranks { // each rank must be unique and in 1..uv
		taken := make(map[int64]bool, len(ranks))
		for _, rank := range ranks {
			if rank < 1 || rank > s.sums[uri].UV || taken[rank] {
				v.Ranks++
			}
			taken[rank] = true
		}
	}
	return v
}
