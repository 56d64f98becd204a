package counter_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/record"
	"footfall/retention"
	"footfall/visit"
	"footfall/visit/tag"
)

// later sends a visit of demo to the inbox, which must accept it.
func (in *instance) later(t *testing.T, r counter.Request) {
	t.Helper()
	r.App, r.CountLater = "demo", true
	answer, err := in.Visit(context.Background(), r)
	require.NoError(t, err)
	require.True(t, answer.Later)
}

// keepWaiting prevents every instance from counting the inbox until end is called.
func (in *instance) keepWaiting(t *testing.T) (end func()) {
	t.Helper()
	conn := in.Conn(t)
	_, err := conn.Exec(context.Background(), `SELECT pg_advisory_lock(hashtext('footfall.drain_inbox'))`)
	require.NoError(t, err)
	return func() { _ = conn.Close(context.Background()) }
}

func TestInboxCountsWhatWasAccepted(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	end := in.keepWaiting(t)
	var callers sync.WaitGroup
	for caller := range 4 {
		callers.Go(func() {
			for n := range 50 {
				in.later(t, counter.Request{IP: fmt.Sprintf("192.0.2.%d", n), URI: fmt.Sprintf("http://a.example/%d", caller%2)})
			}
		})
	}
	callers.Wait()
	ask := counter.Request{App: "demo", URI: "http://a.example/0", HasNoVisitor: true}
	a, err := in.Counts(t.Context(), ask)
	require.NoError(t, err)
	assert.Equal(t, visit.Answer{Behind: 200}, a)
	many, behind, err := in.CountsForPages(t.Context(), ask, []string{ask.URI})
	require.NoError(t, err)
	assert.Equal(t, []counter.PageResult{{}}, many)
	assert.Equal(t, int64(200), behind)
	require.NoError(t, in.Ready(t.Context()))
	require.Eventually(t, func() bool { return in.Metric(t, "footfall_inbox_waiting") == 200 }, dbtest.Patience, dbtest.Tick)
	assert.Positive(t, in.Metric(t, "footfall_inbox_oldest_seconds"))

	end()
	in.Drained(t)
	a, err = in.Counts(t.Context(), ask)
	require.NoError(t, err)
	assert.Equal(t, "50 50 0 200 | 50 50 0 100", row(a))
	assert.Zero(t, a.Behind)
	require.Zero(t, in.One(t, `SELECT count(*) FROM inbox`))
	in.Check(t)
	assert.Equal(t, 200.0, in.Metric(t, "footfall_inbox_accepted_total"))
	assert.Equal(t, 200.0, in.Metric(t, "footfall_inbox_drained_total"))
	in.warnsOfNoBatch(t)
}

