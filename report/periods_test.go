package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPeriods(t *testing.T) {
	t.Parallel()
	for days, want := range map[int]period{0: daily, 100: daily, 101: weekly, 700: weekly, 701: monthly, mostDays: monthly} {
		assert.Equal(t, want, periodOf(days), "%d days", days)
	}
}
