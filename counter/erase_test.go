package counter_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/visit"
)

// demo returns the row of the app demo.
func (in *instance) demo(ctx context.Context) (app db.App, err error) {
	err = in.DB.Read(ctx, func(q *db.Queries) (err error) { app, err = q.AppLock(ctx, "demo"); return err })
	return app, err
}

func (in *instance) ask(t *testing.T, ip, uri string) string {
	t.Helper()
	a, err := in.Counts(t.Context(), counter.Request{App: "demo", IP: ip, URI: uri})
	require.NoError(t, err)
	return row(a)
}

func TestEraseLeavesRankAndSums(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	other := both.startOn(t, in.URL, counter.Options{})
	const home, about = "http://a.example/", "http://a.example/about"
	for _, ip := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		in.Count(t, ip, home)
		other.Count(t, ip, home)
	}
	in.Count(t, "192.0.2.2", about)
	in.Clock.Set(in.Clock.Now().AddDate(0, 0, 1))
	other.Clock.Set(in.Clock.Now())
	in.Count(t, "192.0.2.2", home)
	require.Equal(t, "4 3 2 8 | 4 3 2 7", in.ask(t, "192.0.2.2", home))

	prints, err := in.Admin.ShowVisitor(t.Context(), "demo", "192.0.2.2")
	require.NoError(t, err)
	require.Equal(t, "[{a.example 192.0.2.2 2 20260629 20260630} {a.example/ 192.0.2.2 2 20260629 20260630} {a.example/about 192.0.2.2 1 "+
		"20260629 20260629}]",
		fmt.Sprint(prints.Targets))
	erased, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.2")
	require.NoError(t, err)
	require.EqualValues(t, 3, erased.Targets)

	require.Equal(t, "4 3 0 8 | 4 3 0 7", in.ask(t, "192.0.2.2", home), "the sums stay, the rank is nobody's")
	require.Equal(t, "4 3 3 8 | 4 3 3 7", in.ask(t, "192.0.2.3", home), "others keep theirs")
	require.Empty(t, in.Table(t, `SELECT ip FROM visitors WHERE ip = '192.0.2.2' UNION ALL SELECT ip FROM visits WHERE ip = '192.0.2.2'`))
	require.Equal(t, []string{"a.example 2\n", "a.example/ 2\n", "a.example/about 1\n"},
		in.Table(t, `SELECT p.uri, e.rank FROM erased_ranks e JOIN pages p ON p.id = e.page_id ORDER BY p.uri`))
	in.Check(t)

	// Both instances remembered the erased visitor. A visit from the same address is now a new visitor's, and the old rank is
	// not given again.
	require.Equal(t, "5 4 4 9 | 5 4 4 8", row(other.Count(t, "192.0.2.2", home)))
	require.Equal(t, "5 4 4 10 | 5 4 4 9", row(in.Count(t, "192.0.2.2", home)))
	in.Check(t)

	erased, err = in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.2")
	require.NoError(t, err)
	require.EqualValues(t, 2, erased.Targets, "again, with the targets left before")
	erased, err = in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.9")
	require.NoError(t, err)
	require.Zero(t, erased, "a visitor who never came")
	in.Check(t)
}

// comeAtOnce counts concurrent visits to a page, one for each visitor number in from ≤ number < to.
func (in *instance) comeAtOnce(t *testing.T, from, to int, uri string) {
	t.Helper()
	var all sync.WaitGroup
	for i := from; i < to; i++ {
		all.Go(func() {
			_, err := in.Visit(context.Background(), counter.Request{App: "demo", IP: numbered(i), URI: uri})
			assert.NoError(t, err)
		})
	}
	all.Wait()
}

func numbered(i int) string { return fmt.Sprintf("10.0.%d.%d", i/256, i%256) }

