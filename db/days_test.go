package db_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	neturl "net/url"
	"strings"
	"sync"
	"sync/atomic"
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

// oneOfMany calls do concurrently, and checks that exactly one call did the work.
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
	assert.Equal(t, int32(1), did.Load(), "calls that did the work")
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
	assert.Equal(t, db.FaultBusy, db.FaultOf(err), "on a day in use, lock_timeout applies before statement_timeout: %v", err)
	// No session waits for the drop.
	exec(t, conn, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, $1, 0, '192.0.2.3')`, today)
	require.NoError(t, counting.Commit(t.Context()))
	oneOfMany(t, func() (bool, error) { return retention.New(d.Tx()).DayDrop(t.Context(), today) })
	assert.Equal(t, []string{"visits_20190630"},
		dbtest.Column[string](t, conn, `SELECT relname FROM pg_class WHERE relname ~ '^visits_[0-9]+$'`))
	assert.Equal(t, []int32{today + 1}, dbtest.Column[int32](t, conn, `SELECT day_id FROM visits`))
	made, err := d.Queries().VisitsDayMake(t.Context(), today)
	require.NoError(t, err)
	assert.True(t, made, "it can be made again")
}

// Making a day and counting do not wait for each other. Neither do granting rights to roles and counting.
func TestMakingADayAndCountingDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	exec(t, conn, `SET lock_timeout = '10s'`) // in correct code no session waits at all
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

	// Names of other tables are not days either, even if the planner reads them before it knows the partitions.
	for _, off := range []string{"enable_hashjoin", "enable_nestloop", "enable_mergejoin"} {
		u, err := neturl.Parse(url)
		require.NoError(t, err)
		query := u.Query()
		for _, other := range []string{"enable_hashjoin", "enable_nestloop", "enable_mergejoin"} {
			if other != off { // only one kind of join is on
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

// A batch of late visits may take longer than the limit for waiting for a lock. So dropping a day waits for running
// batches, and later batches wait for the drop.
func TestDayIsDroppedBetweenLateVisits(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	exec(t, conn, `INSERT INTO closed_days (day_id) VALUES ($1)`, today)
	patient := strings.ReplaceAll(query[string](t, conn, `SELECT pg_get_functiondef('drop_visits_day'::regproc)`), "'1s'", "'10min'")
	exec(t, conn, patient)
	counting, err := dbtest.Connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	_, err = counting.Exec(t.Context(), `SELECT require_past_days('{1}', '{20190630}', true)`)
	require.NoError(t, err)
	dropped := async(t, func() error { _, err := retention.New(d.Tx()).DayDrop(t.Context(), today); return err })
	require.Eventually(t, func() bool {
		return query[bool](t, conn, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted
			AND clock_timestamp() - waitstart > interval '200 ms')`)
	}, dbtest.Patience, dbtest.Tick)
	require.NoError(t, counting.Commit(t.Context()))
	require.NoError(t, receive(t, dropped, "the drop"))
}

// However many snapshots overlap, a day is dropped between two of them, and visits continue.
func TestDayIsDroppedBetweenSnapshots(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	exec(t, conn, `INSERT INTO closed_days (day_id) VALUES ($1)`, today)
	require.True(t, query[bool](t, conn, `SELECT make_visits_day($1)`, today+1))
	patient := strings.ReplaceAll(query[string](t, conn, `SELECT pg_get_functiondef('drop_visits_day'::regproc)`), "'3s'", "'10min'")
	require.Contains(t, patient, "'10min'")
	exec(t, conn, patient)
	days := func(q *db.Queries) (days []int32) {
		days, err := q.VisitsDays(t.Context(), 0, today+1)
		assert.NoError(t, err)
		return days
	}
	take := func(f func(q *db.Queries)) <-chan error {
		s, err := d.OpenSnapshots(t.Context(), "1MB")
		require.NoError(t, err)
		t.Cleanup(s.Close)
		return async(t, func() error {
			return s.Take(t.Context(), func(tx db.Tx) error { f(db.New(tx)); return nil })
		})
	}
	began, end := make(chan bool), make(chan bool)
	first := take(func(q *db.Queries) {
		began <- true
		<-end
		assert.Equal(t, []int32{today, today + 1}, days(q))
	})
	receive(t, began, "the first snapshot")
	dropped := async(t, func() error { _, err := retention.New(d.Tx()).DayDrop(t.Context(), today); return err })
	dbtest.AwaitWaiting(t, conn, 1)
	var seen []int32
	second := take(func(q *db.Queries) { seen = days(q) })
	dbtest.AwaitWaiting(t, conn, 2)
	require.NoError(t, d.Write(t.Context(), onDay(visitBatch("192.0.2.1", 1, 2), today+1), &db.Outcome{}), "nobody waits for a visit's locks")
	close(end)
	require.NoError(t, receive(t, first, "the end of the first snapshot"))
	require.NoError(t, receive(t, dropped, "the drop"))
	require.NoError(t, receive(t, second, "the second snapshot"))
	assert.Equal(t, []int32{today + 1}, seen)
}

