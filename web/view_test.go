package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/report"
	"footfall/visit"
	"footfall/web/words"
)

// blog is an app on a Sunday.
var blog = App{Name: "blog", Today: 20261122, Zone: time.UTC, tags: map[string][]string{"from": fromTags, "with": {"device", "browser"}}}

func viewOf(t *testing.T, site, query string) view {
	t.Helper()
	q, err := url.ParseQuery(query)
	require.NoError(t, err)
	v, err := newView(blog, site, q)
	require.NoError(t, err, query)
	v.since, v.countedSince = 20100101, 20091231
	return v
}

func TestRangesAndTheirNeighbours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, in, before, earlier, later string }{
		{"", "20261024 20261122", "20260919 20261018", "?from=2026-09-24&to=2026-10-23", ""},
		{"range=today", "20261122 20261122", "20261115 20261115", "?range=yesterday", ""},
		{"range=yesterday", "20261121 20261121", "20261114 20261114", "?from=2026-11-20&to=2026-11-20", "?range=today"},
		{"range=7d", "20261116 20261122", "20261109 20261115", "?from=2026-11-09&to=2026-11-15", ""},
		{"range=90d", "20260825 20261122", "20260526 20260823", "?from=2026-05-27&to=2026-08-24", ""},
		{"range=month", "20261101 20261122", "20261004 20261025", "?range=last-month", ""},
		{"range=last-month", "20261001 20261031", "20260827 20260926", "?from=2026-09-01&to=2026-09-30", "?range=month"},
		{"range=year", "20260101 20261122", "20250206 20251228", "?from=2025-01-01&to=2025-12-31", ""},
		{"range=all", "0 20261122", "", "", ""},
		{"from=2026-02-01&to=2026-02-28", "20260201 20260228", "20260104 20260131", "?from=2026-01-01&to=2026-01-31",
			"?from=2026-03-01&to=2026-03-31"},
		{"from=2026-02-01&to=2026-02-27", "20260201 20260227", "20260104 20260130", "?from=2026-01-05&to=2026-01-31",
			"?from=2026-02-28&to=2026-03-26"},
		{"from=2025-01-01&to=2025-12-31", "20250101 20251231", "20231227 20241225", "?from=2024-01-01&to=2024-12-31", "?range=year"},
		{"from=2026-11-09&to=2026-11-15", "20261109 20261115", "20261102 20261108", "?from=2026-11-02&to=2026-11-08", "?range=7d"},
		{"from=2026-11-20&to=2026-12-24", "20261120 20261122", "20261113 20261115", "?from=2026-11-17&to=2026-11-19", ""},
		{"to=2026-11-20", "20261120 20261120", "20261113 20261113", "?from=2026-11-19&to=2026-11-19", "?range=yesterday"},
		{"range=30d&compare=year", "20261024 20261122", "20251025 20251123", "?from=2026-09-24&to=2026-10-23&compare=year", ""},
		{"range=30d&compare=right", "20261024 20261122", "20260924 20261023", "?from=2026-09-24&to=2026-10-23&compare=right", ""},
		{"range=30d&compare=none", "20261024 20261122", "", "?from=2026-09-24&to=2026-10-23&compare=none", ""},
	} {
		v := viewOf(t, "", c.query)
		assert.Equal(t, c.in, days(v.days), c.query)
		before := ""
		if back := v.daysBefore(); back > 0 {
			before = days(v.days.Earlier(back))
			if v.compare != "right" {
				assert.Equal(t, visit.DateOf(v.days.From).Weekday(), visit.DateOf(v.days.Earlier(back).From).Weekday(), c.query)
			}
		}
		assert.Equal(t, c.before, before, c.query)
		bar := v.rangeBar()
		assert.Equal(t, c.earlier, strings.TrimPrefix(bar.Earlier, "/dash/blog"), c.query)
		assert.Equal(t, c.later, strings.TrimPrefix(bar.Later, "/dash/blog"), c.query)
	}
}

func days(in visit.Range) string { return fmt.Sprint(in.From, " ", in.To) }

// A link leads back to the view that it was made for.
func TestLinksKeepTheView(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"", "range=7d", "range=all", "from=2026-11-01&to=2026-11-05", "compare=year&chart=views&period=week&by=pv&sort=site", "compare=right&by=change&columns=more",
		"page=/a+b%26c%3Fd%25zz/é", "page=/%2525&range=year", "all=with&with_by=browser&skip=100", "all&from_by=campaign&value=a+%26%25",
		"page=/x&all=from",
	} {
		for _, site := range []string{"blog.example", "blog.example:8080", "[2001:db8::1]", "(other)", "(events)"} {
			v := viewOf(t, site, query)
			at, err := url.Parse(v.link())
			require.NoError(t, err)
			assert.Equal(t, "/dash/blog/"+site, at.Path)
			again := viewOf(t, site, at.RawQuery)
			assert.Equal(t, v, again, v.link())
		}
	}
}

