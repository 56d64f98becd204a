package handler

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
)

// brings counts a visit with a referrer by the visitor with this number, and does not wait for the sums.
func (e *edge) brings(visitor int, uri, referrer string) {
	e.t.Helper()
	a := e.get("/visit?" + url.Values{"app": {"demo"}, "ip": {fmt.Sprintf("192.0.2.%d", visitor)}, "uri": {uri},
		"referrer": {referrer}}.Encode())
	require.Equal(e.t, http.StatusOK, a.status, a.body)
}

// newTaggedEdge returns an edge with visitors of two pages, from a few sources and countries.
func newTaggedEdge(t *testing.T) *edge {
	t.Helper()
	e := newEdge(t)
	for visitor, from := range []string{"https://www.google.com/", "https://www.google.de/", "https://wiki.example/",
		"https://xn--r8jz45g.jp/", ""} {
		e.brings(visitor, "http://hhui.top/home?utm_campaign=%3Cb%3Espring", from)
		e.brings(visitor, "http://hhui.top/index", "")
	}
	e.brings(9, "http://hhui.top/index", "https://news.example/")
	e.Close() // also adds up the tags
	_, err := e.Conn(t).Exec(t.Context(), `
		WITH made AS (
			INSERT INTO footfall.tags (app_id, name, value)
			SELECT app_id, 'country', unnest('{DE,JP}'::text[]) FROM footfall.pages WHERE uri = 'hhui.top' RETURNING id, value
		)
		INSERT INTO footfall.tag_days (page_id, day_id, tag_id, pv, newcomers)
		SELECT p.id, 20190629, m.id, length(m.value) + (m.value = 'DE')::integer, 2 FROM made AS m, footfall.pages AS p WHERE p.uri = 'hhui.top'`)
	require.NoError(t, err)
	return e
}

var (
	tagTable = regexp.MustCompile(`(?s)<section aria-labelledby="(from|with)"[^>]*>.*?</section>`)
	tagRow   = regexp.MustCompile(`(?s)<th scope="row">.*?<bdi[^>]*>(.*?)</bdi>.*?<td class="n">(.*?)</td>.*?<td class="n">(.*?)</td>`)
)

// tagsOn returns the rows of a panel of a page: value, visits and new visitors. nil: there is no such panel.
func (e *edge) tagsOn(path, panel string) (rows []string) {
	e.t.Helper()
	a := e.get(path + map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "columns=more")
	require.Equal(e.t, http.StatusOK, a.status, a.body)
	for _, found := range tagTable.FindAllStringSubmatch(a.body, -1) {
		if found[1] == panel {
			rows = []string{}
			for _, row := range tagRow.FindAllStringSubmatch(found[0], -1) {
				rows = append(rows, html.UnescapeString(strings.Join(row[1:], " ")))
			}
		}
	}
	return rows
}

