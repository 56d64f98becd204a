package db_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// otherFunctions marks a database's functions and views as made from other files.
const otherFunctions = `UPDATE schema_files SET hash = 'of another commit' WHERE name = 'functions'`

// functionOIDs identifies functions and views, to distinguish new ones from unchanged ones.
const functionOIDs = `
	SELECT oid::regprocedure || ' ' || oid FROM pg_proc WHERE pronamespace IN ('footfall'::regnamespace, 'report'::regnamespace)
	UNION ALL
	SELECT oid::regclass || ' ' || oid FROM pg_class WHERE relnamespace = 'report'::regnamespace AND relkind = 'v'
	ORDER BY 1`

func TestFunctionsAreMadeAgainWhenTheirFilesChange(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	whole, before := catalog(t, conn), dbtest.Column[string](t, conn, functionOIDs)
	require.NotEmpty(t, before)

	applied, err := d.MigrateUp(t.Context())
	require.NoError(t, err)
	require.Empty(t, applied)
	require.Equal(t, before, dbtest.Column[string](t, conn, functionOIDs), "nothing has changed")

	exec(t, conn, otherFunctions)
	exec(t, conn, `CREATE FUNCTION outdated() RETURNS integer LANGUAGE sql AS 'SELECT 1'`)
	exec(t, conn, `INSERT INTO schema_objects (kind, name) VALUES ('FUNCTION', 'outdated()')`)
	exec(t, conn, `CREATE VIEW report.ours AS SELECT name FROM apps`)
	applied, err = d.MigrateUp(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"functions and views"}, applied)
	require.Equal(t, []string{"ours"}, dbtest.Column[string](t, conn, `SELECT relname::text FROM pg_class
		WHERE oid = 'report.ours'::regclass`),
		"objects made by others stay")
	exec(t, conn, `DROP VIEW report.ours`)
	require.Equal(t, whole, catalog(t, conn), "objects without a file are dropped")
	after := dbtest.Column[string](t, conn, functionOIDs)
	for _, line := range after {
		if assert.NotContains(t, line, "outdated") && !standsWithATable(line) {
			assert.NotContains(t, before, line, "made again")
		}
	}
	require.NoError(t, d.CheckSchema(t.Context()))
}

