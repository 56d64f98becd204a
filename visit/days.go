package visit

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// Range is a range of days. It includes the days From and To, which are numbers like 20190629.
type Range struct {
	From int32 `json:"from"`
	To   int32 `json:"to"`
}

// AllDays is the range of all days.
var AllDays = Range{From: 0, To: 99991231}

// mostLastDays is the maximum number of days in ParseRange. It is a century, which is longer than any useful range.
const mostLastDays = 36_525

// LastDays returns the range of n days that ends with the day to.
func LastDays(n int, to int32) Range {
	return Range{From: DayOf(DateOf(to).AddDate(0, 0, 1-n), time.UTC), To: to}
}

// String describes a range in words, like "on 2019-06-29".
func (in Range) String() string {
	switch {
	case in == AllDays:
		return "on any day"
	case in.From == AllDays.From:
		return "up to " + DayText(in.To)
	case in.From == in.To:
		return "on " + DayText(in.From)
	}
	return "from " + DayText(in.From) + " to " + DayText(in.To)
}

// DayText formats a day like 2026-11-22.
func DayText(day int32) string { return DateOf(day).Format(time.DateOnly) }

// ParseRange parses a range of days. The last day, to, is a day or "" for today. The start, from, is a day, a number
// of days like 30d for the last 30 days, or "all" for all days up to the last day. If from is "all" and to is "", the
// range is AllDays. Every error is an *Error about the field "from" or "to".
func ParseRange(from, to string, today int32) (in Range, err error) {
	in = Range{From: AllDays.From, To: today}
	if to != "" {
		if in.To, err = ParseDay(to, today); err != nil {
			return in, InField("to", err)
		}
	}
	if from == "all" {
		if to == "" {
			in = AllDays
		}
		return in, nil
	}
	if digits, counted := strings.CutSuffix(from, "d"); counted { // 30d
		if n, err := strconv.Atoi(digits); err == nil && n >= 1 && n <= mostLastDays {
			return LastDays(n, in.To), nil
		}
	}
	if in.From, err = ParseDay(from, today); err != nil {
		return in, Errorf(Invalid, "from", "%v, 30d for the last 30 days, or all", err)
	}
	if in.From > in.To {
		return in, Errorf(Invalid, "from", "%s is after the last day, %s: swap them", from, cmp.Or(to, "today"))
	}
	return in, nil
}

// Days returns the number of days of a range. From must not be 0.
func (in Range) Days() int {
	return int(DateOf(in.To).Sub(DateOf(in.From)).Hours()/24) + 1
}

// Earlier returns the range that starts and ends n days earlier.
func (in Range) Earlier(n int) Range {
	return Range{From: daysEarlier(in.From, n), To: daysEarlier(in.To, n)}
}

func daysEarlier(day int32, n int) int32 { return DayOf(DateOf(day).AddDate(0, 0, -n), time.UTC) }

// DayOf returns the day of a moment in a time zone, as a number like 20190629.
func DayOf(t time.Time, loc *time.Location) int32 {
	year, month, day := t.In(loc).Date() // takes only about 20 ns, so a cache would not make it faster
	return int32(year*10000 + int(month)*100 + day)
}

// DateOf returns the moment at which a day starts in UTC. The day is a number like 20190629.
func DateOf(day int32) time.Time {
	return time.Date(int(day/10000), time.Month(day/100%100), int(day%100), 0, 0, 0, 0, time.UTC)
}

// ParseDay parses a day: 20190629, 2019-06-29, today or yesterday.
func ParseDay(text string, today int32) (int32, error) {
	switch text {
	case "today":
		return today, nil
	case "yesterday":
		return LastDays(2, today).From, nil
	}
	for _, layout := range []string{"20060102", time.DateOnly} {
		if date, err := time.Parse(layout, text); err == nil && date.Year() > 0 {
			return DayOf(date, time.UTC), nil
		}
	}
	return 0, Errorf(Invalid, "", "%.64q is not a day: write one like 20190629 or 2019-06-29", text)
}

// ParseTime parses a time in RFC 3339: 2019-06-29T13:05:00+02:00.
func ParseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, Errorf(Invalid, "at", "%.64q is not a time: write one like 2019-06-29T13:05:00+02:00 or 2019-06-29T11:05:00Z", text)
	}
	return at, nil
}