// Visitors of one target are erased and forgotten concurrently, also at the end of a row of erased_visitors: no rank
// is lost or stored twice.
func TestErasingAndForgettingAtOnce(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.keeps(t, "demo", 1, 1)
	const forgotten, visitors = 260, 280
	in.Clock.Set(firstDay)
	in.comeAtOnce(t, 0, forgotten, "http://a.example/")
	in.Clock.Set(firstDay.AddDate(0, 0, 5))
	in.comeAtOnce(t, forgotten, visitors, "http://a.example/")
	var all sync.WaitGroup
	for i := forgotten; i < visitors; i++ {
		all.Go(func() {
			erased, err := in.Admin.EraseVisitor(context.Background(), "demo", numbered(i))
			assert.NoError(t, err)
			assert.EqualValues(t, 2, erased.Targets)
		})
	}
	require.EqualValues(t, 2*forgotten, in.retain(t).Forgotten[0].Visitors)
	all.Wait()
	require.Equal(t, []string{fmt.Sprintln(2, 2*visitors, visitors)},
		in.Table(t, `SELECT count(DISTINCT page_id), count(*), max(rank) FROM erased_ranks`))
	in.verified(t)
}

// Ranks are erased on both sides of the end of a row of erased_visitors, and more when a page is deleted. The query
// in docs/sql.md that recomputes numbers includes all of them.
func TestErasedRanksAcrossRows(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	docs, err := os.ReadFile("../docs/sql.md")
	require.NoError(t, err)
	_, amiss, _ := strings.Cut(string(docs), "```sql\nWITH ranks AS (")
	amiss, _, _ = strings.Cut("WITH ranks AS ("+amiss, "```")
	const a, b = "http://a.example/a", "http://a.example/b"
	in.comeAtOnce(t, 0, 258, a)
	in.comeAtOnce(t, 200, 520, b)
	const unlucky = `ip IN (SELECT ip FROM visitors WHERE rank IN (1, 255, 256, 257, 258, 512, 513))`
	taken := in.Table(t, `SELECT page_id, rank FROM visitors WHERE `+unlucky+` ORDER BY 1, 2`)
	for _, ip := range in.Table(t, `SELECT DISTINCT host(ip) FROM visitors WHERE `+unlucky) {
		_, err := in.Admin.EraseVisitor(t.Context(), "demo", strings.TrimSpace(ip))
		require.NoError(t, err)
	}
	require.Equal(t, taken, in.Table(t, `SELECT page_id, rank FROM erased_ranks ORDER BY 1, 2`))
	for _, page := range []string{"", a, b} {
		if page != "" {
			require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", page))
		}
		in.verified(t)
		require.Empty(t, in.Table(t, amiss))
	}
	in.Exec(t, `DELETE FROM erased_visitors WHERE part = 1`)
	require.Len(t, in.Table(t, amiss), 2)
}

func TestDeletePage(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	const deleted = `SELECT p.uri, c.pv, c.uv, c.hot FROM counters c JOIN pages p ON p.id = c.page_id WHERE p.uri LIKE '%(deleted)'`
	const home, a, b, gone = "http://a.example/", "http://a.example/a", "http://a.example/b", "http://a.example/(deleted)"
	for _, ip := range []string{"192.0.2.1", "192.0.2.2"} {
		in.Count(t, ip, home)
		in.Count(t, ip, a)
		in.Count(t, ip, a)
	}
	in.Count(t, "192.0.2.2", b)
	in.Count(t, "192.0.2.3", b)
	in.Count(t, "192.0.2.4", b)
	_, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.3")
	require.NoError(t, err)
	site := "4 4 0 9 | "
	require.Equal(t, site+"2 2 0 4", in.ask(t, "192.0.2.9", a))

	require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", a))
	require.Equal(t, site+"0 0 0 0", in.ask(t, "192.0.2.9", a))
	require.Equal(t, []string{"a.example/(deleted) 2 2 4\n"}, in.Table(t, deleted))
	in.Check(t)

	require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", b))
	require.Equal(t, []string{"a.example/(deleted) 4 4 7\n"}, in.Table(t, deleted), "a visitor of both pages is one visitor of it")
	require.Equal(t, []string{"1 192.0.2.1\n", "2 192.0.2.2\n", "3 192.0.2.4\n"},
		in.Table(t, `SELECT v.rank, host(v.ip) FROM visitors v JOIN pages p ON p.id = v.page_id WHERE p.uri LIKE '%(deleted)' ORDER BY 1`),
		"ranks go on")
	require.Equal(t, []string{"4\n"}, in.Table(t, `SELECT e.rank FROM erased_ranks e JOIN pages p ON p.id = e.page_id
		WHERE p.uri LIKE '%(deleted)'`))
	in.Check(t)

	require.Equal(t, "4 4 2 10 | 1 1 1 1", row(in.Count(t, "192.0.2.2", a)), "it may be counted again")
	require.Equal(t, "4 4 1 11 | 1 1 1 1", row(in.Count(t, "192.0.2.1", gone)), "no visit leads there")
	in.Check(t)

	for uri, says := range map[string]string{
		"http://a.example/never": "uri: app demo has no page a.example/never",
		"a.example/never":        "uri: app demo has no page a.example/never",
		"a.example":              "uri: a.example is a site: name a page of it",
		"a.example/(deleted)":    "uri: a.example/(deleted) collects the numbers of several other pages, so it cannot be deleted",
	} {
		require.ErrorContains(t, in.Admin.DeletePage(t.Context(), "demo", uri), says)
	}
	require.ErrorContains(t, in.Admin.DeletePage(t.Context(), "nobody", a), `there is no app "nobody"`)
}