// If an operator starts an older program, it neither replaces the functions of newer instances, nor refuses to count
// with them. It refuses unknown steps.
func TestNewerFunctionsStay(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	number, both := query[int](t, conn, `SELECT split_part(hash, ' ', 1)::int FROM schema_files WHERE name = 'functions'`),
		[]string{"functions and views"}
	for present, applies := range map[string][]string{
		fmt.Sprint(number+1, " of another commit"): nil,
		fmt.Sprint(number-1, " of another commit"): both,
		"": both, // set by the downgrade in docs/operating.md
	} {
		exec(t, conn, `UPDATE footfall.schema_files SET hash = $1 WHERE name = 'functions'`, present)
		before := dbtest.Column[string](t, conn, functionOIDs)
		checked := d.CheckSchema(t.Context())
		applied, err := d.MigrateUp(t.Context())
		require.NoError(t, err)
		require.Equal(t, applies, applied, present)
		assert.Equal(t, applies == nil, checked == nil, "%v", checked)
		assert.Equal(t, applies == nil, assert.ObjectsAreEqual(before, dbtest.Column[string](t, conn, functionOIDs)))
	}
	exec(t, conn, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
	_, err := d.MigrateUp(t.Context())
	require.ErrorContains(t, err, "the schema is at version 9999")
	require.ErrorContains(t, err, "use a newer footfall")
}

// standsWithATable reports whether a function was made by a step, because a table needs it.
func standsWithATable(line string) bool {
	for _, name := range []string{
		"page_key", "batches_clock", "apps_changed", "apps_count_as_they_began", "offsets_changed", "offsets_will_change", "erasure_raises_epoch",
		"drop_functions", "note_functions",
		"unpack_returns", "returns_are_some",
	} {
		if len(line) > len(name) && line[:len(name)+1] == name+"(" {
			return true
		}
	}
	return false
}

// Reports refuse a page in the spelling of browsers, which no stored page has. The error shows the stored spelling.
func TestReportsSayHowTargetsAreWritten(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	calls := []string{
		`totals('shop', $1::text)`, `numbers('shop', $1::text, 20190601, 20190630)`, `chart('shop', $1::text, 20190601, 20190630)`,
		`periods('shop', $1::text, 20190601, 20190630)`, `first_visits('shop', $1::text)`, `here('shop', $1::text)`,
		`find_pages('shop', $1::text, 'a', 20190601, 20190630)`, `top_pages('shop', 20190601, 20190630, site => $1::text)`,
		`returned_after('shop', $1::text, 20190601, 20190630)`, `who_came('shop', $1::text, 20190601, 20190630)`,
		`uniques('shop', $1::text, 20190601, 20190630)`,
		`uniques('shop', ARRAY['example.com', $1::text], 20190601, 20190630)`, `uniques_under('shop', $1::text, 20190601, 20190630)`,
		`tags('shop', $1::text, 'source', 20190601, 20190630)`, `tag_pages('shop', 'source', 'google', 20190601, 20190630, site => $1::text)`,
		`people('shop', $1::text, 'source')`,
	}
	ofSites := []string{
		`visitors_where('shop', $1::text, 20190601, 20190630, '{new}')`, `numbers_where('shop', $1::text, 20190601, 20190630, '{new}')`,
		`days_where('shop', $1::text, 20190601, 20190630, '{new}')`, `pages_where('shop', $1::text, 20190601, 20190630, '{new}')`,
		`tags_where('shop', $1::text, '{source}', 20190601, 20190630, '{new}')`, `filters_since('shop', $1::text, 20190601, 20190630)`,
		`events_where('shop', $1::text, 20190601, 20190630)`, `one_page_where('shop', $1::text, 20190601, 20190630)`,
		`goals_where('shop', $1::text, 20190601, 20190630)`, `funnel_where('shop', $1::text, 20190601, 20190630, '{new}')`,
	}
	assert.Equal(t, query[int](t, conn, `
		SELECT count(*) FROM pg_proc WHERE pronamespace = 'report'::regnamespace AND proargnames && '{target,targets,site,prefix}'
		AND proargnames[2] <> 'from_day'`)+1, len(calls)+len(ofSites), "and top_pages")
	for _, call := range append(ofSites, calls...) {
		_, err := conn.Exec(t.Context(), `SELECT FROM report.`+call, "https://example.com/a")
		assert.Equal(t, "22023", code(err), "%s: %v", call, err)
		assert.ErrorContains(t, err, "write it as it is stored, like example.com", call)
	}
	for _, call := range []string{
		`uniques('shop', 'a.example', 20191301, 20191302)`, `uniques('shop', 'a.example', 20190601, 20190631)`,
		`uniques('shop', 'a.example', 20190602, 20190601)`, `uniques('shopp', 'a.example', 0, 20190601)`,
		`uniques('shopp', '{a.example}'::text[], 0, 20190601)`, `uniques_under('shopp', 'a', 0, 20190601)`,
	} {
		_, err := conn.Exec(t.Context(), `SELECT FROM report.`+call)
		assert.Equal(t, "22023", code(err), "%s: %v", call, err)
	}
	for _, call := range calls {
		exec(t, conn, `SELECT FROM report.`+call, "example.com/a")
		exec(t, conn, `SELECT FROM report.`+call, "example.com/http://a")
	}
}

// Dropping a view would also drop objects that others have built on it.
func TestFunctionsStayWhereSomebodyHasBuiltOnThem(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	exec(t, conn, `CREATE VIEW report.weekly AS SELECT app, target, sum(pv) AS pv FROM report.days GROUP BY app, target`)
	exec(t, conn, otherFunctions)
	before := dbtest.Column[string](t, conn, functionOIDs)
	_, err := d.MigrateUp(t.Context())
	require.ErrorContains(t, err, "report.days")
	require.ErrorContains(t, d.CheckSchema(t.Context()), "functions and views do not match this footfall: type `footfall migrate up`")
	require.Equal(t, before, dbtest.Column[string](t, conn, functionOIDs), "all functions stay")
	exec(t, conn, `DROP VIEW report.weekly`)
	_, err = d.MigrateUp(t.Context())
	require.NoError(t, err)
}

// reports are queries of users, each a separate statement.
var reports = []string{
	`SELECT * FROM report.sites`, `SELECT * FROM report.days AS d JOIN report.pages AS p ON p.uri = d.target`,
	`SELECT * FROM report.visitors_today`, `SELECT * FROM report.ranks`,
	`SELECT * FROM report.top_pages('shop', 20190601, 20190630)`,
	`SELECT * FROM report.uniques('shop', 'example.com'::text, 20190601, 20190630)`,
	`SELECT * FROM report.uniques_under('shop', 'example.com/', 20190601, 20190630)`,
}

// Dropping functions and making them again affects neither reports nor the service. The roles of both get their
// rights again.
func TestReportsAndBatchesDuringNewFunctions(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	needRole(t, conn, "footfall_report")
	d, service := dbtest.Open(t, url, db.Options{}), dbtest.Open(t, withRole(t, url, "footfall_app"), db.Options{})
	reader := dbtest.Connect(t, withRole(t, url, "footfall_report"))
	const readers = 3
	asking := [readers]func(i int) error{}
	for n := range asking {
		own := dbtest.Connect(t, withRole(t, url, "footfall_report"))
		asking[n] = func(i int) error {
			_, err := own.Exec(context.Background(), reports[i%len(reports)])
			return err
		}
	}
	basis, err := service.Basis(t.Context())
	require.NoError(t, err)
	disperse := dbtest.Crowd(t, readers+1, func(client, i int) {
		if client < readers {
			assert.NoError(t, asking[client](i), reports[i%len(reports)])
			return
		}
		b := visitBatch("192.0.2.1", 1, 2)
		b.Basis = basis
		err := service.Write(context.Background(), b, &db.Outcome{})
		for db.FaultOf(err) == db.FaultBusy { // as the writer of batches does
			err = service.Write(context.Background(), b, &db.Outcome{})
		}
		assert.NoError(t, err)
		_, err = service.MakeDays(context.Background(), today)
		assert.NoError(t, err)
	})
	for range dbtest.LongOrShort(15, 5) {
		exec(t, conn, otherFunctions)
		applied, err := d.MigrateUp(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"functions and views"}, applied)
	}
	disperse()
	assert.Equal(t, "example.com", query[string](t, reader, `SELECT site FROM report.sites`))
}

