package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

// thin is the space before a percent sign: narrow, and no line ends at it.
const thin = "\u202f"

// Numbers, and numbers of things, are written as all of Footfall does: 1,204 visits.
var count = draw.Count

// number is a dash where one is not known.
func number(n int64) string {
	if n == report.Unknown {
		return "–"
	}
	return draw.Number(n)
}

// means is the legend of the numbers. In files, SQL and the API visits are pv, and page views hot.
var means = map[string]string{
	"Visitors":   "each counted once",
	"New":        "here for the first time",
	"Visits":     "one a visitor and day",
	"Page views": "each page opened",
}

type change struct {
	Way  string // up, down or same; "": there is nothing to compare with
	Text string
}

// fromNothing stands for a change where there was nothing, which has no percentage.
const fromNothing = "from 0"

func changeOf(now, before int64, compared bool) change {
	switch {
	case !compared:
		return change{}
	case before == 0 && now == 0:
		return change{"same", "0" + thin + "%"}
	case before == 0:
		return change{"up", fromNothing}
	}
	percent := 100 * float64(now-before) / float64(before)
	way := "up"
	if percent < 0 {
		way, percent = "down", -percent
	}
	switch {
	case percent >= 1000:
		return change{way, "× " + number(now/before)}
	case percent >= 9.95:
		return change{way, fmt.Sprintf("%.0f"+thin+"%%", percent)}
	case percent >= 0.05:
		return change{way, fmt.Sprintf("%.1f"+thin+"%%", percent)}
	}
	return change{"same", "0" + thin + "%"}
}

// share is a part of a whole in percent.
func share(part, whole int64) string {
	if whole == 0 {
		return "0" + thin + "%"
	}
	percent := 100 * float64(part) / float64(whole)
	if percent > 0 && percent < 0.5 {
		return "< 1" + thin + "%"
	}
	return fmt.Sprintf("%.0f"+thin+"%%", percent)
}

func day(d int32) string { return visit.DateOf(d).Format("Mon 2 January 2006") }

func shortDay(d int32) string { return visit.DateOf(d).Format("2 Jan") }

func longDay(d int32) string { return visit.DateOf(d).Format("2 January 2006") }

// dated is a day in a column of others.
func dated(d int32) string { return visit.DateOf(d).Format("2 Jan 2006") }

// rangeText is a range as people write it: 24 October – 22 November 2026.
func rangeText(in visit.Range) string {
	from, to := visit.DateOf(in.From), visit.DateOf(in.To)
	switch {
	case in.From == visit.AllDays.From:
		return "all days up to " + to.Format("2 January 2006")
	case in.From == in.To:
		return day(in.To)
	case in == monthOf(in.From):
		return to.Format("January 2006")
	case from.Year() != to.Year():
		return from.Format("2 January 2006") + " – " + to.Format("2 January 2006")
	case from.Month() != to.Month():
		return from.Format("2 January") + " – " + to.Format("2 January 2006")
	}
	return from.Format("2") + " – " + to.Format("2 January 2006")
}

// periodText is what a bar of a chart is of.
func periodText(p report.Period, by string) string {
	switch {
	case by == periods[0]:
		return day(p.FirstDay)
	case by == periods[2] && p.FirstDay%100 == 1:
		return visit.DateOf(p.FirstDay).Format("January 2006")
	}
	return rangeText(visit.Range{From: p.FirstDay, To: p.LastDay})
}

// barName is what stands below a bar.
func barName(p report.Period, by string) string {
	switch by {
	case periods[2]:
		return visit.DateOf(p.FirstDay).Format("Jan 06")
	case hourly:
		return fmt.Sprintf("%02d", p.FirstDay)
	}
	return shortDay(p.FirstDay)
}

// wholeOnes are the periods of a chart by which it is judged: those that are over, of which the first
// day that was counted is none, and of these the whole ones, if there are some, and somebody came in them.
func wholeOnes(bars []report.Period, by string, c counted) []report.Period {
	over := slices.DeleteFunc(slices.Clone(bars), func(p report.Period) bool { return p.LastDay >= c.today || p.FirstDay < c.whole })
	whole := slices.DeleteFunc(slices.Clone(over), func(p report.Period) bool {
		in := visit.Range{From: p.FirstDay, To: p.LastDay}
		return by == periods[1] && in.Days() < 7 || by == periods[2] && in != monthOf(p.FirstDay)
	})
	if len(whole) < 2 || !slices.ContainsFunc(whole, func(p report.Period) bool { return p.Visitors > 0 }) {
		return over
	}
	return whole
}

