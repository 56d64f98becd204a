package imports

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/bench/generate"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/intake/logs"
	"footfall/record"
)

// How many visits a second of a made-up log are imported, and how many of the same visits are
// counted one by one, as 256 callers at once send them, on the days on which they came. Without
// HTTP, and each into tables of its own.
func BenchmarkImport(b *testing.B) {
	set := generate.Set{Visits: 200_000, Visitors: 20_000, Pages: 5_000, Days: 12}
	var text bytes.Buffer
	require.NoError(b, generate.WriteLog(&text, set))
	file := filepath.Join(b.TempDir(), "access.log")
	require.NoError(b, os.WriteFile(file, text.Bytes(), 0o600))
	days := visitsOf(b, text.Bytes())
	require.Len(b, slices.Concat(days...), set.Visits)

	var imported, recorded time.Duration
	for b.Loop() {
		c, _ := rated(b)
		begin := time.Now()
		s, err := Run(b.Context(), c, Options{App: "big", Files: []string{file}, Rules: Rules{Methods: DefaultMethods, Statuses: DefaultStatuses},
			Notice: func(string, error) {}}, &Progress{})
		imported += time.Since(begin)
		require.NoError(b, err)
		require.EqualValues(b, set.Visits, s.Counted)

		c, now := rated(b)
		begin = time.Now()
		recordAll(b, c, now, days)
		recorded += time.Since(begin)
	}
	rate := func(took time.Duration) float64 { return float64(b.N*set.Visits) / took.Seconds() }
	b.ReportMetric(rate(imported), "imported/s")
	b.ReportMetric(rate(recorded), "recorded/s")
	b.ReportMetric(rate(imported)/rate(recorded), "×")
	b.ReportMetric(0, "ns/op") // of both together
}

// rated opens a counter on a database of its own, as serve does, and returns its clock, too.
func rated(b *testing.B) (*counter.Counter, *atomic.Pointer[time.Time]) {
	tables, err := db.Open(b.Context(), dbtest.New(b), db.Options{Writers: record.Connections()})
	require.NoError(b, err)
	b.Cleanup(tables.Close)
	open, all := "open", 0
	require.NoError(b, admin.NewAdmin(tables, nil).AddApp(b.Context(), "big", app.Settings{Access: &open, RetainDays: &all}))
	var now atomic.Pointer[time.Time]
	today := time.Now()
	now.Store(&today)
	c, err := counter.Open(b.Context(), tables, counter.Options{Options: record.Options{
		Filter: true, Memory: 64 << 20, Clock: func() time.Time { return *now.Load() },
	}})
	require.NoError(b, err)
	b.Cleanup(c.Close)
	return c, &now
}

// visitsOf are the visits that are counted of a log, by day.
func visitsOf(b *testing.B, text []byte) (days [][]counter.Request) {
	p, rules, last := logs.NewParser(logs.CombinedHost), Rules{Methods: DefaultMethods, Statuses: DefaultStatuses}, 0
	for line := range bytes.Lines(text) {
		var l logs.Line
		require.NoError(b, p.Parse(bytes.TrimSuffix(line, []byte("\n")), &l))
		if rules.leavesOut(&l, time.UTC) != "" || bytes.Contains(l.Agent, []byte("bot")) {
			continue
		}
		uri, wrong := rules.uriOf(&l)
		require.Empty(b, wrong)
		if day := l.Time.YearDay(); day != last {
			days, last = append(days, nil), day
		}
		days[len(days)-1] = append(days[len(days)-1], counter.Request{App: "big", URI: uri, IP: string(l.Client), Asserts: true,
			Agent: string(l.Agent), At: l.Time.Format(time.RFC3339)})
	}
	return days
}

func recordAll(b *testing.B, c *counter.Counter, now *atomic.Pointer[time.Time], days [][]counter.Request) {
	for _, visits := range days {
		at, err := time.Parse(time.RFC3339, visits[0].At)
		require.NoError(b, err)
		now.Store(&at)
		var next atomic.Int64
		var callers sync.WaitGroup
		for range 256 {
			callers.Go(func() {
				for n := next.Add(1) - 1; n < int64(len(visits)); n = next.Add(1) - 1 {
					live := visits[n]
					live.At = ""
					if _, err := c.Visit(b.Context(), live); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		callers.Wait()
	}
}
