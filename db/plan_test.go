package db_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/report"
	"footfall/verify"
)

// loadVisitors makes visitors of targets 2 and 3, each with a visit today. Short runs have fewer visitors, for
// which the planner would prefer a scan even more.
func loadVisitors(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	exec(t, conn, `
		WITH loaded AS (
			INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
			SELECT 2 + n % 2, '10.0.0.0'::inet + n, 1 + n / 2, 20190629, 20190629 FROM generate_series(0, $1 - 1) AS n
			RETURNING page_id, ip, first_day
		)
		INSERT INTO visits (page_id, ip, day_id, previous_day) SELECT page_id, ip, first_day, 0 FROM loaded`,
		dbtest.LongOrShort(100_000, 10_000))
}

// keptAsIs turns off autovacuum, which would update statistics: each test determines the planner's knowledge.
const keptAsIs = `
	ALTER TABLE visitors SET (autovacuum_enabled = false);
	ALTER TABLE visits_20190629 SET (autovacuum_enabled = false);
	ALTER TABLE counters SET (autovacuum_enabled = false)`

// largeBatch has 500 visitors. loadVisitors has made half of them, and half are hinted.
func largeBatch() *db.Batch {
	b := &db.Batch{ID: batchID(), Targets: db.TargetColumns{IDs: []int64{2, 3}, Hot: []int64{250, 250}, Newcomers: []int64{0, 0}}}
	for i := range 500 {
		b.Pairs.Targets = append(b.Pairs.Targets, int64(2+i%2))
		b.Pairs.Visitors = append(b.Pairs.Visitors, netip.AddrFrom4([4]byte{byte(10 + i/250), 0, byte(i), 0}))
		b.Pairs.Hinted = append(b.Pairs.Hinted, i >= 250 && i%4 == 0)
	}
	return onDay(b, today)
}

// explainRecord returns the plan of VisitsRecord on a writer's connection.
func explainRecord(t *testing.T, d *db.DB) string {
	t.Helper()
	b := largeBatch()
	var plan string
	require.NoError(t, d.Writers().QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) "+db.VisitsRecord,
		b.RecordArgs()...).Scan(&plan))
	return plan
}

func TestPlanWithoutStatisticsAndWith(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	exec(t, conn, keptAsIs)
	d := dbtest.Open(t, url, db.Options{})
	loadVisitors(t, conn)
	requireLooksUpByKey(t, explainRecord(t, d))
	exec(t, conn, `VACUUM ANALYZE visitors, visits, counters`)
	requireLooksUpByKey(t, explainRecord(t, d))
}

// A connection keeps the plan that it made when the tables were small. Whatever the planner knew then, the plan has
// to be the one for large tables.
func TestPlanOfAStatementPreparedOnSmallTables(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]string{
		"empty, and nothing is known of it": `SELECT`,
		"known to be empty":                 `VACUUM ANALYZE visitors, visits, counters`,
		"known to have a row": `INSERT INTO visitors VALUES (3, 60000, 20190629, 20190629, '192.0.2.1');
			ANALYZE visitors, visits, counters`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			planOfAStatementPreparedAfter(t, state)
		})
	}
}

func planOfAStatementPreparedAfter(t *testing.T, state string) {
	t.Helper()
	url, conn := fixture(t)
	exec(t, conn, keptAsIs)
	for statement := range strings.SplitSeq(state, ";") {
		exec(t, conn, statement)
	}
	d := dbtest.Open(t, url, db.Options{Writers: 1}) // so that every batch uses the same connection
	var out db.Outcome
	for range 10 { // PostgreSQL may keep a plan from the sixth execution on
		require.NoError(t, d.Write(t.Context(), visitBatch("192.0.2.1", 2), &out))
	}
	loadVisitorsAfter(t, conn)

	writer, err := d.Writers().Acquire(t.Context())
	require.NoError(t, err)
	defer writer.Release()
	prepared := query[string](t, writer.Conn(), `SELECT name FROM pg_prepared_statements WHERE statement = $1`, db.VisitsRecord)
	b := largeBatch()
	var plan string
	require.NoError(t, writer.QueryRow(t.Context(), fmt.Sprintf(
		"EXPLAIN (FORMAT JSON) EXECUTE %s (%s, %s, %s, %s, NULL, %s, %s, %s, %s, NULL)",
		pgx.Identifier{prepared}.Sanitize(), array(b.Pairs.Targets, "bigint"), array(b.Pairs.Visitors, "inet"), array(b.Pairs.Days, "integer"),
		array(b.Pairs.Hinted, "boolean"),
		array(b.Targets.IDs, "bigint"), array(b.Targets.Sites, "bigint"), array(b.Targets.Days, "integer"), array(b.Targets.Hot, "bigint")),
		pgx.QueryExecModeSimpleProtocol).Scan(&plan))
	assert.GreaterOrEqual(t, query[int64](t, writer.Conn(), `SELECT generic_plans + custom_plans FROM pg_prepared_statements WHERE name = $1`,
		prepared), int64(10), "runs of the statement that is looked at")
	requireLooksUpByKey(t, plan)
}

