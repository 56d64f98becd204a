package db_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// What a batch wrote that was under way, or had not begun, when a visitor's targets were found, is
// found under the locks of their sites; what was found before is not read again.
func TestPagesCountedSinceTheFirstLook(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	exec(t, conn, `INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'example.com/c')`)
	exec(t, conn, `INSERT INTO counters (page_id) VALUES (4)`)
	const ip = "192.0.2.1"
	require.NoError(t, d.Write(t.Context(), visitBatch(ip, 1, 2), &db.Outcome{}))
	underWay := begin(t, url, `WITH d AS (INSERT INTO days VALUES (3, 1, $1, 1, 1, 1)) INSERT INTO visitors VALUES (3, 1, $1, $1, $2)`, today, ip)
	exec(t, conn, `INSERT INTO days VALUES (4, 1, $1, 1, 1, 1)`, today) // younger, and done

	erasing := begin(t, url, `SELECT FROM epochs WHERE name = 'erasures' FOR UPDATE`)
	q := db.New(erasing)
	ips := []netip.Addr{netip.MustParseAddr(ip)}
	unseen, err := q.OldestUnseen(t.Context())
	require.NoError(t, err)
	found, err := q.VisitorTargets(t.Context(), db.VisitorTargetsParams{AppID: 1, Ips: ips})
	require.NoError(t, err)
	require.Len(t, found, 2, "the site and the first page")
	since := func() []int64 {
		pages, err := q.VisitorPagesSince(t.Context(), db.VisitorPagesSinceParams{Sites: []int64{1}, FromDays: []int32{today}, OldestUnseen: unseen, Ips: ips})
		require.NoError(t, err)
		return pages
	}
	// A transaction of another database that is older lets more pages be looked at: never fewer.
	assert.Subset(t, []int64{2}, since())
	require.NoError(t, underWay.Commit(t.Context()))
	assert.Contains(t, since(), int64(3))
	assert.NotContains(t, since(), int64(4))
	exec(t, conn, `INSERT INTO visitors VALUES (4, 1, $1, $1, $2)`, today, ip)
	exec(t, conn, `UPDATE days SET hot = hot + 1 WHERE page_id = 4`)
	assert.Subset(t, since(), []int64{3, 4})

	// Old rows are read again when nothing is known of when they were written.
	unseen = 0
	assert.ElementsMatch(t, []int64{2, 3, 4}, since())
}
