package queues

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"footfall/visit"
)

const (
	// askWithin is how long a broker has for an answer about a topic.
	askWithin = 15 * time.Second
	// fetchedAtOnce bounds what is fetched ahead, in packed bytes.
	fetchedAtOnce = 8 << 20
)

// kafka reads a topic of Kafka, or of whatever speaks its protocol.
type kafka struct {
	*Address
	name  string
	id    kadm.TopicID // of the topic; zero where the broker knows no such thing
	ask   *kadm.Client // about the topic
	reads *kgo.Client
	begin Begin
	lost  atomic.Pointer[error] // for which nothing more can be read

	mu    sync.Mutex      // guards begun
	begun map[int32]int64 // where partitions were begun to be read last: what is before was counted

	// Partitions that have given messages from before where they were begun. Of Read alone.
	doubted map[int32]kgo.Offset
}

var saslOf = map[string]func(user, password string) sasl.Mechanism{
	"plain": func(user, password string) sasl.Mechanism {
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	},
	"scram-sha-256": func(user, password string) sasl.Mechanism {
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	},
	"scram-sha-512": func(user, password string) sasl.Mechanism {
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	},
}

// connectKafka opens a topic.
func (a *Address) connectKafka(ctx context.Context, begin Begin) (Source, error) {
	k := &kafka{Address: a, begin: begin, begun: map[int32]int64{}, doubted: map[int32]kgo.Offset{}}
	options, err := a.kafkaOptions()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, visit.Errorf(visit.Invalid, "queue", "%v", err)
	}
	k.ask = kadm.NewClient(client)
	topic, err := k.look(ctx)
	if err == nil {
		k.id = topic.id
		k.name = "kafka " + topic.cluster + "/" + a.queue
		if k.id != (kadm.TopicID{}) {
			k.name += " " + k.id.String()
		}
		err = k.startReading(ctx, topic, options)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return k, nil
}

func (a *Address) kafkaOptions() ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.SeedBrokers(a.hosts...), kgo.ClientID("footfall")}
	if mechanism := saslOf[a.options["sasl"]]; mechanism != nil {
		options = append(options, kgo.SASL(mechanism(a.user, a.password)))
	}
	secure, err := a.tls()
	if secure != nil {
		options = append(options, kgo.DialTLSConfig(secure))
	}
	return options, err
}

// topic is what a broker says of a topic.
type topic struct {
	cluster    string
	id         kadm.TopicID
	partitions kadm.PartitionDetails
}

func (k *kafka) look(ctx context.Context) (topic, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	// Without rights that are asked for, it would be answered out of what is known for seconds.
	found, err := k.ask.Metadata(kadm.WithAuthorizedOps(ctx), k.queue)
	if err != nil {
		return topic{}, k.problem(err)
	}
	t := found.Topics[k.queue]
	if errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
		return topic{}, visit.Errorf(visit.NotFound, "queue", "there is no topic %s: make it first", k.queue).Because(t.Err)
	}
	if t.Err != nil {
		return topic{}, k.problem(t.Err)
	}
	return topic{found.Cluster, t.ID, t.Partitions}, nil
}

// problem is what a broker's error means.
func (k *kafka) problem(err error) error {
	broker, is := errors.AsType[*kerr.Error](err)
	_, cleartext := errors.AsType[*tls.RecordHeaderError](err)
	_, unknown := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case unknown:
		return visit.Errorf(visit.Invalid, "queue", "the broker's certificate is not valid here: name the authority that signed it with ?ca=FILE").Because(err)
	case cleartext:
		return visit.Errorf(visit.Invalid, "queue", "the broker does not speak TLS there: write kafka://, or name its other port").Because(err)
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return visit.Errorf(visit.Invalid, "queue", "the broker does not let this user in: look at user, password and sasl").Because(err)
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return visit.Errorf(visit.Invalid, "queue", "the broker does not let this user read topic %s: allow it to describe and read it", k.queue).Because(err)
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return visit.Errorf(visit.Invalid, "queue", "the broker does not let this user be in the group %s: allow it, name another one with ?group=, or name --partitions",
			k.options["group"]).Because(err)
	case is && !broker.Retriable:
		return visit.Errorf(visit.Unavailable, "", "the broker refuses to tell what is in topic %s", k.queue).Because(err)
	}
	if errors.Is(err, io.EOF) {
		return visit.Errorf(visit.Unavailable, "", "the brokers of the queue close the connection: they may ask for TLS, with kafkas://, or for a login, with ?sasl=").Because(err)
	}
	return visit.Errorf(visit.Unavailable, "", "no broker of the queue answers").Because(err)
}

