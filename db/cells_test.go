package db_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/cells"
	"footfall/db/dbtest"
	"footfall/status"
)

// A cell on one node, which other nodes join, and then further cells. A cell can do everything that a single
// database can do.
func TestCellsOnOneNodeAndThree(t *testing.T) {
	t.Parallel()
	c := dbtest.NewCluster(t, 3)
	cluster, err := cells.OpenCluster(c.Home(), db.Options{StatementTimeout: dbtest.Patience, DeadAfter: dbtest.Patience})
	require.NoError(t, err)
	cell, err := cluster.AddCell(t.Context(), "one", cells.Node{})
	require.NoError(t, err)
	assert.Equal(t, c.Node(0), cell.Place, "a single node has the tables")
	conn := c.Connect(cell.URL)
	makeTargets(t, conn)
	d := dbtest.Open(t, cell.URL, db.Options{})
	everyStatementPrepares(t, conn)
	countsAndFails(t, d, conn)
	emptiesTables(t, d, conn)
	daysGiveWay(t, c, cell.URL)

	for n := 1; n < 3; n++ {
		node, err := cells.ParseNode(c.Node(n))
		require.NoError(t, err)
		for range 2 { // the second time the node is already in the cluster
			require.NoError(t, cluster.AddNode(t.Context(), node))
		}
	}
	moves(t, c, cluster, cell, d)
	arrivesInTheEnd(t, c, cell)
	daysGiveWay(t, c, cell.URL)
	stepsGiveWay(t, c, cell, d)
	to, err := cells.ParseNode(c.Node(2))
	require.NoError(t, err)
	_, err = cluster.AddCell(t.Context(), "other", to)
	require.NoError(t, err)
	cells, err := cluster.Cells(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "other"}, []string{cells[0].Name, cells[1].Name})
	assert.Equal(t, []string{c.Node(1), c.Node(2)}, []string{cells[0].Place, cells[1].Place})
	assert.Empty(t, dbtest.Column[string](t, c.Connect(cells[1].URL), `SELECT name FROM apps`))
	countsWithFewRights(t, c, cluster)
}

// countsWithFewRights counts with a role that has only the rights of footfall_app.
func countsWithFewRights(t *testing.T, c *dbtest.Cluster, cluster *cells.Cluster) {
	t.Helper()
	cell, err := cluster.AddCell(t.Context(), "rights", cells.Node{})
	require.NoError(t, err)
	exec(t, dbtest.Connect(t, c.URL(0, "footfall_one")), `CREATE ROLE counting LOGIN IN ROLE footfall_app`)
	url, conn := withLogin(t, cell.URL, "counting"), c.Connect(cell.URL)
	makeTargets(t, conn)
	exec(t, conn, `INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'a', sha256('a'), '{count}')`)
	serveOn(t, dbtest.Open(t, url, db.Options{}), conn)
	role := c.Connect(url)
	for _, sql := range notForTheService {
		_, err := role.Exec(t.Context(), sql)
		assert.Error(t, err, sql)
	}
	assert.Equal(t, []string{"cell.arrive()"}, dbtest.Column[string](t, role, `
		SELECT c.oid::regclass::text FROM pg_class AS c
		WHERE c.relnamespace = 'cell'::regnamespace AND c.relkind IN ('r', 'p')
		AND has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
		UNION ALL
		SELECT p.oid::regprocedure::text FROM pg_proc AS p
		WHERE p.pronamespace = 'cell'::regnamespace AND p.prosecdef AND p.prorettype <> 'trigger'::regtype
		AND has_function_privilege(p.oid, 'EXECUTE')`))
}

// everyStatementPrepares plans each statement of queries/, or runs it if it cannot be planned.
func everyStatementPrepares(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	files, err := filepath.Glob("../*/*.sql.gen.go")
	require.NoError(t, err)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, statement := range regexp.MustCompile("(?s)const (\\w+) = `(.*?)`\n").FindAllStringSubmatch(string(text), -1) {
			found++
			err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				if _, err := tx.Prepare(t.Context(), "", statement[2]); err != nil || !strings.Contains(statement[2], "\nLOCK ") {
					return err
				}
				_, err := tx.Exec(t.Context(), statement[2])
				return err
			})
			assert.NoError(t, err, statement[1])
		}
	}
	assert.Greater(t, found, 250)
}

