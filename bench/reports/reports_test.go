package reports

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench/generate"
	"footfall/bench/load"
	"footfall/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// Somebody else's numbers are not added to.
func TestOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	small := generate.Set{App: "small", Visits: 600, Days: 9, Until: time.Date(2026, 6, 29, 13, 0, 0, 0, time.UTC), Pages: 40, Visitors: 200,
		Sites: 4}
	r := &asking{app: "small", address: dbtest.New(t), report: &Report{}}
	require.NoError(t, r.prepare(t.Context(), small))
	assert.Len(t, r.sites, 4)
	assert.NotEmpty(t, r.came)
	r.app = "another"
	require.ErrorContains(t, r.prepare(t.Context(), small), "data: the app small has counted there")
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
