package db_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// Two who count what is in the inbox, since one of them has lost its lock and does not know, begin
// at the same place: who comes second moves nothing, wherever they would end.
func TestInboxMovesFromWhereItIs(t *testing.T) {
	t.Parallel()
	conn := dbtest.Connect(t, dbtest.New(t))
	exec(t, conn, `INSERT INTO inbox_turns (turn, slot, closed_at, accepted) VALUES (9, 1, now(), 10)`)
	exec(t, conn, `INSERT INTO inbox_apps (turn, app_id, accepted) VALUES (9, 1, 10)`)
	exec(t, conn, `INSERT INTO inbox (slot, turn, number, app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages, ips)
		VALUES (1, 9, 0, 1, 10, 'UTC', 'address', 64, '{a.example/}', array_fill(1, '{10}'), array_fill(20260629, '{10}'), array_fill(0, '{10}'), array_fill('::'::inet, '{10}'))`)
	exec(t, conn, `SELECT move_inbox(9, 0, 3, '{}')`)
	for _, move := range []string{`0, 3`, `0, 5`, `2, 5`, `4, 5`, `3, 3`, `3, 2`} {
		for _, aside := range []string{`{}`, `{1}`} {
			_, err := conn.Exec(t.Context(), `SELECT move_inbox(9, `+move+`, '`+aside+`')`)
			var refused *pgconn.PgError
			require.ErrorAs(t, err, &refused, move)
			require.Equal(t, "FF004", refused.Code, move)
		}
	}
	exec(t, conn, `SELECT move_inbox(9, 3, 5, NULL)`)
	require.Equal(t, []int64{9, 5}, query[[]int64](t, conn, `SELECT ARRAY[turn, waiting] FROM inbox_apps`))
}

// Somebody began to count visits that were put aside, and was stopped. Others have counted all of
// them meanwhile, and more were put aside: where they began is no position any more. Rows that are
// there are never taken for lost.
func TestInboxAsideBeginsWhereItNeverWas(t *testing.T) {
	t.Parallel()
	conn := dbtest.Connect(t, dbtest.New(t))
	exec(t, conn, `INSERT INTO apps (name) VALUES ('a')`)
	aside := func() (next int64) {
		exec(t, conn, `SELECT put_in_inbox(id, tz, visitor, ipv6_prefix, '{a.example/}', '{1,1}', '{20190629,20190629}', '{0,0}', '{::1,::2}', NULL) FROM apps`)
		turn := query[int64](t, conn, `SELECT turn_inbox()`)
		exec(t, conn, `SELECT move_inbox($1, 0, max(number) + 1 << 16, ARRAY[1]) FROM inbox WHERE turn = $1`, turn)
		require.Equal(t, int64(0), query[int64](t, conn, `SELECT pass_lost_in_inbox(-1)`))
		return query[int64](t, conn, `SELECT next FROM inbox_turns WHERE turn = -1`)
	}
	first := aside()
	exec(t, conn, `SELECT move_inbox(-1, $1::bigint, $1::bigint + 1, NULL)`, first)
	exec(t, conn, `SELECT move_inbox(-1, $1::bigint + 1, $1::bigint + 2, NULL)`, first)
	require.Equal(t, int64(0), query[int64](t, conn, `SELECT count(*) FROM inbox_turns WHERE turn < 0`))
	require.Equal(t, int64(0), query[int64](t, conn, `SELECT count(*) FROM inbox_aside`))
	second := aside()
	_, err := conn.Exec(t.Context(), `SELECT move_inbox(-1, $1::bigint, $1::bigint + 2, NULL)`, first)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "FF004", refused.Code)
	require.Greater(t, second, first)
	require.Equal(t, int64(2), query[int64](t, conn, `SELECT inbox_behind(1)`))
}

// What was put aside waits as long again as it has, within bounds.
func TestInboxAsideRests(t *testing.T) {
	t.Parallel()
	tx, err := dbtest.Connect(t, dbtest.New(t)).Begin(t.Context()) // in which now does not pass
	require.NoError(t, err)
	for waited, rests := range map[int32]int32{-5: 1, 0: 1, 3: 3, 29: 29, 100: 30} {
		_, err := tx.Exec(t.Context(), `INSERT INTO inbox_turns (turn, slot, closed_at) VALUES (-1, 4, now() - make_interval(secs => $1))
			ON CONFLICT (turn) DO UPDATE SET closed_at = excluded.closed_at`, waited)
		require.NoError(t, err)
		require.NoError(t, db.New(tx).InboxRest(t.Context(), db.InboxRestParams{Turn: -1, Most: 30}))
		var got int32
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT extract(epoch FROM try_at - now())::integer FROM inbox_turns WHERE turn = -1`).Scan(&got))
		require.Equal(t, rests, got, waited)
	}
}
