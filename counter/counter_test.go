package counter_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/record"
	"footfall/visit"
)

func TestSixSteps(t *testing.T) { everyWay(t, testSixSteps) }

func testSixSteps(t *testing.T, w way) {
	in := w.newInstance(t, counter.Options{})
	steps := []struct{ ip, uri, want string }{
		{"192.168.0.1", "http://hhui.top/home", "1 1 1 1 | 1 1 1 1"},
		{"192.168.0.1", "http://hhui.top/home", "1 1 1 2 | 1 1 1 2"},
		{"192.168.0.1", "http://hhui.top/index", "1 1 1 3 | 1 1 1 1"},
		{"192.168.0.2", "http://hhui.top/index", "2 2 2 4 | 2 2 2 2"},
		{"192.168.0.2", "http://hhui.top/home", "2 2 2 5 | 2 2 2 3"},
	}
	for _, s := range steps {
		require.Equal(t, s.want, row(in.Count(t, s.ip, s.uri)))
	}
	in.Clock.Set(in.Clock.Now().Add(24 * time.Hour))
	require.Equal(t, "3 2 2 6 | 3 2 2 4", row(in.Count(t, "192.168.0.2", "http://hhui.top/home")))
	in.Check(t)
}

// One line per rule: consecutive visits, and the numbers of the last one.
func TestRules(t *testing.T) {
	t.Parallel()
	type v struct{ ip, uri string }
	in := both.newInstance(t, counter.Options{})
	for i, c := range []struct {
		rule   string
		visits []v
		want   string
	}{
		{"a mapped address is the IPv4 address", []v{{"192.0.2.1", "http://a/"}, {"::ffff:192.0.2.1", "http://a/"}}, "1 1 1 2 | 1 1 1 2"},
		{"IPv6 counts by its /64", []v{{"2001:db8::1", "http://a/"}, {"2001:db8::ffff:2", "http://a/"}}, "1 1 1 2 | 1 1 1 2"},
		{"another /64 is another visitor", []v{{"2001:db8::1", "http://a/"}, {"2001:db8:0:1::1", "http://a/"}}, "2 2 2 2 | 2 2 2 2"},
		{"two ports are two sites", []v{{"192.0.2.1", "http://a:81/"}, {"192.0.2.1", "http://a:82/"}}, "1 1 1 1 | 1 1 1 1"},
		{"http and https are one target", []v{{"192.0.2.1", "http://a/x"}, {"192.0.2.1", "https://a/x"}}, "1 1 1 2 | 1 1 1 2"},
		{"a site's uv counts a visitor of two pages once", []v{{"192.0.2.1", "http://a/x"}, {"192.0.2.1", "http://a/y"}}, "1 1 1 2 | 1 1 1 1"},
		{"ranks are a target's own", []v{{"192.0.2.1", "http://a/x"}, {"192.0.2.2", "http://a/x"}, {"192.0.2.2", "http://a/y"}},
			"2 2 2 3 | 1 1 1 1"},
		{"the home page is not the site", []v{{"192.0.2.1", "http://a/x"}, {"192.0.2.1", "http://a"}}, "1 1 1 2 | 1 1 1 1"},
		{"a rank stays", []v{{"192.0.2.1", "http://a/"}, {"192.0.2.2", "http://a/"}, {"192.0.2.1", "http://a/"}}, "2 2 1 3 | 2 2 1 3"},
	} {
		host := strings.NewReplacer("//a", fmt.Sprintf("//rule%d.example", i)) // separate hosts, so that the rules can share a database
		var last visit.Answer
		for _, v := range c.visits {
			last = in.Count(t, v.ip, host.Replace(v.uri))
		}
		require.Equal(t, c.want, row(last), c.rule)
	}
	in.Check(t)
}

func TestDaysAreTheAppsOwn(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	open, tz := "open", "Pacific/Kiritimati" // 14 hours ahead
	require.NoError(t, admin.NewAdmin(in.DB, nil).AddApp(t.Context(), "island", app.Settings{Access: &open, TZ: &tz}))
	count := func(at string) string {
		now, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		in.Clock.Set(now)
		a, err := in.Visit(t.Context(), counter.Request{App: "island", IP: "192.0.2.1", URI: "http://a/"})
		require.NoError(t, err)
		return row(a)
	}
	require.Equal(t, "1 1 1 1 | 1 1 1 1", count("2026-06-29T09:59:59Z"))
	require.Equal(t, "2 1 1 2 | 2 1 1 2", count("2026-06-29T10:00:00Z"))
	require.Equal(t, "2 1 1 3 | 2 1 1 3", count("2026-06-30T09:59:59Z"))
}

