package queues

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/record"
	"footfall/verify"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// world is a database whose app blog counts blog.example, and a queue of visits: the topic of a broker, with three
// partitions, unless a test has another queue.
type world struct {
	*desk.Desk
	t      *testing.T
	broker *kfake.Cluster
	conns  *connections
	queue  string // its address, with HOST for the servers
	hosts  string // the servers
	// ends returns the last part of the queue's name, and the end of each part with messages.
	ends func() (name string, ends map[string]int64)

	mu      sync.Mutex // guards the following fields
	sent    *desk.Model
	refused int // the expected number of refused messages
}

const (
	partitions = 3
	kafkaQueue = "kafka://HOST/visits"
)

func newWorld(t *testing.T, options ...kfake.Opt) *world {
	t.Helper()
	w := newTables(t)
	var err error
	w.broker, err = kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(partitions, "visits"),
		kfake.ListenFn(w.conns.listen)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(w.broker.Close)
	w.queue, w.hosts = kafkaQueue, strings.Join(w.broker.ListenAddrs(), ",")
	w.ends = func() (string, map[string]int64) {
		ends := map[string]int64{}
		for _, p := range w.broker.PartitionInfos("visits") {
			if p.HighWatermark > 0 {
				ends[partOf(p.Partition)] = p.HighWatermark
			}
		}
		return kadm.TopicID(w.broker.TopicInfo("visits").TopicID).String(), ends
	}
	return w
}

// newTables returns a world without a queue.
func newTables(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, conns: &connections{}, sent: &desk.Model{}}
	o := desk.Options{Real: true, Apps: map[string]app.Settings{"blog": {Sites: []string{"blog.example"}}}}
	w.Desk = desk.Idle(t, desk.Database(t, o), o)
	return w
}

// connections are the clients' connections to the broker.
type connections struct {
	mu   sync.Mutex // guards open
	open []net.Conn
}

func (c *connections) listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	return &listener{l, c}, err
}

// cut closes all open connections.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
}

type listener struct {
	net.Listener
	all *connections
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.all.mu.Lock()
		l.all.open = append(l.all.open, conn)
		l.all.mu.Unlock()
	}
	return conn, err
}

// send sends messages to a partition.
func (w *world) send(partition int32, messages ...message) {
	w.t.Helper()
	w.sendAs(nil, partition, messages...)
}

// sendToAll sends n visits to each partition.
func (w *world) sendToAll(seed uint64, n int) {
	w.t.Helper()
	for p := range int32(partitions) {
		w.send(p, visits(seed+uint64(p), n)...)
	}
}

