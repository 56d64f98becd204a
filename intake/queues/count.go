package queues

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"footfall/counter"
	"footfall/intake"
	"footfall/record"
	"footfall/visit"
)

// longestMessage is far more than the longest visit has.
const longestMessage = 64 << 10

// item is a message, and what is to become of it.
type item struct {
	Message
	position *record.Position // of its part
	visit    record.Visit
	counts   bool   // visit is to be counted
	ahead    bool   // at the present time, since its own lies far ahead
	refusal  string // why it cannot be; "" where it is skipped on purpose
	missing  int64  // messages before it that the queue no longer had
}

// count counts messages until that ends with an error. One goroutine reads them, and this one hands
// them over.
func (r *run) count(ctx context.Context) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	chunks, ended := make(chan []item, 1), make(chan error, 1)
	go func() {
		defer close(chunks)
		ended <- r.readAll(reading, chunks)
	}()
	var err error
	for items := range chunks {
		if err == nil && ctx.Err() == nil {
			if err = r.record(ctx, items); err != nil {
				cancel()
			}
		}
	}
	if read := <-ended; err == nil {
		err = read
	}
	return err
}

// refreshEvery is how long messages are read by the settings that the app had.
const refreshEvery = 10 * time.Second

// readAll reads messages, and makes items of them.
func (r *run) readAll(ctx context.Context, chunks chan<- []item) error {
	var counting *counter.Counting
	var asked time.Time
	refresh := func() (err error) {
		if counting, err = r.counter.MayConsume(ctx, r.App); err == nil {
			asked = time.Now()
		}
		return err
	}
	for {
		if counting == nil || time.Since(asked) > refreshEvery {
			if err := r.again(ctx, &r.waits, refresh); err != nil {
				return err
			}
		}
		var messages []Message
		err := r.again(ctx, &r.waits, func() (err error) {
			if messages, err = r.source.Read(ctx, counting.ChunkVisits()); len(messages) > 0 && isTemporary(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		if len(messages) == 0 {
			continue
		}
		items := make([]item, len(messages))
		for i, m := range messages {
			items[i].Message = m
			err := r.again(ctx, &r.waits, func() (err error) {
				if items[i].position, err = r.positionOf(ctx, counting, m); err == nil {
					err = items[i].judge(ctx, counting)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		select {
		case chunks <- items:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *run) positionOf(ctx context.Context, counting *counter.Counting, m Message) (p *record.Position, err error) {
	if p = r.parts[m.Part]; p == nil {
		if p, err = counting.OpenQueue(ctx, r.source.Name(), m.Part, m.First); err == nil {
			r.parts[m.Part] = p
		}
	}
	return p, err
}

// judge finds out what is to become of a message.
func (i *item) judge(ctx context.Context, counting *counter.Counting) error {
	i.counts, i.ahead, i.refusal = false, false, i.Unreadable
	if i.refusal != "" || i.Mark {
		return nil
	}
	if len(i.Text) > longestMessage {
		i.refusal = fmt.Sprintf("it has %d bytes: a visit has %d at most", len(i.Text), longestMessage)
		return nil
	}
	read, err := intake.ReadItem(string(i.Text))
	if err != nil {
		return i.refuse(err)
	}
	if read.At.IsZero() {
		if read.At = i.Time; read.At.Unix() < 0 {
			return i.refuse(visit.Errorf(visit.Invalid, "at", "it is missing, and the queue gives the message no time: give it"))
		}
	}
	var skipped visit.Skipped
	var ahead bool
	read.At, ahead = counting.NotAhead(read.At)
	if i.visit, skipped, err = counting.Visit(ctx, read); err != nil {
		return i.refuse(err)
	}
	i.counts = skipped == ""
	i.ahead = i.counts && ahead
	return nil
}

// refuse refuses a message for an error that is about itself. It returns every other one.
func (i *item) refuse(err error) error {
	told, ok := errors.AsType[*visit.Error](err)
	if !ok || told.Kind != visit.Invalid && told.Kind != visit.Forbidden {
		return err
	}
	i.counts, i.refusal = false, told.Message
	return nil
}

// record counts items, and passes those that do not count, whatever happens to the database
// meanwhile: the positions tell what of that was done.
func (r *run) record(ctx context.Context, items []item) error {
	wait, began := shortestWait, time.Now()
	for items = left(items); len(items) > 0; items = left(items) {
		err := r.recordOnce(ctx, items)
		switch {
		case err == nil:
			wait, began = shortestWait, time.Now()
		case !isTemporary(err):
			return err
		default:
			if err := r.pause(ctx, &r.fails, began, wait, err); err != nil {
				return err
			}
			wait = min(2*wait, longestWait)
			if err := r.judgeAnew(ctx, items); err != nil && !isTemporary(err) {
				return err
			}
		}
	}
	return nil
}

// left are the items behind their positions.
func left(items []item) []item {
	return slices.DeleteFunc(items, func(i item) bool { return i.Position < i.position.Next })
}

// judgeAnew looks at items again after a while, in which the app may have been changed.
func (r *run) judgeAnew(ctx context.Context, items []item) error {
	counting, err := r.counter.MayConsume(ctx, r.App)
	for i := 0; i < len(items) && err == nil; i++ {
		before := items[i]
		if err = items[i].judge(ctx, counting); err != nil {
			items[i] = before
		}
	}
	return err
}

// recordOnce counts what is left of items. Where it returns nil, either all is done, or the rest is
// to be tried at once.
func (r *run) recordOnce(ctx context.Context, items []item) error {
	counting, err := r.counter.MayConsume(ctx, r.App)
	if err != nil {
		return err
	}
	b := newBatch(items)
	done, err := r.recordVisits(ctx, counting, items, b)
	if done < len(items) || err != nil {
		r.passed(items[:done])
		return err
	}
	for _, step := range b.moves {
		err := r.moveTo(ctx, counting, step)
		if errors.Is(err, record.ErrMoved) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.passed(items)
	return nil
}

// recordVisits counts the visits of a batch, and returns how many of the items are done with that.
// Where some are left without an error, they are to be tried by the positions as they are now.
func (r *run) recordVisits(ctx context.Context, counting *counter.Counting, items []item, b *batch) (done int, err error) {
	if len(b.Visits) == 0 {
		return len(items), nil
	}
	counted := 0
	defer func() { r.Metrics.outcome(outcomeCounted, counted) }()
	for k, got := range counting.Record(b.Chunk) { // up to k they are counted
		told, ok := errors.AsType[*visit.Error](got.Err)
		switch {
		case got.Err == nil, errors.Is(got.Err, record.ErrNumbersLost):
			counted++
			done = b.places[k] + 1
			continue
		case errors.Is(got.Err, record.ErrRepeated):
			r.Metrics.outcome(outcomeRepeated, 1)
			done = b.places[k] + 1
			continue
		}
		for _, p := range b.positions {
			if err := counting.FindPosition(ctx, p); err != nil {
				return done, err
			}
		}
		refused := &items[b.places[k]]
		switch {
		case errors.Is(got.Err, record.ErrMoved):
			return done, nil
		case ok && told.Kind == visit.Invalid: // its day has just been let go
			refused.counts, refused.refusal = false, told.Message
			return done, nil
		case ok:
			return done, got.Err
		}
		r.Log.Error("the tables do not accept a visit of a queue: its message is refused", "part", refused.Part, "position", refused.Position, "error", got.Err)
		refused.counts, refused.refusal = false, "internal error"
		return done, nil
	}
	return len(items), nil
}

// moveTo moves a position past messages that do not count. It returns record.ErrMoved if somebody
// else has moved it.
func (r *run) moveTo(ctx context.Context, counting *counter.Counting, step record.Step) error {
	from := step.Position.Next
	err := counting.MovePosition(ctx, step)
	if err == nil {
		return nil
	}
	if lost := counting.FindPosition(ctx, step.Position); lost != nil {
		return lost
	}
	if step.Position.Next > from { // by somebody else, or by this, of which nobody heard
		return record.ErrMoved
	}
	return err
}

// batch is what is sent of items.
type batch struct {
	record.Chunk
	places    []int         // of the visits, in the items
	moves     []record.Step // of the parts of which nothing counts
	positions []*record.Position
}

// newBatch makes a batch of items. A message that does not count is passed by the transaction of
// the next visit of its part, or of the last one if none follows. Where a part has no visit, its
// position moves by itself.
func newBatch(items []item) *batch {
	b := &batch{}
	open := map[*record.Position]*record.Step{} // what comes behind the last visit of each part
	last := map[*record.Position]int{}          // where in b.Steps that visit is
	for place := range items {
		i := &items[place]
		step := open[i.position]
		if step == nil {
			step = &record.Step{Position: i.position}
			open[i.position] = step
			b.positions = append(b.positions, i.position)
			step.Refused = i.gap()
		}
		step.Next = i.Position + 1
		if i.refusal != "" {
			step.Refused = append(step.Refused, record.Refusal{Position: i.Position, Reason: strikeReason(i.refusal), Beginning: beginningOf(i.Text)})
		}
		if i.counts {
			last[i.position] = len(b.Steps)
			b.Visits, b.places, b.Steps = append(b.Visits, i.visit), append(b.places, place), append(b.Steps, *step)
			step.Refused = nil
		}
	}
	for _, p := range b.positions {
		step := open[p]
		if at, any := last[p]; any {
			b.Steps[at].Next, b.Steps[at].Refused = step.Next, append(b.Steps[at].Refused, step.Refused...)
		} else {
			b.moves = append(b.moves, *step)
		}
	}
	return b
}

// gap is what to keep of messages that the queue no longer has before an item, the first one of its
// part.
func (i *item) gap() []record.Refusal {
	next, end := i.position.Next, min(i.First, i.Position)
	if i.missing = max(end-next, 0); i.missing == 0 {
		return nil
	}
	return []record.Refusal{{Position: next, Reason: fmt.Sprintf(
		"the queue no longer has the messages from here up to %d, which were not counted: it kept them for too short a time", end-1)}}
}

// passed notes what became of those of some items that are behind their positions.
func (r *run) passed(items []item) {
	ends := map[*record.Position]int64{}
	for k := range items {
		i := &items[k]
		if i.Position >= i.position.Next {
			continue
		}
		ends[i.position] = i.End
		if i.missing > 0 {
			r.Metrics.missing.Add(float64(i.missing))
			r.Log.Error("the queue no longer had messages that were not counted: footfall.refused says which", "part", i.Part, "messages", i.missing)
		}
		switch {
		case i.refusal != "":
			r.Metrics.outcome(outcomeRefused, 1)
			if r.refused.mayTell() {
				r.Log.Warn("a message of the queue could not be counted: footfall.refused has it", "part", i.Part, "position", i.Position,
					"reason", strikeReason(i.refusal), "untold_before", r.refused.missed)
				r.refused.missed = 0
			}
		case !i.counts && !i.Mark:
			r.Metrics.outcome(outcomeSkipped, 1)
		case i.ahead:
			r.Metrics.ahead.Inc()
			if r.ahead.mayTell() {
				r.Log.Warn("the time of a message lies more than five minutes ahead: it counts at the present time; set the clock of its sender",
					"part", i.Part, "position", i.Position, "untold_before", r.ahead.missed)
				r.ahead.missed = 0
			}
		}
	}
	for p, end := range ends {
		r.source.Passed(p.Part, p.Next)
		r.Metrics.setBehind(p.Part, max(end-p.Next, 0))
	}
}
