package queues

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/desk"
)

// Messages that cannot be counted do not block other messages. The part of them that is stored does not identify visitors.
func TestMessagesThatCannotBeCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	huge := `{"uri":"http://blog.example/","ip":"203.0.113.7","agent":"` + strings.Repeat("x", 900<<10) + `"}`
	now := time.Now()
	texts := []string{
		"", "null", "alice was here, from 203.0.113.7", "\x00\xff\xfe203.0.113.7", `[{"uri":"http://blog.example/","ip":"203.0.113.7"}]`,
		`{"uri":"http://blog.example/","ip":"203.0.113.7"}{}`,
		`{"uri":"http://blog.example/a?mail=alice#alice","ip":"203.0.113.7x"}`,
		`{"uri":"http://blog.example/","IP":"203.0.113.7"}`,
		`{"uri":"http:\/\/203.0.113.7\/","ip":"3fff::7"}`,
		`{"uri":"http://alice@blog.example/","ip":"203.0.113.7","x":{"y":["alice",{"z":"alice"}]}}`,
		`{"uri":"gopher://blog.example/","ip":"203.0.113.7","agent":"alice"}`,
		`{"visitor":"alice","uri":"http://blog.example/"}`, `{"visitor":alice,"uri":"http://blog.example/"}`, `{"ip":"alice`,
		`{"uri":"http://blog.example/","ip":"203.0.113.7","at":"2001-02-03T04:05:06Z"}`,
		`{"uri":"http://blog.example/","ip":"203.0.113.7","at":"alice 203.0.113.7"}`,
		`{"uri":"http://blog.example/","ip":"203.0.113.7","at":"2026-11-22 203.0.113.7"}`,
		`{"uri":"http://blog.example/","ip":"203.0.113.7","at":"2026-11-22 10:00:00 3fff::7"}`,
		`{"uri":"http://blog.example/","ip":"203.0.113.7","at":"2001-02-03 04:05:06.5 +0200"}`,
		`{"uri":"http://blog.example/","ip":"203.0.113.7","at":"\": write one like 203.0.113.7"}`,
		`{"uri":"http://blog.example/","ip":"203.0.113.7",": write one like 203.0.113.7":""}`,
		`{"uri":"http://203.0.113.7: write one like 203.0.113.7/","ip":"203.0.113.8"}`, `{"uri":"http://203%2E0%2E113%2E7/","ip":"203.0.113.8"}`,
		`{"uri":"http://other.example/%zz203%2E0.113.7","ip":"203.0.113.8"}`,
		`{"uri":"http://blog.example/","ip":"203.0.113.7","id":"` + strings.Repeat("alice", 20) + `"}`,
		huge,
	}
	good := message{text: `{"uri":"http://blog.example/good","ip":"192.0.2.9"}`, page: "/good", visitor: "192.0.2.9", at: now}
	var messages []message
	for _, text := range texts {
		messages = append(messages, message{text: text, at: now}, good)
	}
	messages = append(messages, message{text: good.text, at: now.AddDate(0, 0, -90)},
		message{text: good.text, at: time.UnixMilli(-1)}) // as from old producers
	w.send(0, messages...)
	c := w.consumeAll()
	kept := strings.Join(desk.Column[string](w.t, w.Desk,
		"SELECT position || ' ' || reason || ' | ' || beginning FROM footfall.refused ORDER BY position"), "\n")
	t.Log(kept)
	for _, secret := range []string{"alice", "203.0.113", "203%2E0", "3fff"} {
		assert.NotContains(t, kept, secret)
		assert.NotContains(t, c.log.String(), secret)
	}
	for _, words := range []string{
		`12 ip: `, `"http://blog.example/a…"`, `"IP" is not a field`, `app blog does not count the site`, `at: `, `64 bytes`,
		`a visit may have at most 65536`, `no longer keeps visits of that day`, `the queue has no time for the message`,
		`write one like 192.0.2.1 or 2001:db8::1`, `write one like 2019-06-29T13:05:00+02:00 or 2019-06-29T11:05:00Z`,
		`"at":"2001-02-03T04:05:06Z"`, `"at":"2001-02-03 04:05:06.5 +0200"`,
	} {
		assert.Contains(t, kept, words)
	}
}

// A producer's clock is wrong, which sets the times of its messages, or of the visits: they count at the present
// time, and metrics and log report this.
func TestClockOfAProducerIsAhead(t *testing.T) {
	t.Parallel()
	began := time.Now()
	// sent returns a message in time and three in the future, by their own time or by that of the visit, which takes
	// precedence, and one that is refused for another reason.
	sent := func(ip string) (messages []message) {
		for i, m := range []struct {
			at    time.Time
			field string
		}{
			{began, ""}, {began, `,"at":"` + began.AddDate(0, 0, 2).Format(time.RFC3339) + `"`}, {began, `,"at":"9999-12-31T23:59:59Z"`},
			{began.AddDate(0, 0, 2), `,"at":"` + began.Add(10*time.Minute).Format(time.RFC3339) + `"`},
			{began.AddDate(0, 0, 2), `,"at":"` + began.Format(time.RFC3339) + `"`},
		} {
			visitor := fmt.Sprint(ip, i)
			messages = append(messages, message{text: fmt.Sprintf(`{"uri":"http://blog.example/","ip":%q%s}`, visitor, m.field), page: "/",
				visitor: visitor, at: m.at})
		}
		return append(messages, message{text: `{"uri":"http://blog.example/","ip":"x","at":"9999-12-31T23:59:59Z"}`, at: began})
	}
	w := newWorld(t)
	w.send(0, sent("192.0.2.")...)
	for i, at := range []time.Time{began.Add(10 * time.Minute), began.AddDate(200, 0, 0)} {
		visitor := fmt.Sprint("198.51.100.", i)
		w.send(1, message{text: fmt.Sprintf(`{"uri":"http://blog.example/","ip":%q}`, visitor), page: "/", visitor: visitor, at: at})
	}
	c := w.consumeAll()
	assert.Equal(t, map[string]float64{"": 5}, c.metric("footfall_queue_ahead_total"))
	assert.Contains(t, c.log.String(), "is more than five minutes ahead")
	days := desk.Column[string](w.t, w.Desk, `SELECT DISTINCT day_id::text FROM footfall.visits`)
	require.NotEmpty(t, days)
	for _, day := range days { // two, if midnight passes in the meantime
		assert.GreaterOrEqual(t, day, began.UTC().Format("20060102"))
		assert.LessOrEqual(t, day, time.Now().UTC().Format("20060102"))
	}
}