func TestOnlyPartitionsOfVisitsAreDropped(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	exec(t, conn, `INSERT INTO closed_days (day_id) VALUES (20190701), (20190702), (20190703), (20190704)`)
	exec(t, conn, `CREATE TABLE visits_20190701 (page_id bigint)`)
	exec(t, conn, `CREATE TABLE other (day_id integer) PARTITION BY LIST (day_id)`)
	exec(t, conn, `CREATE TABLE visits_20190702 PARTITION OF other FOR VALUES IN (20190702)`)
	// This partition is made by hand and named after another day.
	exec(t, conn, `CREATE TABLE visits_20190703 PARTITION OF visits FOR VALUES IN (20190704)`)
	for _, day := range []int32{20190701, 20190702, 20190703} {
		dropped, err := retention.New(d.Tx()).DayDrop(t.Context(), day)
		require.NoError(t, err)
		assert.False(t, dropped, day)
	}
	assert.Len(t, dbtest.Column[string](t, conn, `SELECT relname FROM pg_class WHERE relname ~ '^visits_2019070[123]$'`), 3)
	dropped, err := retention.New(d.Tx()).DayDrop(t.Context(), 20190704)
	require.NoError(t, err)
	assert.True(t, dropped, "the day that it holds counts, not its name")

	for _, day := range []int32{20190230, 0, -20190629} {
		_, err := retention.New(d.Tx()).DayDrop(t.Context(), day)
		assert.Equal(t, db.FaultData, db.FaultOf(err), "%d: %v", day, err)
	}
}

