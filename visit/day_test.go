package visit

import (
	"testing"
	"time"
	_ "time/tzdata" // zones for machines without any

	"github.com/stretchr/testify/assert"
)

func TestDayOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule, moment, zone string
		day                int32
	}{
		{"the day in UTC", "2019-06-29T12:00:00Z", "UTC", 20190629},
		{"one digit in month and day", "2026-01-02T00:00:00Z", "UTC", 20260102},
		{"the last moment of a day", "2019-06-29T23:59:59.999999999Z", "UTC", 20190629},
		{"the zone is the app's, not the moment's", "2019-06-29T23:30:00-11:00", "UTC", 20190630},
		{"ahead of UTC", "2019-06-29T16:00:00Z", "Asia/Shanghai", 20190630},
		{"ahead of UTC, a second earlier", "2019-06-29T15:59:59Z", "Asia/Shanghai", 20190629},
		{"behind UTC", "2019-06-29T03:59:59Z", "America/New_York", 20190628},
		{"behind UTC, a second later", "2019-06-29T04:00:00Z", "America/New_York", 20190629},
		{"a quarter of an hour", "2019-06-29T18:15:00Z", "Asia/Kathmandu", 20190630},
		{"a leap day", "2024-02-29T12:00:00Z", "UTC", 20240229},
		{"before 1970", "1969-12-31T23:00:00Z", "UTC", 19691231},
		{"winter time", "2026-03-28T23:00:00Z", "Europe/Berlin", 20260329},
		{"summer time", "2026-03-29T22:00:00Z", "Europe/Berlin", 20260330},
		{"before a day that begins at one o'clock", "2018-11-04T02:59:59Z", "America/Sao_Paulo", 20181103},
		{"a day that begins at one o'clock", "2018-11-04T03:00:00Z", "America/Sao_Paulo", 20181104},
		{"a last hour that comes twice", "2018-02-18T02:59:59Z", "America/Sao_Paulo", 20180217},
		{"after a last hour that comes twice", "2018-02-18T03:00:00Z", "America/Sao_Paulo", 20180218},
		{"a day is entered", "2006-10-29T02:30:30Z", "America/St_Johns", 20061029},
		{"and left again, one minute in", "2006-10-29T02:31:00Z", "America/St_Johns", 20061028},
		{"and entered again", "2006-10-29T03:30:00Z", "America/St_Johns", 20061029},
		{"before a day that never was", "2011-12-30T09:59:59Z", "Pacific/Apia", 20111229},
		{"after a day that never was", "2011-12-30T10:00:00Z", "Pacific/Apia", 20111231},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			moment, err := time.Parse(time.RFC3339Nano, test.moment)
			if err != nil {
				t.Fatal(err)
			}
			zone, err := time.LoadLocation(test.zone)
			if err != nil {
				t.Fatal(err)
			}
			if got := DayOf(moment, zone); got != test.day {
				t.Errorf("DayOf = %d, want %d", got, test.day)
			}
		})
	}
}

func BenchmarkDayOf(b *testing.B) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		b.Fatal(err)
	}
	moment := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		DayOf(moment, zone)
	}
}

func TestParseRange(t *testing.T) {
	t.Parallel()
	const today = 20200301
	for _, c := range []struct {
		from, to string
		in       Range
	}{
		{"20190629", "20190701", Range{20190629, 20190701}},
		{"2019-06-29", "", Range{20190629, today}},
		{"yesterday", "today", Range{20200229, today}},
		{"1d", "", Range{today, today}},
		{"30d", "2019-03-30", Range{20190301, 20190330}},
		{"all", "", AllDays},
		{"all", "yesterday", Range{AllDays.From, 20200229}},
	} {
		in, err := ParseRange(c.from, c.to, today)
		assert.NoError(t, err, c)
		assert.Equal(t, c.in, in, c)
	}
	for _, c := range []struct{ from, to, says string }{
		{"20190631", "", `from: "20190631" is not a day`},
		{"0d", "", `from: "0d" is not a day`},
		{"36526d", "", "from:"},
		{"", "", "from:"},
		{"00000101", "", "from:"},
		{"all", "soon", `to: "soon" is not a day`},
		{"20190702", "20190701", "from: 20190702 is after the last day"},
		{"tomorrow", "", "from:"},
	} {
		_, err := ParseRange(c.from, c.to, today)
		assert.ErrorContains(t, err, c.says, c)
	}
}

func TestLastDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n        int
		to, from int32
	}{{1, 20190629, 20190629}, {30, 20190330, 20190301}, {30, 20200330, 20200301}, {366, 20201231, 20200101}, {2, 20200301, 20200229}} {
		assert.Equal(t, Range{From: c.from, To: c.to}, LastDays(c.n, c.to))
	}
}

func TestRangeForPeople(t *testing.T) {
	t.Parallel()
	for says, in := range map[string]Range{
		"on any day": AllDays, "up to 2019-06-29": {To: 20190629}, "on 2019-06-29": {20190629, 20190629},
		"from 2019-06-29 to 2019-07-01": {20190629, 20190701},
	} {
		assert.Equal(t, says, in.String())
	}
}