// If a deletion is killed after the page was detached from its URI, the next deletion finishes it. The promises hold in
// between.
func TestDeletePageContinues(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.1", "http://a.example/a")
	in.Count(t, "192.0.2.1", "http://a.example/b")
	require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", "http://a.example/b"))
	reading, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = reading.Exec(t.Context(), `LOCK TABLE visitors IN SHARE MODE`)
	require.NoError(t, err)
	killed := make(chan error, 1)
	go func() { killed <- in.Admin.DeletePage(context.Background(), "demo", "http://a.example/a") }()
	in.endWaiters(t)
	require.Error(t, <-killed)
	require.NoError(t, reading.Rollback(t.Context()))
	require.Len(t, in.Table(t, `SELECT uri FROM pages WHERE uri LIKE 'a.example/(deleted) %'`), 1, "its name has been taken")
	in.Check(t)
	require.ErrorContains(t, in.Admin.DeletePage(t.Context(), "demo", "http://a.example/a"), "has no page a.example/a")
	require.Equal(t, []string{"a.example/(deleted) 1 1 2\n"},
		in.Table(t, `SELECT p.uri, c.pv, c.uv, c.hot FROM counters c JOIN pages p ON p.id = c.page_id WHERE p.uri LIKE '%(deleted)%'`))
	in.Check(t)
}

// The pages of an app that is half deleted cannot be deleted.
func TestDeletePageOfAnAppThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.1", "http://a.example/a")
	in.Count(t, "192.0.2.2", "http://a.example/b")
	require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", "http://a.example/b"))
	// The deletion was killed after this.
	in.Exec(t, `UPDATE apps SET deleted_at = now() WHERE name = 'demo'; DELETE FROM visits; DELETE FROM visitors`)
	require.ErrorContains(t, in.Admin.DeletePage(t.Context(), "demo", "http://a.example/a"), "this app is being deleted")
	in.Exec(t, `UPDATE pages SET uri = 'a.example/(deleted) ' || id WHERE uri = 'a.example/a'`)
	require.ErrorContains(t, in.Admin.DeletePage(t.Context(), "demo", "http://a.example/a"), "this app is being deleted")
	require.NoError(t, in.Admin.DeleteApp(t.Context(), "demo"))
}