func TestDashboardShowsTags(t *testing.T) {
	t.Parallel()
	e := newTaggedEdge(t)
	const site = "/dash/demo/hhui.top?range=today"
	assert.Equal(t, []string{"google 2 2", "wiki.example 1 1", "例え.jp 1 1", "news.example 1 1", "Direct 1 1"}, e.tagsOn(site, "from"))
	assert.Equal(t, []string{"<b>spring 5 5", "Unknown 1 1"}, e.tagsOn(site+"&from_by=campaign", "from"))
	assert.Equal(t, []string{"Germany 3 2", "Japan 2 2", "Unknown 1 2"}, e.tagsOn(site+"&from_by=country", "from"))
	assert.Equal(t, []string{"Unknown 6 6"}, e.tagsOn(site, "with"))
	assert.Equal(t, []string{"google 2 2", "wiki.example 1 1", "例え.jp 1 1", "Direct 1 1"},
		e.tagsOn(site+"&page=/home&from_by=country", "from"), "pages have no country")
	assert.Equal(t, []string{"<b>spring 5 5"}, e.tagsOn(site+"&page=/home&from_by=campaign", "from"), "nobody came without")
	assert.Nil(t, e.tagsOn(site+"&page=/home", "with"))
	assert.Empty(t, e.tagsOn("/dash/demo/hhui.top?from=2019-06-29&to=2019-06-29&from_by=language", "with")[1:])

	body := e.get(site).body
	assert.Contains(t, body, "add up exactly to the visits")
	of := regexp.MustCompile(`<a href="([^"]*)"><bdi>google`).FindStringSubmatch(body)
	require.NotNil(t, of)
	under := e.get(html.UnescapeString(of[1])).body
	assert.Equal(t, []string{"google 2 2", "Direct 0 0"}[:1], e.tagsOn(html.UnescapeString(of[1]), "from"))
	assert.Contains(t, under, `aria-current="true"><bdi>google`, "what was clicked stays marked")
	to := regexp.MustCompile(`<a href="([^"]*#pages)">Pages to which it brought visitors`).FindStringSubmatch(under)
	require.NotNil(t, to)
	brought := e.get(strings.TrimSuffix(html.UnescapeString(to[1]), "#pages")).body
	assert.Contains(t, brought, "Pages to which <bdi>google</bdi> brought visitors")
	assert.Equal(t, []string{"hhui.top/home"}, pagesOn(brought))
	assert.Contains(t, e.get(site+"&value=nowhere.example").body, "This source or campaign brought no visitors to the site’s pages")
	for _, wrong := range []string{"&value=DE&from_by=country", "&value=google&page=/home", "&value=google&find=x", "&value=%00", "&value=%ff",
		"&value=" + strings.Repeat("v", 300), "&from_by=browser", "&with_by=x", "&page=/home&panel=with&format=csv",
		"&panel=tag-pages&format=csv"} {
		assert.Equal(t, http.StatusBadRequest, e.get(site+wrong).status, wrong)
	}

	// A link shows tags of sites, but none of pages: for a page with one visitor they would identify that visitor.
	for _, link := range []string{e.share("demo", "hhui.top") + "?range=today", e.share("demo", "") + "/hhui.top?range=today"} {
		assert.Len(t, e.tagsOn(link, "from"), 5)
		assert.NotContains(t, e.get(link).body, "brought visitors")
		assert.Nil(t, e.tagsOn(link+"&page=/home", "from"))
		assert.Equal(t, http.StatusOK, e.get(link+"&panel=from&format=csv").status)
		assert.Equal(t, http.StatusBadRequest, e.get(link+"&page=/home&panel=from&format=csv").status)
		assert.Equal(t, http.StatusForbidden, e.get(link+"&value=google").status)
		assert.Equal(t, http.StatusForbidden, e.get(link+"&value=google&panel=tag-pages&format=csv").status)
	}

	// If not all rows fit, a link leads to all of them.
	assert.NotRegexp(t, `All [0-9]+<`, e.get(site).body)
	assert.Contains(t, e.get(site+"&from_by=language").body, "Unknown")
	conn := e.Conn(t)
	_, err := conn.Exec(t.Context(), `
		WITH made AS (INSERT INTO footfall.tags (app_id, name, value) SELECT app_id, 'source', 'h' || n || '.example'
		FROM footfall.pages, generate_series(1, 150) AS n WHERE uri = 'hhui.top' RETURNING id)
		INSERT INTO footfall.tag_days (page_id, day_id, tag_id, pv, newcomers) SELECT p.id, 20190629, m.id, 1, 0
		FROM made AS m, footfall.pages AS p WHERE p.uri = 'hhui.top';
		UPDATE footfall.days SET hot = hot + 150, pv = pv + 150;
		DELETE FROM footfall.tags WHERE name = 'country'`)
	require.NoError(t, err)
	assert.Len(t, e.tagsOn(site, "from"), 9+1)
	all := regexp.MustCompile(`<a href="([^"]*)">All 155</a>`).FindStringSubmatch(e.get(site).body)
	require.NotNil(t, all)
	list := html.UnescapeString(all[1])
	assert.Len(t, e.tagsOn(list, "from"), 100)
	assert.Contains(t, e.get(list).body, "1–100 of 155")
	assert.Nil(t, e.tagsOn(list, "with"))
	assert.Contains(t, e.get(list).body, "Go to the numbers")
	assert.Len(t, e.tagsOn(list+"&skip=100", "from"), 54+1)
	assert.Equal(t, 1+155, strings.Count(e.get(site+"&panel=from&format=csv").body, "\n"))
	assert.Contains(t, e.get(site+"&from_by=country").body, "tor-geoipdb", "none is known")
	assert.NotContains(t, e.get(e.share("demo", "hhui.top")+"?range=today&from_by=country").body, "tor-geoipdb")
}