// sendAs sends messages with a client with these options.
func (w *world) sendAs(options []kgo.Opt, partition int32, messages ...message) {
	w.t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(strings.Split(w.hosts, ",")...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	require.NoError(w.t, err)
	defer client.Close()
	var records []*kgo.Record
	for _, m := range messages {
		records = append(records, &kgo.Record{Topic: "visits", Partition: partition, Value: []byte(m.text), Timestamp: m.at})
		w.note(m)
	}
	require.NoError(w.t, client.ProduceSync(w.t.Context(), records...).FirstErr())
}

// message is a message and its expected outcome.
type message struct {
	text, page, visitor string
	at                  time.Time
	skipped             bool
}

func (w *world) note(m message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.skipped {
		return
	}
	if m.page == "" {
		w.refused++
		return
	}
	w.sent.Counted(desk.Seen{Visitor: m.visitor, Page: "blog.example" + m.page, Day: visit.DayOf(m.at, time.UTC)})
}

// visits returns messages with visits. One in ten cannot be counted, and another one in ten is from a bot.
func visits(seed uint64, n int) []message {
	random := rand.New(rand.NewPCG(seed, 15)) //nolint:gosec // a test
	now := time.Now()
	messages := make([]message, n)
	for i := range messages {
		m := message{page: fmt.Sprintf("/%d", random.IntN(7)), visitor: fmt.Sprintf("192.0.2.%d", random.IntN(40)),
			at: now.Add(-time.Duration(random.IntN(30)) * time.Hour)}
		m.text = fmt.Sprintf(`{"uri":"http://blog.example%s","ip":%q}`, m.page, m.visitor)
		switch random.IntN(10) {
		case 0:
			m.page, m.text = "", m.text[:len(m.text)-1]
		case 1:
			m.skipped, m.text = true, m.text[:len(m.text)-1]+`,"agent":"Googlebot/2.1"}`
		}
		messages[i] = m
	}
	return messages
}

// connect opens a queue on the servers.
func (w *world) connect(queue, partitions string) Connect {
	w.t.Helper()
	a, faults := ParseAddress(strings.Replace(queue, "HOST", w.hosts, 1), partitions, "", "blog")
	require.Empty(w.t, faults)
	return a.Connect
}

// consumer is a running consumer.
type consumer struct {
	t     *testing.T
	end   context.CancelFunc
	ended chan error
	log   *dbtest.Log
	shown *prometheus.Registry
}

// behind returns the number of messages that a consumer is behind, by part.
func (c *consumer) behind() map[string]float64 { return c.metric("footfall_queue_behind") }

// metric returns the values of a consumer's metric, by its only label, or by "" if it has none.
func (c *consumer) metric(name string) map[string]float64 {
	c.t.Helper()
	all, err := c.shown.Gather()
	require.NoError(c.t, err)
	values := map[string]float64{}
	for _, family := range all {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			label := ""
			for _, l := range m.GetLabel() {
				label = l.GetValue()
			}
			values[label] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// consume starts a consumer of the queue.
func (w *world) consume() *consumer { return w.consumePartitions("") }

func (w *world) consumePartitions(partitions string) *consumer {
	w.t.Helper()
	return w.consumeBy(w.connect(w.queue, partitions))
}

func (w *world) consumeBy(connect Connect) *consumer { return w.consumeOn(w.URL, connect) }

// consumeOn starts a consumer with this URL of the database.
func (w *world) consumeOn(url string, connect Connect) *consumer {
	w.t.Helper()
	counting := desk.On(w.t, url, desk.Options{Real: true, DB: db.Options{Writers: record.Connections()}})
	ctx, end := context.WithCancel(w.t.Context())
	c := &consumer{w.t, end, make(chan error, 1), &dbtest.Log{}, counting.Metrics}
	w.t.Cleanup(end)
	go func() {
		c.ended <- Run(ctx, counting.Counter, Options{App: "blog", Connect: connect, Log: slog.New(slog.NewTextHandler(c.log, nil)),
			Metrics: NewMetrics(c.shown)})
	}()
	return c
}

// stop stops a consumer, like SIGTERM.
func (c *consumer) stop() {
	c.t.Helper()
	c.end()
	c.endsWith("")
}

func (c *consumer) endsWith(words string) {
	c.t.Helper()
	select {
	case err := <-c.ended:
		if words == "" {
			require.NoError(c.t, err)
		} else {
			require.ErrorContains(c.t, err, words)
		}
	case <-time.After(time.Minute):
		require.Fail(c.t, "it does not end: "+c.log.String())
	}
}

// says waits until a consumer has logged these words.
func (c *consumer) says(words string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return strings.Contains(c.log.String(), words) }, dbtest.Patience, dbtest.Tick)
}

// isCounted waits until the queue is counted to its end.
func (w *world) isCounted() {
	w.t.Helper()
	conn := w.Conn(w.t)
	name, ends := w.ends()
	require.Eventually(w.t, func() bool {
		rows, err := conn.Query(w.t.Context(), "SELECT part, next FROM footfall.positions WHERE source LIKE '%' || $1", name)
		if err != nil {
			return false
		}
		next := map[string]int64{}
		var part string
		var at int64
		_, err = pgx.ForEachRow(rows, []any{&part, &at}, func() error {
			if at > 0 {
				next[part] = at
			}
			return nil
		})
		return err == nil && maps.Equal(ends, next)
	}, dbtest.Patience, dbtest.Tick)
}

// counts compares the tables with the sent messages: each is counted once, or refused once.
func (w *world) counts() {
	w.t.Helper()
	w.mu.Lock()
	sent, refused := w.sent, w.refused
	w.mu.Unlock()
	assert.Equal(w.t, sent.Totals(), w.TotalsOf(w.t))
	assert.Equal(w.t, []string{fmt.Sprint(refused)}, desk.Column[string](w.t, w.Desk, "SELECT count(*)::text FROM footfall.refused"))
	proof, err := verify.Run(w.t.Context(), w.DB, verify.Options{})
	require.NoError(w.t, err)
	require.Zero(w.t, proof.Violations)
}

// finish waits until the queue is counted to its end, stops its consumers, and compares the tables with the sent
// messages.
func (w *world) finish(consumers ...*consumer) {
	w.t.Helper()
	w.isCounted()
	for _, c := range consumers {
		c.stop()
	}
	w.counts()
}

// consumeAll counts the queue with a consumer, and stops it.
func (w *world) consumeAll() *consumer {
	w.t.Helper()
	c := w.consume()
	w.finish(c)
	return c
}

func TestQueueIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendToAll(0, 300)
	c := w.consume()
	w.isCounted()
	w.counts()
	w.send(1, visits(7, 100)...)
	w.isCounted()
	c.stop()
	assert.Contains(t, c.log.String(), "could not be counted")
	w.send(2, visits(8, 100)...)
	w.consumeAll()
}

