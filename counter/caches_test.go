package counter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db/dbtest"
	"footfall/desk"
)

var (
	filterOnly = way{name: "filter", filter: true}
	memoryOnly = way{name: "memory", memory: 8 << 20}
	both       = way{name: "both", filter: true, memory: 8 << 20}
)

// asked returns the number of keys that an instance has looked up so far.
func (in *instance) asked(t *testing.T) int {
	t.Helper()
	return int(in.Metric(t, "footfall_existence_queries_total"))
}

// Each line is a combination of filter and memory, with the number of look-ups for a newcomer, a repeated visit and another
// page. Each visit has two keys, its page and its site.
func TestLookUpsSpared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		w                          way
		newcomer, again, otherPage int
	}{
		{plain, 2, 2, 2},
		{filterOnly, 0, 2, 1},
		{memoryOnly, 2, 0, 1},
		{both, 0, 0, 0},
		{way{name: "a filter of 64 bits", filter: true, filterMemory: 8}, 2, 2, 2},
	} {
		t.Run(c.w.name, func(t *testing.T) {
			t.Parallel()
			in := c.w.newInstance(t, counter.Options{})
			if c.w.filterMemory == 8 {
				for i := range 20 { // until its memory is used up
					in.Count(t, fmt.Sprintf("198.51.100.%d", i), "http://a/")
				}
			}
			lookUps := func(ip, uri string) int {
				before := in.asked(t)
				in.Count(t, ip, uri)
				return in.asked(t) - before
			}
			require.Equal(t, c.newcomer, lookUps("192.0.2.1", "http://a/"), "a newcomer")
			require.Equal(t, c.again, lookUps("192.0.2.1", "http://a/"), "the same again")
			require.Equal(t, c.otherPage, lookUps("192.0.2.1", "http://a/x"), "another page of the site")
			in.Check(t)
		})
	}
}

// Each of three instances knows a third of the visitors from its own counting, and treats the others as new. So an instance's
// hints are wrong for two visits in three. All numbers are right nevertheless.
func TestThreeInstancesThatKnowAThirdEach(t *testing.T) {
	t.Parallel()
	const visitors, pages = 60, 3
	first := both.newInstance(t, counter.Options{})
	instances := []*instance{first, both.startOn(t, first.URL, counter.Options{}), both.startOn(t, first.URL, counter.Options{})}
	var requests []counter.Request
	for v := range visitors {
		for p := range pages {
			requests = append(requests, counter.Request{App: "demo", IP: fmt.Sprintf("10.0.0.%d", v), URI: fmt.Sprintf("http://a/%d", p)})
		}
	}
	var model desk.Model
	epoch := time.Now()
	send := func(in *instance, r counter.Request) {
		s := desk.Seen{Visitor: r.IP, Page: strings.TrimPrefix(r.URI, "http://"), Began: int64(time.Since(epoch))}
		var err error
		if s.Answer, err = in.Visit(context.Background(), r); err != nil {
			t.Error(err)
			return
		}
		s.Got = int64(time.Since(epoch))
		model.Counted(s)
	}
	for i, r := range requests { // each instance learns its third
		send(instances[i/pages%3], r)
	}
	before := first.asked(t)
	for round := range 4 { // and then meets all visitors
		rng := rand.New(rand.NewPCG(uint64(round), 0))
		rng.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
		var wg sync.WaitGroup
		for i, r := range requests {
			wg.Go(func() { send(instances[(i+round)%3], r) })
		}
		wg.Wait()
	}
	model.Answers(t)
	first.Check(t)
	wrong := 0.0
	for _, in := range instances {
		wrong += in.Metric(t, "footfall_filter_wrong_hints_total")
		in.warnsOfNoBatch(t)
	}
	require.Positive(t, wrong, "nobody was wrong: this test tests nothing")
	require.Greater(t, first.asked(t), before)
}

