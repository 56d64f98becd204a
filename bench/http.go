package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/bench/perrequest"
	"footfall/bench/tables"
)

// HTTPOptions of a comparison. A zero field means its default.
type HTTPOptions struct {
	DatabaseURL string        // a server on which databases may be made; default: an embedded one
	Dir         string        // where the embedded one keeps its data; default: the system's folder for temporary files
	BinDir      string        // PostgreSQL's programs for the embedded one; default: looked for
	Connections []int         // default 64, 256, 1000
	Rounds      int           // default 3
	Duration    time.Duration // of each run of wrk; default 10 s
	Threads     int           // of wrk; default 2
	Progress    func(string)  // told what is being done; may be nil
}

func (o *HTTPOptions) complete() {
	if len(o.Connections) == 0 {
		o.Connections = []int{64, 256, 1000}
	}
	if o.Rounds == 0 {
		o.Rounds = 3
	}
	if o.Duration == 0 {
		o.Duration = 10 * time.Second
	}
	if o.Threads == 0 {
		o.Threads = 2
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// Service is Footfall itself, as a contender.
const Service = "footfall"

// Sample is one run of wrk.
type Sample struct {
	Contender   string  `json:"contender"`
	Connections int     `json:"connections"`
	Round       int     `json:"round"`
	Visits      int64   `json:"visits"`
	PerSecond   float64 `json:"perSecond"`
	P50Ms       float64 `json:"p50Ms"`
	P99Ms       float64 `json:"p99Ms"`
	MaxMs       float64 `json:"maxMs"`
	PeakBytes   int64   `json:"peakBytes"` // the most memory that the contender's process had held by then
}

// comparison is a run of HTTP. One goroutine uses it.
type comparison struct {
	HTTPOptions
	server *server
	script string // the file that wrk runs
	report *HTTPReport
}

// HTTP measures Footfall's service, a per-request baseline and a handler that answers a constant, one after the other in
// each round, each a process of its own with a new database. A database is kept over the numbers of connections of
// a round, so that it fills. After each of the service's rounds its tables are checked against the answers.
func HTTP(ctx context.Context, o HTTPOptions) (_ *HTTPReport, err error) {
	o.complete()
	folder, err := os.MkdirTemp("", "footfall-wrk-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	c := &comparison{HTTPOptions: o, script: filepath.Join(folder, "visits.lua"), report: &HTTPReport{}}
	if err := os.WriteFile(c.script, visitsLua, 0o600); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if c.server, err = openServer(ctx, o.DatabaseURL, o.Dir, o.BinDir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.server.close()) }()
	if c.report.Machine, err = c.server.machine(ctx); err != nil {
		return nil, err
	}
	for round := 1; round <= o.Rounds; round++ {
		for _, contender := range []string{Service, PerRequest, Constant} {
			if err := c.turn(ctx, contender, round); err != nil {
				return nil, fmt.Errorf("round %d of %s: %w", round, contender, err)
			}
		}
	}
	c.report.summarize()
	return c.report, nil
}

// turn is one contender's part of a round.
func (c *comparison) turn(ctx context.Context, contender string, round int) (err error) {
	args := []string{"bench", "contender", contender, "--addr", "%s"}
	var address string
	if contender != Constant {
		var drop func() error
		if address, drop, err = c.server.database(ctx, contender); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, drop()) }()
		args = append(args, "--database-url", address)
	}
	if contender == Service {
		d, err := openFootfall(ctx, address)
		if err != nil {
			return err
		}
		d.Close()
		args = []string{"serve", "--database-url", address, "--addr", "%s", "--admin-addr", "off"}
	}
	p, err := startProcess(ctx, args...)
	if err != nil {
		return err
	}
	answered, err := c.loads(ctx, p, contender, round)
	if err := errors.Join(err, p.stop()); err != nil {
		return err
	}
	switch contender {
	case Service:
		return c.checkTables(ctx, address, round, answered)
	case PerRequest:
		return c.countWrong(ctx, address)
	}
	return nil
}

// loads runs wrk with each number of connections, and returns how many visits were answered.
func (c *comparison) loads(ctx context.Context, p *process, contender string, round int) (answered int64, err error) {
	for _, connections := range c.Connections {
		m, err := runWrk(ctx, load{
			url: p.url, script: c.script, connections: connections, threads: c.Threads, duration: c.Duration,
			seed: connections*100 + round, // others in each run: visitors and pages meet anew
		})
		if err != nil {
			return 0, err
		}
		answered += m.requests
		c.Progress(fmt.Sprintf("round %d, %d connections, %s: %.0f/s, p50 %s, p99 %s",
			round, connections, contender, m.perSecond, m.p50, m.p99))
		c.report.Samples = append(c.report.Samples, Sample{
			Contender: contender, Connections: connections, Round: round, Visits: m.requests, PerSecond: m.perSecond,
			P50Ms: ms(m.p50), P99Ms: ms(m.p99), MaxMs: ms(m.max), PeakBytes: p.peakMemory(),
		})
	}
	return answered, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// checkTables compares the tables with the answers. When wrk's time is up it hangs up, with a visit on the way on each
// connection: these were counted, or not, and nobody was told.
func (c *comparison) checkTables(ctx context.Context, address string, round int, answered int64) error {
	conn, err := connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	q := tables.New(conn)
	sums, err := q.SiteSums(ctx, site)
	if err != nil {
		return fmt.Errorf("check the tables: %w", err)
	}
	amiss, err := q.TargetsAmiss(ctx)
	if err != nil {
		return fmt.Errorf("check the tables: %w", err)
	}
	onTheWay := int64(0)
	for _, connections := range c.Connections {
		onTheWay += int64(connections)
	}
	faults := slices.DeleteFunc([]string{
		unless(sums.Hot >= answered && sums.Hot <= answered+onTheWay,
			"hot of the site is %d; %d visits were answered, and at most %d were on the way", sums.Hot, answered, onTheWay),
		unless(sums.Hot == sums.HotOfPages, "hot of the site is %d, of its pages %d", sums.Hot, sums.HotOfPages),
		unless(sums.Uv == sums.Visitors, "uv of the site is %d, its visitors are %d", sums.Uv, sums.Visitors),
		unless(sums.Pv == sums.Visits, "pv of the site is %d, its visits by day are %d", sums.Pv, sums.Visits),
		unless(amiss == 0, "%d targets have sums or ranks that their rows do not bear out", amiss),
	}, func(fault string) bool { return fault == "" })
	if len(faults) > 0 {
		return fmt.Errorf("the tables are wrong: %v", faults)
	}
	c.report.Checks = append(c.report.Checks, fmt.Sprintf(
		"round %d: %d visits answered, hot %d, uv %d = visitors, pv %d = visits by day, all ranks 1..uv",
		round, answered, sums.Hot, sums.Uv, sums.Pv))
	return nil
}

func unless(held bool, format string, args ...any) string {
	if held {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// countWrong adds to the report what the baseline got wrong.
func (c *comparison) countWrong(ctx context.Context, address string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	ranks, days, err := perrequest.Wrong(ctx, conn)
	if err != nil {
		return err
	}
	c.report.RanksLost += ranks
	c.report.DaysTwice += days
	return nil
}
