package counter_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/record"
	"footfall/visit"
)

// counting returns the permission to count many visits for the app demo.
func (in *instance) counting(t *testing.T) *counter.Counting {
	t.Helper()
	g, err := in.AuthorizeCounting(t.Context(), counter.Request{App: "demo", Peer: peer})
	require.NoError(t, err)
	return g
}

// chunkOf returns a chunk of consecutive items from a position. All of them must be countable. If at is nil, no
// position is noted.
func chunkOf(t *testing.T, g *counter.Counting, at *record.Position, items ...counter.Item) (chunk []record.Step) {
	t.Helper()
	at = cmp.Or(at, &record.Position{})
	for i, item := range items {
		v, skipped, err := g.Visit(t.Context(), item)
		require.NoError(t, err)
		require.Empty(t, skipped)
		chunk = append(chunk, record.Step{Visit: &v, Position: at, Next: at.Next + int64(i) + 1})
	}
	return chunk
}

// anyItems returns random items of few visitors and pages.
func anyItems(r *rand.Rand, n int) (items []counter.Item) {
	for range n {
		items = append(items, counter.Item{
			URI: fmt.Sprintf("http://site%d.example/%d", r.IntN(4), r.IntN(8)), IP: fmt.Sprintf("10.0.%d.%d", r.IntN(2), r.IntN(200)),
		})
	}
	return items
}

// In chunks each visit gets the same numbers as if it were sent by itself, also across midnight, and with visits of the lanes
// in between.
func TestChunksCountAsSingleVisits(t *testing.T) { everyWay(t, testChunksCountAsSingleVisits) }

func testChunksCountAsSingleVisits(t *testing.T, w way) {
	one, many := w.newInstance(t, counter.Options{}), w.newInstance(t, counter.Options{})
	g := many.counting(t)
	r := rand.New(rand.NewPCG(1, 1))
	for round := range dbtest.LongOrShort(8, 3) {
		items := anyItems(r, 150)
		chunk := chunkOf(t, g, nil, items[:80]...)
		midnight := one.Clock.Now().Add(time.Duration(round%2) * 24 * time.Hour)
		many.Clock.Set(midnight)
		chunk = append(chunk, chunkOf(t, g, nil, items[80:]...)...)
		for i, got := range g.Recorder().RecordChunk(chunk) {
			if i == 80 {
				one.Clock.Set(midnight)
			}
			require.NoError(t, got.Err)
			require.Equal(t, row(one.Count(t, items[i].IP, items[i].URI)), row(got.Answer), "round %d, visit %d", round, i)
		}
		for range 3 { // lanes know the visitors that chunks have counted, and vice versa
			item := anyItems(r, 1)[0]
			require.Equal(t, row(one.Count(t, item.IP, item.URI)), row(many.Count(t, item.IP, item.URI)))
		}
	}
	if w.filter {
		require.Zero(t, many.Metric(t, "footfall_filter_wrong_hints_total"))
	}
	one.warnsOfNoBatch(t)
	many.warnsOfNoBatch(t)
	many.Check(t)
}

// A chunk that is being written makes no hint wrong: lanes look up what they do not see yet.
func TestLanesLookUpWhatAChunkIsCounting(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.250", "http://a/")
	g := in.counting(t)
	release := in.hold(t, "a")
	results := make(chan []record.Result, 1)
	chunk := chunkOf(t, g, nil, counter.Item{URI: "http://a/", IP: "192.0.2.1"}, counter.Item{URI: "http://a/", IP: "192.0.2.2"})
	go func() { results <- g.Recorder().RecordChunk(chunk) }()
	in.waiters(t, 1)
	lane := in.start("192.0.2.2", "http://a/")
	in.waiters(t, 2)
	release()
	for _, got := range <-results {
		require.NoError(t, got.Err)
	}
	require.Equal(t, "3 3 3 4 | 3 3 3 4", <-lane)
	require.Zero(t, in.Metric(t, "footfall_filter_wrong_hints_total"))
	in.Check(t)
}

