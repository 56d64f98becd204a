package queues

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"footfall/visit"
)

const (
	// unpackedAtMost is the maximum size, in bytes, of a batch of messages after decompression. Producers limit a batch to
	// 1 MiB by default, but for some of them this is the limit of the compressed batch.
	unpackedAtMost = 32 << 20
	// fetchedFirst is the number of bytes that are fetched at once until the compression ratio of the messages is known.
	fetchedFirst = 64 << 10
	// newPartitionWithin is the maximum time until the client starts to read a partition that was added to the topic.
	newPartitionWithin = 15 * time.Second
	// recordTakes is approximately how many bytes of memory a message needs in addition to its text.
	recordTakes = 400
)

// kafka reads a topic of Kafka, or of another server that uses Kafka's protocol. It implements Source.
type kafka struct {
	*Address
	Parts
	name  string
	id    kadm.TopicID // the topic's id; zero if the brokers do not support topic ids
	ask   *kadm.Client // client that requests information about the topic
	reads *kgo.Client
	share float64 // part of fetchedAtOnce that the fetch from each broker may use

	mu           sync.Mutex      // guards the following fields
	startOffsets map[int32]int64 // partition → offset at which reading began; earlier messages are already counted
	// Total size of recently fetched messages in bytes, before and after decompression.
	packed, unpacked float64
}

// Connect connects to the brokers and starts to read the topic.
func (a *Address) Connect(ctx context.Context, parts Parts) (Source, error) {
	k := &kafka{Address: a, Parts: parts, startOffsets: map[int32]int64{}}
	options, err := a.kafkaOptions()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options, kgo.RequestRetries(2))...) // few retries, so that errors are reported soon
	if err != nil {
		return nil, visit.Errorf(visit.Invalid, "queue", "%v", err)
	}
	k.ask = kadm.NewClient(client)
	topic, err := k.describeTopic(ctx)
	if err == nil {
		k.id = topic.id
		k.name, err = a.nameOf(topic)
	}
	if err == nil {
		err = k.startReading(ctx, topic, options)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return k, nil
}

// topic contains the brokers' information about a topic.
type topic struct {
	cluster    string
	brokers    int
	id         kadm.TopicID
	partitions kadm.PartitionDetails
}

// nameOf returns a unique name for a topic, under which the positions are stored. The name consists of the cluster's id,
// the topic's name and the topic's id. It does not contain the brokers' address: if this address changed, all messages
// would be counted again.
func (a *Address) nameOf(t topic) (string, error) {
	if t.id != (kadm.TopicID{}) {
		return "kafka " + t.cluster + "/" + a.queue + " " + t.id.String(), nil
	}
	cluster := cmp.Or(t.cluster, a.options["cluster"])
	if cluster == "" {
		return "", visit.Errorf(visit.Invalid, "queue", "the brokers report no id of their cluster or of topic %s, which would identify it: "+
			"name the cluster with ?cluster=, with a unique name that never changes", a.queue)
	}
	return "kafka " + cluster + "/" + a.queue, nil
}

// noClusterYet is the id that Redpanda returns during its first start, before the cluster has an id.
const noClusterYet = "redpanda.initializing"

func (k *kafka) describeTopic(ctx context.Context) (topic, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	// WithAuthorizedOps bypasses the client's cache, which may contain metadata that are several seconds old.
	found, err := k.ask.Metadata(kadm.WithAuthorizedOps(ctx), k.queue)
	if err != nil {
		return topic{}, k.problem(err)
	}
	if found.Cluster == noClusterYet {
		return topic{}, visit.Errorf(visit.Unavailable, "", "the cluster of the queue has no id yet: it is starting")
	}
	t := found.Topics[k.queue]
	return topic{found.Cluster, len(found.Brokers), t.ID, t.Partitions}, k.problem(t.Err)
}

// problem translates an error of a broker into an error that suggests a remedy.
func (k *kafka) problem(err error) error {
	otherwise := "no broker of the queue answers"
	if broker, is := errors.AsType[*kerr.Error](err); is && !broker.Retriable {
		otherwise = "the broker refuses to describe topic " + k.queue
	} else if errors.Is(err, io.EOF) {
		otherwise = "the brokers of the queue close the connection: they may require TLS, with kafkas://, or a login, with ?sasl="
	}
	return problem(err, otherwise, []meaning{
		{"there is no topic " + k.queue + ": create it first", []error{kerr.UnknownTopicOrPartition}},
		{"the broker does not accept this user: check user, password and sasl",
			[]error{kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState}},
		{"the broker does not allow this user to read topic " + k.queue + ": allow the user to describe and read it",
			[]error{kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed}},
		{"the broker does not allow this user to join the group " + k.options["group"] +
			": allow it, name another group with ?group=, or use --partitions", []error{kerr.GroupAuthorizationFailed}},
	})
}

