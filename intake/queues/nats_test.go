package queues

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/desk"
)

// natsWorld is one whose queue is the stream visits of a server.
type natsWorld struct {
	*world
	options *server.Options
	server  *server.Server
}

func newNATS(t *testing.T) *natsWorld {
	t.Helper()
	n := &natsWorld{world: newTables(t), options: &server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true, MaxPayload: 8 << 20,
		Users: []*server.User{{Username: "me", Password: "secret"}},
	}}
	n.start()
	n.options.Port = n.server.Addr().(*net.TCPAddr).Port
	n.queue, n.hosts = "nats://me:secret@HOST/visits", n.server.Addr().String()
	n.make(jetstream.StreamConfig{Name: "visits", Subjects: []string{"visits"}})
	n.ends = func() (string, map[string]int64) {
		js, done := n.stream()
		defer done()
		stream, err := js.Stream(t.Context(), "visits")
		require.NoError(t, err)
		info := stream.CachedInfo()
		return info.Created.UTC().Format(time.RFC3339Nano), map[string]int64{streamPart: int64(info.State.LastSeq) + 1} //nolint:gosec // small
	}
	return n
}

func (n *natsWorld) start() {
	n.t.Helper()
	var err error
	n.server, err = server.NewServer(n.options)
	require.NoError(n.t, err)
	n.server.Start()
	require.True(n.t, n.server.ReadyForConnections(time.Minute))
	n.t.Cleanup(n.stop)
}

func (n *natsWorld) stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}

func (n *natsWorld) stream() (jetstream.JetStream, func()) {
	n.t.Helper()
	conn, err := nats.Connect(n.server.ClientURL(), nats.UserInfo("me", "secret"), nats.Timeout(time.Minute))
	require.NoError(n.t, err)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(time.Minute))
	require.NoError(n.t, err)
	return js, conn.Close
}

func (n *natsWorld) make(c jetstream.StreamConfig) {
	n.t.Helper()
	js, done := n.stream()
	defer done()
	_, err := js.CreateStream(n.t.Context(), c)
	require.NoError(n.t, err)
}

// publish sends messages.
func (n *natsWorld) publish(seed uint64, messages int) {
	n.t.Helper()
	js, done := n.stream()
	defer done()
	for _, m := range visits(seed, messages) {
		text := strings.Replace(m.text, "{", `{"at":"`+m.at.Format(time.RFC3339)+`",`, 1)
		_, err := js.Publish(n.t.Context(), "visits", []byte(text))
		require.NoError(n.t, err)
		n.note(m)
	}
}

// A stream of JetStream is counted by two at once, each message once, whatever becomes of its
// server.
func TestStreamIsCounted(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.publish(1, 300)
	a, b := n.consume(), n.consume()
	n.isCounted()
	n.publish(2, 300)
	n.isCounted()
	n.stop()
	n.start()
	n.publish(3, 300)
	n.isCounted()
	a.stop()
	b.stop()
	n.publish(4, 100)
	n.consumeAll()
}

// Messages are gone that were not counted; a stream is made anew while it is read, and has another
// name then.
func TestStreamThatIsPurgedAndMadeAnew(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.publish(1, 100)
	c := n.consume()
	n.isCounted()
	c.stop()
	js, done := n.stream()
	defer done()
	for range 50 {
		_, err := js.Publish(t.Context(), "visits", []byte("{}"))
		require.NoError(t, err)
	}
	stream, err := js.Stream(t.Context(), "visits")
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))
	n.refused++ // the gap
	n.publish(2, 100)
	c = n.consume()
	n.isCounted()
	n.counts()
	assert.Equal(t, []string{"101"}, desk.Column[string](n.t, n.Desk, "SELECT position::text FROM footfall.refused WHERE beginning = ''"))

	require.NoError(t, js.DeleteStream(t.Context(), "visits"))
	n.make(jetstream.StreamConfig{Name: "visits", Subjects: []string{"visits"}})
	n.publish(3, 300)
	n.finish(c)
}

