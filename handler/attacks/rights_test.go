package attacks

import (
	"context"
	"net/http"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/visit"
)

var rightsAttacks = []attack{
	{
		name:     "an erased visitor",
		sent:     "their visits and `/counts` to two instances that remembered them, as soon as `visitor erase` returned; an id's, too",
		answered: "rank 0; then they are a new visitor, rank uv + 1",
		stored:   "a row with target and rank; no address; sums and others' ranks as before",
		story:    func(w *world) { erasedVisitor(w); erasedID(w) },
	},
	{
		name:     "a deleted page",
		sent:     "visits to it, at two instances that remembered it, as soon as `page delete` returned",
		answered: "200, counted from 1 again",
		stored:   "its sums on example.com/(deleted); the site's as before", story: deletedPage,
	},
	{
		name:     "a deleted app",
		sent:     "visits, queries and keys at two instances, as soon as `app delete` returned",
		answered: "404 app: there is no app \"blog\"", stored: "nothing", story: deletedApp,
	},
	{
		name:     "addresses where none are kept",
		sent:     "visits to two apps with `--visitor hashed`, and to one with `--visitor daily`, from the same addresses",
		answered: "200, exact numbers",
		stored:   "no address in any table; no visitor of one app is found in another", story: hashedVisitors,
	},
	{
		name:     "a visitor followed from day to day",
		sent:     "visits on two days to an app with `--visitor daily`, then the table day_keys without the first day",
		answered: "200, a new visitor each day",
		stored:   "two visitors, and nothing left that leads to the first", story: dailyVisitors,
	},
}

// rankOf returns the numbers of /counts for the page and a visitor.
func (w *world) rankOf(to via, app, who, key string) string {
	w.t.Helper()
	_, page := w.counted(w.send(to, "GET /counts?app="+app+"&uri={uri}&"+who+bearerOf+key))
	return page
}

func erasedVisitor(w *world) {
	w.page++
	for _, to := range []via{direct, second} { // both remember all three
		for _, ip := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"} {
			w.counted(w.send(to, visitShop+"&ip="+ip+bearerOf+"{assert}"))
		}
	}
	erased, err := w.Admin.EraseVisitor(context.Background(), "shop", "203.0.113.2")
	require.NoError(w.t, err)
	assert.EqualValues(w.t, 2, erased.Targets)
	for _, to := range []via{direct, second} {
		assert.Equal(w.t, "3 3 0 6", w.rankOf(to, "shop", "ip=203.0.113.2", "{read}"))
		assert.Equal(w.t, "3 3 3 6", w.rankOf(to, "shop", "ip=203.0.113.3", "{read}"))
	}
	assert.Zero(w.t, w.One(w.t, `SELECT (SELECT count(*) FROM visitors WHERE ip = '203.0.113.2') + (SELECT count(*) FROM visits
		WHERE ip = '203.0.113.2')`))
	assert.EqualValues(w.t, 2, w.One(w.t, `SELECT count(*) FROM erased_ranks WHERE rank = 2`))

	_, page := w.counted(w.send(second, visitShop+"&ip=203.0.113.2"+bearerOf+"{assert}"))
	assert.Equal(w.t, "4 4 4 7", page, "a new visitor")
	_, page = w.counted(w.send(direct, visitShop+"&ip=203.0.113.2"+bearerOf+"{assert}"))
	assert.Equal(w.t, "4 4 4 8", page)
	_, page = w.counted(w.send(direct, visitShop+"&ip=203.0.113.3"+bearerOf+"{assert}"))
	assert.Equal(w.t, "4 4 3 9", page, "others keep their ranks")
}

func erasedID(w *world) {
	w.page++
	const visitIDs = "GET /visit?app=ids&uri={uri}&visitor="
	for _, to := range []via{direct, second} {
		w.counted(w.send(to, visitIDs+"alice"+bearerOf+"{ids}"))
		w.counted(w.send(to, visitIDs+"bob"+bearerOf+"{ids}"))
	}
	_, err := w.Admin.EraseVisitor(context.Background(), "ids", "alice")
	require.NoError(w.t, err)
	for _, to := range []via{direct, second} {
		assert.Equal(w.t, "2 2 0 4", w.rankOf(to, "ids", "visitor=alice", "{ids}"))
		assert.Equal(w.t, "2 2 2 4", w.rankOf(to, "ids", "visitor=bob", "{ids}"))
	}
	_, page := w.counted(w.send(second, visitIDs+"alice"+bearerOf+"{ids}"))
	assert.Equal(w.t, "3 3 3 5", page)
	_, page = w.counted(w.send(direct, visitIDs+"alice"+bearerOf+"{ids}"))
	assert.Equal(w.t, "3 3 3 6", page)
}

