package web

import (
	"html/template"
	"slices"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
	"footfall/web/words"
)

// countedDays are the days for which a site and its pages have numbers: from since to today. If since is 0, there are none. since
// may also be the day of imported numbers or of a late visit, so it may precede the first visit that Footfall received. The first
// counted day and today are incomplete, and firstComplete is the first complete day. If a day has no visits, its number of
// visitors is 0 after the first counted day, and unknown before since.
type countedDays struct{ since, firstComplete, today int32 }

func countedFrom(since, today int32) countedDays { return countedDays{since, dayAfter(since), today} }

func dayAfter(day int32) int32 {
	if day == 0 {
		return 0
	}
	return visit.LastDays(1, day).Earlier(-1).From
}

// stretch is the part of a date range that has numbers to show. Each field may be none, the empty range.
type stretch struct {
	In       visit.Range // the days of the range from since to today
	Over     visit.Range // In without its incomplete days (the first counted day and today), which would distort averages
	Compared visit.Range // the days of Over that can be compared, because the earlier days are complete, too
}

// none is an empty range.
var none visit.Range

// clip returns the days of a range (asked) that have numbers to show. Each of these days is compared with the day that is back
// days earlier. If back is 0, no days are compared.
func (c countedDays) clip(asked visit.Range, back int) (s stretch) {
	if c.since == 0 {
		return s
	}
	s.In = intersect(asked, visit.Range{From: c.since, To: c.today})
	s.Over = intersect(s.In, visit.Range{From: c.firstComplete, To: visit.LastDays(2, c.today).From})
	if back > 0 && s.Over != none {
		s.Compared = intersect(s.Over, visit.Range{From: visit.LastDays(1, c.firstComplete).Earlier(-back).From, To: c.today})
	}
	return s
}

// changes reports whether the page shows the change from earlier days. It does so only if all complete days of the range can be
// compared.
func (s stretch) changes() bool { return s.Compared != none && s.Compared == s.Over }

func intersect(in, other visit.Range) visit.Range {
	in = visit.Range{From: max(in.From, other.From), To: min(in.To, other.To)}
	if in.From > in.To {
		return none
	}
	return in
}

// formatFirstDay formats since for a narrow column. The text contains the year only if since is not in the current year.
func (c countedDays) formatFirstDay(l *words.Language) string {
	if c.since/10000 == c.today/10000 {
		return l.ShortDay(c.since)
	}
	return l.Dated(c.since)
}

// formatEarlier returns the number of visitors on the earlier days with which a bar is compared. If the bar's period is
// incomplete, only its complete days are compared, and the text contains the number of these days.
func (c countedDays) formatEarlier(l *words.Language, p report.Period) string {
	in := visit.Range{From: p.FirstDay, To: p.LastDay}
	switch over := c.clip(in, 0).Over; {
	case !p.Compared:
		return "–"
	case over != in:
		return l.Say("chart.before-in", "visitors", number(l, p.VisitorsBefore), "days", l.Say("counts.days", "count", over.Days()))
	}
	return number(l, p.VisitorsBefore)
}

// spark draws a small chart of the numbers in last, which has one number for each of the last days up to today. It leaves out
// days before c.since. things is the kind of numbers, visitors or views, for the label of the chart.
func (c countedDays) spark(l *words.Language, last []int64, things string) template.HTML {
	s := c.clip(visit.LastDays(len(last), c.today), 0)
	if s.In == none {
		return ""
	}
	numbers := last[len(last)-s.In.Days():]
	summary := l.Say("spark.none")
	if s.Over != none {
		over := numbers[len(numbers)-1-s.Over.Days() : len(numbers)-1]
		summary = l.Say("spark."+things, "days", l.Say("counts.days", "count", len(over)), "least", number(l, slices.Min(over)),
			"most", number(l, slices.Max(over)))
	}
	return template.HTML(draw.Spark(summary, numbers, len(last))) //nolint:gosec // draw escapes its input
}