// Decisions about a visit are made when it arrives.
func TestInboxKeepsWhatWasDecided(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.Exec(t, `UPDATE apps SET retain_days = 0`) // the clock of this test is not the database's
	page := "http://a.example/p"

	t.Run("the day", func(t *testing.T) {
		end := in.keepWaiting(t)
		in.later(t, counter.Request{IP: "192.0.2.1", URI: page})
		in.Clock.Set(in.Clock.Now().AddDate(0, 0, 1))
		in.Count(t, "192.0.2.1", page)
		end()
		in.Drained(t)
		assert.Equal(t, int64(1), in.One(t, `SELECT hot FROM days JOIN pages ON id = page_id WHERE uri = 'a.example/p' AND day_id = 20260629`))
		assert.Equal(t, "2 1 1 3 | 2 1 1 3", row(in.Count(t, "192.0.2.1", page)))
		in.later(t, counter.Request{IP: "192.0.2.1", URI: page, At: "2026-06-28T12:00:00Z"})
		in.Drained(t)
		assert.Equal(t, "3 1 1 5 | 3 1 1 5", row(in.Count(t, "192.0.2.1", page)))
		in.Check(t)
	})

	t.Run("the visitor", func(t *testing.T) {
		daily := "daily"
		app := app.Settings{Visitor: &daily}
		app.Access = new(string)
		*app.Access = "open"
		require.NoError(t, in.Admin.AddApp(t.Context(), "daily", app))
		visits := counter.Request{App: "daily", IP: "192.0.2.1", URI: page}
		live, err := in.Visit(t.Context(), visits)
		require.NoError(t, err)
		visits.CountLater = true
		end := in.keepWaiting(t)
		_, err = in.Visit(t.Context(), visits)
		require.NoError(t, err)
		in.Clock.Set(in.Clock.Now().AddDate(0, 0, 1)) // then another key hashes
		end()
		in.Drained(t)
		again, err := in.Counts(t.Context(), counter.Request{App: "daily", URI: page, HasNoVisitor: true})
		require.NoError(t, err)
		live.Site.Hot, live.Page.Hot, live.Site.Rank, live.Page.Rank = 2, 2, 0, 0
		assert.Equal(t, live, again)
		assert.Equal(t, []string{"1", "1"}, in.list(t, `SELECT rank::text FROM visitors WHERE ip << 'fd00::/8'`),
			"one at the site, one at the page")
	})

	t.Run("the id", func(t *testing.T) {
		was := in.Count(t, "192.0.2.2", page).Page.Hot
		in.later(t, counter.Request{IP: "192.0.2.2", URI: page, ID: "order-1"})
		in.later(t, counter.Request{IP: "192.0.2.2", URI: page, ID: "order-1"})
		in.Drained(t)
		a, err := in.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.2", URI: page, ID: "order-1"})
		require.NoError(t, err)
		assert.True(t, a.Repeated)
		assert.Equal(t, was+1, a.Page.Hot)
	})

	t.Run("that it is counted by the time its day is let go of", func(t *testing.T) {
		end := in.keepWaiting(t)
		in.later(t, counter.Request{IP: "192.0.2.3", URI: page})
		in.Exec(t, `UPDATE apps SET retain_days = 1 WHERE name = 'demo'`)
		err := in.DB.InTx(t.Context(), func(q *db.Queries) error {
			return retention.New(q.Tx()).VisitsKeepFrom(t.Context(),
				1, visit.DayOf(time.Now().AddDate(0, 0, -3), time.UTC))
		})
		assert.Equal(t, db.FaultBusy, db.FaultOf(err), err)
		end()
		in.Drained(t)
		require.NoError(t, in.DB.InTx(t.Context(), func(q *db.Queries) error {
			return retention.New(q.Tx()).VisitsKeepFrom(t.Context(),
				1, visit.DayOf(time.Now().AddDate(0, 0, -3), time.UTC))
		}))
		// Afterwards a visit of such a day is refused, but one of today is accepted.
		_, err = in.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.3", URI: page, At: "2026-06-28T12:00:00Z", CountLater: true})
		require.ErrorContains(t, err, "at: ")
	})
}

