package record

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/visit"
	"footfall/visit/tag"
)

// Numbers that are told without a batch are those of the last one, for a second.
func TestLastNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{Overflow: true, Memory: 1 << 20})
	v := w.visit(1, "a.example/")
	_, known := r.LastNumbers(v)
	require.False(t, known)
	_, err := r.Record(v)
	require.NoError(t, err)

	now := time.Now()
	r.caches.current.Load().numbers.now = func() time.Time { return now }
	answer, err := r.Record(v)
	require.NoError(t, err)
	last, known := r.LastNumbers(v)
	assert.True(t, known)
	assert.Equal(t, answer, last)
	v.Visitor = v.Visitor.Next()
	v.Tags = func() tag.Set { assert.Fail(t, "tags were read for numbers, which have none"); return nil }
	other, _ := r.LastNumbers(v)
	assert.Equal(t, visit.Counts{PV: 1, UV: 1, Rank: 0, Hot: 2}, other.Page)

	now = now.Add(numbersStay + time.Minute)
	_, known = r.LastNumbers(v)
	assert.False(t, known)
}
