// Package queues counts visits that arrive as messages of a queue. It counts each visit exactly once, even if a process is
// killed, other consumers read the same queue, or a message is delivered several times.
//
// A Source reads a queue (kafka.go). The table positions stores how far each part of the queue, such as a partition, was
// counted. A position moves in the transaction that counts the messages (package feed). Offsets that the queue itself
// stores are ignored. A message that cannot be counted is stored in the table refused. The transaction that stores it also
// moves the position past the message.
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

// Message is a message at a position of a queue.
type Message struct {
	Part       string
	Position   int64 // increases by one or more from one message of a part to the next
	Time       time.Time
	Text       []byte
	First, End int64  // the part's first available position, and the position after its last message
	Unreadable string // why this message, and any unreadable messages before it, cannot be read; "": it can be read
	Mark       bool   // not a visit but an internal record of the queue, such as the end of a transaction
}

// Source is a queue. One goroutine calls Read, another calls Passed.
//
// After an error of the kind visit.Unavailable, the caller calls the method again. After ErrReopen, the caller opens the queue
// again. Other errors are final.
type Source interface {
	// Name identifies the queue. A queue that was deleted and created again has another name, if the server has ids.
	Name() string
	// Read waits until there are messages, and returns at most most of them. Messages of a part are in order. Read may return
	// messages that were already counted. If Read returns messages together with an error, the next call returns the error
	// again.
	Read(ctx context.Context, most int) ([]Message, error)
	// Passed reports that a part was counted up to a position. It only serves the queue's own monitoring.
	Passed(part string, next int64)
	// Close closes the queue.
	Close()
}

// Parts receives calls from a source, in any goroutine, when the source begins or stops to read a part.
type Parts interface {
	// Begin returns the position at which to read a part. first is the position of the part's first message.
	Begin(ctx context.Context, queue, part string, first int64) (next int64, err error)
	// Leave reports that a part is no longer read.
	Leave(part string)
}

// Connect opens a queue.
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
	name    string                      // the queue's name; "": the queue was never open
	parts   map[string]*record.Position // used only by the reading goroutine
	retry   *feed.Retry
	logs    pause.Seldom[string] // limits repeated log lines about messages
}

// sameEvery is the minimum time between log lines of the same kind about messages.
const sameEvery = 10 * time.Second

// Run counts the messages of a queue until ctx ends. Then it returns nil.
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

// connect opens the queue. It retries for as long as the queue is unavailable.
func (r *run) connect(ctx context.Context) error {
	if _, err := r.permit(ctx); err != nil && !isTemporary(err) {
		return err // fail before waiting for the queue
	}
	err := r.retry.Do(ctx, func() (err error) {
		if r.source, err = r.Connect(ctx, r); r.name != "" { // the queue was open before
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

// isTemporary reports whether a failed operation should be retried.
func isTemporary(err error) bool { return !errors.Is(err, ErrReopen) && feed.IsAway(err) }

const openedAfter = time.Second // pause before a queue is opened again