// A chunk of visits from two sources moves both positions, or none, even if another chunk moves them in opposite
// order at the same time.
func TestChunkOfTwoSources(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	g := in.counting(t)
	open := func() (both [2]*record.Position) {
		for i, name := range []string{"one", "two"} {
			var err error
			both[i], err = g.OpenCall(t.Context(), name, [32]byte{1}, 100)
			require.NoError(t, err)
		}
		return both
	}
	first, second, third := open(), open(), open()
	items := anyItems(rand.New(rand.NewPCG(3, 3)), 40)
	of := func(at [2]*record.Position, turn int, from int64, items []counter.Item) []record.Step {
		chunk := chunkOf(t, g, nil, items...)
		for i := range chunk {
			chunk[i].Position, chunk[i].Next = at[(i+turn)%2], from+int64(i)+1
		}
		return chunk
	}
	for _, got := range g.Recorder().RecordChunk(of(first, 0, 0, items)) {
		require.NoError(t, got.Err)
	}
	require.Equal(t, [2]int64{39, 40}, [2]int64{first[0].Next, first[1].Next})
	for _, got := range g.Recorder().RecordChunk(of(second, 1, 0, items[:20])) {
		require.ErrorIs(t, got.Err, record.ErrMoved)
	}
	for _, p := range second {
		require.NoError(t, g.Recorder().FindPosition(t.Context(), p))
	}
	require.Equal(t, [2]int64{39, 40}, [2]int64{second[0].Next, second[1].Next})
	third[0].Next = 39 // the chunk will have moved one of the two positions to this
	for _, got := range g.Recorder().RecordChunk(of(third, 0, 40, items)) {
		require.ErrorIs(t, got.Err, record.ErrMoved)
	}
	require.Equal(t, int64(0), third[1].Next)
	var hot int
	require.NoError(t, in.Conn(t).QueryRow(t.Context(), "SELECT sum(hot) FROM counters JOIN pages ON id = page_id WHERE site_id IS NULL").Scan(
		&hot))
	require.Equal(t, 40, hot)
	in.Check(t)
}

// numbersOf returns pv, uv and hot of a target, or "" if it was never counted.
func (in *instance) numbersOf(t *testing.T, uri string) (numbers string) {
	t.Helper()
	rows, err := in.Tables().Query(t.Context(), "SELECT concat_ws(' ', pv, uv, hot) FROM counters JOIN pages ON id = page_id WHERE uri = $1",
		uri)
	require.NoError(t, err)
	for rows.Next() {
		require.NoError(t, rows.Scan(&numbers))
	}
	require.NoError(t, rows.Err())
	return numbers
}

// Calls are deleted when they were not repeated for long enough, and not sooner.
func TestCallsAreForgotten(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	g := in.counting(t)
	for i := range 3 {
		_, err := g.OpenCall(t.Context(), fmt.Sprint(i), [32]byte{1}, 100)
		require.NoError(t, err)
	}
	in.Exec(t, `UPDATE positions SET used_at = now() - interval '7 days 1 minute' WHERE part LIKE '0 %' OR part LIKE '1 %'`)
	_, err := g.OpenCall(t.Context(), "1", [32]byte{1}, 100) // sent again
	require.NoError(t, err)
	in.Exec(t, `INSERT INTO positions (app_id, source, part, used_at) VALUES (1, 'log', 'x', '2000-01-01')`)
	for _, c := range []struct{ days, want int64 }{{8, 0}, {7, 1}, {7, 0}, {0, 0}} { // at least one day
		forgotten, err := in.DB.ForgetCalls(t.Context(), int(c.days))
		require.NoError(t, err)
		require.Equal(t, c.want, forgotten, "%d days", c.days)
	}
	_, err = g.OpenCall(t.Context(), "0", [32]byte{2}, 100) // now another call
	require.NoError(t, err)
	in.Exec(t, `UPDATE positions SET used_at = now() - interval '3 days 1 minute' WHERE part LIKE '2 %'`)
	keepsUp(t, in.URL, counter.Options{Options: record.Options{RememberIDs: 3}})
	require.Eventually(t, func() bool {
		var calls int
		err := in.Tables().QueryRow(t.Context(), `SELECT count(*) FROM positions WHERE content IS NOT NULL`).Scan(&calls)
		return err == nil && calls == 2
	}, dbtest.Patience, dbtest.Tick, "an instance forgets by itself")
}

// Deleting an app deletes its positions, including the positions in a stream of NATS that 0.2 has counted.
func TestDeleteAppWithPositions(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	g := in.counting(t)
	_, err := g.OpenCall(t.Context(), "one", [32]byte{1}, 100)
	require.NoError(t, err)
	in.Exec(t, `INSERT INTO positions (app_id, source, part, next) VALUES (1, 'nats visits 2026-06-29T12:00:00Z', '0', 7)`)
	a := admin.NewAdmin(in.DB, nil)
	queues, err := a.Queues(t.Context(), "demo")
	require.NoError(t, err)
	require.Len(t, queues, 1)
	require.Equal(t, int64(7), queues[0].Row.Next)
	require.NoError(t, a.DeleteApp(t.Context(), "demo"))
	require.Zero(t, in.One(t, `SELECT count(*) FROM positions`))
	_, err = g.OpenCall(t.Context(), "two", [32]byte{1}, 100)
	var verr *visit.Error
	require.ErrorAs(t, err, &verr)
	require.Equal(t, visit.NotFound, verr.Kind)
	require.ErrorIs(t, err, db.ErrAppGone)
}
