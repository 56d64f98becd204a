package counter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/record"
	"footfall/visit"
)

// withID counts a visit with an id.
func (in *instance) withID(t *testing.T, ip, uri, id string) visit.Answer {
	t.Helper()
	a, err := in.Visit(context.Background(), counter.Request{App: "demo", IP: ip, URI: uri, ID: id})
	require.NoError(t, err)
	return a
}

// A visit counts once with its id, in whichever way it is repeated. The repeated visit returns the present numbers.
func TestIDs(t *testing.T) { everyWay(t, testIDs) }

func testIDs(t *testing.T, w way) {
	in := w.newInstance(t, counter.Options{})
	a := in.withID(t, "192.0.2.1", "http://a/", "x")
	require.False(t, a.Repeated)
	require.Equal(t, "1 1 1 1 | 1 1 1 1", row(a))
	in.Count(t, "192.0.2.2", "http://a/")
	a = in.withID(t, "192.0.2.1", "http://a/", "x")
	require.True(t, a.Repeated)
	require.Equal(t, "2 2 1 2 | 2 2 1 2", row(a))
	a = in.withID(t, "192.0.2.3", "http://b/new", "x")
	require.True(t, a.Repeated)
	require.Equal(t, "0 0 0 0 | 0 0 0 0", row(a), "whatever else comes with the id")
	require.False(t, in.withID(t, "192.0.2.1", "http://a/", "X").Repeated, "another id")

	in.Clock.Set(in.Clock.Now().Add(24 * time.Hour))
	require.True(t, in.withID(t, "192.0.2.1", "http://a/", "x").Repeated, "on another day, too")

	g := in.counting(t)
	at, err := g.OpenCall(t.Context(), "one", [32]byte{1}, 100)
	require.NoError(t, err)
	item := func(ip, id string) counter.Item { return counter.Item{URI: "http://a/", IP: ip, ID: id} }
	got := g.Recorder().RecordChunk(chunkOf(t, g, at, item("192.0.2.1", "x"), item("192.0.2.7", "y"), item("192.0.2.8", "y"),
		item("192.0.2.7", "")))
	for i, want := range []string{"", "3 3 3 4 | 3 3 3 4", "", "3 3 3 5 | 3 3 3 5"} {
		assert.Equal(t, want == "", errors.Is(got[i].Err, record.ErrRepeated), "%d: %v", i, got[i].Err)
		if want != "" {
			assert.Equal(t, want, row(got[i].Answer), i)
		}
	}
	require.ErrorIs(t, g.Recorder().RecordChunk(chunkOf(t, g, at, item("192.0.2.9", "y")))[0].Err, record.ErrRepeated)
	require.EqualValues(t, 5, at.Next, "a position also passes repeated visits")
	require.Equal(t, "3 3 5", in.numbersOf(t, "a"))
	require.EqualValues(t, 5, in.Metric(t, "footfall_visits_total")-repeats(t, in))
	in.Check(t)
}

