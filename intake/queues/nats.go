package queues

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"footfall/visit"
)

const (
	// fetchFor is how long one request waits for messages.
	fetchFor = 5 * time.Second
	// consumerStays is how long the server remembers who reads, when they do not ask.
	consumerStays = 5 * time.Minute
	// streamPart is the only part that a stream has.
	streamPart = "0"
)

// stream reads a stream of NATS JetStream, by the sequence of its messages. The server keeps
// nothing of how far that is.
type stream struct {
	name    string
	created time.Time // by which it is told from one that had its name before
	conn    *nats.Conn
	stream  jetstream.Stream

	next      uint64             // the sequence to read next
	reads     jetstream.Consumer // from next on; nil: to be made
	delivered uint64             // by reads
	batch     <-chan jetstream.Msg
	fetched   jetstream.MessageBatch // of batch
}

// connectNATS opens a stream.
func (a *Address) connectNATS(ctx context.Context, begin Begin) (Source, error) {
	options := []nats.Option{nats.Name("footfall"), nats.MaxReconnects(-1), nats.Timeout(askWithin)}
	if a.user != "" {
		options = append(options, nats.UserInfo(a.user, a.password))
	}
	if file := a.options["creds"]; file != "" {
		options = append(options, nats.UserCredentials(file))
	}
	secure, err := a.tls()
	if err != nil {
		return nil, err
	}
	if secure != nil {
		options = append(options, nats.Secure(secure))
	}
	conn, err := nats.Connect("nats://"+strings.Join(a.hosts, ",nats://"), options...)
	if err != nil {
		return nil, natsProblem(err)
	}
	s := &stream{conn: conn}
	if err := s.open(ctx, a.queue, begin); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// natsProblem is what an error of a server means.
func natsProblem(err error) error {
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return visit.Errorf(visit.Invalid, "queue", "the server does not let this user in: look at user and password, or name a file of credentials with ?creds=").Because(err)
	case errors.Is(err, nats.ErrSecureConnRequired):
		return visit.Errorf(visit.Invalid, "queue", "the server asks for TLS: write tls://").Because(err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return visit.Errorf(visit.Invalid, "queue", "the server does not speak TLS: write nats://").Because(err)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return visit.Errorf(visit.Invalid, "queue", "the server has no JetStream for this user: turn it on there").Because(err)
	}
	return visit.Errorf(visit.Unavailable, "", "the server of the queue does not answer").Because(err)
}

func (s *stream) open(ctx context.Context, name string, begin Begin) error {
	js, err := jetstream.New(s.conn)
	if err != nil {
		return visit.Errorf(visit.Invalid, "queue", "%v", err)
	}
	asking, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	s.stream, err = js.Stream(asking, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return visit.Errorf(visit.NotFound, "queue", "there is no stream %s: make it first", name).Because(err)
	}
	if err != nil {
		return natsProblem(err)
	}
	info := s.stream.CachedInfo()
	if info.Config.Retention != jetstream.LimitsPolicy {
		return visit.Errorf(visit.Invalid, "queue", "stream %s lets go of messages when others have acknowledged them: make one whose retention is limits", name)
	}
	s.created = info.Created
	s.name = fmt.Sprintf("nats %s %s", name, s.created.UTC().Format(time.RFC3339Nano))
	next, err := begin(ctx, s.name, streamPart, max(int64(info.State.FirstSeq), 1)) //nolint:gosec // sequences count messages
	if err != nil {
		return err
	}
	s.next = uint64(next) //nolint:gosec // from 1 on
	return s.mustReach(info)
}

// mustReach returns an error unless the stream has all that comes before what is to be read next: a
// server that has lost its last messages gives their sequences to others.
func (s *stream) mustReach(info *jetstream.StreamInfo) error {
	if s.next <= info.State.LastSeq+1 {
		return nil
	}
	return visit.Errorf(visit.Mismatch, "queue", "stream %s ends at sequence %d, but was counted up to %d: its server has lost messages. "+
		"If what it has now is to be counted, forget how far it was: DELETE FROM footfall.positions WHERE source = '%s'",
		info.Config.Name, info.State.LastSeq, s.next-1, strings.ReplaceAll(s.name, "'", "''"))
}

// Name tells the stream apart, by when it was made.
func (s *stream) Name() string { return s.name }

// begin lets the server send from next on.
func (s *stream) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	reads, err := s.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: s.next,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: consumerStays, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		if info, looked := s.stream.Info(ctx); looked == nil && !info.Created.Equal(s.created) {
			return ErrAnew
		}
		return natsProblem(err)
	}
	// Whoever reads a stream goes with it. So what was made before this is of this stream.
	info, err := s.stream.Info(ctx)
	if err != nil {
		return natsProblem(err)
	}
	if !info.Created.Equal(s.created) {
		return ErrAnew
	}
	s.reads, s.delivered = reads, 0
	return s.mustReach(info)
}

// Read waits for messages.
func (s *stream) Read(ctx context.Context, most int) ([]Message, error) {
	if s.reads == nil {
		if err := s.begin(ctx); err != nil {
			return nil, err
		}
	}
	if s.batch == nil {
		fetched, err := s.reads.Fetch(most, jetstream.FetchMaxWait(fetchFor))
		if err != nil {
			s.reads = nil
			return nil, natsProblem(err)
		}
		s.fetched, s.batch = fetched, fetched.Messages()
	}
	select {
	case m, more := <-s.batch:
		if !more {
			return nil, s.ended()
		}
		return s.take(ctx, m, most)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ended ends a batch.
func (s *stream) ended() error {
	err := s.fetched.Error()
	s.batch = nil
	if err != nil {
		s.reads = nil
		return natsProblem(err)
	}
	return nil
}

// take takes a message, and what else is there. What it has taken it returns without the error of
// what follows: that comes again.
func (s *stream) take(ctx context.Context, m jetstream.Msg, most int) (messages []Message, err error) {
	for more := true; more && len(messages) < most; {
		one, err := s.message(ctx, m)
		if err != nil {
			s.reads, s.batch = nil, nil // what was sent was not received: it is read again
			if len(messages) > 0 {
				break
			}
			return nil, err
		}
		messages = append(messages, one)
		select {
		case m, more = <-s.batch:
			if !more {
				_ = s.ended()
			}
		default:
			more = false
		}
	}
	return messages, nil
}

func (s *stream) message(ctx context.Context, m jetstream.Msg) (Message, error) {
	about, err := m.Metadata()
	if err != nil {
		return Message{}, natsProblem(err)
	}
	if about.Sequence.Consumer != s.delivered+1 {
		return Message{}, visit.Errorf(visit.Unavailable, "", "messages were lost on their way")
	}
	at := about.Sequence.Stream
	first := uint64(0)
	if at > s.next { // some were deleted, or the stream has let go of them
		ctx, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		info, err := s.stream.Info(ctx)
		if err != nil {
			return Message{}, natsProblem(err)
		}
		first = info.State.FirstSeq
	}
	s.delivered, s.next = about.Sequence.Consumer, at+1
	return Message{
		Part: streamPart, Position: int64(at), Time: about.Timestamp, Text: m.Data(), First: int64(first), End: int64(at + about.NumPending + 1), //nolint:gosec // sequences count messages
	}, nil
}

// Passed does nothing: what looks at a stream shows nobody who reads in this way.
func (s *stream) Passed(string, int64) {}

// Close ends the connection.
func (s *stream) Close() { s.conn.Close() }
