package record

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"footfall/pause"
)

// A clock that is more than a second wrong is warned of, once an hour unless it changes.
func TestClockWarning(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 29, 12, 0, 0, 0, time.UTC)
	u := upkeep{warned: pause.Seldom[time.Duration]{Every: clockWarnEvery}}
	for _, step := range []struct {
		name  string
		after time.Duration
		ahead time.Duration
		due   bool
	}{
		{"as exact as need be", 0, time.Second, false},
		{"behind by more than a second", time.Minute, -2 * time.Second, true},
		{"the same again", time.Minute, -2500 * time.Millisecond, false},
		{"more than a second further", time.Minute, -5 * time.Second, true},
		{"within the hour", 59 * time.Minute, -5 * time.Second, false},
		{"after an hour", time.Minute, -5 * time.Second, true},
		{"ahead now", time.Minute, 10 * 365 * 24 * time.Hour, true},
		{"set right", time.Minute, 0, false},
		{"wrong once more", time.Minute, 10 * 365 * 24 * time.Hour, false},
		{"an hour later", time.Hour, 10 * 365 * 24 * time.Hour, true},
	} {
		now = now.Add(step.after)
		assert.Equal(t, step.due, u.mayWarn(step.ahead, now), step.name)
	}
}