// Messages have the sources of visitors. If a visit has no time, its hour is that of the message.
func TestMessagesBringTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := time.Now().UTC().Truncate(24 * time.Hour).Add(-time.Hour)
	w.send(0, message{page: "/", visitor: "192.0.2.1", at: at,
		text: `{"uri":"http://blog.example/?utm_campaign=May","ip":"192.0.2.1","referrer":"https://news.example/1","language":"de",` +
			`"country":"AT"}`})
	w.consumeAll()
	require.Eventually(t, func() bool {
		return desk.Column[string](w.t, w.Desk, "SELECT count(*)::text FROM footfall.tag_news")[0] == "0"
	}, dbtest.Patience, dbtest.Tick)
	assert.Equal(t, []string{"campaign may 1", "country AT 1", "hour 23 1", "language de 1", "source news.example 1"},
		desk.Column[string](w.t, w.Desk, `
		SELECT concat_ws(' ', t.name, value, pv) COLLATE "C" FROM footfall.tag_days JOIN footfall.tags AS t ON t.id = tag_id
		JOIN footfall.pages AS p ON p.id = page_id WHERE uri = 'blog.example' ORDER BY 1`))
}

// Offsets committed at the broker are not used.
func TestCommittedOffsetsAreNotBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(0, visits(1, 100)...)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.broker.ListenAddrs()...), kgo.ConsumerGroup("footfall-blog"), kgo.ConsumeTopics("visits"))
	require.NoError(t, err)
	client.PollRecords(t.Context(), 100)
	require.NoError(t, client.CommitUncommittedOffsets(t.Context()))
	require.NotEmpty(t, client.CommittedOffsets())
	client.Close()
	w.consumeAll()
}

// Two consumers read the same partitions at once.
func TestTwoConsumersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendToAll(0, 700)
	a, b := w.consumePartitions("0,1,2"), w.consumePartitions("2, 1,0")
	w.sendToAll(9, 700)
	w.finish(a, b)
}

// Consumers join and leave the group while messages arrive.
func TestRebalances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	running := []*consumer{w.consume()}
	for round := range uint64(6) {
		w.sendToAll(round*10, 150)
		if round%2 == 0 {
			running = append(running, w.consume())
		} else {
			running[0].stop()
			running = running[1:]
		}
	}
	w.finish(running...)
}

// A consumer shows how far it is behind in the partitions that it reads, and not in partitions that it no longer reads.
func TestOnlyWhatIsReadIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendToAll(0, 20)
	first := w.consume()
	w.isCounted()
	require.Eventually(t, func() bool { return len(first.behind()) == partitions }, dbtest.Patience, dbtest.Tick)
	second := w.consume()
	require.Eventually(t, func() bool { return len(first.behind()) < partitions }, dbtest.Patience, dbtest.Tick)
	w.sendToAll(9, 20)
	w.isCounted()
	require.Eventually(t, func() bool {
		both := slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(first.behind())), maps.Keys(second.behind()))))
		return slices.Equal(both, []string{"0", "1", "2"})
	}, dbtest.Patience, dbtest.Tick)
	first.stop()
	second.stop()
	assert.Empty(t, first.behind())
}

