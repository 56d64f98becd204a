package visit

import "time"

// DayOf is the natural day of a moment in a time zone, as a number like 20190629. It takes some 20 ns, so there is
// nothing to gain from remembering where the day ends.
func DayOf(t time.Time, loc *time.Location) int32 {
	year, month, day := t.In(loc).Date()
	return int32(year*10000 + int(month)*100 + day)
}

// DateOf is the day of a number like 20190629, as its first moment in UTC.
func DateOf(day int32) time.Time {
	return time.Date(int(day/10000), time.Month(day/100%100), int(day%100), 0, 0, 0, 0, time.UTC)
}