// The ids of targets are also looked up by key, whatever the planner knew about the table pages when it planned the
// statement.
func TestPlanOfPagesFindPreparedOnAnEmptyTable(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	conn := dbtest.Connect(t, url)
	exec(t, conn, `ALTER TABLE pages SET (autovacuum_enabled = false)`)
	exec(t, conn, `VACUUM ANALYZE pages`)
	exec(t, conn, `INSERT INTO apps (name) VALUES ('shop')`)
	d := dbtest.Open(t, url, db.Options{Writers: 1})
	for i := range 7 {
		_, _, err := d.Intern(t.Context(), interning([]string{fmt.Sprint("example.com/", i)}, []string{"example.com"}))
		require.NoError(t, err)
	}
	writer, err := d.Writers().Acquire(t.Context())
	require.NoError(t, err)
	defer writer.Release()
	prepared := query[string](t, writer.Conn(), `SELECT name FROM pg_prepared_statements WHERE statement = $1`, db.PagesFind)
	var plan string
	require.NoError(t, writer.QueryRow(t.Context(), fmt.Sprintf("EXPLAIN (FORMAT JSON) EXECUTE %s (1, 'UTC', 'address', 64, '{example.com}')",
		pgx.Identifier{prepared}.Sanitize()), pgx.QueryExecModeSimpleProtocol).Scan(&plan))
	var explained []struct{ Plan planNode }
	require.NoError(t, json.Unmarshal([]byte(plan), &explained))
	lookups := 0
	explained[0].Plan.walk(func(n planNode) {
		if n.Relation == "pages" {
			assert.Equal(t, "pages_app_key_is_unique", n.Index)
			assert.Contains(t, n.Condition, "app_id")
			assert.Contains(t, n.Condition, "key")
			lookups++
		}
	})
	assert.Equal(t, 1, lookups, plan)
}

// The pages and sites of a small app are listed without reading the pages and sites of a large app, whose names
// sort first.
func TestPlanOfPagesInOrder(t *testing.T) {
	t.Parallel()
	conn := dbtest.Connect(t, dbtest.New(t))
	exec(t, conn, `INSERT INTO apps (name) VALUES ('large'), ('small')`)
	exec(t, conn, `INSERT INTO pages (app_id, uri) SELECT 1, 's' || n || '.example' FROM generate_series(1, 200) AS n`)
	exec(t, conn, `INSERT INTO pages (app_id, site_id, uri) SELECT 1, s.id, s.uri || '/' || n FROM pages AS s, generate_series(1, $1) AS n`,
		dbtest.LongOrShort(200, 20))
	exec(t, conn, `INSERT INTO pages (app_id, uri) VALUES (2, 'z.example')`)
	exec(t, conn, `INSERT INTO pages (app_id, site_id, uri) SELECT 2, id, 'z.example/' || n FROM pages, generate_series(1, 500) AS n
		WHERE uri = 'z.example'`)
	exec(t, conn, `INSERT INTO counters SELECT id FROM pages`)
	exec(t, conn, `VACUUM ANALYZE`)
	for name, q := range map[string]struct {
		sql  string
		args []any
	}{
		"pages": {report.PagesAfter, []any{"small", 0, 99991231, 0, 0, 0, "", "", "", "", 101}},
		"sites": {report.SitesAfter, []any{"small", "", 101}},
	} {
		var plan string
		require.NoError(t, conn.QueryRow(t.Context(), "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "+q.sql, q.args...).Scan(&plan))
		var explained []struct{ Plan planNode }
		require.NoError(t, json.Unmarshal([]byte(plan), &explained))
		explained[0].Plan.walk(func(n planNode) {
			if n.Relation == "pages" {
				assert.LessOrEqual(t, n.Rows+n.Removed, 502.0, "%s: %s", name, plan)
			}
		})
	}
}