// An erased visitor, or a deleted page or app, does not reappear from the inbox.
func TestErasingCountsFirstWhatWasAccepted(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.Exec(t, `UPDATE apps SET retain_days = 0`) // the clock of this test is not the database's
	page := "http://a.example/p"
	// while runs an erasure that finds visits in the inbox which no instance counts at first.
	while := func(t *testing.T, erase func() error) {
		end := in.keepWaiting(t)
		in.later(t, counter.Request{IP: "192.0.2.7", URI: page})
		in.later(t, counter.Request{IP: "192.0.2.8", URI: page})
		done := make(chan error, 1)
		go func() { done <- erase() }()
		require.Eventually(t, func() bool {
			return in.One(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%InboxUncounted%'`) > 0
		},
			dbtest.Patience, dbtest.Tick)
		select {
		case err := <-done:
			require.Fail(t, "it did not wait for the accepted visits", err)
		default:
		}
		end()
		require.NoError(t, <-done)
		in.Drained(t)
		in.Check(t)
	}
	t.Run("a visitor", func(t *testing.T) {
		while(t, func() error {
			erased, err := in.Admin.EraseVisitor(context.Background(), "demo", "192.0.2.7")
			assert.Equal(t, int64(2), erased.Targets)
			return err
		})
		assert.Zero(t, in.One(t, `SELECT count(*) FROM visitors WHERE ip = '192.0.2.7'`))
		assert.Equal(t, "2 2 2 3 | 2 2 2 3", row(in.Count(t, "192.0.2.8", page)))
	})
	t.Run("a page", func(t *testing.T) {
		while(t, func() error { return in.Admin.DeletePage(context.Background(), "demo", page) })
		assert.Zero(t, in.One(t, `SELECT count(*) FROM pages WHERE uri = 'a.example/p'`))
		assert.Equal(t, int64(5), in.One(t, `SELECT hot FROM counters JOIN pages ON id = page_id WHERE uri = 'a.example/(deleted)'`))
	})
	t.Run("an app", func(t *testing.T) {
		while(t, func() error { return in.Admin.DeleteApp(context.Background(), "demo") })
		assert.Zero(t, in.One(t, `SELECT count(*) FROM pages`))
		_, err := in.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.7", URI: page, CountLater: true})
		require.ErrorContains(t, err, "there is no app")
	})
}

// An app that has accepted a visit keeps its visitor mode and time zone. If a manual UPDATE changes them, visits that
// were accepted before do not count, and hold up no other visit.
func TestInboxOfFormerSettings(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	end := in.keepWaiting(t)
	in.later(t, counter.Request{IP: "192.0.2.1", URI: "http://a.example/"})
	berlin := "Europe/Berlin"
	require.ErrorContains(t, in.Admin.SetApp(t.Context(), "demo", app.Settings{TZ: &berlin}),
		"tz: app demo has counted days in the time zone UTC")

	in.Exec(t, `UPDATE apps SET tz = 'Europe/Berlin' WHERE name = 'demo'`)
	require.NoError(t, in.DB.WaitForInstances(t.Context(), time.Minute))
	in.later(t, counter.Request{IP: "192.0.2.2", URI: "http://a.example/"})
	err := in.DB.Accept(t.Context(), [16]byte{1}, []db.InboxPutParams{{App: 1, Tz: "UTC", Visitor: "address", Ipv6Prefix: 64,
		Uris: []string{"a.example/"}, Pages: []int32{1}, Days: []int32{20260629}, NewPages: []int32{0}}}, db.PastDayColumns{})
	require.ErrorIs(t, err, db.ErrAppChanged)
	err = in.DB.Accept(t.Context(), [16]byte{2}, []db.InboxPutParams{{App: 1, Tz: "Europe/Berlin", Visitor: "address", Ipv6Prefix: 64,
		Uris: []string{"a.example/"}, Pages: []int32{1}, Days: []int32{20990629}, NewPages: []int32{0}}}, db.PastDayColumns{})
	require.Equal(t, db.FaultAhead, db.FaultOf(err), "on a day that has come nowhere")
	end()
	in.Drained(t)
	assert.Equal(t, "1 1 1 2 | 1 1 1 2", row(in.Count(t, "192.0.2.2", "http://a.example/")))
	assert.Contains(t, in.Log.String(), "visits in the inbox can no longer be counted")
}

// A transaction that writes to the inbox has read the app's settings. Commands that change these settings, or delete the app,
// wait for this transaction, so that the visit counts as it was accepted.
func TestCommandsWaitForInboxWriters(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.Tables() // which are this test's, not a part's
	for _, c := range []struct {
		name    string
		command func() error
		says    string
	}{
		{"another time zone", func() error {
			berlin := "Europe/Berlin"
			return in.Admin.SetApp(context.Background(), "demo", app.Settings{TZ: &berlin})
		}, "tz: app demo has counted days in the time zone UTC"},
		{"deletion", func() error { return in.Admin.DeleteApp(context.Background(), "demo") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			writes, err := in.Tables().Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = writes.Rollback(context.Background()) }()
			_, err = writes.Exec(t.Context(), `SELECT put_in_inbox(1, 'UTC', 'address', 64::smallint, '{a.example/}', '{1}', '{20260629}', '{0}',
				'{192.0.2.2}', NULL)`)
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() { done <- c.command() }()
			require.Eventually(t, func() bool {
				return in.One(t, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = hashtext('footfall.inbox')::bigint & 4294967295
					AND mode = 'ExclusiveLock' AND NOT granted
					AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) > 0
			}, dbtest.Patience, dbtest.Tick)
			// Another command that changes an app would wait for this row while it holds the lock that this one waits
			// for.
			in.One(t, `SELECT value FROM epochs WHERE name = 'apps' FOR UPDATE NOWAIT`)
			require.NoError(t, writes.Commit(t.Context()))
			if err := <-done; c.says != "" {
				require.ErrorContains(t, err, c.says)
			} else {
				require.NoError(t, err)
			}
			in.Drained(t)
		})
	}
	assert.Zero(t, in.One(t, `SELECT count(*) FROM pages`))
}

