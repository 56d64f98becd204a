package intake

import (
	"context"
	"errors"
	"time"

	"footfall/counter"
	"footfall/record"
	"footfall/visit"
)

// numbersAtOnce is for how many visits numbers are read in one query.
const numbersAtOnce = 1000

// counting is how far the visits of a call have been counted.
type counting struct {
	*counter.Counting
	items    items
	results  []Result
	numbers  bool // of those that are repeated are wanted
	key      string
	position *record.Position // nil: the call cannot be repeated
	until    time.Time        // when to begin no further chunk

	at       int   // the first item that has no result yet
	counted  bool  // some are, by this call or before
	internal error // the first fault that is not the caller's
}

// count goes through the items in order. After the first that fails for a reason of the service's
// the others stay Unreached.
func (c *counting) count(ctx context.Context) error {
	for c.at < len(c.results) {
		var err error
		switch {
		case c.position != nil && int64(c.at) < c.position.Next:
			err = c.repeat(ctx, int(min(c.position.Next, int64(len(c.results)))))
		case c.counted && time.Now().After(c.until):
			err = record.ErrNotReached
		default:
			err = c.chunk(ctx)
		}
		if err != nil {
			return c.stop(err)
		}
	}
	if !c.counted {
		return c.internal
	}
	return nil
}

// stop returns the error that the call fails with; nil where results tell more than that.
func (c *counting) stop(err error) error {
	told, ok := errors.AsType[*visit.Error](err)
	if !ok {
		c.internal = errors.Join(c.internal, err)
	}
	if c.counted {
		return nil
	}
	if c.internal != nil {
		return c.internal
	}
	if ok && told.Kind == visit.Lost {
		return (&visit.Error{Kind: visit.Lost, Message: "the connection to the database was lost: it is not known whether any of these visits were counted: " + c.again()}).Because(err)
	}
	if errors.Is(err, record.ErrNotReached) {
		return visit.Errorf(visit.Unavailable, "", "none of these visits were counted; try again")
	}
	return err
}

// again is what to do about visits of which nobody knows whether they were counted.
func (c *counting) again() string {
	if c.key != "" {
		return "send them again with the same Idempotency-Key"
	}
	return "ask /counts, or send those again that have an id"
}

// taken are visits of items, and where these stand.
type taken struct {
	visits []record.Visit
	places []int
}

func (t *taken) add(v record.Visit, place int) {
	t.visits, t.places = append(t.visits, v), append(t.places, place)
}

// take reads items from at on, until it has so many visits to count, or comes to end; behind is the
// first item that it has not read. Those that are not to be counted get their results, but for
// earlier ones, which cannot be counted any more, and were.
func (c *counting) take(ctx context.Context, visits, end int) (t, earlier taken, behind int, err error) {
	var gone taken // of days that are kept no longer
	t = taken{make([]record.Visit, 0, min(visits, end-c.at)), make([]int, 0, min(visits, end-c.at))}
	for behind = c.at; behind < end && len(t.visits) < visits; behind++ {
		i := behind
		if wrong := c.items.wrong[i]; wrong != "" {
			c.results[i] = Result{Outcome: Failed, Fault: wrong}
			continue
		}
		v, skipped, err := c.Visit(ctx, c.items.list[i])
		told, ok := errors.AsType[*visit.Error](err)
		switch {
		case err == nil && skipped == "":
			t.add(v, i)
		case err == nil:
			c.results[i] = Result{Outcome: Skipped, Answer: visit.Answer{Skipped: skipped}}
		case ok && told.Kind != visit.Unavailable:
			c.results[i] = Result{Outcome: Failed, Fault: told.Message}
			if v.Target.Page != "" {
				gone.add(v, i)
			}
		default:
			return t, earlier, behind, err
		}
	}
	earlier, err = c.earlier(ctx, gone)
	return t, earlier, behind, err
}

// earlier are those of visits whose days are kept no longer that were counted when they were: with
// their ids, or since the position has passed by them.
func (c *counting) earlier(ctx context.Context, gone taken) (t taken, err error) {
	if len(gone.visits) == 0 {
		return t, nil
	}
	known, err := c.Known(ctx, gone.visits)
	for k, v := range gone.visits {
		if i := gone.places[k]; known[k] || c.position != nil && int64(i) < c.position.Next && v.Day >= c.position.FromDay {
			t.add(v, i)
		}
	}
	return t, err
}