// A function that runs as the owner may not resolve names to the caller's own objects.
func TestPartitionFunctionsTakeNoNamesFromTheirCaller(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	user := newLogin(t, conn, "footfall_app")
	exec(t, conn, `INSERT INTO closed_days (day_id) VALUES (20190629), (20190702)`)
	exec(t, conn, `CREATE SCHEMA trap AUTHORIZATION `+user)
	exec(t, conn, `CREATE TABLE trap.caught (what text)`)
	exec(t, conn, `GRANT INSERT ON trap.caught TO PUBLIC`)
	exec(t, conn, `GRANT USAGE ON SCHEMA trap TO PUBLIC`)

	caller := dbtest.Connect(t, withLogin(t, url, user))
	exec(t, caller, `SET search_path = pg_temp, trap, pg_catalog, footfall`)
	for _, decoy := range []string{
		`FUNCTION trap.format(text, text) RETURNS text AS 'INSERT INTO trap.caught VALUES (''format''); SELECT NULL::text'`,
		`FUNCTION trap.format(text, integer) RETURNS text AS 'INSERT INTO trap.caught VALUES (''format''); SELECT NULL::text'`,
		`FUNCTION trap.format(text, regclass) RETURNS text AS 'INSERT INTO trap.caught VALUES (''format''); SELECT NULL::text'`,
		`FUNCTION trap.format(text, text, integer) RETURNS text AS 'INSERT INTO trap.caught VALUES (''format''); SELECT NULL::text'`,
		`FUNCTION trap.to_regclass(text) RETURNS regclass AS 'INSERT INTO trap.caught VALUES (''to_regclass''); SELECT NULL::regclass'`,
		`FUNCTION trap.make_date(integer, integer, integer) RETURNS date AS 'INSERT INTO trap.caught VALUES (''make_date''); SELECT NULL::date'`,
		`FUNCTION trap.hashtext(text) RETURNS integer AS 'INSERT INTO trap.caught VALUES (''hashtext''); SELECT 1'`,
		`FUNCTION trap.pg_advisory_xact_lock(integer) RETURNS void AS 'INSERT INTO trap.caught VALUES (''lock'')'`,
		`FUNCTION trap.pg_get_expr(pg_node_tree, oid) RETURNS text AS 'INSERT INTO trap.caught VALUES (''pg_get_expr''); SELECT ''x''::text'`,
		`FUNCTION trap.joined(text, integer) RETURNS text AS 'INSERT INTO trap.caught VALUES (''||''); SELECT ''visits''::text'`,
		`FUNCTION trap.divided(integer, integer) RETURNS integer AS 'INSERT INTO trap.caught VALUES (''/''); SELECT 1'`,
		`OPERATOR trap.|| (FUNCTION = trap.joined, LEFTARG = text, RIGHTARG = integer)`,
		`OPERATOR trap./ (FUNCTION = trap.divided, LEFTARG = integer, RIGHTARG = integer)`,
		`OPERATOR trap.% (FUNCTION = trap.divided, LEFTARG = integer, RIGHTARG = integer)`,
		`TEMP TABLE visits (page_id bigint, day_id integer, ip inet) PARTITION BY LIST (day_id)`,
		`TEMP TABLE visits_20190629 PARTITION OF visits FOR VALUES IN (20190629)`,
		`TABLE trap.visits (page_id bigint, day_id integer, ip inet) PARTITION BY LIST (day_id)`,
		`TABLE trap.visits_20190702 PARTITION OF trap.visits FOR VALUES IN (20190702)`,
		`TEMP TABLE pg_inherits AS SELECT 'pg_temp.visits_20190629'::regclass::oid AS inhrelid, 'footfall.visits'::regclass::oid AS inhparent`,
		`TEMP TABLE pg_class AS SELECT * FROM pg_catalog.pg_class WHERE relname LIKE 'visits%'`,
	} {
		language := ""
		if decoy[0] == 'F' {
			language = " LANGUAGE sql"
		}
		exec(t, caller, `CREATE `+decoy+language)
	}

	require.True(t, query[bool](t, caller, `SELECT footfall.make_visits_day(20190701)`))
	require.True(t, query[bool](t, caller, `SELECT footfall.make_visits_day(20190702)`), "the caller's own table of that name is another one")
	require.True(t, query[bool](t, caller, `SELECT footfall.drop_visits_day(20190629)`))
	require.True(t, query[bool](t, caller, `SELECT footfall.drop_visits_day(20190702)`))
	require.False(t, query[bool](t, caller, `SELECT footfall.drop_visits_day(20190702)`))

	assert.Empty(t, dbtest.Column[string](t, conn, `SELECT what FROM trap.caught`), "statements that ran as the owner")
	assert.Equal(t, []string{"footfall.visits_20190701"}, dbtest.Column[string](t, conn, `
		SELECT relnamespace::regnamespace || '.' || relname FROM pg_class AS c JOIN pg_inherits AS i ON i.inhrelid = c.oid
		WHERE i.inhparent = 'footfall.visits'::regclass AND c.relowner = (SELECT relowner FROM pg_class
		WHERE oid = 'footfall.visits'::regclass)`))
	assert.Len(t, dbtest.Column[string](t, conn, `SELECT relname FROM pg_class WHERE relname IN ('visits_20190629', 'visits_20190702')`), 2,
		"the caller's own tables stay")
	_, err := caller.Exec(t.Context(), `DELETE FROM footfall.visits`)
	assert.Equal(t, insufficientPrivilege, code(err))
}

