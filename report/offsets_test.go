package report_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/desk"
	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

// All-time totals and ranks include numbers from elsewhere, in SQL as in Go, and the views show both. Days and ranges
// do not include them.
func TestOffsetsInReports(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	ctx := t.Context()
	r.Exec(t, `UPDATE apps SET tz = 'Asia/Tokyo'`)
	r.Exec(t, `INSERT INTO pages (app_id, uri) VALUES (1, 's.example')`)
	r.Exec(t, `INSERT INTO pages (app_id, uri, site_id) SELECT 1, 's.example/p', id FROM pages`)
	r.Exec(t, `INSERT INTO counters (page_id, hot, pv, uv) SELECT id, 5, 4, 3 FROM pages`)
	r.Exec(t, `INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors) SELECT id, site_id, 20190629, 5, 4, 3 FROM pages`)
	r.Exec(t, `INSERT INTO visitors (page_id, ip, rank, first_day, last_day) SELECT id, ('192.0.2.' || n)::inet, n, 20190629, 20190629
		FROM pages, generate_series(1, 3) AS n`)
	overview := func(target string) string {
		a, err := r.Overview(ctx, "demo", target, 20190629)
		require.NoError(t, err)
		return text(t, a)
	}
	counted := overview("s.example/p")
	_, err := r.Admin.SetOffsets(ctx, "demo", []admin.Offset{
		{URI: "s.example/p", Hot: 100, PV: 50, UV: 48}, {URI: "s.example", Hot: 7}, {URI: "s.example/never", Hot: 9, PV: 2, UV: 1},
	}, false)
	require.NoError(t, err)

	for _, c := range []struct {
		sql  string
		want []string
	}{
		{`SELECT concat_ws(' ', site, pv, uv, hot, counted_pv, counted_uv, counted_hot) FROM report.sites`, []string{"s.example 4 3 12 4 3 5"}},
		{`SELECT concat_ws(' ', uri, pv, uv, hot, counted_pv, counted_uv, counted_hot) FROM report.pages`,
			[]string{"s.example/p 54 51 105 4 3 5"}},
		{`SELECT (since AT TIME ZONE 'UTC')::text FROM report.sites UNION ALL SELECT (since AT TIME ZONE 'UTC')::text FROM report.pages`,
			[]string{"2019-06-28 15:00:00", "2019-06-28 15:00:00"}}, // the start of the day, not the time of the insert
		{`SELECT t::text FROM report.totals('demo', 's.example/p') AS t`, []string{"(54,51,105,4,3,5)"}},
		{`SELECT t::text FROM report.totals('demo', 's.example/never') AS t`, []string{"(2,1,9,0,0,0)"}},
		{`SELECT t::text FROM report.totals('demo', 's.example/nobody') AS t`, []string{}},
		{`SELECT t::text FROM report.totals('other', 's.example') AS t`, []string{}},
		{`SELECT concat_ws(' ', rank, first_day, is_round) FROM report.first_visits('demo', 's.example/p', 3)`,
			[]string{"3 20190629 f", "2 20190629 t", "1 20190629 t"}}, // as shown before there was an offset
		{`SELECT concat_ws(' ', target, rank) FROM report.ranks WHERE visitor = '192.0.2.3' ORDER BY 1`,
			[]string{"s.example 3", "s.example/p 3"}},
		{`SELECT concat_ws(' ', target, pv, new_visitors, hot) FROM report.days WHERE target = 's.example/p'`, []string{"s.example/p 4 3 5"}},
		{`SELECT concat_ws(' ', uri, pv, new_visitors, hot) FROM report.top_pages('demo', 0, 20190629)`, []string{"s.example/p 4 3 5"}},
		{`SELECT concat_ws(' ', uniques, new_visitors, pv, hot) FROM report.numbers('demo', 's.example/p', 0, 20190629)`, []string{"3 3 4 5"}},
	} {
		assert.Equal(t, c.want, desk.Column[string](t, r.Desk, c.sql), c.sql)
	}

	days, err := r.DayByDay(ctx, report.Look{App: "demo", Target: "s.example/p", In: visit.Range{From: 20190626, To: 20190630}})
	require.NoError(t, err)
	assert.Contains(t, text(t, days), `"days":[{"day":20190629,"pv":4,"new_visitors":3,"hot":5},{"day":20190630,"pv":0,`,
		"of days before counting began nobody knows")

	shown := overview("s.example/p")
	assert.Contains(t, shown, `"pv":54,"uv":51,"hot":105,"offset":{"pv":50,"uv":48,"hot":100},"first_days":[{"day":20190629,"pv":4,`+
		`"new_visitors":3,"hot":5,"uv":51}]`)
	bare, err := r.Counted().Overview(ctx, "demo", "s.example/p", 20190629)
	require.NoError(t, err)
	assert.Equal(t, counted, text(t, bare))
	assert.Contains(t, overview("s.example/never"), `"pv":2,"uv":1,"hot":9`)
	a, err := r.Overview(ctx, "demo", "s.example/p", 20190629)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, report.Print(&out, a, report.Text, draw.Style{}))
	printed := out.String()
	assert.Contains(t, printed, "in all: pv 54, uv 51, hot 105\ncounted by another tool and included above: pv 50, uv 48, hot 100\n")
	assert.Contains(t, printed, "49 to 51")

	rank := int64(rand.IntN(3)) + 1
	for reader, before := range map[*report.Reader]int64{r.Reader: 48, r.Counted(): 0} {
		found, err := reader.Ranked(ctx, report.Look{App: "demo", Target: "s.example/p", Rank: rank + before})
		require.NoError(t, err)
		assert.Equal(t, rank+before, found.Rank)
		assert.EqualValues(t, '0'+rank, found.Visitor.String()[len("192.0.2.")])
		again, err := reader.Ranked(ctx, report.Look{App: "demo", Target: "s.example/p", Stored: []netip.Addr{found.Visitor}})
		require.NoError(t, err)
		assert.Equal(t, found, again)
	}
	_, err = r.Ranked(ctx, report.Look{App: "demo", Target: "s.example/p", Rank: 48})
	require.ErrorIs(t, err, report.ErrNoVisitor)
}

