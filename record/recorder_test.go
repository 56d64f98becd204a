package record

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// idleLane is a lane without a writer, whose clock stands still.
func idleLane() *lane {
	now := time.Date(2026, 6, 29, 12, 0, 0, 0, time.UTC)
	l := &lane{maxWait: 2 * time.Second, now: func() time.Time { return now }, metrics: newMetrics(nil)}
	l.wake.L = &l.mu
	return l
}

// acceptedAtOnce is how many visits the lane accepts before it refuses one, but no more than most.
func acceptedAtOnce(l *lane, most int) int {
	for i := range most {
		if _, err := l.accept(&entry{}); err != nil {
			return i
		}
	}
	return most
}

// How many visits may wait depends on how long recent batches took.
func TestWaitingIsBoundedByTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		batches  int
		visits   int // of each
		took     time.Duration
		accepted int
		overflow bool
	}{
		{"nothing is known", 0, 0, 0, waitingAtMost, false},
		{"single visits of a quiet hour say little", 50, 1, 10 * time.Millisecond, 20_000, false},
		{"full batches say it exactly", 50, 1000, 500 * time.Millisecond, 4000, false},
		{"however slow, one batch may wait", 50, 1000, time.Minute, waitingAlways, false},
		{"but where there is another place for them", 50, 1000, time.Hour, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := idleLane()
			l.overflow = c.overflow
			for range c.batches {
				l.pace.add(c.visits, c.took)
			}
			require.InDelta(t, c.accepted, acceptedAtOnce(l, 2*waitingAtMost), 2)
		})
	}
}
