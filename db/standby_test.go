package db_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/visit"
)

// acknowledged are the writes that are confirmed to a caller. n distinguishes repetitions of the same write.
var acknowledged = map[string]func(ctx context.Context, d *db.DB, n int) error{
	"a batch": func(ctx context.Context, d *db.DB, n int) error {
		return d.Write(ctx, visitBatch(fmt.Sprintf("192.0.2.%d", n), 1, 2), new(db.Outcome))
	},
	"a batch of visits with ids": func(ctx context.Context, d *db.DB, n int) error {
		b := visitBatch(fmt.Sprintf("198.51.100.%d", n), 3)
		b.IDs = db.VisitIDColumns{Apps: []int32{1}, IDs: []string{fmt.Sprint(n)}}
		return d.Write(ctx, b, new(db.Outcome))
	},
	"the inbox": func(ctx context.Context, d *db.DB, _ int) error {
		return d.Accept(ctx, batchID(), []db.InboxPutParams{{
			App: 1, Tz: "UTC", Visitor: "address", Ipv6Prefix: 64, Uris: []string{"example.com/a"}, Pages: []int32{1},
			Days: []int32{today}, NewPages: []int32{0}, Ips: []netip.Addr{netip.MustParseAddr("192.0.2.9")}, TagPlaces: []int16{0},
		}}, db.PastDayColumns{})
	},
	"the key of a day": func(ctx context.Context, d *db.DB, _ int) error {
		return d.KeepDayKey(ctx, visit.DayOf(d.Now(), time.UTC), make([]byte, 32))
	},
	"a call": func(ctx context.Context, d *db.DB, n int) error {
		_, err := d.OpenPosition(ctx, db.Position{App: 1, Source: "call", Part: fmt.Sprint(n)}, make([]byte, 32))
		return err
	},
	"a new page": func(ctx context.Context, d *db.DB, n int) error {
		_, _, err := d.Intern(ctx, interning([]string{fmt.Sprintf("example.com/%d", n)}, []string{"example.com"}))
		return err
	},
	"people": func(ctx context.Context, d *db.DB, n int) error {
		id := netip.MustParseAddr("fd00::1")
		return d.PutPeople(ctx, 2, []netip.Addr{id}, func(rows map[netip.Addr]*db.PersonRow, _ func() error) error {
			rows[id] = &db.PersonRow{Person: id, Changed: n == 1} // later it already exists
			return nil
		})
	},
	"a command": func(ctx context.Context, d *db.DB, n int) error {
		return d.InTx(ctx, func(q *db.Queries) error { _, err := q.AppAdd(ctx, fmt.Sprint("app", n)); return err })
	},
}

// writing runs all acknowledged writes concurrently.
type writing struct {
	t    *testing.T
	pair *dbtest.Pair
	d    *db.DB
}

func (w *writing) begin(n int) map[string]<-chan error {
	results := map[string]<-chan error{}
	for name, write := range acknowledged {
		results[name] = async(w.t, func() error { return write(w.t.Context(), w.d, n) })
	}
	return results
}

// awaitWaiting waits until each write waits for the standby in a statement matching the pattern, and checks that no
// write returns.
func (w *writing) awaitWaiting(results map[string]<-chan error, statement string) (pids []int32) {
	returned := ""
	eventually(w.t, func() bool {
		for name, result := range results {
			if len(result) > 0 {
				returned = name
			}
		}
		pids = w.pair.Waiting(statement)
		return returned != "" || len(pids) == len(results)
	}, "all to wait for the standby")
	require.Empty(w.t, returned, "returned while the standby was away")
	return pids
}

func (w *writing) end(do string, pids ...int32) {
	for _, pid := range pids {
		w.pair.Exec(fmt.Sprintf("SELECT pg_%s_backend(%d)", do, pid))
	}
}

