package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"footfall/report"
	"footfall/visit"
	"footfall/web/words"
)

// number formats a number, or returns a dash if it is report.Unknown.
func number(l *words.Language, n int64) string {
	if n == report.Unknown {
		return "–"
	}
	return l.Number(n)
}

type change struct {
	Way  string // direction of the change: up, down or same; "" if there is no comparison
	Text string
	// FromNothing is true if the earlier number was 0 and the current number is not.
	FromNothing bool
	Times       string // the factor, such as 12, if Text shows a factor; "" if Text shows a percentage
}

func changeOf(l *words.Language, now, before int64, compared bool) change {
	switch {
	case !compared:
		return change{}
	case before == 0 && now == 0:
		return change{Way: "same", Text: l.Percent(0, 0)}
	case before == 0: // a percentage of 0 is not defined
		return change{Way: "up", Text: l.Say("numbers.from-nothing"), FromNothing: true}
	}
	percent := 100 * float64(now-before) / float64(before)
	way := "up"
	if percent < 0 {
		way, percent = "down", -percent
	}
	switch {
	case percent >= 1000:
		times := number(l, now/before)
		return change{Way: way, Text: "× " + times, Times: times}
	case percent >= 9.95:
		return change{Way: way, Text: l.Percent(percent, 0)}
	case percent >= 0.05:
		return change{Way: way, Text: l.Percent(percent, 1)}
	}
	return change{Way: "same", Text: l.Percent(0, 0)}
}

// share returns part as a percentage of whole, without decimals.
func share(l *words.Language, part, whole int64) string {
	if whole == 0 {
		return l.Percent(0, 0)
	}
	percent := 100 * float64(part) / float64(whole)
	if percent > 0 && percent < 0.5 {
		return "< " + l.Percent(1, 0)
	}
	return l.Percent(percent, 0)
}

// rangeText returns a range in words, such as 24 October – 22 November 2026.
func rangeText(l *words.Language, in visit.Range) string {
	switch {
	case in.From == visit.AllDays.From:
		return l.Say("days.all", "day", l.LongDay(in.To))
	case in.From == in.To:
		return l.Day(in.To)
	case in == monthOf(in.From):
		return l.Month(in.From)
	}
	return l.Days(in)
}

// periodText returns the days of a bar in words. by is the period of the chart's bars.
func periodText(l *words.Language, p report.Period, by string) string {
	switch {
	case by == periods[0]:
		return l.Day(p.FirstDay)
	case by == periods[2] && p.FirstDay%100 == 1:
		return l.Month(p.FirstDay)
	}
	return rangeText(l, visit.Range{From: p.FirstDay, To: p.LastDay})
}

// barName returns the label below a bar. by is the period of the chart's bars.
func barName(l *words.Language, p report.Period, by string) string {
	switch by {
	case periods[2]:
		return l.ShortMonth(p.FirstDay)
	case hourly:
		return fmt.Sprintf("%02d", p.FirstDay)
	}
	return l.ShortDay(p.FirstDay)
}

// wholeOnes returns the bars that the chart's summary uses. It leaves out bars that contain the first counted day or an earlier
// day, and bars that contain today. It also leaves out weeks and months that are only partly in the range, unless fewer than two
// bars, or only bars without visitors, would remain.
func wholeOnes(bars []report.Period, by string, c countedDays) []report.Period {
	over := slices.DeleteFunc(slices.Clone(bars), func(p report.Period) bool { return p.LastDay >= c.today || p.FirstDay < c.firstComplete })
	whole := slices.DeleteFunc(slices.Clone(over), func(p report.Period) bool {
		in := visit.Range{From: p.FirstDay, To: p.LastDay}
		return by == periods[1] && in.Days() < 7 || by == periods[2] && in != monthOf(p.FirstDay)
	})
	if len(whole) < 2 || !slices.ContainsFunc(whole, func(p report.Period) bool { return p.Visitors > 0 }) {
		return over
	}
	return whole
}

