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
	"footfall/report"
)

// fiveVisitors came to two pages on a day that may be dropped, and two of them on the next day.
func fiveVisitors(t *testing.T) (url string, conn *pgx.Conn) {
	t.Helper()
	url = dbtest.New(t)
	conn = dbtest.Connect(t, url)
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
		INSERT INTO open_returns SELECT p, 20250902, 20250901, 2 FROM generate_series(1, 3) AS p`)
	return url, conn
}

// While a report reads, the rows of a day go: what it calls exact is right all the same.
func TestUniquesBesideADayThatIsDropped(t *testing.T) {
	t.Parallel()
	url, conn := fiveVisitors(t)
	exec(t, conn, `SELECT close_day(20250901)`)
	holder := dbtest.Connect(t, url)
	tx, err := holder.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE erased_visits`) // which a report reads before it has read visits
	require.NoError(t, err)
	type answer struct {
		row report.UniquesOfRow
		err error
	}
	answered := make(chan answer, 1)
	d := dbtest.Open(t, url, db.Options{StatementTimeout: time.Minute})
	go func() {
		var a answer
		a.err = d.Report(context.Background(), func(tx db.Tx) (err error) {
			a.row, err = report.New(tx).UniquesOf(context.Background(), report.UniquesOfParams{
				App: "demo", Targets: []string{"a.example/x", "a.example/y"}, FromDay: 20250901, ToDay: 20250930})
			return err
		})
		answered <- a
	}()
	require.Eventually(t, func() bool {
		return query[bool](t, conn, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'erased_visits'::regclass)`)
	}, dbtest.Patience, dbtest.Tick)
	exec(t, conn, `INSERT INTO visits_kept (app_id, from_day) VALUES (1, 20250902)`)
	_, err = conn.Exec(t.Context(), `SELECT drop_visits_day(20250901)`)
	assert.Equal(t, db.FaultBusy, db.FaultOf(err), "a report that is under way holds all days")
	require.NoError(t, tx.Rollback(t.Context()))
	a := <-answered
	require.NoError(t, a.err)
	assert.EqualValues(t, 5, a.row.Uniques)
	exec(t, conn, `SELECT drop_visits_day(20250901)`)
}

// A transaction may have one snapshot for all it reads, as those of psql and of tools that export
// have. Rows of a day that is dropped meanwhile are gone for it, while all else says that they are
// kept: what cannot be counted is estimated, and says so, or is refused.
func TestUniquesInASnapshotOfBeforeADayWasDropped(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]bool{"closed before": true, "closed since": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, conn := fiveVisitors(t)
			exec(t, conn, `INSERT INTO counters SELECT page_id, sum(hot), sum(pv), sum(new_visitors) FROM days GROUP BY page_id`)
			if closed {
				exec(t, conn, `SELECT close_day(20250901)`)
			}
			tx, err := dbtest.Connect(t, url).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			require.NoError(t, err)
			defer tx.Rollback(t.Context())
			_, err = tx.Exec(t.Context(), `SELECT FROM apps`) // and so the snapshot is taken
			require.NoError(t, err)
			exec(t, conn, `SELECT close_day(20250901)`)
			exec(t, conn, `INSERT INTO visits_kept (app_id, from_day) VALUES (1, 20250902)`)
			exec(t, conn, `SELECT drop_visits_day(20250901)`)

			ask := func(q interface {
				QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
			}, targets string, from int) (uniques int, exact bool, err error) {
				err = q.QueryRow(t.Context(), `SELECT uniques, exact FROM report.uniques('demo', `+targets+`, $1, 20250930)`, from).Scan(&uniques,
					&exact)
				return uniques, exact, err
			}
			const group, site = `'{a.example/x,a.example/y}'::text[]`, `'a.example'::text`
			for _, asked := range []struct {
				targets string
				from, n int
			}{{group, 20250902, 2}, {site, 20250902, 2}, {site, 20250901, 5}, {`'{a.example/x}'::text[]`, 20250901, 5}} {
				n, exact, err := ask(tx, asked.targets, asked.from)
				require.NoError(t, err)
				assert.Equal(t, asked.n, n, "%s from %d", asked.targets, asked.from)
				assert.True(t, exact)
			}
			n, exact, err := ask(tx, group, 20250901)
			if closed {
				require.NoError(t, err)
				assert.Equal(t, 5, n)
				assert.False(t, exact)
			} else {
				require.ErrorContains(t, err, "begin a new one")
				assert.Equal(t, "40001", code(err))
			}
			n, exact, err = ask(conn, group, 20250901)
			require.NoError(t, err)
			assert.Equal(t, 5, n)
			assert.False(t, exact)
		})
	}
}