// repeat answers items before end that were counted before.
func (c *counting) repeat(ctx context.Context, end int) error {
	t, earlier, behind, err := c.take(ctx, numbersAtOnce, end)
	if err != nil {
		return err
	}
	for k, v := range earlier.visits {
		t.add(v, earlier.places[k])
	}
	if err := c.readNumbers(ctx, t); err != nil {
		return err
	}
	c.at = behind
	return nil
}

// readNumbers gives results to visits that are counted, with numbers that are to be read.
func (c *counting) readNumbers(ctx context.Context, t taken) error {
	answers := make([]visit.Answer, len(t.visits))
	if c.numbers && len(t.visits) > 0 {
		var err error
		if answers, err = c.Numbers(ctx, t.visits); err != nil {
			return err
		}
	}
	for k, i := range t.places {
		c.counted = true
		c.results[i] = Result{Outcome: Repeated, Answer: answers[k]}
	}
	return nil
}

// chunk counts the next items.
func (c *counting) chunk(ctx context.Context) error {
	t, earlier, behind, err := c.take(ctx, c.share(), len(c.results)) // earlier: with numbers that are to be read
	if err != nil {
		return err
	}
	if len(t.visits) == 0 {
		c.answerNow(ctx, earlier)
		c.at = behind
		return nil
	}
	chunk := record.Chunk{Visits: t.visits}
	if c.position != nil {
		for _, i := range t.places {
			chunk.Steps = append(chunk.Steps, record.Step{Position: c.position, Next: int64(i) + 1})
		}
	}
	results := c.Record(chunk)
	for k, got := range results {
		i := t.places[k]
		if errors.Is(got.Err, record.ErrMoved) {
			c.answerNow(ctx, earlier)
			c.at = i // what another caller has counted is repeated, and the rest counted from there
			return nil
		}
		if errors.Is(got.Err, record.ErrNumbersLost) || errors.Is(got.Err, record.ErrRepeated) {
			c.counted = true
			earlier.add(t.visits[k], i)
			continue
		}
		if gone, ok := errors.AsType[*visit.Error](got.Err); ok && gone.Kind == visit.Invalid { // its day has just been let go
			c.results[i] = Result{Outcome: Failed, Fault: gone.Message}
			if c.position == nil {
				continue
			}
			c.answerNow(ctx, earlier)
			c.at = i + 1 // the chunk has ended there: a position does not pass by what was not counted
			return nil
		}
		if failed := c.result(i, got); err == nil {
			err = failed
		}
	}
	c.answerNow(ctx, earlier)
	c.at = behind
	return err
}

// share is how many visits to count next, so that the chunks of a call are of one size, which is
// about the best one: a quarter more costs those who wait less than one more commit costs the call.
func (c *counting) share() int { return shareOf(len(c.results)-c.at, c.ChunkVisits()) }

func shareOf(left, best int) int {
	most := best + best/4
	chunks := (left + most - 1) / most
	return (left + chunks - 1) / chunks
}

// result gives an item the result of its visit. It returns the error for which those behind it are
// not counted.
func (c *counting) result(i int, got record.Result) error {
	told, ok := errors.AsType[*visit.Error](got.Err)
	switch {
	case got.Err == nil:
		c.counted = true
		c.results[i] = Result{Outcome: Counted, Answer: got.Answer}
		return nil
	case !ok: // of a visit that the tables do not accept; if that ends the call, the next one says so
		c.results[i] = Result{Outcome: Failed, Fault: "internal error"}
		c.internal = errors.Join(c.internal, got.Err)
		return nil
	case told.Kind == visit.Lost:
		c.results[i] = Result{Outcome: Failed, Fault: "it is not known whether it was counted: " + c.again()}
	}
	return got.Err
}

// answerNow answers visits that were counted before, or whose numbers were lost, with the numbers
// of now. Where these cannot be read, it is told that they were counted.
func (c *counting) answerNow(ctx context.Context, t taken) {
	if err := c.readNumbers(ctx, t); err == nil {
		return
	}
	for _, i := range t.places {
		c.results[i] = Result{Outcome: Failed, Fault: record.ErrNumbersLost.Message}
	}
}
