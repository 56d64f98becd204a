package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// Work that only one session may do can take hours. It excludes other sessions until it ends, however that happens.
// In the meantime it holds no snapshot, because a snapshot would make each batch slower than the one before.
func TestAlone(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	here, there, conn := dbtest.Open(t, url, db.Options{}), dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	gone := errors.New("gone wrong")
	mine, err := here.RunAlone(ctx, db.Retaining, func() error {
		for _, other := range []*db.DB{here, there} {
			mine, err := other.RunAlone(t.Context(), db.Retaining, func() error { return errors.New("not alone") })
			require.NoError(t, err)
			assert.False(t, mine)
		}
		mine, err := there.RunAlone(t.Context(), db.DrainingInbox, func() error { return nil })
		require.NoError(t, err)
		assert.True(t, mine, "of another work")
		assert.Zero(t, query[int](t, conn, `
			SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND coalesce(backend_xmin, backend_xid) IS NOT NULL`))
		cancel()
		return gone
	})
	require.ErrorIs(t, err, gone)
	assert.True(t, mine)
	mine, err = there.RunAlone(t.Context(), db.Retaining, func() error { return nil })
	require.NoError(t, err)
	assert.True(t, mine, "after one whose caller has left")
}

// A caller that leaves while its query is answered does not cost a connection.
func TestCallersWhoLeaveCostNoConnection(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	conn := dbtest.Connect(t, url)
	d := dbtest.Open(t, url, db.Options{Readers: 1})
	ask := func(ctx context.Context) error {
		return d.Read(ctx, func(q *db.Queries) error {
			_, err := q.CountsGet(ctx, db.CountsGetParams{AppID: 1, Uris: []string{"example.com"}})
			return err
		})
	}
	const asking = `SELECT coalesce(array_agg(pid), '{}') FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`
	require.NoError(t, ask(t.Context()))
	before := query[[]int32](t, conn, asking)
	require.Len(t, before, 1)
	for range 3 {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		exec(t, conn, `LOCK TABLE counters`)
		ctx, leave := context.WithCancel(t.Context())
		answered := make(chan error, 1)
		go func() { answered <- ask(ctx) }()
		require.Eventually(t, func() bool {
			return query[bool](t, conn, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'counters'::regclass)`)
		}, dbtest.Patience, dbtest.Tick)
		leave()
		require.NoError(t, tx.Rollback(t.Context()))
		assert.NoError(t, <-answered)
	}
	assert.Equal(t, before, query[[]int32](t, conn, asking))

	gone, leave := context.WithCancel(t.Context())
	leave()
	require.ErrorIs(t, ask(gone), context.Canceled, "a caller that has already left causes no query")
	hurried, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	exec(t, conn, `LOCK TABLE counters`)
	require.ErrorIs(t, ask(hurried), context.DeadlineExceeded)
}

// A query that finds no row, or whose caller returns an error, runs once and does not cost a connection.
func TestFindingNothingCostsNoConnection(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.New(t), db.Options{Readers: 1})
	report := func(ctx context.Context, f func(q *db.Queries) error) error {
		return d.Report(ctx, func(tx db.Tx) error { return f(db.New(tx)) })
	}
	for name, ask := range map[string]func(context.Context, func(*db.Queries) error) error{"Read": d.Read, "Report": report} {
		session := func() (process int64) {
			require.NoError(t, ask(t.Context(), func(q *db.Queries) (err error) { process, err = q.SessionProcess(t.Context()); return err }))
			return process
		}
		before, asked := session(), 0
		for _, wrong := range []error{db.ErrNoRows, errors.New("it makes no sense")} {
			require.ErrorIs(t, ask(t.Context(), func(q *db.Queries) error {
				asked++
				_, err := q.DayKeyGet(t.Context(), today)
				require.ErrorIs(t, err, db.ErrNoRows)
				return wrong
			}), wrong)
		}
		assert.Equal(t, 2, asked, name)
		assert.Equal(t, before, session(), name)
	}
}

// Sessions that hold a snapshot are listed, also for the service's role, which sees the start time only of its own
// sessions.
func TestSnapshotHolders(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	tx, err := dbtest.Connect(t, url).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT 1`)
	require.NoError(t, err)
	holder := fmt.Sprintf("process %d", tx.Conn().PgConn().PID())
	look := func(login string) (found []db.SnapshotHoldersRow) {
		holders, err := dbtest.Open(t, login, db.Options{}).Queries().SnapshotHolders(t.Context())
		require.NoError(t, err)
		for _, h := range holders { // there may be other holders, such as autovacuum
			if strings.Contains(h.Holder, holder) {
				found = append(found, h)
			}
		}
		return found
	}
	all, few := look(url), look(withLogin(t, url, newLogin(t, conn, "footfall_app")))
	require.Len(t, all, 1)
	require.Len(t, few, 1)
	assert.WithinDuration(t, time.Now(), all[0].Since, time.Hour)
	assert.Zero(t, few[0].Since.Unix())
	all[0].Since = few[0].Since
	assert.Equal(t, all, few)
	require.NoError(t, tx.Rollback(t.Context()))
	assert.Empty(t, look(url))
}
