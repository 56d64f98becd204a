package web

import (
	"cmp"
	"slices"
	"time"

	"footfall/visit"
)

const usualSpan = "30d"

// spans are the named ranges. The first spansAtOnce are always visible, and the others are in a menu, in this order.
var spans = []struct {
	name string
	upTo func(today int32) visit.Range
}{
	{"today", lastDays(1)},
	{"7d", lastDays(7)},
	{"30d", lastDays(30)},
	{"all", func(today int32) visit.Range { return visit.Range{From: visit.AllDays.From, To: today} }},
	{"yesterday", func(today int32) visit.Range { return visit.LastDays(1, today).Earlier(1) }},
	{"90d", lastDays(90)},
	{"month", func(today int32) visit.Range { return visit.Range{From: monthOf(today).From, To: today} }},
	{"last-month", func(today int32) visit.Range { return monthOf(visit.LastDays(2, monthOf(today).From).From) }},
	{"year", func(today int32) visit.Range { return visit.Range{From: yearOf(today).From, To: today} }},
}

const spansAtOnce = 4

func lastDays(n int) func(today int32) visit.Range {
	return func(today int32) visit.Range { return visit.LastDays(n, today) }
}

// readSpan reads a range from query parameters: the name of a range, or its first and last day. For a name, span is the name.
func readSpan(name, from, to string, today int32) (span string, in visit.Range, err error) {
	if name == "" && from+to != "" {
		if from == "" {
			from = to
		}
		in, err = visit.ParseRange(from, to, today)
		if err == nil && (in.From == visit.AllDays.From || in.Days() > mostDays) {
			err = visit.Errorf(visit.Invalid, "from",
				"%.64q is too far from the last day: a range has at most %d years; range=all has all days", from, mostDays/365)
		}
		if in.To > today && err == nil {
			in.To = max(in.From, today) // future days have no numbers to show
		}
		return "", in, err
	}
	name = cmp.Or(name, usualSpan)
	for _, span := range spans {
		if span.name == name {
			return name, span.upTo(today), nil
		}
	}
	return name, in, visit.Errorf(visit.Invalid, "range",
		"%.64q is not a range: use today, yesterday, 7d, 30d, 90d, month, last-month, year or all, or from and to", name)
}

// mostDays is the maximum length of a typed range, in days: a century.
const mostDays = 36_500

const firstDay = 10101

func monthOf(day int32) visit.Range {
	first := day - day%100 + 1
	return visit.Range{From: first, To: visit.DayOf(visit.DateOf(first).AddDate(0, 1, -1), time.UTC)}
}

func yearOf(day int32) visit.Range {
	return visit.Range{From: day/10000*10000 + 101, To: day/10000*10000 + 1231}
}

// neighbor returns the view of the next range (step 1) or of the previous range (step -1). The neighbor of a month is a month,
// and that of a year is a year. Any other neighbor has the same length as the range. found is false if v shows all days, or if
// the neighbor would start after today or before year 1.
func (v view) neighbor(step int) (next view, found bool) {
	if v.span == "all" {
		return v, false
	}
	next = v.copyWith(func(o *view) { o.span = "" })
	switch month, year := monthOf(v.days.From), yearOf(v.days.From); {
	case v.span == "month" || v.days == month:
		next.days = monthOf(visit.DayOf(visit.DateOf(month.From).AddDate(0, step, 0), time.UTC))
	case v.span == "year" || v.days == year:
		next.days = yearOf(visit.DayOf(visit.DateOf(year.From).AddDate(step, 0, 0), time.UTC))
	default:
		next.days = v.days.Earlier(-step * v.days.Days())
	}
	if next.days.From > v.app.Today || next.days.From < firstDay {
		return v, false
	}
	next.days.To = min(next.days.To, v.app.Today)
	for _, span := range spans {
		if span.upTo(v.app.Today) == next.days {
			next.span = span.name
			break
		}
	}
	return next, true
}

// daysBefore returns by how many days the compared range is earlier than the view's range, or 0 without a comparison. If the
// reader selected the days right before, it is the length of the range. Otherwise it is a multiple of 7, so that Sundays are
// compared with Sundays.
func (v view) daysBefore() int {
	week := 7
	if len(v.where) > 0 { // no comparison: for days so long ago, most visitors' tags are not recorded
		return 0
	}
	switch v.compare {
	case "none":
		return 0
	case "right":
		return v.days.Days()
	case "year":
		week = 364
	}
	return (v.days.Days() + week - 1) / week * week
}

// By default, a range of up to mostDayBars days has a bar for each day. A range of up to mostWeekBars weeks has a bar for each
// week. Longer ranges have a bar for each month, so that the bars stay distinguishable.
const (
	mostDayBars  = 92
	mostWeekBars = 106
	chartedDays  = 28 // if a range is shorter than fewDays days, its chart adds earlier days, up to this number of days
	fewDays      = 7
)

// charted returns the range of the chart, the period of its bars (such as day), and the periods that the reader can choose.
func (v view) charted() (in visit.Range, period string, may []string) {
	in = v.stretch().In
	days := in.Days()
	if days == 1 && v.path == "" && v.site != "" && v.sumImported(in).days == 0 {
		may = []string{hourly, periods[0]}
		if v.period != periods[0] {
			return in, hourly, may
		}
	}
	if days < fewDays && (len(v.where) > 0 || v.site == "") {
		return in, periods[0], may
	}
	if days < fewDays {
		return v.counted().clip(visit.LastDays(chartedDays, in.To), 0).In, periods[0], may
	}
	if days <= 4*mostDayBars {
		may = append(may, periods[0])
	}
	if days > 2*fewDays && days <= 7*4*mostWeekBars {
		may = append(may, periods[1])
	}
	if days > 2*31 {
		may = append(may, periods[2])
	}
	switch {
	case slices.Contains(may, v.period):
		return in, v.period, may
	case days <= mostDayBars:
		return in, periods[0], may
	case days <= 7*mostWeekBars:
		return in, periods[1], may
	}
	return in, periods[2], may
}
