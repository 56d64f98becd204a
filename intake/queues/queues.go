// Package queues counts the visits that come as messages of a queue, each once: whoever is killed,
// whoever else reads the same queue, and however often the queue delivers a message.
//
// A Source reads a queue (kafka.go). How far each of its parts was counted is a position,
// which moves in the transaction that counts (package feed); what the queue itself keeps of that is
// never asked. A message that cannot be counted is kept in the table refused by the transaction
// that passes it.
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

// Message is what a queue has at a place.
type Message struct {
	Part       string
	Position   int64 // grows from one message of a part to the next, by one or more
	Time       time.Time
	Text       []byte
	First, End int64  // the first position that the part still has, and the one behind its last
	Unreadable string // why it cannot be read, with those before it that cannot either
	Mark       bool   // it is the queue's own, such as the end of a transaction, and is only passed
}

// Source is a queue. One goroutine calls Read, and another one Passed. source.go has what sources
// have in common.
//
// After an error of the kind visit.Unavailable the same is tried again; after ErrAnew the queue is
// opened anew. Others are the last word.
type Source interface {
	// Name tells the queue from every other, and from one that had its name before.
	Name() string
	// Read returns the messages that come next, so many at most, those of a part in their order,
	// and waits until there are some. It may return messages again that were counted, and, beside
	// others, an error that the next call returns, too.
	Read(ctx context.Context, most int) ([]Message, error)
	// Passed hears that a part was counted up to a position: for whoever looks at the queue.
	Passed(part string, next int64)
	// Close ends it.
	Close()
}

// Parts are told by a source, from any goroutine, which parts it reads.
type Parts interface {
	// Begin returns where a part of a queue is to be read from, whose first message is at first.
	Begin(ctx context.Context, queue, part string, first int64) (next int64, err error)
	// Leave hears that a part is not read any more.
	Leave(part string)
}

// Connect opens a queue.
type Connect func(ctx context.Context, parts Parts) (Source, error)

// Options say what to count, and how.
type Options struct {
	App     string
	Connect Connect
	Log     *slog.Logger
	Metrics *Metrics
}

// run is one call of Run.
type run struct {
	Options
	counter *counter.Counter
	source  Source
	name    string                      // of the queue, once it was opened
	parts   map[string]*record.Position // of the goroutine that reads
	retry   *feed.Retry
	logs    pause.Seldom[string] // what is said of messages
}

// sameEvery is how often the log has the same of a message at most.
const sameEvery = 10 * time.Second

// Run counts the messages of a queue until ctx ends, for which it returns nil.
func Run(ctx context.Context, c *counter.Counter, o Options) error {
	waits := func(why string, cause error) {
		o.Log.Warn("counting from the queue waits", "why", why, "error", cause)
	}
	r := &run{Options: o, counter: c, retry: feed.NewRetry(waits, 0, isTemporary), logs: pause.Seldom[string]{Every: sameEvery}}
	for {
		err := r.connect(ctx)
		if err == nil {
			err = r.count(ctx)
			r.source.Close()
			r.Metrics.leaveAll()
		}
		if ctx.Err() == nil && errors.Is(err, ErrAnew) {
			r.retry.Say(err)
			err = pause.For(ctx, openedAfter)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was asked to end
		}
		if err != nil {
			return err
		}
	}
}

func (r *run) permit(ctx context.Context) (*counter.Counting, error) {
	return r.counter.AuthorizeOperator(ctx, r.App)
}

// connect opens the queue, however long it is away.
func (r *run) connect(ctx context.Context) error {
	if _, err := r.permit(ctx); err != nil && !isTemporary(err) {
		return err // before the queue is waited for
	}
	err := r.retry.Do(ctx, func() (err error) {
		if r.source, err = r.Connect(ctx, r); r.name != "" { // it was open before
			err = whileReading(err)
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
		r.Log.Info("the queue is read", "queue", name)
	default:
		r.Log.Warn("the queue was deleted and made anew: it is read from its beginning", "was", r.name, "is", name)
	}
	r.name = r.source.Name()
	return nil
}

// Begin is for the source.
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

// Leave is for the source.
func (r *run) Leave(part string) { r.Metrics.leave(part) }

// isTemporary reports whether what has failed is to be tried again.
func isTemporary(err error) bool { return !errors.Is(err, ErrAnew) && feed.IsAway(err) }

const openedAfter = time.Second // that it has failed
