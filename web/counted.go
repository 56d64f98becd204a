package web

import (
	"html/template"
	"slices"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

// counted are the days of a site, and of all of its pages, of which there are numbers: from the
// first that was counted (0: none was), imports and late visits included, to today. Nobody came on
// a day between them that has no visits; of earlier days nobody can tell. Today is not over.
type counted struct{ since, today int32 }

// stretch is what can be shown of a range of days. Each part may be none.
type stretch struct {
	In       visit.Range // the days of the range that were counted
	Over     visit.Range // those of them that are over: today is in no average
	Compared visit.Range // those of Over for which the day so many days before was counted, too
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
	s.Over = within(s.In, visit.Range{From: c.since, To: visit.LastDays(2, c.today).From})
	if back > 0 && s.Over != none {
		s.Compared = within(s.Over, visit.Range{From: visit.LastDays(1, c.since).Earlier(-back).From, To: c.today})
	}
	return s
}

// changes reports whether a change of the range is shown: only where all of its days that are over
// are compared.
func (s stretch) changes() bool { return s.Compared != none && s.Compared == s.Over }

func within(in, other visit.Range) visit.Range {
	in = visit.Range{From: max(in.From, other.From), To: min(in.To, other.To)}
	if in.From > in.To {
		return none
	}
	return in
}

// shortly is the first day in a narrow column: with its year, unless it is this one.
func (c counted) shortly() string {
	if c.since/10000 == c.today/10000 {
		return shortDay(c.since)
	}
	return dated(c.since)
}

// before is how many visitors came in the days with which a bar of a chart is compared: of a period
// that is not over, in as many whole days.
func (c counted) before(p report.Period) string {
	in := visit.Range{From: p.FirstDay, To: p.LastDay}
	switch over := c.of(in, 0).Over; {
	case !p.Compared:
		return "–"
	case over != in:
		return number(p.VisitorsBefore) + " in " + count(int64(over.Days()), "day")
	}
	return number(p.VisitorsBefore)
}

// spark draws those of the numbers of the last days up to today that were counted. They are things
// of each day.
func (c counted) spark(last []int64, things string) template.HTML {
	s := c.of(visit.LastDays(len(last), c.today), 0)
	if s.In == none {
		return ""
	}
	numbers := last[len(last)-s.In.Days():]
	summary := "Counted since today."
	if s.Over != none {
		over := numbers[:s.Over.Days()]
		summary = count(int64(len(over)), "day") + " up to yesterday: from " +
			number(slices.Min(over)) + " to " + number(slices.Max(over)) + " " + things + " a day"
	}
	return template.HTML(draw.Spark(summary, numbers, len(last))) //nolint:gosec // draw escapes what it is given
}
