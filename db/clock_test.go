package db_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/retention"
	"footfall/visit"
)

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

	// A clock that runs so fast that each answer seems to take long tells nothing.
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

// What an instance whose clock is ahead would spoil for years is refused; days of the past are not.
func TestDaysThatHaveNotCome(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	latest := func(ahead int) int32 { // the day in UTC+14, or so many days later
		return visit.DayOf(time.Now().Add(14*time.Hour).AddDate(0, 0, ahead), time.UTC)
	}
	refused := func(err error) {
		t.Helper()
		require.Equal(t, db.FaultAhead, db.FaultOf(err), "%v", err)
	}
	// So that it is not for want of a partition that a visit is refused.
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

// Where the server's clock was ahead itself, and is right again, sites count on.
func TestDayThatTheServerHasSeenCounts(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	exec(t, conn, `CREATE TABLE visits_later PARTITION OF visits DEFAULT`)
	exec(t, conn, `INSERT INTO days (page_id, day_id, hot, pv, new_visitors) VALUES (1, 20991231, 0, 0, 0)`)
	require.NoError(t, d.Write(t.Context(), onDay(visitBatch("192.0.2.1", 1, 2), 20991231), &db.Outcome{}))
}

// Whatever day an instance takes it for, the keys of days that it still is somewhere stay.
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