func TestChartsHaveDistinctBars(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"range=today":                              "20261122 20261122 hour [hour day]",
		"range=today&period=day":                   "20261026 20261122 day [hour day]",
		"range=yesterday":                          "20261121 20261121 hour [hour day]",
		"range=today&period=hour&page=/x":          "20261026 20261122 day []",
		"range=7d":                                 "20261116 20261122 day [day]",
		"range=30d":                                "20261024 20261122 day [day week]",
		"range=30d&period=week":                    "20261024 20261122 week [day week]",
		"range=30d&period=month":                   "20261024 20261122 day [day week]",
		"range=90d":                                "20260825 20261122 day [day week month]",
		"range=year":                               "20260101 20261122 week [day week month]",
		"from=2010-01-01&to=2026-11-22":            "20100101 20261122 month [month]",
		"from=2010-01-01&to=2026-11-22&period=day": "20100101 20261122 month [month]",
	} {
		in, by, may := viewOf(t, "blog.example", query).charted()
		assert.Equal(t, want, fmt.Sprint(days(in), " ", by, " ", may), query)
	}
}

func TestWordsForNumbers(t *testing.T) {
	t.Parallel()
	plain := func(s string) string { return strings.ReplaceAll(s, "\u202f", " ") }
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		assert.Equal(t, want, plain(number(words.English(), n)))
	}
	for _, c := range []struct {
		now, before int64
		way, text   string
	}{
		{0, 0, "same", "0%"}, {5, 0, "up", "from 0"}, {0, 5, "down", "100%"}, {110, 100, "up", "10%"}, {1011, 1000, "up", "1.1%"},
		{9999, 10000, "same", "0%"}, {12, 1, "up", "× 12"}, {1, 2, "down", "50%"},
	} {
		got := changeOf(words.English(), c.now, c.before, true)
		assert.Equal(t, []string{c.way, c.text}, []string{got.Way, plain(got.Text)})
	}
	assert.Equal(t, change{}, changeOf(words.English(), 1, 2, false))
	v := viewOf(t, "blog.example", "")
	tiles := v.tiles([]report.Numbers{{Uniques: 5}, {}})
	assert.Empty(t, tiles[0].Before, "the change says it")
	assert.Equal(t, "from 0", tiles[1].Before)
	tiles = v.tiles([]report.Numbers{{Uniques: 9, Pv: 9}, {Uniques: 6}, {Uniques: 8}})
	first := tiles[0]
	assert.Equal(t, "9 down 25% from 8 to 6 excluding today",
		plain(first.Number+" "+first.Change.Way+" "+first.Change.Text+" "+first.Full+" "+first.Before),
		"excluding today")
	assert.Equal(t, "from 0 to 0", tiles[2].Full)
	assert.Empty(t, v.tiles([]report.Numbers{{Uniques: 9}})[0].Change)
	names := func(query string) (names []string) {
		for _, one := range viewOf(t, "blog.example", query).tiles([]report.Numbers{{Exact: true}}) {
			names = append(names, one.Name+": "+one.Means)
		}
		return names
	}
	assert.Equal(t, []string{"Visitors: each counted once", "New: never here before", "Visits: one per visitor and day",
		"Page views: each page opened"}, names("range=7d"))
	assert.Equal(t, []string{"Visitors: each counted once", "New: never on this page before", "Page views: each page opened"},
		names("range=today&page=/x"), "no number twice")
	assert.Equal(t, "Range: it is none.", sentence(words.English(), "range: it is none"))
	for _, c := range []struct {
		from, to int32
		want     string
	}{
		{20261101, 20261130, "November 2026"}, {20261101, 20261122, "1–22 November 2026"},
		{20261024, 20261122, "24 October – 22 November 2026"},
		{20251224, 20260106, "24 December 2025 – 6 January 2026"}, {20261122, 20261122, "Sun 22 November 2026"},
		{0, 20261122, "All time, up to 22 November 2026"},
	} {
		assert.Equal(t, c.want, rangeText(words.English(), visit.Range{From: c.from, To: c.to}))
	}
}

