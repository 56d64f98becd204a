package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestMeasureOf(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100-i) * time.Millisecond
	}
	assert.Equal(t, Measure{100, 50, 50, 99, 100}, MeasureOf(hundred, 2*time.Second))
	assert.Equal(t, Measure{99, 0, 50, 99, 99}, MeasureOf(hundred[:99], 0))
	assert.Equal(t, Measure{10, 0, 5, 10, 10}, MeasureOf(hundred[:10], 0))
	assert.Equal(t, Measure{2, 0, 1, 2, 2}, MeasureOf(hundred[:2], 0))
	assert.Equal(t, Measure{}, MeasureOf(nil, 0))
}