// chartSummary says what a chart shows: its highest and lowest, and where it goes.
func chartSummary(all []report.Period, by string, c counted) string {
	if len(all) == 0 {
		return "Nothing was counted."
	}
	last := all[len(all)-1]
	bars := wholeOnes(all, by, c)
	switch {
	case len(bars) == 0 && last.LastDay < c.today:
		return count(last.Visitors, "visitor") + " on the first day, which was not counted as a whole."
	case len(bars) == 0 && len(all) > 1:
		return count(last.Visitors, "visitor") + " so far: no whole " + by + " is over yet."
	case len(bars) == 0:
		return count(last.Visitors, "visitor") + " so far."
	}
	most, least, sum := bars[0], bars[0], int64(0)
	var halves [2]int64
	for i, b := range bars {
		sum += b.Visitors
		if b.Visitors > most.Visitors {
			most = b
		}
		if b.Visitors < least.Visitors {
			least = b
		}
		if half := len(bars) / 2; i < half {
			halves[0] += b.Visitors
		} else if i >= len(bars)-half {
			halves[1] += b.Visitors
		}
	}
	if sum == 0 && last.Visitors > 0 && last.LastDay >= c.today {
		return "Nobody came before this " + by + ", which is not over."
	}
	if sum == 0 {
		return "Nobody came."
	}
	if len(bars) == 1 {
		return fmt.Sprintf("%s on %s.", count(most.Visitors, "visitor"), periodText(most, by))
	}
	text := fmt.Sprintf("%s a %s on average: most %s (%s), fewest %s (%s).",
		average(sum, int64(len(bars))), by, periodText(most, by), number(most.Visitors), periodText(least, by), number(least.Visitors))
	switch c := changeOf(halves[1], halves[0], true); c.Way {
	case "up":
		if halves[0] == 0 {
			return text + " Nobody came in the first half."
		}
		return text + trend(halves, " Rising") + ": the second half has " + c.Text + " more than the first."
	case "down":
		return text + trend(halves, " Falling") + ": the second half has " + c.Text + " fewer than the first."
	}
	return text + " Level: both halves have as many."
}

// trend is where a chart goes, unless its halves differ by less than a twentieth.
func trend(halves [2]int64, way string) string {
	if 20*max(halves[1]-halves[0], halves[0]-halves[1]) < halves[0] {
		return " Level"
	}
	return way
}

// viewsSummary is the same of a chart of page views.
func viewsSummary(bars []report.Period, by string) string {
	most := report.Period{}
	for _, b := range bars {
		if b.Hot > most.Hot {
			most = b
		}
	}
	if most.Hot == 0 {
		return "Nobody came."
	}
	return fmt.Sprintf("Most page views: %s (%s).", periodText(most, by), number(most.Hot))
}

// average is how many visitors that is for each of some days: to the next whole one, unless they
// are few.
func average(visitors, days int64) string {
	if whole := (visitors + days/2) / days; whole >= 10 {
		return count(whole, "visitor")
	}
	few := strconv.FormatFloat(float64(visitors)/float64(days), 'g', 2, 64)
	if few == "1" {
		return "1 visitor"
	}
	return few + " visitors"
}

// spanOfDays is after how many days somebody came back.
func spanOfDays(r report.Returned) string {
	switch {
	case r.FromDays == 1:
		return "the next day"
	case r.ToDays == report.OrMore:
		return fmt.Sprintf("%d days or more", r.FromDays)
	case r.FromDays == r.ToDays:
		return fmt.Sprintf("%d days", r.FromDays)
	}
	return fmt.Sprintf("%d – %d days", r.FromDays, r.ToDays)
}

// sentence is what an error says, as a page has it.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.TrimSuffix(sentenceCase(text), ".") + "."
}

// sentenceCase is a text that begins with a capital.
func sentenceCase(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
