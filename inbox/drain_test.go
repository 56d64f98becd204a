package inbox

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/record"
)

// New visits have precedence over waiting ones, but only up to a limit.
func TestDrainingMakesRoom(t *testing.T) {
	t.Parallel()
	few, many := make([]record.Visit, gatheredMany-1), make([]record.Visit, gatheredMany)
	for _, c := range []struct {
		name   string
		come   []record.Visit // repeatedly
		until  time.Duration
		waited time.Duration // of the oldest visit
		room   time.Duration
	}{
		{"nobody comes", nil, 0, 0, 0},
		{"few come", few, time.Hour, 0, 0},
		{"many come for a moment", many, slowWrite, 0, busyWindow},
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
						<-time.After(slowWrite)
						write()
					}
				})
				defer writes.Wait()
				assert.Equal(t, c.room == yieldAtMost, d.yield(t.Context()), "the burst goes on")
				assert.GreaterOrEqual(t, time.Since(begin), c.room)
				assert.LessOrEqual(t, time.Since(begin), c.room+slowWrite+yieldInterval)
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
			w.since = begin.Add(-2 * slowWrite)
			time.AfterFunc(slowWrite, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.since = time.Time{}
			})
			d.yield(t.Context())
			assert.GreaterOrEqual(t, time.Since(begin), slowWrite)
			assert.Less(t, time.Since(begin), yieldAtMost)
		})
	})
	t.Run("this process writes none", func(t *testing.T) {
		t.Parallel()
		(&drainer{}).yield(t.Context())
	})
}

func TestMain(m *testing.M) { dbtest.Main(m) }

// Counted rows are not looked at again, but a row whose session hung for long before its commit is found within a
// minute. An app that is skipped does not block progress.
func TestViewSkipsCountedRows(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	put := func(number int64, app int32) {
		_, err := conn.Exec(t.Context(), `INSERT INTO inbox (number, app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages,
			ips) OVERRIDING SYSTEM VALUE
			VALUES ($1, $2, 1, 'UTC', 'address', 64, '{a.example/}', '{1}', '{20260629}', '{0}', '{::1}')`, number, app)
		require.NoError(t, err)
	}
	v := &view{db: d, metrics: newMetrics(nil)}
	look := func(gone, from int64, aside ...int32) {
		t.Helper()
		require.NoError(t, v.look(t.Context()))
		assert.Equal(t, gone, v.drainedUpTo.Load())
		butFor := map[int32]*asidePeriod{}
		for _, app := range aside {
			butFor[app] = &asidePeriod{}
		}
		assert.Equal(t, from, v.findStart(0, butFor))
	}
	passes := func() { v.marked = v.marked.Add(-2 * putTimeout) }
	put(10, 1)
	put(20, 2)
	look(0, 0)
	passes() // numbers up to 20 are old now, but 10 waits
	look(9, 9)
	assert.Equal(t, int64(20), v.findStart(0, map[int32]*asidePeriod{1: {}, 2: {}}))
	assert.Equal(t, int64(19), v.findStart(0, map[int32]*asidePeriod{1: {}}))
	assert.Equal(t, []int64{9, 19, 9}, []int64{v.findStart(1, nil), v.findStart(2, nil), v.findStart(3, nil)})
	_, err := conn.Exec(t.Context(), `DELETE FROM inbox`)
	require.NoError(t, err)
	look(20, 20)
	put(15, 1) // very late
	look(20, 20)
	v.lastFullLook = time.Now().Add(-2 * wholeEvery)
	look(14, 14)
	look(14, 20, 1)
	_, err = conn.Exec(t.Context(), `DELETE FROM inbox`)
	require.NoError(t, err)
	look(20, 20)
}
