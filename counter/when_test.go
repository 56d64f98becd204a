package counter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/intake"
	"footfall/record"
	"footfall/visit"
)

const yesterday = "2026-06-28T12:00:00Z" // relative to newClock

// toldOf returns a visit of an earlier day.
func toldOf(app, ip, uri string) counter.Request {
	return counter.Request{App: app, IP: ip, URI: uri, At: yesterday}
}

// While an app is held, as during an erasure, its visits of earlier days are refused, singly and in chunks. Visits of
// other apps count, even in the same batch.
func TestAppIsHeldUnderVisitsOfEarlierDays(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	open, never := "open", 0
	require.NoError(t, in.Admin.AddApp(t.Context(), "other", app.Settings{Access: &open, RetainDays: &never}))
	in.keepsAll(t)
	_, err := in.Visit(t.Context(), counter.Request{App: "other", IP: "192.0.2.1", URI: "http://b.example/"})
	require.NoError(t, err)
	g := in.counting(t)
	at, err := g.OpenCall(t.Context(), "one", [32]byte{1}, 100)
	require.NoError(t, err)
	chunk := chunkOf(t, g, at, counter.Item{URI: "http://a.example/", IP: "192.0.2.1", At: in.Clock.Now().Add(-24 * time.Hour)})

	holder, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), `SELECT hold_app_days(id) FROM apps WHERE name = 'demo'`)
	require.NoError(t, err)
	refused := func(err error) {
		t.Helper()
		var verr *visit.Error
		require.ErrorAs(t, err, &verr)
		assert.Equal(t, visit.Unavailable, verr.Kind)
		assert.Contains(t, verr.Message(), "being erased")
	}
	_, err = in.Visit(t.Context(), toldOf("demo", "192.0.2.1", "http://a.example/"))
	refused(err)
	refused(g.Recorder().RecordChunk(chunk)[0].Err)
	require.Zero(t, at.Next)

	release := in.hold(t, "b.example")
	all, answers := []string{"other", "demo", "other", "demo", "other"}, make([]error, 5)
	var wg sync.WaitGroup
	for i, app := range all {
		wg.Go(func() {
			_, answers[i] = in.Visit(context.Background(), toldOf(app, fmt.Sprintf("192.0.2.%d", i), "http://b.example/"))
		})
		if i == 0 {
			in.waiters(t, 1)
		}
	}
	require.Eventually(t, func() bool { return in.accepted(t) == len(all) }, dbtest.Patience, dbtest.Tick)
	release()
	wg.Wait()
	for i, app := range all {
		if app == "demo" {
			refused(answers[i])
		} else {
			assert.NoError(t, answers[i])
		}
	}
	require.NoError(t, holder.Rollback(t.Context()))
	require.NoError(t, g.Recorder().RecordChunk(chunk)[0].Err)
	assert.Equal(t, []string{"a.example 1 1 1\n", "b.example 4 4 4\n"},
		in.Table(t, `SELECT concat_ws(' ', uri, pv, uv, hot) FROM counters JOIN pages ON id = page_id WHERE site_id IS NULL ORDER BY uri`))
	in.warnsOfNoBatch(t)
	in.verified(t)
}

