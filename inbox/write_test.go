package inbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// looks returns the result of a look at the inbox: visits of app 5, and visits of app 7, which is locked if it has any.
func looks(visits, locked int64) []db.InboxLookRow {
	return []db.InboxLookRow{{AppID: 5, Visits: visits}, {AppID: 7, Visits: locked, IsLocked: locked > 0}}
}

// A visit that a writer refuses neither waits nor costs memory.
func TestRefusedVisits(t *testing.T) {
	t.Parallel()
	d, err := db.Open(t.Context(), "postgres://127.0.0.1:1/nowhere", db.Options{}) // it connects to nothing
	require.NoError(t, err)
	t.Cleanup(d.Close)
	const limit = 100
	for _, c := range []struct {
		name string
		is   func(w *writer)
		says string
	}{
		{"the service ends", func(w *writer) { w.closed = true }, "the service is shutting down"},
		{"as many wait as memory has room for", func(w *writer) { w.limit, w.pending = 10*waitingAtMost, waitingAtMost },
			"too many visits are waiting"},
		{"the database hangs", func(w *writer) { w.since = time.Now().Add(-2 * d.StatementTimeout()) }, "too many visits are waiting"},
		{"as many wait as may", func(w *writer) { w.updateLimits(looks(limit-2, 0), 0); w.written.Add(1); w.pending = 1 }, "the inbox is full"},
		{"apps that are locked have their share", func(w *writer) { w.updateLimits(looks(0, limit), 0) },
			"visits of this app cannot be counted now"},
		{"and are others", func(w *writer) { w.updateLimits([]db.InboxLookRow{{AppID: 9, Visits: limit, IsLocked: true}}, 0) }, ""},
		{"of locked apps fewer wait", func(w *writer) { w.updateLimits(looks(limit/2, limit/8), 0) }, ""},
	} {
		w := newWriter(d, Options{Limit: limit}, newMetrics(nil))
		c.is(w)
		g, place, err := w.accept(record.Visit{App: 7})
		if c.says == "" {
			require.NoError(t, err, c.name)
			assert.Equal(t, []record.Visit{{App: 7}}, g.visits)
			assert.Zero(t, place)
			continue
		}
		var verr *visit.Error
		require.ErrorAs(t, err, &verr, c.name)
		assert.Equal(t, visit.Unavailable, verr.Kind)
		assert.Contains(t, verr.Message(), c.says, c.name)
		assert.Nil(t, g)
	}
}