// Two services start at the same time: one makes partitions while the other one grants rights.
func TestGrantsDuringNewDays(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.New(t), db.Options{})
	granted := async(t, func() error {
		for range 40 {
			if _, err := d.Queries().RolesGrant(context.Background()); err != nil {
				return err
			}
		}
		return nil
	})
	for day := range 28 {
		for _, month := range []int32{100, 200, 300} {
			_, err := d.Queries().VisitsDayMake(t.Context(), 20200000+month+int32(day)+1)
			require.NoError(t, err)
		}
	}
	require.NoError(t, receive(t, granted, "the grants"))
}

// A session may read the list of partitions for the first time while a partition is attached. It would miss this
// partition for ever, because PostgreSQL has already sent the notification.
func TestEverySessionKnowsANewDay(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	d := dbtest.Open(t, m.url, db.Options{})
	for range dbtest.LongOrShort(40, 10) {
		day, sessions := m.take(t, func(day int32) {
			_, err := d.MakeDays(t.Context(), day)
			require.NoError(t, err)
		})
		for _, session := range sessions {
			assert.True(t, knows(t, session, day))
		}
	}
}

// A session that has missed a day still finds earlier visits of that day.
func TestLateVisitsOfADayThatTheSessionMissed(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	for range 20 {
		day, sessions := m.take(t, func(day int32) { exec(t, m.conn, `SELECT make_visits_day($1)`, day) })
		for _, session := range sessions {
			if !knows(t, session, day) {
				found := query[[]int32](t, session, `SELECT next_days FROM days_after('{1}', '{2}', '{192.0.2.1}', ARRAY[$1::integer],
					ARRAY[$1::integer])`, day)
				assert.Equal(t, []int32{day}, found)
				assert.True(t, knows(t, session, day))
				return
			}
		}
	}
	t.Skip("no session has missed a day")
}

// knows reports whether a session finds the visit of a day.
func knows(t *testing.T, session *pgx.Conn, day int32) bool {
	t.Helper()
	return query[int64](t, session, `SELECT count(*) FROM visits WHERE day_id = $1`, day) == 1
}

// meeting is a database in which sessions start to read while a day is made.
type meeting struct {
	url  string
	conn *pgx.Conn
	next time.Time
}

func newMeeting(t *testing.T) *meeting {
	t.Helper()
	url, conn := fixture(t)
	// The more days exist, the longer reading takes.
	exec(t, conn, `SELECT make_visits_day(to_char(date '2019-01-01' + n, 'YYYYMMDD')::integer) FROM generate_series(0, 59) AS n`)
	return &meeting{url, conn, time.Date(2019, 3, 2, 0, 0, 0, 0, time.UTC)}
}

