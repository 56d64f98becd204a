package queues

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"footfall/db/dbtest"
	"footfall/desk"
)

// Retention has removed the next messages: this is reported, and the remaining ones count. When a partition is read for the
// first time, no earlier message counts as missing.
func TestMessagesThatAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(0, visits(1, 100)...)
	require.NoError(t, w.broker.DeleteRecords("visits", 0, 20))
	w.sent, w.refused = &desk.Model{}, 0
	for _, m := range visits(1, 100)[20:] {
		w.note(m)
	}
	w.consumeAll()

	later := visits(2, 100)
	w.send(0, later[:50]...)
	require.NoError(t, w.broker.DeleteRecords("visits", 0, 150))
	w.sent = &desk.Model{}
	for _, m := range visits(1, 100)[20:] {
		w.note(m)
	}
	w.refused = len(desk.Column[string](w.t, w.Desk, "SELECT source FROM footfall.refused")) + 1 // the gap
	w.send(0, later[50:]...)
	assert.Contains(t, w.consumeAll().log.String(), "messages=50")
	assert.Equal(t, []string{"100: the queue no longer has the messages from here up to 149, which were not counted: it kept them for too " +
		"short a time"},
		desk.Column[string](w.t, w.Desk, "SELECT position || ': ' || reason FROM footfall.refused WHERE beginning = ''"))
}

// A topic is deleted, and created again under its name: its offsets start at 0 again.
func TestTopicIsCreatedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(0, visits(1, 200)...)
	c := w.consume()
	w.isCounted()
	require.NoError(t, w.broker.DeleteTopic("visits"))
	require.NoError(t, w.broker.CreateTopic("visits", partitions, nil))
	w.send(0, visits(2, 100)...) // while it runs
	w.finish(c)
	require.NoError(t, w.broker.DeleteTopic("visits"))
	require.NoError(t, w.broker.CreateTopic("visits", partitions, nil))
	w.send(0, visits(3, 300)...) // and while it does not
	w.finish(w.consumePartitions("0"))
}

// begunAt begins every part at a position.
type begunAt int64

func (b begunAt) Begin(context.Context, string, string, int64) (int64, error) { return int64(b), nil }
func (begunAt) Leave(string)                                                  {}

// Partitions are reassigned while a topic is deleted and created again: the offsets of the old topic are not used for the new
// one.
func TestRebalanceWhileATopicIsCreatedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(0, visits(1, 200)...)
	source, err := w.connect(w.queue, "")(t.Context(), begunAt(150))
	require.NoError(t, err)
	t.Cleanup(source.Close)
	rebalance := func() error {
		_, err := source.(*kafka).adjust(t.Context(), map[string]map[int32]kgo.Offset{"visits": {0: {}}})
		return err
	}
	require.NoError(t, rebalance())
	require.NoError(t, w.broker.DeleteTopic("visits"))
	assert.True(t, isTemporary(rebalance()))
	require.NoError(t, w.broker.CreateTopic("visits", partitions, nil))
	for range 2 {
		require.ErrorIs(t, rebalance(), ErrReopen)
		w.send(0, visits(2, 170)...) // then it has more messages than were counted of the other
	}
}

// A topic is created again at brokers without ids of topics, while a consumer waits at an offset that the new topic does not
// have: the consumer stops.
func TestTopicWithoutAnIDIsCreatedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kfake.MaxVersions(kversion.V2_7_0()))
	w.send(0, visits(1, 200)...)
	c := w.consume()
	require.Eventually(t, func() bool {
		return len(desk.Column[string](w.t, w.Desk, "SELECT part FROM footfall.positions WHERE next = 200")) == 1
	}, dbtest.Patience, dbtest.Tick)
	c.stop()
	asks := make(chan struct{}, 1)
	w.broker.ControlKey(kmsg.Fetch.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		select {
		case asks <- struct{}{}:
		default:
		}
		return nil, nil, false
	})
	c = w.consumePartitions("0")
	<-asks
	require.NoError(t, w.broker.DeleteTopic("visits"))
	require.NoError(t, w.broker.CreateTopic("visits", partitions, nil))
	w.send(0, visits(2, 100)[:1]...)
	c.endsWith("but was counted up to 200")
}

// Brokers have neither an id of their cluster nor of the topic, as with Azure Event Hubs: two such clusters are
// distinguished by names, and nothing is read without a name.
func TestClusterWithoutAnID(t *testing.T) {
	t.Parallel()
	options := []kfake.Opt{kfake.MaxVersions(kversion.V2_7_0()), kfake.ClusterID("")}
	w := newWorld(t, options...)
	parts := w.ends
	of := func(cluster string) {
		w.queue = kafkaQueue + "?cluster=" + cluster
		w.ends = func() (string, map[string]int64) {
			_, ends := parts()
			return "kafka " + cluster + "/visits", ends
		}
	}
	w.send(0, visits(1, 100)...)
	w.consume().endsWith("name the cluster with ?cluster=")
	assert.Empty(t, desk.Column[string](w.t, w.Desk, "SELECT part FROM footfall.positions"))
	of("one")
	w.consumeAll()

	other, err := kfake.NewCluster(append(options, kfake.NumBrokers(1), kfake.SeedTopics(partitions, "visits"))...)
	require.NoError(t, err)
	t.Cleanup(other.Close)
	w.broker, w.hosts = other, strings.Join(other.ListenAddrs(), ",")
	of("two")
	w.send(0, visits(2, 150)...)
	w.consumeAll()
}

