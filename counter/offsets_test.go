package counter_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/record"
	"footfall/visit"
)

// offset sets one offset of the app demo.
func (in *instance) offset(t *testing.T, uri string, hot, pv, uv int64) {
	t.Helper()
	_, err := in.Admin.SetOffsets(t.Context(), "demo", []admin.Offset{{URI: uri, Hot: hot, PV: pv, UV: uv}}, false)
	require.NoError(t, err)
}

// shownAs checks that all kinds of requests return the same numbers for a page and its site after another visit, and
// returns these numbers.
func (in *instance) shownAs(t *testing.T, ip, uri string, counted bool) string {
	t.Helper()
	ctx := t.Context()
	ask := counter.Request{App: "demo", IP: ip, URI: uri, ID: "id of " + ip + uri, OnlyCounted: counted}
	told := map[string]string{}
	tell := func(way string, a visit.Answer, err error) {
		require.NoError(t, err, way)
		told[row(a)] += way + ", "
	}
	a, err := in.Visit(ctx, ask)
	tell("visit", a, err)
	a, err = in.Visit(ctx, ask)
	require.True(t, a.Repeated)
	tell("repeated", a, err)
	skipped := ask
	skipped.ID, skipped.Prefetch = "", true
	a, err = in.Visit(ctx, skipped)
	require.NotEmpty(t, a.Skipped)
	tell("skipped", a, err)
	a, err = in.Counts(ctx, ask)
	tell("counts", a, err)
	many, _, err := in.CountsForPages(ctx, ask, []string{uri})
	tell("counts of many", many[0].Answer, err)
	g, err := in.AuthorizeCounting(ctx, counter.Request{App: "demo", Peer: peer, OnlyCounted: counted})
	require.NoError(t, err)
	numbers, err := g.Numbers(ctx, []record.Visit{*chunkOf(t, g, nil, counter.Item{URI: uri, IP: ip})[0].Visit})
	tell("numbers of visits", numbers[0], err)
	s, err := in.Badge(ctx, counter.Request{App: "demo", URI: uri, Peer: netip.MustParseAddr("192.0.2.9"), OnlyCounted: counted}, false)
	s.Site.Rank, s.Page.Rank = a.Site.Rank, a.Page.Rank // badges have no ranks
	tell("badge", s, err)
	require.Len(t, told, 1, "%v", told)
	return row(a)
}

