package queues

import (
	"context"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"footfall/db/dbtest"
)

// A real broker, started as in the compose file of docs/queue, is counted: by a group that changes while messages
// arrive, from batches with each compression, and after its topic was created again.
func TestRealBroker(t *testing.T) {
	w := newTables(t)
	w.queue, w.hosts = kafkaQueue, startBroker(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.hosts))
	require.NoError(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	w.ends = func() (string, map[string]int64) {
		offsets, err := admin.ListEndOffsets(t.Context(), "visits")
		require.NoError(t, err)
		topics, err := admin.ListTopics(t.Context(), "visits")
		require.NoError(t, err)
		ends := map[string]int64{}
		offsets.Each(func(o kadm.ListedOffset) {
			if o.Offset > 0 {
				ends[partOf(o.Partition)] = o.Offset
			}
		})
		return topics["visits"].ID.String(), ends
	}
	for round := range uint64(2) {
		_, err = admin.CreateTopic(t.Context(), partitions, 1, nil, "visits")
		require.NoError(t, err)
		first := w.consume()
		for n, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(),
			kgo.ZstdCompression()} {
			w.sendAs([]kgo.Opt{kgo.ProducerBatchCompression(codec)}, int32(n%partitions), visits(round*10+uint64(n), 300)...) //nolint:gosec // small
		}
		second := w.consume()
		w.sendAs(nil, 0, visits(round*10+7, 300)...)
		w.isCounted()
		first.stop()
		w.sendAs(nil, 1, visits(round*10+8, 300)...)
		w.isCounted()
		second.stop()
		w.counts()
		_, err = admin.DeleteTopic(t.Context(), "visits")
		require.NoError(t, err)
	}
}

// startBroker starts the broker of docs/queue/docker-compose.yml at another port, and returns its address. It skips
// the test if no container engine has its image.
func startBroker(t *testing.T) (host string) {
	t.Helper()
	compose, err := os.ReadFile("../../docs/queue/docker-compose.yml")
	require.NoError(t, err)
	image := string(regexp.MustCompile(`image: (\S+)`).FindSubmatch(compose)[1])
	host = dbtest.FreeAddress(t)
	var command []string
	for _, word := range regexp.MustCompile(`(?m)^      - (.*)$`).FindAllSubmatch(compose, -1) {
		command = append(command, strings.ReplaceAll(string(word[1]), "outside://127.0.0.1:9092", "outside://"+host))
	}
	needs := func(err error) {
		if err != nil {
			t.Skipf("no container engine has %s, which `docker pull` gets: %v", image, err)
		}
	}
	t.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true") // it would need one more image, and the container is removed with the test
	engine, err := testcontainers.NewDockerProvider()
	needs(err)
	defer engine.Close()
	_, err = engine.Client().ImageInspect(t.Context(), image)
	needs(err)

	_, port, err := net.SplitHostPort(host)
	require.NoError(t, err)
	broker, err := testcontainers.Run(t.Context(), image, testcontainers.WithCmd(command...), testcontainers.WithExposedPorts("9092/tcp"),
		testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
			c.PortBindings = network.PortMap{network.MustParsePort("9092/tcp"): {{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: port}}}
		}))
	t.Cleanup(func() { require.NoError(t, testcontainers.TerminateContainer(broker)) })
	require.NoError(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(host))
	require.NoError(t, err)
	defer client.Close()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return client.Ping(ctx) == nil
	}, 2*dbtest.Patience, dbtest.Tick)
	return host
}
