package record

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/pause"
)

// idleLane is a lane without a writer, whose clock stands still.
func idleLane() *lane {
	now := time.Date(2026, 6, 29, 12, 0, 0, 0, time.UTC)
	l := &lane{maxWait: 2 * time.Second, now: func() time.Time { return now }, metrics: newMetrics(nil)}
	l.wake.L = &l.mu
	return l
}

// acceptedAtOnce returns how many visits the lane accepts before it refuses one. It tries at most most
// visits.
func acceptedAtOnce(l *lane, most int) int {
	for i := range most {
		if _, err := l.accept(&entry{}); err != nil {
			return i
		}
	}
	return most
}

// The number of visits that may wait depends on the duration of recent batches.
func TestWaitingIsBoundedByTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		batches  int
		visits   int // number of visits in each batch
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

func TestMain(m *testing.M) { dbtest.Main(m) }

// After a lane with an inbox has refused a visit, it refuses later ones for a while, even if it is empty. A lane without
// an inbox accepts visits as soon as it can.
func TestLaneRests(t *testing.T) {
	t.Parallel()
	for _, overflow := range []bool{true, false} {
		now := time.Unix(0, 0)
		l := &lane{maxWait: 20 * time.Millisecond, overflow: overflow, now: func() time.Time { return now }, metrics: newMetrics(nil)}
		l.wake.L = &l.mu
		accepts := func() error { _, err := l.accept(&entry{}); return err }
		l.pace.add(waitingAlways, waitingAlways*time.Millisecond) // one visit each
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

// After a large batch the next one waits until half as many visits have arrived, a moment has passed, or the lane
// closes. A single visit that arrives later, or after a small batch, does not wait.
func TestLaneGathers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before int           // visits of the previous batch
		took   time.Duration // duration of that batch
		since  time.Duration // time since the end of that batch
		come   int           // number of visits that arrive after since
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
				time.Sleep(c.since) //nolint:forbidigo // the bubble's own clock
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

// Chunks are long while only one instance counts for their sites. They become short as soon as another
// instance counts for these sites.
func TestChunksAreShortWithOtherInstances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tables := dbtest.Open(t, w.url, db.Options{})
	r, other := recorder(t, tables, Options{}), recorder(t, tables, Options{})
	now := time.Now()
	r.chunks.clock = func() time.Time { return now }
	visitor := 0
	at := func(site string) Visit {
		visitor++
		return w.visit(visitor, site+"/")
	}
	chunk := func(sites ...string) (size int64) {
		t.Helper()
		var c []Step
		for _, site := range sites {
			v := at(site)
			c = append(c, Step{Visit: &v, Position: &Position{}, Next: 1})
		}
		for _, result := range r.RecordChunk(c) {
			require.NoError(t, result.Err)
		}
		r.chunks.pace = pace{visits: 1000, took: float64(50 * time.Millisecond)}
		return r.chunks.size()
	}
	single := func(r *Recorder, site string) {
		t.Helper()
		_, err := r.Record(at(site))
		require.NoError(t, err)
	}
	const short, long = int64(500), int64(2000)

	assert.Equal(t, chunkFirst, r.ChunkVisits())
	assert.Equal(t, long, chunk("a.example", "a.example", "b.example"))
	single(r, "c.example")
	single(other, "c.example")
	assert.Equal(t, long, chunk("a.example"), "beside visits to another site")
	assert.Equal(t, long, chunk("c.example"), "nothing is known of a site of which there was no chunk")
	single(r, "a.example")
	assert.Equal(t, long, chunk("b.example"))
	assert.Equal(t, short, chunk("a.example", "b.example"), "after a visit that came alone")
	now = now.Add(longChunksAfter - 1)
	assert.Equal(t, short, chunk("a.example"))
	now = now.Add(1)
	assert.Equal(t, long, chunk("a.example"))
	single(other, "b.example")
	assert.Equal(t, short, chunk("b.example"), "after a visit of another instance")
}

// A caller that could not read the position sends a whole chunk again, of which a part was already counted.
// The chunk fails, because the position has moved. Otherwise the counted part would count twice.
func TestNothingOfAChunkCountsTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tables := dbtest.Open(t, w.url, db.Options{})
	r := recorder(t, tables, Options{})
	at := &Position{Position: db.Position{App: w.demo.App, Source: "test", Part: "0"}}
	_, err := tables.OpenQueue(t.Context(), at.Position, 0)
	require.NoError(t, err)
	var c []Step
	for n := range 4 {
		v := w.visit(n, "a.example/")
		c = append(c, Step{Visit: &v, Position: at, Next: int64(n + 1)})
	}
	for _, result := range r.RecordChunk(c[:2]) {
		require.NoError(t, result.Err)
	}
	for _, result := range r.RecordChunk(c) {
		require.ErrorIs(t, result.Err, ErrMoved)
	}
	results := r.RecordChunk(c[2:])
	require.NoError(t, results[1].Err)
	assert.Equal(t, int64(4), results[1].Answer.Site.Hot)
}

// A clock that is wrong by more than a second causes a warning. The warning is repeated after an hour,
// or when the difference changes.
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

// If values of the server can no longer be measured, the metrics do not keep the last values.
func TestServerIsNotMeasured(t *testing.T) {
	t.Parallel()
	shown := prometheus.NewRegistry()
	u := upkeep{db: dbtest.Open(t, dbtest.New(t), db.Options{}), server: newServerMetrics(newMetrics(shown))}
	values := func() (size, away float64) {
		all, err := shown.Gather()
		require.NoError(t, err)
		for _, f := range all {
			switch f.GetName() {
			case "footfall_database_bytes":
				size = f.GetMetric()[0].GetGauge().GetValue()
			case "footfall_standby_away":
				away = f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return size, away
	}
	require.NoError(t, u.measureServer(t.Context()))
	size, away := values()
	assert.Positive(t, size)
	assert.Zero(t, away)
	ended, end := context.WithCancel(t.Context())
	end()
	require.Error(t, u.measureServer(ended))
	size, away = values()
	assert.True(t, math.IsNaN(size) && math.IsNaN(away), "%v, %v", size, away)
}
