package db_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// dayBefore is the day in UTC so many days before a time, like 20190629, and its key.
func dayBefore(now time.Time, ago int) (day int32, key []byte) {
	at := now.UTC().AddDate(0, 0, -ago)
	day = int32(at.Year()*10000 + int(at.Month())*100 + at.Day()) //nolint:gosec // eight digits
	sum := sha256.Sum256([]byte(fmt.Sprint("key of ", day)))
	return day, sum[:]
}

// inFile reports whether the file of a table has some bytes, wherever they are in it.
func inFile(t *testing.T, conn *pgx.Conn, path string, bytes []byte) bool {
	t.Helper()
	exec(t, conn, `CHECKPOINT`) // which writes what is in memory alone
	return query[bool](t, conn, `SELECT coalesce(position($2::bytea IN pg_read_binary_file($1, 0, 1 << 20, true)), 0) > 0`, path, bytes)
}

// A key that was deleted is nowhere in the table any more, nor in what the planner remembers of it;
// those that are still needed stay as they were.
func TestDeletedDayKeysLeaveNothingInTheFile(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	const days = 60
	now := time.Now() // though midnight may pass
	path := func() string { return query[string](t, conn, `SELECT pg_relation_filepath('day_keys')`) }
	for ago := days; ago >= 0; ago-- {
		day, key := dayBefore(now, ago)
		require.NoError(t, d.KeepDayKey(t.Context(), day, key))
	}
	exec(t, conn, `ANALYZE day_keys`)
	_, oldest := dayBefore(now, days)
	before := path()
	require.True(t, inFile(t, conn, before, oldest), "this test can see a key")

	from, _ := dayBefore(now, 1)
	require.NoError(t, d.Queries().DayKeysForget(t.Context(), from))
	for ago := days; ago >= 0; ago-- {
		day, key := dayBefore(now, ago)
		needed := ago <= 1
		assert.Equal(t, needed, inFile(t, conn, path(), key), "the key of %d days ago", ago)
		if needed {
			kept, err := d.Queries().DayKeyGet(t.Context(), day)
			require.NoError(t, err)
			assert.Equal(t, key, kept)
			continue
		}
		assert.False(t, inFile(t, conn, before, key), "the key of %d days ago, in the old file", ago)
	}
	assert.Zero(t, query[int64](t, conn, `SELECT count(*) FROM pg_stats WHERE tablename = 'day_keys' AND attname = 'key'`), "samples of keys")

	rewritten := path()
	require.NoError(t, d.Queries().DayKeysForget(t.Context(), from))
	assert.Equal(t, rewritten, path(), "nothing is written where nothing is to be deleted")
}

// Whoever needs a key while others are deleted gets it, and instances that delete at the same time
// are not in each other's way.
func TestDayKeysBesideTheirDeletion(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	now := time.Now()
	today, key := dayBefore(now, 0)
	past, _ := dayBefore(now, 7)
	require.NoError(t, d.KeepDayKey(t.Context(), today, key))
	disperse := dbtest.Crowd(t, 2, func(int, int) {
		kept, err := d.Queries().DayKeyGet(context.Background(), today)
		assert.NoError(t, err)
		assert.Equal(t, key, kept)
	})
	for range 30 {
		exec(t, conn, `INSERT INTO day_keys (day_id, key) VALUES ($1, $2)`, past, key)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				err := d.Queries().DayKeysForget(t.Context(), today)
				for db.FaultOf(err) == db.FaultBusy { // on a slow machine one waits for the others for too long
					err = d.Queries().DayKeysForget(t.Context(), today)
				}
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Equal(t, []int32{today}, dbtest.Column[int32](t, conn, `SELECT day_id FROM day_keys`))
	}
	disperse()

	exec(t, conn, `INSERT INTO day_keys (day_id, key) VALUES ($1, $2)`, past, key)
	reading := begin(t, url, `SELECT FROM day_keys`)
	err := d.Queries().DayKeysForget(t.Context(), today)
	require.Equal(t, db.FaultBusy, db.FaultOf(err), "it waits for nobody for long: %v", err)
	require.NoError(t, reading.Commit(t.Context()))
	require.NoError(t, d.Queries().DayKeysForget(t.Context(), today))
}
