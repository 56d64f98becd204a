package compare

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"footfall/bench/literal"
	"footfall/bench/load"
	"footfall/counter/app"
	"footfall/record"
	"footfall/visit"
)

// contender is one way of counting that is compared with the others.
type contender struct {
	About
	alone    bool // counts one visit a transaction, on tables of its own, and gets fewer visits
	overHTTP bool // cannot be compared in this process

	// open begins to count in a database, in this process. What it returns must be closed; then
	// read returns what the tables hold.
	open func(ctx context.Context, address string) (counting, error)
	read func(ctx context.Context, address string) (standing, error)

	// The app that counts on Footfall's tables. Contenders of one layout share a database that is
	// made once: each gets copies.
	layout   string
	settings app.Settings
	keyed    bool // visits show a key

	// Over HTTP.
	program   string   // of another version
	arguments []string // before those that say where it listens and what it counts in
	proxied   bool     // a proxy names who came, else the caller asserts it
}

// The contenders that others are compared with, and that are looked for by their names.
const (
	naive    = "naive"
	batched  = "batched"
	both     = "batched+both"
	old      = "old"
	inbox    = "inbox"
	calls    = "calls"
	flash    = "flash"
	constant = "constant"
)

// What the helpers of `footfall serve` may take by default.
const (
	filterMemory = 256 << 20
	memoryBytes  = 64 << 20
)

// mayBeLater is the flag with which visits may go to the inbox, from which all are counted before the
// tables are read.
const mayBeLater = "--overload"

var behindProxy = []string{"serve", "--max-wait", "10s", "--trust-proxy", "127.0.0.1"}

// contenders in the order of the tables. Who promises no exactness is not held to it: what it gets
// wrong is counted and shown.
var contenders = []contender{
	literally(naive, "one visit a transaction: look the visitor up, insert or not, add to the counters; wrong when two visits meet",
		literal.Naive),
	literally("naive+filter", "naive, but what a Bloom filter calls surely new is not looked up", literal.NaiveFilter),
	literally("believed", "one visit a transaction, and what the filter seems to know counts as known: loses new visitors", literal.Believed),
	literally("baseline", "one visit a transaction, in one round trip: INSERT … ON CONFLICT DO NOTHING and counter upserts; exact",
		literal.Baseline),
	service(batched, "Footfall without helpers: visits that wait are counted in one transaction", false, 0),
	service("batched+filter", "batched, and a filter of all visitors spares look-ups of new ones", true, 0),
	service("batched+memory", "batched, and a memory of recent visitors spares look-ups of those", false, memoryBytes),
	service(both, "batched with filter and memory: what `footfall serve` does", true, memoryBytes),
	likeBoth("guarded", "both, for a closed app: asserted with a key; every limit is set, and none is reached; crawlers are looked for, 10 "+
		"networks are ignored").closed(true),
	likeBoth("stranger", "both, for a closed app: no key; within limits that are not reached").closed(false),
	likeBoth(inbox, "both, and every visit is accepted to be counted later (answer=later)", mayBeLater, "later"),
	likeBoth("overload", "both, with --overload later: a visit that would wait longer than 20 ms is accepted to be counted later",
		mayBeLater, "later", "--max-wait", "20ms"),
	likeBoth(flash, "overload, offered as many as --visits says at twice the rate at which both has just counted for --duration", mayBeLater,
		"later", "--max-wait", "20ms"),
	likeBoth(calls, "both, but one sender sends 1,000 visits a call to POST /visits; times are those of calls"),
	{
		About: About{constant, "counts nothing and answers the same each time: what HTTP costs by itself", true},
		alone: true, overHTTP: true, arguments: []string{"contender", constant},
	},
}

// literally is a contender that counts one visit a transaction.
func literally(name, about string, way literal.Way) contender {
	return contender{
		About: About{name, about + "; takes a tenth of the visits in one process", way == literal.Baseline}, alone: true, read: literalTables,
		arguments: []string{"contender", name},
		open: func(ctx context.Context, address string) (counting, error) {
			return literal.Open(ctx, address, way, visit.DayOf(noon(), time.UTC))
		},
	}
}

// service is a contender that is Footfall itself, for an open app. Over HTTP a trusted proxy names the
// visitors, so that what their browsers say counts.
func service(name, about string, filter bool, memory int64) contender {
	open, onOff, both := "open", "off", memory
	if filter {
		onOff, both = "on", filterMemory+memory
	}
	if filter && memory == 0 {
		onOff = "only"
	}
	return contender{
		About: About{name, about, true}, layout: "open", settings: app.Settings{Access: &open}, read: serviceTables,
		open: func(ctx context.Context, address string) (counting, error) {
			return openService(ctx, address, record.Options{Filter: filter, FilterMemory: filterMemory, Memory: memory})
		},
		arguments: append(slices.Clone(behindProxy), "--filter", onOff, "--memory", strconv.FormatInt(both, 10)), proxied: true,
	}
}

// likeBoth is the service with all helpers, over HTTP alone. The last of flags that are given twice
// holds.
func likeBoth(name, about string, flags ...string) contender {
	c := service(name, about, true, memoryBytes)
	c.overHTTP, c.arguments = true, append(c.arguments, flags...)
	return c
}

// closed is a contender for an app that counts callers of one site, each within limits that no
// benchmark reaches, or whom the holder of a key asserts.
func (c contender) closed(keyed bool) contender {
	unreached, bots := "1000000000", "skip"
	c.layout, c.keyed, c.proxied = c.Name, keyed, !keyed
	c.settings = app.Settings{Sites: []string{load.Site}, MaxRequests: &unreached, MaxNewPages: &unreached}
	if keyed {
		c.settings.Bots = &bots
		for n := range 10 { // beside those of the visitors
			c.settings.Ignore = append(c.settings.Ignore, fmt.Sprintf("192.0.2.%d/28", 16*n))
		}
	}
	return c
}

// named is the contender of that name, which there is.
func named(name string) contender {
	return contenders[slices.IndexFunc(contenders, func(c contender) bool { return c.Name == name })]
}

// chosen are the contenders that the options name: where they name none, all that can do what is
// asked for.
func chosen(o Options) ([]contender, error) {
	can := slices.DeleteFunc(slices.Clone(contenders), func(c contender) bool {
		return c.overHTTP && !o.HTTP || c.alone && slices.Max(o.Preload) > 0
	})
	if o.Old != "" {
		can = append(can, contender{
			About: About{old, "what " + o.Old + " does", true}, overHTTP: true, layout: old, read: serviceTables, program: o.Old,
			arguments: behindProxy, proxied: true,
		})
	}
	var some []contender
	var there []string
	for _, c := range can {
		if there = append(there, c.Name); len(o.Contenders) == 0 || slices.Contains(o.Contenders, c.Name) {
			some = append(some, c)
		}
	}
	for _, name := range o.Contenders {
		if !slices.Contains(there, name) {
			return nil, fmt.Errorf("contenders: there is no %q here: choose from %s", name, strings.Join(there, ","))
		}
	}
	return some, nil
}
