// Package queues counts visits that arrive as messages of a queue. It counts each visit exactly once, even if a process is
// killed, other consumers read the same queue, or a message is delivered several times.
//
// A Source reads a queue (kafka.go). A queue has parts, such as the partitions of a topic. For each part, the table
// positions stores how far the messages were counted. The transaction that counts messages also moves this position
// (package feed). Offsets that the queue itself stores are ignored. If a message cannot be counted, a description of the
// message is stored in the table refused. The same transaction moves the position past the message.
package queues

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"footfall/counter"
	"footfall/pause"
	"footfall/record"
	"footfall/record/feed"
)

// Message is one message of a queue.
type Message struct {
	Part       string
	Position   int64 // position of the message in its part; later messages have higher positions, which may have gaps
	Time       time.Time
	Text       []byte
	First, End int64  // position of the part's first message that still exists, and the position after its last message
	Unreadable string // why this message (or a batch that ends with it) cannot be read; "": it can be read
	Mark       bool   // the message is an internal record of the queue without a visit, such as the end of a transaction
}

// Source is an open queue. One goroutine calls Read, and another goroutine calls Passed.
//
// If a method returns an error of the kind visit.Unavailable, the caller calls the method again. If a method returns
// ErrReopen, the caller opens the queue again. All other errors are final.
type Source interface {
	// Name returns a unique name of the queue. If the server has ids for queues, a queue that is deleted and created again
	// has another name.
	Name() string
	// Read waits until there are messages. most is the maximum number of returned messages. Messages of the same part are
	// in order. Read may return messages that were already counted. If Read returns messages together with an error, the
	// next call returns the error again.
	Read(ctx context.Context, most int) ([]Message, error)
	// Passed informs the queue that a part was counted up to a position. The queue uses this information only for
	// monitoring.
	Passed(part string, next int64)
	// Close closes the connections to the queue.
	Close()
}

// Parts is used by a Source, from any goroutine. The Source calls Begin or Leave when it starts or stops to read a part.
type Parts interface {
	// Begin returns the position from which the Source must read a part. first is the position of the part's first message.
	Begin(ctx context.Context, queue, part string, first int64) (next int64, err error)
	// Leave records that the Source no longer reads a part.
	Leave(part string)
}

// Connect opens a queue. The returned Source calls the methods of parts.
type Connect func(ctx context.Context, parts Parts) (Source, error)

// Options configure Run.
type Options struct {
	App     string
	Connect Connect
	Log     *slog.Logger
	Metrics *Metrics
}

// run is the state of one call of Run.
type run struct {
	Options
	counter *counter.Counter
	source  Source
	name    string                      // the queue's name; "": the queue has not been opened yet
	parts   map[string]*record.Position // part → its position; used only by the goroutine that reads
	retry   *feed.Retry
	logs    pause.Seldom[string] // limits how often similar log lines about messages are written
}

// sameEvery is the minimum time between two similar log lines about messages.
const sameEvery = 10 * time.Second

// Run counts the messages of a queue until ctx ends or an error occurs. It returns nil if ctx has ended, or an error that a
// retry cannot solve.
func Run(ctx context.Context, c *counter.Counter, o Options) error {
	waits := func(why string, cause error) {
		o.Log.Warn("counting from the queue is waiting", "why", why, "error", cause)
	}
	r := &run{Options: o, counter: c, retry: feed.NewRetry(waits, 0, isTemporary), logs: pause.Seldom[string]{Every: sameEvery}}
	for {
		err := r.connect(ctx)
		if err == nil {
			err = r.count(ctx)
			r.source.Close()
			r.Metrics.leaveAll()
		}
		if ctx.Err() == nil && errors.Is(err, ErrReopen) {
			r.retry.Say(err)
			err = pause.For(ctx, openedAfter)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was asked to stop
		}
		if err != nil {
			return err
		}
	}
}

func (r *run) permit(ctx context.Context) (*counter.Counting, error) {
	return r.counter.AuthorizeOperator(ctx, r.App)
}

// connect opens the queue. It tries again as long as the queue is unavailable.
func (r *run) connect(ctx context.Context) error {
	if _, err := r.permit(ctx); err != nil && !isTemporary(err) {
		return err // report this error before waiting for the queue
	}
	err := r.retry.Do(ctx, func() (err error) {
		if r.source, err = r.Connect(ctx, r); r.name != "" { // the queue has been open before
			err = makeTemporary(err)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.parts = map[string]*record.Position{}
	switch name := r.source.Name(); r.name {
	case name:
	case "":
		r.Log.Info("reading the queue", "queue", name)
	default:
		r.Log.Warn("the queue was deleted and created again: it is read from its beginning", "was", r.name, "is", name)
	}
	r.name = r.source.Name()
	return nil
}

// Begin implements Parts.
func (r *run) Begin(ctx context.Context, queue, part string, first int64) (next int64, err error) {
	r.Metrics.begin(part)
	err = r.retry.Do(ctx, func() error {
		g, err := r.permit(ctx)
		if err != nil {
			return err
		}
		at, err := g.OpenQueue(ctx, queue, part, first)
		if err == nil {
			next = at.Next
		}
		return err
	})
	return next, err
}

// Leave implements Parts.
func (r *run) Leave(part string) { r.Metrics.leave(part) }

// isTemporary reports whether an operation that failed with err should be retried.
func isTemporary(err error) bool { return !errors.Is(err, ErrReopen) && feed.IsAway(err) }

const openedAfter = time.Second // pause before the queue is opened again after ErrReopen