// A visit that was counted with its id is repeated, not refused, when its day is no longer kept: as a single visit,
// in a call, and in a named call. A visit that was never counted is refused.
func TestRepeatedWhenItsDayIsGone(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	open, daily, never := "open", "daily", 0
	require.NoError(t, in.Admin.AddApp(t.Context(), "daily", app.Settings{Access: &open, Visitor: &daily, RetainDays: &never}))
	in.keepsAll(t)
	in.Exec(t, `INSERT INTO day_keys (day_id, key) VALUES (20260628, decode(repeat('ab', 32), 'hex'))`)
	for _, app := range []string{"demo", "daily"} {
		r := toldOf(app, "192.0.2.1", "http://a.example/")
		r.ID = "x"
		_, err := in.Visit(t.Context(), r)
		require.NoError(t, err, app)
	}
	item := func(day int, ip, id string) string {
		return fmt.Sprintf(`{"uri":"http://a.example/%d","ip":%q,"id":%q,"at":"2026-06-%dT12:00:00Z"}`, day, ip, id, day)
	}
	call := func(key string, items ...string) (told []string) {
		body := strings.NewReader(strings.ReplaceAll("["+strings.Join(items, ",")+"]", `"id":"",`, ""))
		results, internal, err := intake.NewDesk().Count(t.Context(), intake.Call{Counting: in.counting(t), Body: body, Key: key})
		require.NoError(t, errors.Join(err, internal))
		for _, r := range results {
			told = append(told, fmt.Sprint(r.Outcome, " ", r.Answer.Page.Rank, " ", r.Fault))
		}
		return told
	}
	named := []string{item(10, "192.0.2.2", ""), item(20, "192.0.2.3", ""), item(21, "192.0.2.3", "")}
	in.Exec(t, `INSERT INTO visits_kept (app_id, from_day) SELECT id, 20260615 FROM apps WHERE name = 'demo'`)
	const gone = "at: app demo no longer keeps visits of that day: the first possible day is "
	counted, repeated, failed := fmt.Sprint(intake.Counted), fmt.Sprint(intake.Repeated), fmt.Sprint(intake.Failed)
	assert.Equal(t, []string{failed + " 0 " + gone + "2026-06-15", counted + " 1 ", counted + " 1 "}, call("key", named...))
	assert.Equal(t, []string{counted + " 2 "}, call("", item(20, "192.0.2.4", "y")))

	in.Exec(t, `UPDATE visits_kept SET from_day = 20260629`)
	in.Exec(t, `DELETE FROM day_keys WHERE day_id < 20260629`)
	rows := `SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM visits), (SELECT sum(hot) FROM counters)`
	before := in.Table(t, rows)
	for _, app := range []string{"demo", "daily"} {
		r := toldOf(app, "192.0.2.1", "http://a.example/new")
		_, err := in.Visit(t.Context(), r)
		require.ErrorContains(t, err, "at: app "+app, "without an id")
		r.ID = "z"
		_, err = in.Visit(t.Context(), r)
		require.ErrorContains(t, err, "at: app "+app, "with another id")
		r.ID, r.URI = "x", "http://a.example/"
		a, err := in.Visit(t.Context(), r)
		require.NoError(t, err)
		assert.True(t, a.Repeated)
		want := map[string]string{"demo": "4 3 1 4 | 1 1 1 1", "daily": "1 1 0 1 | 1 1 0 1"}[app] // its visitor cannot be identified any more
		assert.Equal(t, want, row(a), app)
	}
	assert.Equal(t, []string{failed + " 0 " + gone + "2026-06-29", repeated + " 2 ", failed + " 0 " + gone + "2026-06-29"},
		call("", item(20, "192.0.2.4", ""), item(20, "192.0.2.4", "y"), item(20, "192.0.2.4", "z")))
	assert.Equal(t, []string{failed + " 0 " + gone + "2026-06-29", repeated + " 1 ", repeated + " 1 "}, call("key", named...),
		"the visit that was refused in the first call was not counted")
	assert.Equal(t, before, in.Table(t, rows))
	in.verified(t)
}

// The day is dropped, or still seems to exist, during a visit that was counted before with its id.
func TestDayIsDroppedDuringARepeatedVisit(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.keepsAll(t)
	g := in.counting(t)
	item := func(id string) counter.Item {
		return counter.Item{URI: "http://a.example/", IP: "192.0.2.1", ID: id, At: time.Date(2026, 6, 10, 12, 0, 0, 0, time.UTC)}
	}
	require.NoError(t, g.Recorder().RecordChunk(chunkOf(t, g, nil, item("x")))[0].Err)
	chunk := chunkOf(t, g, nil, item("x"), item("x"), item("y"))
	in.Exec(t, `INSERT INTO visits_kept (app_id, from_day) SELECT id, 20260615 FROM apps`)
	for i, got := range g.Recorder().RecordChunk(chunk) {
		if i < 2 {
			assert.ErrorIs(t, got.Err, record.ErrRepeated, i)
		} else {
			assert.ErrorContains(t, got.Err, "at: the app no longer keeps visits of that day", i)
		}
	}
	in.verified(t)
}