func deletedPage(w *world) {
	w.page++
	const demo = "GET /visit?app=demo&uri={uri}&ip=203.0.113."
	for _, to := range []via{direct, second} {
		w.counted(w.send(to, demo+"1"))
		w.counted(w.send(to, demo+"2"))
	}
	require.NoError(w.t, w.Admin.DeletePage(context.Background(), "demo", w.expand("{uri}")))
	for _, to := range []via{direct, second} {
		_, page := w.counted(w.send(to, "GET /counts?app=demo&uri={uri}&ip=203.0.113.1"))
		assert.Equal(w.t, "0 0 0 0", page)
	}
	site, page := w.counted(w.send(second, demo+"2"))
	assert.Equal(w.t, "1 1 1 1", page)
	assert.Equal(w.t, "2 2 2 5", site)
	_, page = w.counted(w.send(direct, demo+"2"))
	assert.Equal(w.t, "1 1 1 2", page)
	gathered := w.tables()["demo example.com/(deleted)"]
	assert.Equal(w.t, row{hot: 4, pv: 2, uv: 2, visitors: []string{"203.0.113.1", "203.0.113.2"}, days: gathered.days}, gathered)
}

func deletedApp(w *world) {
	w.page++
	for _, to := range []via{direct, second} {
		w.counted(w.send(to, "GET /visit?app=blog&uri={uri}&ip=203.0.113.1"+bearerOf+"{foreign}"))
	}
	require.NoError(w.t, w.Admin.DeleteApp(context.Background(), "blog"))
	before := w.tables()
	for _, to := range []via{direct, second} {
		for _, request := range []string{
			"GET /visit?app=blog&uri={uri}", "GET /visit?app=blog&uri={uri}&ip=203.0.113.1" + bearerOf + "{foreign}",
			"GET /counts?app=blog&uri={uri}", "GET /api/apps/blog/sites",
			"GET /visit?app=blog&uri={uri}\nOrigin: https://example.com",
		} {
			a := w.send(to, request)
			assert.Equal(w.t, http.StatusNotFound, a.status)
			assert.Contains(w.t, a.body, inJSON(`app: there is no app "blog"`))
			assert.Empty(w.t, a.header.Get(allowOrigin))
		}
		assert.Equal(w.t, http.StatusUnauthorized, w.send(to, forged+bearerOf+"{foreign}").status)
	}
	assert.Empty(w.t, w.tables().since(before))
	for target := range before {
		assert.NotContains(w.t, target, "blog ")
	}
}

func hashedVisitors(w *world) {
	w.page++
	for _, app := range []string{"hashed", "masked", "daily"} {
		for i, ip := range []string{"198.51.100.20", "198.51.100.21", "198.51.100.20"} {
			_, page := w.counted(w.send(proxied, "GET /visit?app="+app+"&uri={uri}"+from+ip))
			assert.Equal(w.t, []string{"1 1 1 1", "2 2 2 2", "2 2 1 3"}[i], page)
		}
		assert.EqualValues(w.t, 4,
			w.One(w.t, `SELECT count(*) FROM visitors v JOIN pages p ON p.id = v.page_id JOIN apps a ON a.id = p.app_id WHERE a.name = $1
				AND v.ip << 'fd00::/8'`, app))
	}
	assert.Zero(w.t, w.One(w.t, `
		SELECT (SELECT count(*) FROM visitors WHERE ip << '198.51.100.0/24') + (SELECT count(*) FROM visits WHERE ip << '198.51.100.0/24')
		     + (SELECT count(*) FROM pages WHERE uri LIKE '%198.51%') + (SELECT count(*) FROM keys WHERE keys::text LIKE '%198.51%')`))
	assert.Zero(w.t, w.One(w.t, `
		SELECT count(*)
		FROM visitors v JOIN pages p ON p.id = v.page_id
		JOIN visitors w USING (ip) JOIN pages q ON q.id = w.page_id AND q.app_id <> p.app_id
		WHERE v.ip << 'fd00::/8'`))
}

func dailyVisitors(w *world) {
	w.page++
	const request = "GET /visit?app=daily&uri={uri}" + from
	const who, other = "198.51.100.20", "198.51.100.25"
	w.counted(w.send(proxied, request+who))
	w.counted(w.send(proxied, request+other))
	first := w.Clock.Now()
	w.pass(24 * time.Hour)
	_, page := w.counted(w.send(proxied, request+who))
	assert.Equal(w.t, "3 3 3 3", page, "another visitor")
	w.counted(w.send(proxied, request+other))
	erase := func(ip string) int64 {
		erased, err := w.Admin.EraseVisitor(context.Background(), "daily", ip)
		require.NoError(w.t, err)
		return erased.Targets
	}
	found, err := w.Admin.ShowVisitor(context.Background(), "daily", other)
	require.NoError(w.t, err)
	assert.Len(w.t, found.Targets, 4, "at the site and the page, on both days: their keys are there")
	assert.EqualValues(w.t, 4, erase(other))
	// Upkeep does this at the end of a day: without its key, the address no longer leads to that day's visitor.
	_, err = w.Tables().Exec(context.Background(), `DELETE FROM day_keys WHERE day_id = $1`, visit.DayOf(first, time.UTC))
	require.NoError(w.t, err)
	assert.EqualValues(w.t, 2, erase(who), "at the site and the page, on the second day")
	assert.Zero(w.t, erase(who), "the first day's visitor cannot be found, even with the secret")
	assert.Len(w.t, w.tables()[w.expand("daily {page}")].visitors, 1)
}