// An incomplete week or an unfinished day is never called the period with the fewest visitors.
func TestChartsAreJudgedByWholePeriods(t *testing.T) {
	t.Parallel()
	week := []report.Period{{FirstDay: 20261107, LastDay: 20261108}, {FirstDay: 20261109, LastDay: 20261115, Visitors: 1},
		{FirstDay: 20261116, LastDay: 20261122}}
	assert.Equal(t, week[:2], wholeOnes(week, "week", countedDays{today: 20261122}), "one alone tells nothing")
	assert.Equal(t, week[1:], wholeOnes(week, "week", countedDays{today: 20261123}))
	first := []report.Period{{FirstDay: 20261120, LastDay: 20261120}, {FirstDay: 20261121, LastDay: 20261121},
		{FirstDay: 20261122, LastDay: 20261122, Visitors: 1}}
	assert.Equal(t, first[:2], wholeOnes(first, "day", countedDays{today: 20261122}), "today is in no average")
	month := []report.Period{{FirstDay: 20260901, LastDay: 20260930, Visitors: 1}, {FirstDay: 20261001, LastDay: 20261031},
		{FirstDay: 20261101, LastDay: 20261122}}
	assert.Equal(t, month[:2], wholeOnes(month, "month", countedDays{today: 20261122}))
}

// Counted pages have a link, unless they are a sum of several pages.
func TestPagesAreLinkedTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ site, query, want string }{
		{"blog.example", "", "https://blog.example"}, {"blog.example", "page=/a%25zz%23/b", "https://blog.example/a%zz#/b"},
		{"localhost:3000", "page=/", "http://localhost:3000/"}, {"blog.example:8443", "", "https://blog.example:8443"},
		{"[2001:db8::1]", "", "https://[2001:db8::1]"},
		{"blog.example", "page=/(other)", ""}, {"blog.example", "page=/(deleted)", ""}, {"(other)", "", ""}, {"(events)", "", ""},
		{"(events)", "page=/signup", ""},
	} {
		assert.Equal(t, c.want, viewOf(t, c.site, c.query).heading().Open, c)
	}
}

func TestChartsAreSummedUp(t *testing.T) {
	t.Parallel()
	bars := func(visitors ...int64) (all []report.Period) {
		for i, n := range visitors {
			day := int32(20261101 + i) //nolint:gosec // a few
			all = append(all, report.Period{FirstDay: day, LastDay: day, Visitors: n})
		}
		return all
	}
	for want, of := range map[string][]report.Period{
		"Nothing was counted.":            nil,
		"No visitors.":                    bars(0, 0, 0),
		"Sun 1 November 2026: 1 visitor.": bars(1),
		"3 visitors a day on average. Most: Wed 4 November 2026 (6); fewest: Sun 1 November 2026 (1). Rising: the second half has 200% more " +
			"than the first.": bars(1, 2, 3, 6),
		"2.5 visitors a day on average. Most: Sun 1 November 2026 (6); fewest: Tue 3 November 2026 (0). Falling: the second half has 75% fewer " +
			"than the first.": bars(6, 2, 0, 2),
		"99 visitors a day on average. Most: Sun 1 November 2026 (100); fewest: Mon 2 November 2026 (97). Steady: the second half has 3.0% fewer " +
			"than the first.": bars(100, 97),
		"1 visitor a day on average. Most: Sun 1 November 2026 (1); fewest: Sun 1 November 2026 (1). Steady: both halves " +
			"have the same number.": bars(1, 1),
		"0.33 visitors a day on average. Most: Sun 1 November 2026 (1); fewest: Mon 2 November 2026 (0). Falling: the second half has 100% " +
			"fewer than the first.": bars(1, 0, 0),
		"2 visitors a day on average. Most: Mon 2 November 2026 (4); fewest: Sun 1 November 2026 (0). No visitors in the " +
			"first half.": bars(0, 4),
	} {
		assert.Equal(t, want, strings.ReplaceAll(chartSummary(words.English(), of, "day", countedDays{today: 20261122}), "\u202f", " "))
	}
	for want, of := range map[string][]report.Period{
		"1 visitor so far.":                                bars(1),
		"Sun 1 November 2026: 7 visitors.":                 bars(7, 1),
		"No visitors before today, which is not over yet.": bars(0, 0, 1),
		"4 visitors a day on average. Most: Sun 1 November 2026 (4); fewest: Sun 1 November 2026 (4). Steady: both halves have the same number.": bars(4, 4,
			1),
	} {
		last := of[len(of)-1].LastDay
		assert.Equal(t, want, chartSummary(words.English(), of, "day", countedDays{today: last}), "today is in no average")
	}
}
