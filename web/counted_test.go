package web

import (
	"net/url"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones for machines without any

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/report"
	"footfall/visit"
	"footfall/web/words"
)

// The texts about a range, in two zones and across the nights in which their clocks change.
func TestTextsAboutARange(t *testing.T) {
	t.Parallel()
	const none = "0 0"
	for _, c := range []struct {
		rule, zone, now, query string
		since                  int32
		in, over, compared     string
		heading                string
	}{
		{"counted for long", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "", 20250101, "20261024 20261122", "20261024 20261121",
			"20261024 20261121",
			"24 October – 22 November 2026; The 29 full days are compared with 19 September – 17 October 2026, leaving out 6 days in between, so that Sundays line up with Sundays"},
		{"days that are over", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "range=last-month", 20250101, "20261001 20261031",
			"20261001 20261031", "20261001 20261031",
			"October 2026; Compared with 27 August – 26 September 2026, leaving out 4 days in between, so that Sundays line up with Sundays"},
		{"the first day", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "", 20261122, "20261122 20261122", none, none,
			"Sun 22 November 2026, counted since 22 November 2026"},
		{"the second day", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "", 20261121, "20261121 20261122", none, none,
			"21–22 November 2026, counted since 21 November 2026"},
		{"90 days, of which 60 were counted", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "range=90d", 20260924, "20260924 20261122",
			"20260925 20261121", none,
			"24 September – 22 November 2026, counted since 24 September 2026"},
		{"all days before were counted", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "range=7d", 20261108, "20261116 20261122",
			"20261116 20261121", "20261116 20261121",
			"16–22 November 2026; The 6 full days are compared with 9–14 November 2026"},
		{"all days before but one", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "range=7d", 20261109, "20261116 20261122", "20261116 20261121",
			"20261117 20261121",
			"16–22 November 2026; Not compared with 9–14 November 2026: the first full day counted was 10 November 2026"},
		{"a month that is not over", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "range=month", 20250101, "20261101 20261122",
			"20261101 20261121", "20261101 20261121",
			"1–22 November 2026; The 21 full days are compared with 4–24 October 2026, leaving out 7 days in between, so that Sundays line up with Sundays"},
		{"the second day of a month", "Europe/Berlin", "2026-11-02T12:00:00+01:00", "range=month", 20250101, "20261101 20261102",
			"20261101 20261101", "20261101 20261101",
			"1–2 November 2026; The first day is compared with Sun 25 October 2026"},
		{"today", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "range=today", 20250101, "20261122 20261122", none, none,
			"Sun 22 November 2026; Will be compared once the day is over"},
		{"yesterday", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "range=yesterday", 20250101, "20261121 20261121", "20261121 20261121",
			"20261121 20261121",
			"Sat 21 November 2026; Compared with Sat 14 November 2026"},
		{"a year earlier, not counted", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "range=yesterday&compare=year", 20251123,
			"20261121 20261121", "20261121 20261121", none,
			"Sat 21 November 2026; Not compared with Sat 22 November 2025: the first full day counted was 24 November 2025"},
		{"a year earlier, the first whole day", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "range=yesterday&compare=year", 20251121,
			"20261121 20261121", "20261121 20261121", "20261121 20261121",
			"Sat 21 November 2026; Compared with Sat 22 November 2025"},
		{"compared with nothing", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "compare=none", 20261101, "20261101 20261122",
			"20261102 20261121", none,
			"1–22 November 2026, counted since 1 November 2026"},
		{"all", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "range=all", 20260924, "20260924 20261122", "20260925 20261121", none,
			"24 September – 22 November 2026"},
		{"before the first day", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "from=2026-09-01&to=2026-09-23", 20260924, none, none, none,
			"1–23 September 2026, counted since 24 September 2026"},
		{"days to come", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "from=2026-11-23&to=2026-11-24", 20260924, none, none, none,
			"Mon 23 November 2026"},
		{"never", "Europe/Berlin", "2026-11-22T12:00:00+01:00", "", 0, none, none, none, "24 October – 22 November 2026"},

		// In Berlin, 29 March 2026 has 23 hours and 25 October has 25. In New York, these days are 8 March and 1 November.
		{"the last minute before a short day", "Europe/Berlin", "2026-03-28T22:59:59Z", "range=7d", 20260314, "20260322 20260328",
			"20260322 20260327", "20260322 20260327",
			"22–28 March 2026; The 6 full days are compared with 15–20 March 2026"},
		{"the first of a short day", "Europe/Berlin", "2026-03-28T23:00:00Z", "range=7d", 20260314, "20260323 20260329", "20260323 20260328",
			"20260323 20260328",
			"23–29 March 2026; The 6 full days are compared with 16–21 March 2026"},
		{"the last of a short day", "Europe/Berlin", "2026-03-29T21:59:59Z", "range=7d", 20260329, "20260329 20260329", none, none,
			"Sun 29 March 2026, counted since 29 March 2026"},
		{"after a short day", "Europe/Berlin", "2026-03-29T22:00:00Z", "range=7d", 20260329, "20260329 20260330", none, none,
			"29–30 March 2026, counted since 29 March 2026"},
		{"the hour that comes twice", "Europe/Berlin", "2026-10-25T01:30:00Z", "range=yesterday", 20261016, "20261024 20261024",
			"20261024 20261024", "20261024 20261024",
			"Sat 24 October 2026; Compared with Sat 17 October 2026"},
		{"the 25th hour", "Europe/Berlin", "2026-10-25T22:59:59Z", "range=today", 20250101, "20261025 20261025", none, none,
			"Sun 25 October 2026; Will be compared once the day is over"},
		{"after a long day", "Europe/Berlin", "2026-10-25T23:00:00Z", "range=yesterday", 20261017, "20261025 20261025", "20261025 20261025",
			"20261025 20261025",
			"Sun 25 October 2026; Compared with Sun 18 October 2026"},
		{"the same moment, still the day before", "America/New_York", "2026-10-25T23:00:00Z", "range=yesterday", 20261018, "20261024 20261024",
			"20261024 20261024", none,
			"Sat 24 October 2026; Not compared with Sat 17 October 2026: the first full day counted was 19 October 2026"},
		{"the first of a short day over there", "America/New_York", "2026-03-08T05:00:00Z", "range=month", 20260201, "20260301 20260308",
			"20260301 20260307", "20260301 20260307",
			"1–8 March 2026; The 7 full days are compared with 15–21 February 2026, leaving out 7 days in between, so that Sundays line up with Sundays"},
		{"the 25th hour over there", "America/New_York", "2026-11-02T04:59:59Z", "range=month", 20260201, "20261101 20261101", none, none,
			"Sun 1 November 2026; Will be compared once the day is over"},
		{"a month that is two days old", "America/New_York", "2026-11-02T05:00:00Z", "range=month", 20260201, "20261101 20261102",
			"20261101 20261101", "20261101 20261101",
			"1–2 November 2026; The first day is compared with Sun 25 October 2026"},
		{"30 days with a long one", "America/New_York", "2026-11-22T23:30:00-05:00", "", 20260918, "20261024 20261122", "20261024 20261121",
			"20261024 20261121",
			"24 October – 22 November 2026; The 29 full days are compared with 19 September – 17 October 2026, leaving out 6 days in between, so that Sundays line up with Sundays"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(c.zone)
			require.NoError(t, err)
			now, err := time.Parse(time.RFC3339, c.now)
			require.NoError(t, err)
			query, err := url.ParseQuery(c.query)
			require.NoError(t, err)
			v, err := newView(App{Name: "blog", Today: visit.DayOf(now, zone), Zone: zone}, "", query)
			require.NoError(t, err)
			v.since, v.countedSince = c.since, c.since
			s := v.stretch()
			assert.Equal(t, [3]string{c.in, c.over, c.compared}, [3]string{days(s.In), days(s.Over), days(s.Compared)})
			assert.Equal(t, strings.Contains(strings.ReplaceAll(c.heading, "Not compared", ""), "ompared with "), s.changes())
			h := v.heading()
			when := strings.NewReplacer("<strong>", "", "</strong>", "").Replace(string(h.When()))
			assert.Equal(t, c.heading, strings.TrimRight(when+"; "+h.Compared, "; ."))
		})
	}
}