// each checks the result of every write.
func (w *writing) each(results map[string]<-chan error, check func(name string, err error)) {
	for name, result := range results {
		check(name, receive(w.t, result, name))
	}
}

const anything, again = "%", "%pg_logical_emit_message%"

// An acknowledged write is on the standby, however the wait for the standby ended.
func TestAcknowledgedIsOnTheStandby(t *testing.T) {
	t.Parallel()
	p := dbtest.NewPair(t, true)
	makeTargets(t, dbtest.Connect(t, p.Primary()))
	p.Exec("INSERT INTO footfall.apps (name, visitor, secret_id) VALUES ('people', 'id', '12345678')")
	local := dbtest.WithParameter(t, p.URL(), "synchronous_commit", "local")
	usual := &writing{t, p, dbtest.Open(t, local, db.Options{Writers: len(acknowledged)})}
	strict := &writing{t, p, dbtest.Open(t, local, db.Options{Writers: len(acknowledged), RequireStandby: true})}
	well := func(name string, err error) { assert.NoError(t, err, name) }
	alone := func(name string, err error) {
		assert.ErrorIs(t, err, db.ErrUnreplicated, name)
		if name != "a new page" { // creating a page counts nothing
			assert.Equal(t, db.FaultUnknown, db.FaultOf(err), name)
		}
	}
	usual.each(usual.begin(1), well)
	strict.each(strict.begin(2), well)

	p.KillStandby() // first case: the waiting commits are canceled
	results := usual.begin(3)
	usual.end("cancel", usual.awaitWaiting(results, anything)...)
	usual.end("cancel", usual.awaitWaiting(results, again)...)
	usual.each(results, alone)
	results = usual.begin(4)
	usual.end("cancel", usual.awaitWaiting(results, anything)...)
	usual.awaitWaiting(results, again)
	p.Rejoin()
	usual.each(results, well)
	assert.Equal(t, int64(2*len(acknowledged)), usual.d.UnreplicatedCommits())

	p.KillStandby()
	eventually(t, func() bool {
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		return db.Reason(usual.d.Probe(ctx)) == "the database's commits wait for the synchronous standby, which does not answer"
	}, "a reason") // second case: the waiting sessions are terminated
	batch := visitBatch("203.0.113.1", 1, 2)
	lost := map[string]<-chan error{"": async(t, func() error { return usual.d.Write(t.Context(), batch, new(db.Outcome)) })}
	usual.end("terminate", usual.awaitWaiting(lost, anything)...)
	usual.each(lost, func(_ string, err error) { assert.Equal(t, db.FaultUnknown, db.FaultOf(err)) })
	committed := async(t, func() bool {
		committed, err := usual.d.DidCommit(t.Context(), batch.ID)
		return assert.NoError(t, err) && committed
	})
	eventually(t, func() bool { return len(p.Waiting(again)) > 0 }, "a connection that commits")
	assert.Empty(t, committed, "confirmed while the standby was away")
	p.Rejoin()
	assert.True(t, receive(t, committed, "whether it did commit"))

	p.KillStandby() // third case: a setting releases the waiting commits
	results = strict.begin(5)
	strict.awaitWaiting(results, anything)
	p.WaitFor("")
	strict.each(results, alone)
	counted := dbtest.Column[int64](t, dbtest.Connect(t, p.Primary()), `SELECT sum(hot)::bigint FROM counters`)
	strict.each(strict.begin(6), func(name string, err error) {
		assert.Error(t, err, name)
		if strings.HasPrefix(name, "a batch") || name == "the inbox" {
			assert.Equal(t, db.FaultRefused, db.FaultOf(err), name)
			assert.Contains(t, db.Reason(err), "a synchronous standby is required, but the server does not wait for one", name)
		}
	})
	assert.Equal(t, counted, dbtest.Column[int64](t, dbtest.Connect(t, p.Primary()), `SELECT sum(hot)::bigint FROM counters`))
	usual.each(usual.begin(7), well)
	p.WaitFor("*")
	p.Rejoin()
	strict.each(strict.begin(8), well)
}