// erase is the smallest form of the command that erases a visitor: the visitor moves, with their rank, to an address
// that nobody has.
const erase = `BEGIN;
	SELECT FROM counters ORDER BY page_id FOR UPDATE;
	UPDATE visitors SET ip = 'fd00::1' WHERE ip = '192.0.2.1';
	UPDATE visits SET ip = 'fd00::1' WHERE ip = '192.0.2.1';
	COMMIT`

// Nothing of an erased visitor is remembered: once the erasure has returned, a visitor from the same address is a
// newcomer in every instance.
func TestErasedVisitorIsForgotten(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		in := w.newInstance(t, counter.Options{})
		other := w.startOn(t, in.URL, counter.Options{})
		for _, one := range []*instance{in, other} {
			one.Count(t, "192.0.2.1", "http://a/")
			one.Count(t, "192.0.2.2", "http://a/")
		}
		in.Exec(t, erase)
		require.Equal(t, "3 3 3 5 | 3 3 3 5", row(in.Count(t, "192.0.2.1", "http://a/")))
		require.Equal(t, "3 3 3 6 | 3 3 3 6", row(other.Count(t, "192.0.2.1", "http://a/")))
		require.Equal(t, "3 3 2 7 | 3 3 2 7", row(other.Count(t, "192.0.2.2", "http://a/")))
		in.warnsOfNoBatch(t)
		other.warnsOfNoBatch(t)
		if w.memory > 0 || w.filter {
			require.EqualValues(t, 1, in.Metric(t, "footfall_caches_dropped_total"))
		}
	})
}

// A page that is deleted and visited again starts at zero, even if instances remember its id.
func TestDeletedPageStartsAtZero(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		in := w.newInstance(t, counter.Options{})
		in.Count(t, "192.0.2.1", "http://a/x")
		in.Count(t, "192.0.2.1", "http://b/x")
		in.Exec(t, `BEGIN;
			CREATE TEMP TABLE gone ON COMMIT DROP AS SELECT id FROM pages WHERE uri LIKE 'a%';
			DELETE FROM counters WHERE page_id IN (SELECT id FROM gone);
			DELETE FROM visits WHERE page_id IN (SELECT id FROM gone);
			DELETE FROM days WHERE page_id IN (SELECT id FROM gone);
			DELETE FROM visitors WHERE page_id IN (SELECT id FROM gone);
			DELETE FROM pages WHERE id IN (SELECT id FROM gone);
			COMMIT`)
		require.Equal(t, "1 1 1 1 | 1 1 1 1", row(in.Count(t, "192.0.2.1", "http://a/x")))
		require.Equal(t, "1 1 1 2 | 1 1 1 2", row(in.Count(t, "192.0.2.1", "http://b/x")))
		in.Check(t)
	})
}

// restored imitates a database that was reset to an earlier state: counted rows disappear, and no trigger fires.
const restored = `BEGIN;
	SET LOCAL session_replication_role = replica;
	DELETE FROM visitors; DELETE FROM visits; DELETE FROM days; DELETE FROM counters;
	COMMIT`

// After a lost connection another database may respond, so an instance drops its caches.
func TestLostConnectionForgets(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		in, c := w.newCutInstance(t)
		require.Equal(t, "1 1 1 2 | 1 1 1 2", row(in.Count(t, "192.0.2.1", "http://a/")))
		in.Exec(t, restored)
		c.cut()
		require.Eventually(t, func() bool { return <-in.start("192.0.2.1", "http://a/") == "1 1 1 1 | 1 1 1 1" }, dbtest.Patience, dbtest.Tick)
		in.Check(t)
	})
}

