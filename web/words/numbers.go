package words

import (
	"strconv"
	"strings"

	"footfall/report/draw"
	"footfall/visit"
)

// Number formats a number with separators of the language, such as 1,234,567 in English.
func (l *Language) Number(n int64) string {
	group := l.group
	if len(strconv.FormatInt(max(n, -n), 10)) <= l.ungroupedDigits {
		group = ""
	}
	return strings.ReplaceAll(draw.Number(n), ",", group)
}

// Percent formats a percentage with the given number of decimals.
func (l *Language) Percent(n float64, digits int) string {
	return strings.Replace(l.texts["numbers.percent"], "{n}", l.decimal(strconv.FormatFloat(n, 'f', digits, 64)), 1)
}

func (l *Language) decimal(number string) string {
	return strings.Replace(number, ".", l.texts["numbers.point"], 1)
}

const (
	weekdays = iota
	months
	shortMonths
)

// day formats the days first and last with the text of a key. The placeholders {day}, {month} and so on are for the first day.
// The placeholders {last-day}, {last-month} and so on are for the last day.
func (l *Language) day(key string, first, last int32) string {
	var places []any
	for i, day := range []int32{first, last} {
		date, before := visit.DateOf(day), []string{"", "last-"}[i]
		number := strconv.Itoa(date.Day())
		if one := l.texts["days.first"]; date.Day() == 1 && one != "" {
			number = one
		}
		month := int(date.Month())
		places = append(places, before+"day", number, before+"weekday", l.names[weekdays][date.Weekday()],
			before+"month", l.names[months][month-1], before+"short-month", l.names[shortMonths][month-1], before+"n", strconv.Itoa(month),
			before+"year", strconv.Itoa(date.Year()), before+"short-year", date.Format("06"))
	}
	return l.Say(key, places...)
}

// Day formats a day with its weekday, for titles.
func (l *Language) Day(d int32) string { return l.day("days.full", d, d) }

// LongDay formats a day for use in a sentence.
func (l *Language) LongDay(d int32) string { return l.day("days.long", d, d) }

// ShortDay formats a day without its year, for labels below bars.
func (l *Language) ShortDay(d int32) string { return l.day("days.short", d, d) }

// Dated formats a day for a narrow column of a table.
func (l *Language) Dated(d int32) string { return l.day("days.dated", d, d) }

// Month formats the month of a day.
func (l *Language) Month(d int32) string { return l.day("days.month", d, d) }

// ShortMonth formats the month of a day for labels below bars.
func (l *Language) ShortMonth(d int32) string { return l.day("days.month-short", d, d) }

// Days formats a range, such as 24 October – 22 November 2026.
func (l *Language) Days(in visit.Range) string {
	switch {
	case in.From/10000 != in.To/10000:
		return l.day("days.of-years", in.From, in.To)
	case in.From/100 != in.To/100:
		return l.day("days.of-a-year", in.From, in.To)
	}
	return l.day("days.of-a-month", in.From, in.To)
}