// A day by hour is compared with the same hours of the other day. Today, only hours that have ended are compared.
func TestDashboardShowsHours(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	visits := func(day int, hours ...int) {
		for i, hour := range hours {
			now := noon.Truncate(24*time.Hour).AddDate(0, 0, day).Add(time.Duration(hour) * time.Hour)
			e.Clock.Set(now)
			e.brings(10*day+i, "http://hhui.top/home", "")
			e.brings(10*day+i, "http://hhui.top/later", "")
		}
	}
	visits(0, 12) // the first day, which is incomplete
	visits(1, 3, 9, 9, 15, 15, 23)
	visits(7, 12)
	visits(8, 9, 10, 10, 10)
	e.Close() // also adds up hours
	now := noon.Truncate(24*time.Hour).AddDate(0, 0, 8).Add(15 * time.Hour)
	e.Clock.Set(now)
	const today = "/dash/demo/hhui.top?range=today"
	chart := e.get(today).body
	for _, said := range []string{
		"4 visitors so far, up to 15:00; 7 days earlier, 3. Busiest hour, by each visitor’s first visit of the day: 10:00 – 11:00, 3 visitors.",
		`title="from 3 to 4"><span class="change up">`, ">by 15:00<",
		`<th scope="row" data-n="3">03:00 – 04:00</th><td class="n">0</td><td class="n">0</td><td class="n">1</td>`,
		`<th scope="row" data-n="10"><a href="/dash/demo/hhui.top?where=hour%3A10&amp;range=today">10:00 – 11:00</a></th><td class="n">3</td>` +
			`<td class="n">3</td><td class="n">0</td>`,
		`<th scope="row" data-n="15">15:00 – 16:00</th><td class="n">0</td><td class="n">0</td><td class="n">–</td>`,
		"10:00 – 11:00: 3 visitors, 3 new; 7 days earlier: 0</title>", "22:00 – 23:00: 0 visitors, 0 new</title>",
	} {
		assert.Contains(t, chart, said)
	}
	assert.Contains(t, e.get(today+"&compare=none").body, "10:00 – 11:00, 3 visitors.</p>")
	first := e.get("/dash/demo/hhui.top?from=2019-06-29&to=2019-06-29").body
	assert.Contains(t, first, "Sat 29 June 2019</strong>, counted since 12:00</p>", "the site was first counted later: the visits' hour")
	for at, since := range map[string]string{
		"2019-06-29 12:59:31Z": "12:59", "2019-06-29 13:00:00Z": "12:00", "2019-06-28 12:30:00Z": "12:00",
	} {
		e.Exec(t, `UPDATE footfall.pages SET created_at = $1::text::timestamptz WHERE uri = 'hhui.top'`, at)
		assert.Contains(t, e.get("/dash/demo/hhui.top?from=2019-06-29&to=2019-06-29").body, "counted since "+since+"</p>", at)
	}
	for _, never := range []string{e.get("/dash/demo/hhui.top?from=2019-07-06&to=2019-07-06").body, first} {
		assert.NotContains(t, never, "days earlier", "with the first day nothing is compared, nor it with others")
	}
	assert.Contains(t, e.get("/dash/demo/hhui.top?from=2019-06-30&to=2019-06-30").body,
		"Busiest hour, by each visitor’s first visit of the day: 09:00 – 10:00, 2 visitors.</p>", "no day before it was counted")
	assert.Contains(t, e.get(today+"&panel=hours&format=csv").body, "15,0,0,2,0,20190629\r\n")
	assert.Contains(t, e.get("/dash/demo/hhui.top?range=today").body, `period=day">day</a>`)
	for _, wrong := range []string{today + "&panel=chart&format=csv", today + "&page=/home&panel=hours&format=csv",
		"/dash/demo/hhui.top?panel=hours&format=csv"} {
		assert.Equal(t, http.StatusBadRequest, e.get(wrong).status, wrong)
	}
}

func pagesOn(body string) (pages []string) {
	for _, found := range listedPage.FindAllStringSubmatch(body, -1) {
		pages = append(pages, found[1])
	}
	return pages
}

// Tags that the app does not count and has no values for are not offered. The app's own tags are offered.
func TestTagsThatAreNotCountedAreNotOffered(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	counts := func(names ...string) {
		e.administer(func(ctx context.Context, a *admin.Admin) error {
			return a.SetApp(ctx, "demo", app.Settings{Tags: names})
		})
	}
	const site = "/dash/demo/hhui.top?range=today"
	counts("none")
	e.brings(1, "http://hhui.top/home", "https://wiki.example/")
	for _, path := range []string{site, site + "&from_by=country&with_by=device&all=from", e.share("demo", "hhui.top") + "?range=today"} {
		body := e.get(path).body
		assert.Contains(t, body, "Page views")
		assert.NotRegexp(t, `Sources|Devices|tor-geoipdb|values of a tag`, body, path)
	}
	assert.Contains(t, e.get(site+"&period=hour").body, "Visitors by hour")
	assert.Equal(t, http.StatusBadRequest, e.get(site+"&panel=from&format=csv").status)
	assert.Contains(t, e.get("/api/apps/demo/tags?site=hhui.top").body, "use hour")

	counts("source", "plan")
	e.brings(2, "http://hhui.top/home", "https://wiki.example/")
	for _, path := range []string{site, e.share("demo", "hhui.top") + "?range=today"} {
		assert.Equal(t, []string{"Unknown 2 2"}, e.tagsOn(path+"&with_by=plan", "with"))
		assert.NotContains(t, e.get(path).body, "tor-geoipdb")
	}
	assert.Equal(t, http.StatusBadRequest, e.get(site+"&with_by=browser").status)
	assert.Nil(t, e.tagsOn(site+"&page=/home", "with"))
	assert.Equal(t, http.StatusOK, e.get("/api/apps/demo/tags?site=hhui.top&name=plan").status)
	a := e.get("/api/apps/demo/tags?site=hhui.top&name=country")
	assert.Equal(t, http.StatusBadRequest, a.status)
	assert.Contains(t, a.body, "use source, hour, plan")

	counts("none")
	e.Close() // also adds up the tags
	assert.Equal(t, []string{"wiki.example 1 1", "Direct 1 1"}, e.tagsOn(site, "from"))
	assert.Nil(t, e.tagsOn(site, "with"))
}