// More visits of a deleted app wait than are read at once: visits after them count, and the app's deletion continues.
func TestInboxOfAnAppThatIsGone(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	open := "open"
	require.NoError(t, in.Admin.AddApp(t.Context(), "gone", app.Settings{Access: &open}))
	end := in.keepWaiting(t)
	in.Exec(t, `SELECT put_in_inbox(id, tz, visitor, ipv6_prefix, '{a.example/}', array_fill(1, '{2000}'), array_fill(20260629, '{2000}'),
		array_fill(0, '{2000}'), array_fill('192.0.2.1'::inet, '{2000}'), NULL) FROM apps, generate_series(1, 5) WHERE name = 'gone'`)
	in.later(t, counter.Request{IP: "192.0.2.1", URI: "http://a.example/"})
	in.Exec(t, `UPDATE apps SET deleted_at = now() WHERE name = 'gone'`)
	end()
	in.Drained(t)
	assert.Equal(t, "1 1 1 2 | 1 1 1 2", row(in.Count(t, "192.0.2.1", "http://a.example/")))
	require.NoError(t, in.Admin.DeleteApp(t.Context(), "gone"))
}

// An app is held so long that its visits use up the inbox's share for such apps. Visits of other apps are never refused because
// of this. After the app is released, all accepted visits count once.
func TestInboxWithALongHeldApp(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{InboxLimit: 40})
	open := "open"
	require.NoError(t, in.Admin.AddApp(t.Context(), "held", app.Settings{Access: &open}))
	held := in.Conn(t)
	_, err := held.Exec(t.Context(), `SELECT pg_advisory_lock(hashtext('footfall.past_days'), id) FROM apps WHERE name = 'held'`)
	require.NoError(t, err)
	later := func(app string) error {
		_, err := in.Visit(t.Context(), counter.Request{App: app, IP: "192.0.2.1", URI: "http://a.example/", CountLater: true})
		return err
	}
	accepted := 0
	const rounds = 30
	for range rounds {
		for range 3 {
			if later("held") == nil {
				accepted++
			}
		}
		for range 2 { // counted rows are noticed a moment later: until then a visit may have to be retried
			require.Eventually(t, func() bool { return later("demo") == nil }, dbtest.Patience, dbtest.Tick, in.Log)
		}
		require.Eventually(t, func() bool { return in.One(t, `SELECT inbox_behind(id) FROM apps WHERE name = 'demo'`) == 0 }, dbtest.Patience,
			dbtest.Tick, in.Log)
	}
	require.Eventually(t, func() bool {
		err := later("held")
		if err == nil {
			accepted++
		}
		return err != nil && strings.Contains(err.Error(), "visits of this app cannot be counted now")
	}, dbtest.Patience, dbtest.Tick)
	assert.Equal(t, int64(accepted), in.One(t, `SELECT inbox_behind(id) FROM apps WHERE name = 'held'`))
	in.verified(t)
	_, err = held.Exec(t.Context(), `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, err)
	in.Drained(t)
	hot := `SELECT hot FROM counters JOIN pages ON id = page_id JOIN apps ON apps.id = app_id WHERE uri = 'a.example/' AND name = `
	assert.Equal(t, int64(accepted), in.One(t, hot+`'held'`))
	assert.Equal(t, int64(2*rounds), in.One(t, hot+`'demo'`))
	require.Eventually(t, func() bool { return later("held") == nil }, dbtest.Patience, dbtest.Tick)
	in.Drained(t)
	in.verified(t)
}

// The tags of a visit are decided on arrival: they are the same as if it were counted at once, even if its app is
// locked in the meantime, it is of an earlier day, or another instance counts it.
func TestInboxKeepsTags(t *testing.T) {
	t.Parallel()
	in := ways[3].newInstance(t, counter.Options{Countries: germany(t)})
	open, enough := "open", "1000000"
	for _, name := range []string{"once", "later"} {
		require.NoError(t, in.Admin.AddApp(t.Context(), name, app.Settings{Access: &open, MaxRequests: &enough}))
	}
	in.Exec(t, `UPDATE apps SET retain_days = 0`) // the clock of this test is not the database's
	send := func(r counter.Request) {
		for _, r.App = range []string{"once", "later"} {
			r.CountLater = r.App == "later"
			_, err := in.Visit(t.Context(), r)
			require.NoError(t, err)
		}
	}
	some := func(past bool) {
		for range 20 {
			r := counter.Request{Peer: netip.AddrFrom4([4]byte{192, 0, byte(2 + rand.IntN(2)), byte(rand.IntN(5))}), Agent: browser,
				Languages: []string{"de-AT", "", "fr"}[rand.IntN(3)]} //nolint:gosec // it is small
			r.Referrer = referrers[rand.IntN(len(referrers))]
			r.URI = fmt.Sprintf("http://s%d.example/%d?utm_campaign=%s", rand.IntN(2), rand.IntN(3), campaigns[rand.IntN(len(campaigns))])
			if past && rand.IntN(4) == 0 {
				r.IP, r.At = fmt.Sprintf("192.0.2.%d", rand.IntN(10)), in.Clock.Now().Add(-time.Duration(rand.IntN(72*60))*time.Minute).Format(
					time.RFC3339)
			}
			send(r)
		}
	}
	for i, referrer := range referrers { // each value comes from a different visitor
		send(counter.Request{IP: fmt.Sprintf("10.0.0.%d", i), URI: "http://s0.example/?utm_campaign=" + campaigns[i%len(campaigns)],
			Referrer: referrer})
	}
	in.Drained(t)

	some(true)
	lock := in.Conn(t)
	_, err := lock.Exec(t.Context(), `SELECT pg_advisory_lock(hashtext('footfall.past_days'), id) FROM apps WHERE name = 'later'`)
	require.NoError(t, err)
	some(false)
	require.Eventually(t, func() bool { return in.One(t, `SELECT count(*) FROM inbox`) > 1 }, dbtest.Patience, dbtest.Tick)
	in.Clock.Set(in.Clock.Now().Add(30 * time.Hour))
	some(false)
	_, err = lock.Exec(t.Context(), `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, err)
	end := in.keepWaiting(t)
	some(true)
	in.Close()
	end()
	next := plain.startOn(t, in.URL, counter.Options{})
	next.Drained(t)
	next.TagsOf(t)
	of := func(app string) []string {
		return next.list(t, `SELECT format('%s %s %s %s %s %s', p.uri, d.day_id, t.name, t.value, d.pv, d.newcomers)
			FROM tag_days d JOIN pages p ON p.id = d.page_id JOIN tags t ON t.id = d.tag_id JOIN apps a ON a.id = t.app_id
			WHERE a.name = '`+app+`' ORDER BY p.uri, d.day_id, t.name, t.value`)
	}
	require.Equal(t, of("once"), of("later"))
	require.Equal(t, int64(len(tag.Names)),
		next.One(t, `SELECT count(DISTINCT t.name) FROM tags t JOIN apps a ON a.id = t.app_id WHERE a.name = 'later'`))
	next.checkTags(t)
	next.Check(t)
}