// To look up or erase a visitor at the targets of an app, statements use the key of the table visitors. They do not
// read rows of other visitors, however many targets exist.
func TestPlanOfErasingAVisitor(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `
		INSERT INTO pages (app_id, site_id, uri) SELECT a.id, s.id, 'many.example/' || n
		FROM apps AS a, (SELECT id FROM pages WHERE site_id IS NULL LIMIT 1) AS s, generate_series(1, $1) AS n WHERE a.id = 1`,
		dbtest.LongOrShort(10_000, 2_000))
	exec(t, conn, `INSERT INTO visitors SELECT id, n, 20190629, 20190629, '10.0.0.0'::inet + n FROM pages, generate_series(100, 109) AS n`)
	exec(t, conn, `INSERT INTO days SELECT id, site_id, 20190628 + n, 10, 10, 10 FROM pages, generate_series(0, 1) AS n`)
	exec(t, conn, `INSERT INTO visitors SELECT id, 200, 20190629, 20190629, '10.1.0.1' FROM pages WHERE id <= 3`)
	exec(t, conn, `VACUUM ANALYZE`)
	var plan string
	require.NoError(t, conn.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) "+admin.VisitorTargets, []netip.Addr{netip.MustParseAddr("10.1.0.1")},
		1).Scan(&plan))
	var explained []struct{ Plan planNode }
	require.NoError(t, json.Unmarshal([]byte(plan), &explained))
	explained[0].Plan.walk(func(n planNode) { assert.False(t, n.Relation == "visitors" && n.Type == "Seq Scan", plan) })

	const erase = `SELECT erase_visitor(1, '{1}', '{10.1.0.1}')`
	for range 7 { // after five executions, plans are kept
		// The planner itself reads some rows at the end of an index, past rows that were rolled back.
		assert.LessOrEqual(t, readOf(t, conn, "visitors", erase), int64(200), "rows of the visitor at three targets, of 20,000")
		assert.Zero(t, doneTo(t, conn, "days", "seq_tup_read", erase))
	}
	assert.EqualValues(t, 3, query[int64](t, conn, erase))
}

// A late visit to a closed day reads only the packed returns that it changes, even if some kinds of plans are
// disabled.
func TestPackedReturnsAreLookedUpByKey(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `
		SELECT add_packed_returns(array_agg(p.id), array_agg(d.day_id), array_agg(20100101), array_agg(1::bigint))
		FROM pages AS p, (SELECT to_char(date '2015-01-01' + n, 'YYYYMMDD')::integer AS day_id FROM generate_series(1, 1000) AS n) AS d`)
	exec(t, conn, `ANALYZE packed_returns`)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	exec(t, conn, `SET LOCAL enable_nestloop = off`)
	exec(t, conn, `SELECT add_packed_returns('{2, 2, 3}', '{20150110, 20150110, 20150111}', '{20100101, 20150109, 20100101}', '{-1, 1, -1}')`)
	assert.LessOrEqual(t, query[int64](t, conn, `SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables
		WHERE relname = 'packed_returns'`),
		int64(10), "rows that were read, of thousands")
}

// loadVisitorsAfter is loadVisitors, without visits, for a target 2 that already has its visitor of rank 1.
func loadVisitorsAfter(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	exec(t, conn, `
		INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
		SELECT 2 + n % 2, '10.0.0.0'::inet + n, 2 + n / 2, 20190629, 20190629 FROM generate_series(0, $1 - 1) AS n`,
		dbtest.LongOrShort(100_000, 10_000))
}

// array formats values as an SQL array.
func array[T any](values []T, of string) string {
	text := "'{"
	for i, v := range values {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(v)
	}
	return text + "}'::" + of + "[]"
}

