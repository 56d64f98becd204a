package reports

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench"
	"footfall/bench/generate"
	"footfall/bench/load"
	"footfall/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// The benchmark adds visits only to generated data.
func TestOnlyGeneratedDataIsChanged(t *testing.T) {
	t.Parallel()
	r := &measurement{address: dbtest.New(t), report: &Report{}}
	require.ErrorContains(t, r.prepare(t.Context()), "data: the database has visits of 0 apps")
	small := generate.Set{App: "small", Visits: 600, Days: 9, Until: time.Date(2026, 6, 29, 13, 0, 0, 0, time.UTC), Pages: 40, Visitors: 200,
		Sites: 4}
	require.NoError(t, generate.Run(t.Context(), bench.Options{DatabaseURL: r.address}, small))
	require.NoError(t, r.prepare(t.Context()))
	assert.Equal(t, "small", r.app)
	assert.Len(t, r.sites, 4)
	assert.NotEmpty(t, r.dayVisits)
	small.App = "another"
	require.NoError(t, generate.Run(t.Context(), bench.Options{DatabaseURL: r.address}, small))
	require.ErrorContains(t, r.prepare(t.Context()), "data: the database has visits of 2 apps")
}

func TestPrint(t *testing.T) {
	t.Parallel()
	waits := slices.Repeat([]time.Duration{time.Millisecond}, 100)
	r := &Report{Notes: []string{"all was verified"}, Rows: []Row{{"quick", load.MeasureOf(waits, 0)}}}
	var out strings.Builder
	r.Print(&out)
	assert.Regexp(t, `quick +100 +- +1\.00 +1\.00 +1\.00`, out.String())
	assert.Contains(t, out.String(), "all was verified")
}