// take makes the next day, with a visit. It returns the sessions that read in the meantime. It leaves out sessions
// that took so long on a slow machine that making the day would not wait for them.
func (m *meeting) take(t *testing.T, makeDay func(day int32)) (day int32, read []*pgx.Conn) {
	t.Helper()
	day, m.next = visit.DayOf(m.next, time.UTC), m.next.AddDate(0, 0, 1)
	var sessions [6]*pgx.Conn
	var took [6]time.Duration
	var reading sync.WaitGroup
	for i := range sessions {
		sessions[i] = dbtest.Connect(t, m.url)
		reading.Go(func() {
			<-time.After(time.Duration(i) * time.Millisecond) // usually one of them overlaps
			began := time.Now()
			_, err := sessions[i].Exec(t.Context(), `SELECT FROM visits`)
			assert.NoError(t, err)
			took[i] = time.Since(began)
		})
	}
	makeDay(day)
	exec(t, m.conn, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, $1, 0, '192.0.2.1')`, day)
	reading.Wait()
	for i, session := range sessions {
		if took[i] < time.Second/2 {
			read = append(read, session)
		}
	}
	return day, read
}

// dayBefore returns the UTC day this number of days before a time, such as 20190629, and its key.
func dayBefore(now time.Time, ago int) (day int32, key []byte) {
	at := now.UTC().AddDate(0, 0, -ago)
	day = int32(at.Year()*10000 + int(at.Month())*100 + at.Day()) //nolint:gosec // eight digits
	sum := sha256.Sum256([]byte(fmt.Sprint("key of ", day)))
	return day, sum[:]
}

// inFile reports whether the file of a table contains these bytes.
func inFile(t *testing.T, conn *pgx.Conn, path string, bytes []byte) bool {
	t.Helper()
	exec(t, conn, `CHECKPOINT`) // writes everything in memory
	return query[bool](t, conn, `SELECT coalesce(position($2::bytea IN pg_read_binary_file($1, 0, 1 << 20, true)), 0) > 0`, path, bytes)
}

// A deleted key is neither in the table's file nor in the planner's statistics. Keys that are still needed are
// unchanged.
func TestDeletedDayKeysLeaveNothingInTheFile(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	const days = 60
	now := time.Now() // midnight may pass later
	path := func() string { return query[string](t, conn, `SELECT pg_relation_filepath('day_keys')`) }
	for ago := days; ago >= 0; ago-- {
		day, key := dayBefore(now, ago)
		require.NoError(t, d.KeepDayKey(t.Context(), day, key))
	}
	exec(t, conn, `ANALYZE day_keys`)
	_, oldest := dayBefore(now, days)
	before := path()
	require.True(t, inFile(t, conn, before, oldest), "this test can see a key")

	from, _ := dayBefore(now, 1)
	require.NoError(t, d.Queries().DayKeysForget(t.Context(), from))
	for ago := days; ago >= 0; ago-- {
		day, key := dayBefore(now, ago)
		needed := ago <= 1
		assert.Equal(t, needed, inFile(t, conn, path(), key), "the key of %d days ago", ago)
		if needed {
			kept, err := d.Queries().DayKeyGet(t.Context(), day)
			require.NoError(t, err)
			assert.Equal(t, key, kept)
			continue
		}
		assert.False(t, inFile(t, conn, before, key), "the key of %d days ago, in the old file", ago)
	}
	assert.Zero(t, query[int64](t, conn, `SELECT count(*) FROM pg_stats WHERE tablename = 'day_keys' AND attname = 'key'`), "samples of keys")

	rewritten := path()
	require.NoError(t, d.Queries().DayKeysForget(t.Context(), from))
	assert.Equal(t, rewritten, path(), "nothing is written where nothing is to be deleted")
}

// A session that needs a key gets it while other keys are deleted, and instances that delete keys concurrently do
// not block each other.
func TestDayKeysDuringTheirDeletion(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	now := time.Now()
	today, key := dayBefore(now, 0)
	past, _ := dayBefore(now, 7)
	require.NoError(t, d.KeepDayKey(t.Context(), today, key))
	disperse := dbtest.Crowd(t, 2, func(int, int) {
		kept, err := d.Queries().DayKeyGet(context.Background(), today)
		assert.NoError(t, err)
		assert.Equal(t, key, kept)
	})
	for range 30 {
		exec(t, conn, `INSERT INTO day_keys (day_id, key) VALUES ($1, $2)`, past, key)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				err := d.Queries().DayKeysForget(t.Context(), today)
				for db.FaultOf(err) == db.FaultBusy { // on a slow machine a session may wait too long for the others
					err = d.Queries().DayKeysForget(t.Context(), today)
				}
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Equal(t, []int32{today}, dbtest.Column[int32](t, conn, `SELECT day_id FROM day_keys`))
	}
	disperse()

	exec(t, conn, `INSERT INTO day_keys (day_id, key) VALUES ($1, $2)`, past, key)
	reading := begin(t, url, `SELECT FROM day_keys`)
	err := d.Queries().DayKeysForget(t.Context(), today)
	require.Equal(t, db.FaultBusy, db.FaultOf(err), "it waits for nobody for long: %v", err)
	require.NoError(t, reading.Commit(t.Context()))
	require.NoError(t, d.Queries().DayKeysForget(t.Context(), today))
}