// If the clocks of two instances are on both sides of midnight, the later day counts.
func TestDaysNeverRunBackwards(t *testing.T) {
	t.Parallel()
	ahead := both.newInstance(t, counter.Options{})
	behind := both.startOn(t, ahead.URL, counter.Options{})
	midnight := time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC)
	ahead.Clock.Set(midnight.Add(time.Second))
	behind.Clock.Set(midnight.Add(-time.Second))

	require.Equal(t, "1 1 1 1 | 1 1 1 1", row(behind.Count(t, "192.0.2.1", "http://a/")))
	require.Equal(t, "2 1 1 2 | 2 1 1 2", row(ahead.Count(t, "192.0.2.1", "http://a/")))
	require.Equal(t, "2 1 1 3 | 2 1 1 3", row(behind.Count(t, "192.0.2.1", "http://a/")), "the earlier day is over")
	require.Equal(t, "3 2 2 4 | 3 2 2 4", row(ahead.Count(t, "192.0.2.2", "http://a/")))
	require.Equal(t, "3 2 2 5 | 3 2 2 5", row(behind.Count(t, "192.0.2.2", "http://a/")), "the visitor came first after midnight")
	ahead.Check(t)
}

// If the clocks of two instances are on both sides of midnight, page and site of a visit count on the same day.
func TestPageAndSiteCountOnOneDay(t *testing.T) {
	t.Parallel()
	ahead := both.newInstance(t, counter.Options{})
	behind := both.startOn(t, ahead.URL, counter.Options{})
	midnight := time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC)
	ahead.Clock.Set(midnight.Add(50 * time.Millisecond))
	behind.Clock.Set(midnight.Add(-50 * time.Millisecond))
	require.Equal(t, "1 1 1 1 | 1 1 1 1", row(ahead.Count(t, "192.0.2.1", "http://a/one")))
	require.Equal(t, "1 1 1 2 | 1 1 1 1", row(behind.Count(t, "192.0.2.1", "http://a/home")))
	require.Equal(t, "2 2 2 3 | 2 2 2 2", row(behind.Count(t, "192.0.2.2", "http://a/home")))
	require.Equal(t, "1 1 1 1 | 1 1 1 1", row(behind.Count(t, "192.0.2.2", "http://b/")), "another site's day has not turned")
	behind.Clock.Set(midnight.Add(time.Hour))
	require.Equal(t, "2 2 1 4 | 2 2 1 3", row(behind.Count(t, "192.0.2.1", "http://a/home")), "it is the same day")
	require.Equal(t, []string{"a 20260630\n", "a/home 20260630\n", "a/one 20260630\n", "b 20260629\n", "b/ 20260629\n"}, ahead.Table(t,
		`SELECT p.uri, d.day_id FROM days d JOIN pages p ON p.id = d.page_id ORDER BY p.uri COLLATE "C"`))
	require.NotZero(t, behind.Metric(t, "footfall_batch_faults_total"))
	behind.warnsOfNoBatch(t)
	ahead.Check(t)
}

// An app that distinguishes visitors by day identifies a visitor of the later day by that day's key.
func TestVisitorOfTheLaterDay(t *testing.T) {
	t.Parallel()
	ahead := plain.newInstance(t, counter.Options{})
	behind := plain.startOn(t, ahead.URL, counter.Options{})
	daily, open := "daily", "open"
	require.NoError(t, ahead.Admin.AddApp(t.Context(), "d", app.Settings{Visitor: &daily, Access: &open}))
	midnight := time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC)
	ahead.Clock.Set(midnight.Add(time.Second))
	behind.Clock.Set(midnight.Add(-time.Second))
	one := func(in *instance, ip string) string {
		a, err := in.Visit(t.Context(), counter.Request{App: "d", IP: ip, URI: "http://a/"})
		require.NoError(t, err)
		return row(a)
	}
	require.Equal(t, "1 1 1 1 | 1 1 1 1", one(ahead, "192.0.2.1"))
	require.Equal(t, "1 1 1 2 | 1 1 1 2", one(behind, "192.0.2.1"))
	require.Equal(t, "2 2 2 3 | 2 2 2 3", one(behind, "192.0.2.2"))
	require.Equal(t, "2 2 2 4 | 2 2 2 4", one(ahead, "192.0.2.2"))
}