// Offsets are added to every all-time total in a response, and to ranks. The tables of counted visits do not contain them, and
// Counted leaves them out.
func TestOffsets(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	other := plain.startOn(t, in.URL, counter.Options{})
	open := "read"
	require.NoError(t, in.Admin.SetApp(t.Context(), "demo", app.Settings{PublicCounts: &open}))
	const page = "http://a.example/page"
	require.Equal(t, "1 1 1 1 | 1 1 1 1", in.shownAs(t, "192.0.2.1", page, false))

	in.offset(t, page, 1000, 300, 200)
	in.offset(t, "a.example", 5000, 700, 600) // the site's own offset, not the sum of its pages' offsets
	require.Equal(t, "702 602 602 5002 | 302 202 202 1002", in.shownAs(t, "192.0.2.2", page, false))
	require.Equal(t, "703 603 603 5003 | 303 203 203 1003", other.shownAs(t, "192.0.2.3", page, false))
	require.Equal(t, "4 4 4 4 | 4 4 4 4", other.shownAs(t, "192.0.2.4", page, true))
	never, err := in.Counts(t.Context(), counter.Request{App: "demo", IP: "192.0.2.99", URI: page})
	require.NoError(t, err)
	require.Equal(t, "704 604 0 5004 | 304 204 0 1004", row(never), "a visitor who never came has no rank")

	// A page can have its offset before it exists, and has it at its first visit.
	in.offset(t, "a.example/new", 50, 50, 50)
	anybody, err := in.Counts(t.Context(), counter.Request{App: "demo", HasNoVisitor: true, URI: "http://a.example/new?x=1"})
	require.NoError(t, err)
	require.Equal(t, "704 604 0 5004 | 50 50 0 50", row(anybody))
	require.Equal(t, "704 604 601 5005 | 51 51 51 51", in.shownAs(t, "192.0.2.1", "http://a.example/new", false))

	// Setting an offset again replaces it. After its removal the counted numbers remain.
	in.offset(t, page, 10, 10, 10)
	require.Equal(t, "704 604 601 5006 | 14 14 11 15", other.shownAs(t, "192.0.2.1", page+"#again", false))
	removed, err := in.Admin.RemoveOffset(t.Context(), "demo", page)
	require.NoError(t, err)
	require.Equal(t, admin.Offset{URI: "a.example/page", Hot: 10, PV: 10, UV: 10}, removed)
	_, err = in.Admin.RemoveOffset(t.Context(), "demo", page)
	require.ErrorContains(t, err, "has no offset for a.example/page")
	_, err = in.Admin.RemoveOffset(t.Context(), "demo", "a.example")
	require.NoError(t, err)
	one, err := other.Counts(t.Context(), counter.Request{App: "demo", IP: "192.0.2.1", URI: page})
	require.NoError(t, err)
	require.Equal(t, "4 4 1 6 | 4 4 1 5", row(one))
	list, err := in.Admin.Offsets(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, []admin.Offset{{URI: "a.example/new", Hot: 50, PV: 50, UV: 50}}, list)
	in.verified(t)
}

// A visit that counts for (other) returns the numbers of (other), without the page's offset.
func TestOffsetsAndPagesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{MaxNewPages: ptr("2"), Bots: ptr("count")})
	_, err := in.Admin.SetOffsets(t.Context(), "shop", []admin.Offset{
		{URI: "shop.example", Hot: 10, PV: 10, UV: 10}, {URI: "shop.example/a", Hot: 20, PV: 20, UV: 20},
		{URI: "shop.example/b", Hot: 30, PV: 30, UV: 30},
	}, false)
	require.NoError(t, err)
	for _, c := range []struct{ path, want string }{
		{"/a", "11 11 11 11 | 21 21 21 21"}, {"/b", "11 11 11 12 | 1 1 1 1"}, {"/b", "11 11 11 13 | 1 1 1 2"},
	} {
		a, err := in.Visit(t.Context(), stranger("192.0.2.1", c.path))
		require.NoError(t, err)
		require.Equal(t, c.want, row(a))
	}
	asked := stranger("192.0.2.1", "/b")
	asked.HasNoVisitor = true
	a, err := in.Counts(t.Context(), asked)
	require.NoError(t, err)
	require.Equal(t, "11 11 0 13 | 30 30 0 30", row(a))
}

// After the command has returned, every answer of any instance includes the new offset, without mixing old and new.
// The counted numbers are not affected.
func TestOffsetsAreSetWhileCounting(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	other := plain.startOn(t, in.URL, counter.Options{})
	var set atomic.Int64 // the offset of the last command that has returned
	var sent atomic.Int64
	disperse := dbtest.Crowd(t, 6, func(client, i int) {
		atLeast := set.Load()
		a, err := []*instance{in, other}[client%2].Visit(context.Background(),
			counter.Request{App: "demo", IP: fmt.Sprintf("192.0.%d.%d", client, i%200), URI: "http://a/"})
		if assert.NoError(t, err) {
			sent.Add(1)
			step := a.Page.Hot / 1_000_000_000
			assert.GreaterOrEqual(t, step, atLeast)
			assert.Equal(t, step, a.Page.PV/1_000_000_000)
			assert.Equal(t, step, a.Page.UV/1_000_000_000)
			assert.Equal(t, step, a.Page.Rank/1_000_000_000)
			assert.Equal(t, step, a.Site.Hot/1_000_000_000, "one statement set both")
			assert.LessOrEqual(t, a.Page.Rank, a.Page.UV)
		}
	})
	for step := range int64(20) {
		n := (step + 1) * 1_000_000_000
		_, err := in.Admin.SetOffsets(t.Context(), "demo", []admin.Offset{{URI: "a", Hot: n, PV: n, UV: n}, {URI: "a/", Hot: n, PV: n, UV: n}},
			false)
		require.NoError(t, err)
		set.Store(step + 1)
	}
	disperse()
	a, err := in.Counts(t.Context(), counter.Request{App: "demo", HasNoVisitor: true, URI: "http://a/", OnlyCounted: true})
	require.NoError(t, err)
	require.Equal(t, sent.Load(), a.Page.Hot)
	in.verified(t)
}

