package db_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// Two who count what is in the inbox, since one of them has lost its lock and does not know, begin
// at the same place: who comes second moves nothing, wherever they would end.
func TestInboxMovesFromWhereItIs(t *testing.T) {
	t.Parallel()
	conn := dbtest.Connect(t, dbtest.New(t))
	exec(t, conn, `INSERT INTO inbox_apps (turn, app_id, accepted) VALUES (1, 1, 10)`)
	exec(t, conn, `SELECT move_inbox(1, 1, 0, 3, 3, 0)`)
	for _, move := range []string{`0, 3`, `0, 5`, `2, 5`, `4, 5`, `3, 3`, `3, 2`} {
		_, err := conn.Exec(t.Context(), `SELECT move_inbox(1, 1, `+move+`, 2, 0)`)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, move)
		require.Equal(t, "FF004", refused.Code, move)
	}
	exec(t, conn, `SELECT move_inbox(1, 1, 3, 5, 2, 0)`)
	require.Equal(t, int64(5), query[int64](t, conn, `SELECT waiting FROM inbox_apps`))
}