// A cluster of Redpanda has no id during its first start: the consumer waits for one.
func TestClusterThatIsBeingStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kfake.ClusterID(noClusterYet))
	w.send(0, visits(1, 10)...)
	c := w.consume()
	c.says("has no id yet")
	c.stop()
	assert.Empty(t, desk.Column[string](w.t, w.Desk, "SELECT part FROM footfall.positions"))
}

// A running consumer loses its access, and gets it back later: it waits, and continues.
func TestTopicAccessIsRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", "secret"))
	client := []kgo.Opt{kgo.SASL(plain.Auth{User: "me", Pass: "secret"}.AsMechanism())}
	w.sendAs(client, 0, visits(1, 50)...)
	c := w.consumeBy(w.connect("kafka://me:secret@HOST/visits?sasl=plain", ""))
	w.isCounted()
	not := w.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, TopLevel: true, Err: kerr.SaslAuthenticationFailed, Count: -1})
	w.conns.cut()
	c.says("does not accept this user")
	not.Remove()
	w.sendAs(client, 1, visits(2, 50)...)
	w.finish(c)
}

// Partitions added while a group reads are read from their beginning.
func TestPartitionIsAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(0, visits(1, 50)...)
	c := w.consume()
	w.isCounted()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.hosts))
	require.NoError(t, err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreatePartitions(t.Context(), 2, "visits")
	require.NoError(t, err)
	w.send(partitions, visits(2, 50)...)
	w.send(partitions+1, visits(3, 50)...)
	w.finish(c)
}

// Producers abort transactions and commit others, in between messages without a value, which are refused. The markers
// of transactions are skipped: nothing is behind when everything is counted, and nothing is missing after the markers
// are gone.
func TestTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.hosts), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("producer"))
	require.NoError(t, err)
	defer client.Close()
	c := w.consume()
	for n := range uint64(4) {
		require.NoError(t, client.BeginTransaction())
		sent, end := visits(n, 50), kgo.TransactionEndTry(n%2 == 0)
		for _, m := range sent {
			client.Produce(t.Context(), &kgo.Record{Topic: "visits", Value: []byte(m.text), Timestamp: m.at},
				func(_ *kgo.Record, err error) { assert.NoError(t, err) })
			if end == kgo.TryCommit {
				w.note(m)
			}
		}
		client.Produce(t.Context(), &kgo.Record{Topic: "visits"}, nil)
		if end == kgo.TryCommit {
			w.refused++
		}
		require.NoError(t, client.Flush(t.Context()))
		require.NoError(t, client.EndTransaction(t.Context(), end))
	}
	w.isCounted()
	require.Eventually(t, func() bool {
		messages, isShown := c.behind()["0"]
		return isShown && messages == 0
	}, dbtest.Patience, dbtest.Tick)
	c.stop()
	_, ends := w.ends()
	require.NoError(t, w.broker.DeleteRecords("visits", 0, ends["0"]))
	w.send(0, visits(9, 10)...)
	assert.NotContains(t, w.consumeAll().log.String(), "no longer had")
}

// Reading ahead is bounded, however many messages wait, in however many partitions, each of which a server would send
// much of at once.
func TestReadingAheadIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.broker.DeleteTopic("visits"))
	const parts = 24
	require.NoError(t, w.broker.CreateTopic("visits", parts, nil))
	for p := range int32(parts) {
		w.send(p, slices.Repeat([]message{large(time.Now())}, 5)...)
	}
	h := &held{goOn: make(chan struct{})}
	c := w.consumeBy(func(ctx context.Context, parts Parts) (s Source, err error) {
		if h.Source, err = w.connect(w.queue, "")(ctx, parts); err == nil {
			h.fetched = h.Source.(*kafka).reads.BufferedFetchBytes
		}
		return h, err
	})
	require.Eventually(t, h.readAhead, dbtest.Patience, dbtest.Tick)
	w.send(0, visits(1, 10)...)
	close(h.goOn)
	w.finish(c)
	t.Logf("%d MiB of %d", h.most>>20, 5*parts*largeMessage>>20)
	assert.LessOrEqual(t, h.most, int64(4*(fetchedAtOnce+largeMessage)))
}