// reload makes the server load settings, and returns when all sessions of the pools have them.
func (w *writing) reload(settings ...string) {
	marker := fmt.Sprint(time.Now().UnixMicro() % 1e9)
	for _, setting := range append(settings, "gin_fuzzy_search_limit = "+marker) { // this setting has no effect here
		w.pair.Exec("ALTER SYSTEM SET " + setting)
	}
	w.pair.Exec("SELECT pg_reload_conf()")
	sessions := 0
	for _, pool := range w.d.Pools() {
		for _, conn := range pool.AcquireAllIdle(w.t.Context()) {
			sessions++
			eventually(w.t, func() bool {
				return dbtest.Column[string](w.t, conn, "SELECT current_setting('gin_fuzzy_search_limit')")[0] == marker
			}, "a session to read its settings")
			conn.Release()
		}
	}
	require.Positive(w.t, sessions)
}

// Whatever settings are changed, running sessions acknowledge a write only when it is on two machines, or on the
// disk of one machine if no standby is configured.
func TestReloadWeakensNoSession(t *testing.T) {
	t.Parallel()
	p := dbtest.NewPair(t, true)
	makeTargets(t, dbtest.Connect(t, p.Primary()))
	p.Exec("INSERT INTO footfall.apps (name, visitor, secret_id) VALUES ('people', 'id', '12345678')")
	w := &writing{t, p, dbtest.Open(t, p.URL(), db.Options{Writers: len(acknowledged)})}
	well := func(name string, err error) { require.NoError(t, err, name) }
	w.each(w.begin(1), well)
	for n, setting := range []string{"synchronous_commit = local", "synchronous_commit = remote_write", "client_min_messages = error"} {
		w.reload(setting)
		p.KillStandby()
		results := w.begin(2 + n)
		w.end("cancel", w.awaitWaiting(results, anything)...)
		w.awaitWaiting(results, again)
		p.Rejoin()
		w.each(results, well)
	}

	p.KillStandby() // from here on there is only one machine
	p.WaitFor("")
	w.reload("synchronous_commit = off", "wal_writer_delay = '10s'", "wal_writer_flush_after = '1GB'")
	before := dbtest.Column[int64](t, dbtest.Connect(t, p.Primary()), `SELECT sum(hot)::bigint FROM counters`)[0]
	require.NoError(t, w.d.Write(t.Context(), visitBatch("203.0.113.1", 1, 2), new(db.Outcome)))
	p.Kill()
	p.Restart(nil)
	assert.Equal(t, before+2, dbtest.Column[int64](t, dbtest.Connect(t, p.Primary()), `SELECT sum(hot)::bigint FROM counters`)[0])

	p.WaitFor("*") // although the server sends its log to no standby
	p.Kill()
	p.Restart(map[string]string{"max_wal_senders": "0"})
	d := dbtest.Open(t, p.URL(), db.Options{RequireStandby: true})
	err := d.Write(t.Context(), visitBatch("203.0.113.2", 1, 2), new(db.Outcome))
	assert.Equal(t, db.FaultRefused, db.FaultOf(err))
	assert.ErrorContains(t, err, "max_wal_senders is 0")
	standby, err := d.Standby(t.Context())
	require.NoError(t, err)
	assert.Equal(t, db.Standby{Required: true, IsMissing: true}, standby)
}

