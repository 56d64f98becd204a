package visit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Range is from one day to another, both included, as numbers like 20190629.
type Range struct {
	From int32 `json:"from"`
	To   int32 `json:"to"`
}

// AllDays is the range of everything that was counted.
var AllDays = Range{From: 0, To: 99991231}

// mostLastDays is a century: more days than anybody looks at one by one.
const mostLastDays = 36_525

// LastDays is a range of so many days that ends with one.
func LastDays(n int, to int32) Range {
	return Range{From: DayOf(DateOf(to).AddDate(0, 0, 1-n), time.UTC), To: to}
}

// String writes a range for people.
func (in Range) String() string {
	switch {
	case in == AllDays:
		return "on any day"
	case in.From == AllDays.From:
		return "up to " + dayText(in.To)
	case in.From == in.To:
		return "on " + dayText(in.From)
	}
	return "from " + dayText(in.From) + " to " + dayText(in.To)
}

func dayText(day int32) string { return DateOf(day).Format(time.DateOnly) }

// ParseDay reads a day as people write it: 20190629, 2019-06-29, today or yesterday.
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
	return 0, fmt.Errorf("%.64q is no day: write one like 20190629 or 2019-06-29", text)
}

// ParseRange reads a range of days. from is a day, a number of days like 30d that end with to, or
// all; to is a day, or "" for today. Every error is an *Error about the field "from" or "to".
func ParseRange(from, to string, today int32) (in Range, err error) {
	in = Range{From: AllDays.From, To: today}
	if to != "" {
		if in.To, err = ParseDay(to, today); err != nil {
			return in, Errorf(Invalid, "to", "%v", err)
		}
	}
	if from == "all" {
		if to == "" {
			in = AllDays
		}
		return in, nil
	}
	if n, is := parseLastDays(from); is {
		return LastDays(n, in.To), nil
	}
	if in.From, err = ParseDay(from, today); err != nil {
		return in, Errorf(Invalid, "from", "%v, 30d for the last 30 days, or all", err)
	}
	if in.From > in.To {
		return in, Errorf(Invalid, "from", "%s is after the last day, %d: exchange them, or name a later one for to", from, in.To)
	}
	return in, nil
}

// parseLastDays reads what is written as 30d.
func parseLastDays(text string) (n int, is bool) {
	digits, is := strings.CutSuffix(text, "d")
	if !is {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 1 && n <= mostLastDays
}