// An offset is deleted with its page or app, and stays when a visitor is erased.
func TestOffsetsGoWithWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.offset(t, "a.example/page", 100, 100, 100)
	in.offset(t, "a.example", 300, 300, 300)
	in.Count(t, "192.0.2.1", "http://a.example/page")
	_, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.1")
	require.NoError(t, err)
	require.Equal(t, "302 302 302 302 | 102 102 102 102", row(in.Count(t, "192.0.2.1", "http://a.example/page")),
		"an erased visitor is new, behind all others")

	epoch := func() int64 { return in.One(t, `SELECT value FROM epochs WHERE name = 'offsets'`) }
	require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", "a.example/page"))
	require.Equal(t, "302 302 302 303 | 1 1 1 1", row(in.Count(t, "192.0.2.1", "http://a.example/page")))
	before := epoch()
	require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", "a.example/page"))
	require.Equal(t, before, epoch(), "without an offset no instance has to read all offsets")
	in.offset(t, "a.example/never", 9, 8, 7)
	require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", "a.example/never"), "of a page that nobody has visited")
	require.ErrorContains(t, in.Admin.DeletePage(t.Context(), "demo", "a.example/never"), "has no page a.example/never")
	in.verified(t)

	require.NoError(t, in.Admin.DeleteApp(t.Context(), "demo"))
	require.Zero(t, in.One(t, `SELECT count(*) FROM offsets`))
}

// An instance that does not watch apps at the moment includes offsets too: each request checks whether they have
// changed.
func TestOffsetsWithoutWatching(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), plain.newInstance(t, counter.Options{})

	// A watching instance holds the present epoch. From here on no instance can hold it.
	conn := c.Conn(t)
	require.Eventually(t, func() bool {
		var held bool
		require.NoError(t, conn.QueryRow(ctx, `
			SELECT pg_try_advisory_lock(hashtext('footfall.apps'), value::integer)
			FROM epochs, (SELECT count(pg_terminate_backend(pid)) FROM pg_locks
				WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = hashtext('footfall.apps')::bigint & 4294967295
				  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS cut
			WHERE name = 'apps'`).Scan(&held))
		return held
	}, dbtest.Patience, dbtest.Tick)
	_, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtext('footfall.apps'), value::integer + n) FROM epochs, generate_series(1, 2) AS n
		WHERE name = 'apps'`)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, `INSERT INTO offsets (app_id, uri, hot, pv, uv) SELECT id, 'a/', 7, 7, 7 FROM apps`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // after it has noticed the cut connection
		a, err := c.Counts(ctx, counter.Request{App: "demo", HasNoVisitor: true, URI: "http://a/"})
		return err == nil && a.Page.Hot == 7
	}, dbtest.Patience, dbtest.Tick)
	_, err = conn.Exec(ctx, `UPDATE offsets SET hot = 100, pv = 100, uv = 100`)
	require.NoError(t, err)
	for n := range 3 {
		a, err := c.Visit(ctx, counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a/"})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("1 1 1 %d | 101 101 101 %d", n+1, n+101), row(a))
	}
}