// The filter of a starting instance loads the tables: visitors in the tables are looked up, and other visitors are not.
func TestFilterReadsTheTables(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	_, err := in.Tables().Exec(t.Context(), `
		INSERT INTO pages (app_id, uri) VALUES (1, 'a');
		INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'a/');
		INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
		SELECT page_id, inet '10.0.0.0' + n, n, 20260101, 20260101 FROM generate_series(1, 50000) AS n, (VALUES (1), (2)) AS p (page_id);
		INSERT INTO counters (page_id, hot, pv, uv) VALUES (1, 50000, 50000, 50000), (2, 50000, 50000, 50000)`)
	require.NoError(t, err)
	late := filterOnly.startOn(t, in.URL, counter.Options{})
	// The filter does not count a key that it mistakes for one it already has.
	require.InDelta(t, 100_000, late.Metric(t, "footfall_filter_keys"), 100)
	require.Less(t, late.Metric(t, "footfall_filter_error_ratio"), 1e-3)
	for _, ip := range []string{"10.0.0.1", "10.0.78.31", "10.0.195.80"} { // the first, one in the middle, the last
		late.Count(t, ip, "http://a/")
	}
	require.Equal(t, 6, late.asked(t), "the filter has these visitors")
	require.Equal(t, "50004 50001 50001 50004 | 50004 50001 50001 50004", row(late.Count(t, "192.0.2.1", "http://a/")))
	require.Equal(t, 6, late.asked(t), "the visitor is new, and was not looked up")
	require.Zero(t, late.Metric(t, "footfall_filter_wrong_hints_total"))
}

// Visitors counted by another process are not treated as new after that process has notified the instances.
func TestFilterReadsWhatAnotherProcessCounted(t *testing.T) {
	t.Parallel()
	in := filterOnly.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.250", "http://a/")
	other := plain.startOn(t, in.URL, counter.Options{})
	g := other.counting(t)
	items := make([]counter.Item, 500)
	for i := range items {
		items[i] = counter.Item{URI: "http://a/", IP: fmt.Sprintf("198.51.%d.%d", i/250, i%250)}
	}
	for _, got := range g.Recorder().RecordChunk(chunkOf(t, g, nil, items...)) {
		require.NoError(t, got.Err)
	}
	in.Count(t, items[0].IP, items[0].URI)
	wrong := in.Metric(t, "footfall_filter_wrong_hints_total")
	require.Positive(t, wrong, "the database had the visitor, and the filter was not notified")
	require.NoError(t, g.ReloadVisitors(t.Context()))
	for _, item := range items[1:100] {
		in.Count(t, item.IP, item.URI)
	}
	require.Equal(t, wrong, in.Metric(t, "footfall_filter_wrong_hints_total"))
	in.Check(t)
}

// The memory is bounded, and evicted entries are looked up again.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const bytes = 64 << 10
	in := way{memory: bytes}.newInstance(t, counter.Options{})
	var wg sync.WaitGroup
	for client := range 50 {
		wg.Go(func() {
			for i := client; i < 2000; i += 50 {
				in.Count(t, fmt.Sprintf("10.0.%d.%d", i/250, i%250), "http://a/")
			}
		})
	}
	wg.Wait()
	held := in.Metric(t, "footfall_memory_bytes")
	require.LessOrEqual(t, held, float64(bytes))
	require.Greater(t, held, float64(bytes)/4)
	before := in.asked(t)
	require.EqualValues(t, 2000, in.Count(t, "10.0.0.0", "http://a/").Page.UV)
	require.Equal(t, before+2, in.asked(t), "the first is long forgotten")
	in.Check(t)
}

// All combinations of filter and memory lead to the same rows.
func TestSameTablesEveryWay(t *testing.T) {
	t.Parallel()
	var want []string
	for _, w := range ways {
		in := w.newInstance(t, counter.Options{})
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range 120 {
			if i%30 == 29 {
				in.Clock.Set(in.Clock.Now().Add(24 * time.Hour))
			}
			in.Count(t, fmt.Sprintf("10.0.0.%d", rng.IntN(20)), fmt.Sprintf("http://s%d.example/%d", rng.IntN(2), rng.IntN(4)))
		}
		rows, err := in.Tables().Query(t.Context(), `
			SELECT p.uri || ' ' || c::text FROM counters AS c JOIN pages AS p ON p.id = c.page_id
			UNION ALL SELECT v::text FROM visitors AS v
			UNION ALL SELECT v::text FROM visits AS v
			ORDER BY 1`)
		require.NoError(t, err)
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		if want == nil {
			want = got
		}
		require.Equal(t, want, got, w.name)
	}
}
