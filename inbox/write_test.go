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

// What a writer does not take keeps nobody waiting, and costs no memory.
func TestWhoIsNotAccepted(t *testing.T) {
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
		{"as many wait as memory has room for", func(w *writer) { w.limit, w.pending = 10*waitingAtMost, waitingAtMost }, "too many visits are waiting"},
		{"the database hangs", func(w *writer) { w.since = time.Now().Add(-2 * d.StatementTimeout()) }, "too many visits are waiting"},
		{"the tables are full", func(w *writer) { w.saw(&db.InboxLookRow{Kept: limit - 3, Visits: 1}, 0); w.mine.Add(1); w.pending = 1 }, "the inbox is full"},
		{"what is put aside has its share", func(w *writer) { w.saw(&db.InboxLookRow{Kept: limit, Aside: limit, AsideApps: []int32{7, 9}}, 0) }, "visits of this app cannot be counted for now"},
		{"and is of others", func(w *writer) { w.saw(&db.InboxLookRow{Kept: limit, Aside: limit, AsideApps: []int32{9}}, 0) }, ""},
		{"of the app fewer are put aside", func(w *writer) { w.saw(&db.InboxLookRow{Kept: limit / 2, Aside: limit / 8, AsideApps: []int32{7}}, 0) }, ""},
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
		assert.Contains(t, verr.Message, c.says, c.name)
		assert.Nil(t, g)
	}
}