// Unreadable tags in the inbox are dropped.
func TestInboxWithoutTags(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	for i, damage := range []string{`tag_places = NULL`, `tag_sets = NULL`, `tag_sets = '{}'`, `tag_places = '{-1}'`, `tag_places = '{2}'`,
		`tag_sets = '{"","source"}', tag_places = '{2}'`,
		`tag_sets = ARRAY[E'So urce\x1fa\nsource\x1f\n\x1f\nhour\x1f' || repeat('1', 101)]`} {
		end := in.keepWaiting(t)
		in.later(t, counter.Request{IP: fmt.Sprintf("192.0.2.%d", i), URI: "http://a.example/", Referrer: "https://news.example/"})
		in.Exec(t, `UPDATE inbox SET `+damage)
		end()
		in.Drained(t)
	}
	in.later(t, counter.Request{IP: "192.0.2.99", URI: "http://a.example/", Referrer: "https://news.example/"})
	in.Drained(t)
	require.Equal(t, []string{"a.example 20260629 hour 12 1 1", "a.example 20260629 source news.example 1 1",
		"a.example/ 20260629 source news.example 1 1"}, in.TagsOf(t))
	require.Equal(t, int64(8), in.One(t, `SELECT pv FROM counters JOIN pages ON id = page_id WHERE uri = 'a.example/'`))
}

