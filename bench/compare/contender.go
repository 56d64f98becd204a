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
	literal bool // counts one visit per transaction, on its own tables; gets fewer visits

	// open starts counting in a database, in this process. After the result is closed, read returns the content of the
	// tables.
	open func(ctx context.Context, address string) (counting, error)
	read func(ctx context.Context, address string) (storedNumbers, error)

	// The following fields are for contenders over HTTP.
	program   string   // program of another version; "": the version under test
	arguments []string // without addresses and database; empty: not compared over HTTP
}

// Contenders used as references, or looked up by name.
const (
	naive    = "naive"
	baseline = "baseline"
	batched  = "batched"
	both     = "batched+both"
	old      = "old"
)

// Default memory of the filter, and of the memory of recent visitors, in `footfall serve`.
const (
	filterMemory = 256 << 20
	memoryBytes  = 64 << 20
)

var behindProxy = []string{"serve", "--max-wait", "10s", "--trust-proxy", "127.0.0.1"}

// contenders in display order. Contenders that are not exact may be wrong: their errors are counted and shown.
var contenders = []contender{
	literally(naive, "one visit per transaction: look up the visitor, insert if new, add to the counters; wrong for concurrent visits",
		literal.Naive),
	literally("naive+filter", "naive, but a visitor whom a Bloom filter reports as new is not looked up", literal.NaiveFilter),
	literally(baseline, "one visit per transaction, in one round trip: INSERT … ON CONFLICT DO NOTHING and counter upserts; exact",
		literal.Baseline),
	service(batched, "Footfall without helpers: waiting visits are counted in one transaction", false, 0),
	service("batched+filter", "batched, and a filter of all visitors saves look-ups of new ones", true, 0),
	service("batched+memory", "batched, and a memory of recent visitors saves look-ups of these", false, memoryBytes),
	service(both, "batched with filter and memory, like `footfall serve`", true, memoryBytes),
}

// literally returns a contender that counts one visit per transaction.
func literally(name, about string, way literal.Way) contender {
	return contender{
		About: About{name, about + "; takes a tenth of the visits", way == literal.Baseline}, literal: true, read: literalTables,
		open: func(ctx context.Context, address string) (counting, error) {
			return literal.Open(ctx, address, way, visit.DayOf(noon(), time.UTC))
		},
	}
}

// service returns a contender that is Footfall itself. Over HTTP, requests look like requests of a trusted proxy, which
// names the visitor. Footfall then uses the browser's headers.
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

// chosen returns the contenders that the options name. If they name none, it returns all contenders that
// support the options.
func chosen(o Options) ([]contender, error) {
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
