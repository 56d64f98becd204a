package db_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// Two who count what is in the inbox, since one of them has lost its lock and does not know, have read
// the same rows: who comes second takes nothing, and no row is taken that is not as it was read.
func TestInboxIsTakenAsItWasRead(t *testing.T) {
	t.Parallel()
	conn := dbtest.Connect(t, dbtest.New(t))
	for range 3 {
		exec(t, conn, `INSERT INTO inbox (app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages, ips)
			VALUES (1, 10, 'UTC', 'address', 64, '{a.example/}', array_fill(1, '{10}'), array_fill(20260629, '{10}'), array_fill(0, '{10}'),
			array_fill('::'::inet, '{10}'))`)
	}
	waiting := func() []string {
		return dbtest.Column[string](t, conn, `SELECT format('%s %s', number, counted) FROM inbox ORDER BY number`)
	}
	exec(t, conn, `SELECT take_from_inbox('{1,2}', '{0,0}', '{10,3}')`)
	require.Equal(t, []string{"2 3", "3 0"}, waiting())
	for _, take := range []string{
		`'{1}', '{0}', '{10}'`, `'{1}', '{0}', '{5}'`, `'{1,2}', '{0,0}', '{10,3}'`, `'{2}', '{0}', '{10}'`, `'{2}', '{0}', '{5}'`,
		`'{2}', '{2}', '{5}'`, `'{2}', '{4}', '{5}'`,
		`'{2}', '{3}', '{3}'`, `'{2}', '{3}', '{2}'`, `'{2}', '{3}', '{11}'`, `'{3,4}', '{0,0}', '{10,1}'`, `'{2,3}', '{2,0}', '{10,10}'`,
		`'{4}', '{0}', '{1}'`,
	} {
		_, err := conn.Exec(t.Context(), `SELECT take_from_inbox(`+take+`)`)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, take)
		require.Equal(t, "FF004", refused.Code, take)
		require.Equal(t, []string{"2 3", "3 0"}, waiting(), take)
	}
	require.Equal(t, int64(17), query[int64](t, conn, `SELECT inbox_behind(1)`))
	require.Equal(t, int64(10), query[int64](t, conn, `SELECT inbox_behind(1, 2)`))
	exec(t, conn, `SELECT take_from_inbox('{2,3}', '{3,0}', '{10,10}')`)
	require.Empty(t, waiting())
	require.Zero(t, query[int64](t, conn, `SELECT inbox_behind(1)`))
}