// Rows of one app are locked for long: visits of other apps count in the meantime, and visits of this app count afterwards.
func TestInboxWithLockedRowsOfAnApp(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	open := "open"
	require.NoError(t, in.Admin.AddApp(t.Context(), "locked", app.Settings{Access: &open}))
	visits := func(later bool) {
		for _, r := range []counter.Request{{App: "locked", URI: "http://locked.example/"}, {App: "demo", URI: "http://a.example/"}} {
			r.IP, r.CountLater = "192.0.2.1", later
			require.Eventually(t, func() bool {
				_, err := in.Visit(context.Background(), r)
				if verr, ok := errors.AsType[*visit.Error](err); ok && verr.Kind == visit.Unavailable {
					return false // a statement that takes too long is cancelled
				}
				return assert.NoError(t, err)
			}, dbtest.Patience, dbtest.Tick)
		}
	}
	visits(false)
	in.Close()
	in = &instance{desk.On(t, in.URL, desk.Options{DB: db.Options{StatementTimeout: 3 * time.Second}})}
	end := in.keepWaiting(t)
	release := in.hold(t, "locked.example")
	visits(true)
	end()
	behind := func(app string) int64 { return in.One(t, `SELECT inbox_behind(id) FROM apps WHERE name = '`+app+`'`) }
	require.Eventually(t, func() bool { return behind("demo") == 0 }, dbtest.Patience, dbtest.Tick, in.Log)
	assert.Equal(t, int64(1), behind("locked"))
	visits(true)
	require.Eventually(t, func() bool { return behind("demo") == 0 }, dbtest.Patience, dbtest.Tick, in.Log)
	release()
	in.Drained(t)
	assert.Equal(t, int64(6), in.One(t, `SELECT sum(hot) FROM counters JOIN pages ON id = page_id WHERE uri LIKE '%/'`))
	in.Check(t)
}

// A visitor is erased while no service runs: the waiting visits are counted, and the address is removed.
func TestErasingEmptiesTheInbox(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	end := in.keepWaiting(t)
	in.later(t, counter.Request{IP: "192.0.2.7", URI: "http://a.example/"})
	in.Close()
	end()
	erased, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.7")
	require.NoError(t, err)
	assert.Equal(t, int64(2), erased.Targets)
	assert.Zero(t, in.One(t, `SELECT count(*) FROM inbox`))
}

// An erased address is removed from the inbox, even if visits of a locked app are before it. Visits that are not counted yet
// stay.
func TestErasedAddressLeavesTheInbox(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	open, apps := "open", []string{"demo", "locked"}
	require.NoError(t, in.Admin.AddApp(t.Context(), "locked", app.Settings{Access: &open}))
	lock := in.Conn(t)
	_, err := lock.Exec(t.Context(), `SELECT pg_advisory_lock(hashtext('footfall.past_days'), id) FROM apps WHERE name = 'locked'`)
	require.NoError(t, err)
	var accepted [2]atomic.Int64
	stop := dbtest.Crowd(t, 4, func(client, i int) {
		r := counter.Request{App: apps[i%2], IP: fmt.Sprintf("10.0.%d.%d", client, i%250), URI: "http://a.example/", CountLater: true}
		if _, err := in.Visit(context.Background(), r); assert.NoError(t, err) {
			accepted[i%2].Add(1)
		}
	})
	for range 3 {
		_, err := in.Visit(t.Context(), counter.Request{App: "locked", IP: "192.0.2.8", URI: "http://a.example/", CountLater: true})
		require.NoError(t, err)
		in.later(t, counter.Request{IP: "192.0.2.7", URI: "http://a.example/"})
		accepted[0].Add(1)
		accepted[1].Add(1)
		erased, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.7")
		require.NoError(t, err)
		assert.Equal(t, int64(2), erased.Targets)
		assert.Zero(t, in.One(t, `SELECT count(*) FROM inbox WHERE '192.0.2.7' = ANY (ips)`))
	}
	stop()
	in.verified(t)
	_, err = lock.Exec(t.Context(), `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, err)
	in.Drained(t)
	for i, app := range apps {
		assert.Equal(t, accepted[i].Load(), in.One(t, `SELECT hot FROM counters JOIN pages ON id = page_id JOIN apps ON apps.id = app_id
			WHERE uri = 'a.example/' AND name = '`+app+`'`), app)
	}
	in.Check(t)
}

// A full inbox refuses visits, and the service stays ready.
func TestInboxIsBounded(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{InboxLimit: 10})
	end := in.keepWaiting(t)
	full := counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/", CountLater: true}
	accepted := func() bool { _, err := in.Visit(t.Context(), full); return err == nil }
	for range 10 { // a visit written while the tables are read may count twice until the next reading
		require.Eventually(t, accepted, dbtest.Patience, dbtest.Tick)
	}
	_, err := in.Visit(t.Context(), full)
	verr, ok := errors.AsType[*visit.Error](err)
	require.True(t, ok, err)
	assert.Equal(t, visit.Unavailable, verr.Kind)
	assert.Contains(t, verr.Message(), "the inbox is full")
	require.NoError(t, in.Ready(t.Context()))
	end()
	require.Eventually(t, accepted, dbtest.Patience, dbtest.Tick)
	in.Drained(t)
	assert.Equal(t, "1 1 1 12 | 1 1 1 12", row(in.Count(t, "192.0.2.1", "http://a.example/")))
}

// A dump holds its snapshot until it ends. In the meantime visits count and visitors are erased, and the dump still
// contains its initial state.
func TestInboxDuringADump(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	dump, end := in.Conn(t), in.keepWaiting(t)
	in.later(t, counter.Request{IP: "192.0.2.1", URI: "http://a.example/"})
	_, err := dump.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM inbox`)
	require.NoError(t, err)
	end()
	const rounds = 12
	for range rounds - 1 {
		in.later(t, counter.Request{IP: "192.0.2.1", URI: "http://a.example/"})
		in.Drained(t)
	}
	in.later(t, counter.Request{IP: "192.0.2.7", URI: "http://a.example/"})
	erased, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.7")
	require.NoError(t, err)
	assert.Equal(t, int64(2), erased.Targets)
	assert.Zero(t, in.One(t, `SELECT count(*) FROM inbox`))
	assert.Equal(t, []int64{1}, dbtest.Column[int64](t, dump, `SELECT count(*) FROM inbox`))
	_, err = dump.Exec(t.Context(), `COMMIT`)
	require.NoError(t, err)
	in.Drained(t)
	assert.Equal(t, fmt.Sprintf("2 2 1 %d | 2 2 1 %[1]d", rounds+2), row(in.Count(t, "192.0.2.1", "http://a.example/")))
}

