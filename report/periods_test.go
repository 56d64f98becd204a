package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"footfall/visit"
)

func TestPeriods(t *testing.T) {
	t.Parallel()
	for days, want := range map[int]period{0: daily, 100: daily, 101: weekly, 700: weekly, 701: monthly, mostDays: monthly} {
		assert.Equal(t, want, periodOf(days), "%d days", days)
	}
	for day, first := range map[int32]int32{20190701: 20190701, 20190707: 20190701, 20190630: 20190624, 20200101: 20191230, 20200302: 20200302, 20200301: 20200224} {
		assert.Equal(t, first, weekly.first(day), "%d", day)
	}
}

func TestGroupsOfDays(t *testing.T) {
	t.Parallel()
	counted := []Day{{Day: 20190628, Pv: 5, NewVisitors: 4, Hot: 9}, {Day: 20190630, Pv: 3, NewVisitors: 1, Hot: 3}, {Day: 20190701, Pv: 2, NewVisitors: 2, Hot: 2}}
	days := fillGaps(counted, visit.Range{From: 20190627, To: 20190702})
	assert.Equal(t, []group{
		{Range: visit.Range{From: 20190627, To: 20190630}, PV: 8, NewVisitors: 5, Hot: 12},
		{Range: visit.Range{From: 20190701, To: 20190702}, PV: 2, NewVisitors: 2, Hot: 2},
	}, weekly.groups(days))
	assert.Equal(t, weekly.groups(days), monthly.groups(days), "June ended on a Sunday")
	assert.Empty(t, weekly.groups(nil))
}
