package db_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/retention"
)

// Batches of late visits last longer than anybody else may wait for a lock: a day waits for those
// that are under way, and later ones wait behind it.
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

// However many snapshots follow one another, a day goes between two of them, and visits go on.
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
	// Somebody has made a partition by hand, and called it after another day.
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

// A function that runs as the owner must not take the names of a caller's own objects for the
// owner's.
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

	assert.Empty(t, dbtest.Column[string](t, conn, `SELECT what FROM trap.caught`), "what ran in the owner's name")
	assert.Equal(t, []string{"footfall.visits_20190701"}, dbtest.Column[string](t, conn, `
		SELECT relnamespace::regnamespace || '.' || relname FROM pg_class AS c JOIN pg_inherits AS i ON i.inhrelid = c.oid
		WHERE i.inhparent = 'footfall.visits'::regclass AND c.relowner = (SELECT relowner FROM pg_class
		WHERE oid = 'footfall.visits'::regclass)`))
	assert.Len(t, dbtest.Column[string](t, conn, `SELECT relname FROM pg_class WHERE relname IN ('visits_20190629', 'visits_20190702')`), 2,
		"the caller's own tables stay")
	_, err := caller.Exec(t.Context(), `DELETE FROM footfall.visits`)
	assert.Equal(t, insufficientPrivilege, code(err))
}

// Services that start beside each other: one makes partitions while another grants.
func TestGrantsBesideNewDays(t *testing.T) {
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
