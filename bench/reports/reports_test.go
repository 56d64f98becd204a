package reports

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench/generate"
	"footfall/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// small is few enough for a test, and many enough that visitors come again to a page, and on a day.
var small = generate.Set{
	App: "small", Visits: 6000, Days: 20, Until: time.Date(2026, 6, 29, 13, 0, 0, 0, time.UTC), Pages: 400, Visitors: 2000, Sites: 4,
}

// prepared is a run on tables that have been generated.
func prepared(t *testing.T, samples int) *asking {
	t.Helper()
	r := &asking{Options: Options{Samples: samples}, made: small, address: dbtest.New(t), report: &Report{}}
	require.NoError(t, r.prepare(t.Context()))
	return r
}

// Uniques are compared on tables of the benchmark's own, and a fault in them is found.
func TestUniquesAreCompared(t *testing.T) {
	t.Parallel()
	r := prepared(t, 60)
	require.NoError(t, r.compareUniques(t.Context()))
	assert.Empty(t, r.report.Wrong)
	assert.Equal(t, 60, r.report.Rows[0].Requests)

	_, err := dbtest.Connect(t, r.address).Exec(t.Context(), `
		SELECT add_packed_returns(array_agg(page_id), array_agg(day_id), array_agg(previous_day), array_agg(1::bigint))
		FROM returns WHERE page_id IN (SELECT id FROM pages WHERE site_id IS NULL)`)
	require.NoError(t, err)
	require.NoError(t, r.compareUniques(t.Context()))
	assert.NotEmpty(t, r.report.Wrong)
}

// Somebody else's numbers are not added to.
func TestOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	r := prepared(t, 1)
	assert.Len(t, r.world.sites, small.Sites)
	assert.Len(t, r.world.days, small.Days+1) // today
	r.made.App = "another"
	require.ErrorContains(t, r.prepare(t.Context()), "data: the app small has counted there")
}

func TestRandomDays(t *testing.T) {
	t.Parallel()
	w := &world{days: []int32{1, 2, 3, 4, 5}}
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // to be repeated
	seen := map[[2]int32]int{}
	for range 1000 {
		from, to := w.randomDays(random, 2)
		seen[[2]int32{from, to}]++
	}
	assert.Len(t, seen, 4)
	assert.Greater(t, seen[[2]int32{4, 5}], 500)
	from, to := w.randomDays(random, 60)
	assert.Equal(t, []int32{1, 5}, []int32{from, to})
}

func TestPrint(t *testing.T) {
	t.Parallel()
	r := &Report{Notes: []string{"all was verified"}}
	r.add("quick", slices.Repeat([]time.Duration{time.Millisecond}, 100), 0)
	var out strings.Builder
	r.Print(&out)
	assert.Regexp(t, `quick +100 +- +1\.00 +1\.00 +1\.00`, out.String())
	assert.Contains(t, out.String(), "all was verified")
}