// countsAndFails writes batches, and checks that failures have the same meaning as in a single database.
func countsAndFails(t *testing.T, d *db.DB, conn *pgx.Conn) {
	t.Helper()
	require.Equal(t, db.FaultNone, write(t, d, visitBatch("192.0.2.1", 1, 2)))
	assert.Equal(t, []int64{1, 1, 1}, numbers(t, conn, 2))
	hinted := visitBatch("192.0.2.1", 1, 2)
	hinted.Pairs.Hinted, hinted.Targets.Newcomers = []bool{true, true}, []int64{1, 1}
	assert.Equal(t, db.FaultHint, write(t, d, hinted))
	assert.Equal(t, db.FaultNoDay, write(t, d, onDay(visitBatch("192.0.2.1", 1, 2), today+1)))
	made, err := d.MakeDays(t.Context(), today+1)
	require.NoError(t, err)
	assert.Equal(t, []int32{today + 1}, made)
	assert.Equal(t, db.FaultNone, write(t, d, onDay(visitBatch("192.0.2.1", 1, 2), today+1)))
	shard := query[string](t, conn, `SELECT table_of('batches')::text`)
	exec(t, conn, `ALTER TABLE `+shard+` ADD CONSTRAINT batches_by_this_version_7 CHECK (schema_version = 1) NOT VALID`)
	assert.Equal(t, db.FaultRefused, write(t, d, visitBatch("192.0.2.1", 1, 2)))
	exec(t, conn, `ALTER TABLE `+shard+` DROP CONSTRAINT batches_by_this_version_7`)
	assert.Equal(t, []int64{2, 2, 1}, numbers(t, conn, 2))
}

// emptiesTables calls the functions that need the underlying tables on the node.
func emptiesTables(t *testing.T, d *db.DB, conn *pgx.Conn) {
	t.Helper()
	exec(t, conn, `INSERT INTO day_keys (day_id, key) VALUES (20190629, sha256('')), (29991231, sha256(''))`)
	assert.True(t, query[bool](t, conn, `SELECT forget_day_keys(20190701)`))
	assert.Equal(t, []int32{29991231}, dbtest.Column[int32](t, conn, `SELECT day_id FROM day_keys`))
	exec(t, conn, `INSERT INTO people (app_id, period, height, id) SELECT 1, n, 0, '192.0.2.1' FROM generate_series(0, 1) AS n;
		UPDATE epochs SET value = value - 2 WHERE name = 'people'`)
	assert.True(t, query[bool](t, conn, `SELECT turn_people()`))
	assert.Zero(t, query[int64](t, conn, `SELECT count(*) FROM people`))
	assert.Positive(t, query[int64](t, conn, `SELECT uniques FROM group_uniques(1, '{2,3}', 20190629, 20190630)`))
	sizes, err := status.New(d.Tx()).TableSizes(t.Context())
	require.NoError(t, err)
	var names []string
	for _, size := range sizes {
		names = append(names, size.Name)
	}
	assert.Subset(t, names, []string{"visits", "visitors", "apps", "people"})
	assert.NotContains(t, names, "totals")
}

// daysGiveWay makes and drops days while other transactions count for the same visitors and wait for each other.
// The counting transactions never fail. Making or dropping a day fails only with FaultBusy, and succeeds in the
// end.
func daysGiveWay(t *testing.T, c *dbtest.Cluster, url string) {
	t.Helper()
	// In a deadlock, PostgreSQL would cancel a counting session, because no other session checks for deadlocks in
	// time.
	exec(t, c.Connect(url), `SET citus.enable_ddl_propagation = off;
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''10min''', current_database()); END $$`)
	first := c.Connect(url)
	exec(t, first, `SELECT make_visits_day(20190601)`)
	var ended atomic.Bool
	var counting sync.WaitGroup
	defer counting.Wait()
	defer ended.Store(true)
	for range 4 {
		conn := c.Connect(url)
		exec(t, conn, `SET deadlock_timeout = '5s'`)
		counting.Go(func() {
			for !ended.Load() {
				err := pgx.BeginFunc(context.Background(), conn, func(tx pgx.Tx) error {
					for page := 1000; page < 1003; page++ {
						if _, err := tx.Exec(context.Background(), `INSERT INTO visits (page_id, day_id, previous_day, ip)
							VALUES ($1, 20190601, 0, '192.0.2.1')`, page); err != nil {
							return err
						}
					}
					return tx.Rollback(context.Background())
				})
				if !assert.ErrorIs(t, err, pgx.ErrTxClosed) {
					return
				}
			}
		})
	}
	exec(t, first, `INSERT INTO closed_days (day_id) SELECT day FROM generate_series(20190701, 20190702) AS day ON CONFLICT DO NOTHING`)
	for _, sql := range []string{`SELECT make_visits_day($1)`, `SELECT drop_visits_day($1)`} {
		for day := 20190701; day < 20190703; day++ {
			require.Eventually(t, func() bool {
				var did bool
				err := first.QueryRow(context.Background(), sql, day).Scan(&did)
				if err != nil {
					assert.Equal(t, db.FaultBusy, db.FaultOf(err), "%v", err)
				}
				return err == nil
			}, dbtest.Patience, dbtest.Tick, "%s of %d", sql, day)
		}
	}
}

