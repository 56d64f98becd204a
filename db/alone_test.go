package db_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// Work of one place may last for hours: whoever does it keeps others from it, however it ends, and
// has no snapshot meanwhile, which would make every batch slower than the one before.
func TestAlone(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	here, there, conn := dbtest.Open(t, url, db.Options{}), dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	gone := errors.New("gone wrong")
	mine, err := here.Alone(ctx, db.Retaining, func() error {
		for _, other := range []*db.DB{here, there} {
			mine, err := other.Alone(t.Context(), db.Retaining, func() error { return errors.New("not alone") })
			require.NoError(t, err)
			assert.False(t, mine)
		}
		mine, err := there.Alone(t.Context(), db.DrainingInbox, func() error { return nil })
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
	mine, err = there.Alone(t.Context(), db.Retaining, func() error { return nil })
	require.NoError(t, err)
	assert.True(t, mine, "after one whose caller has left")
}
