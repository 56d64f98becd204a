// Package desk is the base of tests of counting: a database that has apps, a clock, and counters on it. Only tests
// import it.
package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
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

// Secret is the secret of every counter here.
var Secret = app.Secret("thirty-two bytes that are secret")

// Browser is the User-Agent of a browser. A visit without one is a bot's.
const Browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// Clock is a clock that a test sets.
type Clock struct{ now atomic.Pointer[time.Time] }

// At returns a clock that shows this time.
func At(t time.Time) *Clock {
	c := &Clock{}
	c.Set(t)
	return c
}

// Now returns the time that was set last.
func (c *Clock) Now() time.Time { return *c.now.Load() }

// Set sets the time.
func (c *Clock) Set(t time.Time) { c.now.Store(&t) }

// Noon is the time at which clocks start, in the middle of a day in every zone from UTC-11 to UTC+11.
var Noon = time.Date(2026, 6, 29, 12, 0, 0, 0, time.UTC)

// Options configure a desk. Unlike in a service, a visit may wait for a minute, so that a slow machine refuses no
// visit, and upkeep is off unless Upkeep is set.
type Options struct {
	counter.Options
	Apps   map[string]app.Settings // of the database; default: demo, which is open
	Began  time.Time               // the start of the clock; default Noon
	Real   bool                    // the counter uses the database's clock, as a service does
	DB     db.Options
	By     string // the URL that only the counter uses for the database; "": the same as the test's
	Upkeep bool   // scheduled work is done at once, as by a service
}

// Open returns a desk on a new database.
func Open(t testing.TB, o Options) *Desk {
	t.Helper()
	return On(t, Database(t, o), o)
}

// Database returns the URL of a database that has apps.
func Database(t testing.TB, o Options) string {
	t.Helper()
	if o.Apps == nil {
		open := app.AccessOpen
		o.Apps = map[string]app.Settings{"demo": {Access: &open}}
	}
	began := o.began()
	names, err := json.Marshal(o.Apps)
	require.NoError(t, err)
	return dbtest.Made(t, fmt.Sprint(began, string(names)), began, func(d *db.DB) {
		for _, name := range slices.Sorted(maps.Keys(o.Apps)) { // so that tests know their ids
			settings := o.Apps[name]
			if answers := app.PublicAnswers; settings.PublicCounts == nil && (settings.Access == nil || *settings.Access == "sites") {
				settings.PublicCounts = &answers // most tests check the numbers in answers
			}
			require.NoError(t, admin.NewAdmin(d, Secret).AddApp(context.Background(), name, settings))
		}
	})
}

func (o Options) began() time.Time {
	switch {
	case !o.Began.IsZero():
		return o.Began
	case o.Real:
		return time.Now().Truncate(24 * time.Hour) // the same for all tests
	}
	return Noon
}

// Desk is a counter on a database, with access to its tables.
type Desk struct {
	*counter.Counter
	URL     string
	DB      *db.DB
	Admin   *admin.Admin
	Clock   *Clock
	Metrics *prometheus.Registry
	Log     *dbtest.Log // of the counter, from the level of a warning on

	pool *pgxpool.Pool // of the test, which connects when it is used
}

// On returns a desk on an existing database, with its own clock unless the options have one. Its filter has loaded
// the tables.
func On(t testing.TB, url string, o Options) *Desk {
	t.Helper()
	d := Idle(t, url, o)
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(d.Log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if o.Clock == nil && !o.Real {
		o.Clock = d.Clock.Now
	}
	o.MaxWait, o.Calm = cmp.Or(o.MaxWait, time.Minute), !o.Upkeep
	o.Metrics = d.Metrics
	if o.Secret == nil {
		o.Secret = Secret
	}
	var err error
	d.Counter, err = counter.Open(context.Background(), d.DB, o.Options)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	if o.Filter {
		d.Warm(t)
	}
	return d
}

// Idle returns a desk on a database without a counter.
func Idle(t testing.TB, url string, o Options) *Desk {
	t.Helper()
	d := &Desk{URL: url, Clock: At(o.began()), Metrics: prometheus.NewRegistry(), Log: new(dbtest.Log)}
	d.DB = dbtest.Open(t, cmp.Or(o.By, url), o.DB)
	d.Admin = admin.NewAdmin(d.DB, Secret)
	cfg, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	cfg.ConnConfig.RuntimeParams["search_path"] = db.Schema
	cfg.MaxConns = 20 // a test may hold several, and locks on them
	d.pool, err = pgxpool.NewWithConfig(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(d.pool.Close)
	return d
}

// Warm waits until the filter gives hints.
func (d *Desk) Warm(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool { return d.Metric(t, "footfall_filter_ready") == 1 }, dbtest.Patience, dbtest.Tick)
}

// Metric returns the sum over all labels of a counter or gauge.
func (d *Desk) Metric(t testing.TB, name string) (sum float64) {
	t.Helper()
	families, err := d.Metrics.Gather()
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
	require.True(t, found, "metric %s does not exist", name)
	return sum
}

// Count counts one visit for the app demo, which must succeed.
func (d *Desk) Count(t testing.TB, ip, uri string) visit.Answer {
	t.Helper()
	return d.CountAs(t, counter.Request{App: "demo", IP: ip, URI: uri})
}

// CountAs counts a visit, which must succeed.
func (d *Desk) CountAs(t testing.TB, r counter.Request) visit.Answer {
	t.Helper()
	a, err := d.Visit(t.Context(), r)
	require.NoError(t, err)
	return a
}

// Tables returns a pool for statements that need no session of their own.
func (d *Desk) Tables() *pgxpool.Pool { return d.pool }

// Conn returns a connection of the test, which bypasses everything of Footfall's but the schema.
func (d *Desk) Conn(t testing.TB) *pgx.Conn {
	t.Helper()
	return dbtest.Connect(t, d.URL)
}

// Exec runs a statement.
func (d *Desk) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := d.pool.Exec(context.Background(), sql, args...)
	require.NoError(t, err, sql)
}

// One returns the number that a query returns.
func (d *Desk) One(t testing.TB, sql string, args ...any) int64 {
	t.Helper()
	return Column[int64](t, d, sql, args...)[0]
}

// Column returns the rows of a query of one column.
func Column[T any](t testing.TB, d *Desk, sql string, args ...any) []T {
	t.Helper()
	return dbtest.Column[T](t, d.pool, sql, args...)
}

// Table returns the rows of a query, each as a line of text.
func (d *Desk) Table(t testing.TB, sql string, args ...any) (lines []string) {
	t.Helper()
	rows, err := d.pool.Query(context.Background(), sql, args...)
	require.NoError(t, err, sql)
	lines, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		values, err := row.Values()
		return fmt.Sprintln(values...), err
	})
	require.NoError(t, err, sql)
	return lines
}

// Drained waits until all accepted visits are counted, or dropped.
func (d *Desk) Drained(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool { return d.One(t, `SELECT coalesce(sum(inbox_behind(id)), 0)::bigint FROM apps`) == 0 },
		dbtest.Patience, dbtest.Tick, d.Log)
}
