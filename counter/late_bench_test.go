package counter_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/desk"
	"footfall/record"
	"footfall/visit"
)

// How many late visits a second are counted, by how many days their visitors came later: each of
// 2,000 visitors comes to one of 100 pages of a site on each of these days, and then, late, on one
// earlier day after the other. The later days are open, or closed and packed. In order: the same
// visitors come on a day after the other, which live visits are counted like.
func BenchmarkLateVisits(b *testing.B) {
	b.Run("in-order", func(b *testing.B) { lateVisits(b, 0, false, 0) })
	for _, closed := range []bool{false, true} {
		for _, later := range []int{1, 5, 30, 100} {
			b.Run(fmt.Sprintf("closed=%v/later=%d", closed, later), func(b *testing.B) { lateVisits(b, later, closed, 0) })
		}
	}
	for _, later := range []int{1, 5} {
		b.Run(fmt.Sprintf("partitions=1800/later=%d", later), func(b *testing.B) { lateVisits(b, later, false, 1800) })
	}
}

const lateVisitors = 2000

func lateVisits(b *testing.B, later int, closed bool, partitions int) {
	in := ways[3].newInstance(b, counter.Options{})
	in.Exec(b, `UPDATE apps SET retain_days = 0`)
	require.NoError(b, in.DB.WaitForInstances(context.Background(), time.Minute))
	g, err := in.AuthorizeCounting(b.Context(), counter.Request{App: "demo"})
	require.NoError(b, err)
	today := desk.Noon
	for day := later - 1; day >= 0; day-- {
		countDay(b, g, today.AddDate(0, 0, -day))
	}
	if closed {
		in.closeAll(b, 20260630)
	}
	for n := range partitions {
		_, err := in.DB.MakeDays(b.Context(), visit.DayOf(today.AddDate(0, 0, -n), time.UTC))
		require.NoError(b, err)
	}
	day := today.AddDate(-1, 0, 0)
	b.ResetTimer()
	for b.Loop() {
		countDay(b, g, day)
		day = day.AddDate(0, 0, 1)
	}
	b.ReportMetric(float64(b.N*lateVisitors)/b.Elapsed().Seconds(), "visits/s")
}

// countDay counts one visit of each visitor.
func countDay(b *testing.B, g *counter.Counting, at time.Time) {
	var steps []record.Step
	for n := range lateVisitors {
		ip := fmt.Sprintf("10.0.%d.%d", n/250, n%250)
		v, _, err := g.Visit(b.Context(), counter.Item{URI: fmt.Sprintf("http://a.example/%d", n%100), IP: ip, At: at})
		require.NoError(b, err)
		steps = append(steps, record.Step{Visit: &v, Position: &record.Position{}, Next: 1})
	}
	for len(steps) > 0 {
		n := min(g.Recorder().ChunkVisits(), len(steps))
		require.False(b, slices.ContainsFunc(g.Recorder().RecordChunk(steps[:n]), func(r record.Result) bool { return r.Err != nil }))
		steps = steps[n:]
	}
}