// Many callers count on two instances, one of which has a clock that is always slightly late, while days pass quickly.
func TestPageAndSiteCountOnOneDayUnderConcurrency(t *testing.T) {
	t.Parallel()
	ahead := both.newInstance(t, counter.Options{})
	behind := both.startOn(t, ahead.URL, counter.Options{})
	var calls atomic.Int64
	visited := func(in *instance, ip, uri string, lag int64) {
		in.Clock.Set(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(calls.Add(1)-lag)/40))
		_, err := in.Visit(context.Background(), counter.Request{App: "demo", IP: ip, URI: uri})
		assert.NoError(t, err)
	}
	var wg sync.WaitGroup
	for client := range 8 {
		wg.Go(func() {
			for i := range 25 {
				ip := fmt.Sprintf("10.0.%d.%d", client, i)
				visited(ahead, ip, "http://a/one", 0)
				visited(behind, ip, "http://a/home", 20)
			}
		})
	}
	wg.Wait()
	require.Empty(t, ahead.Table(t, `
		SELECT p.uri, v.day_id, host(v.ip)
		FROM visits v JOIN pages p ON p.id = v.page_id AND p.site_id IS NOT NULL
		LEFT JOIN visits s ON s.page_id = p.site_id AND s.day_id = v.day_id AND s.ip = v.ip
		WHERE s.ip IS NULL`), "pages on a day on which the site has none")
	ahead.Check(t)
}

// A day far after the prepared ones: its partition is made, and the visit counts.
func TestMissingDayIsMade(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.1", "http://a/")
	in.Clock.Set(in.Clock.Now().AddDate(0, 0, 60))
	require.Error(t, in.Ready(t.Context()), "no partition for today")
	require.Equal(t, "2 1 1 2 | 2 1 1 2", row(in.Count(t, "192.0.2.1", "http://a/")))
	in.Check(t)
}

func TestCountsCountNothing(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	ask := func(r counter.Request) string {
		r.App, r.URI = "demo", "http://a/x"
		a, err := in.Counts(t.Context(), r)
		require.NoError(t, err)
		return row(a)
	}
	require.Equal(t, "0 0 0 0 | 0 0 0 0", ask(counter.Request{HasNoVisitor: true}), "never counted")
	in.Count(t, "192.0.2.1", "http://a/x")
	in.Count(t, "192.0.2.2", "http://a/x")
	for range 2 {
		require.Equal(t, "2 2 0 2 | 2 2 0 2", ask(counter.Request{HasNoVisitor: true}))
		require.Equal(t, "2 2 2 2 | 2 2 2 2", ask(counter.Request{IP: "192.0.2.2"}))
		require.Equal(t, "2 2 0 2 | 2 2 0 2", ask(counter.Request{IP: "192.0.2.3"}), "never came")
	}
}

// The checks are in the contract's order, and a refused visit stores nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	require.NoError(t, admin.NewAdmin(in.DB, nil).AddApp(t.Context(), "shop", app.Settings{Sites: []string{"Shop.example:8080"},
		PublicCounts: ptr("answers")}))
	for _, c := range []struct {
		name string
		r    counter.Request
		kind visit.Kind
		says string
	}{
		{"no app", counter.Request{URI: "x"}, visit.Invalid, "app: it is missing"},
		{"unknown app before all else", counter.Request{App: "nobody", IP: "x", URI: "x"}, visit.NotFound, `no app "nobody"`},
		{"an assertion before a bad address", counter.Request{App: "shop", IP: "x", URI: "x"}, visit.Forbidden,
			"ip: app shop accepts it only with a key of the scope assert"},
		{"a bad address", counter.Request{App: "demo", IP: "1.2.3", URI: "http://a/"}, visit.Invalid, "ip: "},
		{"a zone", counter.Request{App: "demo", IP: "fe80::1%eth0", URI: "http://a/"}, visit.Invalid, "ip: it has a zone"},
		{"no uri", counter.Request{App: "demo", IP: "192.0.2.1"}, visit.Invalid, "uri: it is missing"},
		{"a bad uri before its host", counter.Request{App: "shop", Peer: peer, Agent: browser, URI: "javascript:1"}, visit.Invalid, "uri: "},
		{"a host not listed", counter.Request{App: "shop", Peer: peer, Agent: browser, URI: "http://other.example/"}, visit.Forbidden,
			"uri: app shop does not count the site other.example"},
		{"a port not listed", counter.Request{App: "shop", Peer: peer, Agent: browser, URI: "http://shop.example/"}, visit.Forbidden,
			"shop.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := in.Visit(t.Context(), c.r)
			var verr *visit.Error
			require.ErrorAs(t, err, &verr)
			require.Equal(t, c.kind, verr.Kind)
			require.Contains(t, verr.Message(), c.says)
		})
	}
	var stored int
	require.NoError(t, in.Tables().QueryRow(t.Context(), "SELECT (SELECT count(*) FROM pages) + (SELECT count(*) FROM batches)").Scan(&stored))
	require.Zero(t, stored)

	a, err := in.Visit(t.Context(), counter.Request{App: "shop", Peer: peer, Agent: browser, URI: "http://shop.example:8080/a"})
	require.NoError(t, err)
	require.Equal(t, "1 1 1 1 | 1 1 1 1", row(a))
}

