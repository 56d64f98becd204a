package compare

import (
	"time"

	"footfall/bench"
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
	o.Options = o.Options.Completed()
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
