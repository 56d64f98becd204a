package db_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

func TestMigrationsGoUpAndDownAndUpAgain(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)

	applied, err := d.MigrateUp(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, applied)
	whole := catalog(t, conn)
	require.NotEmpty(t, whole)

	assert.Equal(t, dbtest.TimeZone, query[string](t, conn, `SHOW timezone`), "an odd one, as of all tests")
	require.Equal(t, "functions and views", applied[len(applied)-1])
	names := applied[:len(applied)-1]
	steps := [][]string{whole}
	for i := range names {
		name, err := d.MigrateDown(t.Context())
		require.NoError(t, err)
		require.Equal(t, names[len(names)-1-i], name, "the newest goes first")
		if i == 0 {
			states, err := d.MigrateStatus(t.Context())
			require.NoError(t, err)
			require.Len(t, states, len(names))
			for i, s := range states {
				assert.Equal(t, names[i], s.Name)
				assert.Equal(t, s.Name == name, s.Applied.IsZero(), s.Name)
			}
		}
		steps = append(steps, catalog(t, conn))
	}
	require.Empty(t, steps[len(steps)-1], "objects left by the last step down")
	_, err = d.MigrateDown(t.Context())
	require.Error(t, err, "there is nothing more to take back")

	again, err := d.MigrateUp(t.Context())
	require.NoError(t, err)
	assert.Equal(t, applied, again)
	assert.Equal(t, whole, catalog(t, conn))

	// Each step down undoes exactly the corresponding step up: n steps down and up again lead to the same catalog.
	for n := 1; n < len(names); n += dbtest.LongOrShort(1, 3) {
		for range n {
			_, err := d.MigrateDown(t.Context())
			require.NoError(t, err)
		}
		assert.Equal(t, steps[n], catalog(t, conn), "%d steps down", n)
		_, err := d.MigrateUp(t.Context())
		require.NoError(t, err)
		assert.Equal(t, whole, catalog(t, conn), "%d steps down and up", n)
	}
}

func TestFiveInstancesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	var applied [5][]string
	var all sync.WaitGroup
	for i := range applied {
		d := dbtest.Open(t, url, db.Options{})
		all.Go(func() {
			var err error
			applied[i], err = d.MigrateUp(t.Context())
			assert.NoError(t, err)
		})
	}
	all.Wait()

	migrated := 0
	for _, names := range applied {
		if len(names) > 0 {
			migrated++
		}
	}
	assert.Equal(t, 1, migrated, "instances that applied something: %q", applied)
	assert.Equal(t, catalog(t, dbtest.Connect(t, dbtest.New(t))), catalog(t, dbtest.Connect(t, url)))
}

// A step that has to wait for a long transaction does not delay other sessions, and is applied after the
// transaction. The log names the waiting step. The same holds for reverting a step.
func TestStepsWaitForALongTransaction(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	var log dbtest.Log
	d, conn := dbtest.Open(t, url, db.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}), dbtest.Connect(t, url)
	exec(t, conn, `INSERT INTO apps (name) VALUES ('shop')`)
	down := func() error { _, err := d.MigrateDown(t.Context()); return err }
	up := func() error { _, err := d.MigrateUp(t.Context()); return err }
	for at := len(stepsOf(t, d)); at > 3; at-- {
		require.NoError(t, down())
	}
	exec(t, conn, `SET lock_timeout = '10s'`) // in correct code no session waits more than a tenth of a second
	for _, step := range []struct {
		name, held, other string
		run               func() error
	}{
		{"the newest step", `SELECT FROM pages`, `SELECT count(*) FROM pages`, down},
		{"00003_targets.sql", `LOCK TABLE apps IN ROW EXCLUSIVE MODE`, `UPDATE apps SET created_at = now() WHERE name = 'nobody'`, up},
	} {
		long := begin(t, url, step.held)
		done := async(t, step.run)
		dbtest.AwaitWaiting(t, conn, 1)
		exec(t, conn, step.other)
		eventually(t, func() bool { return strings.Contains(log.String(), step.name) }, "a line in the log about "+step.name)
		require.NoError(t, long.Commit(t.Context()))
		require.NoError(t, receive(t, done, step.name))
	}
	require.NoError(t, d.CheckSchema(t.Context()))
}