// Every running counter has an app's new settings when the command returns, even if no instance is watching.
func TestAppsAreFresh(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	other := plain.startOn(t, in.URL, counter.Options{})
	for _, one := range []*instance{in, other} {
		_, err := one.Visit(t.Context(), counter.Request{App: "late", Peer: peer, Agent: browser, URI: "http://a/"})
		require.Error(t, err)
	}
	require.NoError(t, admin.NewAdmin(in.DB, nil).AddApp(t.Context(), "late", app.Settings{Sites: []string{"a"}}))
	for _, one := range []*instance{in, other} {
		_, err := one.Visit(t.Context(), counter.Request{App: "late", Peer: peer, Agent: browser, URI: "http://a/"})
		require.NoError(t, err)
	}
	// Cut every watcher: until it is back, each request queries the database.
	in.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	_, err := admin.NewAdmin(dbtest.Open(t, in.URL, db.Options{}), nil).AddSites(t.Context(), "late", []string{"b"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := in.Visit(t.Context(), counter.Request{App: "late", Peer: peer, Agent: browser, URI: "http://b/"})
		return err == nil
	}, dbtest.Patience, dbtest.Tick)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	open, prefix, berlin, moon := "open", 48, "Europe/Berlin", "Moon/Crater"
	ctx := context.Background()

	err := admin.NewAdmin(in.DB, nil).AddApp(ctx, "x", app.Settings{TZ: &moon, IPv6Prefix: new(int),
		Sites: []string{"a/b", "ok.example", "c d"}, KeepQuery: []string{""}})
	for _, fault := range []string{"Moon/Crater", "ipv6-prefix: 0", `"a/b"`, `"c d"`, "keep-query"} {
		require.ErrorContains(t, err, fault, "all faults at once")
	}
	require.ErrorContains(t, admin.NewAdmin(in.DB, nil).AddApp(ctx, "Bad Name", app.Settings{Access: &open}), "name: ")
	require.ErrorContains(t, admin.NewAdmin(in.DB, nil).AddApp(ctx, "none", app.Settings{}), "list its sites")
	require.ErrorContains(t, admin.NewAdmin(in.DB, nil).AddApp(ctx, "demo", app.Settings{Access: &open}), "there is an app demo already")
	require.ErrorContains(t, admin.NewAdmin(in.DB, nil).SetApp(ctx, "gone", app.Settings{Access: &open}), `no app "gone"`)

	require.NoError(t, admin.NewAdmin(in.DB, nil).SetApp(ctx, "demo", app.Settings{TZ: &berlin, IPv6Prefix: &prefix,
		KeepQuery: []string{"id"}}))
	in.Count(t, "2001:db8::1", "http://a/?id=1")
	a := in.Count(t, "2001:db8:0:ffff::1", "http://a/?x=2&id=1")
	require.Equal(t, "1 1 1 2 | 1 1 1 2", row(a), "one /48, one kept parameter")

	err = admin.NewAdmin(in.DB, nil).SetApp(ctx, "demo", app.Settings{TZ: new(string)})
	require.Error(t, err)
	for field, change := range map[string]app.Settings{
		"tz": {TZ: ptr("UTC")}, "visitor": {Visitor: ptr("id")}, "ipv6-prefix": {IPv6Prefix: ptr(64)},
	} {
		err = in.Admin.SetApp(ctx, "demo", change)
		var verr *visit.Error
		require.True(t, errors.As(err, &verr) && verr.Kind == visit.Invalid, "the visitor mode is fixed once visits were counted: %v", err)
		require.ErrorContains(t, err, field+": app demo has ")
	}
}