// If the tables store whether a standby is required, this applies to all writers. The option of a process applies
// only if the tables store nothing.
func TestStandbyIsRequiredOfAll(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t) // on a server that waits for no standby
	usual, strict := dbtest.Open(t, url, db.Options{}), dbtest.Open(t, url, db.Options{RequireStandby: true})
	app := dbtest.Open(t, withRole(t, url, "footfall_app"), db.Options{})
	visitor := 0
	writes := func(d *db.DB) db.Fault {
		visitor++
		return write(t, d, visitBatch(fmt.Sprintf("192.0.2.%d", visitor), 1, 2))
	}
	required := func(d *db.DB) bool {
		standby, err := d.Standby(t.Context())
		require.NoError(t, err)
		assert.Equal(t, standby.Required, standby.IsMissing)
		return standby.Required
	}
	assert.Equal(t, []db.Fault{db.FaultNone, db.FaultRefused}, []db.Fault{writes(usual), writes(strict)})
	assert.Equal(t, []bool{false, true}, []bool{required(usual), required(strict)})
	require.ErrorContains(t, usual.SayStandby(t.Context(), true, false), "synchronous_standby_names is empty")
	assert.False(t, required(usual), "a refused requirement is not stored")

	for range 2 {
		require.NoError(t, app.SayStandby(t.Context(), true, true))
		assert.Equal(t, []db.Fault{db.FaultRefused, db.FaultRefused}, []db.Fault{writes(usual), writes(strict)})
		_, err := usual.OpenPosition(t.Context(), db.Position{App: 1, Source: "call", Part: "1"}, make([]byte, 32))
		assert.Equal(t, db.FaultRefused, db.FaultOf(err))
		require.Error(t, usual.InTx(t.Context(), func(q *db.Queries) error { _, err := q.AppAdd(t.Context(), "blog"); return err }))
		assert.True(t, required(usual))
	}
	for range 2 {
		require.NoError(t, usual.SayStandby(t.Context(), false, false))
		assert.Equal(t, []db.Fault{db.FaultNone, db.FaultNone}, []db.Fault{writes(usual), writes(strict)})
		assert.False(t, required(strict))
	}
	assert.Equal(t, int64(5), query[int64](t, conn, `SELECT hot FROM counters WHERE page_id = 1`))
	assert.Zero(t, usual.UnreplicatedCommits())
	require.NoError(t, usual.SayStandby(t.Context(), true, true))
	exec(t, conn, `UPDATE epochs SET value = 0 WHERE name = 'standby'`)
	require.NoError(t, strict.SayStandby(t.Context(), false, false), "it is off before it was set")
	assert.Equal(t, db.FaultNone, writes(strict))
}

