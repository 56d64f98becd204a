package handler

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/report"
)

// shown returns a page of the dashboard as people read it: without narrow spaces.
func (e *edge) shown(path string) string {
	e.t.Helper()
	a := e.get(path)
	require.Equal(e.t, http.StatusOK, a.status, a.body)
	return strings.ReplaceAll(html.UnescapeString(a.body), "\u202f", " ")
}

// charted returns the first and last day of a page's chart, and its number of days.
func (e *edge) charted(path string) string {
	e.t.Helper()
	var read struct{ Chart []report.Period }
	require.NoError(e.t, json.Unmarshal([]byte(e.get(path+"&panel=chart&format=json").body), &read), path)
	rows := read.Chart
	return fmt.Sprint(rows[0].FirstDay, " ", rows[len(rows)-1].LastDay, " ", len(rows))
}

// The dashboard shows nothing for days that were not counted, and does not treat an unfinished day as a whole one.
func TestDashboardJudgesWholeCountedDays(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const site, up, down = "/dash/demo/hhui.top?", "▲", "▼"
	share := e.share("demo", "hhui.top") + "?"

	for _, ip := range []string{"192.0.2.1", "192.0.2.2"} {
		e.counting(0, ip, "http://hhui.top/")
	}
	t.Run("the first day", func(t *testing.T) {
		for _, path := range []string{site, site + "page=/", site + "range=90d", site + "range=month", share, "/dash/demo?"} {
			page := e.shown(path)
			assert.Regexp(t, "<strong>Sat 29 June 2019</strong>, counted since (12:00|29 June 2019)[;<]", page, path)
			for _, never := range []string{up, down, "on average", "from 0", "Falling", "Rising", "days earlier"} {
				assert.NotContains(t, page, never, path)
			}
		}
		assert.Contains(t, e.shown(site+"period=day"), ">2 visitors so far.<")
		assert.Equal(t, "20190629 20190629 1", e.charted(site+"range=30d&period=day"))
		assert.Contains(t, e.shown(site+"range=last-month"), "Counting began on 29 June 2019, after these days.")
		assert.Equal(t, http.StatusBadRequest, e.get(site+"range=last-month&panel=chart&format=csv").status)
	})

	for day := 1; day < 59; day++ {
		for _, ip := range []string{"192.0.2.1", "192.0.2.2"} {
			e.counting(day, ip, "http://hhui.top/")
		}
		if day == 57 { // 25 August
			e.counting(day, "192.0.2.1", "http://hhui.top/new")
			e.counting(day, "192.0.2.1", "http://young.example/")
		}
	}
	e.counting(59, "192.0.2.1", "http://hhui.top/") // on the morning of 27 August, a Tuesday
	t.Run("90 days, 60 of them counted", func(t *testing.T) {
		for _, path := range []string{site, share} {
			page := e.shown(path + "range=90d")
			assert.Contains(t, page, "<strong>29 June – 27 August 2019</strong>, counted since 29 June 2019")
			assert.Contains(t, page, "2 visitors a day on average. Most: Sun 30 June 2019 (2); fewest: Sun 30 June 2019 (2). Steady: both halves "+
				"have the same number.")
			assert.NotContains(t, page, up)
			assert.NotContains(t, page, down)
		}
		assert.Equal(t, "20190629 20190827 60", e.charted(site+"range=90d"))
		page := e.shown(site + "range=30d&compare=year")
		assert.Contains(t, page, "<strong>29 July – 27 August 2019</strong>; ")
		assert.Contains(t, page, "Not compared with 30 July – 27 August 2018: the first full day counted was 30 June 2019.")
		assert.Equal(t, 1, strings.Count(page, "30 June 2019"), "one note")
		assert.Contains(t, e.shown(site+"range=30d"), "Not compared with 24 June – 22 July 2019: ")
		page = e.shown(site + "range=30d&compare=right")
		assert.Contains(t, page, "Not compared with 29 June – 27 July 2019: ", "the first day is not whole")
		page = e.shown(site + "from=2019-07-30&to=2019-08-26&compare=right")
		assert.Contains(t, page, "Compared with 2–29 July 2019. ")
		assert.Contains(t, e.shown(site+"from=2019-08-16&to=2019-08-25"),
			"Compared with 2–11 August 2019, leaving out 4 days in between, so that Sundays line up with Sundays. ")
		assert.Contains(t, e.shown(site+"from=2019-08-16&to=2019-08-25&compare=right"), "Compared with 6–15 August 2019. ")
	})
	t.Run("this morning", func(t *testing.T) {
		page := e.shown(site + "range=7d")
		assert.Contains(t, page, "<strong>21–27 August 2019</strong>; ")
		assert.Contains(t, page, "The 6 full days are compared with 14–19 August 2019. Days follow UTC time; today is not over yet.")
		assert.Contains(t, page, `title="from 12 to 12"`, "visits")
		assert.NotContains(t, page, down)
		assert.Contains(t, page, "Mon 26 August 2019: 2 visitors, 0 new; 2 page views; 7 days earlier: 2<")
		assert.Contains(t, page, "Tue 27 August 2019: 1 visitor, 0 new; 1 page view<", "today")

		page = e.shown(site + "range=today&period=day")
		assert.Contains(t, page, "<strong>Tue 27 August 2019</strong>; ")
		assert.Contains(t, page, "Will be compared once the day is over. ")
		assert.NotContains(t, page, down)
		assert.Contains(t, page, ">1 visitor so far.<", "and nothing of the days before it")

		weeks := e.shown(site + "from=2019-08-05&to=2019-08-27&period=week")
		assert.Contains(t, weeks, "26–27 August 2019: 2 visitors, 0 new; 3 page views; 28 days earlier: 2 in 1 day<",
			"a week that is not over")
		assert.Contains(t, weeks, "19–25 August 2019: 2 visitors, 0 new; 15 page views; 28 days earlier: 2<")
	})
	t.Run("a page has the days of its site", func(t *testing.T) {
		page := e.shown(site + "range=7d&page=/new")
		assert.Contains(t, page, "0.17 visitors a day on average", "nobody came to it on five of six days")
		assert.Contains(t, page, up, "nobody came to it in the week before")
		assert.Equal(t, "20190629 20190827 60", e.charted(site+"range=all&page=/new"))
	})
	t.Run("each site of an app has days of its own", func(t *testing.T) {
		page := e.shown("/dash/demo?range=7d")
		assert.Contains(t, page, "The 6 full days are compared with")
		assert.Contains(t, page, `title="from 12 to 14"`, "of all sites as one, which were counted all the time")
		_, sites, _ := strings.Cut(page, `<table class="rows sites">`)
		sites, _, _ = strings.Cut(sites, "</table>")
		old, young, _ := strings.Cut(sites, ">young.example<")
		assert.Contains(t, old, "0%")
		assert.Contains(t, young, "since 25 Aug<")
		assert.NotContains(t, sites, up)
		assert.NotContains(t, sites, down)
	})
	t.Run("a visit of an earlier day moves the first day", func(t *testing.T) {
		now := time.Now() // the kept days follow the database's clock
		e.Clock.Set(now)
		for _, at := range []time.Time{now.AddDate(0, 0, -1), now.AddDate(0, 0, -5)} {
			a := e.get("/visit?" + url.Values{"app": {"demo"}, "ip": {"192.0.2.3"}, "uri": {"http://late.example/"},
				"at": {at.UTC().Format(time.RFC3339)}}.Encode())
			require.Equal(t, http.StatusOK, a.status, a.body)
			assert.Contains(t, e.shown("/dash/demo/late.example?"), "</strong>, counted since "+at.UTC().Format("2 January 2006"))
		}
	})
}
