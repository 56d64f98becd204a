package db_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/retention"
)

// A batch may be running, or may start later, when a visitor's targets are looked up. Its rows are found
// afterwards, under the locks of their sites. Earlier rows are not read again.
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
	exec(t, conn, `INSERT INTO days VALUES (4, 1, $1, 1, 1, 1)`, today) // newer, and committed

	erasing := begin(t, url, `SELECT FROM epochs WHERE name = 'erasures' FOR UPDATE`)
	unseen := query[int64](t, erasing.Conn(), `SELECT oldest_unseen()`)
	found, err := admin.New(erasing).VisitorTargets(t.Context(), []netip.Addr{netip.MustParseAddr(ip)}, 1)
	require.NoError(t, err)
	require.Len(t, found, 2, "the site and the first page")
	since := func() []int64 {
		return query[[]int64](t, erasing.Conn(), `SELECT visitor_pages_since('{1}', ARRAY[$1::integer], $2, ARRAY[$3::inet])`, today, unseen, ip)
	}
	// An older transaction in another database can make visitor_pages_since read more pages, never fewer.
	assert.Subset(t, []int64{2}, since())
	require.NoError(t, underWay.Commit(t.Context()))
	assert.Contains(t, since(), int64(3))
	assert.NotContains(t, since(), int64(4))
	exec(t, conn, `INSERT INTO visitors VALUES (4, 1, $1, $1, $2)`, today, ip)
	exec(t, conn, `UPDATE days SET hot = hot + 1 WHERE page_id = 4`)
	assert.Subset(t, since(), []int64{3, 4})

	// Old rows are read again if the time of their writing is unknown.
	unseen = 0
	assert.ElementsMatch(t, []int64{2, 3, 4}, since())
}