// A number that was shown to a visitor does not change, even if offsets are set or removed later.
func TestOffsetsDoNotRewriteThePast(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	visitors := int64(0)
	come := func(n int64) {
		visitors += n
		r.Exec(t, `INSERT INTO visitors (page_id, ip, rank, first_day, last_day) SELECT id, inet '10.0.0.0' + n, n, 20190629, 20190629
			FROM pages, generate_series($1::bigint, $2::bigint) AS n`, visitors-n+1, visitors)
		r.Exec(t, `UPDATE counters SET hot = $1, pv = $1, uv = $1`, visitors)
	}
	set := func(uv int64) {
		_, err := r.Admin.SetOffsets(t.Context(), "demo", []admin.Offset{{URI: "s.example", Hot: 1000, PV: 1000, UV: uv}}, false)
		require.NoError(t, err)
	}
	remove := func() {
		removed, err := r.Admin.RemoveOffset(t.Context(), "demo", "s.example")
		require.NoError(t, err)
		assert.EqualValues(t, 1000, removed.Hot)
	}
	set(7)
	remove() // before the first visit
	assert.Empty(t, desk.Column[string](t, r.Desk, `SELECT uri FROM offsets`))
	r.Exec(t, `INSERT INTO pages (app_id, uri) VALUES (1, 's.example')`)
	r.Exec(t, `INSERT INTO counters (page_id) SELECT id FROM pages`)
	come(3)
	set(48)
	come(2)
	set(193)
	set(193)
	come(2)
	remove()
	come(1)
	list, err := r.Admin.Offsets(t.Context(), "demo")
	require.NoError(t, err)
	assert.Empty(t, list)
	_, err = r.Admin.RemoveOffset(t.Context(), "demo", "s.example")
	require.ErrorContains(t, err, "has no offset")
	told := []string{"8 f", "200 t", "199 f", "53 f", "52 f", "3 f", "2 t", "1 t"}
	first := func() []string {
		return desk.Column[string](t, r.Desk, `SELECT concat_ws(' ', rank, is_round) FROM report.first_visits('demo', 's.example', 10)`)
	}
	assert.Equal(t, told, first())
	set(900)
	assert.Equal(t, told, first())
	come(1)
	assert.Equal(t, append([]string{"909 f"}, told...), first())
	assert.Equal(t, []string{"909 9 9 9"}, desk.Column[string](t, r.Desk,
		`SELECT concat_ws(' ', uv, counted_uv, counted_pv, counted_hot) FROM report.totals('demo', 's.example')`))
}

// An erased rank has no visitor, regardless of its place in a row of erased_visitors. All other ranks
// have their visitors.
func TestErasedRanksHaveNoVisitor(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	const visitors, before = 600, 1_000_000_000_000
	r.Exec(t, `INSERT INTO pages (app_id, uri) VALUES (1, 's.example')`)
	r.Exec(t, `INSERT INTO counters (page_id, hot, pv, uv) SELECT id, $1, $1, $1 FROM pages`, visitors)
	r.Exec(t, `INSERT INTO visitors (page_id, ip, rank, first_day, last_day) SELECT id, inet '10.0.0.0' + n, n, 20190629, 20190629
		FROM pages, generate_series(1, $1::bigint) AS n`, visitors)
	erased := []int64{1, 255, 256, 257, 512, 600}
	r.Exec(t, `WITH gone AS (DELETE FROM visitors WHERE rank = ANY ($1) RETURNING page_id, rank)
		SELECT erase_ranks(array_agg(page_id), array_agg(rank)) FROM gone`, erased)
	_, err := r.Admin.SetOffsets(t.Context(), "demo", []admin.Offset{{URI: "s.example", PV: before, UV: before, Hot: before}}, false)
	require.NoError(t, err)

	for _, rank := range []int64{1, 2, 254, 255, 256, 257, 258, 511, 512, 513, 599, 600} {
		for reader, before := range map[*report.Reader]int64{r.Reader: before, r.Counted(): 0} {
			found, err := reader.Ranked(t.Context(), report.Look{App: "demo", Target: "s.example", Rank: rank + before})
			require.NoError(t, err, rank)
			assert.Equal(t, rank+before, found.Rank)
			assert.Equal(t, slices.Contains(erased, rank), found.Erased, rank)
			assert.Equal(t, !found.Erased, found.Visitor.IsValid(), rank)
		}
	}
	_, err = r.Ranked(t.Context(), report.Look{App: "demo", Target: "s.example", Rank: visitors + before + 1})
	require.ErrorIs(t, err, report.ErrNoVisitor)
	_, err = r.Ranked(t.Context(), report.Look{App: "demo", Target: "s.example", Rank: before})
	require.ErrorIs(t, err, report.ErrNoVisitor)
	assert.Equal(t, erased, desk.Column[int64](t, r.Desk, `SELECT rank FROM report.ranks WHERE visitor IS NULL ORDER BY rank`))
	assert.Equal(t, []string{"600 600 600"},
		desk.Column[string](t, r.Desk, `SELECT concat_ws(' ', count(*), count(DISTINCT rank), max(rank)) FROM report.ranks`))
	assert.Equal(t, erased, desk.Column[int64](t, r.Desk, `SELECT rank FROM report.first_visits('demo', 's.example', 599)
		WHERE first_day = 0 ORDER BY 1`), "as they were told")
}