// Each bar is compared on its own: an unfinished week or month with the same number of complete days.
func TestBarsAreComparedWithWholeDays(t *testing.T) {
	t.Parallel()
	c := countedFrom(20260901, 20261122)
	for want, bar := range map[string]report.Period{
		"–":            {FirstDay: 20261122, LastDay: 20261122},
		"7":            {FirstDay: 20261109, LastDay: 20261115, Compared: true, VisitorsBefore: 7},
		"8 in 6 days":  {FirstDay: 20261116, LastDay: 20261122, Compared: true, VisitorsBefore: 8},
		"9 in 21 days": {FirstDay: 20261101, LastDay: 20261122, Compared: true, VisitorsBefore: 9},
	} {
		assert.Equal(t, want, c.formatEarlier(words.English(), bar))
	}
}

func TestSparksBeginWithTheFirstDay(t *testing.T) {
	t.Parallel()
	last := make([]int64, 30)
	last[27], last[28], last[29] = 5, 3, 1
	for since, want := range map[int32]string{
		20261001: "29 days up to yesterday: from 0 to 5 visitors a day", 20261119: "2 days up to yesterday: from 3 to 5 visitors a day",
		20261121: "No full day has been counted yet.",
	} {
		assert.Contains(t, string(countedFrom(since, 20261122).spark(words.English(), last, "visitors")), `aria-label="`+want+`"`)
	}
	assert.Empty(t, countedFrom(0, 20261122).spark(words.English(), last, "visitors"))
}

// Hours without visits are mentioned only once.
func TestHoursSummary(t *testing.T) {
	t.Parallel()
	page := &targetPage{Tiles: make([]tile, 1)}
	page.Chart.Bars = make([]barRow, hoursOfDay)
	page.Chart.Bars[11].Visitors = 1
	assert.Equal(t, "Busiest hour, by each visitor’s first visit of the day: 11:00 – 12:00, 1 visitor.",
		page.hoursSummary(words.English(), 11, 0))
	page.Chart.Bars[3].VisitorsBefore, page.Chart.Before = 2, "a week earlier"
	assert.Equal(t, "0 visitors so far, up to 11:00; a week earlier, 2. "+
		"Busiest hour, by each visitor’s first visit of the day: 11:00 – 12:00, 1 visitor.",
		page.hoursSummary(words.English(), 11, 0))
}