func TestDeleteApp(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	other := both.startOn(t, in.URL, counter.Options{})
	open := "open"
	require.NoError(t, in.Admin.AddApp(t.Context(), "stays", app.Settings{Access: &open}))
	_, err := in.Admin.AddKey(t.Context(), "demo", []app.Scope{app.ScopeRead})
	require.NoError(t, err)
	_, err = in.Admin.AddNote(t.Context(), "demo", "today", "A new version", "")
	require.NoError(t, err)
	_, _, err = in.Admin.AddShare(t.Context(), "demo", "", "")
	require.NoError(t, err)
	disperse := dbtest.Crowd(t, 6, func(client, i int) {
		at := []*instance{in, other}[client%2]
		r := counter.Request{App: []string{"demo", "stays"}[i%2], IP: fmt.Sprintf("192.0.2.%d", i%20),
			URI: fmt.Sprintf("http://a.example/%d", i%5)}
		_, err := at.Visit(context.Background(), r)
		if r.App == "stays" {
			assert.NoError(t, err)
		}
	})
	in.Count(t, "192.0.2.1", "http://a.example/")
	_, err = in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.1")
	require.NoError(t, err)
	require.NoError(t, in.Admin.DeleteApp(t.Context(), "demo"))
	disperse()
	_, err = in.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/"})
	require.ErrorContains(t, err, `there is no app "demo"`)
	require.Equal(t, []string{"stays\n"}, in.Table(t, `SELECT name FROM apps`))
	require.Empty(t, in.Table(t, `
		WITH ids AS (
			SELECT page_id FROM counters UNION ALL SELECT page_id FROM visitors UNION ALL SELECT page_id FROM visits
			UNION ALL SELECT page_id FROM erased_visitors UNION ALL SELECT page_id FROM erased_visits
		)
		SELECT page_id FROM ids WHERE page_id NOT IN (SELECT id FROM pages)`), "rows of pages that were deleted")
	require.Empty(t, in.Table(t, `SELECT id FROM keys UNION ALL SELECT id FROM shares UNION ALL SELECT id FROM notes`))
	in.Check(t)

	require.NoError(t, in.Admin.AddApp(t.Context(), "demo", app.Settings{Access: &open}))
	require.Equal(t, "1 1 1 1 | 1 1 1 1", row(in.Count(t, "192.0.2.1", "http://a.example/")), "it may be created again")
	require.ErrorContains(t, in.Admin.DeleteApp(t.Context(), "nobody"), `there is no app "nobody"`)
}

// An app's deletion meets batches that lock some of its pages first. All of them lock counters in one order, which
// prevents deadlocks.
func TestDeleteAppTakesCountersInOrder(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.1", "http://a.example/")
	app, err := in.demo(t.Context())
	require.NoError(t, err)
	intern := func(page string) (site, id int64) {
		ids, _, err := in.DB.Intern(t.Context(), db.Interning{App: app.ID, Settings: app.CountsBy(),
			Pages: []string{"a.example/" + page}, Sites: []string{"a.example"}})
		require.NoError(t, err)
		return ids["a.example"], ids["a.example/"+page]
	}
	site, second := intern("second")
	_, third := intern("third")
	require.IsIncreasing(t, []int64{site, second, third})
	begin := func() (pgx.Tx, func(targets ...int64) error) {
		tx, err := in.Tables().Begin(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return tx, func(targets ...int64) error {
			_, err := tx.Exec(context.Background(), db.CountersLock, targets, make([]int64, len(targets)), make([]int64, len(targets)))
			return err
		}
	}
	one, lockByOne := begin()
	two, lockByTwo := begin()
	require.NoError(t, lockByOne(third))
	deleted, locked := make(chan error, 1), make(chan error, 1)
	go func() { deleted <- in.Admin.DeleteApp(context.Background(), "demo") }()
	in.waiters(t, 1) // for the third
	go func() { locked <- lockByTwo(site, second) }()
	in.waiters(t, 2)
	require.NoError(t, one.Rollback(t.Context()))
	assert.NoError(t, <-locked)
	require.NoError(t, two.Rollback(t.Context()))
	require.NoError(t, <-deleted)
	require.Empty(t, in.Table(t, `SELECT page_id FROM counters`))
}

// Visits that were admitted before their app was deleted, and are written afterwards, fail because the app is gone.
// The other visits of their batch are counted.
func TestVisitsUnderWayToADeletedApp(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	open := "open"
	require.NoError(t, in.Admin.AddApp(t.Context(), "stays", app.Settings{Access: &open}))
	visit := func(app, path string) chan error {
		err := make(chan error, 1)
		go func() {
			_, e := in.Visit(context.Background(), counter.Request{App: app, IP: "192.0.2.1", URI: "http://a.example" + path})
			err <- e
		}()
		return err
	}
	require.NoError(t, <-visit("demo", "/"))
	require.NoError(t, <-visit("stays", "/"))
	tx, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM counters JOIN pages ON id = page_id WHERE uri = 'a.example' FOR UPDATE OF counters`)
	require.NoError(t, err)
	first := visit("demo", "/") // waits for the locked row; the others of the lane wait for it
	in.waiters(t, 1)
	known, unknown, other := visit("demo", "/"), visit("demo", "/new"), visit("stays", "/")
	deleted := make(chan error, 1)
	go func() { deleted <- in.Admin.DeleteApp(context.Background(), "demo") }()
	require.Eventually(t, func() bool {
		return len(in.Table(t, `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
			AND query LIKE '%AppRestDelete%'`)) == 1
	}, dbtest.Patience, dbtest.Tick)
	require.NoError(t, tx.Rollback(t.Context()))
	assertGone(t, <-first, <-known, <-unknown)
	require.NoError(t, <-other)
	require.NoError(t, <-deleted)
	in.warnsOfNoBatch(t)
	in.Check(t)
}

func assertGone(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		var verr *visit.Error
		if assert.ErrorAs(t, err, &verr) {
			assert.Equal(t, visit.NotFound, verr.Kind, err)
		}
	}
}

// A visit in progress when an erasure looks up its visitor is counted before the erasure gets the lock. The erasure
// also erases the visitor from the new page.
func TestEraseFindsWhatWasCountedSinceItLooked(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.1", "http://a.example/old")
	in.Clock.Set(in.Clock.Now().AddDate(0, 0, 1))
	in.Count(t, "192.0.2.1", "http://a.example/old")
	in.Count(t, "192.0.2.2", "http://a.example/new")
	tx, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM counters JOIN pages ON id = page_id WHERE uri = 'a.example' FOR UPDATE OF counters`)
	require.NoError(t, err)
	visited, erased := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := in.Visit(context.Background(), counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/new"})
		visited <- err
	}()
	in.waiters(t, 1)
	go func() {
		n, err := in.Admin.EraseVisitor(context.Background(), "demo", "192.0.2.1")
		assert.EqualValues(t, 3, n.Targets)
		erased <- err
	}()
	in.waiters(t, 2)
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-visited)
	require.NoError(t, <-erased)
	require.Empty(t, in.Table(t, `SELECT page_id FROM visitors WHERE ip = '192.0.2.1' UNION ALL SELECT page_id FROM visits
		WHERE ip = '192.0.2.1'`))
	in.Check(t)
}

