package counter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/retention"
)

// firstDay is far enough in the past that the database's own clock is after every day of these tests.
var firstDay = time.Date(2019, 6, 1, 20, 0, 0, 0, time.UTC)

// retain runs retention by the instance's clock, and repeats it if a day was in use for too long.
func (in *instance) retain(t *testing.T) *retention.Result {
	t.Helper()
	busy := func(ctx context.Context, _ time.Duration) error { return ctx.Err() } // a day in use is retried at once
	var all retention.Result
	for {
		done, err := retention.NewRetainer(in.DB, retention.Options{Clock: in.Clock.Now, Pause: busy}).Run(context.Background())
		all.Closed, all.Visits = append(all.Closed, done.Closed...), append(all.Visits, done.Visits...)
		all.Dropped, all.Forgotten = append(all.Dropped, done.Dropped...), append(all.Forgotten, done.Forgotten...)
		if db.FaultOf(err) != db.FaultBusy {
			assert.NoError(t, err)
			return &all
		}
	}
}

// keeps sets the number of days that an app keeps visits and visitors.
func (in *instance) keeps(t *testing.T, name string, visits, visitors int) {
	t.Helper()
	require.NoError(t, in.Admin.SetApp(t.Context(), name, app.Settings{RetainDays: &visits, ForgetDays: &visitors}))
}

// Pages are deleted after the rows of their first days.
func TestDeletePageWhoseDaysAreGone(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	const a, b, c = "http://a.example/a", "http://a.example/b", "http://a.example/c"
	open, never := "open", 0
	require.NoError(t, in.Admin.AddApp(t.Context(), "keeper", app.Settings{Access: &open, RetainDays: &never}))
	in.keeps(t, "demo", 3, 0)
	for day := range 8 {
		in.Clock.Set(firstDay.AddDate(0, 0, day))
		if day%2 == 0 { // every other day is kept for another app
			_, err := in.Visit(t.Context(), counter.Request{App: "keeper", IP: "192.0.2.1", URI: a})
			require.NoError(t, err)
		}
		for visitor := 1; visitor <= 4; visitor++ {
			ip := fmt.Sprintf("192.0.2.%d", visitor)
			if day%visitor == 0 {
				in.Count(t, ip, a)
			}
			if (day+1)%visitor == 0 {
				in.Count(t, ip, b)
			}
		}
		in.Count(t, "192.0.2.1", c)
	}
	_, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.3")
	require.NoError(t, err)
	in.Check(t)
	sites := in.Table(t, `SELECT c.* FROM counters c JOIN pages p ON p.id = c.page_id WHERE p.site_id IS NULL ORDER BY 1`)
	done := in.retain(t)
	require.NotEmpty(t, done.Dropped)
	require.NotEmpty(t, done.Visits)
	in.Check(t)

	for _, uri := range []string{a, b} {
		require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", uri))
		in.Check(t)
		require.Empty(t, in.Table(t, `SELECT day_id FROM visits v JOIN pages p ON p.id = v.page_id JOIN visits_kept k USING (app_id)
			WHERE v.day_id < k.from_day`))
	}
	require.Equal(t, sites, in.Table(t, `SELECT c.* FROM counters c JOIN pages p ON p.id = c.page_id WHERE p.site_id IS NULL ORDER BY 1`))
	require.Empty(t, in.Table(t, `SELECT day_id FROM sketches WHERE page_id NOT IN (SELECT id FROM pages)`))
	require.Empty(t, in.Table(t, `SELECT t.day_id FROM tops t JOIN apps a ON a.id = t.app_id WHERE a.name = 'demo'`))
	// Every visitor visited one of the two pages on each of their days, so that the pages' sketches together equal
	// the site's.
	const sketches = `SELECT s.day_id, s.entries FROM sketches s JOIN pages p ON p.id = s.page_id JOIN apps a ON a.id = p.app_id
		WHERE a.name = 'demo' AND p.uri = 'a.example%s' ORDER BY 1`
	require.Len(t, in.Table(t, fmt.Sprintf(sketches, "/(deleted)")), 7)
	require.Equal(t, in.Table(t, fmt.Sprintf(sketches, "")), in.Table(t, fmt.Sprintf(sketches, "/(deleted)")))

	in.Clock.Set(firstDay.AddDate(0, 0, 8))
	in.Count(t, "192.0.2.1", c)
	in.retain(t)
	require.Equal(t, []string{"34\n"}, in.Table(t, `SELECT count(*) FROM tops t JOIN apps a ON a.id = t.app_id WHERE a.name = 'demo'`),
		"found again, for the site and for the app, by pv and hot on each of eight days, by uv on the first: it is not known of deleted pages")
	require.Empty(t, in.Table(t, `SELECT id FROM tops CROSS JOIN LATERAL unnest(page_ids) AS id WHERE id NOT IN (SELECT id FROM pages)`))
	in.Check(t)

	require.NoError(t, in.Admin.DeleteApp(t.Context(), "demo"))
	require.Empty(t, in.Table(t, `
		WITH ids AS (
			SELECT page_id FROM days UNION ALL SELECT page_id FROM returns UNION ALL SELECT page_id FROM sketches
			UNION ALL SELECT site_id FROM tops WHERE site_id > 0
		)
		SELECT page_id FROM ids WHERE page_id NOT IN (SELECT id FROM pages)`))
	require.Empty(t, in.Table(t, `SELECT app_id FROM visits_kept WHERE app_id NOT IN (SELECT id FROM apps)`))
	in.Check(t)
}

