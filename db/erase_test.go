package db_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
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
	underWay := begin(t, url, `WITH d AS (INSERT INTO days VALUES (3, 1, $1, 1, 1, 1)) INSERT INTO visitors VALUES (3, 1, $1, $1, $2)`, today,
		ip)
	exec(t, conn, `INSERT INTO days VALUES (4, 1, $1, 1, 1, 1)`, today) // younger, and done

	erasing := begin(t, url, `SELECT FROM epochs WHERE name = 'erasures' FOR UPDATE`)
	unseen := query[int64](t, erasing.Conn(), `SELECT oldest_unseen()`)
	found, err := admin.New(erasing).VisitorTargets(t.Context(), []netip.Addr{netip.MustParseAddr(ip)}, 1)
	require.NoError(t, err)
	require.Len(t, found, 2, "the site and the first page")
	since := func() []int64 {
		return query[[]int64](t, erasing.Conn(), `SELECT visitor_pages_since('{1}', ARRAY[$1::integer], $2, ARRAY[$3::inet])`, today, unseen, ip)
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

// Ranks are erased in any order, some at a time, at the edges of rows, too. Each is there once, and
// no row takes more than those of a rank each would: 40 bytes, when it is filled up to a multiple of
// eight.
func TestErasedRanks(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	ranks := []int64{1, 2, 255, 256, 257, 300, 511, 512, 513, 1 << 32}
	for rank := int64(10_001); rank <= 11_000; rank++ {
		ranks = append(ranks, rank)
	}
	order := rand.New(rand.NewPCG(6, 29)) //nolint:gosec // to be repeated
	for _, page := range []int64{2, 3} {
		order.Shuffle(len(ranks), func(i, j int) { ranks[i], ranks[j] = ranks[j], ranks[i] })
		for left := ranks; len(left) > 0; {
			some := left[:min(len(left), 1+order.IntN(40))]
			left = left[len(some):]
			pages := slices.Repeat([]int64{page}, len(some))
			require.EqualValues(t, len(some), query[int64](t, conn, `SELECT erase_ranks($1, $2)`, pages, some))
			_, err := conn.Exec(t.Context(), `SELECT erase_ranks($1, $2)`, []int64{page}, some[:1])
			require.ErrorContains(t, err, "erased_visitors_one_or_several", "a rank that is erased already")
		}
		slices.Sort(ranks)
		require.Equal(t, ranks, dbtest.Column[int64](t, conn, `SELECT rank FROM erased_ranks WHERE page_id = $1 ORDER BY rank`, page))
	}
	require.Zero(t, query[int64](t, conn, `SELECT erase_ranks(NULL, NULL)`))
	require.Equal(t, []bool{true}, dbtest.Column[bool](t, conn, `
		SELECT DISTINCT pg_column_size(e) <= 40 * least(2, (SELECT count(*) FROM unpack_ranks(e.part, e.place, e.places)))
		FROM erased_visitors AS e`))

	// Where two meet, neither loses what the other has erased.
	first := begin(t, url, `SELECT erase_ranks('{1}', '{7}')`)
	meeting := dbtest.Connect(t, url)
	second := async(t, func() error {
		_, err := meeting.Exec(context.Background(), `SELECT erase_ranks('{1}', '{9}')`)
		return err
	})
	dbtest.AwaitWaiting(t, conn, 1)
	require.NoError(t, first.Commit(t.Context()))
	require.NoError(t, receive(t, second, "erasing"))
	require.Equal(t, []int64{7, 9}, dbtest.Column[int64](t, conn, `SELECT rank FROM erased_ranks WHERE page_id = 1 ORDER BY 1`))
}
