package bench

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

func TestReportsRefuses(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]ReportsOptions{
		`parts: there is no "speed"`: {Parts: []string{"speed"}},
		"-1 visits a second":         {Rate: -1},
	} {
		_, err := Reports(t.Context(), o)
		assert.ErrorContains(t, err, want)
	}
}

// Uniques are compared on tables of the benchmark's own, and a fault in them is found.
func TestReportsCompare(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	small := smallSet(address)
	conn := generateSmall(t, small)
	r := &reportsRun{ReportsOptions: ReportsOptions{Samples: 60, Made: small}, address: address, report: &ReportsReport{}}
	r.complete()
	require.NoError(t, r.prepare(t.Context()))
	require.NoError(t, r.compareUniques(t.Context()))
	assert.Empty(t, r.report.Uniques.Different)
	assert.Equal(t, 3, r.report.Uniques.Sites)
	require.NoError(t, r.report.untrue())

	_, err := conn.Exec(t.Context(), "UPDATE returns SET visitors = visitors + 1 WHERE page_id IN (SELECT id FROM pages WHERE site_id IS NULL)")
	require.NoError(t, err)
	require.NoError(t, r.compareUniques(t.Context()))
	assert.NotEmpty(t, r.report.Uniques.Different)
	require.ErrorIs(t, r.report.untrue(), ErrUntrue)
}

// Somebody else's numbers are not added to.
func TestReportsLeaveOthersAlone(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	small := smallSet(address)
	generateSmall(t, small)
	o := small
	o.App = "another"
	r := &reportsRun{ReportsOptions: ReportsOptions{Made: o}, address: address, report: &ReportsReport{}}
	r.complete()
	require.ErrorContains(t, r.prepare(t.Context()), "data: the app small has counted there")
}

// Every question in SQL is answered to somebody who may read reports and nothing else.
func TestReportsAsked(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	small := smallSet(address)
	generateSmall(t, small)
	r := &reportsRun{ReportsOptions: ReportsOptions{Made: small}, address: address, report: &ReportsReport{}}
	r.complete()
	require.NoError(t, r.prepare(t.Context()))
	assert.Len(t, r.world.sites, small.Sites)
	assert.Len(t, r.world.days, small.Days+1) // today
	require.NoError(t, r.askAs(t.Context(), 1, func(a *asker) error {
		for _, q := range sqlQuestions() {
			for range 3 {
				require.NoError(t, q.ask(t.Context(), a), q.name)
			}
		}
		_, err := a.q.TargetsInOrder(t.Context(), r.world.appID)
		require.ErrorContains(t, err, "does not exist", "the tables are open to it")
		return nil
	}))
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

func TestReportsReport(t *testing.T) {
	t.Parallel()
	f := &AnswerFigures{REST: true}
	f.add("quick", slices.Repeat([]time.Duration{time.Millisecond}, 100))
	f.add("slow", slices.Repeat([]time.Duration{51 * time.Millisecond}, 100))
	f.add(readsAll, slices.Repeat([]time.Duration{51 * time.Millisecond}, 100))
	assert.Equal(t, []string{"slow"}, f.TookLong)
	var out strings.Builder
	(&ReportsReport{
		Answers: f, Uniques: &UniquesFigures{Ranges: 7, Different: []string{"a/b"}},
	}).Print(&out)
	assert.Equal(t, 1, strings.Count(out.String(), "MISSED"), out.String())
	assert.Equal(t, 1, strings.Count(out.String(), "held"), out.String())
	assert.Contains(t, out.String(), "! a/b")
}