// Ranks are erased in any order, a few at a time, also at the edges of rows. Each rank is stored once. No row is
// larger than separate rows for its ranks would be: 40 bytes each, rounded up to a multiple of eight.
func TestErasedRanks(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	ranks := []int64{1, 2, 255, 256, 257, 300, 511, 512, 513, 1 << 32}
	for rank := int64(10_001); rank <= 11_000; rank++ {
		ranks = append(ranks, rank)
	}
	order := rand.New(rand.NewPCG(6, 29)) //nolint:gosec // repeatable
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

	// Two concurrent erasures do not lose the ranks of each other.
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

// A writer of people copies a row of the previous period, and then locks the rows that lead to it. At the same time, a visit
// locks one of these leading rows, because it has its id, and then copies the same row of the previous period. Either the
// writer or the visit starts again, and neither fails.
func TestPeopleAreWrittenDuringTheirCopying(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	exec(t, conn, `INSERT INTO apps (name, visitor, secret_id) VALUES ('people', 'id', '12345678')`)
	exec(t, conn, `INSERT INTO people (app_id, period, height, id, person)
		SELECT 2, 1 - people_period(), r.*
		FROM (VALUES (0, inet 'fd00::1', inet 'fd00::2'), (1, 'fd00::2', 'fd00::3'), (2, 'fd00::3', NULL)) AS r`)
	d := dbtest.Open(t, dbtest.WithParameter(t, url, "deadlock_timeout", "10ms"), db.Options{}) // it detects the deadlock, and retries
	uses := dbtest.Open(t, dbtest.WithParameter(t, url, "deadlock_timeout", "1h"), db.Options{})
	person, tries := netip.MustParseAddr("fd00::3"), 0
	for round := 0; tries < 2; round++ { // nearly every round is a deadlock
		require.Less(t, round, 20, "nobody ever met the other's lock")
		exec(t, conn, `DELETE FROM people WHERE period = people_period()`)
		tries = 0
		var used <-chan error
		require.NoError(t, d.PutPeople(t.Context(), 2, []netip.Addr{person}, func(_ map[netip.Addr]*db.PersonRow, lead func() error) error {
			if tries++; tries == 1 {
				used = async(t, func() error {
					_, err := uses.FindPeople(t.Context(), []db.AppID{{App: 2, ID: netip.MustParseAddr("fd00::1")}})
					return err
				})
				dbtest.AwaitWaiting(t, conn, 1)
			}
			return lead()
		}))
		require.NoError(t, receive(t, used, "the way of the id"))
	}
}

// letGo does the daily deletions of a running service, after serveVisits. owner is a connection of the tables'
// owner.
func letGo(t *testing.T, d *db.DB, owner *pgx.Conn) {
	ctx := t.Context()
	exec(t, owner, `UPDATE apps SET retain_days = 10, forget_days = 10`)
	site := query[int64](t, owner, `SELECT id FROM pages WHERE uri = 'example.org'`)
	page := query[int64](t, owner, `SELECT id FROM pages WHERE uri = 'example.org/x'`)
	unclosed, err := d.Queries().DaysUnclosed(ctx, []int32{today})
	require.NoError(t, err)
	require.Equal(t, []int32{today}, unclosed)
	for _, first := range []bool{true, false} {
		closed, err := retention.New(d.Tx()).DayClose(ctx, today)
		require.NoError(t, err)
		require.Equal(t, first, closed)
	}
	exec(t, owner, `UPDATE days AS d SET site_id = p.site_id FROM pages AS p WHERE p.id = d.page_id`)
	tops := func() []string {
		return dbtest.Column[string](t, owner, `SELECT (to_jsonb(t) - '{ctid,xmin,xmax}'::text[])::text FROM tops AS t ORDER BY 1`)
	}
	exec(t, owner, `DELETE FROM tops`)
	exec(t, owner, `SELECT make_tops(only_day => $1)`, today)
	made := tops()
	require.Len(t, made, 6)
	exec(t, owner, `DELETE FROM tops`)
	missing, err := retention.New(d.Tx()).TopsMissing(ctx)
	require.NoError(t, err)
	require.Equal(t, []retention.TopsMissingRow{{AppID: 1, Day: today}}, missing)
	for _, of := range missing {
		require.NoError(t, retention.New(d.Tx()).TopsMake(ctx, of.AppID, of.Day))
	}
	require.Equal(t, made, tops())

	require.NoError(t, retention.New(d.Tx()).VisitsKeepFrom(ctx, 1, today+1))
	gone, err := retention.New(d.Tx()).VisitsDelete(ctx, retention.VisitsDeleteParams{App: 1, Day: today, N: 10})
	require.NoError(t, err)
	require.Equal(t, retention.VisitsDeleteRow{Deleted: 2, LastPage: page}, gone)
	require.NoError(t, retention.New(d.Tx()).VisitsGoneNote(ctx, today+1, 1))
	apps, err := retention.New(d.Tx()).RetentionApps(ctx)
	require.NoError(t, err)
	require.Equal(t, retention.RetentionAppsRow{ID: 1, Name: "shop", RetainDays: 10, ForgetDays: 10, FromDay: today + 1, GoneBefore: today +
		1}, apps[1])
	for _, first := range []bool{true, false} {
		dropped, err := retention.New(d.Tx()).DayDrop(ctx, today)
		require.NoError(t, err)
		require.Equal(t, first, dropped)
	}

	require.NoError(t, retention.New(d.Tx()).VisitsKeepFrom(ctx, 1, today+2))
	first, err := d.Queries().RetentionPauseSet(ctx, db.RetentionPauseSetParams{App: 1, Run: 7, Hours: 1})
	require.NoError(t, err)
	require.Equal(t, first, query[int32](t, owner, `SELECT days_ago(10)`))
	_, err = d.Queries().RetentionPauseSet(ctx, db.RetentionPauseSetParams{App: 1, Run: 7})
	require.NoError(t, err)
	visitor := netip.MustParseAddr("192.0.2.1")
	unseen, err := retention.New(d.Tx()).VisitorsUnseen(ctx, retention.VisitorsUnseenParams{AppID: 1, Before: today + 2, N: 10})
	require.NoError(t, err)
	require.Equal(t, []retention.VisitorsUnseenRow{{SiteID: site, PageID: site, Ip: visitor}, {SiteID: site, PageID: page, Ip: visitor}},
		unseen)
	forgotten, err := retention.New(d.Tx()).VisitorsForget(ctx, retention.VisitorsForgetParams{App: 1, Before: today + 2,
		Pages: []int64{site, page}, Ips: []netip.Addr{visitor, visitor}})
	require.NoError(t, err)
	require.Equal(t, int64(2), forgotten)
	require.NoError(t, retention.New(d.Tx()).RetentionNote(ctx, today))
	done, err := retention.New(d.Tx()).RetentionDone(ctx, today)
	require.NoError(t, err)
	require.True(t, done)
}

// A role with the right to call the functions cannot use them to delete rows that are kept.
func TestKeptRowsAreNotDeleted(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `INSERT INTO apps (name, retain_days, forget_days) VALUES ('brief', 10, 10)`)
	exec(t, conn, `UPDATE apps SET retain_days = 0 WHERE name = 'shop'`)
	exec(t, conn, `SELECT make_visits_day(20190630), make_visits_day(20190701)`)
	exec(t, conn, `SELECT close_day(20190629), close_day(20190630)`)
	exec(t, conn, `INSERT INTO pages (app_id, uri) VALUES (2, 'b.example')`)
	exec(t, conn, `INSERT INTO days (page_id, day_id, hot, pv, new_visitors) VALUES (1, 20190629, 1, 1, 1), (4, 20190630, 1, 1, 1)`)
	exec(t, conn, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (1, 20190629, 0, '192.0.2.1')`)
	exec(t, conn, `INSERT INTO visitors (page_id, rank, first_day, last_day, ip) VALUES (1, 1, 20190629, 20190629, '192.0.2.1')`)
	exec(t, conn, `SELECT keep_visits_from(2, 20190630)`)

	for what, sql := range map[string]string{
		"a day that is not over":                      `SELECT close_day(days_ago(0))`,
		"visits of an app that keeps them for ever":   `SELECT keep_visits_from(1, 20190630)`,
		"visits of an app that keeps them for longer": `SELECT keep_visits_from(2, days_ago(9))`,
		"visits of no app":                            `SELECT keep_visits_from(99, 20190630)`,
		"a day that is not closed":                    `SELECT drop_visits_day(20190701)`,
		"rows that an app keeps for ever":             `SELECT delete_unkept_visits(1, 20190629, 0, 10)`,
		"rows that an app keeps still":                `SELECT delete_unkept_visits(2, 20190630, 0, 10)`,
		"rows of a day that is not closed":            `SELECT delete_unkept_visits(2, 20190628, 0, 10)`,
		"a retention of a day that has not come":      `SELECT note_retention(days_ago(-2))`,
		"visitors whom an app never forgets":          `SELECT forget_visitors(1, 20190701, '{1}', '{192.0.2.1}')`,
		"visitors whom an app does not forget yet":    `SELECT forget_visitors(2, days_ago(9), '{1}', '{192.0.2.1}')`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		assert.Equal(t, "22023", code(err), "%s: %v", what, err)
	}
	assert.False(t, query[bool](t, conn, `SELECT drop_visits_day(20190629)`), "an app keeps the day for ever")
	assert.False(t, query[bool](t, conn, `SELECT drop_visits_day(20190630)`), "it is the first that an app keeps")
	// The function may be called with another app's rows, and deletes none.
	assert.Equal(t, int64(0), query[int64](t, conn, `SELECT deleted FROM delete_unkept_visits(2, 20190629, 0, 10)`))
	assert.Equal(t, int64(0), query[int64](t, conn, `SELECT forget_visitors(2, 20190701, '{1}', '{192.0.2.1}')`))
	assert.Equal(t, int64(2), query[int64](t, conn, `SELECT (SELECT count(*) FROM visits) + (SELECT count(*) FROM visitors)`))
	// Permitted deletions work, and from_day never decreases.
	exec(t, conn, `SELECT keep_visits_from(2, days_ago(10))`)
	exec(t, conn, `SELECT keep_visits_from(2, 20190629)`)
	assert.True(t, query[bool](t, conn, `SELECT from_day = days_ago(10) FROM visits_kept WHERE app_id = 2`))
	require.True(t, query[bool](t, conn, `SELECT drop_visits_day(20190630)`))
	exec(t, conn, `UPDATE apps SET deleted_at = now() WHERE name = 'shop'`)
	require.True(t, query[bool](t, conn, `SELECT drop_visits_day(20190629)`), "an app that is being deleted keeps nothing")
}

func TestSketchesMerge(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `
		INSERT INTO sketches (page_id, day_id, entries) VALUES
			(2, 20190629, '{65, 130, 320}'), (3, 20190629, '{67, 129, 400}'), (2, 20190630, '{65}'), (3, 20190701, '{65}')`)
	exec(t, conn, `SELECT merge_sketches(2, 3)`)
	assert.Equal(t, []string{"3 20190629 {67,130,320,400}", "3 20190630 {65}", "3 20190701 {65}"},
		dbtest.Column[string](t, conn, `SELECT page_id || ' ' || day_id || ' ' || entries::text FROM sketches ORDER BY page_id, day_id`))
}

// A forgotten visitor is also deleted from the page (deleted) of their site, even if a page was moved to it after the
// visitors to forget were selected.
func TestForgottenAlsoWhereAPageWasDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `UPDATE apps SET retain_days = 10, forget_days = 10`)
	exec(t, conn, `SELECT keep_visits_from(1, 20190702)`)
	exec(t, conn, `INSERT INTO visitors (page_id, rank, first_day, last_day, ip)
		VALUES (1, 1, 20190629, 20190629, '192.0.2.1'), (2, 1, 20190629, 20190629, '192.0.2.1')`)
	exec(t, conn, `UPDATE pages SET uri = 'example.com/(deleted)' WHERE id = 2`) // as if the rows of page 3 had been moved there
	assert.Equal(t, int64(2), query[int64](t, conn, `SELECT forget_visitors(1, 20190701, '{1, 3}', '{192.0.2.1, 192.0.2.1}')`))
	assert.Equal(t, int64(0), query[int64](t, conn, `SELECT count(*) FROM visitors`))
}