// stepsGiveWay applies the last steps again while visits are counted. The steps never make visits wait for long,
// and all nodes get the changes. Two columns of step 22, held_until and hashed_from, are still there: the step must
// accept that.
func stepsGiveWay(t *testing.T, c *dbtest.Cluster, cell cells.Cell, d *db.DB) {
	t.Helper()
	coordinator, conn := dbtest.Connect(t, c.URL(0, "footfall_"+cell.Name)), c.Connect(cell.URL)
	undo := []string{
		`ALTER TABLE cell.page_tallies DROP COLUMN own_tags_today CASCADE`, `DROP TABLE cell.people`,
		`DROP TABLE cell.log_hours, cell.counted_lines, cell.read_logs`,
		`ALTER TABLE cell.apps DROP COLUMN public_top CASCADE`, `ALTER TABLE cell.apps DROP COLUMN public_events CASCADE`,
		`DROP TABLE cell.here`, `DROP TABLE cell.titles`, `DROP TABLE cell.history, cell.history_days, cell.history_imports`,
		`ALTER TABLE cell.apps DROP COLUMN titles CASCADE`, `ALTER TABLE cell.apps DROP COLUMN hashed_as CASCADE`,
		`ALTER TABLE cell.apps DROP COLUMN cell CASCADE`, `ALTER TABLE cell.apps DROP COLUMN cell_began CASCADE`,
		`ALTER TABLE cell.apps DROP COLUMN moving_to CASCADE`,
		`DROP TABLE cell.changes`, `DROP TABLE cell.admin_keys`, `DROP TABLE cell.log_samples`,
		`DROP TABLE cell.account_links, cell.account_sessions, cell.account_apps, cell.accounts`,
		`ALTER TABLE cell.apps DROP COLUMN log_key CASCADE`, `ALTER TABLE cell.logs ADD CONSTRAINT logs_are_different UNIQUE (app_id, hash)`,
		`ALTER TABLE cell.apps DROP COLUMN goals CASCADE`, `ALTER TABLE cell.offsets DROP COLUMN told CASCADE`,
		`ALTER TABLE cell.webhooks DROP COLUMN answers CASCADE`, `ALTER TABLE cell.webhooks DROP COLUMN salt CASCADE`,
		`DROP INDEX cell.inbox_of_apps`, `DELETE FROM cell.epochs WHERE name IN ('people', 'standby')`,
		`DELETE FROM cell.goose_db_version WHERE version_id >= 9`, `DELETE FROM cell.schema_files WHERE name = 'functions' OR name >= '00009'`,
	}
	for _, column := range strings.Fields(`history_hot history_pv history_uv by_hand`) {
		undo = append(undo, `ALTER TABLE cell.offsets DROP COLUMN `+column+` CASCADE`)
	}
	for _, column := range strings.Fields(`counted counted_hash beginning look server inode state told after after_lines last_at tail`) {
		undo = append(undo, `ALTER TABLE cell.logs DROP COLUMN `+column+` CASCADE`)
	}
	for _, sql := range undo {
		exec(t, coordinator, sql)
	}
	before, told := numbers(t, conn, 2), int64(0)
	var ended atomic.Bool
	counting := async(t, func() (err error) {
		for out := (db.Outcome{}); err == nil && !ended.Load(); {
			switch err = d.Write(context.Background(), onDay(visitBatch("192.0.2.1", 1, 2), today+1), &out); db.FaultOf(err) {
			case db.FaultNone:
				told++
			case db.FaultBusy:
				err = nil
			}
		}
		return err
	})
	defer ended.Store(true)

	direct, err := db.Direct(t.Context(), cell.URL)
	require.NoError(t, err)
	long := begin(t, direct, `DO $$ BEGIN EXECUTE format('LOCK %s IN SHARE MODE', table_of('epochs')); END $$`)
	ctx, cancel := context.WithTimeout(t.Context(), dbtest.Patience)
	defer cancel()
	_, err = dbtest.Open(t, cell.URL, db.Options{LockPatience: time.Millisecond}).MigrateUp(ctx)
	require.Equal(t, db.FaultBusy, db.FaultOf(err), "%v", err)
	require.NoError(t, long.Rollback(t.Context()))
	applied, err := d.MigrateUp(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"00009_people.sql", "00010_own_tags.sql", "00011_standby.sql", "00012_logs.sql", "00013_inbox.sql",
		"00014_inbox_carried.sql", "00015_filters.sql", "00016_told_ranks.sql", "00017_here.sql", "00018_changes.sql",
		"00019_public_counts.sql", "00020_admin_keys.sql", "00021_accounts.sql", "00022_visitors.sql", "00023_titles.sql",
		"00024_history.sql", "00025_apps_elsewhere.sql", "00026_offsets_of_imports.sql", "00032_counted_lines.sql",
		"00034_public_lists.sql", "functions and views"}, applied)
	ended.Store(true)
	require.NoError(t, receive(t, counting, "the last visit"))
	assert.Equal(t, before[0]+told, numbers(t, conn, 2)[0])
	assert.Zero(t, query[int64](t, conn, `SELECT count(*) FROM people`))
	require.NoError(t, d.CheckSchema(t.Context()))

	exec(t, conn, `UPDATE footfall.schema_files SET hash = '' WHERE name = 'functions'`)
	long = begin(t, c.URL(0, "footfall_"+cell.Name), `LOCK TABLE cell.layer IN SHARE MODE`)
	_, err = dbtest.Open(t, cell.URL, db.Options{LockPatience: time.Millisecond}).MigrateUp(t.Context())
	require.ErrorContains(t, err, "functions and views: the migration could not get its locks for")
	require.NoError(t, long.Rollback(t.Context()))
	applied, err = d.MigrateUp(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"functions and views"}, applied)
}

