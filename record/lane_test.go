package record

import (
	"testing"
	"testing/synctest"
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

// After a large batch the next one waits until half as many visits have come, a moment has passed, or
// the lane closes. A lone visit, which comes later or after a small batch, does not wait.
func TestLaneGathers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before int           // visits of the batch before
		took   time.Duration // that batch
		since  time.Duration // its end
		come   int           // visits then
		waits  time.Duration
	}{
		"few":           {before: 100, took: time.Second, come: 49, waits: gatherAtMost},
		"few, fast":     {before: 100, took: 6 * time.Millisecond, come: 49, waits: 3 * time.Millisecond},
		"a while after": {before: 100, took: time.Second, since: 4 * time.Millisecond, come: 1, waits: gatherAtMost - 4*time.Millisecond},
		"half":          {before: 100, took: time.Second, come: 50},
		"lone, later":   {before: 100, took: time.Second, since: gatherAtMost, come: 1},
		"lone":          {before: gatherFrom - 1, took: time.Second, come: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &lane{maxWait: time.Hour, now: time.Now, metrics: newMetrics(nil)}
				l.wake.L = &l.mu
				l.finish(c.before, c.took, true)
				time.Sleep(c.since) //nolint:forbidigo // of the bubble's own clock
				for range c.come {
					_, err := l.accept(&entry{})
					require.NoError(t, err)
				}
				began := time.Now()
				assert.Len(t, l.take().entries, c.come)
				assert.Equal(t, c.waits, time.Since(began))
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []func(*lane){
			func(l *lane) { _, _ = l.accept(&entry{}) },
			(*lane).close,
		} {
			l := &lane{maxWait: time.Hour, now: time.Now, metrics: newMetrics(nil)}
			l.wake.L = &l.mu
			l.finish(100, time.Second, true)
			for range 49 {
				_, err := l.accept(&entry{})
				require.NoError(t, err)
			}
			began := time.Now()
			time.AfterFunc(time.Millisecond, func() { end(l) })
			l.take()
			assert.Equal(t, time.Millisecond, time.Since(began), "one more makes half, and nobody waits at the end")
		}
	})
}