// New functions wait for a long report, without delaying other reports.
func TestNewFunctionsWaitForALongReport(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	long := begin(t, url, `SELECT * FROM report.sites`)
	exec(t, conn, otherFunctions)
	made := async(t, func() error {
		_, err := d.MigrateUp(t.Context())
		return err
	})
	dbtest.AwaitWaiting(t, conn, 1)
	exec(t, conn, `SET lock_timeout = '10s'`) // in correct code a report waits a tenth of a second
	assert.Equal(t, "example.com", query[string](t, conn, `SELECT site FROM report.sites`))
	require.NoError(t, long.Commit(t.Context()))
	require.NoError(t, receive(t, made, "the new functions"))
}

func TestForeignStepsAreRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"a step that was different":      `UPDATE schema_files SET hash = 'of another commit' WHERE name LIKE '00003%'`,
		"a step that had another name":   `UPDATE schema_files SET name = '00003_pages.sql' WHERE name LIKE '00003%'`,
		"steps of before this was noted": `DROP TABLE schema_files`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.New(t)
			d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
			exec(t, conn, spoil)
			before := catalog(t, conn)
			_, up := d.MigrateUp(t.Context())
			_, down := d.MigrateDown(t.Context())
			_, status := d.MigrateStatus(t.Context())
			for _, err := range []error{up, down, status, d.CheckSchema(t.Context())} {
				require.ErrorContains(t, err, "created by another commit of footfall")
				require.ErrorContains(t, err, "start with an empty database", "it names the remedy")
			}
			require.Equal(t, before, catalog(t, conn), "nothing is changed")
		})
	}
}

