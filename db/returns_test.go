package db_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/retention"
)

// daysOfReturns are days near and far from each other, beside ends of months and years and a 29th
// of February.
var daysOfReturns = []int32{
	20190628, 20190629, 20190630, 20190701, 20191231, 20200101, 20200228, 20200229, 20200301, 20200302, 20200303, 20200304, 20230101, 20230102,
}

// histories are visitors of targets on those days, and the tables that rest on them. Table came has
// a row for each visitor of a target on a day.
type histories struct {
	conn   *pgx.Conn
	random *rand.Rand
}

func newHistories(t *testing.T) *histories {
	t.Helper()
	_, conn := fixture(t)
	h := &histories{conn: conn, random: rand.New(rand.NewPCG(6, 29))} //nolint:gosec // to be repeated
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

// check compares the sums of every range, which may begin and end where no day is, of each target
// alone and of all at once, and the links themselves with table came.
func (h *histories) check(t *testing.T, when string) {
	t.Helper()
	exec(t, h.conn, `SET plan_cache_mode = force_generic_plan`) // else the sums are planned anew for each range
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

// pack packs so many rows at a time, some times or until none is left, and returns how many.
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

// Whatever is packed, and in how many steps, all ranges have the uniques of their rows, and all
// links can be read.
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

	// Links of closed days can be raised and lowered, as a late visit needs: what was counted in any
	// order is what was counted in order.
	for range dbtest.LongOrShort(200, 40) {
		h.countLate(t, int64(1+h.random.IntN(3)), h.random.IntN(60), daysOfReturns[h.random.IntN(len(daysOfReturns))])
	}
	h.check(t, "after late visits")

	// Somebody has counted for a closed day, more than one bit more.
	exec(t, h.conn, `INSERT INTO open_returns VALUES (2, 20200304, 20190629, 1000), (2, 20200304, 20200303, 1), (2, 20190629, 20180629, 1)`)
	before := dbtest.Column[string](t, h.conn,
		`SELECT format('%s %s %s', day_id, previous_day, sum(visitors)) FROM returns WHERE page_id = 2 GROUP BY day_id, previous_day ORDER BY 1`)
	assert.EqualValues(t, 3, h.pack(t, 1000, 10))
	assert.Equal(t, before, dbtest.Column[string](t, h.conn, `SELECT format('%s %s %s', day_id, previous_day, visitors) FROM returns
		WHERE page_id = 2 ORDER BY 1`))

	// All that has returned on a day is taken away again.
	exec(t, h.conn, `SELECT add_packed_returns(array_agg(page_id), array_agg(day_id), array_agg(previous_day), array_agg(-visitors))
		FROM returns WHERE day_id = 20200304`)
	assert.Empty(t, dbtest.Column[int64](t, h.conn, `SELECT page_id FROM packed_returns WHERE day_id = 20200304`))
}

// countLate counts a visitor of a target on a day, if they are not counted there yet: with p the
// visitor's day before it and n the one after, the link from n to p becomes two.
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

// Packing and a late visit to the same day of a target take their turns, or one would undo the
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

// Packing that is killed has changed nothing, and whoever counts for the day meanwhile is
// packed with the rest.
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