// A transaction has taken a number, but has not committed yet. Visits with later numbers count, and its own visit counts after
// the commit.
func TestInboxCountsLateCommits(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	writes := in.Conn(t)
	_, err := writes.Exec(t.Context(), `BEGIN; SELECT put_in_inbox(1, 'UTC', 'address', 64::smallint, '{a.example/}', '{1}', '{20260629}`+
		`', '{0}', '{192.0.2.2}', NULL)`)
	require.NoError(t, err)
	in.later(t, counter.Request{IP: "192.0.2.1", URI: "http://a.example/"})
	in.Drained(t)
	_, err = writes.Exec(t.Context(), `COMMIT`)
	require.NoError(t, err)
	in.Drained(t)
	assert.Equal(t, "2 2 1 3 | 2 2 1 3", row(in.Count(t, "192.0.2.1", "http://a.example/")))
}

// A row of the inbox that another instance has counted is not counted again. Nor is a row that was read before the
// connection was lost, because another server may respond now.
func TestInboxIsCountedByOne(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	end := in.keepWaiting(t)
	defer end()
	in.later(t, counter.Request{IP: "192.0.2.1", URI: "http://a.example/"})
	number := in.One(t, `SELECT number FROM inbox`)
	v := record.Visit{App: 1, CountsBy: db.CountingSettings{Tz: "UTC", Visitor: "address", Ipv6Prefix: 64},
		Target: visit.Target{Site: "a.example", Page: "a.example/"}, Visitor: peer, Day: 20260629, When: record.Past}
	for read, wants := range []error{record.ErrMoved, nil, record.ErrMoved} {
		r, err := record.Open(t.Context(), in.DB, record.Options{})
		require.NoError(t, err)
		generation, err := r.Reading(t.Context())
		require.NoError(t, err)
		if read == 0 {
			generation++
		}
		at := &record.Position{Position: db.Position{Row: number}, Read: generation}
		results := r.RecordChunk([]record.Step{{Visit: &v, Position: at, Next: 1}})
		r.Close()
		assert.Equal(t, wants, results[0].Err)
	}
	assert.Zero(t, in.One(t, `SELECT count(*) FROM inbox`))
	assert.Equal(t, "1 1 1 2 | 1 1 1 2", row(in.Count(t, peer.String(), "http://a.example/")))
}

