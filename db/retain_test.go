package db_test

import (
	"net/netip"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/retention"
)

// letGo does what a running service does once a day, after serveVisits. The connection is the
// owner's.
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

// A role that may call the functions cannot delete with them what must stay.
func TestNothingGoesThatIsKept(t *testing.T) {
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
	// An app may be asked for rows of another, and gives none.
	assert.Equal(t, int64(0), query[int64](t, conn, `SELECT deleted FROM delete_unkept_visits(2, 20190629, 0, 10)`))
	assert.Equal(t, int64(0), query[int64](t, conn, `SELECT forget_visitors(2, 20190701, '{1}', '{192.0.2.1}')`))
	assert.Equal(t, int64(2), query[int64](t, conn, `SELECT (SELECT count(*) FROM visits) + (SELECT count(*) FROM visitors)`))
	// What is allowed is done, and from_day never falls.
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

// A visitor who is forgotten goes from the page (deleted) of their site, too, to which a page may have
// been moved since it was looked for whom to forget.
func TestForgottenAlsoWhereAPageWasDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	exec(t, conn, `UPDATE apps SET retain_days = 10, forget_days = 10`)
	exec(t, conn, `SELECT keep_visits_from(1, 20190702)`)
	exec(t, conn, `INSERT INTO visitors (page_id, rank, first_day, last_day, ip)
		VALUES (1, 1, 20190629, 20190629, '192.0.2.1'), (2, 1, 20190629, 20190629, '192.0.2.1')`)
	exec(t, conn, `UPDATE pages SET uri = 'example.com/(deleted)' WHERE id = 2`) // as if what is at page 3 had been moved there
	assert.Equal(t, int64(2), query[int64](t, conn, `SELECT forget_visitors(1, 20190701, '{1, 3}', '{192.0.2.1, 192.0.2.1}')`))
	assert.Equal(t, int64(0), query[int64](t, conn, `SELECT count(*) FROM visitors`))
}