// A visitor returns on a day that an erasure has already searched, before the erasure locks their site. The new visit
// is erased too, and there is no deadlock.
func TestEraseDuringAReturn(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.1", "http://a.example/old")
	in.Clock.Set(in.Clock.Now().AddDate(0, 0, 1))
	in.Count(t, "192.0.2.2", "http://a.example/old")
	release := in.hold(t, "a.example")
	visited, erased := in.start("192.0.2.1", "http://a.example/old"), make(chan error, 1)
	in.waiters(t, 1)
	go func() {
		n, err := in.Admin.EraseVisitor(context.Background(), "demo", "192.0.2.1")
		assert.EqualValues(t, 2, n.Targets)
		erased <- err
	}()
	in.waiters(t, 2)
	release()
	require.Equal(t, "3 2 1 3 | 3 2 1 3", <-visited)
	require.NoError(t, <-erased)
	require.Empty(t, in.Table(t, `SELECT page_id FROM visitors WHERE ip = '192.0.2.1' UNION ALL SELECT page_id FROM visits
		WHERE ip = '192.0.2.1'`))
	in.verified(t)
	require.Equal(t, "4 3 3 4 | 4 3 3 4", row(in.Count(t, "192.0.2.1", "http://a.example/old")))
}

// A visitor is erased a few sites at a time. Visits to the other sites do not wait, and after a kill the next erasure
// continues.
func TestEraseSomeSitesAtATime(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	for _, uri := range []string{"http://a.example/", "http://a.example/1", "http://b.example/"} {
		in.Count(t, "192.0.2.1", uri)
	}
	in.Exec(t, `INSERT INTO pages (app_id, site_id, uri) SELECT app_id, id, uri || '/many/' || n FROM pages, generate_series(1, 5000) AS n
		WHERE uri = 'a.example'`)
	const targets = `SELECT p.uri FROM visitors v JOIN pages p ON p.id = v.page_id ORDER BY p.uri`
	release := in.hold(t, "b.example")
	erased := make(chan error, 1)
	go func() {
		_, err := in.Admin.EraseVisitor(context.Background(), "demo", "192.0.2.1")
		erased <- err
	}()
	in.waiters(t, 1)
	require.Equal(t, []string{"b.example\n", "b.example/\n"}, in.Table(t, targets))
	in.verified(t)
	require.Equal(t, "2 2 2 3 | 2 2 2 2", row(in.Count(t, "192.0.2.1", "http://a.example/1")), "while it waits for the other site")
	in.endWaiters(t)
	require.Error(t, <-erased)
	release()
	in.verified(t)
	n, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.1")
	require.NoError(t, err)
	require.EqualValues(t, 4, n.Targets)
	require.Empty(t, in.Table(t, targets))
	require.Empty(t, in.Table(t, `SELECT page_id FROM visits`))
	in.verified(t)
}

