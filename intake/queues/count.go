package queues

import (
	"context"
	"fmt"
	"time"

	"footfall/counter"
	"footfall/intake"
	"footfall/record"
	"footfall/record/feed"
	"footfall/visit"
)

// longestMessage is the maximum size of a message in bytes. No visit needs more.
const longestMessage = 64 << 10

// received is a message that was read from the queue, with information about its counting.
type received struct {
	Message
	ahead   bool  // the visit counts at the present time, because its own time is too far in the future
	missing int64 // number of messages before this one that the queue deleted before they were counted
}

// count reads messages from r.source, and counts their visits until an error occurs.
func (r *run) count(ctx context.Context) error {
	var g *counter.Counting
	err := r.retry.Do(ctx, func() (err error) { g, err = r.permit(ctx); return err })
	if err != nil {
		return err
	}
	f := feed.Feed[received]{Source: r, Recorder: g.Recorder(), Retry: r.retry}
	return f.Run(ctx)
}

// Read implements feed.Source.
func (r *run) Read(ctx context.Context, most int) ([]feed.Entry[received], error) {
	messages, err := r.source.Read(ctx, most)
	r.Metrics.moved(len(messages))
	entries := make([]feed.Entry[received], len(messages))
	for i, m := range messages {
		entries[i] = feed.Entry[received]{Data: received{Message: m}, Next: m.Position + 1}
		if m.Mark {
			entries[i].Fate = feed.Passes
		}
		failed := r.retry.Do(ctx, func() (err error) { entries[i].Position, err = r.positionOf(ctx, &m); return err })
		if failed != nil {
			return nil, failed
		}
	}
	return entries, err
}

func (r *run) positionOf(ctx context.Context, m *Message) (p *record.Position, err error) {
	p = r.parts[m.Part]
	if p == nil {
		g, err := r.permit(ctx)
		if err != nil {
			return nil, err
		}
		if p, err = g.OpenQueue(ctx, r.source.Name(), m.Part, m.First); err == nil {
			r.parts[m.Part] = p
		}
		return p, err
	}
	return p, nil
}

// Decide implements feed.Source.
func (r *run) Decide(ctx context.Context) (func(context.Context, *feed.Entry[received]) error, error) {
	g, err := r.permit(ctx)
	return func(ctx context.Context, e *feed.Entry[received]) error {
		item, err := e.Data.read(g)
		if err != nil {
			return e.Refuse(err)
		}
		return intake.Decide(ctx, g, item, e)
	}, err
}

// read parses the visit in a message. If the visit has no time, it gets the time of the message.
func (m *received) read(g *counter.Counting) (item counter.Item, err error) {
	switch {
	case m.Unreadable != "":
		return item, visit.Errorf(visit.Invalid, "", "%s", m.Unreadable)
	case len(m.Text) > longestMessage:
		return item, visit.Errorf(visit.Invalid, "", "it has %d bytes: a visit may have at most %d", len(m.Text), longestMessage)
	}
	if item, err = intake.ReadItem(string(m.Text)); err != nil {
		return item, err
	}
	if item.At.IsZero() {
		item.At = m.Time
		if item.At.Unix() < 0 {
			return item, visit.Errorf(visit.Invalid, "at", "it is missing, and the queue has no time for the message: send it")
		}
	}
	item.At, m.ahead = g.CapToNow(item.At)
	return item, nil
}

// Unaccepted implements feed.Source.
func (r *run) Unaccepted(e *feed.Entry[received], err error) error {
	r.Log.Error("the tables do not accept a visit of a queue: its message is refused", "part", e.Data.Part, "position", e.Data.Position,
		"error", err)
	return nil
}

// Keep implements feed.Source. It returns a refusal if the message cannot be counted. It returns another refusal if the
// queue has deleted earlier messages before they were counted.
func (r *run) Keep(e *feed.Entry[received], first bool) (kept []record.Refusal) {
	m := &e.Data
	m.missing = 0
	next, end := e.Position.Next, min(m.First, m.Position)
	if first && next < end {
		m.missing = end - next
		kept = append(kept, record.Refusal{Position: next, Reason: fmt.Sprintf(
			"the queue no longer has the messages from here up to %d, which were not counted: it kept them for too short a time", end-1)})
	}
	if e.Fate == feed.Refused {
		kept = append(kept, record.Refusal{Position: m.Position, Reason: redactReason(e.Refusal.Message()), Beginning: beginningOf(m.Text)})
	}
	return kept
}

// Settled implements feed.Source.
func (r *run) Settled(entries []*feed.Entry[received]) {
	r.Metrics.moved(-len(entries))
	ends := map[*record.Position]int64{}
	for _, e := range entries {
		m := &e.Data
		if e.ByOthers {
			continue
		}
		ends[e.Position] = m.End
		if m.missing > 0 {
			r.Metrics.missing.Add(float64(m.missing))
			r.Log.Error("the queue no longer had messages that were not counted: footfall.refused lists them",
				"part", m.Part, "messages", m.missing)
		}
		if e.Fate != feed.Passes {
			r.Metrics.messages.WithLabelValues(outcomes[e.Fate]).Inc()
		}
		switch {
		case e.Fate == feed.Refused:
			if missed, speak := r.logs.Next("refused", time.Now()); speak {
				r.Log.Warn("a message of the queue could not be counted: footfall.refused contains it", "part", m.Part, "position", m.Position,
					"reason", redactReason(e.Refusal.Message()), "unlogged_before", missed)
			}
		case e.Fate == feed.Counted && m.ahead:
			r.Metrics.ahead.Inc()
			if missed, speak := r.logs.Next("ahead", time.Now()); speak {
				r.Log.Warn("the time of a message is more than five minutes ahead: it counts at the present time; set the clock of its sender",
					"part", m.Part, "position", m.Position, "unlogged_before", missed)
			}
		}
	}
	for p, end := range ends {
		r.source.Passed(p.Part, p.Next)
		r.Metrics.setBehind(p.Part, max(end-p.Next, 0))
	}
}
