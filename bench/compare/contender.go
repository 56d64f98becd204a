package compare

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"footfall/bench/literal"
	"footfall/counter"
	"footfall/record"
	"footfall/visit"
)

// contender is one way of counting that is compared with the others.
type contender struct {
	About
	alone    bool // counts one visit a transaction, on tables of its own, and gets fewer visits
	overHTTP bool // cannot be compared in this process

	// setUp makes an empty database ready, outside of what is measured, with so many rows of
	// visitors. Contenders of one layout share the database that it made: each gets copies. It
	// returns the key that visits show; "": none.
	setUp  func(ctx context.Context, address string, preload int) (key string, err error)
	layout string
	// open begins to count in the database, in this process. What it returns must be closed.
	open func(ctx context.Context, address string) (counting, error)
	// read returns what the tables hold after it was closed.
	read func(ctx context.Context, address string) (standing, error)

	// Over HTTP: the program of another version; its arguments behind those that say where it listens
	// and what it counts in; and whether a proxy tells who came, or the caller asserts it.
	program   string
	arguments []string
	proxied   bool
	inbox     bool   // visits may go to the inbox
	query     string // that each visit has besides
}

// counting is a contender that counts.
type counting interface {
	visit(ctx context.Context, r counter.Request) (visit.Answer, error)
	spent() (spending, error)
	close()
}

// spending is what a contender has used up so far.
type spending struct {
	asked   float64 // existence queries
	helpers int64   // bytes of its filter and memory
	outside int64   // of these, bytes that the Go heap does not hold
}

// The contenders that others are compared with, and that are looked for by their names.
const (
	naive    = "naive"
	batched  = "batched"
	both     = "batched+both"
	old      = "old"
	calls    = "calls"
	flash    = "flash"
	constant = "constant"
)

// What the helpers of `footfall serve` may take by default.
const (
	filterMemory = 256 << 20
	memoryBytes  = 64 << 20
)

// contenders in the order of the tables. Who promises no exactness is not held to it: what it gets
// wrong is counted and shown.
var contenders = []contender{
	literally(naive, "one visit a transaction: look the visitor up, insert or not, add to the counters; wrong when two visits meet", literal.Naive),
	literally("naive+filter", "naive, but what a Bloom filter calls surely new is not looked up", literal.NaiveFilter),
	literally("believed", "one visit a transaction, and what the filter seems to know counts as known: loses new visitors", literal.Believed),
	literally("baseline", "one visit a transaction, in one round trip: INSERT … ON CONFLICT DO NOTHING and counter upserts; exact", literal.Baseline),
	service(batched, "Footfall without helpers: visits that wait are counted in one transaction", record.Options{}),
	service("batched+filter", "batched, and a filter of all visitors spares look-ups of new ones", record.Options{Filter: true, FilterMemory: filterMemory}),
	service("batched+memory", "batched, and a memory of recent visitors spares look-ups of those", record.Options{Memory: memoryBytes}),
	service(both, "batched with filter and memory: what `footfall serve` does", record.Options{Filter: true, FilterMemory: filterMemory, Memory: memoryBytes}),
	guarded("guarded", "both, for a closed app: asserted with a key; every limit is set, and none is reached; crawlers are looked for, 10 networks are ignored", false),
	guarded("stranger", "both, for a closed app: the visitor's own address as a trusted proxy's header tells it, no key; limits and crawlers as guarded", true),
	later("inbox", "both, and every visit is accepted to be counted later (answer=later)", "10s", "&answer=later"),
	later("overload", "both, with --overload later: a visit that would wait longer than 20 ms is accepted to be counted later", "20ms", ""),
	flashSale(),
	called(),
	{About: About{constant, "counts nothing and answers the same each time: what HTTP costs by itself", true}, alone: true, overHTTP: true, arguments: []string{"contender", constant}},
}