// held measures the bytes of a queue that a consumer holds while counting is blocked.
type held struct {
	Source
	fetched func() int64 // by the client, and not yet read
	goOn    chan struct{}

	mu     sync.Mutex // guards the following fields
	unread []Message  // and not passed on
	reads  int
	read   int64
	most   int64
}

func (h *held) Read(ctx context.Context, most int) ([]Message, error) {
	messages, err := h.Source.Read(ctx, most)
	if len(messages) == 0 {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	h.unread = append(h.unread, messages...)
	for _, m := range messages {
		h.read += int64(len(m.Text))
	}
	sum := h.fetched()
	for _, m := range h.unread {
		sum += int64(len(m.Text))
	}
	h.most = max(h.most, sum)
	return messages, err
}

func (h *held) Passed(part string, next int64) {
	<-h.goOn
	h.Source.Passed(part, next)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unread = slices.DeleteFunc(h.unread, func(m Message) bool { return m.Part == part && m.Position < next })
}

// readAhead reports whether reading has stopped because nothing is counted: one chunk is being counted, one waits,
// and one has been read.
func (h *held) readAhead() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reads == 3
}

// large returns a message that is refused.
func large(at time.Time) message { return message{text: strings.Repeat("x", largeMessage), at: at} }

const largeMessage = 900 << 10

// late is a source with delayed messages.
type late struct {
	Source
	has, goOn chan struct{}
}

func (l *late) Read(ctx context.Context, most int) ([]Message, error) {
	messages, err := l.Source.Read(ctx, most)
	if len(messages) > 0 && l.has != nil {
		close(l.has)
		<-l.goOn
		l.has = nil
	}
	return messages, err
}

// A consumer is paused with messages that it has read, another one counts them, and then the first continues.
func TestConsumerThatComesBackLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(0, visits(1, 400)...)
	has, goOn := make(chan struct{}), make(chan struct{})
	first := w.consumeBy(func(ctx context.Context, parts Parts) (Source, error) {
		s, err := w.connect(w.queue, "0")(ctx, parts)
		return &late{s, has, goOn}, err
	})
	<-has
	w.send(0, visits(2, 400)...)
	second := w.consumePartitions("0")
	w.isCounted()
	second.stop()
	close(goOn)
	w.send(0, visits(3, 100)...)
	w.finish(first)
}

// A consumer whose broker goes away reconnects, and counts each message once.
func TestBrokerGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(0, visits(9, 10)...)
	c := w.consume()
	w.isCounted() // so that the consumer has connections to cut
	for round := range uint64(5) {
		w.send(int32(round%partitions), visits(round, 300)...) //nolint:gosec // small
		w.conns.cut()
	}
	w.finish(c)
}

// A consumer whose database goes away logs this, shows how long it has been waiting, and counts each message once. Messages
// that are retried are not counted as refused.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	network, through := dbtest.NewNetwork(t, w.URL)
	c := w.consumeOn(through, w.connect(w.queue, ""))
	for round := range uint64(5) {
		w.send(int32(round%partitions), visits(round, 300)...) //nolint:gosec // small
		network.Cut()
	}
	w.isCounted()
	network.LeadTo("postgres://nobody@127.0.0.1:1/nowhere")
	network.Cut()
	w.send(0, visits(9, 300)...)
	c.says("is waiting")
	stands := func() float64 { return c.metric("footfall_queue_stands_seconds")[""] }
	require.Eventually(t, func() bool { return stands() > 1 }, dbtest.Patience, dbtest.Tick)
	network.LeadTo(w.URL)
	w.isCounted()
	require.Eventually(t, func() bool { return stands() == 0 }, dbtest.Patience, dbtest.Tick)
	visits := c.metric("footfall_visits_total")
	assert.Positive(t, visits["counted"])
	assert.Zero(t, visits["refused"]+visits["lost"])
	w.finish(c)
}
