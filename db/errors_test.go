package db_test

import (
	"context"
	"io/fs"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/migrations"
)

// lockCounters locks the counters of one target.
const lockCounters = `SELECT FROM counters WHERE page_id = $1 FOR UPDATE`

// write writes a batch, and returns the fault of its error.
func write(t *testing.T, d *db.DB, b *db.Batch) db.Fault {
	t.Helper()
	var out db.Outcome
	err := d.Write(t.Context(), b, &out)
	t.Log(err)
	return db.FaultOf(err)
}

// If a batch waits for a lock and anything ends its wait, the batch has counted nothing.
func TestFaultsOfAWait(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	held := begin(t, url, lockCounters, 2)
	busy := dbtest.Open(t, dbtest.WithParameter(t, url, "lock_timeout", "10ms"), db.Options{})
	assert.Equal(t, db.FaultBusy, write(t, busy, visitBatch("192.0.2.1", 1, 2)))
	slow := dbtest.Open(t, url, db.Options{Writers: 1, StatementTimeout: 20 * time.Millisecond})
	assert.Equal(t, db.FaultRefused, write(t, slow, visitBatch("192.0.2.1", 1, 2)))

	d := dbtest.Open(t, url, db.Options{})
	fault := async(t, func() db.Fault { return write(t, d, visitBatch("192.0.2.1", 1, 2)) })
	require.True(t, query[bool](t, conn, `SELECT pg_terminate_backend($1)`, dbtest.AwaitWaiting(t, conn, 1)[0]))
	assert.Equal(t, db.FaultUnknown, receive(t, fault, "the end of a batch whose session has ended"))
	assertNothingCounted(t, conn)
	ctx, cancel := context.WithCancel(t.Context())
	fault = async(t, func() db.Fault { return db.FaultOf(d.Write(ctx, visitBatch("192.0.2.1", 2), &db.Outcome{})) })
	dbtest.AwaitWaiting(t, conn, 1)
	cancel()
	assert.Equal(t, db.FaultUnknown, receive(t, fault, "the end of a batch whose caller has left"))
	require.NoError(t, held.Rollback(t.Context()))
	assert.Equal(t, db.FaultNone, write(t, d, visitBatch("192.0.2.1", 1, 2)), "the next takes a new connection")
}

// The batch holds the counters of target 1 and waits for those of 2. The other transaction holds 3 and waits for 1.
// When 2 is released, the batch completes the deadlock. The batch is rolled back, because the other transaction
// checks for deadlocks only much later.
func TestFaultOfDeadlock(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	second := begin(t, url, lockCounters, 2)
	third := begin(t, dbtest.WithParameter(t, url, "deadlock_timeout", "10min"), lockCounters, 3)
	d := dbtest.Open(t, dbtest.WithParameter(t, url, "deadlock_timeout", "10ms"), db.Options{})
	fault := async(t, func() db.Fault { return write(t, d, visitBatch("192.0.2.1", 1, 2, 3)) })
	dbtest.AwaitWaiting(t, conn, 1)
	other := async(t, func() error { _, err := third.Exec(context.Background(), lockCounters, 1); return err })
	dbtest.AwaitWaiting(t, conn, 2)
	require.NoError(t, second.Rollback(t.Context()))

	assert.Equal(t, db.FaultBusy, receive(t, fault, "the batch's end"))
	require.NoError(t, receive(t, other, "the end of the other's wait"))
	require.NoError(t, third.Rollback(t.Context()))
	assertNothingCounted(t, conn)
	assert.Equal(t, db.FaultNone, write(t, d, visitBatch("192.0.2.1", 1, 2, 3)), "the same once more")
}