// The machine of the server fails, which has the last messages in memory alone, while they are
// counted. When it is back, others get their sequences.
func TestServerThatLosesMessages(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.publish(1, 100)
	n.stop()
	before := t.TempDir()
	require.NoError(t, os.CopyFS(before, os.DirFS(n.options.StoreDir)))
	n.start()
	c := n.consume()
	n.publish(2, 100)
	n.isCounted()
	n.stop()
	n.options.StoreDir = before
	n.start()
	c.endsWith("stream visits ends at sequence 100, but was counted up to 200")
	n.counts()
}

// What a consumer cannot go on with ends it, with what is wrong: a login, a stream, a position
// behind the stream's end.
func TestRefusedByTheServer(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.make(jetstream.StreamConfig{Name: "work", Subjects: []string{"work"}, Retention: jetstream.WorkQueuePolicy})
	n.consumeBy(n.connect("nats://me:wrong@HOST/visits", "")).endsWith("does not let this user in")
	n.consumeBy(n.connect("nats://me:secret@HOST/nothing", "")).endsWith("there is no stream nothing")
	n.consumeBy(n.connect("nats://me:secret@HOST/work", "")).endsWith("whose retention is limits")
	n.consumeBy(n.connect("tls://me:secret@HOST/visits", "")).endsWith("does not speak TLS")
	n.publish(1, 10)
	c := n.consume()
	n.isCounted()
	c.stop()
	n.Exec(n.t, "UPDATE footfall.positions SET next = 50")
	n.consume().endsWith("ends at sequence 10, but was counted up to 49")
}

// What is read ahead is bounded, however much the stream has; a message that is larger than what is
// fetched at once comes alone.
func TestReadingAheadOfAStreamIsBounded(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	js, done := n.stream()
	defer done()
	const messages = 80
	for m := range messages + 1 {
		text := large(time.Now()).text
		if m == 4 {
			text = strings.Repeat("x", fetchedAtOnce+1)
		}
		_, err := js.Publish(t.Context(), "visits", []byte(text))
		require.NoError(t, err)
	}
	n.refused = messages + 1
	h := &held{goOn: make(chan struct{})}
	c := n.consumeBy(func(ctx context.Context, parts Parts) (s Source, err error) {
		if h.Source, err = n.connect(n.queue, "")(ctx, parts); err == nil {
			reads := h.Source.(*stream).reads
			h.fetched = func() int64 {
				info, err := reads.Info(ctx)
				assert.NoError(t, err)
				return int64(info.Delivered.Consumer)*largeMessage - h.read //nolint:gosec // small
			}
		}
		return h, err
	})
	require.Eventually(t, h.readAhead, dbtest.Patience, dbtest.Tick)
	n.publish(1, 10)
	close(h.goOn)
	n.finish(c)
	t.Logf("%d MiB of %d", h.most>>20, messages*largeMessage>>20)
	assert.LessOrEqual(t, h.most, int64(4*(fetchedAtOnce+largeMessage)))
}

// A consumer that reads is not let in any more, and later again; and what the server has of it is
// deleted. It waits, and goes on.
func TestStreamIsClosedToWhoReads(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.publish(1, 50)
	c := n.consume()
	n.isCounted()
	js, done := n.stream()
	defer done()
	stream, err := js.Stream(t.Context(), "visits")
	require.NoError(t, err)
	deleted := 0
	for name := range stream.ConsumerNames(t.Context()).Name() {
		require.NoError(t, stream.DeleteConsumer(t.Context(), name))
		deleted++
	}
	require.Positive(t, deleted)
	n.publish(2, 50)
	n.isCounted()

	users := n.options.Users
	closed := n.options.Clone()
	closed.Users = []*server.User{{Username: "me", Password: "other"}}
	require.NoError(t, n.server.ReloadOptions(closed))
	c.says("does not let this user in")
	open := closed.Clone()
	open.Users = users
	require.NoError(t, n.server.ReloadOptions(open))
	n.publish(3, 50)
	n.finish(c)
}