// A connection lost after COMMIT, or a context cancelled there, does not prove that the wait for a standby was
// cancelled.
func TestLostConnectionIsNoCommitAlone(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t) // on a server that waits for no standby
	d := dbtest.Open(t, url, db.Options{})
	for _, lose := range []string{"cancelled", "terminated"} {
		locks, err := dbtest.Connect(t, url).Begin(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		waiting := func(mode string) bool {
			return query[int64](t, conn, `SELECT count(*) FROM pg_locks WHERE relation = 'epochs'::regclass AND mode = $1 AND NOT granted`, mode) > 0
		}
		read, queued := make(chan struct{}), make(chan struct{})
		done := async(t, func() error {
			return d.InTx(ctx, func(q *db.Queries) error {
				_, err := q.StandbyRequire(ctx, false) // it reads epochs
				if err == nil {
					_, err = q.AppAdd(ctx, lose)
				}
				close(read)
				<-queued
				return err
			})
		})
		receive(t, read, "reading epochs")
		locked := async(t, func() error { _, err := locks.Exec(t.Context(), "LOCK TABLE epochs"); return err })
		eventually(t, func() bool { return waiting("AccessExclusiveLock") }, "the lock to queue behind the transaction")
		close(queued)
		eventually(t, func() bool { return len(done) > 0 || waiting("AccessShareLock") }, "the query after COMMIT to wait")
		require.Empty(t, done, lose)
		require.NoError(t, receive(t, locked, "the lock"))
		assert.Equal(t, int64(1), query[int64](t, conn, `SELECT count(*) FROM apps WHERE name = $1`, lose), "it was committed")
		if lose == "terminated" {
			exec(t, conn, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE relation = 'epochs'::regclass AND NOT granted`)
		}
		if lose == "cancelled" {
			cancel()
		}
		err = receive(t, done, lose)
		require.ErrorContains(t, err, "it is unknown whether")
		assert.NotErrorIs(t, err, db.ErrUnreplicated)
		assert.Equal(t, db.FaultUnknown, db.FaultOf(err))
		require.NoError(t, locks.Rollback(t.Context()))
		cancel()
	}
	assert.Zero(t, d.UnreplicatedCommits())
}

// A requirement applies to every write that is acknowledged after it was set. So setting it waits for running
// batches, which have read the previous setting.
func TestStandbyIsRequiredAfterBatches(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	tx, err := dbtest.Connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), db.BatchBegin, pgtype.UUID{Bytes: batchID(), Valid: true})
	require.NoError(t, err)
	said := async(t, func() error { return d.SayStandby(t.Context(), true, true) })
	eventually(t, func() bool {
		return len(said) > 0 || query[int64](t, conn, `SELECT count(*) FROM pg_locks WHERE relation = 'batches'::regclass AND NOT granted`) > 0
	}, "it to wait")
	require.Empty(t, said, "it was set during a running batch")
	behind := async(t, func() db.Fault { return write(t, d, visitBatch("192.0.2.1", 1, 2)) })
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, receive(t, said, "the end of saying"))
	assert.Equal(t, db.FaultRefused, receive(t, behind, "a batch that came later"))
}

// A primary that was paused, replaced and resumed is no longer used, even if the URL names it first, or if it follows
// the new primary.
func TestReplacedPrimaryIsLeft(t *testing.T) {
	t.Parallel()
	p := dbtest.NewPair(t, true)
	makeTargets(t, dbtest.Connect(t, p.Primary()))
	d := dbtest.Open(t, p.URL(), db.Options{DeadAfter: 20 * time.Second})
	require.Equal(t, db.FaultNone, write(t, d, visitBatch("192.0.2.1", 1)))
	var idle []*pgxpool.Conn
	for range 3 {
		conn, err := d.Writers().Acquire(t.Context())
		require.NoError(t, err)
		idle = append(idle, conn)
	}
	for _, conn := range idle {
		conn.Release()
	}

	thaw := p.Freeze()
	p.Promote()
	p.WaitFor("")
	thaw()
	batch := visitBatch("192.0.2.2", 1)
	ctx, end := context.WithTimeout(t.Context(), time.Second)
	defer end()
	require.Equal(t, db.FaultUnknown, db.FaultOf(d.Write(ctx, batch, new(db.Outcome))), "it waits for the standby that it has lost")
	watched := async(t, func() error { return d.WatchApps(t.Context(), "", func(*db.Access) {}) })
	asking, end := context.WithTimeout(t.Context(), dbtest.Patience)
	defer end()
	committed, err := d.DidCommit(asking, batch.ID)
	require.NoError(t, err)
	assert.False(t, committed)
	require.Equal(t, db.FaultNone, write(t, d, visitBatch("192.0.2.2", 1)))
	servers := map[string]bool{}
	for _, pool := range d.Pools() {
		require.NoError(t, pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
			servers[conn.Conn().PgConn().Conn().RemoteAddr().String()] = true
			return nil
		}))
	}
	assert.Len(t, servers, 1, "of all pools")
	require.ErrorContains(t, receive(t, watched, "the end of watching the old one"), "another server")

	p.KillStandby()
	p.Rejoin()
	require.Equal(t, db.FaultNone, write(t, dbtest.Open(t, p.URL(), db.Options{}), visitBatch("192.0.2.3", 1)))
	assert.Equal(t, []int64{3}, dbtest.Column[int64](t, dbtest.Connect(t, p.Primary()), `SELECT hot FROM counters WHERE page_id = 1`))
}