func (k *kafka) startReading(ctx context.Context, t topic, options []kgo.Opt) error {
	k.share = 1 / float64(max(t.brokers, 1)) // the client fetches from all brokers at the same time
	options = append(options,
		// If the requested offset was deleted from a partition, the client restarts at the partition's first offset.
		// Messages that were already counted do not count again, and Keep finds out which messages are missing.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// Kafka ends a transaction with a control record, which has an offset like a message. The stored position must also
		// move past control records. Otherwise they would look like lost messages after Kafka has deleted them.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.FetchMaxBytes(fetchedFirst), kgo.FetchMaxPartitionBytes(fetchedFirst), kgo.WithHooks(k),
		kgo.MaxDecompressBatchBytes(unpackedAtMost),
		kgo.MetadataMaxAge(newPartitionWithin),
	)
	if len(k.parts) == 0 {
		options = append(options, kgo.ConsumerGroup(k.options["group"]), kgo.ConsumeTopics(k.queue), kgo.AutoCommitMarks(),
			kgo.AdjustFetchOffsetsFn(k.adjust),
			kgo.OnPartitionsRevoked(k.revoked), kgo.OnPartitionsLost(k.leave))
	} else {
		from := map[int32]kgo.Offset{}
		for _, p := range k.parts {
			if _, there := t.partitions[p]; !there {
				return visit.Errorf(visit.Invalid, "partitions", "topic %s has no partition %d: it has 0 to %d", k.queue, p, len(t.partitions)-1)
			}
			from[p] = kgo.Offset{}
		}
		if err := k.find(ctx, from); err != nil {
			return err
		}
		options = append(options, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{k.queue: from}))
	}
	if _, err := kgo.NewClient(options...); err != nil {
		return visit.Errorf(visit.Invalid, "queue", "%v", err)
	}
	return nil
}

// OnNewClient stores the client in k.reads. It is a hook that kgo calls before the new client starts to fetch.
func (k *kafka) OnNewClient(client *kgo.Client) { k.reads = client }

// adjust makes the consumer group start at the positions that are stored in the database, not at the offsets that the group
// has committed.
func (k *kafka) adjust(ctx context.Context, from map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	err := k.find(ctx, from[k.queue])
	if other := k.mustBeTheSame(ctx); other != nil { // the stored positions belong to a topic that was deleted
		err = other
	}
	return from, err
}

func (k *kafka) revoked(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
	_ = client.CommitMarkedOffsets(ctx) // ignore errors: committed offsets are only for monitoring
	k.leave(ctx, client, partitions)
}

func (k *kafka) leave(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	for _, p := range partitions[k.queue] {
		k.Leave(partOf(p))
	}
}

// find determines at which offset the client must start to read each partition in from. It stores the offset in from.
func (k *kafka) find(ctx context.Context, from map[int32]kgo.Offset) error {
	asking, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	firsts, err := k.ask.ListStartOffsets(asking, k.queue)
	if err != nil {
		return k.problem(err)
	}
	ends, err := k.ask.ListEndOffsets(asking, k.queue)
	if err != nil {
		return k.problem(err)
	}
	for p := range from {
		first, begins := firsts.Lookup(k.queue, p)
		end, ends := ends.Lookup(k.queue, p)
		if err := errors.Join(first.Err, end.Err); err != nil {
			return k.problem(err)
		}
		if !begins || !ends { // this can happen while the topic is being deleted
			return visit.Errorf(visit.Unavailable, "", "the brokers do not find partition %d of topic %s", p, k.queue)
		}
		next, err := k.Begin(ctx, k.name, partOf(p), first.Offset)
		if err != nil {
			return err
		}
		if next > end.Offset {
			return k.truncated(p, next, end.Offset)
		}
		at := max(next, first.Offset)
		from[p] = kgo.NewOffset().At(at).WithEpoch(-1)
		k.mu.Lock()
		k.startOffsets[p] = at
		k.mu.Unlock()
	}
	return nil
}

func partOf(partition int32) string { return strconv.Itoa(int(partition)) }

func (k *kafka) truncated(partition int32, next, end int64) error {
	return lostMessages(k.name, partOf(partition), fmt.Sprintf("partition %d of topic %s ends at offset %d", partition, k.queue, end), next)
}