// requireLooksUpByKey checks that the plan reads visitors only by their primary key, with both columns.
func requireLooksUpByKey(t *testing.T, plan string) {
	t.Helper()
	var explained []struct{ Plan planNode }
	require.NoError(t, json.Unmarshal([]byte(plan), &explained))
	require.Len(t, explained, 1)
	lookups := 0
	explained[0].Plan.walk(func(n planNode) {
		if n.Relation == "counters" && n.Type != "ModifyTable" {
			assert.Equal(t, "counters_pkey", n.Index, "%s on %s", n.Type, n.Relation)
			assert.Contains(t, n.Condition, "page_id")
		}
		if n.Relation != "visitors" && n.Relation != "visits" && n.Relation != "visits_20190629" || n.Type == "ModifyTable" {
			return
		}
		if assert.Equal(t, "visitors_pkey", n.Index, "%s on %s", n.Type, n.Relation) {
			assert.Contains(t, n.Condition, "page_id")
			assert.Contains(t, n.Condition, "ip")
			lookups++
		}
	})
	assert.Equal(t, 1, lookups, "places that look visitors up")
	if t.Failed() {
		t.Log(plan)
	}
}

type planNode struct {
	Type      string     `json:"Node Type"`
	Relation  string     `json:"Relation Name"`
	Index     string     `json:"Index Name"`
	Condition string     `json:"Index Cond"`
	Rows      float64    `json:"Actual Rows"`            // of EXPLAIN ANALYZE
	Removed   float64    `json:"Rows Removed by Filter"` // of EXPLAIN ANALYZE
	Plans     []planNode `json:"Plans"`
}

func (n planNode) walk(visit func(planNode)) {
	visit(n)
	for _, below := range n.Plans {
		below.walk(visit)
	}
}

// readOf returns the number of rows of a table that a statement reads, on an otherwise unused connection.
func readOf(t *testing.T, conn *pgx.Conn, table, statement string) int64 {
	t.Helper()
	return doneTo(t, conn, table, "seq_tup_read + coalesce(idx_tup_fetch, 0)", statement)
}

// doneTo returns the increase of a column of a table's statistics by a statement.
func doneTo(t *testing.T, conn *pgx.Conn, table, column, statement string) int64 {
	t.Helper()
	tx, err := conn.Begin(t.Context()) // statistics are published between transactions
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	read := func() int64 {
		return query[int64](t, conn, `SELECT `+column+` FROM pg_stat_xact_user_tables WHERE relname = $1`, table)
	}
	before := read()
	exec(t, conn, statement)
	return read() - before
}

