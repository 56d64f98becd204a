package inbox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"footfall/record"
)

// Visits that come have room before those that wait, but only so much of it.
func TestDrainingMakesRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		writer *writer
		waits  time.Duration
	}{
		{"nobody comes", &writer{}, 0},
		{"some are being written", &writer{pending: pendingMany - 1}, 0},
		{"many are", &writer{pending: pendingMany}, yieldAtMost},
		{"this process writes none", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				d := drainer{writer: c.writer, recorder: new(record.Recorder)}
				d.yield(t.Context())
				assert.GreaterOrEqual(t, time.Since(begin), c.waits)
				assert.LessOrEqual(t, time.Since(begin), c.waits+yieldLooks)
			})
		})
	}
	t.Run("a write takes long", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			w := &writer{since: begin}
			d := drainer{writer: w, recorder: new(record.Recorder)}
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
}