// OnFetchBatchRead is a hook that kgo calls after each fetched batch. It adapts the fetch size to the compression ratio, so
// that the messages need less than fetchedAtOnce bytes after decompression.
func (k *kafka) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, batch kgo.FetchBatchMetrics) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.packed > fetchedAtOnce { // halve both, so that older batches have less weight
		k.packed, k.unpacked = k.packed/2, k.unpacked/2
	}
	k.packed += float64(batch.CompressedBytes)
	k.unpacked += float64(batch.UncompressedBytes + recordTakes*batch.NumRecords)
	most := int32(max(fetchedAtOnce*k.share*k.packed/max(k.unpacked, k.packed, 1), fetchedFirst*k.share))
	k.reads.UpdateFetchMaxBytes(most, most)
}

// Name implements Source. The name is the result of nameOf.
func (k *kafka) Name() string { return k.name }

// Read implements Source.
func (k *kafka) Read(ctx context.Context, most int) (messages []Message, err error) {
	fetched := k.reads.PollRecords(ctx, most)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fetched.EachPartition(func(p kgo.FetchTopicPartition) {
		if tooLarge, ok := errors.AsType[*kgo.ErrDecompressTooLarge](p.Err); ok {
			messages = append(messages, k.passBatch(tooLarge, p))
		} else if p.Err != nil {
			if fault := k.fault(ctx, p.Err); err == nil || !isTemporary(fault) {
				err = fault
			}
		}
		begun := k.begunAt(p.Partition)
		for _, r := range p.Records {
			if r.Offset < begun {
				// The partition now ends before the offset at which reading began. In this case, the client restarts at the
				// first offset, but reports no error.
				err = reopen(visit.Errorf(visit.Unavailable, "", "partition %d of topic %s starts over at its first offset", r.Partition, k.queue))
				continue
			}
			messages = append(messages, Message{Part: partOf(r.Partition), Position: r.Offset, Time: r.Timestamp, Text: r.Value,
				First: p.LogStartOffset, End: p.HighWatermark,
				Mark: r.Attrs.IsControl()})
		}
	})
	return messages, err
}

func (k *kafka) begunAt(partition int32) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.startOffsets[partition]
}

// passBatch makes the client skip a batch that is too large to decompress. It returns one message for the whole batch. The
// message's field Unreadable explains the problem.
func (k *kafka) passBatch(b *kgo.ErrDecompressTooLarge, p kgo.FetchTopicPartition) Message {
	k.reads.SetOffsets(map[string]map[int32]kgo.EpochOffset{k.queue: {b.Partition: {Epoch: b.Epoch, Offset: b.NextOffset}}})
	return Message{Part: partOf(b.Partition), Position: b.NextOffset - 1, First: p.LogStartOffset, End: p.HighWatermark,
		Unreadable: fmt.Sprintf("the messages from %d up to here are a batch that unpacks to more than %d MiB: "+
			"let producers send smaller batches",
			b.Offset, unpackedAtMost>>20)}
}

// fault translates an error that the client reported while it was reading the topic.
func (k *kafka) fault(ctx context.Context, err error) error {
	if lost, ok := errors.AsType[*kgo.ErrDataLoss](err); ok {
		return k.truncated(lost.Partition, lost.ConsumedTo, lost.ResetTo)
	}
	if _, told := errors.AsType[*visit.Error](err); told { // adjust has returned err, so it already has a text for users
		return makeTemporary(err)
	}
	if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.InconsistentTopicID) {
		if other := k.mustBeTheSame(ctx); other != nil {
			return other
		}
	}
	return makeTemporary(k.problem(err))
}

// mustBeTheSame returns an error unless the topic still exists with the same id. If its id has changed, the topic was
// deleted and created again.
func (k *kafka) mustBeTheSame(ctx context.Context) error {
	now, err := k.describeTopic(ctx)
	if err == nil && now.id != k.id {
		return reopen(visit.Errorf(visit.Unavailable, "", "topic %s was deleted and created again", k.queue))
	}
	return makeTemporary(err)
}

// Passed implements Source. It marks the offset up to which a partition was counted. The client regularly commits the
// marked offsets to the consumer group, so that monitoring tools show how many messages are not counted yet.
func (k *kafka) Passed(part string, next int64) {
	if p, err := strconv.ParseInt(part, 10, 32); err == nil && len(k.parts) == 0 {
		k.reads.MarkCommitOffsets(map[string]map[int32]kgo.EpochOffset{k.queue: {int32(p): {Epoch: -1, Offset: next}}})
	}
}

// Close leaves the consumer group and closes the connections.
func (k *kafka) Close() {
	if len(k.parts) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_ = k.reads.CommitMarkedOffsets(ctx) // ignore errors: committed offsets are only for monitoring
		cancel()
	}
	k.reads.CloseAllowingRebalance()
	k.ask.Close()
}