// A forgotten visitor of two pages counts as two, which would leave no room for a remembered visitor.
func TestDeletePagesOfForgottenVisitors(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.keeps(t, "demo", 3, 3)
	in.Clock.Set(firstDay)
	in.Count(t, "192.0.2.1", "http://a.example/a")
	in.Count(t, "192.0.2.1", "http://a.example/b")
	in.Count(t, "192.0.2.3", "http://a.example/c")
	in.Clock.Set(firstDay.AddDate(0, 0, 1))
	in.Count(t, "192.0.2.2", "http://a.example/d")
	in.Clock.Set(firstDay.AddDate(0, 0, 8))
	in.Count(t, "192.0.2.3", "http://a.example/d")
	require.NotEmpty(t, in.retain(t).Forgotten)
	for _, page := range []string{"a", "b", "c"} {
		require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", "http://a.example/"+page))
		in.Check(t)
	}
	require.Equal(t, []string{"1 2\n"}, in.Table(t, `
		SELECT count(v.ip), c.uv FROM counters c JOIN pages p ON p.id = c.page_id JOIN visitors v USING (page_id)
		WHERE p.uri = 'a.example/(deleted)' GROUP BY c.uv`))
}

// A visitor selected to be forgotten who returns before that is not forgotten.
func TestVisitorReturningInTimeIsNotForgotten(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.keeps(t, "demo", 1, 1)
	in.Clock.Set(firstDay)
	in.Count(t, "192.0.2.1", "http://a.example/1")
	in.Count(t, "192.0.2.2", "http://a.example/1")
	in.Clock.Set(firstDay.AddDate(0, 0, 5))
	app, err := in.demo(t.Context())
	require.NoError(t, err)
	in.Exec(t, fmt.Sprintf(`SELECT keep_visits_from(%d, 20190605)`, app.ID)) // visitors are not forgotten while their visits are kept
	var unseen []retention.VisitorsUnseenRow
	require.NoError(t, in.DB.Read(t.Context(), func(q *db.Queries) (err error) {
		unseen, err = retention.New(q.Tx()).VisitorsUnseen(t.Context(), retention.VisitorsUnseenParams{AppID: app.ID, Before: 20190605, N: 10})
		return err
	}))
	require.Len(t, unseen, 4)

	// Their visit in progress has locked the site: retention waits for it.
	held, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = held.Exec(t.Context(), `SELECT FROM counters FOR UPDATE`)
	require.NoError(t, err)
	p := retention.VisitorsForgetParams{App: app.ID, Before: 20190605}
	for _, u := range unseen {
		p.Pages, p.Ips = append(p.Pages, u.PageID), append(p.Ips, u.Ip)
	}
	forgotten := make(chan int64, 1)
	go func() {
		var n int64
		assert.NoError(t, in.DB.InTx(context.Background(), func(q *db.Queries) (err error) {
			n, err = retention.New(q.Tx()).VisitorsForget(context.Background(), p)
			return err
		}))
		forgotten <- n
	}()
	in.waiters(t, 1)
	// The write of this visitor's visit to another page of the site.
	_, err = held.Exec(t.Context(), `UPDATE visitors SET last_day = 20190606 WHERE ip = '192.0.2.1' AND page_id = (SELECT id FROM pages
		WHERE uri = 'a.example')`)
	require.NoError(t, err)
	require.NoError(t, held.Commit(t.Context()))
	require.EqualValues(t, 2, <-forgotten)
	require.Equal(t, []string{"a.example 192.0.2.1 1\n", "a.example/1 192.0.2.1 1\n"},
		in.Table(t, `SELECT p.uri, host(v.ip), v.rank FROM visitors v JOIN pages p ON p.id = v.page_id ORDER BY 1`))
	require.Equal(t, "3 3 3 3 | 3 3 3 3", row(in.Count(t, "192.0.2.2", "http://a.example/1")))
}

