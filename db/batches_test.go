package db_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// Of a turn of so many seconds the first and last stay are those in which nothing is emptied.
const (
	turn = 180
	stay = int(db.BatchIDsStay / 1e9)
)

// batchesAt lets the tables of batches take their turns by a clock that the test sets.
func batchesAt(t *testing.T, conn *pgx.Conn) (set func(second int)) {
	t.Helper()
	exec(t, conn, `CREATE TABLE clock (seconds bigint)`)
	exec(t, conn, `INSERT INTO clock VALUES (0)`)
	exec(t, conn, `CREATE OR REPLACE FUNCTION batches_clock() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT seconds FROM footfall.clock'`)
	return func(second int) { exec(t, conn, `UPDATE clock SET seconds = $1`, second) }
}

// Each id is kept for a minute at least, and not for much longer, whenever in its turn it was
// written and however often the tables are emptied.
func TestIDsOfBatchesGo(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	set := batchesAt(t, conn)
	d := dbtest.Open(t, url, db.Options{})
	for at := 0; at < turn; at += dbtest.LongOrShort(7, 28) {
		set(4*turn + at)
		b := visitBatch("192.0.2.1", 1)
		require.Equal(t, db.FaultNone, write(t, d, b))
		age := 0
		for ; query[bool](t, conn, `SELECT EXISTS (SELECT FROM batches WHERE id = $1)`, b.ID); age++ {
			require.Less(t, age, 3*turn, "an id of second %d stays", at)
			set(4*turn + at + age)
			_, err := d.EmptyBatches(t.Context())
			require.NoError(t, err)
		}
		assert.Greater(t, age, stay, "seconds that an id of second %d was kept", at)
		assert.LessOrEqual(t, age, 2*turn)
	}
	assert.Zero(t, query[int64](t, conn, `SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relname IN ('batches_0', 'batches_1')`),
		"bytes on disk")
}

// A batch that commits when the next turn has begun is found, and its id is not lost while it runs.
func TestBatchAcrossTheTurn(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	set := batchesAt(t, conn)
	d := dbtest.Open(t, url, db.Options{})
	set(turn - 1)
	id := batchID()
	running := begin(t, url, db.BatchBegin, id)
	set(turn + stay + 1)
	emptied, err := d.EmptyBatches(t.Context())
	require.NoError(t, err)
	require.False(t, emptied, "it waits for nobody")
	claim := async(t, func() bool {
		committed, err := d.DidCommit(context.Background(), id)
		assert.NoError(t, err)
		return committed
	})
	dbtest.AwaitWaiting(t, conn, 1)
	require.NoError(t, running.Commit(t.Context()))
	require.True(t, receive(t, claim, "the answer"))
	committed, err := d.DidCommit(t.Context(), id)
	require.NoError(t, err)
	require.True(t, committed, "however often it is asked")
}

// A batch that was abandoned is refused for as long as promised, whenever it was abandoned, in
// whose turn ever it comes, and however often the tables are emptied meanwhile.
func TestAbandonedBatchComesLate(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	set := batchesAt(t, conn)
	d := dbtest.Open(t, url, db.Options{})
	for at := 0; at < turn; at += dbtest.LongOrShort(7, 28) {
		for _, late := range []int{1, stay / 2, stay - 1} {
			set(4*turn + at)
			b := visitBatch("192.0.2.1", 1)
			committed, err := d.DidCommit(t.Context(), b.ID)
			require.NoError(t, err)
			require.False(t, committed)
			for s := range late {
				set(4*turn + at + s)
				_, err := d.EmptyBatches(t.Context())
				require.NoError(t, err)
			}
			set(4*turn + at + late)
			require.NotEqual(t, db.FaultNone, write(t, d, b), "abandoned in second %d of a turn, it came %d seconds later", at, late)
			committed, err = d.DidCommit(t.Context(), b.ID)
			require.NoError(t, err)
			require.False(t, committed)
		}
	}
}
