package record

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A lane from which a visit has gone to another place rests, whatever waits in it meanwhile. One
// without another place takes what it can.
func TestLaneRests(t *testing.T) {
	t.Parallel()
	for _, overflow := range []bool{true, false} {
		now := time.Unix(0, 0)
		l := &lane{maxWait: 20 * time.Millisecond, overflow: overflow, now: func() time.Time { return now }, metrics: newMetrics(nil)}
		l.wake.L = &l.mu
		accepts := func() error { _, err := l.accept(&entry{}); return err }
		l.pace.add(waitingAlways, waitingAlways*time.Millisecond) // one each
		l.pending = 1.1 * waitingAlways
		require.ErrorIs(t, accepts(), ErrOverloaded)
		l.pending = 0
		now = now.Add(overflowPause - 1)
		if overflow {
			assert.ErrorIs(t, accepts(), ErrOverloaded)
			now = now.Add(1)
		}
		assert.NoError(t, accepts())
	}
}
