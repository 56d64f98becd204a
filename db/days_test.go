package db_test

import (
	neturl "net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/retention"
)

// oneOfMany has many do at once what one of them does.
func oneOfMany(t *testing.T, do func() (mine bool, err error)) {
	t.Helper()
	var did atomic.Int32
	var all sync.WaitGroup
	start := make(chan struct{})
	for range 20 {
		all.Go(func() {
			<-start
			mine, err := do()
			for db.FaultOf(err) == db.FaultBusy {
				mine, err = do()
			}
			assert.NoError(t, err)
			if mine {
				did.Add(1)
			}
		})
	}
	close(start)
	all.Wait()
	assert.Equal(t, int32(1), did.Load(), "of those who did it")
}

func TestOneOfManyMakesADayAndDropsIt(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{Readers: 20})
	missing := func() []int32 {
		days, err := d.Queries().VisitsDaysMissing(t.Context(), []int32{today, today + 1})
		require.NoError(t, err)
		return days
	}
	require.Equal(t, []int32{today + 1}, missing())
	oneOfMany(t, func() (bool, error) { return d.Queries().VisitsDayMake(t.Context(), today+1) })
	assert.Empty(t, missing())

	exec(t, conn, `INSERT INTO closed_days (day_id) VALUES ($1)`, today)
	for _, day := range []int{today, today + 1} {
		exec(t, conn, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, $1, 0, '192.0.2.1')`, day)
	}
	counting := begin(t, url, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, $1, 0, '192.0.2.2')`, today)
	_, err := retention.New(d.Tx()).DayDrop(t.Context(), today)
	assert.Equal(t, db.FaultBusy, db.FaultOf(err), "of a day that somebody uses lock_timeout ends it, rather than statement_timeout: %v", err)
	exec(t, conn, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, $1, 0, '192.0.2.3')`, today) // nobody waits behind it
	require.NoError(t, counting.Commit(t.Context()))
	oneOfMany(t, func() (bool, error) { return retention.New(d.Tx()).DayDrop(t.Context(), today) })
	assert.Equal(t, []string{"visits_20190630"},
		dbtest.Column[string](t, conn, `SELECT relname FROM pg_class WHERE relname ~ '^visits_[0-9]+$'`))
	assert.Equal(t, []int32{today + 1}, dbtest.Column[int32](t, conn, `SELECT day_id FROM visits`))
	made, err := d.Queries().VisitsDayMake(t.Context(), today)
	require.NoError(t, err)
	assert.True(t, made, "it can be made again")
}

// Nor do granting the roles their rights and counting.
func TestMakingADayAndCountingDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	exec(t, conn, `SET lock_timeout = '10s'`) // where the code is right nobody waits at all
	counting := begin(t, url, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, $1, 0, '192.0.2.1')`, today)

	_, err := counting.Exec(t.Context(), `UPDATE counters SET hot = hot + 1`)
	require.NoError(t, err)

	making := begin(t, url, `SET LOCAL lock_timeout = '10s'`)
	for _, sql := range []string{`SELECT make_visits_day(20190630)`, `SELECT grant_roles()`} {
		_, err := making.Exec(t.Context(), sql)
		require.NoError(t, err, "%s, with a transaction open that has counted", sql)
	}
	_, err = conn.Exec(t.Context(), `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, $1, 0, '192.0.2.2')`, today)
	require.NoError(t, err, "with a transaction open that has made a day, and granted")
	require.NoError(t, counting.Commit(t.Context()))
	require.NoError(t, making.Commit(t.Context()))

	exec(t, conn, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, $1, 0, '192.0.2.1')`, today+1)
	assert.Equal(t, int64(3), query[int64](t, conn, `SELECT count(*) FROM visits`))
}

func TestWhatIsNoDay(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	for _, day := range []int32{20190230, 20191301, 20190100, 20190001, 0, -20190629, 2019} {
		_, err := d.Queries().VisitsDayMake(t.Context(), day)
		assert.Equal(t, db.FaultData, db.FaultOf(err), "%d: %v", day, err)
	}
	assert.Equal(t, []string{"visits_20190629"}, dbtest.Column[string](t, conn,
		`SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' AND relname LIKE 'visits%'`))

	// The names of other tables are none either, even where the planner reads them before it knows which
	// are partitions.
	for _, off := range []string{"enable_hashjoin", "enable_nestloop", "enable_mergejoin"} {
		u, err := neturl.Parse(url)
		require.NoError(t, err)
		query := u.Query()
		for _, other := range []string{"enable_hashjoin", "enable_nestloop", "enable_mergejoin"} {
			if other != off { // all joins but one are off
				query.Set(other, "off")
			}
		}
		query.Set("enable_indexscan", "off")
		query.Set("enable_bitmapscan", "off")
		u.RawQuery = query.Encode()
		days, err := dbtest.Open(t, u.String(), db.Options{}).Queries().VisitsDays(t.Context(), 0, today)
		require.NoError(t, err, off)
		require.Equal(t, []int32{today}, days, off)
	}
}
