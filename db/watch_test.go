package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/retention"
	"footfall/visit"
)

const (
	// soon is how long to wait for a watcher that is stuck in any case, so its length does not affect the result.
	soon = 50 * time.Millisecond
	// inTime is how long to wait for events that are due at once.
	inTime = time.Minute
)

// watcher is an instance that keeps apps in memory. It hands each list to the test, and adopts it when the test
// allows.
type watcher struct {
	seen  chan []string // names of the apps, as passed to publish
	taken chan struct{} // a value makes publish return
	ended chan error
	stop  context.CancelFunc
}

func watch(t *testing.T, url string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{seen: make(chan []string), taken: make(chan struct{}), ended: make(chan error, 1), stop: cancel}
	d := dbtest.Open(t, dbtest.WithParameter(t, url, "application_name", "watcher"), db.Options{})
	over := make(chan struct{})
	go func() {
		w.ended <- d.WatchApps(ctx, "", func(access *db.Access) {
			if access == nil {
				return // the watcher has stopped
			}
			names := []string{}
			for _, app := range access.Apps {
				names = append(names, app.Name)
			}
			select {
			case w.seen <- names:
			case <-over:
				return
			}
			select {
			case <-w.taken:
			case <-over:
			}
		})
		close(w.ended)
	}()
	t.Cleanup(func() {
		cancel()
		close(over)
		for range w.ended { // until it is closed
		}
	})
	return w
}

// takes waits for a list and lets the watcher adopt it.
func (w *watcher) takes(t *testing.T, names ...string) {
	t.Helper()
	assert.Equal(t, names, receive(t, w.seen, "a list of apps"))
	w.taken <- struct{}{}
}

func addApp(t *testing.T, d *db.DB, name string) {
	t.Helper()
	_, err := d.Queries().AppAdd(t.Context(), name)
	require.NoError(t, err)
}

func TestWatcherSeesEveryChange(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	addApp(t, d, "a")
	w := watch(t, url)
	w.takes(t, "a")
	addApp(t, d, "b")
	w.takes(t, "a", "b")
	exec(t, conn, `UPDATE apps SET name = 'c' WHERE name = 'a'`) // a user in psql
	w.takes(t, "b", "c")
	exec(t, conn, `DELETE FROM apps`)
	w.takes(t, []string{}...)
	w.stop()
	require.ErrorIs(t, receive(t, w.ended, "the watcher's end"), context.Canceled)
}

func TestWaitForInstancesWaitsForEveryOne(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d := dbtest.Open(t, url, db.Options{})
	quick, slow := watch(t, url), watch(t, url)
	quick.takes(t, []string{}...)
	slow.takes(t, []string{}...)
	require.NoError(t, d.WaitForInstances(t.Context(), inTime))

	addApp(t, d, "shop")
	quick.takes(t, "shop")
	assert.Equal(t, []string{"shop"}, receive(t, slow.seen, "a list of apps")) // and it is not adopted yet
	require.ErrorIs(t, d.WaitForInstances(t.Context(), soon), db.ErrInstancesBehind)

	waited := async(t, func() error { return d.WaitForInstances(context.Background(), inTime) })
	slow.taken <- struct{}{}
	require.NoError(t, receive(t, waited, "the end of the wait"))
	require.NoError(t, d.WaitForInstances(t.Context(), inTime), "there is nothing left to wait for")
}

// A change that is made while a watcher adopts an earlier change needs another round.
func TestWaitForInstancesWaitsForTheNewestChange(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d := dbtest.Open(t, url, db.Options{})
	w := watch(t, url)
	w.takes(t, []string{}...)
	addApp(t, d, "a")
	assert.Equal(t, []string{"a"}, receive(t, w.seen, "a list of apps"))
	addApp(t, d, "b")
	w.taken <- struct{}{}
	assert.Equal(t, []string{"a", "b"}, receive(t, w.seen, "a list of apps"))
	require.ErrorIs(t, d.WaitForInstances(t.Context(), soon), db.ErrInstancesBehind)
	w.taken <- struct{}{}
	require.NoError(t, d.WaitForInstances(t.Context(), inTime))
}