// chartSummary describes a chart of visitors in words: its average, maximum, minimum and trend.
func chartSummary(l *words.Language, all []report.Period, by string, c countedDays) string {
	if len(all) == 0 {
		return l.Say("chart.nothing")
	}
	last := all[len(all)-1]
	bars := wholeOnes(all, by, c)
	switch {
	case len(bars) == 0 && last.LastDay < c.today:
		return l.Say("chart.first-day", "count", last.Visitors)
	case len(bars) == 0 && len(all) > 1:
		return l.Say("chart.no-whole-"+by, "count", last.Visitors)
	case len(bars) == 0:
		return l.Say("chart.so-far", "count", last.Visitors)
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
		return l.Say("chart.nobody-before-this-" + by)
	}
	if sum == 0 {
		return l.Say("chart.nobody")
	}
	if len(bars) == 1 {
		return l.Say("chart.on-one", "visitors", visitorsIn(l, most.Visitors), "days", periodText(l, most, by))
	}
	text := l.Say("chart.average-"+by, "visitors", average(l, sum, int64(len(bars))), "most-days", periodText(l, most, by),
		"most", l.Number(most.Visitors), "least-days", periodText(l, least, by), "least", l.Number(least.Visitors))
	return text + l.Say("sentences.gap") + trend(l, halves)
}

// trend describes a chart's trend in words. halves contains the sums of the chart's first and second half. The trend is level if
// they differ by less than 5 %.
func trend(l *words.Language, halves [2]int64) string {
	level := 20*max(halves[1]-halves[0], halves[0]-halves[1]) < halves[0]
	switch c := changeOf(l, halves[1], halves[0], true); {
	case c.FromNothing:
		return l.Say("chart.rising-from-nothing")
	case c.Times != "":
		return l.Say("chart.rising-times", "times", c.Times)
	case c.Way == "up" && level:
		return l.Say("chart.level-more", "change", c.Text)
	case c.Way == "up":
		return l.Say("chart.rising", "change", c.Text)
	case c.Way == "down" && level:
		return l.Say("chart.level-fewer", "change", c.Text)
	case c.Way == "down":
		return l.Say("chart.falling", "change", c.Text)
	}
	return l.Say("chart.level")
}

// viewsSummary describes a chart of page views in words: it names the bar with the most page views.
func viewsSummary(l *words.Language, bars []report.Period, by string) string {
	most := report.Period{}
	for _, b := range bars {
		if b.Hot > most.Hot {
			most = b
		}
	}
	if most.Hot == 0 {
		return l.Say("chart.nobody")
	}
	return l.Say("chart.most-views", "days", periodText(l, most, by), "views", l.Number(most.Hot))
}

// visitorsIn returns a number of visitors in words.
func visitorsIn(l *words.Language, n int64) string { return l.Say("counts.visitors", "count", n) }

// average returns the average number of visitors per bar of the chart, in words. It is rounded to an integer, or to two digits if
// it is less than 10.
func average(l *words.Language, visited, days int64) string {
	if whole := (visited + days/2) / days; whole >= 10 {
		return visitorsIn(l, whole)
	}
	few, _ := strconv.ParseFloat(strconv.FormatFloat(float64(visited)/float64(days), 'g', 2, 64), 64)
	return l.Say("counts.visitors", "count", few)
}

// spanOfDays returns, in words, how many days after their previous visit the visitors in r returned.
func spanOfDays(l *words.Language, r report.Returned) string {
	switch {
	case r.FromDays == 1:
		return l.Say("days.next")
	case r.ToDays == report.OrMore:
		return l.Say("days.or-more", "count", int64(r.FromDays))
	case r.FromDays == r.ToDays:
		return l.Say("counts.days", "count", int64(r.FromDays))
	}
	return l.Say("days.span", "first", fmt.Sprint(r.FromDays), "last", fmt.Sprint(r.ToDays))
}

// sentence returns a text as a sentence, which starts with a capital letter and ends with a full stop.
func sentence(l *words.Language, text string) string {
	if text == "" {
		return ""
	}
	stop := l.Say("sentences.stop")
	return strings.TrimSuffix(strings.TrimSuffix(sentenceCase(text), "."), stop) + stop
}

// sentenceCase capitalizes the first letter of a text.
func sentenceCase(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
