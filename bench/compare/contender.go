package compare

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"footfall/bench/literal"
	"footfall/record"
	"footfall/visit"
)

// contender is one of the compared ways of counting.
type contender struct {
	About
	literal bool // counts one visit per transaction, with package literal; gets fewer visits, because it is slow

	// open starts the contender in this process, with the database at address. After the contender was closed, read returns
	// the numbers that it has stored.
	open func(ctx context.Context, address string) (counting, error)
	read func(ctx context.Context, address string) (storedNumbers, error)

	// The following fields are only used over HTTP.
	program   string   // path of the program of another version; "": the version under test
	arguments []string // of the program, without addresses and database; empty: only compared in this process
}

// Names of the contenders with which others are compared.
const (
	naive    = "naive"
	baseline = "baseline"
	batched  = "batched"
	both     = "batched+both"
	old      = "old"
)

// Default sizes in `footfall serve`, in bytes: filterMemory for the filter of all visitors, and memoryBytes for the memory
// of recent visitors.
const (
	filterMemory = 256 << 20
	memoryBytes  = 64 << 20
)

var behindProxy = []string{"serve", "--max-wait", "10s", "--trust-proxy", "127.0.0.1"}

// contenders contains all contenders, in the order in which reports show them. A contender that does not promise exact
// numbers may count wrong ones. The report shows by how much.
var contenders = []contender{
	newLiteral(naive, "one visit per transaction: look up the visitor, insert if new, add to the counters; wrong for concurrent visits",
		literal.Naive),
	newLiteral("naive+filter", "naive, but a visitor whom a Bloom filter reports as new is not looked up", literal.NaiveFilter),
	newLiteral(baseline, "one visit per transaction, in one round trip: INSERT … ON CONFLICT DO NOTHING and counter upserts; exact",
		literal.Baseline),
	service(batched, "Footfall without helpers: waiting visits are counted in one transaction", false, 0),
	service("batched+filter", "batched, and a filter of all visitors saves look-ups of new ones", true, 0),
	service("batched+memory", "batched, and a memory of recent visitors saves look-ups of these", false, memoryBytes),
	service(both, "batched with filter and memory, like `footfall serve`", true, memoryBytes),
}

// newLiteral returns a contender that counts one visit per transaction, with package literal.
func newLiteral(name, about string, way literal.Way) contender {
	return contender{
		About: About{name, about + "; gets only a tenth of the visits", way == literal.Baseline}, literal: true, read: literalTables,
		open: func(ctx context.Context, address string) (counting, error) {
			return literal.Open(ctx, address, way, visit.DayOf(noon(), time.UTC))
		},
	}
}

// service returns a contender that is Footfall itself, with or without its filter and its memory of recent visitors. Over
// HTTP, the benchmark acts as a trusted proxy: a header of each request contains the visitor's address. Footfall then also
// reads the browser's headers, as it does for real visitors.
func service(name, about string, filter bool, memory int64) contender {
	onOff, both := "off", memory
	if filter {
		onOff, both = "on", filterMemory+memory
	}
	if filter && memory == 0 {
		onOff = "only"
	}
	return contender{
		About: About{name, about, true}, read: serviceTables,
		open: func(ctx context.Context, address string) (counting, error) {
			return openService(ctx, address, record.Options{Filter: filter, FilterMemory: filterMemory, Memory: memory})
		},
		arguments: append(slices.Clone(behindProxy), "--filter", onOff, "--memory", strconv.FormatInt(both, 10)),
	}
}

// chooseContenders returns the contenders that o.Contenders names. If this list is empty, it returns all contenders that
// are possible with the other options.
func chooseContenders(o Options) ([]contender, error) {
	can := slices.DeleteFunc(slices.Clone(contenders), func(c contender) bool {
		return o.HTTP && c.literal
	})
	if o.Old != "" {
		can = append(
			can,
			contender{About: About{old, "the program " + o.Old, true}, read: serviceTables, program: o.Old, arguments: behindProxy},
		)
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
			return nil, fmt.Errorf("contenders: %q is not one of them: choose from %s", name, strings.Join(there, ","))
		}
	}
	return some, nil
}