func (k *kafka) startReading(ctx context.Context, t topic, options []kgo.Opt) error {
	options = append(options,
		// An offset that a partition no longer has leads to its first one: what was counted does
		// not count again, and what is missing is found by comparing positions.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(fetchedAtOnce),
	)
	if len(k.parts) == 0 {
		options = append(options, kgo.ConsumerGroup(k.options["group"]), kgo.ConsumeTopics(k.queue), kgo.AutoCommitMarks(), kgo.AdjustFetchOffsetsFn(k.adjust))
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
	client, err := kgo.NewClient(options...)
	k.reads = client
	if err != nil {
		return visit.Errorf(visit.Invalid, "queue", "%v", err)
	}
	return nil
}

// adjust tells the group where to begin: not where it has committed, but where the positions are.
func (k *kafka) adjust(ctx context.Context, from map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	err := k.find(ctx, from[k.queue])
	if other := k.mustBeTheSame(ctx); other != nil { // then so are the offsets that were found
		err = other
	}
	if err != nil && !isTemporary(err) && ctx.Err() == nil {
		k.lost.Store(&err)
	}
	return from, err
}

// find finds where some partitions are to be read from.
func (k *kafka) find(ctx context.Context, from map[int32]kgo.Offset) error {
	asking, cancel := context.WithTimeout(ctx, askWithin)
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
		if !begins || !ends { // as while the topic is deleted
			return visit.Errorf(visit.Unavailable, "", "the brokers do not find partition %d of topic %s", p, k.queue)
		}
		next, err := k.begin(ctx, k.name, partOf(p), first.Offset)
		if err != nil {
			return err
		}
		if next > end.Offset {
			return k.truncated(p, next, end.Offset)
		}
		at := max(next, first.Offset)
		from[p] = kgo.NewOffset().At(at).WithEpoch(-1)
		k.mu.Lock()
		k.begun[p] = at
		k.mu.Unlock()
	}
	return nil
}

func partOf(partition int32) string { return strconv.Itoa(int(partition)) }

// truncated is an error about a partition that has lost what was counted: of what it gets next
// nobody could tell whether it was counted.
func (k *kafka) truncated(partition int32, next, end int64) error {
	return visit.Errorf(visit.Mismatch, "queue", "partition %d of topic %s ends at offset %d, but was counted up to %d: its brokers have lost messages, or it is another topic of that name. "+
		"If what it has now is to be counted, forget how far it was: DELETE FROM footfall.positions WHERE source = '%s' AND part = '%d'",
		partition, k.queue, end, next, strings.ReplaceAll(k.name, "'", "''"), partition)
}

// Name tells the topic apart, by the ids of its cluster and its own.
func (k *kafka) Name() string { return k.name }

// Read waits for messages.
func (k *kafka) Read(ctx context.Context, most int) ([]Message, error) {
	if len(k.doubted) > 0 {
		if err := k.find(ctx, k.doubted); err != nil {
			return nil, err
		}
		clear(k.doubted)
	}
	fetched := k.reads.PollRecords(ctx, most)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if lost := k.lost.Load(); lost != nil {
		return nil, *lost
	}
	messages := k.messages(fetched)
	var err error
	for _, one := range fetched.Errors() {
		if found := k.fault(ctx, one.Err); err == nil || !isTemporary(found) {
			err = found
		}
	}
	if len(messages) > 0 && (err == nil || isTemporary(err)) {
		return messages, nil
	}
	return nil, err
}

// messages are those that were fetched, but for those from before where their partition was begun:
// the client has gone back to its first one. It does so where the partition ends before the offset
// that it is to begin at, and tells nobody.
func (k *kafka) messages(fetched kgo.Fetches) (messages []Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fetched.EachPartition(func(p kgo.FetchTopicPartition) {
		for _, r := range p.Records {
			if r.Offset < k.begun[r.Partition] {
				k.doubted[r.Partition] = kgo.Offset{}
				continue
			}
			messages = append(messages, Message{Part: partOf(r.Partition), Position: r.Offset, Time: r.Timestamp, Text: r.Value, First: p.LogStartOffset, End: p.HighWatermark})
		}
	})
	return messages
}

// fault is what an error of reading means.
func (k *kafka) fault(ctx context.Context, err error) error {
	if lost, ok := errors.AsType[*kgo.ErrDataLoss](err); ok {
		return k.truncated(lost.Partition, lost.ConsumedTo, lost.ResetTo)
	}
	if !errors.Is(err, kerr.UnknownTopicID) && !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, kerr.InconsistentTopicID) {
		told := k.problem(err)
		if !isTemporary(told) { // what worked at the start may work again: passwords and rights are changed one after the other
			told = visit.Errorf(visit.Unavailable, "", "%v", told).Because(err)
		}
		return told
	}
	if other := k.mustBeTheSame(ctx); other != nil {
		return other
	}
	return visit.Errorf(visit.Unavailable, "", "the brokers do not find topic %s now", k.queue).Because(err)
}

// mustBeTheSame returns an error unless the topic is still there.
func (k *kafka) mustBeTheSame(ctx context.Context) error {
	now, err := k.look(ctx)
	switch {
	case err == nil && now.id != k.id:
		return ErrAnew
	case err != nil && !isTemporary(err):
		return visit.Errorf(visit.Unavailable, "", "there is no topic %s any more", k.queue).Because(err)
	}
	return err
}

// Passed marks what is committed to the group from time to time, so that displays of lag are right.
func (k *kafka) Passed(part string, next int64) {
	if p, err := strconv.ParseInt(part, 10, 32); err == nil && len(k.parts) == 0 {
		k.reads.MarkCommitOffsets(map[string]map[int32]kgo.EpochOffset{k.queue: {int32(p): {Epoch: -1, Offset: next}}})
	}
}

// Close leaves the group.
func (k *kafka) Close() {
	if len(k.parts) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_ = k.reads.CommitMarkedOffsets(ctx) // a hint that nobody relies on
		cancel()
	}
	k.reads.CloseAllowingRebalance()
	k.ask.Close()
}