// A producer that sends only garbage fills no table, and old messages are deleted.
func TestRefusedMessagesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad := make([]message, 2500)
	for i := range bad {
		bad[i] = message{text: fmt.Sprint(i)}
	}
	w.send(0, bad...)
	w.send(1, bad[:10]...)
	c := w.consume()
	w.isCounted()
	c.stop()
	assert.Equal(t, []string{"0 1500 2499 1000", "1 0 9 10"},
		desk.Column[string](w.t, w.Desk, "SELECT concat_ws(' ', part, min(position), max(position), count(*)) FROM footfall.refused GROUP BY "+
			"part ORDER BY part"))
	w.Exec(w.t, "UPDATE footfall.refused SET refused_at = now() - interval '7 days 1 minute' WHERE part = '1'")
	forgotten, err := w.DB.ForgetRefused(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 10, forgotten)
}

// A consumer waits while the app is held, because a visitor is being erased or the app is being moved.
func TestHeldAppIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold := w.Conn(w.t)
	tx, err := hold.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT footfall.hold_app_days(id) FROM footfall.apps WHERE name = 'blog'")
	require.NoError(t, err)
	w.send(0, visits(1, 200)...)
	c := w.consume()
	c.says("is waiting")
	require.NoError(t, tx.Rollback(t.Context()))
	w.finish(c)
}

// An erased visitor, and a deleted app, leave nothing among the refused messages. The consumer of a deleted app
// exits.
func TestErasingTakesRefusedMessagesAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(0, visits(1, 100)...)
	c := w.consume()
	w.isCounted()
	assert.NotEqual(t, []string{"0"}, desk.Column[string](w.t, w.Desk, "SELECT count(*)::text FROM footfall.refused"))
	admin := w.Admin
	_, err := admin.EraseVisitor(t.Context(), "blog", "192.0.2.1")
	require.NoError(t, err)
	assert.Equal(t, []string{"0"}, desk.Column[string](w.t, w.Desk, "SELECT count(*)::text FROM footfall.refused"))
	queues, err := admin.Queues(t.Context(), "blog")
	require.NoError(t, err)
	require.Len(t, queues, partitions)
	assert.EqualValues(t, 100, queues[0].Row.Next)

	w.send(0, visits(3, 100)...)
	w.isCounted()
	assert.NotEqual(t, []string{"0"}, desk.Column[string](w.t, w.Desk, "SELECT count(*)::text FROM footfall.refused"))
	require.NoError(t, admin.DeleteApp(t.Context(), "blog"))
	w.send(0, visits(2, 100)...)
	c.endsWith("blog")
	assert.Equal(t, []string{"0 0"}, desk.Column[string](w.t, w.Desk,
		"SELECT concat_ws(' ', (SELECT count(*) FROM footfall.refused), (SELECT count(*) FROM footfall.positions))"))
	w.consume().endsWith("blog")
}

// A batch deletes refused messages of two parts, while a visitor is erased with all of them, without a deadlock.
func TestErasingDuringABatchThatRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, part := range []string{"1", "0"} {
		w.Exec(w.t, `INSERT INTO footfall.positions (app_id, source, part, next) SELECT id, 'queue', $1, 1000 FROM footfall.apps`, part)
		w.Exec(w.t, `SELECT footfall.refuse_messages(id, 'queue', $1, array_agg(n), array_agg(''::text), array_agg(''::text))
			FROM footfall.apps, generate_series(0, 999) AS n GROUP BY id`, part)
	}
	w.Exec(w.t, "ANALYZE footfall.refused")
	batch, err := w.Conn(w.t).Begin(t.Context())
	require.NoError(t, err)
	refuse := func(part string) {
		_, err := batch.Exec(t.Context(), `SELECT footfall.move_position(id, 'queue', $1, 1000, 1001), footfall.refuse_messages(id, 'queue', $1,
			'{1000}', '{""}', '{""}') FROM footfall.apps`, part)
		require.NoError(t, err)
	}
	refuse("0")
	erased := make(chan error, 1)
	go func() {
		_, err := w.Admin.EraseVisitor(t.Context(), "blog", "192.0.2.1")
		erased <- err
	}()
	dbtest.AwaitWaiting(t, w.Conn(w.t), 1)
	refuse("1")
	require.NoError(t, batch.Commit(t.Context()))
	require.NoError(t, <-erased)
	assert.Empty(t, desk.Column[string](w.t, w.Desk, "SELECT part FROM footfall.refused"))
}