// Other targets do not slow down a query of a view for one target by its uri.
func TestViewsLookUpOneTarget(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, 'example.com/' || n FROM generate_series(1, 5000) AS n`)
	exec(t, conn, `ANALYZE pages`)
	for view, of := range map[string]string{"pages": "uri", "days": "target", "returns": "target", "ranks": "target",
		"visitors_today": "target", "visits": "uri", "tag_days": "target"} {
		one := `SELECT count(*) FROM report.` + view + ` WHERE app = 'shop' AND ` + of + ` = 'example.com/77'`
		assert.LessOrEqual(t, readOf(t, conn, "pages", one), int64(10), "%s: pages that were read, of thousands", view)
	}
	const folder = `SELECT count(*) FROM report.pages WHERE app = 'shop' AND left(uri, 200) LIKE 'example.com/77%'`
	assert.LessOrEqual(t, readOf(t, conn, "pages", folder), int64(30), "pages of one folder")
}

// Reading a target's tags reads only the rows of this target in the range, whichever plan is used, although other
// targets have the same tags.
func TestTagsAreReadFromTheirTarget(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `
		INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, 'example.com/' || n FROM generate_series(1, 3000) AS n;
		INSERT INTO tags (app_id, name, value)
		SELECT 1, CASE WHEN n > 70 THEN 'device' ELSE (ARRAY['source', 'country', 'browser'])[1 + n % 3] END, 'v' || n
		FROM generate_series(1, 75) AS n;
		INSERT INTO tag_days (page_id, day_id, tag_id, pv, newcomers)
		SELECT p.id, to_char(date '2019-06-30' - n, 'YYYYMMDD')::integer, t.id, 1, 0 FROM pages AS p, generate_series(0, 364) AS n, tags AS t
		WHERE p.id = 1 OR p.id < 400 AND n < 30 AND t.name = 'source' AND t.id % 8 = p.id % 8
		ORDER BY random();
		INSERT INTO days (page_id, day_id, hot, pv, new_visitors) SELECT 1, d, 99, 80, 0 FROM generate_series(20190601, 20190630) AS d`)
	for _, statistics := range []string{"none", "analyzed"} {
		for range 7 { // from the sixth execution on, a generic plan may be used
			const week = `SELECT FROM report.tags('shop', 'example.com', 'source', 20190608, 20190614, 10, 7)`
			assert.LessOrEqual(t, readOf(t, conn, "tag_days", week), int64(1+2*7*75), "%s: rows of tag_days that were read, of 60,000", statistics)
			const year = `SELECT FROM report.tags('shop', 'example.com', 'device', 20180701, 20190630)`
			assert.LessOrEqual(t, readOf(t, conn, "tag_days", year), int64(1+365*75), statistics)
			assert.LessOrEqual(t, doneTo(t, conn, "tag_days", "idx_scan", year), int64(2), "%s: the days once, and not for each of 5 tags",
				statistics)
		}
		const pages = `SELECT FROM report.tag_pages('shop', 'source', 'v3', 20190608, 20190614, 10, 'example.com')`
		assert.LessOrEqual(t, readOf(t, conn, "tag_days", pages), int64(7*60), "%s: those of the value", statistics)
		assert.LessOrEqual(t, readOf(t, conn, "pages", pages), int64(3010), "%s: each page of the site once", statistics)
		exec(t, conn, `ANALYZE tag_days, tags, pages, days`)
	}
}

// For a day with a list of top pages, only the list is read, whichever plan is used.
func TestFirstPagesReadListedDaysFromTheirLists(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `
		INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, 'example.com/' || n FROM generate_series(1, 300) AS n;
		INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors)
		SELECT p.id, 1, 20190600 + d, 400 - p.id % 300, 1, 0 FROM pages AS p, generate_series(1, 20) AS d WHERE p.site_id = 1 AND p.id > 3;
		INSERT INTO days (page_id, day_id, hot, pv, new_visitors) SELECT 1, day_id, sum(hot), sum(pv), 0 FROM days WHERE site_id = 1
		GROUP BY day_id;
		INSERT INTO closed_days (day_id) SELECT 20190600 + d FROM generate_series(1, 20) AS d;
		SELECT make_tops();
		ANALYZE pages, days, tops`)
	const first = `SELECT FROM report.top_pages('shop', 20190601, 20190620, 10, 'hot')`
	assert.Equal(t, int64(10), query[int64](t, conn, `SELECT count(*) FROM (`+first+`) AS f`))
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		exec(t, conn, `SET plan_cache_mode = `+mode)
		assert.LessOrEqual(t, readOf(t, conn, "days", first), int64(2000), "%s: rows that were read, of 6,000", mode)
	}
}

// If lists do not suffice, the top pages of all days are read from one row for each page. Rows of days are read
// only for the pages shown, however many days there are.
func TestFirstPagesOfAllDaysAreReadFromTotals(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `
		INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, 'example.com/' || n FROM generate_series(1, 1200) AS n;
		INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'example.com/(deleted)'), (1, 1, 'example.com/a/(deleted)');
		INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors)
		SELECT p.id, 1, 20190600 + d, 40 + (p.id % 97 = 0)::integer, 20 + (p.id + d) % 5,
		CASE WHEN p.uri <> 'example.com/(deleted)' THEN 10 + (p.id % 97 = 0)::integer ELSE 0 END
		FROM pages AS p, generate_series(1, 10) AS d WHERE p.site_id = 1;
		INSERT INTO days (page_id, day_id, hot, pv, new_visitors) SELECT 1, day_id, sum(hot), sum(pv), 0 FROM days WHERE site_id = 1
		GROUP BY day_id;
		DELETE FROM counters;
		INSERT INTO counters (page_id, hot, pv, uv) SELECT page_id, sum(hot), sum(pv), sum(new_visitors) FROM days GROUP BY page_id;
		UPDATE counters SET uv = pv WHERE page_id = (SELECT id FROM pages WHERE uri = 'example.com/(deleted)');
		INSERT INTO closed_days (day_id) SELECT 20190600 + d FROM generate_series(1, 9) AS d;
		SELECT make_tops();
		ANALYZE pages, days, tops, counters`)
	for by, column := range map[string]string{"pv": "pv", "uv": "new_visitors", "hot": "hot"} {
		first := fmt.Sprintf(`SELECT uri FROM report.top_pages('shop', 0, 99991231, 560, '%s')`, by)
		assert.Equal(t, dbtest.Column[string](t, conn, `
			SELECT p.uri FROM pages AS p JOIN days AS d ON d.page_id = p.id WHERE p.site_id = 1
			GROUP BY p.id ORDER BY sum(d.`+column+`) DESC, p.id LIMIT 560`), dbtest.Column[string](t, conn, first), by)
		assert.LessOrEqual(t, readOf(t, conn, "days", first), int64(4000), "%s: rows of days that were read, of 12,000", by)
		assert.LessOrEqual(t, readOf(t, conn, "counters", first), int64(4000), by)
	}
}

// The number of visitors of all pages of a site is read from the sums of the site, without reading visits. For
// another group of pages, only a limited number of visits or entries of sketches is read before the query is
// refused.
func TestUniquesOfGroupsReadBoundedRows(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `
		INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, 'example.com/a/' || n FROM generate_series(1, 50) AS n;
		INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, 'example.com/c/' || n FROM generate_series(1, 3000) AS n;
		INSERT INTO visits (page_id, day_id, previous_day, ip) SELECT p.id, 20190629, 0, '10.0.0.0'::inet + n
		FROM pages AS p, generate_series(1, 100) AS n WHERE p.id <= 53;
		INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors) SELECT p.id, p.site_id, 20190629, 100, 100, 100 FROM pages AS p
		WHERE p.id <= 53;
		UPDATE counters SET hot = 100, pv = 100, uv = 100;
		ANALYZE`)
	for _, prefix := range []string{"example.com/", "example.com", "exam"} {
		under := `SELECT uniques FROM report.uniques_under('shop', '` + prefix + `', 20190629, 20190629)`
		assert.Equal(t, int64(100), query[int64](t, conn, under))
		assert.Zero(t, readOf(t, conn, "visits_20190629", under), prefix)
		assert.LessOrEqual(t, readOf(t, conn, "pages", under), int64(2), "%s: pages that were read, of thousands", prefix)
	}
	assert.Equal(t, int64(100), query[int64](t, conn, `SELECT uniques FROM report.uniques_under('shop', 'example.com/a', 20190629, 20190629)`))

	const refused = `
		DO $$ BEGIN
			PERFORM FROM group_uniques(1, ARRAY(SELECT id FROM pages WHERE site_id = 1), 20190629, 20190629, 500);
			RAISE EXCEPTION 'it was answered';
		EXCEPTION WHEN program_limit_exceeded THEN
		END $$`
	assert.LessOrEqual(t, readOf(t, conn, "visits_20190629", refused), int64(700), "visits that were read, a block at a time, of 5,000")
	exec(t, conn, `
		INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'example.com/(deleted)');
		INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors) SELECT max(id), 1, 20190629, 600, 600, 0 FROM pages;
		INSERT INTO visits (page_id, day_id, previous_day, ip) SELECT max(p.id), 20190629, 0, '10.0.0.0'::inet + n
		FROM pages AS p, generate_series(1, 600) AS n GROUP BY n`)
	assert.Equal(t, int64(600), query[int64](t, conn, `SELECT uniques FROM group_uniques(1, ARRAY[(SELECT max(id)
		FROM pages)], 20190629, 20190629, 500)`),
		"lists would be refused for a sum of deleted pages")
	exec(t, conn, `SELECT close_day(20190629); ANALYZE sketches`)
	exec(t, conn, `INSERT INTO visits_kept (app_id, from_day) VALUES (1, 20190630); DELETE FROM visits`)
	assert.LessOrEqual(t, readOf(t, conn, "sketches", refused), int64(7), "sketches of about 100 entries, of 53")
	assert.InDelta(t, 100, query[int64](t, conn, `SELECT uniques FROM report.uniques_under('shop', 'example.com/a', 20190629, 20190629)`), 8)
}

// verify recomputes a range of targets from the rows of this range only, in each table. Otherwise each range would
// take longer as the data grows, while the number of ranges also grows.
func TestVerifyReadsARangeFromItsOwnRows(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `
		INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, 'example.com/' || n FROM generate_series(1, 3000) AS n;
		DELETE FROM counters;
		INSERT INTO counters (page_id, hot, pv, uv) SELECT id, 10, 10, 1 FROM pages;
		INSERT INTO visitors (page_id, ip, rank, first_day, last_day) SELECT id, '10.0.0.1', 1, 20190601, 20190610 FROM pages;
		INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors) SELECT p.id, p.site_id, 20190600 + d, 1, 1, (d = 1)::integer
		FROM pages AS p, generate_series(1, 10) AS d;
		INSERT INTO open_returns (page_id, day_id, previous_day, visitors) SELECT p.id, 20190600 + d, 20190599 + d, 1
		FROM pages AS p, generate_series(2, 10) AS d;
		INSERT INTO tags (app_id, name, value) VALUES (1, 'source', 'a'), (1, 'source', 'b');
		INSERT INTO tag_days (page_id, day_id, tag_id, pv, newcomers) SELECT p.id, 20190600 + d, t.id, 1, 0
		FROM pages AS p, tags AS t, generate_series(1, 10) AS d;
		ANALYZE`)
	for _, ask := range []string{ // 20 of 3,000 targets
		`verify_totals(1000, 1019, true, NULL)`, `verify_days(1000, 1019, true, NULL)`, `verify_tags(1000, 1019, true, NULL)`,
		`verify_site_visitors(1000, 1019, true, NULL, 1, 1 << 20)`, `verify_rows(1000, 1019, true, NULL, 0)`,
		`verify_sketches(1000, 1019, true, NULL, 0, 1, 1 << 20)`, "VerifyNext",
	} {
		tx, err := conn.Begin(t.Context()) // statistics are published between transactions
		require.NoError(t, err)
		exec(t, conn, `SET LOCAL plan_cache_mode = force_custom_plan;
			CREATE TEMP TABLE before ON COMMIT DROP AS SELECT relid, seq_tup_read + coalesce(idx_tup_fetch, 0) AS read
			FROM pg_stat_xact_user_tables`)
		if ask == "VerifyNext" {
			next, err := verify.New(tx).VerifyNext(t.Context(), verify.VerifyNextParams{FromID: 1000, Size: 1000, Many: 20, Sampled: 1 << 20})
			require.NoError(t, err)
			assert.EqualValues(t, 20, next.Met, "by which the next range is bounded")
		} else {
			exec(t, conn, `SELECT FROM `+ask)
		}
		assert.Empty(t, dbtest.Column[string](t, conn, `
			SELECT format('%s: %s', a.relname, k.read)
			FROM pg_stat_xact_user_tables AS a
			LEFT JOIN before AS b USING (relid)
			CROSS JOIN LATERAL (SELECT a.seq_tup_read + coalesce(a.idx_tup_fetch, 0) - coalesce(b.read, 0) AS read) AS k
			WHERE a.schemaname = $1 AND k.read > 1000`, db.Schema), "%s: rows that were read, of 3,000 and more", ask)
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// Recording a line finds the last block of its hour by the key, even on a connection whose plan is from when there were few
// blocks.
func TestPlanOfCountedLines(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	writer, err := dbtest.Open(t, url, db.Options{}).Writers().Acquire(t.Context())
	require.NoError(t, err)
	defer writer.Release()
	const count = `SELECT count_lines(1, '', '{1}', ARRAY[$1::bigint], '{2026-01-01}', ARRAY[int8send($1)])`
	_, err = writer.Exec(t.Context(), count, 0)
	require.NoError(t, err)
	exec(t, conn, `INSERT INTO counted_lines (app_id, hour, server, first, hashes)
		SELECT 1, n, '', 0, decode(repeat('00', 1520), 'hex') FROM generate_series(2, 2001) AS n`)
	var plan string
	require.NoError(t, writer.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+count, 1).Scan(&plan))
	var explained []struct {
		Plan struct {
			Pages int `json:"Shared Hit Blocks"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(plan), &explained))
	assert.Less(t, explained[0].Plan.Pages, 200, plan)
	assert.Equal(t, []int{16}, dbtest.Column[int](t, conn, `SELECT octet_length(hashes) FROM counted_lines WHERE hour = 1`))
}