// repeats returns the number of repeated visits in the metrics.
func repeats(t *testing.T, in *instance) (n float64) {
	t.Helper()
	families, err := in.Metrics.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "footfall_visits_total" && l.GetValue() == "repeated" {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// Two visits with one id share a batch, and only one counts.
func TestOneIDTwiceInABatch(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	var requests []counter.Request
	for i := range 12 {
		requests = append(requests, counter.Request{IP: fmt.Sprintf("192.0.2.%d", i), URI: fmt.Sprintf("http://a/%d", i), ID: fmt.Sprint(i % 4)})
	}
	answers, errs := in.together(t, requests)
	counted := make([]int, 4)
	for i := range requests {
		require.NoError(t, errs[i])
		if !answers[i].Repeated {
			counted[i%4]++
		}
	}
	require.Equal(t, []int{1, 1, 1, 1}, counted)
	require.Equal(t, "5 5 6", in.numbersOf(t, "a"))
	in.Check(t)
}

// A caller who may not assert visitors may not send ids either, and malformed ids are refused. The ids of two apps
// are independent.
func TestWhoMaySendIDs(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{})
	r := stranger("198.51.100.1", "/")
	r.ID = "x"
	require.Equal(t, visit.Forbidden, in.kindOf(t, r))
	for scope, want := range map[app.Scope]visit.Kind{app.ScopeCount: visit.Forbidden, app.ScopeRead: visit.Forbidden, app.ScopeAssert: 0} {
		key, err := in.Admin.AddKey(t.Context(), "shop", []app.Scope{scope})
		require.NoError(t, err)
		require.Eventually(t, func() bool { r.Key = key; return in.kindOf(t, r) != visit.BadKey }, dbtest.Patience, dbtest.Tick)
		require.Equal(t, want, in.kindOf(t, r), scope)
	}
	require.False(t, in.withID(t, "192.0.2.1", "http://a/", "x").Repeated)
	for id, says := range map[string]string{
		strings.Repeat("é", 33): "id: it is longer than 64 bytes", "a\n": "id: it has control characters", "\xff": "id: it is not valid UTF-8",
	} {
		_, err := in.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a/", ID: id})
		require.ErrorContains(t, err, says)
		_, _, err = in.counting(t).Visit(t.Context(), counter.Item{URI: "http://a/", IP: "192.0.2.1", ID: id})
		require.ErrorContains(t, err, says)
	}
	require.False(t, in.withID(t, "192.0.2.1", "http://a/", strings.Repeat("é", 32)).Repeated)
}

// The connection is lost during a visit with an id, before or after its batch commits: sent again it counts once.
func TestConnectionLostUnderAnID(t *testing.T) {
	t.Parallel()
	in, c := both.newCutInstance(t)
	failed := make(chan error, 1)
	send := func(ip, id string) {
		a, err := in.Visit(context.Background(), counter.Request{App: "demo", IP: ip, URI: "http://a/", ID: id})
		if err == nil && a.NoNumbers {
			err = record.ErrNumbersLost
		}
		failed <- err
	}
	release := in.hold(t, "a")
	go send("192.0.2.2", "after")
	in.waiters(t, 1) // the server has received the whole batch, including its commit
	c.cut()
	in.waiters(t, 2)
	release()
	require.ErrorContains(t, <-failed, "counted, but its numbers were lost")
	a := in.withID(t, "192.0.2.2", "http://a/", "after")
	require.True(t, a.Repeated)
	require.Equal(t, "2 2 2 2 | 2 2 2 2", row(a))

	for _, kept := range []bool{false, true} { // the transaction that holds the id commits or rolls back
		id := fmt.Sprint("before, ", kept)
		tx, err := in.Conn(t).Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `INSERT INTO visit_ids (app_id, day_id, id) VALUES (1, 20260629, $1)`, id)
		require.NoError(t, err)
		go send("192.0.2.3", id)
		in.endWaiters(t) // the ids are being claimed
		in.waiters(t, 1) // again
		if kept {
			require.NoError(t, tx.Commit(t.Context()))
		} else {
			require.NoError(t, tx.Rollback(t.Context()))
		}
		require.NoError(t, <-failed)
	}
	require.Equal(t, "3 3 3", in.numbersOf(t, "a"))
	in.Check(t)
}

// A batch that is sent again for any reason claims its ids again. A visit that is left out of the batch releases its
// id.
func TestIDsOfABatchThatIsSentAgain(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.1", "http://a/")
	// Another instance has counted the visitor, so this instance's filter does not have them.
	plain.startOn(t, in.URL, counter.Options{}).Count(t, "192.0.2.2", "http://a/")
	a := in.withID(t, "192.0.2.2", "http://a/", "hint")
	require.Equal(t, "2 2 2 3 | 2 2 2 3", row(a))
	require.False(t, a.Repeated)
	require.Positive(t, in.Metric(t, "footfall_filter_wrong_hints_total"))

	in.Exec(t, `ALTER TABLE visitors ADD CONSTRAINT nobody CHECK (ip <> '192.0.2.7')`)
	g := in.counting(t)
	var items []counter.Item
	for i := range 10 {
		items = append(items, counter.Item{URI: "http://a/", IP: fmt.Sprintf("192.0.2.%d", i), ID: fmt.Sprint(i)})
	}
	items = append(items, counter.Item{URI: "http://a/", IP: "192.0.2.1", ID: "7"}) // repeated only if the previous one counts
	for i, got := range g.Recorder().RecordChunk(chunkOf(t, g, nil, items...)) {
		assert.Equal(t, i >= 7, got.Err != nil, "%d: %v", i, got.Err)
	}
	in.Exec(t, `ALTER TABLE visitors DROP CONSTRAINT nobody`)
	for i, got := range g.Recorder().RecordChunk(chunkOf(t, g, nil, items...)) {
		assert.Equal(t, i < 7 || i > 9, errors.Is(got.Err, record.ErrRepeated), "%d: %v", i, got.Err)
	}
	require.Equal(t, "10 10 13", in.numbersOf(t, "a"))
	in.Check(t)
}

