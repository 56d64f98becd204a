package counter_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
)

// A page has the title that most of its last visitors have seen, if at least two of them have. Strangers without an Origin of
// the site do not vote, and apps without titles keep none.
func TestTitles(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{Sites: []string{"shop.example", "www.shop.example"}, IPv6Prefix: ptr(128)})
	key, err := in.Admin.AddKey(t.Context(), "shop", []app.Scope{app.ScopeAssert})
	require.NoError(t, err)
	visitor := 0
	from := func(address, path, title, origin string) {
		t.Helper()
		r := stranger(address, path)
		r.Title, r.Origin = title, origin
		_, err := in.Visit(t.Context(), r)
		require.Equal(t, err != nil, slices.Contains([]string{"null", "http://shop.example:8080", "https://shop.example/"}, origin), "%v", err)
	}
	sees := func(path string, titles ...string) {
		t.Helper()
		for _, title := range titles {
			visitor++
			from(fmt.Sprintf("192.0.%d.%d", visitor/250+2, visitor%250+1), path, title, "https://shop.example")
		}
	}
	titles := func() string {
		return strings.Join(desk.Column[string](t, in.Desk,
			`SELECT uri || ' ' || title FROM report.pages WHERE title IS NOT NULL ORDER BY uri`), ", ")
	}
	// told checks the titles after all earlier votes have been written.
	told := func(want string) {
		t.Helper()
		sees("/z", "end", "end")
		require.Eventually(t, func() bool { return strings.Contains(titles(), "shop.example/z end") }, dbtest.Patience, dbtest.Tick)
		in.Exec(t, `DELETE FROM titles WHERE title = 'end'`)
		in.Clock.Set(in.Clock.Now().Add(time.Hour))
		require.Equal(t, want, titles())
	}

	sees("/a", "Prices")
	for i := range 9 {
		from("192.0.2.99", "/b", "Alone", "https://shop.example")
		from(fmt.Sprintf("2001:db8::%d", i), "/b6", "Alone", "https://shop.example")
	}
	for _, origin := range []string{"", "null", "https://www.shop.example", "http://shop.example:8080", "https://shop.example/"} {
		from("192.0.2.100", "/c", "Forged", origin)
		from("192.0.2.101", "/c", "Forged", origin)
	}
	for _, ip := range []string{"192.0.2.1", "192.0.2.2"} {
		in.CountAs(t, counter.Request{App: "demo", IP: ip, URI: "https://shop.example/", Title: "Anybody's", Origin: "https://shop.example"})
	}
	sees("/n", "\x00 \u202e", "\x00 \u202e")
	sees("/a", "Prices", "Evil", "\nPrices ")
	vouched := counter.Request{App: "shop", Key: key, IP: "192.0.2.200", URI: "https://shop.example/d", Title: strings.Repeat("é", 500)}
	for _, r := range []counter.Request{vouched, {App: "shop", Key: key, IP: "192.0.2.201", Event: "signup", Title: "no page"}} {
		_, err = in.Visit(t.Context(), r)
		require.NoError(t, err)
	}
	told("shop.example/a Prices, shop.example/d " + strings.Repeat("é", 100))
	in.Exec(t, `SELECT put_titles(ARRAY(SELECT page_id FROM titles), ARRAY(SELECT 'Of another instance' FROM titles),
		(SELECT min(told_at) FROM titles) + interval '59 minutes')`)
	assert.NotContains(t, titles(), "Of another instance", "within the hour")

	// Two instances that write titles of the same pages lock them in one order.
	const put = `SELECT put_titles(ARRAY(SELECT page_id FROM titles ORDER BY page_id DESC OFFSET $1 LIMIT $2), '{x,x}',
		(SELECT min(told_at) FROM titles))`
	first, second := in.Conn(t), in.Conn(t) // the second looks up pages one by one, as if there were many
	_, err = second.Exec(t.Context(), `SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off`)
	require.NoError(t, err)
	begun, err := first.Begin(t.Context())
	require.NoError(t, err)
	_, err = begun.Exec(t.Context(), put, 1, 1)
	require.NoError(t, err)
	both := make(chan error)
	go func() { _, err := second.Exec(t.Context(), put, 0, 2); both <- err }()
	dbtest.AwaitWaiting(t, in.Tables(), 1)
	_, err = begun.Exec(t.Context(), put, 0, 1)
	require.NoError(t, errors.Join(err, begun.Rollback(t.Context())))
	require.NoError(t, <-both)

	// Deletion: after an erasure no vote of the visitor is left, and a page's title goes with the page.
	sees("/e", "Once")
	_, err = in.Admin.EraseVisitor(t.Context(), "shop", fmt.Sprintf("192.0.%d.%d", visitor/250+2, visitor%250+1))
	require.NoError(t, err)
	sees("/e", "Once")
	require.NoError(t, in.Admin.DeletePage(t.Context(), "shop", "shop.example/d"))
	sees("/d", "Again")
	told("shop.example/a Prices")

	off, on := "off", "on"
	require.NoError(t, in.Admin.SetApp(t.Context(), "shop", app.Settings{Titles: &off}))
	assert.Empty(t, titles())
	in.Exec(t, `SELECT put_titles(ARRAY(SELECT id FROM pages WHERE uri LIKE '%/a'), '{late}', now())`)
	assert.Empty(t, titles(), "of an instance that has not heard of it")
	sees("/b", "Kept by nobody", "Kept by nobody")
	require.NoError(t, in.Admin.SetApp(t.Context(), "shop", app.Settings{Titles: &on}))
	sees("/a", "Prices", "Prices", "Prices")
	told("shop.example/a Prices")
	require.NoError(t, in.Admin.DeleteApp(t.Context(), "shop"))
	assert.Zero(t, in.One(t, `SELECT count(*) FROM titles`))
}
