// Package desk sets up tests that count visits: a database with apps, a clock, and a counter. Together these are
// called a desk. Only tests import this package.
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

// Secret is the key with which each desk hashes visitors, unless Options.Secret is set.
var Secret = app.Secret("thirty-two bytes that are secret")

// Browser is the User-Agent header of a browser. Footfall treats a visit without a User-Agent as the visit of a bot.
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

// Noon is the time at which the clock of a desk starts. All time zones from UTC-11 to UTC+11 have the same date then.
var Noon = time.Date(2026, 6, 29, 12, 0, 0, 0, time.UTC)

// Options configure a desk. Two defaults differ from those of a service. First, a visit may wait for a minute to be
// written, so that no visit is refused on a slow machine. Second, upkeep (the recurring tasks) starts only after its
// first interval.
type Options struct {
	counter.Options
	Apps       map[string]app.Settings // the apps in the database; default: only demo, with open access
	Began      time.Time               // when the desk's Clock starts; default: Noon or, if Real is set, the start of today
	Real       bool                    // the counter uses the database's clock, as a service does
	DB         db.Options
	ConnectURL string // the URL that the counter and Admin connect to, such as the URL of a proxy; "": the database
	Upkeep     bool   // the recurring tasks start immediately, as in a service
}

// Open returns a desk on a new database.
func Open(t testing.TB, o Options) *Desk {
	t.Helper()
	return On(t, Database(t, o), o)
}

// Database returns the URL of a new database that contains the apps of o.
func Database(t testing.TB, o Options) string {
	t.Helper()
	if o.Apps == nil {
		open := app.AccessOpen
		o.Apps = map[string]app.Settings{"demo": {Access: &open}}
	}
	began := o.began()
	names, err := json.Marshal(o.Apps)
	require.NoError(t, err)
	return dbtest.NewPrepared(t, fmt.Sprint(began, string(names)), began, func(d *db.DB) {
		for _, name := range slices.Sorted(maps.Keys(o.Apps)) { // sorted, so that tests know the id of each app
			settings := o.Apps[name]
			if answers := app.PublicAnswers; settings.PublicCounts == nil && (settings.Access == nil || *settings.Access == "sites") {
				settings.PublicCounts = &answers // so that responses to visits contain numbers, which most tests check
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
		return time.Now().Truncate(24 * time.Hour) // rounded, so that all tests of a day can share one prepared database
	}
	return Noon
}

// Desk is a counter on a database, with access to the database's tables.
type Desk struct {
	*counter.Counter
	URL     string
	DB      *db.DB
	Admin   *admin.Admin
	Clock   *Clock
	Metrics *prometheus.Registry
	Log     *dbtest.Log // the counter's log: warnings and errors

	pool *pgxpool.Pool // for the test's own statements; connects on first use
}

// On returns a desk on an existing database. The counter uses the desk's Clock, unless o.Clock or o.Real is set. If
// o.Filter is set, On waits until the filter has read all stored visitors.
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

// Idle returns a desk on an existing database. The desk has no counter.
func Idle(t testing.TB, url string, o Options) *Desk {
	t.Helper()
	d := &Desk{URL: url, Clock: At(o.began()), Metrics: prometheus.NewRegistry(), Log: new(dbtest.Log)}
	d.DB = dbtest.Open(t, cmp.Or(o.ConnectURL, url), o.DB)
	d.Admin = admin.NewAdmin(d.DB, Secret)
	cfg, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	cfg.ConnConfig.RuntimeParams["search_path"] = db.Schema
	cfg.MaxConns = 20 // a test may hold several connections at once, and locks in each
	d.pool, err = pgxpool.NewWithConfig(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(d.pool.Close)
	return d
}

// Warm waits until the filter has read all stored visitors, so that it can report which visitors are new.
func (d *Desk) Warm(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool { return d.Metric(t, "footfall_filter_ready") == 1 }, dbtest.Patience, dbtest.Tick)
}

// Metric returns the value of a counter or gauge, added up over all its labels.
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

// Count counts one visit for the app demo. The test fails if the visit fails.
func (d *Desk) Count(t testing.TB, ip, uri string) visit.Answer {
	t.Helper()
	return d.CountAs(t, counter.Request{App: "demo", IP: ip, URI: uri})
}

// CountAs counts a visit. The test fails if the visit fails.
func (d *Desk) CountAs(t testing.TB, r counter.Request) visit.Answer {
	t.Helper()
	a, err := d.Visit(t.Context(), r)
	require.NoError(t, err)
	return a
}

// Tables returns a connection pool. Consecutive statements may run in different sessions.
func (d *Desk) Tables() *pgxpool.Pool { return d.pool }

// Conn returns a connection for the test. Of the session settings that Footfall uses, it has only the schema.
func (d *Desk) Conn(t testing.TB) *pgx.Conn {
	t.Helper()
	return dbtest.Connect(t, d.URL)
}

// Exec runs an SQL statement. The test fails if the statement fails.
func (d *Desk) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := d.pool.Exec(context.Background(), sql, args...)
	require.NoError(t, err, sql)
}

// One returns the number in the first row of a query.
func (d *Desk) One(t testing.TB, sql string, args ...any) int64 {
	t.Helper()
	return Column[int64](t, d, sql, args...)[0]
}

// Column returns the values of a query that has one column.
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

// Drained waits until every visit in the inbox is counted or dropped.
func (d *Desk) Drained(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool { return d.One(t, `SELECT coalesce(sum(inbox_behind(id)), 0)::bigint FROM apps`) == 0 },
		dbtest.Patience, dbtest.Tick, d.Log)
}
