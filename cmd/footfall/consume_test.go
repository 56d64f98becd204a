package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"footfall/db/dbtest"
	"footfall/db/embedded"
)

// broker has the topic visits with three partitions.
type broker struct {
	net.Listener
	t       *testing.T
	url     string
	cluster *kfake.Cluster

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{t: t}
	listen := func(network, address string) (l net.Listener, err error) {
		b.Listener, err = net.Listen(network, address)
		return b, err
	}
	var err error
	b.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "visits"), kfake.ListenFn(listen))
	require.NoError(t, err)
	t.Cleanup(b.cluster.Close)
	b.url = "kafka://" + b.cluster.ListenAddrs()[0] + "/visits"
	return b
}

func (b *broker) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.conns = append(b.conns, conn)
	}
	return conn, err
}

// cut closes all connections, and returns their number.
func (b *broker) cut() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.conns {
		if conn.Close() == nil { // an error means that the broker has closed this connection before
			n++
		}
	}
	b.conns = nil
	return n
}

// send sends visits of the last days. One message in twenty cannot be counted.
func (b *broker) send(visits int) {
	b.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	require.NoError(b.t, err)
	defer client.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for n := range visits {
		text := fmt.Sprintf(`{"uri":"http://blog.example/%d","ip":"192.0.%d.%d"}`, r.IntN(20), r.IntN(8), r.IntN(250))
		if n%20 == 0 {
			text = text[1:]
		}
		client.Produce(b.t.Context(), &kgo.Record{Topic: "visits", Value: []byte(text),
			Timestamp: time.Now().Add(-time.Duration(r.IntN(72)) * time.Hour)},
			func(_ *kgo.Record, err error) { assert.NoError(b.t, err) })
	}
	require.NoError(b.t, client.Flush(b.t.Context()))
}

// consumer is a process that consumes.
type consumer struct {
	*exec.Cmd
	said  *dbtest.Log
	ended chan struct{} // closed when it has exited
	how   error         // the exit error; valid after ended is closed
}

func consuming(t *testing.T, args ...string) *consumer {
	t.Helper()
	c := &consumer{Cmd: exec.Command(os.Args[0], append([]string{"consume"}, args...)...), said: &dbtest.Log{}, ended: make(chan struct{})}
	c.Env, c.Stderr = environment(), c.said
	require.NoError(t, c.Start())
	go func() {
		c.how = c.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			t.Log(c.said)
		}
	})
	return c
}

func (c *consumer) kill() {
	_ = c.Process.Kill() // it may have exited by itself
	<-c.ended
}

// runs reports whether the consumer is still running. While PostgreSQL is away, a consumer cannot start.
func (c *consumer) runs() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// ends stops a consumer.
func ends(t *testing.T, c *consumer) {
	t.Helper()
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	<-c.ended
	require.NoError(t, c.how, "%v", c.said)
}

// awaitEnd waits until an app has counted all messages of the broker.
func (b *broker) awaitEnd(connect func() (*pgx.Conn, error), app string) {
	b.t.Helper()
	end := int64(0)
	for _, p := range b.cluster.PartitionInfos("visits") {
		end += p.HighWatermark
	}
	within(b.t, crashPatience, "all is counted", func() bool {
		conn, err := connect()
		if err != nil {
			return false
		}
		defer conn.Close(b.t.Context())
		var next int64
		err = conn.QueryRow(b.t.Context(), "SELECT coalesce(sum(next), 0)::bigint FROM footfall.positions WHERE app_id = (SELECT id FROM "+
			"footfall.apps WHERE name = $1)", app).Scan(&next)
		return err == nil && next == end
	})
}

func TestConsume(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	url := strings.TrimPrefix(database, "--database-url=")
	well(t, "app", "add", "blog", "--visitor=address", "--site=blog.example", database)
	b := newBroker(t)
	b.send(200)
	admin := dbtest.FreeAddress(t)
	c := consuming(t, b.url, "--app=blog", "--admin-addr="+admin, database)
	b.awaitEnd(func() (*pgx.Conn, error) { return pgx.Connect(t.Context(), url) }, "blog")
	for _, line := range []string{`footfall_queue_messages_total{outcome="counted"} 190`,
		`footfall_queue_messages_total{outcome="refused"} 10`, `footfall_queue_behind{part="0"} 0`} {
		eventually(t, line, func() bool {
			status, body := get("http://" + admin + "/metrics")
			return status == http.StatusOK && strings.Contains(body, line)
		})
	}
	ends(t, c)
	assert.Regexp(t, `(?m)^blog  kafka \S+/visits \S+  2 +\d+ +\d+ +\d{4}-.* UTC$`, well(t, "consume", "list", "--app=blog", database))
	assert.Contains(t, footfall(t, "consume", "list", "--app=none", database).stderr, "none")
	r := footfall(t, "consume", "kafka:///", "--app=blog", "--partitions=x", "--admin-addr=nowhere", "--password-file=/no/such", database)
	assert.Equal(t, 2, r.code)
	for _, words := range []string{"names no host", "names no topic", "--partitions: ", "--admin-addr: ", "--password-file: "} {
		assert.Contains(t, r.stderr, words)
	}
	r = footfall(t, "consume", b.url, "--app=none", database)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "none")
}