// A visit that was counted before with its id adds no rows, whatever its other fields.
func TestRepeatedMakesNothing(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.Exec(t, `ALTER TABLE visitors ADD CONSTRAINT nobody CHECK (ip <> '192.0.2.7')`)
	in.keepsAll(t)
	in.withID(t, "192.0.2.1", "http://a/", "x")
	g := in.counting(t)
	item := func(uri, ip, id string) counter.Item { return counter.Item{URI: uri, IP: ip, ID: id} }
	pages := func() []string { return in.Table(t, `SELECT uri FROM pages ORDER BY uri`) }
	require.Equal(t, []string{"a\n", "a/\n"}, pages())

	require.True(t, in.withID(t, "192.0.2.1", "http://new/", "x").Repeated)
	at, err := g.OpenCall(t.Context(), "one", [32]byte{1}, 100)
	require.NoError(t, err)
	past := item("http://new/", "192.0.2.1", "x")
	past.At = in.Clock.Now().AddDate(-1, 0, 0)
	for i, got := range g.Recorder().RecordChunk(chunkOf(t, g, at, item("http://a/new", "192.0.2.1", "x"),
		item("http://new/", "192.0.2.2", "x"), past)) {
		assert.ErrorIs(t, got.Err, record.ErrRepeated, i)
	}
	require.EqualValues(t, 3, at.Next)
	require.Equal(t, []string{"a\n", "a/\n"}, pages())
	old := item("http://a/", "192.0.2.1", "")
	old.At = in.Clock.Now().AddDate(-2, 0, 0)
	beside := g.Recorder().RecordChunk(chunkOf(t, g, nil, past, old))
	require.ErrorIs(t, beside[0].Err, record.ErrRepeated)
	require.NoError(t, beside[1].Err)
	require.Equal(t, []string{"visits_20240629\n"},
		in.Table(t, `SELECT relname FROM pg_class WHERE relname ~ '^visits_202[45]' AND relkind = 'r'`))

	got := g.Recorder().RecordChunk(chunkOf(t, g, nil, item("http://a/1", "192.0.2.2", "y"), item("http://a/2", "192.0.2.2", "y"),
		item("http://a/3", "192.0.2.7", "z")))
	require.NoError(t, got[0].Err)
	require.ErrorIs(t, got[1].Err, record.ErrRepeated)
	require.ErrorContains(t, got[2].Err, "a visit cannot be stored")
	require.NoError(t, g.Recorder().RecordChunk(chunkOf(t, g, nil, item("http://a/4", "192.0.2.8", "z")))[0].Err,
		"the id of a visit that failed is free")
	require.Equal(t, []string{"a\n", "a/\n", "a/1\n", "a/3\n", "a/4\n"}, pages())
	in.Exec(t, `ALTER TABLE visitors DROP CONSTRAINT nobody`)
	in.verified(t)
}

// A visit with a given time keeps its day, even if its site was counted on the next day in the meantime. A visit
// without a time counts on the next day.
func TestGivenTimeKeepsItsDay(t *testing.T) {
	t.Parallel()
	a := both.newInstance(t, counter.Options{})
	a.keepsAll(t)
	b := plain.startOn(t, a.URL, counter.Options{})
	b.Clock.Set(a.Clock.Now().Add(24 * time.Hour))
	count := func(in *instance, n int, at string) {
		_, err := in.Visit(t.Context(), counter.Request{App: "demo", IP: fmt.Sprintf("192.0.2.%d", n), URI: "http://a.example/", At: at})
		require.NoError(t, err)
	}
	today := a.Clock.Now()
	count(a, 1, today.Format(time.RFC3339))
	count(b, 1, "")
	count(a, 1, today.Format(time.RFC3339)) // by this instance the day has not ended
	count(a, 2, today.Format(time.RFC3339))
	g := a.counting(t)
	for _, got := range g.Recorder().RecordChunk(chunkOf(t, g, nil, counter.Item{URI: "http://a.example/", IP: "192.0.2.3", At: today},
		counter.Item{URI: "http://a.example/", IP: "192.0.2.4"}, counter.Item{URI: "http://a.example/", IP: "192.0.2.1", At: today})) {
		require.NoError(t, got.Err)
	}
	count(a, 5, "")
	assert.Equal(t, []string{"20260629 5 3 3\n", "20260630 3 3 2\n"}, a.Table(t, `SELECT concat_ws(' ', d.day_id, d.hot, d.pv, d.new_visitors)
		FROM days AS d JOIN pages AS p ON p.id = d.page_id WHERE p.uri = 'a.example' ORDER BY d.day_id`))
	a.warnsOfNoBatch(t)
	a.verified(t)
}

