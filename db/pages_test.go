package db_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/report"
	"footfall/retention"
)

// Pages are listed in order of uri, a few at a time, even if the first 200 characters are equal, which are all that
// the index has.
func TestPagesAfterAreInOrder(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	conn := dbtest.Connect(t, url)
	exec(t, conn, `INSERT INTO apps (name) VALUES ('shop')`)
	exec(t, conn, `INSERT INTO pages (app_id, uri) VALUES (1, 'example.com')`)
	long := "example.com/" + strings.Repeat("long/", 50)
	var uris []string
	for i := range 40 {
		uris = append(uris, fmt.Sprintf("example.com/%d", i), fmt.Sprintf("%s%d", long, i), fmt.Sprintf("%s%d/é", long, i))
	}
	rand.Shuffle(len(uris), func(i, j int) { uris[i], uris[j] = uris[j], uris[i] })
	exec(t, conn, `INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, unnest($1::text[])`, uris)
	slices.Sort(uris)
	d := dbtest.Open(t, url, db.Options{})
	for _, prefix := range []string{"", "example.com/", "example.com/1", long, long + "2", "other.example/"} {
		var want, found []string
		for _, uri := range uris {
			if strings.HasPrefix(uri, prefix) {
				want = append(want, uri)
			}
		}
		for after := ""; ; after = found[len(found)-1] {
			some, err := report.New(d.Tx()).PagesAfter(t.Context(), report.PagesAfterParams{App: "shop", Prefix: prefix, After: after,
				ToDay: 99991231, N: 7})
			require.NoError(t, err)
			for _, page := range some {
				found = append(found, page.Uri)
			}
			if len(some) < 7 {
				break
			}
		}
		assert.Equal(t, want, found, prefix)
	}
}

// A user changes the time zone in psql while the app's first page is being made: the UPDATE waits, and is refused. An
// app without pages may be changed.
func TestAppsCountAsTheyBegan(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	conn, maker := dbtest.Connect(t, url), dbtest.Connect(t, url)
	exec(t, conn, `INSERT INTO apps (name) VALUES ('shop')`)
	exec(t, conn, `UPDATE apps SET tz = 'Europe/Berlin'`)
	tx, err := maker.Begin(t.Context())
	require.NoError(t, err)
	exec(t, maker, `INSERT INTO pages (app_id, uri) VALUES (1, 'example.com')`)
	changed := make(chan error, 1)
	changer := dbtest.Connect(t, url)
	go func() {
		_, err := changer.Exec(t.Context(), `UPDATE apps SET tz = 'UTC'`)
		changed <- err
	}()
	dbtest.AwaitWaiting(t, conn, 1)
	require.NoError(t, tx.Commit(t.Context()))
	require.ErrorContains(t, <-changed, "stay what they are")
	exec(t, conn, `UPDATE apps SET retain_days = 7, tz = 'Europe/Berlin'`)
}

// fiveVisitors returns a database with five visitors of two pages on a day that may be dropped. Two visitors returned
// on the next day.
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