// A report that reads a day prevents its deletion, and no session waits for it for long. After the report the day is
// deleted.
func TestDropWaitsForReports(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.keeps(t, "demo", 1, 0)
	in.Clock.Set(firstDay)
	in.Count(t, "192.0.2.1", "http://a.example/1")
	in.Clock.Set(firstDay.AddDate(0, 0, 3))
	in.Count(t, "192.0.2.1", "http://a.example/1")
	reading, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = reading.Exec(t.Context(), `SELECT count(*) FROM visits`)
	require.NoError(t, err)

	tried := 0
	retainer := retention.NewRetainer(in.DB, retention.Options{Clock: in.Clock.Now, Pause: func(context.Context, time.Duration) error {
		if tried++; tried == 3 {
			return errors.New("enough")
		}
		in.Count(t, "192.0.2.2", "http://a.example/1")
		return nil
	}})
	_, err = retainer.Run(t.Context())
	require.ErrorContains(t, err, "enough")
	require.Equal(t, 3, tried)
	require.NoError(t, reading.Rollback(t.Context()))
	done, err := retainer.Run(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, done.Dropped)
	require.Empty(t, in.Table(t, `SELECT day_id FROM visits WHERE day_id < 20190603`))
	in.Check(t)
}

// A deletion that has hidden the page does not miss returns that are being packed.
func TestDeletePageDuringPacking(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	for day := range 2 {
		in.Clock.Set(firstDay.AddDate(0, 0, day))
		in.Count(t, "192.0.2.1", "http://a.example/a")
	}
	in.Count(t, "192.0.2.1", "http://a.example/b")
	require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", "http://a.example/b"))
	in.Exec(t, `UPDATE pages SET uri = 'a.example/(deleted) ' || id WHERE uri = 'a.example/a'`)
	in.Exec(t, `SELECT close_day(20190601); SELECT close_day(20190602)`)
	packing, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = packing.Exec(t.Context(), `SELECT pack_returns(0, 10)`)
	require.NoError(t, err)
	deleted := make(chan error, 1)
	go func() { deleted <- in.Admin.DeletePage(context.Background(), "demo", "http://a.example/a") }()
	in.waiters(t, 1)
	require.NoError(t, packing.Commit(t.Context()))
	require.ErrorContains(t, <-deleted, "has no page a.example/a", "it goes on with the hidden one all the same")
	require.Equal(t, []string{"a.example 20190602 1\n"},
		in.Table(t, `SELECT p.uri, r.day_id, r.visitors FROM returns r LEFT JOIN pages p ON p.id = r.page_id`))
	in.Check(t)
}