// moves moves a cell during writes. Each write ends in the same way as after a failover, and the tables agree with
// all results.
func moves(t *testing.T, c *dbtest.Cluster, cluster *cells.Cluster, cell cells.Cell, d *db.DB) {
	t.Helper()
	before, reader := numbers(t, c.Connect(cell.URL), 2), c.Connect(cell.URL)
	ids := query[int64](t, reader, `SELECT max(id) FROM pages`)
	var told atomic.Int64
	var writing sync.WaitGroup
	for range 4 {
		conn := c.Connect(cell.URL)
		writing.Go(func() {
			for {
				tag, err := conn.Exec(context.Background(), `UPDATE counters SET hot = hot + 1 WHERE page_id = 2`)
				if err != nil {
					assert.Equal(t, db.FaultUnknown, db.FaultOf(err), "%v", err)
					return
				}
				told.Add(tag.RowsAffected())
			}
		})
	}
	to, err := cells.ParseNode(c.Node(1))
	require.NoError(t, err)
	_, err = cluster.MoveCell(t.Context(), cell.Name, to)
	require.NoError(t, err)
	writing.Wait()
	assert.Error(t, reader.Ping(t.Context()), "its data would be outdated")

	there := c.Connect(cell.URL)
	assert.Positive(t, told.Load())
	assert.Equal(t, before[0]+told.Load(), numbers(t, there, 2)[0])
	assert.Equal(t, ids+1, query[int64](t, there, `INSERT INTO pages (app_id, uri) VALUES (1, 'other.example') RETURNING id`))
	require.Eventually(t, func() bool { return write(t, d, onDay(visitBatch("192.0.2.1", 1, 2), today+1)) == db.FaultNone }, dbtest.Patience,
		dbtest.Tick)
}

// arrivesInTheEnd checks that the first connection to a node may take longer than the limit for a statement: there
// it creates the functions of the cell.
func arrivesInTheEnd(t *testing.T, c *dbtest.Cluster, cell cells.Cell) {
	t.Helper()
	const limit = time.Second
	other, d := c.Connect(cell.URL), dbtest.Open(t, cell.URL, db.Options{StatementTimeout: limit})
	exec(t, dbtest.Connect(t, c.URL(0, "footfall_one")), `UPDATE cell.layer SET texts = texts`)
	exec(t, other, `SELECT pg_advisory_lock(hashtext('footfall.arrive'))`)
	arrived := make(chan error, 1)
	go func() { arrived <- d.Ping(context.Background()) }()
	const longest = `SELECT coalesce(max(clock_timestamp() - a.query_start), '0') > '1500 ms'
		FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) WHERE l.locktype = 'advisory' AND NOT l.granted`
	require.Eventually(t, func() bool { return len(arrived) > 0 || query[bool](t, other, longest) }, dbtest.Patience, dbtest.Tick)
	exec(t, other, `SELECT pg_advisory_unlock(hashtext('footfall.arrive'))`)
	assert.NoError(t, <-arrived)
}