// While a report reads, the rows of a day are dropped: a number reported as exact is still right.
func TestUniquesWhileADayIsDropped(t *testing.T) {
	t.Parallel()
	url, conn := fiveVisitors(t)
	exec(t, conn, `SELECT close_day(20250901)`)
	holder := dbtest.Connect(t, url)
	tx, err := holder.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE erased_visits`) // a report reads it before visits
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

// A transaction may use one snapshot for all its queries, as in psql and export tools. If a day is dropped in the
// meantime, the snapshot lacks the day's rows, although other tables in it still list the day as kept. Numbers that
// cannot be counted are estimated and marked as such, or refused.
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
			_, err = tx.Exec(t.Context(), `SELECT FROM apps`) // takes the snapshot
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

// daysOfReturns are days near and far from each other, around ends of months and years and a 29th of February.
var daysOfReturns = []int32{
	20190628, 20190629, 20190630, 20190701, 20191231, 20200101, 20200228, 20200229, 20200301, 20200302, 20200303, 20200304, 20230101, 20230102,
}

// histories are visitors of targets on these days, and the tables derived from them. Table came has a row for each
// visitor of a target on a day.
type histories struct {
	conn   *pgx.Conn
	random *rand.Rand
}

func newHistories(t *testing.T) *histories {
	t.Helper()
	_, conn := fixture(t)
	h := &histories{conn: conn, random: rand.New(rand.NewPCG(6, 29))} //nolint:gosec // repeatable
	exec(t, conn, `CREATE TABLE came (page_id bigint, day_id integer, visitor integer, PRIMARY KEY (page_id, day_id, visitor))`)
	exec(t, conn, `DELETE FROM counters`)
	for page := int64(1); page <= 3; page++ {
		visitors, seldom := 1+h.random.IntN(50), 1+h.random.IntN(4)
		for visitor := range visitors {
			for _, day := range daysOfReturns {
				if h.random.IntN(seldom) == 0 {
					exec(t, conn, `INSERT INTO came VALUES ($1, $2, $3)`, page, day, visitor)
				}
			}
		}
	}
	exec(t, conn, `CREATE VIEW expected AS
		SELECT page_id, day_id, visitor, lag(day_id) OVER (PARTITION BY page_id, visitor ORDER BY day_id) AS previous_day FROM came`)
	exec(t, conn, `INSERT INTO days (page_id, day_id, hot, pv, new_visitors)
		SELECT page_id, day_id, 2 * count(*), count(*), count(*) - count(previous_day) FROM expected GROUP BY page_id, day_id`)
	exec(t, conn, `INSERT INTO open_returns
		SELECT page_id, day_id, previous_day, count(*) FROM expected WHERE previous_day IS NOT NULL GROUP BY page_id, day_id, previous_day`)
	exec(t, conn, `INSERT INTO counters SELECT page_id, sum(hot), sum(pv), sum(new_visitors) FROM days GROUP BY page_id`)
	return h
}

// check compares the sums of every range with the table came, for each single target and for all together. A range
// may start and end between days. It also compares the links themselves.
func (h *histories) check(t *testing.T, when string) {
	t.Helper()
	exec(t, h.conn, `SET plan_cache_mode = force_generic_plan`) // else the sums are planned again for each range
	assert.Empty(t, dbtest.Column[string](t, h.conn, `
		WITH edges AS (SELECT unnest($1::integer[]) AS day), expected AS MATERIALIZED (SELECT * FROM expected)
		SELECT format('target %s of %s from %s to %s: %s, but %s came', s.page_id, a.targets, f.day, t.day, s, w)
		FROM (SELECT ARRAY[id] AS targets FROM pages UNION ALL SELECT array_agg(id) FROM pages) a
		CROSS JOIN edges f JOIN edges t ON t.day >= f.day
		CROSS JOIN LATERAL targets_sums(a.targets, f.day, t.day) s
		CROSS JOIN LATERAL (
			SELECT s.page_id, count(*) AS pv, count(*) - count(previous_day) AS new_visitors, 2 * count(*) AS hot, count(DISTINCT visitor) AS uniques
			FROM expected WHERE page_id = s.page_id AND day_id BETWEEN f.day AND t.day
		) w
		WHERE s::text <> w::text`, append([]int32{0, 20190631, 20200230, 20201300, 99991231}, daysOfReturns...)), when)
	assert.Empty(t, dbtest.Column[string](t, h.conn, `
		SELECT format('%s on %s after %s: %s returned, but %s came', page_id, day_id, previous_day, r.visitors, e.visitors)
		FROM returns r FULL JOIN (
			SELECT page_id, day_id, previous_day, count(*) AS visitors
			FROM expected WHERE previous_day IS NOT NULL GROUP BY page_id, day_id, previous_day
		) e USING (page_id, day_id, previous_day)
		WHERE r.visitors IS DISTINCT FROM e.visitors`), when)
	assert.Empty(t, dbtest.Column[string](t, h.conn, `
		SELECT concat_ws(' ', p.uri, r.day_id, r.previous_day, r.visitors)
		FROM returns AS r JOIN pages AS p ON p.id = r.page_id
		EXCEPT ALL
		SELECT concat_ws(' ', target, day_id, previous_day, visitors) FROM report.returns WHERE app = 'shop'`), when)
}

func (h *histories) closeDays(t *testing.T, days []int32) {
	t.Helper()
	exec(t, h.conn, `SELECT close_day(unnest($1::integer[]))`, days)
}

// pack packs atOnce rows at a time until none is left, at most the given number of times. It returns the number of
// packed rows.
func (h *histories) pack(t *testing.T, atOnce, times int) (packed int64) {
	t.Helper()
	from := int64(0)
	for range times {
		some, err := retention.New(h.conn).ReturnsPack(t.Context(), from, int32(atOnce)) //nolint:gosec // few
		require.NoError(t, err)
		packed += some.Packed
		if some.Packed == 0 {
			break
		}
		from = some.LastPage
	}
	return packed
}

// However many rows are packed in however many steps, the uniques of all ranges stay the same, and all links can be
// read.
func TestReturnsArePackedWithoutALoss(t *testing.T) {
	t.Parallel()
	h := newHistories(t)
	h.check(t, "nothing packed")
	assert.Zero(t, h.pack(t, 5, 1), "no day is closed")

	h.closeDays(t, daysOfReturns[:9])
	assert.Positive(t, h.pack(t, 1, 2))
	assert.Len(t, dbtest.Column[int32](t, h.conn, `SELECT day_id FROM packed_returns`), 2,
		"one day of a target at a time, however many are closed")
	h.check(t, "most left")
	left := query[int64](t, h.conn, `SELECT count(*) FROM open_returns WHERE day_id <= $1`, daysOfReturns[8])
	require.Positive(t, left)
	assert.Equal(t, left, h.pack(t, 1000, 10), "it goes on where it ended")
	h.check(t, "two thirds of the days packed")
	require.NotEmpty(t, dbtest.Column[int32](t, h.conn, `SELECT day_id FROM open_returns`), "days that are not closed")

	h.closeDays(t, daysOfReturns)
	h.pack(t, 7, 1000)
	assert.Empty(t, dbtest.Column[int32](t, h.conn, `SELECT day_id FROM open_returns`))
	h.check(t, "all packed")

	// The counts of links of closed days can be raised and lowered, as a late visit requires. Visits in any order
	// lead to the same links.
	for range dbtest.LongOrShort(200, 40) {
		h.countLate(t, int64(1+h.random.IntN(3)), h.random.IntN(60), daysOfReturns[h.random.IntN(len(daysOfReturns))])
	}
	h.check(t, "after late visits")

	// Counts of a closed day that need several more bits are packed, too.
	exec(t, h.conn, `INSERT INTO open_returns VALUES (2, 20200304, 20190629, 1000), (2, 20200304, 20200303, 1), (2, 20190629, 20180629, 1)`)
	before := dbtest.Column[string](t, h.conn,
		`SELECT format('%s %s %s', day_id, previous_day, sum(visitors)) FROM returns WHERE page_id = 2 GROUP BY day_id, previous_day ORDER BY 1`)
	assert.EqualValues(t, 3, h.pack(t, 1000, 10))
	assert.Equal(t, before, dbtest.Column[string](t, h.conn, `SELECT format('%s %s %s', day_id, previous_day, visitors) FROM returns
		WHERE page_id = 2 ORDER BY 1`))

	// All returns of a day are removed.
	exec(t, h.conn, `SELECT add_packed_returns(array_agg(page_id), array_agg(day_id), array_agg(previous_day), array_agg(-visitors))
		FROM returns WHERE day_id = 20200304`)
	assert.Empty(t, dbtest.Column[int64](t, h.conn, `SELECT page_id FROM packed_returns WHERE day_id = 20200304`))
}

// countLate counts a visitor of a target on a day, unless they are already counted. If the visitor has a day p
// before this day and a day n after it, the link from n to p becomes two links: from n to this day, and from this
// day to p.
func (h *histories) countLate(t *testing.T, page int64, visitor int, day int32) {
	t.Helper()
	days := dbtest.Column[int32](t, h.conn, `SELECT day_id FROM came WHERE page_id = $1 AND visitor = $2 ORDER BY 1`, page, visitor)
	at, was := slices.BinarySearch(days, day)
	if was {
		return
	}
	exec(t, h.conn, `INSERT INTO came VALUES ($1, $2, $3)`, page, day, visitor)
	link := func(day, previous int32, added int64) {
		exec(t, h.conn, `SELECT add_packed_returns(ARRAY[$1::bigint], ARRAY[$2::integer], ARRAY[$3::integer], ARRAY[$4::bigint])`, page, day,
			previous, added)
	}
	isNew := 1
	if at > 0 {
		isNew = 0
		link(day, days[at-1], 1)
	}
	if at < len(days) {
		link(days[at], day, 1)
		if at > 0 {
			link(days[at], days[at-1], -1)
		} else {
			exec(t, h.conn, `UPDATE days SET new_visitors = new_visitors - 1 WHERE page_id = $1 AND day_id = $2`, page, days[at])
		}
	}
	exec(t, h.conn, `INSERT INTO days AS d (page_id, day_id, hot, pv, new_visitors) VALUES ($1, $2, 2, 1, $3)
		ON CONFLICT (page_id, day_id) DO UPDATE SET hot = d.hot + 2, pv = d.pv + 1, new_visitors = d.new_visitors + $3`, page, day, isNew)
	newVisitors := 0
	if len(days) == 0 {
		newVisitors = 1
	}
	exec(t, h.conn, `UPDATE counters SET hot = hot + 2, pv = pv + 1, uv = uv + $2 WHERE page_id = $1`, page, newVisitors)
}

// Packing and a late visit to the same day of a target take turns. Otherwise one would undo the change of the
// other.
func TestPackingWaitsForTheCounters(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	exec(t, conn, `INSERT INTO closed_days (day_id) VALUES (20190629)`)
	exec(t, conn, `INSERT INTO packed_returns VALUES (2, 20190629, B'1', B'11')`)
	exec(t, conn, `INSERT INTO open_returns VALUES (2, 20190629, 20190627, 4)`)
	late := begin(t, url, `SELECT FROM counters WHERE page_id = 2 FOR UPDATE`)
	_, err := late.Exec(t.Context(), `SELECT add_packed_returns('{2}', '{20190629}', '{20190628}', '{5}')`)
	require.NoError(t, err)
	packed := async(t, func() error {
		_, err := retention.New(d.Tx()).ReturnsPack(context.Background(), 0, 10)
		return err
	})
	dbtest.AwaitWaiting(t, conn, 1)
	require.NoError(t, late.Commit(t.Context()))
	require.NoError(t, receive(t, packed, "packing"))
	assert.Equal(t, []string{"20190627 4", "20190628 8"},
		dbtest.Column[string](t, conn, `SELECT previous_day || ' ' || visitors FROM returns ORDER BY 1`))
	assert.Empty(t, dbtest.Column[int32](t, conn, `SELECT day_id FROM open_returns`))
}

// If packing is killed, it has changed nothing. Visits that are counted for the day in the meantime are packed
// later.
func TestPackingIsKilled(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	exec(t, conn, `INSERT INTO closed_days (day_id) VALUES ($1)`, today)
	exec(t, conn, `INSERT INTO visitors (page_id, rank, first_day, last_day, ip)
		VALUES (1, 1, 20190627, 20190627, '192.0.2.1'), (2, 1, 20190627, 20190627, '192.0.2.1')`)
	exec(t, conn, `UPDATE counters SET hot = 1, pv = 1, uv = 1`)
	exec(t, conn, `INSERT INTO open_returns VALUES (1, $1, 20190627, 4), (2, $1, 20190627, 4)`, today)
	const links = `SELECT format('%s %s %s', page_id, previous_day, sum(visitors)) FROM returns GROUP BY page_id, previous_day ORDER BY 1`
	packing := begin(t, url, `SELECT pack_returns(0, 10)`)
	require.Equal(t, []string{"1 20190627 4", "2 20190627 4"}, dbtest.Column[string](t, conn, links))
	counted := async(t, func() error { return d.Write(context.Background(), visitBatch("192.0.2.1", 1, 2), &db.Outcome{}) })
	dbtest.AwaitWaiting(t, conn, 1)
	exec(t, conn, `SELECT pg_terminate_backend($1)`, packing.Conn().PgConn().PID())
	require.NoError(t, receive(t, counted, "the batch"))
	require.Equal(t, []string{"1 20190627 5", "2 20190627 5"}, dbtest.Column[string](t, conn, links))

	packed, err := retention.New(d.Tx()).ReturnsPack(t.Context(), 0, 10)
	require.NoError(t, err)
	assert.EqualValues(t, 2, packed.Packed)
	require.Equal(t, []string{"1 20190627 5", "2 20190627 5"}, dbtest.Column[string](t, conn, links))
}
