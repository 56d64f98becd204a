package visit

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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