// A migration gives up after LockPatience, with the reason.
func TestMigrationGivesUp(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{LockPatience: time.Millisecond}), dbtest.Connect(t, url)
	exec(t, conn, otherFunctions)
	begin(t, url, `SELECT FROM report.sites`)
	_, err := d.MigrateUp(t.Context())
	require.ErrorContains(t, err, "functions and views: the migration could not get its locks for")
	require.Equal(t, db.FaultBusy, db.FaultOf(err))
	begin(t, url, `LOCK TABLE visits IN SHARE UPDATE EXCLUSIVE MODE`)
	_, err = dbtest.Open(t, url, db.Options{LockPatience: time.Millisecond}).MigrateUp(t.Context())
	require.Equal(t, db.FaultBusy, db.FaultOf(err))
}

// stepsOf returns the names of all steps.
func stepsOf(t *testing.T, d *db.DB) (names []string) {
	t.Helper()
	steps, err := d.MigrateStatus(t.Context())
	require.NoError(t, err)
	for _, step := range steps {
		names = append(names, step.Name)
	}
	return names
}

func TestEncodingOtherThanUTF8IsRefused(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	conn := dbtest.Connect(t, url)
	name := query[string](t, conn, `SELECT current_database()`)
	quoted := pgx.Identifier{name + "_ascii"}.Sanitize()
	exec(t, conn, `CREATE DATABASE `+quoted+` TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'`)
	defer exec(t, conn, `DROP DATABASE `+quoted+` WITH (FORCE)`)

	d := dbtest.Open(t, strings.Replace(url, "/"+name, "/"+name+"_ascii", 1), db.Options{})
	_, err := d.MigrateUp(t.Context())
	require.ErrorContains(t, err, "encoding is SQL_ASCII; Footfall needs UTF8")
	require.ErrorContains(t, err, "CREATE DATABASE", "it names the remedy")
}

// catalog describes all objects that migrations make in the schema, one per line, in PostgreSQL's notation.
func catalog(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	return dbtest.Column[string](t, conn, `
		WITH schemas AS (
			SELECT oid FROM pg_namespace WHERE nspname IN ('footfall', 'report')
		), tables AS (
			SELECT oid, relname, relkind, relpartbound, reloptions
			FROM pg_class
			WHERE relnamespace IN (SELECT oid FROM schemas) AND relkind IN ('r', 'p', 'v', 'm', 'S') AND relname NOT LIKE 'goose%'
		), functions AS (
			SELECT oid, proname, oidvectortypes(proargtypes) AS takes
			FROM pg_proc
			WHERE pronamespace IN (SELECT oid FROM schemas)
		), lines AS (
			SELECT format('table %s %s %s: %s', relname, relkind, reloptions, obj_description(oid, 'pg_class')) FROM tables
			UNION ALL
			SELECT format('column %s.%s %s %s null=%s default=%s identity=%s generated=%s: %s', t.relname,
				row_number() OVER (PARTITION BY t.oid ORDER BY a.attnum), a.attname, -- attnum counts columns that are gone
				format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, pg_get_expr(d.adbin, d.adrelid),
				a.attidentity, a.attgenerated, col_description(t.oid, a.attnum))
			FROM tables AS t
			JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
			LEFT JOIN pg_attrdef AS d ON d.adrelid = t.oid AND d.adnum = a.attnum
			UNION ALL
			SELECT format('constraint %s on %s: %s', c.conname, t.relname, pg_get_constraintdef(c.oid))
			FROM tables AS t JOIN pg_constraint AS c ON c.conrelid = t.oid AND c.contype <> 'n' -- which columns have
			UNION ALL
			SELECT pg_get_indexdef(i.indexrelid) FROM tables AS t JOIN pg_index AS i ON i.indrelid = t.oid
			UNION ALL
			SELECT pg_get_triggerdef(g.oid) FROM tables AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid AND NOT g.tgisinternal
			UNION ALL
			SELECT format('view %s: %s', relname, pg_get_viewdef(oid)) FROM tables WHERE relkind = 'v'
			UNION ALL
			SELECT pg_get_functiondef(oid) || obj_description(oid, 'pg_proc') FROM functions
			UNION ALL
			SELECT format('type %s', typname) FROM pg_type
			WHERE typnamespace IN (SELECT oid FROM schemas) AND typname NOT LIKE '%goose%'
		)
		SELECT format FROM lines ORDER BY 1`)
}

