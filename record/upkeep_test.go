package record

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
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

// What cannot be measured of the server any more is not shown as it was.
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