// A visitor who is wrongly hinted to be new fails on a key. Without the hint the visit counts.
func TestFaultOfWrongHint(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{Writers: 1})
	require.Equal(t, db.FaultNone, write(t, d, visitBatch("192.0.2.1", 2)))
	b := visitBatch("192.0.2.1", 2)
	b.Pairs.Hinted[0], b.Targets.Newcomers[0] = true, 1
	assert.Equal(t, db.FaultHint, write(t, d, b))
	b.Pairs.Hinted[0], b.Targets.Newcomers[0] = false, 0
	assert.Equal(t, db.FaultNone, write(t, d, b), "the same without hints, even under the same id: it rolled back")
	assert.Equal(t, []int64{2, 1, 1}, numbers(t, conn, 2))
}

// Tables with a visit whose visitor is missing are damaged: no further visit of this visitor is counted, with or
// without a hint.
func TestFaultOfVisitWithoutVisitor(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{Writers: 1})
	exec(t, conn, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, 20190629, 0, '192.0.2.1')`)
	b := visitBatch("192.0.2.1", 2)
	assert.Equal(t, db.FaultHint, write(t, d, b))
	b.Pairs.Hinted[0], b.Targets.Newcomers[0] = true, 1
	assert.Equal(t, db.FaultHint, write(t, d, b))
	assert.Zero(t, query[int64](t, conn, `SELECT sum(hot)::bigint FROM counters`))
}

func TestFaultOfMissingDay(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{Writers: 1})
	b := onDay(visitBatch("192.0.2.1", 1, 2), today+1)
	backend := backendOf(t, d)
	assert.Equal(t, db.FaultNoDay, write(t, d, b))
	assert.Equal(t, backend, backendOf(t, d), "a batch that the server refuses does not cost the connection")
	assertNothingCounted(t, conn)
	_, err := d.Queries().VisitsDayMake(t.Context(), today+1)
	require.NoError(t, err)
	assert.Equal(t, db.FaultNone, write(t, d, b))
}

func TestFaultOfBadData(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{Writers: 1})
	negative := visitBatch("192.0.2.1", 1, 2)
	negative.Targets.Hot[1] = -1
	assert.Equal(t, db.FaultData, write(t, d, negative), "a check")
	twice := visitBatch("192.0.2.1", 1, 2)
	twice.Targets.Hot = []int64{1 << 62, 1 << 62}
	require.Equal(t, db.FaultNone, write(t, d, twice))
	twice.ID = batchID()
	assert.Equal(t, db.FaultData, write(t, d, twice), "a number out of range")
	assert.Equal(t, []int64{1 << 62, 1, 1}, numbers(t, conn, 1))
}

func TestFaultWhereNobodyListens(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, "postgres://footfall@/footfall?host="+url.QueryEscape(t.TempDir()), db.Options{})
	assert.Equal(t, db.FaultRefused, write(t, d, visitBatch("192.0.2.1", 1)))
	_, _, err := d.Intern(t.Context(), interning([]string{"example.com/a"}, []string{"example.com"}))
	assert.Equal(t, db.FaultRefused, db.FaultOf(err))
}

func TestFaultNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for f := db.FaultNone; f <= db.FaultUnknown; f++ {
		assert.NotEmpty(t, f.String())
		assert.False(t, seen[f.String()], f)
		seen[f.String()] = true
	}
}

// backendOf returns the process of the one writer of d.
func backendOf(t *testing.T, d *db.DB) (pid int32) {
	t.Helper()
	require.NoError(t, d.Writers().QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	return pid
}

// assertNothingCounted checks that the failed batches were rolled back completely.
func assertNothingCounted(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	assert.Equal(t, int64(0), query[int64](t, conn, `SELECT sum(hot)::bigint FROM counters`))
	for _, table := range []string{"visitors", "visits", "batches"} {
		assert.Equal(t, int64(0), query[int64](t, conn, `SELECT count(*) FROM `+table), table)
	}
}

// numbers returns hot, pv and uv of a target, after checking them against the rows.
func numbers(t *testing.T, conn *pgx.Conn, target int64) []int64 {
	t.Helper()
	assert.True(t, query[bool](t, conn, `
		SELECT pv = (SELECT count(*) FROM visits WHERE page_id = $1)
		   AND uv = (SELECT count(*) FROM visitors WHERE page_id = $1)
		   AND uv = (SELECT coalesce(max(rank), 0) FROM visitors WHERE page_id = $1)
		FROM counters WHERE page_id = $1`, target), "counters of target %d without the rows to prove them", target)
	return query[[]int64](t, conn, `SELECT ARRAY[hot, pv, uv] FROM counters WHERE page_id = $1`, target)
}

// The error that ends a session does not show whether its transaction committed: the server may have written the
// commit earlier.
func TestFaultOfASessionThatEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		severity, code string
		want           db.Fault
	}{
		{"ERROR", "53100", db.FaultRefused},
		{"PANIC", "53100", db.FaultUnknown},
		{"PANIC", "58030", db.FaultUnknown},
		{"FATAL", "XX000", db.FaultUnknown},
		{"FATAL", "57P01", db.FaultUnknown},
	} {
		err := &pgconn.PgError{SeverityUnlocalized: c.severity, Code: c.code}
		assert.Equal(t, c.want, db.FaultOf(err), "%s %s", c.severity, c.code)
	}
}

// If a role or a database is configured to commit without waiting for the disk, or for the standby's disk, batches
// still wait.
func TestBatchesWaitForTheDisk(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	for value, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "remote_apply": "remote_apply"} {
		d := dbtest.Open(t, dbtest.WithParameter(t, url, "synchronous_commit", value), db.Options{})
		_, err := conn.Exec(t.Context(), `CREATE TABLE IF NOT EXISTS heard (setting text);
			CREATE OR REPLACE FUNCTION hear() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN INSERT INTO footfall.heard VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
			CREATE OR REPLACE TRIGGER hear AFTER INSERT ON batches FOR EACH STATEMENT EXECUTE FUNCTION hear();
			DELETE FROM heard`)
		require.NoError(t, err)
		require.Equal(t, db.FaultNone, write(t, d, visitBatch("192.0.2.1", 1)))
		var heard string
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT setting FROM heard").Scan(&heard))
		assert.Equal(t, want, heard)
	}
}

// If the rows that a caller needs cannot be read, the fault is FaultRefused, because no visit was sent.
func TestWhatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.New(t), db.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, read := range map[string]func() error{
		"the basis":        func() error { _, err := d.Basis(ctx); return err },
		"late days":        func() error { _, err := d.MayBeLate(ctx, []int64{1}, []int32{20190629}); return err },
		"ids of visits":    func() error { _, err := d.KnownVisitIDs(ctx, []db.VisitID{{App: 1, ID: "a"}}); return err },
		"tags":             func() error { _, err := d.FindTags(ctx, 1, []db.Tag{{Name: "source", Value: "a.example"}}); return err },
		"counted visits":   func() error { _, err := d.CountedVisits(ctx, &db.PairColumns{}); return err },
		"pages to be made": func() error { _, _, err := d.Intern(ctx, interning([]string{"a/"}, []string{"a"})); return err },
	} {
		assert.Equal(t, db.FaultRefused, db.FaultOf(read()), name)
	}
}

// Each SQLSTATE raised by the schema determines how to treat the batch. Only FF009 is a FaultRefused: COMMIT waits
// for no standby, and the batch cannot change that.
func TestRaisedFaults(t *testing.T) {
	t.Parallel()
	raised := regexp.MustCompile(`ERRCODE = '(FF\d+)'`)
	files, err := fs.Glob(migrations.FS, "functions/*.sql")
	require.NoError(t, err)
	var codes []string
	for _, file := range files {
		text, err := fs.ReadFile(migrations.FS, file)
		require.NoError(t, err)
		for _, found := range raised.FindAllStringSubmatch(string(text), -1) {
			codes = append(codes, found[1])
			fault := db.FaultOf(&pgconn.PgError{Code: found[1]})
			assert.Equal(t, found[1] == "FF009", fault == db.FaultRefused, "%s: %v", found[1], fault)
		}
	}
	assert.Contains(t, codes, "FF009")
}