// After a service has stopped, its session ends a moment later. Reverting a step waits for that.
func TestStepIsTakenBackOnceServicesHaveEnded(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	seen := make(chan *db.Access, 10)
	watcher := async(t, func() error { return d.WatchApps(watching, "", func(a *db.Access) { seen <- a }) })
	receive(t, seen, "the apps")
	down := async(t, func() error { _, err := d.MigrateDown(t.Context()); return err })
	eventually(t, func() bool {
		return len(down) > 0 || query[int64](t, conn, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE '-- name: StatusInstances%'`) > 0
	}, "the first look for services")
	require.Empty(t, down, "a service runs")
	stop()
	require.ErrorIs(t, receive(t, watcher, "the end of the watcher"), context.Canceled)
	require.NoError(t, receive(t, down, "the step to be taken back"))
}

func TestCheckSchema(t *testing.T) {
	t.Parallel()
	whole := dbtest.New(t)
	for name, c := range map[string]struct {
		role  string // the role that checks; "": the owner; "member of …": a new login with this role
		reads bool   // whether the role only has to read
		spoil func(t *testing.T, conn *pgx.Conn)
		want  string // part of the error; "": no error
	}{
		"up to date":                 {},
		"up to date, as the service": {role: "footfall_app"},
		"a version behind": {
			role: "footfall_app",
			spoil: func(t *testing.T, conn *pgx.Conn) {
				exec(t, conn, `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
			},
			want: "type `footfall migrate up` as the owner of the tables",
		},
		"a newer one": {
			role: "footfall_app",
			spoil: func(t *testing.T, conn *pgx.Conn) {
				exec(t, conn, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
			},
			want: "the schema is at version 9999",
		},
		"up to date, as those who read": {role: "member of footfall_report", reads: true},
		"a role without rights": {role: "member of pg_monitor",
			want: "make it a member of footfall_app (as an administrator: GRANT footfall_app TO "},
		"a role without rights that would read": {
			role: "member of pg_monitor", reads: true,
			want: "make it a member of footfall_report (as an administrator: GRANT footfall_report TO ",
		},
		"a role that sees the tables and may not read them": {
			role: "footfall_report", reads: true,
			spoil: func(t *testing.T, conn *pgx.Conn) {
				exec(t, conn, `REVOKE SELECT ON footfall.goose_db_version FROM footfall_report`)
			},
			want: "the role footfall_report may not read the schema's version: type `footfall migrate up` as the owner of the tables, which " +
				"gives footfall_report its rights",
		},
		"while somebody migrates": {
			spoil: func(t *testing.T, conn *pgx.Conn) {
				require.NoError(t, db.New(conn).MigrateLock(t.Context()))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := whole
			if c.spoil != nil {
				url = dbtest.New(t)
			}
			conn := dbtest.Connect(t, url)
			if c.spoil != nil {
				c.spoil(t, conn)
			}
			if of, member := strings.CutPrefix(c.role, "member of "); member {
				url = withLogin(t, url, newLogin(t, conn, of))
			} else if c.role != "" {
				needRole(t, conn, c.role)
				url = withRole(t, url, c.role)
			}
			check := (*db.DB).CheckSchema
			if c.reads {
				check = (*db.DB).CheckReports
			}
			err := check(dbtest.Open(t, url, db.Options{}), t.Context())
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestCheckSchemaMakesNothing(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	conn := dbtest.Connect(t, url)
	d := dbtest.Open(t, url, db.Options{})
	for _, have := range []string{"", "footfall"} {
		if have != "" {
			exec(t, conn, `CREATE SCHEMA footfall`) // an administrator may have prepared it
		}
		require.ErrorContains(t, d.CheckSchema(t.Context()), "the database does not contain Footfall's schema: type `footfall migrate up`")
		assert.Empty(t, dbtest.Column[string](t, conn, `SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('footfall')`))
	}
}
