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
			err = c.repeat(ctx)
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
	verr, ok := errors.AsType[*visit.Error](err)
	if !ok {
		c.internal = errors.Join(c.internal, err)
	}
	if c.counted {
		return nil
	}
	if c.internal != nil {
		return c.internal
	}
	if ok && verr.Kind == visit.Lost {
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

// read reads an item. Unless it is to be counted, it gets its result; the visit is there all the
// same where only its day is kept no longer. An error concerns more than the item.
func (c *counting) read(ctx context.Context, i int) (v record.Visit, counts bool, err error) {
	if wrong := c.items.wrong[i]; wrong != "" {
		c.results[i] = Result{Outcome: Failed, Fault: wrong}
		return v, false, nil
	}
	v, skipped, err := c.Visit(ctx, c.items.list[i])
	verr, ok := errors.AsType[*visit.Error](err)
	switch {
	case err == nil && skipped == "":
		return v, true, nil
	case err == nil:
		c.results[i] = Result{Outcome: Skipped, Answer: visit.Answer{Skipped: skipped}}
	case ok && verr.Kind != visit.Unavailable:
		c.results[i] = Result{Outcome: Failed, Fault: verr.Message}
	default:
		return v, false, err
	}
	return v, false, nil
}

// take reads items from at on, until it has so many visits to count; behind is the first item that
// it has not read. earlier are those that do not count any more, and were counted with their ids.
func (c *counting) take(ctx context.Context, visits int) (t, earlier taken, behind int, err error) {
	var refused taken
	most := min(visits, len(c.results)-c.at)
	t = taken{make([]record.Visit, 0, most), make([]int, 0, most)}
	for behind = c.at; behind < len(c.results) && len(t.visits) < visits; behind++ {
		v, counts, err := c.read(ctx, behind)
		switch {
		case err != nil:
			return t, earlier, behind, err
		case counts:
			t.add(v, behind)
		case v.Target.Page != "":
			refused.add(v, behind)
		}
	}
	earlier, err = c.earlier(ctx, refused)
	return t, earlier, behind, err
}

// earlier are those of some visits that were counted before with their ids. Where that cannot be
// found out, the others stay Unreached, too.
func (c *counting) earlier(ctx context.Context, of taken) (t taken, err error) {
	if len(of.visits) == 0 {
		return t, nil
	}
	known, err := c.Known(ctx, of.visits)
	for k, v := range of.visits {
		switch i := of.places[k]; {
		case err != nil:
			c.results[i] = Result{}
		case known[k]:
			t.add(v, i)
		}
	}
	return t, err
}

// repeat answers items that the position has passed: what was counted then is repeated, whatever
// has become of the settings, the days and the sites of the app since, and what was not counted
// then is not counted now.
func (c *counting) repeat(ctx context.Context) error {
	uncounted, err := c.Recorder().Uncounted(ctx, c.position)
	if err != nil {
		return err
	}
	if len(uncounted) <= c.at {
		return visit.Errorf(visit.Unavailable, "", "this call was forgotten meanwhile; try again")
	}
	var t, refused taken
	for end := min(c.at+numbersAtOnce, len(uncounted), len(c.results)); c.at < end && err == nil; c.at++ {
		var v record.Visit
		var counts bool
		if v, counts, err = c.read(ctx, c.at); err != nil {
			break
		}
		if uncounted[c.at] == '0' {
			t.add(v, c.at)
			continue
		}
		if counts {
			c.results[c.at] = Result{Outcome: Failed, Fault: "it was not counted when this call came before, and would be now: send it in another call"}
		}
		if v.Target.Page != "" {
			refused.add(v, c.at)
		}
	}
	earlier, failed := c.earlier(ctx, refused)
	for k, v := range earlier.visits {
		t.add(v, earlier.places[k])
	}
	c.answerNow(ctx, t)
	return errors.Join(err, failed)
}

// answerNow answers visits that were counted before, with the numbers of now as far as these can be
// read.
func (c *counting) answerNow(ctx context.Context, t taken) {
	var ask taken
	for k, i := range t.places {
		c.counted = true
		c.results[i] = Result{Outcome: Repeated, Answer: visit.Answer{NoNumbers: c.numbers}}
		if v := t.visits[k]; c.numbers && v.Target.Page != "" {
			ask.add(v, i)
		}
	}
	if len(ask.visits) == 0 {
		return
	}
	if answers, err := c.Numbers(ctx, ask.visits); err == nil {
		for k, i := range ask.places {
			c.results[i].Answer = answers[k]
		}
	}
}

// chunk counts the next items.
func (c *counting) chunk(ctx context.Context) error {
	t, earlier, behind, err := c.take(ctx, c.share())
	if err != nil {
		return err
	}
	defer func() { c.answerNow(ctx, earlier) }()
	if len(t.visits) == 0 {
		c.at = behind
		return nil
	}
	chunk := record.Chunk{Visits: t.visits}
	if c.position != nil {
		c.at = int(c.position.Next) // as far as it is certain what became of the items
		for _, i := range t.places {
			chunk.Steps = append(chunk.Steps, record.Step{Position: c.position, Next: int64(i) + 1})
		}
	}
	results := c.Record(chunk)
	for k, got := range results {
		i := t.places[k]
		if errors.Is(got.Err, record.ErrMoved) {
			return nil // what another caller has counted is repeated, and the rest counted from there
		}
		if errors.Is(got.Err, record.ErrRepeated) {
			earlier.add(t.visits[k], i)
			c.at = i + 1
			continue
		}
		if gone, ok := errors.AsType[*visit.Error](got.Err); ok && gone.Kind == visit.Invalid { // its day has just been let go
			c.results[i] = Result{Outcome: Failed, Fault: gone.Message}
			if c.position == nil {
				continue
			}
			c.at = i + 1 // the chunk has ended there: what a position passes is counted in the next one
			return nil
		}
		if failed := c.result(i, got); failed != nil && err == nil {
			err = failed
		} else if failed == nil {
			c.at = i + 1
		}
	}
	c.at = behind
	return err
}

// share is how many visits to count next, so that the chunks of a call are of one size, which is
// about the best one: a quarter more costs those who wait less than one more commit costs the call.
func (c *counting) share() int { return shareOf(len(c.results)-c.at, c.Recorder().ChunkVisits()) }

func shareOf(left, best int) int {
	most := best + best/4
	chunks := (left + most - 1) / most
	return (left + chunks - 1) / chunks
}

// result gives an item the result of its visit. It returns the error for which those behind it are
// not counted.
func (c *counting) result(i int, got record.Result) error {
	verr, ok := errors.AsType[*visit.Error](got.Err)
	switch {
	case got.Err == nil:
		c.counted = true
		c.results[i] = Result{Outcome: Counted, Answer: got.Answer}
		return nil
	case errors.Is(got.Err, record.ErrNumbersLost):
		c.counted = true
		c.results[i] = Result{Outcome: Counted, Answer: visit.Answer{NoNumbers: true}}
		return nil
	case !ok: // of a visit that the tables do not accept
		c.results[i] = Result{Outcome: Failed, Fault: "internal error"}
		c.internal = errors.Join(c.internal, got.Err)
		if c.position != nil {
			return record.ErrNotReached // a position does not pass it
		}
		return nil
	case verr.Kind == visit.Lost:
		c.results[i] = Result{Outcome: Unknown, Fault: "it is not known whether it was counted: " + c.again()}
	}
	return got.Err
}
