package inbox

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"footfall/record"
)

// Visits that come have room before those that wait, but only so much of it.
func TestDrainingMakesRoom(t *testing.T) {
	t.Parallel()
	few, many := make([]record.Visit, gatheredMany-1), make([]record.Visit, gatheredMany)
	for _, c := range []struct {
		name   string
		come   []record.Visit // again and again
		until  time.Duration
		waited time.Duration // the oldest visit
		room   time.Duration
	}{
		{"nobody comes", nil, 0, 0, 0},
		{"few come", few, time.Hour, 0, 0},
		{"many come for a moment", many, writeShould, 0, thickFor},
		{"many come all the time", many, time.Hour, burst / 2, yieldAtMost},
		{"and have for long", many, time.Hour, 2 * burst, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				w := newWriter(nil, Options{}, nil)
				d := drainer{writer: w, recorder: new(record.Recorder), metrics: new(metrics)}
				d.metrics.oldest.Store(begin.Add(-c.waited).UnixNano())
				write := func() {
					w.next = &gathering{visits: c.come}
					w.take()
					w.mu.Lock()
					defer w.mu.Unlock()
					w.since = time.Time{}
				}
				write()
				var writes sync.WaitGroup
				writes.Go(func() {
					for time.Since(begin) < min(c.until, 2*yieldAtMost) {
						<-time.After(writeShould)
						write()
					}
				})
				defer writes.Wait()
				assert.Equal(t, c.room == yieldAtMost, d.yield(t.Context()), "the burst goes on")
				assert.GreaterOrEqual(t, time.Since(begin), c.room)
				assert.LessOrEqual(t, time.Since(begin), c.room+writeShould+yieldLooks)
			})
		})
	}
	t.Run("a write takes long", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			w := &writer{since: begin}
			d := drainer{writer: w, recorder: new(record.Recorder), metrics: new(metrics)}
			d.yield(t.Context())
			assert.Zero(t, time.Since(begin))
			w.since = begin.Add(-2 * writeShould)
			time.AfterFunc(writeShould, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.since = time.Time{}
			})
			d.yield(t.Context())
			assert.GreaterOrEqual(t, time.Since(begin), writeShould)
			assert.Less(t, time.Since(begin), yieldAtMost)
		})
	})
	t.Run("this process writes none", func(t *testing.T) {
		t.Parallel()
		(&drainer{}).yield(t.Context())
	})
}
