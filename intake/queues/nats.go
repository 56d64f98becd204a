package queues

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"footfall/visit"
)

const (
	fetchFor      = 5 * time.Second // a request waits for messages
	consumerStays = 5 * time.Minute // at a server that is not asked
	streamPart    = "0"             // the only part that a stream has
)

// stream reads a stream of NATS JetStream by the sequence of its messages. The server keeps nothing
// of how far that is.
type stream struct {
	*Address
	name   string
	conn   *nats.Conn
	stream jetstream.Stream
	reads  jetstream.Consumer // from where the stream was counted up to

	next      uint64                 // the sequence to read next
	delivered uint64                 // messages, by reads
	batch     jetstream.MessageBatch // of reads; nil: to be asked for
	single    bool                   // what is asked for then: a message alone, however large
}

// connectNATS opens a stream.
func (a *Address) connectNATS(ctx context.Context, parts Parts) (Source, error) {
	options, err := a.natsOptions()
	if err != nil {
		return nil, err
	}
	s := &stream{Address: a}
	if s.conn, err = nats.Connect("nats://"+strings.Join(a.hosts, ",nats://"), options...); err != nil {
		return nil, s.problem(err)
	}
	if err := s.open(ctx, parts); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// problem is what an error of a server means.
func (s *stream) problem(err error) error {
	return problem(err, "the server of the queue does not answer", []meaning{
		{"there is no stream " + s.queue + ": make it first", []error{jetstream.ErrStreamNotFound}},
		{"the server does not let this user in: look at user and password, or name a file of credentials with ?creds=",
			[]error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked}},
		{"the server asks for TLS: write tls://", []error{nats.ErrSecureConnRequired}},
		{"the server does not speak TLS: write nats://", []error{nats.ErrSecureConnWanted}},
		{"the server has no JetStream for this user: turn it on there",
			[]error{jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount}},
	})
}

//nolint:gosec // sequences count messages, from 1 on
func (s *stream) open(ctx context.Context, parts Parts) error {
	js, err := jetstream.New(s.conn, jetstream.WithDefaultTimeout(askWithin))
	if err == nil {
		s.stream, err = js.Stream(ctx, s.queue)
	}
	if err != nil {
		return s.problem(err)
	}
	opened := s.stream.CachedInfo()
	if opened.Config.Retention != jetstream.LimitsPolicy {
		return visit.Errorf(visit.Invalid, "queue",
			"stream %s lets go of messages when others have acknowledged them: make one whose retention is limits", s.queue)
	}
	s.name = fmt.Sprintf("nats %s %s", s.queue, opened.Created.UTC().Format(time.RFC3339Nano))
	next, err := parts.Begin(ctx, s.name, streamPart, max(int64(opened.State.FirstSeq), 1))
	if err != nil {
		return err
	}
	s.next = uint64(next)
	s.reads, err = s.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: s.next,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: consumerStays, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return s.problem(err)
	}
	// Whoever reads a stream goes with it. So what was made before this is of this stream.
	now, err := s.stream.Info(ctx)
	switch {
	case err != nil:
		return s.problem(err)
	case !now.Created.Equal(opened.Created):
		return visit.Errorf(visit.Unavailable, "", "stream %s is just being made anew", s.queue)
	case s.next > now.State.LastSeq+1: // whose sequences others will get
		return lostMessages(s.name, streamPart, fmt.Sprintf("stream %s ends at sequence %d", s.queue, now.State.LastSeq), next-1)
	}
	return nil
}

// Read waits for messages.
func (s *stream) Read(ctx context.Context, most int) (messages []Message, err error) {
	if s.batch == nil {
		limits := []jetstream.FetchOpt{jetstream.FetchMaxWait(fetchFor), jetstream.FetchMaxBytes(fetchedAtOnce)}
		if s.single {
			most, limits = 1, limits[:1]
		}
		if s.batch, err = s.reads.Fetch(most, limits...); err != nil {
			return nil, anew(s.problem(err))
		}
		s.single = true // unless messages come
	}
	sent, more, err := take(ctx, s.batch.Messages(), most)
	if err != nil {
		return nil, err
	}
	for _, m := range sent {
		one, err := s.message(ctx, m)
		if err != nil {
			return nil, anew(err)
		}
		messages, s.single = append(messages, one), false
	}
	if !more {
		err, s.batch = s.problem(s.batch.Error()), nil
	}
	return messages, anew(err)
}

func (s *stream) message(ctx context.Context, m jetstream.Msg) (Message, error) {
	about, err := m.Metadata()
	if err != nil {
		return Message{}, s.problem(err)
	}
	at, nth, first := about.Sequence.Stream, about.Sequence.Consumer, uint64(0)
	if nth != s.delivered+1 {
		return Message{}, visit.Errorf(visit.Unavailable, "", "messages were lost on their way")
	}
	if at > s.next { // some were deleted, or the stream has let go of them
		info, err := s.stream.Info(ctx)
		if err != nil {
			return Message{}, s.problem(err)
		}
		first = info.State.FirstSeq
	}
	s.delivered, s.next = nth, at+1
	return Message{Part: streamPart, Position: int64(at), Time: about.Timestamp, Text: m.Data(), First: int64(first),
		End: int64(at + about.NumPending + 1)}, nil //nolint:gosec // likewise
}

// Name tells the stream apart, by when it was made.
func (s *stream) Name() string { return s.name }

// Passed does nothing: what looks at a stream shows nobody who reads in this way.
func (s *stream) Passed(string, int64) {}

// Close ends the connection.
func (s *stream) Close() { s.conn.Close() }