// An erasure first counts the visitor's visits that were skipped a moment ago because the app was locked.
func TestErasingRetriesSkippedVisits(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	lock := in.Conn(t)
	_, err := lock.Exec(t.Context(), `SELECT pg_advisory_lock(hashtext('footfall.past_days'), 1)`)
	require.NoError(t, err)
	in.later(t, counter.Request{IP: "192.0.2.7", URI: "http://a.example/"})
	for range 3 {
		require.Eventually(t, func() bool {
			return in.One(t, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid = 1 AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) > 0
		}, dbtest.Patience, dbtest.Tick, in.Log)
		require.Eventually(t, func() bool {
			return in.One(t, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid = 1 AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == 0
		}, dbtest.Patience, dbtest.Tick, in.Log)
	}
	_, err = lock.Exec(t.Context(), `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, err)
	in.later(t, counter.Request{IP: "192.0.2.8", URI: "http://a.example/"})
	erased, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.7")
	require.NoError(t, err)
	assert.Equal(t, int64(2), erased.Targets)
	in.Drained(t)
	in.Check(t)
}

// If a batch is held up, the visits that gather behind it go to the inbox instead of waiting for their turn, and
// nothing queries the tables for their numbers.
func TestOverloadMovesWaitingVisitsToTheInbox(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{Options: record.Options{MaxWait: time.Second, Overflow: true}})
	visits := func() <-chan bool {
		later := make(chan bool, 1)
		go func() {
			a, err := in.Visit(context.Background(), counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/"})
			assert.NoError(t, err)
			later <- a.Later
		}()
		return later
	}
	sent := 0
	counted := func() string {
		for {
			in.Drained(t)
			a, err := in.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/"})
			require.NoError(t, err)
			if sent++; !a.Later { // all visits are, for a while, on a slow machine
				return row(a)
			}
		}
	}
	counted()
	tx, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `LOCK TABLE counters, pages, visitors, visits IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	first := visits() // a query of these tables waits
	in.waiters(t, 1)
	select {
	case later := <-visits():
		assert.True(t, later)
	case <-time.After(dbtest.Patience):
		require.Fail(t, "it waits for the batch before")
	}
	require.NoError(t, tx.Rollback(t.Context()))
	assert.False(t, <-first)
	sent += 2
	got := counted()
	assert.Equal(t, fmt.Sprintf("1 1 1 %d | 1 1 1 %d", sent, sent), got)
}

// A visit that would wait too long is accepted into the inbox.
func TestOverloadGoesToTheInbox(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{Options: record.Options{MaxWait: 50 * time.Millisecond, Overflow: true}})
	in.Exec(t, `UPDATE apps SET public_counts = 'count'`)
	r := counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/"}
	answered := int64(0) // visits that were counted, or accepted
	for before := (visit.Answer{Later: true}); before.Later; answered++ {
		var err error
		before, err = in.Visit(t.Context(), r)
		require.NoError(t, err)
	}
	in.Drained(t)

	tx, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }() // or it could not be closed after a failed test
	_, err = tx.Exec(t.Context(), `SELECT FROM counters FOR UPDATE`)
	require.NoError(t, err)
	var accepted, counted atomic.Int64
	var callers sync.WaitGroup
	require.Eventually(t, func() bool { // the first ones wait for the lock
		callers.Go(func() {
			a, err := in.Visit(context.Background(), r)
			switch {
			case err != nil:
				verr, ok := errors.AsType[*visit.Error](err)
				assert.True(t, ok && verr.Kind == visit.Unavailable, err)
			case a.Later:
				accepted.Add(1)
			default:
				counted.Add(1)
			}
		})
		return accepted.Load() > 0
	}, dbtest.Patience, dbtest.Tick)
	badge, err := in.Badge(t.Context(), r, true)
	require.NoError(t, err)
	assert.Equal(t, answered, badge.Page.Hot, "the visits counted before")
	accepted.Add(1)
	require.NoError(t, tx.Rollback(t.Context()))
	callers.Wait()
	in.Drained(t)
	assert.Equal(t, answered+counted.Load()+accepted.Load(),
		in.One(t, `SELECT hot FROM counters JOIN pages ON id = page_id WHERE uri = 'a.example/'`))
	in.Check(t)
}
