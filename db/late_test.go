package db_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// Late visits to two sites of an app delete the same lists, without a lock that both take before.
// They do so in one order, or each would wait for the other.
func TestListsGoInOneOrder(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	exec(t, conn, `INSERT INTO tops (app_id, site_id, day_id, by, page_ids, numbers)
		SELECT 1, s, to_char(date '2019-01-01' + d, 'YYYYMMDD')::integer, 'hot', '{2}', '{1}'
		FROM generate_series(0, 1) AS s, generate_series(0, 99) AS d`)
	const held = 20190220
	tx, err := dbtest.Connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM tops WHERE site_id = 0 AND day_id = $1 FOR UPDATE`, held)
	require.NoError(t, err)
	late := dbtest.Connect(t, url)
	done := async(t, func() error {
		_, err := late.Exec(context.Background(),
			`SELECT drop_tops(array_agg(1::bigint), array_agg(d ORDER BY hashint4(d))) FROM (SELECT DISTINCT day_id FROM tops) AS t (d)`)
		return err
	})
	dbtest.AwaitWaiting(t, conn, 1)
	assert.Empty(t, dbtest.Column[int32](t, conn, `SELECT day_id FROM tops WHERE site_id = 0 AND day_id < $1 FOR UPDATE SKIP LOCKED`, held),
		"taken already")
	assert.Len(t, dbtest.Column[int32](t, conn, `SELECT day_id FROM tops WHERE site_id = 1 OR day_id > $1 FOR UPDATE SKIP LOCKED`, held), 149,
		"not taken yet")
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, receive(t, done, "the deletion"))
	assert.Empty(t, dbtest.Column[int32](t, conn, `SELECT day_id FROM tops`))
}
