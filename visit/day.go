package visit

import (
	"fmt"
	"time"
)

// DayOf returns the natural day of a moment in a time zone, as a number like 20190629.
func DayOf(t time.Time, loc *time.Location) int32 {
	year, month, day := t.In(loc).Date() // some 20 ns: a cache would gain nothing
	return int32(year*10000 + int(month)*100 + day)
}

// DateOf returns the first moment, in UTC, of a day that is a number like 20190629.
func DateOf(day int32) time.Time {
	return time.Date(int(day/10000), time.Month(day/100%100), int(day%100), 0, 0, 0, 0, time.UTC)
}

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
	return 0, fmt.Errorf("%.64q is not a day: write one like 20190629 or 2019-06-29", text)
}

// ParseTime reads a moment as RFC 3339 writes it: 2019-06-29T13:05:00+02:00.
func ParseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, Errorf(Invalid, "at", "%.64q is not a time: write one like 2019-06-29T13:05:00+02:00 or 2019-06-29T11:05:00Z", text)
	}
	return at, nil
}
