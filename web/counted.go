package web

import (
	"html/template"
	"slices"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
	"footfall/web/words"
)

// counted are the days of a site, and of all of its pages, of which there are numbers: from the
// first that was counted (0: none was), imports and late visits included, to today. Nobody came on
// a day between them that has no visits; of earlier days nobody can tell. Today is not over, and the
// first day began before it was counted: the first whole one is the next.
type counted struct{ since, whole, today int32 }

func countedFrom(since, today int32) counted { return counted{since, dayAfter(since), today} }

func dayAfter(day int32) int32 {
	if day == 0 {
		return 0
	}
	return visit.LastDays(1, day).Earlier(-1).From
}

// stretch is what can be shown of a range of days. Each part may be none.
type stretch struct {
	In       visit.Range // the days of the range that were counted
	Over     visit.Range // the whole ones of them: neither the first day nor today is in an average
	Compared visit.Range // those of Over for which the day so many days before was a whole one, too
}

// none is a range without days.
var none visit.Range

// of returns what can be shown of a range, which is compared with the days so many before (0: with
// none).
func (c counted) of(asked visit.Range, back int) (s stretch) {
	if c.since == 0 {
		return s
	}
	s.In = within(asked, visit.Range{From: c.since, To: c.today})
	s.Over = within(s.In, visit.Range{From: c.whole, To: visit.LastDays(2, c.today).From})
	if back > 0 && s.Over != none {
		s.Compared = within(s.Over, visit.Range{From: visit.LastDays(1, c.whole).Earlier(-back).From, To: c.today})
	}
	return s
}

// changes reports whether a change of the range is shown: only where all of its whole days are
// compared.
func (s stretch) changes() bool { return s.Compared != none && s.Compared == s.Over }

func within(in, other visit.Range) visit.Range {
	in = visit.Range{From: max(in.From, other.From), To: min(in.To, other.To)}
	if in.From > in.To {
		return none
	}
	return in
}

// shortly is the first day in a narrow column: with its year, unless it is this one.
func (c counted) shortly(l *words.Language) string {
	if c.since/10000 == c.today/10000 {
		return l.ShortDay(c.since)
	}
	return l.Dated(c.since)
}

// before is how many visitors came in the days with which a bar of a chart is compared: of a period
// that is not over, in as many whole days.
func (c counted) before(l *words.Language, p report.Period) string {
	in := visit.Range{From: p.FirstDay, To: p.LastDay}
	switch over := c.of(in, 0).Over; {
	case !p.Compared:
		return "–"
	case over != in:
		return l.Say("chart.before-in", "visitors", number(l, p.VisitorsBefore), "days", l.Say("counts.days", "count", over.Days()))
	}
	return number(l, p.VisitorsBefore)
}

// spark draws those of the numbers of the last days up to today that were counted: visitors, or views.
func (c counted) spark(l *words.Language, last []int64, things string) template.HTML {
	s := c.of(visit.LastDays(len(last), c.today), 0)
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
	return template.HTML(draw.Spark(summary, numbers, len(last))) //nolint:gosec // draw escapes what it is given
}