// A visit of an earlier day with an id counts once, alongside repeated visits in the same batch.
func TestIDsOfLateVisits(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.keepsAll(t)
	in.withID(t, "192.0.2.1", "http://a/", "today")
	g := in.counting(t)
	late := func(ip, id string) counter.Item {
		return counter.Item{URI: "http://a/", IP: ip, ID: id, At: in.Clock.Now().Add(-24 * time.Hour)}
	}
	items := []counter.Item{late("192.0.2.1", "a"), late("192.0.2.9", "today"), late("192.0.2.2", "b"), late("192.0.2.1", "a"),
		late("192.0.2.2", "")}
	for round, want := range []string{"0 1 0 1 0", "1 1 1 1 0"} {
		var repeated []string
		for _, got := range g.Recorder().RecordChunk(chunkOf(t, g, nil, items...)) {
			if !errors.Is(got.Err, record.ErrRepeated) {
				require.NoError(t, got.Err)
			}
			repeated = append(repeated, map[bool]string{true: "1", false: "0"}[got.Err != nil])
		}
		require.Equal(t, want, strings.Join(repeated, " "), "round %d", round)
	}
	require.Equal(t, "3 2 5", in.numbersOf(t, "a"))
	in.Check(t)
}

// Ids are deleted after the configured number of days, and not sooner. An app's ids are deleted with it.
func TestIDsAreForgotten(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{Options: record.Options{RememberIDs: 30}}) // deletes none by itself
	in.Exec(t, `INSERT INTO visit_ids (app_id, day_id, id) SELECT 1, days_ago(n), n FROM generate_series(0, 9) AS n`)
	for _, c := range []struct{ days, want int64 }{{9, 0}, {7, 2}, {7, 0}, {0, 6}} { // at least one day
		forgotten, err := in.DB.ForgetVisitIDs(t.Context(), int(c.days))
		require.NoError(t, err)
		require.Equal(t, c.want, forgotten, "%d days", c.days)
	}
	require.True(t, in.withID(t, "192.0.2.1", "http://a/", "1").Repeated)
	require.False(t, in.withID(t, "192.0.2.1", "http://a/", "2").Repeated)

	in.Exec(t, `INSERT INTO visit_ids (app_id, day_id, id) SELECT 1, days_ago(4), 'old ' || n FROM generate_series(1, 12000) AS n`)
	left := func() int64 { return in.One(t, `SELECT count(*) FROM visit_ids`) }
	keepsUp(t, in.URL, counter.Options{Options: record.Options{RememberIDs: 3}})
	require.Eventually(t, func() bool { return left() == 3 }, dbtest.Patience, dbtest.Tick, "an instance forgets by itself")

	in.shop(t, app.Settings{Access: ptr("open")})
	_, err := in.Visit(t.Context(), counter.Request{App: "shop", IP: "192.0.2.1", URI: "http://shop.example/", ID: "1"})
	require.NoError(t, err)
	require.NoError(t, in.Admin.DeleteApp(t.Context(), "demo"))
	require.Equal(t, int64(1), left())
}

// A late batch claims an id after those of its app were deleted: the id is deleted with the app.
func TestIDClaimedUnderTheDeletionOfItsApp(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.withID(t, "192.0.2.1", "http://a/", "x")
	tx, err := in.Conn(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM page_tallies FOR UPDATE`)
	require.NoError(t, err)
	deleted := make(chan error, 1)
	go func() { deleted <- in.Admin.DeleteApp(context.Background(), "demo") }()
	in.waiters(t, 1)
	require.Empty(t, in.Table(t, `SELECT id FROM visit_ids`), "the many rows are deleted before any session waits")
	in.Exec(t, `INSERT INTO visit_ids (app_id, day_id, id) VALUES (1, 20260629, 'y')`)
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-deleted)
	require.Empty(t, in.Table(t, `SELECT id FROM visit_ids`))
}