func TestWaitForInstancesLeavesOutTheDead(t *testing.T) {
	t.Parallel()
	for name, die := range map[string]func(*testing.T, *watcher, *pgx.Conn){
		"stopped": func(t *testing.T, w *watcher, _ *pgx.Conn) {
			w.stop()
			w.taken <- struct{}{}
			require.Error(t, receive(t, w.ended, "the watcher's end"))
		},
		"connection killed": func(t *testing.T, _ *watcher, conn *pgx.Conn) {
			assert.Equal(t, []bool{true}, dbtest.Column[bool](t, conn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = 'watcher'`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.New(t)
			d := dbtest.Open(t, url, db.Options{})
			w := watch(t, url)
			w.takes(t, []string{}...)
			addApp(t, d, "shop")
			assert.Equal(t, []string{"shop"}, receive(t, w.seen, "a list of apps"))
			require.ErrorIs(t, d.WaitForInstances(t.Context(), soon), db.ErrInstancesBehind)
			die(t, w, dbtest.Connect(t, url))
			require.NoError(t, d.WaitForInstances(t.Context(), inTime))
		})
	}
}

// A watcher notices by itself that its server hangs, or that only its own end of the connection is still open. It notices this
// before other instances consider the watcher gone, because commands then no longer wait for it, and it would go on using
// outdated apps from its memory.
func TestWatcherFindsOutThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	network, through := dbtest.NewNetwork(t, url)
	d := dbtest.Open(t, through, db.Options{DeadAfter: 2 * time.Second})
	watches, ends := make(chan bool, 1), make(chan bool, 1)
	ended := async(t, func() (err error) {
		for len(watches) == 0 { // a slow machine may respond too late
			err = d.WatchApps(t.Context(), "", func(access *db.Access) {
				if access != nil {
					watches <- true
				} else if len(watches) > 0 {
					ends <- true
				}
			})
		}
		return err
	})
	eventually(t, func() bool { return len(watches) > 0 }, "the apps")
	network.Freeze()
	defer network.Thaw() // otherwise the network could not be closed
	receive(t, ends, "the news that it watches no longer")
	network.Thaw()
	require.Error(t, receive(t, ended, "the watcher's end"))
	for _, deadAfter := range []time.Duration{2 * time.Second, 10 * time.Second} {
		require.LessOrEqual(t, db.WatchTakes(deadAfter), deadAfter/2)
	}
}

func TestMeasureClock(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	for _, ahead := range []time.Duration{0, -90 * time.Minute, 87600 * time.Hour} {
		local := func() time.Time { return time.Now().Add(ahead) }
		d := dbtest.Open(t, url, db.Options{LocalClock: local})
		require.WithinDuration(t, local(), d.Now(), time.Minute, "nothing is measured yet")
		require.NoError(t, d.MeasureClock(t.Context()))
		assert.InDelta(t, ahead.Seconds(), d.ClockOffset().Seconds(), 1)
		assert.WithinDuration(t, time.Now(), d.Now(), time.Minute)
	}

	// With a clock that runs so fast that each response seems to take long, no conclusion is possible.
	readings, step := 0, 2*time.Second
	local := func() time.Time {
		readings++
		return time.Now().Add(time.Hour + time.Duration(readings)*step)
	}
	d := dbtest.Open(t, url, db.Options{LocalClock: local})
	require.ErrorContains(t, d.MeasureClock(t.Context()), "longer than a second")
	require.Zero(t, d.ClockOffset())
	step = 0
	require.NoError(t, d.MeasureClock(t.Context()))
	require.InDelta(t, time.Hour.Seconds(), d.ClockOffset().Seconds(), 1)
}

// Writes for future days are refused, because an instance whose clock is ahead would spoil the data for years.
// Writes for past days are accepted.
func TestDaysThatHaveNotCome(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	latest := func(ahead int) int32 { // the day in UTC+14, or this number of days later
		return visit.DayOf(time.Now().Add(14*time.Hour).AddDate(0, 0, ahead), time.UTC)
	}
	refused := func(err error) {
		t.Helper()
		require.Equal(t, db.FaultAhead, db.FaultOf(err), "%v", err)
	}
	// So that a visit is not refused only because a partition is missing.
	exec(t, conn, `CREATE TABLE visits_all PARTITION OF visits DEFAULT`)
	for _, day := range []int32{latest(2), 20991231} {
		refused(d.Write(t.Context(), onDay(visitBatch("192.0.2.1", 1, 2), day), &db.Outcome{}))
		in := interning([]string{"example.com/new"}, []string{"example.com"})
		in.Day = day
		_, _, err := d.Intern(t.Context(), in)
		refused(err)
	}
	exec(t, conn, `DROP TABLE visits_all`)
	assertNothingCounted(t, conn)
	require.Zero(t, query[int64](t, conn, `SELECT count(*) FROM page_tallies`))

	_, err := d.MakeDays(t.Context(), latest(10))
	refused(err)
	_, err = d.MakeDays(t.Context(), latest(8))
	require.NoError(t, err, "made ahead")
	refused(d.KeepDayKey(t.Context(), latest(3), make([]byte, 32)))
	require.NoError(t, d.KeepDayKey(t.Context(), latest(1), make([]byte, 32)), "made ahead")
	_, err = retention.New(d.Tx()).DayClose(t.Context(), latest(0))
	require.Error(t, err)

	for _, day := range []int32{today, latest(0)} {
		_, err := d.MakeDays(t.Context(), day)
		require.NoError(t, err)
		require.NoError(t, d.Write(t.Context(), onDay(visitBatch("192.0.2.1", 1, 2), day), &db.Outcome{}), "day %d", day)
	}
}

// If the server's own clock was ahead and is right again, sites that were counted on a future day continue
// counting.
func TestDayThatTheServerHasSeenCounts(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	exec(t, conn, `CREATE TABLE visits_later PARTITION OF visits DEFAULT`)
	exec(t, conn, `INSERT INTO days (page_id, day_id, hot, pv, new_visitors) VALUES (1, 20991231, 0, 0, 0)`)
	require.NoError(t, d.Write(t.Context(), onDay(visitBatch("192.0.2.1", 1, 2), 20991231), &db.Outcome{}))
}

// Whatever time an instance's clock shows, the instance deletes no key of a day that has not ended everywhere.
func TestClockAheadDeletesNothing(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	utc := func(ago int) int32 { return visit.DayOf(time.Now().AddDate(0, 0, -ago), time.UTC) }
	for _, ago := range []int{0, 1, 3} {
		require.NoError(t, d.KeepDayKey(t.Context(), utc(ago), make([]byte, 32)))
	}
	require.NoError(t, d.Queries().DayKeysForget(t.Context(), 20991231))
	require.Equal(t, []int32{utc(1), utc(0)}, dbtest.Column[int32](t, conn, `SELECT day_id FROM day_keys ORDER BY 1`))
}