// leftOut are the tables and columns that exports leave out, with the reason.
var leftOut = map[string]string{
	"accounts": "people sign in elsewhere with other accounts", "account_apps": "likewise", "account_sessions": "likewise",
	"account_links": "likewise", "admin_keys": "keys are secrets of one database", "keys": "likewise", "shares": "links are, too",
	"webhooks": "the key of their signatures is of one database, and they may have secrets in their URLs",
	"day_keys": "secrets of a day", "apps.log_key": "a key", "apps.held_until": "of minutes", "apps.cell": "of an app that is elsewhere",
	"apps.moving_to": "of one that goes there", "apps.cell_began": "of one that is there", "apps.deleted_at": "such an app is not exported",
	"logs": "logs are known by hashes with a key of the app's number", "log_samples": "likewise", "log_lines": "likewise",
	"log_hours": "likewise", "counted_lines": "likewise", "read_logs": "files are read where they are",
	"positions": "how far sources were counted is of one database, which reads them", "refused": "likewise", "visit_ids": "likewise",
	"inbox": "what waits is counted here", "batches": "of minutes", "here": "of minutes",
	"tag_news": "written as rows of tag_days", "tops": "lists that are made again at night", "closed_days": "the manifest has the days",
	"page_tallies": "limits of a day start again", "retention_pauses": "of imports that run",
	"visits_kept.gone_before": "no row before is taken",
	"people.period":           "all are written to the present one", "changes": "who changed what is of one database, and names its accounts",
	"epochs": "of the database", "goose_db_version": "likewise", "schema_files": "likewise", "schema_objects": "likewise",
	"pages.key": "made of uri", "offsets.key": "likewise", "days.site_id": "made of its target", "history_days.id": "assigned again",
	"history.day": "likewise",
	"notes.id":    "assigned again",
}

// Every part of the schema is exported, or left out for a reason. load_app() writes everything that is exported.
func TestExportsTakeAllAlong(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	loads := query[string](t, conn, `SELECT prosrc FROM pg_proc WHERE proname = 'load_app'`)
	begins := query[string](t, conn, `SELECT prosrc FROM pg_proc WHERE proname = 'begin_load'`)
	for _, column := range dbtest.Column[string](t, conn, `
		SELECT c.relname || '.' || a.attname || CASE WHEN d.taken THEN ' taken' ELSE '' END
		FROM pg_class AS c
		JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		CROSS JOIN LATERAL (
			SELECT EXISTS (
				SELECT
				FROM pg_depend AS d
				JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
				JOIN pg_class AS v   ON v.oid = r.ev_class AND starts_with(v.relname, 'takeout_')
				WHERE d.refobjid = c.oid
				  AND d.refobjsubid = a.attnum) AS taken) AS d
		WHERE c.relnamespace = 'footfall'::regnamespace
		  AND c.relkind IN ('r', 'p')
		  AND NOT c.relispartition`) {
		name, taken := strings.CutSuffix(column, " taken")
		table, of, _ := strings.Cut(name, ".")
		_, tableLeft := leftOut[table]
		_, left := leftOut[name]
		if !taken {
			assert.True(t, left || tableLeft, "%s: add it to functions/takeout.sql, or say here why it is left out", name)
			continue
		}
		assert.False(t, tableLeft, "%s is listed as left out, but is exported", table)
		view := strings.TrimPrefix(table, "open_")
		straight := !strings.Contains(loads, "INSERT INTO "+table+" (") && !strings.Contains(begins, "'"+view+"'")
		if straight && query[bool](t, conn, `SELECT to_regclass('takeout_' || $1) IS NOT NULL`, view) {
			continue // all columns of the view are copied
		}
		into := loads[max(0, strings.Index(loads, "INSERT INTO "+table+" (")):]
		into, _, _ = strings.Cut(into, ";")
		assert.Contains(t, into, of, "load_app() does not write %s", name)
	}
}
