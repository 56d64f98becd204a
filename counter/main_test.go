package counter_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// A stranger: an address, and what a browser calls itself.
var peer = netip.MustParseAddr("192.0.2.1")

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 6, 29, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// instance is a running counter, and what a test needs to look behind it.
type instance struct {
	*counter.Counter
	db      *db.DB
	url     string
	clock   *clock
	metrics *prometheus.Registry
	log     *dbtest.Log // from the level of a warning on

	pool struct { // what tables returns
		once sync.Once
		*pgxpool.Pool
	}
}

// warnsOfNoBatch checks that no batch was worth a warning: what it met is expected.
func (in *instance) warnsOfNoBatch(t *testing.T) {
	t.Helper()
	require.NotContains(t, in.log.String(), "a batch did not commit at once")
}

// way is a combination of filter and memory. What they save must not show in any number.
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

// everyWay runs a test with each combination of filter and memory; in short runs with both, as the
// service has them.
func everyWay(t *testing.T, test func(t *testing.T, w way)) {
	t.Parallel()
	for _, w := range ways {
		if w.long && testing.Short() {
			continue // TestSameTablesEveryWay leaves none out
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

// newInstance starts a counter on a database of its own, with an open app "demo".
func (w way) newInstance(t testing.TB, o counter.Options) *instance {
	t.Helper()
	return w.startOn(t, dbtest.Made(t, "demo", newClock().Now(), func(d *db.DB) {
		open := "open"
		require.NoError(t, admin.NewAdmin(d, nil).AddApp(t.Context(), "demo", app.Settings{Access: &open}))
	}), o)
}

// startOn starts one more counter on a database. Its filter has read the tables when this returns.
func (w way) startOn(t testing.TB, url string, o counter.Options) *instance {
	t.Helper()
	in := &instance{url: url, clock: newClock(), db: dbtest.Open(t, url, db.Options{}), metrics: prometheus.NewRegistry(), log: new(dbtest.Log)}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(in.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	o.Metrics, o.Secret = in.metrics, secret
	o.Filter, o.FilterMemory, o.Memory = w.filter, w.filterMemory, w.memory
	if o.Clock == nil {
		o.Clock = in.clock.Now
	}
	if o.MaxWait == 0 {
		o.MaxWait = time.Minute // a slow machine refuses nobody
	}
	var err error
	in.Counter, err = counter.Open(t.Context(), in.db, o)
	require.NoError(t, err)
	t.Cleanup(in.Close)
	if w.filter {
		in.warm(t)
	}
	return in
}

// warm waits until the filter gives hints.
func (in *instance) warm(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool { return in.metric(t, "footfall_filter_ready") == 1 }, dbtest.Patience, dbtest.Tick)
}

// metric is the sum over all labels of a counter or gauge.
func (in *instance) metric(t testing.TB, name string) (sum float64) {
	t.Helper()
	families, err := in.metrics.Gather()
	require.NoError(t, err)
	found := false
	for _, f := range families {
		if f.GetName() == name {
			found = true
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	require.True(t, found, "there is no metric %s", name)
	return sum
}

// count counts one visit, which must succeed.
func (in *instance) count(t *testing.T, ip, uri string) visit.Answer {
	t.Helper()
	a, err := in.Visit(t.Context(), counter.Request{App: "demo", IP: ip, URI: uri})
	require.NoError(t, err)
	return a
}

// conn is a connection of the test's own, past everything of Footfall's but the schema.
func (in *instance) conn(t testing.TB) *pgx.Conn {
	t.Helper()
	return dbtest.Connect(t, in.url)
}

// tables is conn for statements that need no session of their own.
func (in *instance) tables(t testing.TB) *pgxpool.Pool {
	t.Helper()
	in.pool.once.Do(func() {
		cfg, err := pgxpool.ParseConfig(in.url)
		require.NoError(t, err)
		cfg.ConnConfig.RuntimeParams["search_path"] = db.Schema
		cfg.MaxConns = 20 // a test may hold several, and locks on them
		in.pool.Pool, err = pgxpool.NewWithConfig(context.Background(), cfg)
		require.NoError(t, err)
		t.Cleanup(in.pool.Close)
	})
	return in.pool.Pool
}

func (in *instance) exec(t testing.TB, sql string) {
	t.Helper()
	_, err := in.tables(t).Exec(context.Background(), sql)
	require.NoError(t, err)
}

// checkTables holds the promises on totals against the tables: a line of text for each that is
// broken.
func (in *instance) checkTables(t *testing.T) {
	t.Helper()
	rows, err := in.tables(t).Query(context.Background(), `
		WITH proof AS (
			SELECT p.id, p.site_id, p.uri, coalesce(c.pv, 0) AS pv, coalesce(c.uv, 0) AS uv, coalesce(c.hot, 0) AS hot,
			       coalesce(r.visitors, 0) AS visitors, coalesce(r.last_rank, 0) AS last_rank, coalesce(v.days, 0) AS days
			FROM pages p LEFT JOIN counters c ON c.page_id = p.id LEFT JOIN (
				SELECT page_id, count(*) AS visitors, max(rank) AS last_rank
				FROM (SELECT page_id, rank FROM visitors UNION ALL SELECT page_id, rank FROM erased_ranks) AS r
				GROUP BY page_id
			) AS r ON r.page_id = p.id LEFT JOIN (
				SELECT page_id, sum(visitors) AS days
				FROM (
					SELECT page_id, day_id, 1 AS visitors, true AS kept FROM visits
					UNION ALL
					SELECT page_id, day_id, visitors, true FROM erased_visits
					UNION ALL
					SELECT page_id, day_id, pv, false FROM days
				) AS v JOIN pages p ON p.id = v.page_id LEFT JOIN visits_kept k USING (app_id)
				WHERE kept = (day_id >= coalesce(k.from_day, 0))
				GROUP BY page_id
			) AS v ON v.page_id = p.id
		)
		SELECT format('%s: pv %s uv %s hot %s, but %s visitors, last rank %s, %s visitor days', uri, pv, uv, hot, visitors, last_rank, days)
		FROM proof WHERE uv <> visitors OR uv <> last_rank OR pv <> days
		UNION ALL
		SELECT format('%s: hot %s, its pages %s; uv %s, pages at most %s in all %s', s.uri, s.hot, sum(p.hot), s.uv, max(p.uv), sum(p.uv))
		FROM proof s JOIN proof p ON p.site_id = s.id
		GROUP BY s.id, s.uri, s.hot, s.uv, s.pv
		HAVING s.hot <> sum(p.hot) OR s.uv NOT BETWEEN max(p.uv) AND sum(p.uv) OR s.pv NOT BETWEEN max(p.pv) AND sum(p.pv)`)
	require.NoError(t, err)
	broken, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, broken)
	in.checkDays(t)
}

// checkDays holds the promises on daily numbers against the tables, and against rows as far as
// these are kept. Where pages were deleted, it is not known of some visitors whether they were new
// on a day.
func (in *instance) checkDays(t *testing.T) {
	t.Helper()
	rows, err := in.tables(t).Query(context.Background(), `
		WITH visits AS MATERIALIZED ( -- each of its partitions is planned and begun once, which takes longest here
			SELECT * FROM footfall.visits
		), returns AS MATERIALIZED (
			SELECT * FROM footfall.returns
		), daily AS (
			SELECT page_id, sum(hot) AS hot, sum(pv) AS pv, sum(new_visitors) AS new_visitors FROM days GROUP BY page_id
		), back AS (
			SELECT page_id, sum(visitors) AS visitors FROM returns GROUP BY page_id
		), by_rows AS (
			SELECT page_id, day_id, count(*) AS visitors FROM visits GROUP BY page_id, day_id
			UNION ALL
			SELECT page_id, day_id, visitors FROM erased_visits
		)
		SELECT format('%s: hot %s, pv %s, uv %s, but by days %s, %s, %s, returns %s', p.uri, c.hot, c.pv, c.uv, d.hot, d.pv, d.new_visitors, r.visitors)
		FROM counters c JOIN pages p ON p.id = c.page_id LEFT JOIN daily d USING (page_id) LEFT JOIN back r USING (page_id)
		WHERE coalesce(d.hot, 0) <> c.hot OR coalesce(d.pv, 0) <> c.pv
		   OR p.uri NOT LIKE '%/(deleted)' AND (c.uv <> coalesce(d.new_visitors, 0) OR c.pv - c.uv <> coalesce(r.visitors, 0))
		   OR c.uv NOT BETWEEN coalesce(d.new_visitors, 0) AND c.pv - coalesce(r.visitors, 0)
		UNION ALL
		SELECT format('page %s on day %s: pv %s, but %s rows', d.page_id, d.day_id, d.pv, sum(v.visitors))
		FROM days d JOIN pages p ON p.id = d.page_id LEFT JOIN visits_kept k USING (app_id) LEFT JOIN by_rows v USING (page_id, day_id)
		WHERE d.day_id >= coalesce(k.from_day, 0)
		GROUP BY d.page_id, d.day_id
		HAVING d.pv <> coalesce(sum(v.visitors), 0)
		UNION ALL
		SELECT format('page %s on day %s after %s: %s returned, but %s rows', page_id, day_id, previous_day, r.visitors, v.visitors)
		FROM (
			SELECT r.* FROM returns r JOIN pages p ON p.id = r.page_id LEFT JOIN visits_kept k USING (app_id)
			WHERE r.previous_day >= coalesce(k.from_day, 0)
		) AS r FULL JOIN (
			SELECT page_id, day_id, previous_day, count(*) AS visitors
			FROM (
				SELECT page_id, day_id, lag(day_id) OVER (PARTITION BY page_id, ip ORDER BY day_id) AS previous_day
				FROM visits v JOIN pages p ON p.id = v.page_id LEFT JOIN visits_kept k USING (app_id)
				WHERE v.day_id >= coalesce(k.from_day, 0)
			) AS w
			WHERE previous_day IS NOT NULL
			GROUP BY page_id, day_id, previous_day
		) AS v USING (page_id, day_id, previous_day)
		WHERE r.visitors IS DISTINCT FROM v.visitors
		  AND page_id NOT IN (SELECT page_id FROM erased_visits UNION SELECT id FROM pages WHERE uri LIKE '%/(deleted)')
		UNION ALL
		SELECT format('page %s on day %s: %s returned after %s, but by rows and erased rows %s', page_id, day_id, r.visitors, previous_day, v.visitors)
		FROM (
			SELECT r.* FROM returns r JOIN pages p ON p.id = r.page_id LEFT JOIN visits_kept k USING (app_id)
			WHERE r.day_id >= coalesce(k.from_day, 0)
		) AS r FULL JOIN (
			SELECT v.page_id, v.day_id, v.previous_day, sum(v.visitors) AS visitors
			FROM (
				SELECT page_id, day_id, previous_day, 1 AS visitors FROM visits
				UNION ALL
				SELECT page_id, day_id, previous_day, visitors FROM erased_visits
			) AS v JOIN pages p ON p.id = v.page_id LEFT JOIN visits_kept k USING (app_id)
			WHERE v.previous_day > 0 AND v.day_id >= coalesce(k.from_day, 0)
			GROUP BY v.page_id, v.day_id, v.previous_day
		) AS v USING (page_id, day_id, previous_day)
		WHERE r.visitors IS DISTINCT FROM v.visitors
		UNION ALL
		SELECT format('page %s on day %s has site %s', d.page_id, d.day_id, d.site_id)
		FROM days d JOIN pages p ON p.id = d.page_id WHERE d.site_id IS DISTINCT FROM p.site_id
		UNION ALL
		SELECT format('site %s on day %s: hot %s, its pages %s', s.page_id, s.day_id, s.hot, sum(p.hot))
		FROM days s LEFT JOIN days p ON p.site_id = s.page_id AND p.day_id = s.day_id
		WHERE s.site_id IS NULL
		GROUP BY s.page_id, s.day_id
		HAVING s.hot IS DISTINCT FROM sum(p.hot)`)
	require.NoError(t, err)
	broken, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, broken)
}

// row is site and page as the contract's table writes them: pv uv rank hot.
func row(a visit.Answer) string {
	text := func(c visit.Counts) string { return fmt.Sprintf("%d %d %d %d", c.PV, c.UV, c.Rank, c.Hot) }
	return text(a.Site) + " | " + text(a.Page)
}
