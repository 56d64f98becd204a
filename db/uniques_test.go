package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// While a report reads, the rows of a day go: what it calls exact is right all the same. Two of
// five visitors came on the day that stays, too.
func TestUniquesBesideADayThatIsDropped(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	conn := dbtest.Connect(t, url)
	exec(t, conn, `
		INSERT INTO apps (name, access) VALUES ('demo', 'open');
		INSERT INTO pages (app_id, uri) VALUES (1, 'a.example');
		INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'a.example/x'), (1, 1, 'a.example/y');
		SELECT make_visits_day(20250901), make_visits_day(20250902);
		INSERT INTO visits (page_id, day_id, previous_day, ip)
		SELECT p, 20250901, 0, '10.0.0.0'::inet + n FROM generate_series(1, 3) AS p, generate_series(1, 5) AS n
		UNION ALL
		SELECT p, 20250902, 20250901, '10.0.0.0'::inet + n FROM generate_series(1, 3) AS p, generate_series(1, 2) AS n;
		INSERT INTO days SELECT p, nullif(sign(p - 1), 0), 20250901, 5, 5, 5 FROM generate_series(1, 3) AS p;
		INSERT INTO days SELECT p, nullif(sign(p - 1), 0), 20250902, 2, 2, 0 FROM generate_series(1, 3) AS p;
		SELECT close_day(20250901)`)
	holder := dbtest.Connect(t, url)
	tx, err := holder.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE erased_visits`) // which a report reads before it has read visits
	require.NoError(t, err)
	type answer struct {
		row db.UniquesOfTargetsRow
		err error
	}
	answered := make(chan answer, 1)
	d := dbtest.Open(t, url, db.Options{StatementTimeout: time.Minute})
	go func() {
		var a answer
		a.err = d.Report(context.Background(), func(q *db.Queries) (err error) {
			a.row, err = q.UniquesOfTargets(context.Background(), db.UniquesOfTargetsParams{
				App: "demo", Targets: []string{"a.example/x", "a.example/y"}, FromDay: 20250901, ToDay: 20250930})
			return err
		})
		answered <- a
	}()
	require.Eventually(t, func() bool {
		return query[bool](t, conn, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'erased_visits'::regclass)`)
	}, time.Minute, time.Millisecond)
	exec(t, conn, `INSERT INTO visits_kept (app_id, from_day) VALUES (1, 20250902)`)
	_, err = conn.Exec(t.Context(), `SELECT drop_visits_day(20250901)`)
	assert.Equal(t, db.FaultBusy, db.FaultOf(err), "a report that is under way holds all days")
	require.NoError(t, tx.Rollback(t.Context()))
	a := <-answered
	require.NoError(t, a.err)
	assert.EqualValues(t, 5, a.row.Uniques)
	exec(t, conn, `SELECT drop_visits_day(20250901)`)
}