// A consumer waits for a database that does not exist yet, and can be stopped while waiting.
func TestConsumeWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	url := strings.TrimPrefix(database, "--database-url=")
	b := newBroker(t)
	network, through := dbtest.NewNetwork(t, url)
	network.LeadTo("postgres://nobody@127.0.0.1:1/nowhere")
	c := consuming(t, b.url, "--app=demo", "--partitions=0,1,2", "--database-url="+through)
	ended := consuming(t, b.url, "--app=demo", "--database-url="+through)
	for _, waits := range []*consumer{c, ended} {
		eventually(t, "it waits", func() bool { return strings.Contains(waits.said.String(), "waiting for the database") || !waits.runs() })
	}
	ends(t, ended)
	network.LeadTo(url)
	b.send(20)
	b.awaitEnd(func() (*pgx.Conn, error) {
		require.True(t, c.runs(), "%v", c.said)
		return pgx.Connect(t.Context(), url)
	}, "demo")
	ends(t, c)
}

// Two consumers of the same partitions are killed in turns, together with PostgreSQL and the connections of the
// broker. They count and refuse the same messages as an undisturbed consumer. FOOTFALL_CRASH_VISITS and
// FOOTFALL_CRASH_KILLS make it longer.
func TestConsumerIsKilled(t *testing.T) {
	t.Parallel()
	visits, times := dbtest.FromEnv(t, "FOOTFALL_CRASH_VISITS", dbtest.LongOrShort(6000, 3000)),
		dbtest.FromEnv(t, "FOOTFALL_CRASH_KILLS", dbtest.LongOrShort(6, 3))
	data := usedData(t)
	s := serve(t, "--data", data)
	connect := func() (*pgx.Conn, error) {
		url, running, err := embedded.Attach(data)
		if err != nil || !running {
			return nil, fmt.Errorf("no server runs: %w", err)
		}
		return pgx.Connect(t.Context(), url)
	}
	for _, app := range []string{"clean", "killed"} {
		well(t, "app", "add", app, "--visitor=address", "--site=blog.example", "--data", data)
	}
	b := newBroker(t)
	b.send(visits / 2)
	start := func(app string) *consumer {
		return consuming(t, b.url, "--app="+app, "--partitions=0,1,2", "--data", data)
	}
	began := time.Now()
	clean := start("clean")
	b.awaitEnd(connect, "clean")
	took, killed := time.Since(began), kills{}

	two := []*consumer{start("killed"), start("killed")}
	// Restarts the consumers that have exited, like a service's supervisor.
	startAgain := func() {
		for i, c := range two {
			if !c.runs() {
				two[i] = start("killed")
			}
		}
	}
	for n := range times {
		if n == times/2 {
			b.send(visits / 2)
		}
		time.Sleep(3 * took / time.Duration(times) * time.Duration(rand.IntN(8)+1) / 8) //nolint:forbidigo // it is killed at a random point
		switch n % 3 {
		case 0:
			one := two[rand.IntN(2)]
			one.kill()
			if one.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
				killed["consumers"]++
			}
			startAgain()
		case 1:
			killPostgres(t, data)
			killed["servers"]++
			eventually(t, "PostgreSQL answers", func() bool { status, _ := get(s.url + "/readyz"); return status == http.StatusOK })
		case 2:
			killed["connections"] += b.cut()
		}
	}
	for _, app := range []string{"killed", "clean"} {
		b.awaitEnd(func() (*pgx.Conn, error) { startAgain(); return connect() }, app)
	}
	// A consumer that has just started would be killed by the signal that stops it.
	eventually(t, "both read", func() bool {
		startAgain()
		return !slices.ContainsFunc(two, func(c *consumer) bool { return !strings.Contains(c.said.String(), "reading the queue") })
	})
	ends(t, two[0])
	ends(t, two[1])
	ends(t, clean)
	assert.Empty(t, differing(t, "clean", "killed", "--data", data))
	assert.Equal(t, fmt.Sprintf("%d\n", visits-visits/20), well(t, "psql", "--data", data, "--", "-Atc",
		"SELECT hot FROM report.sites WHERE app = 'killed'"))
	assert.Contains(t, well(t, "verify", "--data", data), "0 violations")
	assert.Zero(t, s.stop())
	t.Logf("%d messages; %s", visits, killed.each(t, "consumers", "servers", "connections"))
}
