package db_test

import (
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

// Whoever holds a snapshot is told of, to the service's role also; it is told since when if the
// session is its own.
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
		for _, h := range holders { // there may be others: the server looks after its tables
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