// The visitors on a site now are counted once, whichever instances counted them, for some minutes. Visits with a
// given time, and erased visitors, are left out.
func TestHere(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	other := plain.startOn(t, in.URL, counter.Options{})
	const home, about = "http://a.example/", "http://a.example/about"
	here := func(site string) int64 { return in.One(t, `SELECT report.here('demo', $1)`, site) }
	come := func() {
		for _, ip := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::1"} {
			in.Count(t, ip, home)
			in.Count(t, ip, about)
			other.Count(t, ip, home)
		}
		other.Count(t, "192.0.2.1", "http://b.example/")
		in.later(t, counter.Request{IP: "192.0.2.3", URI: home})
		in.CountAs(t, counter.Request{App: "demo", IP: "192.0.2.4", URI: home, At: in.Clock.Now().Format("2006-01-02T15:04:05Z07:00")})
	}
	told := func(site string, visitors int64) {
		t.Helper()
		require.Eventually(t, func() bool { return here(site) == visitors }, dbtest.Patience, dbtest.Tick)
	}
	come()
	in.Drained(t)
	told("b.example", 1)
	told("a.example", 4)
	require.Zero(t, here("c.example"))

	_, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.1")
	require.NoError(t, err)
	assert.Zero(t, in.One(t, `SELECT count(*) FROM here WHERE '192.0.2.1' = ANY (visitors)`))
	assert.Zero(t, here("b.example"))

	come() // this visitor was already counted today
	told("b.example", 1)
	told("a.example", 4)
	in.Exec(t, `UPDATE here SET came_at = came_at - interval '5 minutes'`)
	assert.Zero(t, here("a.example"))
	require.Eventually(t, func() bool { // an instance may write the visitors above in two parts, the second one now
		in.Exec(t, `UPDATE here SET came_at = came_at - interval '5 minutes'`)
		return in.One(t, `SELECT count(*) FROM here`) == 0
	}, dbtest.Patience, dbtest.Tick, "rows are deleted although nobody visits")
	come()
	told("b.example", 1)
	told("a.example", 4)
	require.NoError(t, in.Admin.DeleteApp(t.Context(), "demo"))
	assert.Zero(t, in.One(t, `SELECT count(*) FROM here`))
}

// Hundreds of clients visit few targets on two instances that share a database, across midnight. Every promise is
// checked on the responses only.
func TestConcurrentAnswers(t *testing.T) { everyWay(t, testConcurrentAnswers) }

func testConcurrentAnswers(t *testing.T, w way) {
	const clients = 200
	each := dbtest.LongOrShort(25, 10)
	a := w.newInstance(t, counter.Options{})
	b := w.startOn(t, a.URL, counter.Options{Options: record.Options{Clock: a.Clock.Now}})
	instances := []*instance{a, b}

	epoch := time.Now()
	var model desk.Model
	for day := range 2 { // no visit is in flight at midnight, so that the day of each visit is certain
		var wg sync.WaitGroup
		for c := range clients {
			rng := rand.New(rand.NewPCG(uint64(c), uint64(day)))
			wg.Go(func() {
				for range each {
					s := desk.Seen{
						Visitor: fmt.Sprintf("10.0.0.%d", rng.IntN(60)),
						Page:    fmt.Sprintf("site%d.example/%d", rng.IntN(2), rng.IntN(3)),
						Day:     int32(day), //nolint:gosec // 0 or 1
						Began:   int64(time.Since(epoch)),
					}
					var err error
					s.Answer, err = instances[rng.IntN(2)].Visit(t.Context(), counter.Request{App: "demo", IP: s.Visitor, URI: "http://" + s.Page})
					if err != nil {
						t.Error(err)
						return
					}
					s.Got = int64(time.Since(epoch))
					model.Counted(s)
				}
			})
		}
		wg.Wait()
		a.Clock.Set(a.Clock.Now().Add(24 * time.Hour))
	}

	model.Answers(t)
	a.Check(t)
	require.Equal(t, model.Totals(), a.TotalsOf(t))
}