// Batches are decompressed, whatever the compression. One that would need too much memory is skipped and reported.
func TestPackedBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pack := func(codec kgo.CompressionCodec, most int32, messages ...message) {
		w.sendAs([]kgo.Opt{kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(most), kgo.BrokerMaxWriteBytes(200 << 20),
			kgo.MaxDecompressBatchBytes(200 << 20)}, 0, messages...)
	}
	for n, codec := range []kgo.CompressionCodec{kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		pack(codec, 1<<20, visits(uint64(n), 50)...) //nolint:gosec // small
	}
	c := w.consume()
	w.isCounted()
	pack(kgo.ZstdCompression(), 100<<20, message{text: strings.Repeat(" ", unpackedAtMost+1), at: time.Now()})
	w.send(0, visits(9, 50)...)
	w.finish(c)
	assert.Equal(t, []string{"200: the messages from 200 up to here are a batch that unpacks to more than 32 MiB: let producers send " +
		"smaller batches"},
		desk.Column[string](w.t, w.Desk, "SELECT position || ': ' || reason FROM footfall.refused WHERE beginning = ''"))
}

// A partition has fewer messages than were counted. The consumer stops, because it is unknown whether the next messages were
// counted.
func TestTruncatedPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(0, visits(1, 100)...)
	w.consumeAll()
	w.Exec(w.t, "UPDATE footfall.positions SET next = 150 WHERE part = '0'")
	for _, partitions := range []string{"", "0"} {
		w.consumePartitions(partitions).endsWith("partition 0 of topic visits ends at offset 100, but was counted up to 150")
	}
	w.counts()
}

// All errors in an address are reported at once, and never with the password.
func TestAddresses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	for _, good := range []struct{ text, partitions, file string }{
		{"kafka://a/visits", "", ""},
		{"kafka://a:1,b,[::1]:2/visits?group=g", "0,3", ""},
		{"kafkas://me:secret@a/visits?sasl=plain", "", ""},
		{"kafkas://me@a/visits?sasl=scram-sha-256", "", file},
	} {
		_, faults := ParseAddress(good.text, good.partitions, good.file, "blog")
		assert.Empty(t, faults, good.text)
	}
	for _, bad := range []struct {
		text, partitions, file string
		want                   []string
	}{
		{"visits", "", "", []string{"kafka://localhost:9092/visits"}},
		{"amqp://a/visits", "", "", []string{"kafka://"}},
		{"nats://a/visits", "", "", []string{"send visits through Kafka (kafka://…), or with POST /visits"}},
		{"tls://a/visits?creds=FILE", "", "", []string{"POST /visits"}},
		{"kafka:///", "x,-1,2,2", "", []string{"names no host", "names no topic", `"x"`, `"-1"`, `"2"`}},
		{"kafka://a/b/c?sasl=gssapi&x=1", "", "", []string{"names no topic", `"x" is not an option`, `"gssapi" is not a known mechanism`}},
		{"kafka://me:secret@a/visits", "", "", []string{"no login mechanism"}},
		{"kafka://a/visits?sasl=plain", "", "", []string{"needs a user"}},
		{"kafka://me:secret@a/visits?sasl=plain", "", file, []string{"also contains a password"}},
		{"kafka://me:sec%ret@a/visits", "", "", []string{"%40 for @"}},
		{"kafkas://a/visits?ca=/nowhere&cert=/nowhere", "", "/nowhere", []string{"--password-file", "ca: "}},
	} {
		_, faults := ParseAddress(bad.text, bad.partitions, bad.file, "blog")
		told := fmt.Sprint(faults)
		assert.Len(t, faults, len(bad.want), "%s: %s", bad.text, told)
		for _, words := range bad.want {
			assert.Contains(t, told, words, bad.text)
		}
		assert.NotContains(t, told, "secret")
		assert.NotContains(t, told, "sec%")
	}
}

// A consumer that is refused reports this without waiting, as does one whose topic or partition does not exist.
func TestRefusedByTheBroker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "me", "secret"))
	consume := func(queue, partitions string) *consumer { return w.consumeBy(w.connect(queue, partitions)) }
	not := w.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, TopLevel: true, Err: kerr.SaslAuthenticationFailed, Count: -1})
	consume("kafka://me:wrong@HOST/visits?sasl=scram-sha-512", "").endsWith("does not accept this user")
	not.Remove()
	consume("kafka://me:secret@HOST/nothing?sasl=scram-sha-512", "").endsWith("there is no topic nothing")
	consume("kafka://me:secret@HOST/visits?sasl=scram-sha-512", "7").endsWith("has no partition 7")
	plainly := httptest.NewServer(nil)
	defer plainly.Close()
	consume("kafkas://"+plainly.Listener.Addr().String()+"/visits", "").endsWith("does not support TLS")
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	secure, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(web.TLS.Clone()))
	require.NoError(t, err)
	defer secure.Close()
	consume("kafkas://"+secure.ListenAddrs()[0]+"/visits", "").endsWith("certificate is not trusted here")
	c := consume("kafka://me:secret@HOST/visits?sasl=scram-sha-512", "")
	c.says("reading the queue")
	c.stop()
}