// literally is a contender that counts one visit a transaction.
func literally(name, about string, way literal.Way) contender {
	return contender{
		About: About{name, about, way == literal.Baseline}, alone: true,
		open: func(ctx context.Context, address string) (counting, error) { return openLiterally(ctx, address, way) },
		read: literalTables, arguments: []string{"contender", name},
	}
}

// service is a contender that is Footfall itself.
func service(name, about string, helpers record.Options) contender {
	filter := "off"
	if helpers.Filter {
		filter = "on"
	}
	return contender{
		About: About{name, about, true}, layout: "open", setUp: setUpOpen,
		open:      func(ctx context.Context, address string) (counting, error) { return openService(ctx, address, helpers) },
		read:      serviceTables,
		arguments: []string{"serve", "--max-wait", "10s", "--filter", filter, "--memory", strconv.FormatInt(helpers.Memory, 10)},
	}
}

// guarded is the service as it is used where not everybody may count.
func guarded(name, about string, proxied bool) contender {
	c := service(name, about, record.Options{Filter: true, Memory: memoryBytes})
	c.overHTTP, c.proxied, c.layout, c.setUp = true, proxied, name, setUpGuarded
	if proxied {
		c.arguments, c.setUp = append(c.arguments, "--trust-proxy", "127.0.0.1"), setUpStranger
	}
	return c
}

// later is the service where visits go to the inbox, from which all are counted before its tables
// are read.
func later(name, about, maxWait, query string) contender {
	c := service(name, about, record.Options{Filter: true, FilterMemory: filterMemory, Memory: memoryBytes})
	c.overHTTP, c.inbox, c.query = true, true, query
	c.arguments = append(c.arguments, "--overload", "later", "--max-wait", maxWait) // the last one holds
	return c
}

// flashSale is the service where more visits come than it can count.
func flashSale() contender {
	return later(flash, "overload, offered as many as --visits says at twice the rate at which both has just counted for --duration", "20ms", "")
}

// called is the service, sent many visits a call.
func called() contender {
	c := service(calls, "both, but one sender sends 1,000 visits a call to POST /visits; times are those of calls",
		record.Options{Filter: true, FilterMemory: filterMemory, Memory: memoryBytes})
	c.overHTTP = true
	return c
}

// another is the service as another version's program runs it.
func another(program string) contender {
	return contender{
		About: About{old, "what " + program + " does", true}, overHTTP: true, layout: old, read: serviceTables, program: program,
		setUp: func(ctx context.Context, address string, preload int) (string, error) {
			return setUpByProgram(ctx, program, address, preload)
		},
		arguments: []string{"serve", "--max-wait", "10s"},
	}
}

// commandLine is that of a contender's process.
func (c contender) commandLine(addr, admin, address string) []string {
	all := append(slices.Clone(c.arguments), "--addr", addr)
	if c.Name != constant {
		all = append(all, "--database-url", address)
	}
	if !c.alone {
		all = append(all, "--admin-addr", admin)
	}
	return all
}

func (c contender) title() string { return c.Name }

// chosen are the contenders that the options name: where they name none, all that can do what is
// asked for.
func chosen(o Options) ([]contender, error) {
	can := slices.DeleteFunc(slices.Clone(contenders), func(c contender) bool {
		return c.overHTTP && !o.HTTP || c.alone && slices.Max(o.Preload) > 0
	})
	if o.Old != "" {
		can = append(can, another(o.Old))
	}
	return named("contenders", can, contender.title, o.Contenders)
}

// named picks those with the names, in the order of all; all where none is named.
func named[T any](what string, all []T, name func(T) string, names []string) ([]T, error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, one := range all {
		known = append(known, name(one))
	}
	for _, asked := range names {
		if !slices.Contains(known, asked) {
			return nil, fmt.Errorf("%s: there is no %q here: choose from %s", what, asked, strings.Join(known, ","))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !slices.Contains(names, name(one)) }), nil
}
