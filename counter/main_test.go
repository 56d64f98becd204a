package counter_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// A visitor without a key: an address and the agent of a browser.
var peer = netip.MustParseAddr("192.0.2.1")

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// instance is a running counter with a desk to inspect it.
type instance struct{ *desk.Desk }

// warnsOfNoBatch checks that no batch was worth a warning, because every fault in it was expected.
func (in *instance) warnsOfNoBatch(t *testing.T) {
	t.Helper()
	require.NotContains(t, in.Log.String(), "a batch did not commit at once")
}

// way is a combination of filter and memory. They save look-ups, and must not change any number.
type way struct {
	name         string
	long         bool // left out of short runs
	filter       bool
	filterMemory int64
	memory       int64
}

var plain = way{name: "plain", long: true}

var ways = []way{
	plain,
	{name: "filter", long: true, filter: true},
	{name: "memory", long: true, memory: 8 << 20},
	{name: "both", filter: true, memory: 8 << 20},
	{name: "filter of 64 bits", long: true, filter: true, filterMemory: 8, memory: 8 << 20},
}

// everyWay runs a test with each combination of filter and memory. Short runs use both, as the service does.
func everyWay(t *testing.T, test func(t *testing.T, w way)) {
	t.Parallel()
	for _, w := range ways {
		if w.long && testing.Short() {
			continue // TestSameTablesEveryWay includes all
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

// newInstance starts a counter on a new database, with an open app "demo".
func (w way) newInstance(t testing.TB, o counter.Options) *instance {
	t.Helper()
	return w.startOn(t, desk.Database(t, desk.Options{}), o)
}

// startOn starts another counter on a database. When it returns, the filter has loaded the tables.
func (w way) startOn(t testing.TB, url string, o counter.Options) *instance {
	t.Helper()
	o.Filter, o.FilterMemory, o.Memory = w.filter, w.filterMemory, w.memory
	return &instance{desk.On(t, url, desk.Options{Options: o})}
}

// keepsUp starts another instance, which also runs the scheduled work at once.
func keepsUp(t testing.TB, url string, o counter.Options) *instance {
	t.Helper()
	return &instance{desk.On(t, url, desk.Options{Options: o, Upkeep: true})}
}

// row formats site and page as in the contract's table: pv uv rank hot.
func row(a visit.Answer) string {
	text := func(c visit.Counts) string { return fmt.Sprintf("%d %d %d %d", c.PV, c.UV, c.Rank, c.Hot) }
	return text(a.Site) + " | " + text(a.Page)
}