// The server has no room for another lock, as during many concurrent late visits: they are refused, and count when
// there is room again.
func TestNoRoomForLocks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes a server of its own")
	}
	url := dbtest.Own(t, dbtest.OwnDir(t), "").URL()
	_, err := dbtest.Open(t, url, db.Options{}).MigrateUp(t.Context())
	require.NoError(t, err)
	in := plain.startOn(t, url, counter.Options{})
	open, never := "open", 0
	require.NoError(t, in.Admin.AddApp(t.Context(), "demo", app.Settings{Access: &open, RetainDays: &never}))
	in.Count(t, "192.0.2.1", "http://a.example/")
	filling := in.Conn(t)
	_, err = filling.Exec(t.Context(), `SELECT pg_advisory_lock(n) FROM generate_series(1, 10000000) AS n`)
	require.ErrorContains(t, err, "out of shared memory")
	_, err = in.Visit(t.Context(), toldOf("demo", "192.0.2.1", "http://a.example/"))
	var verr *visit.Error
	require.ErrorAs(t, err, &verr)
	assert.Equal(t, visit.Unavailable, verr.Kind)
	require.ErrorContains(t, in.Ready(t.Context()), "no room for more locks")
	_, err = filling.Exec(t.Context(), `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, err)
	a, err := in.Visit(t.Context(), toldOf("demo", "192.0.2.1", "http://a.example/"))
	require.NoError(t, err)
	assert.Equal(t, "2 1 1 2 | 2 1 1 2", row(a))
	in.verified(t)
}

// localClock is a machine's clock, which may be ahead of the database's.
type localClock struct{ ahead atomic.Int64 }

func (c *localClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

const tenYears = 10 * 365 * 24 * time.Hour

// startWithLocalClock starts an instance that gets the time only by measuring, like the service.
func startWithLocalClock(t *testing.T, url string, ahead time.Duration, log *bytes.Buffer) (*instance, *localClock) {
	t.Helper()
	local := &localClock{}
	local.ahead.Store(int64(ahead))
	o := desk.Options{Real: true, Upkeep: true, DB: db.Options{LocalClock: local.Now}}
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	in := &instance{desk.On(t, url, o)}
	return in, local
}

// daysAstray returns the days that an instance with a wrong clock would store for targets, visitors or apps. It ignores today,
// and yesterday because midnight may pass during the test.
const daysAstray = `
	SELECT what, day
	FROM (
		SELECT 'day', day_id FROM days UNION SELECT 'visit', day_id FROM visits UNION SELECT 'visitor', last_day FROM visitors
		UNION SELECT 'tally', day_id FROM page_tallies
	) AS d (what, day)
	WHERE day_date(day) NOT BETWEEN (now() AT TIME ZONE 'UTC')::date - 1 AND (now() AT TIME ZONE 'UTC')::date`

// An instance whose clock is ten years ahead counts by the database's clock, and reports the difference.
func TestClockTenYearsAhead(t *testing.T) {
	t.Parallel()
	var silent, log bytes.Buffer
	url := dbtest.New(t)
	right, _ := startWithLocalClock(t, url, 0, &silent)
	visited := func(in *instance, ip, app, uri, want string) {
		t.Helper()
		a, err := in.Visit(t.Context(), counter.Request{App: app, IP: ip, URI: uri})
		require.NoError(t, err)
		require.Equal(t, want, row(a))
	}
	require.NoError(t, right.Admin.AddApp(t.Context(), "demo", app.Settings{Access: ptr("open")}))
	require.NoError(t, right.Admin.AddApp(t.Context(), "daily", app.Settings{Access: ptr("open"), Visitor: ptr("daily")}))
	visited(right, "192.0.2.1", "daily", "http://a/", "1 1 1 1 | 1 1 1 1")
	keys := right.Table(t, `SELECT day_id, key FROM day_keys`)

	ahead, _ := startWithLocalClock(t, url, tenYears, &log)
	visited(ahead, "192.0.2.1", "daily", "http://a/", "1 1 1 2 | 1 1 1 2")
	visited(ahead, "192.0.2.1", "demo", "http://a/", "1 1 1 1 | 1 1 1 1")
	visited(right, "192.0.2.2", "demo", "http://a/new", "2 2 2 2 | 1 1 1 1")
	require.NoError(t, ahead.Ready(t.Context()))

	require.Empty(t, right.Table(t, daysAstray))
	require.Subset(t, right.Table(t, `SELECT day_id, key FROM day_keys`), keys)
	require.InDelta(t, tenYears.Seconds(), ahead.Metric(t, "footfall_clock_offset_seconds"), 1)
	require.InDelta(t, 0, right.Metric(t, "footfall_clock_offset_seconds"), 1)
	ahead.Close()
	right.Close()
	require.Contains(t, log.String(), "clock differs")
	require.NotContains(t, silent.String(), "clock differs")
	right.Check(t)
}

// If a clock is set ten years ahead between two measurements, only the visits of one batch fail, and can be sent
// again.
func TestClockIsSetWhileCounting(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	in, local := startWithLocalClock(t, dbtest.New(t), 0, &log)
	require.NoError(t, in.Admin.AddApp(t.Context(), "demo", app.Settings{Access: ptr("open")}))
	require.Equal(t, "1 1 1 1 | 1 1 1 1", row(in.Count(t, "192.0.2.1", "http://a/")))
	for _, page := range []string{"http://a/", "http://a/new", "http://new/"} {
		local.ahead.Add(int64(tenYears))
		_, err := in.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.2", URI: page})
		var verr *visit.Error
		require.ErrorAs(t, err, &verr)
		require.Equal(t, visit.Unavailable, verr.Kind)
	}
	require.Equal(t, "2 2 2 2 | 1 1 1 1", row(in.Count(t, "192.0.2.2", "http://a/new")))
	local.ahead.Store(0) // it is corrected long before the next measurement
	require.Greater(t, in.Metric(t, "footfall_clock_offset_seconds"), tenYears.Seconds(), "as it was measured last")
	require.NoError(t, in.Ready(t.Context()))
	require.Empty(t, in.Table(t, daysAstray))
	in.Check(t)
}
