package queues

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"footfall/admin"
	"footfall/bench/generate"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/intake/logs"
	"footfall/record"
)

// BenchmarkQueue measures the number of visits per second counted from a topic of four partitions, and of the same
// visits counted one by one, as sent by 256 concurrent callers. Without HTTP, with the broker in this process, and
// each with its own tables.
func BenchmarkQueue(b *testing.B) {
	visits := madeUp(b, generate.Set{Visits: 200_000, Visitors: 20_000, Pages: 5_000, Days: 12})
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "visits"))
	require.NoError(b, err)
	defer broker.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()),
		kgo.MaxBufferedRecords(len(visits)))
	require.NoError(b, err)
	for _, v := range visits {
		text := fmt.Sprintf(`{"uri":%q,"ip":%q,"agent":%q}`, v.URI, v.IP, v.Agent)
		client.Produce(b.Context(), &kgo.Record{Topic: "visits", Value: []byte(text)}, nil)
	}
	require.NoError(b, client.Flush(b.Context()))
	client.Close()

	var consumed, recorded time.Duration
	for b.Loop() {
		c := rated(b)
		begin := time.Now()
		consumeAll(b, c, broker.ListenAddrs()[0], int64(len(visits)))
		consumed += time.Since(begin)

		c = rated(b)
		begin = time.Now()
		recordAll(b, c, visits)
		recorded += time.Since(begin)
	}
	rate := func(took time.Duration) float64 { return float64(b.N*len(visits)) / took.Seconds() }
	b.ReportMetric(rate(consumed), "consumed/s")
	b.ReportMetric(rate(recorded), "recorded/s")
	b.ReportMetric(rate(consumed)/rate(recorded), "×")
	b.ReportMetric(0, "ns/op") // of both together
}

// madeUp returns visits of a made-up log, without bots.
func madeUp(b *testing.B, set generate.Set) (visits []counter.Request) {
	var text bytes.Buffer
	require.NoError(b, generate.WriteLog(&text, set))
	p := logs.NewParser(logs.CombinedHost)
	for line := range bytes.Lines(text.Bytes()) {
		var l logs.Line
		require.NoError(b, p.Parse(bytes.TrimSuffix(line, []byte("\n")), &l))
		if l.Status == 200 && !bytes.Contains(l.Agent, []byte("bot")) && bytes.Equal(l.Method, []byte("GET")) {
			visits = append(visits, counter.Request{App: "big", URI: "http://" + string(l.Host) + string(l.Target), IP: string(l.Client),
				HasVisitor: true, Agent: string(l.Agent)})
		}
	}
	return visits
}

// rated opens a counter on a new database, like serve.
func rated(b *testing.B) *counter.Counter {
	tables, err := db.Open(b.Context(), dbtest.New(b), db.Options{Writers: record.Connections()})
	require.NoError(b, err)
	b.Cleanup(tables.Close)
	open := "open"
	require.NoError(b, admin.NewAdmin(tables, nil).AddApp(b.Context(), "big", app.Settings{Access: &open}))
	c, err := counter.Open(b.Context(), tables, counter.Options{Options: record.Options{Filter: true, Memory: 64 << 20}})
	require.NoError(b, err)
	b.Cleanup(c.Close)
	return c
}

// counted notices when a source has been counted to its end.
type counted struct {
	Source
	passed map[string]int64
	all    int64
	end    context.CancelFunc
}

func (c *counted) Passed(part string, next int64) {
	c.Source.Passed(part, next)
	c.passed[part] = next
	sum := int64(0)
	for _, next := range c.passed {
		sum += next
	}
	if sum == c.all {
		c.end()
	}
}

func consumeAll(b *testing.B, c *counter.Counter, host string, messages int64) {
	address, faults := ParseAddress("kafka://"+host+"/visits", "0,1,2,3", "", "big")
	require.Empty(b, faults)
	ctx, end := context.WithCancel(b.Context())
	defer end()
	connect := func(ctx context.Context, parts Parts) (Source, error) {
		s, err := address.Connect(ctx, parts)
		return &counted{s, map[string]int64{}, messages, end}, err
	}
	require.NoError(b, Run(ctx, c, Options{App: "big", Connect: connect, Log: slog.New(slog.DiscardHandler), Metrics: NewMetrics(nil)}))
	require.NoError(b, b.Context().Err())
}

func recordAll(b *testing.B, c *counter.Counter, visits []counter.Request) {
	var next atomic.Int64
	var callers sync.WaitGroup
	for range 256 {
		callers.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(visits)); n = next.Add(1) - 1 {
				if _, err := c.Visit(b.Context(), visits[n]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
}
