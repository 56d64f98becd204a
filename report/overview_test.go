package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFirstDaysTellRanks(t *testing.T) {
	t.Parallel()
	days := []Day{{Day: 20190629, Pv: 12, NewVisitors: 12}, {Day: 20190630, Pv: 5}, {Day: 20190702, Pv: 1, NewVisitors: 1},
		{Day: 20190703, Pv: 9, NewVisitors: 7}}
	var ranks []string
	for _, day := range firstDays(days, 0, 20) {
		ranks = append(ranks, ranksOf(day))
	}
	assert.Equal(t, []string{"1 to 12", "-", "13"}, ranks)
	assert.Len(t, firstDays(days, 0, 19), 3, "visitors may come while it is read")
	assert.Empty(t, firstDays(days, 0, 21), "nobody knows the first day of one visitor: was it before these?")
}
