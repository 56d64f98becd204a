package record

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// Chunks are long while nobody else counts for their sites, and short from the first who does.
func TestChunksAreShortBesideOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tables := dbtest.Open(t, w.url, db.Options{})
	r, other := recorder(t, tables, Options{}), recorder(t, tables, Options{})
	now := time.Now()
	r.chunks.now = func() time.Time { return now }
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

// Whoever sends a chunk again of which a part was counted, since they could not look where its
// position is, hears that it has moved: counted from there on, that part would count twice.
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