// A page with many visitors is deleted during visits to its site, which do not wait for the deletion.
func TestDeletePageDoesNotBlockVisits(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.1", "http://a.example/a")
	in.Count(t, "192.0.2.1", "http://a.example/b")
	conn := in.Conn(t)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	// A lock on a row of the page's visitors stops the deletion between its two steps for as long as the test needs.
	_, err = tx.Exec(t.Context(), `SELECT FROM visitors WHERE page_id = (SELECT id FROM pages WHERE uri = 'a.example/a') FOR UPDATE`)
	require.NoError(t, err)
	deleted := make(chan error, 1)
	go func() { deleted <- in.Admin.DeletePage(context.Background(), "demo", "http://a.example/a") }()
	require.Eventually(t, func() bool {
		return len(in.Table(t, `SELECT FROM pages WHERE uri LIKE 'a.example/(deleted) %'`)) == 1
	}, dbtest.Patience, dbtest.Tick)
	for range 20 {
		in.Count(t, "192.0.2.2", "http://a.example/a")
		in.Count(t, "192.0.2.1", "http://a.example/b")
	}
	select {
	case err := <-deleted:
		t.Fatal("it did not stand still", err)
	default:
	}
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-deleted)
	in.Check(t)
}

// The visitor mode of an app may change as long as the app has no page. A visit identified by the old mode creates no
// page.
func TestAppChangesDuringFirstVisit(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	demo, err := in.demo(t.Context())
	require.NoError(t, err)
	ask := db.Interning{App: demo.ID, Settings: demo.CountsBy(), Day: 20260629, Pages: []string{"a.example/"}, Sites: []string{"a.example"}}
	for _, change := range []app.Settings{{TZ: ptr("Europe/Berlin")}, {Visitor: ptr("hashed"), TZ: ptr("UTC")},
		{Visitor: ptr("address"), IPv6Prefix: ptr(56)}} {
		require.NoError(t, in.Admin.SetApp(t.Context(), "demo", change))
		_, _, err = in.DB.Intern(t.Context(), ask)
		require.ErrorContains(t, err, "changed")
		require.Equal(t, db.FaultData, db.FaultOf(err), "nothing was counted")
		require.Empty(t, in.Table(t, `SELECT uri FROM pages`))
	}
	ask.Settings.Ipv6Prefix = 56
	ids, _, err := in.DB.Intern(t.Context(), ask)
	require.NoError(t, err)
	require.Len(t, ids, 2)
	ask.Settings.Ipv6Prefix = 64
	_, _, err = in.DB.Intern(t.Context(), ask)
	require.ErrorIs(t, err, db.ErrAppChanged, "the page is there, by the new way")
}

// If two instances create the same page, and the app may have only one more page, the second instance finds the page and needs
// no room.
func TestPagesOfAnotherInstanceAreThere(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	app, err := in.demo(t.Context())
	require.NoError(t, err)
	ask := func(most int64, paths ...string) (int, bool) {
		i := db.Interning{App: app.ID, Settings: app.CountsBy(), Day: 20260629, MaxToday: most}
		for _, path := range paths {
			i.Pages, i.Sites = append(i.Pages, "a.example"+path), append(i.Sites, "a.example")
		}
		ids, full, err := in.DB.Intern(t.Context(), i)
		require.NoError(t, err)
		return len(ids), full
	}
	found, full := ask(3, "/1")
	require.Equal(t, 2, found)
	require.False(t, full)
	var made, known atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			found, _ := ask(3, "/2")
			made.Add(int64(found))
			found, full := ask(3, "/3")
			known.Add(int64(found))
			assert.True(t, full)
		})
	}
	all.Wait()
	require.EqualValues(t, 8*2, made.Load(), "all have the last page that there is room for")
	require.EqualValues(t, 8*1, known.Load(), "and none the next")
}
