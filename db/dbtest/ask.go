package dbtest

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"footfall/db"
)

// Connect opens a connection for the test itself, which uses nothing of Footfall except its schema. The connection
// is closed when the test ends.
func Connect(t testing.TB, address string) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig(address)
	require.NoError(t, err)
	cfg.RuntimeParams["search_path"] = db.Schema
	conn, err := pgx.ConnectConfig(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Patience is the time limit for events that always happen unless the program is broken. It is long enough for a
// busy machine. Tick is the polling interval, which is long enough not to slow down the machine.
const (
	Patience = 4 * time.Minute
	Tick     = 20 * time.Millisecond
)

// asker is a connection, a transaction or a pool.
type asker interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Column returns the values of a query with one column.
func Column[T any](t testing.TB, a asker, sql string, args ...any) []T {
	t.Helper()
	rows, err := a.Query(context.Background(), sql, args...)
	require.NoError(t, err, sql)
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(t, err, sql)
	return values
}

// WithParameter returns the URL address with one more parameter, such as a setting of the sessions.
func WithParameter(t testing.TB, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // the driver does not read a + as a space
	return u.String()
}

// NeedSuperuser skips a test of roles if the tests' user on the server is not a superuser.
func NeedSuperuser(t testing.TB, a asker) {
	t.Helper()
	if Column[string](t, a, `SELECT current_setting('is_superuser')`)[0] != "on" {
		t.Skip("the tests' user is not a superuser: it cannot assume other roles")
	}
}

// AwaitWaiting waits until at least this number of the database's sessions are blocked by a lock, and returns their
// process ids. A blocked session is included if one of these sessions holds the lock:
//   - the test's own session
//   - an idle session; if it belongs to the service, it must have been idle for 0.3 s, because sessions of the service
//     are idle for a moment between their statements
//   - another included session
//
// A session that is blocked only by other busy sessions is not included. It may just wait for its turn to commit, because
// the server commits transactions with notifications one at a time.
func AwaitWaiting(t testing.TB, a asker, sessions int) (pids []int32) {
	t.Helper()
	require.Eventually(t, func() bool {
		pids = Column[int32](t, a, `
			WITH RECURSIVE waiters AS MATERIALIZED (
			    SELECT pid, pg_blocking_pids(pid) AS holders
			    FROM pg_stat_activity
			    WHERE datname = current_database()
			      AND wait_event_type = 'Lock'
			), waiting AS (
			    SELECT w.pid
			    FROM waiters AS w
			    JOIN pg_stat_activity AS a ON a.pid = ANY (w.holders) AND a.datname = current_database()
			    WHERE a.state LIKE 'idle%' AND (a.application_name <> 'footfall' OR a.state_change < clock_timestamp() - interval '0.3 s')
			       OR a.pid = pg_backend_pid()
			    UNION
			    SELECT w.pid
			    FROM waiting
			    JOIN waiters AS w ON waiting.pid = ANY (w.holders)
			)
			SELECT pid
			FROM waiting`)
		return len(pids) >= sessions
	}, Patience, Tick)
	return pids
}
