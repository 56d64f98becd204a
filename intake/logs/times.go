package logs

import (
	"bytes"
	"time"
)

// The functions in this file parse times without time.Parse, which takes as long as parsing all other parts of a line.

// parseTime parses a time in one of three formats: the format of the Common Log Format, RFC 3339, or a Unix time. ahead is
// the offset of the time's zone from UTC, in seconds.
func parseTime(text []byte) (at time.Time, ahead int, ok bool) {
	if len(text) > 4 && text[4] == '-' {
		return parseISOTime(text)
	}
	if len(text) > 2 && text[2] == '/' {
		return parseCommonTime(text)
	}
	at, ok = parseUnixTime(text)
	return at, 0, ok
}

// parseCommonTime parses a time like 10/Oct/2000:13:55:36 -0700.
func parseCommonTime(text []byte) (at time.Time, ahead int, ok bool) {
	if len(text) != 26 || text[2] != '/' || text[6] != '/' || text[11] != ':' || text[20] != ' ' {
		return at, 0, false
	}
	month := bytes.Index(months, text[3:6])
	if month < 0 || month%3 != 0 {
		return at, 0, false
	}
	day, ok := digits(text[0:2])
	year, ok2 := digits(text[7:11])
	clock, ok3 := parseClock(text[12:20])
	ahead, ok4 := parseZone(text[21:])
	at, ok = moment(year, month/3+1, day, clock-ahead, 0, ok && ok2 && ok3 && ok4)
	return at, ahead, ok
}

// hour caches the start of an hour in the Common Log Format, because most lines are from the same hour as the previous
// line.
type hour struct {
	text, zone string
	begins     int64
	ahead      int
}

// parse returns the same result as parseCommonTime. For a time in the cached hour, parse is three times as fast.
func (h *hour) parse(text []byte) (at time.Time, ahead int, ok bool) {
	if len(text) != 26 {
		return at, 0, false
	}
	minute, ok := digits(text[15:17])
	second, ok2 := digits(text[18:20])
	if ok && ok2 && string(text[:15]) == h.text && string(text[20:]) == h.zone && text[17] == ':' && minute < 60 && second <= 60 {
		return time.Unix(h.begins+int64(60*minute+second), 0).UTC(), h.ahead, true
	}
	if at, ahead, ok = parseCommonTime(text); ok {
		*h = hour{string(text[:15]), string(text[20:]), at.Unix() - int64(60*minute+second), ahead}
	}
	return at, ahead, ok
}

var months = []byte("JanFebMarAprMayJunJulAugSepOctNovDec")

// parseISOTime parses a time like 2000-10-10T13:55:36-07:00, with or without fractions of a second.
func parseISOTime(text []byte) (at time.Time, ahead int, ok bool) {
	if len(text) < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' && text[10] != ' ' {
		return at, 0, false
	}
	year, ok := digits(text[:4])
	month, ok2 := digits(text[5:7])
	day, ok3 := digits(text[8:10])
	clock, ok4 := parseClock(text[11:19])
	rest, nanos := cutFraction(text[19:])
	ahead, ok5 := parseZone(rest)
	at, ok = moment(year, month, day, clock-ahead, nanos, ok && ok2 && ok3 && ok4 && ok5)
	return at, ahead, ok
}

// parseDayAndClock parses a day like 2000-10-10 and a time like 13:55:36, both in UTC.
func parseDayAndClock(day, clock []byte) (time.Time, bool) {
	if len(day) != 10 || day[4] != '-' || day[7] != '-' || len(clock) < 8 {
		return time.Time{}, false
	}
	year, ok := digits(day[:4])
	month, ok2 := digits(day[5:7])
	of, ok3 := digits(day[8:])
	seconds, ok4 := parseClock(clock[:8])
	rest, nanos := cutFraction(clock[8:])
	return moment(year, month, of, seconds, nanos, ok && ok2 && ok3 && ok4 && len(rest) == 0)
}

// parseUnixTime parses a number of seconds since 1970, with or without a fraction. A number with 12 or more digits is taken
// as milliseconds, and a number with 18 or 19 digits as nanoseconds.
func parseUnixTime(text []byte) (time.Time, bool) {
	end := 0
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	if end == 0 || end > 19 {
		return time.Time{}, false
	}
	whole, _ := digits(text[:end])
	rest, nanos := cutFraction(text[end:])
	if len(rest) > 0 || whole < 0 {
		return time.Time{}, false
	}
	switch {
	case end >= 18:
		return time.Unix(0, int64(whole)), true
	case end >= 12:
		return time.UnixMilli(int64(whole)), true
	}
	return time.Unix(int64(whole), int64(nanos)), true
}

// cutFraction parses a fraction of a second, like .655, at the start of text, if there is one. rest is the text after the
// fraction.
func cutFraction(text []byte) (rest []byte, nanos int) {
	if len(text) < 2 || text[0] != '.' && text[0] != ',' {
		return text, 0
	}
	at, unit := 1, 100_000_000
	for ; at < len(text) && '0' <= text[at] && text[at] <= '9'; at++ {
		nanos += int(text[at]-'0') * unit
		unit /= 10
	}
	return text[at:], nanos
}

// parseClock parses a time like 13:55:36, and returns the seconds since midnight.
func parseClock(text []byte) (seconds int, ok bool) {
	if text[2] != ':' || text[5] != ':' {
		return 0, false
	}
	hour, ok := digits(text[0:2])
	minute, ok2 := digits(text[3:5])
	second, ok3 := digits(text[6:8])
	return hour*3600 + minute*60 + second, ok && ok2 && ok3 && hour < 24 && minute < 60 && second <= 60
}

// parseZone parses a zone like Z, -0700 or -07:00, and returns its offset from UTC in seconds.
func parseZone(text []byte) (seconds int, ok bool) {
	n := len(text)
	if n == 1 && text[0] == 'Z' {
		return 0, true
	}
	if n != 5 && (n != 6 || text[3] != ':') {
		return 0, false
	}
	hour, ok := digits(text[1:3])
	minute, ok2 := digits(text[n-2:])
	if seconds = hour*3600 + minute*60; text[0] == '-' {
		seconds = -seconds
	}
	return seconds, ok && ok2 && hour < 24 && minute < 60 && (text[0] == '+' || text[0] == '-')
}

// digits parses a text that consists only of decimal digits.
func digits(text []byte) (value int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		value = value*10 + int(c-'0')
	}
	return value, true
}

// moment returns the time that is seconds and nanos after the start of a date, in UTC. It returns false if ok is false, or
// if the date does not exist.
func moment(year, month, day, seconds, nanos int, ok bool) (time.Time, bool) {
	if !ok || month < 1 || month > 12 || day < 1 || day > daysOf[month] || month == 2 && day == 29 && !isLeap(year) {
		return time.Time{}, false
	}
	if month < 3 { // count years from March, so that a leap day is the last day of a year
		year, month = year-1, month+12
	}
	days := 365*year + floor(year, 4) - floor(year, 100) + floor(year, 400) + (153*month-457)/5 + day - daysTo1970
	return time.Unix(int64(86400*days+seconds), int64(nanos)).UTC(), true
}

var daysOf = [...]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// daysTo1970 is the result of moment's formula for the day 1970-01-01.
const daysTo1970 = 719469

func isLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// floor returns a/b rounded down, for a ≥ -1.
func floor(a, b int) int { return (a+b)/b - 1 }
