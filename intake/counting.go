package intake

import (
	"context"
	"errors"
	"io"

	"footfall/counter"
	"footfall/record"
	"footfall/record/feed"
	"footfall/visit"
)

// numbersAtOnce is the maximum number of visits for which one query reads the current numbers.
const numbersAtOnce = 1000

// counting counts the items of one call. It implements feed.Source: each item is an entry of the feed, and Entry.Data is
// the item's index in the call.
type counting struct {
	*counter.Counting
	items    items[counter.Item]
	results  []Result
	numbers  bool // the results of repeated visits must contain the current numbers, too
	key      string
	position *record.Position

	nextIndex int     // index of the next item to read
	passed    []entry // entries that another call with the same key may have counted, earlier or at the same time
	repeated  []entry
	internal  error // errors that are not the caller's fault; the service logs them
}

type entry = feed.Entry[int]

// count counts the items and fills in c.results. If it fails and this is not the caller's fault, it does not count the
// remaining items. Their outcome stays Unreached.
func (c *counting) count(ctx context.Context) error {
	within, cancel := context.WithTimeoutCause(ctx, countWithin, record.ErrNotReached)
	defer cancel()
	f := feed.Feed[int]{Source: c, Recorder: c.Recorder(), OnResult: c.onResult}
	err := f.Run(within)
	if failed := c.findPassed(ctx); err == nil {
		err = failed
	}
	c.answerRepeated(ctx)
	for i := range c.results {
		switch c.results[i].Outcome {
		case Unreached:
			c.Recorder().NotCounted(record.ErrNotReached)
		case Unknown:
			c.Recorder().NotCounted(&visit.Error{Kind: visit.Lost})
		}
	}
	return c.failure(err)
}

// failure returns the error for the whole call. If this or an earlier call counted at least one item, it returns nil,
// because the caller then gets a result for each item.
func (c *counting) failure(err error) error {
	if _, ok := errors.AsType[*visit.Error](err); !ok {
		c.internal = errors.Join(c.internal, err)
	}
	unknown := false
	for i := range c.results {
		switch c.results[i].Outcome {
		case Counted, Repeated:
			return nil
		case Unknown:
			unknown = true
		}
	}
	switch {
	case unknown:
		return visit.Errorf(visit.Lost, "",
			"the connection to the database was lost, so it is unknown whether any of these visits were counted: %s", c.remedy()).Because(err)
	case c.internal != nil:
		return c.internal
	case errors.Is(err, record.ErrNotReached):
		return visit.Errorf(visit.Unavailable, "", "none of these visits were counted; try again")
	}
	return err
}

// remedy returns a text that tells the caller what to do about visits whose outcome is unknown.
func (c *counting) remedy() string {
	if c.key != "" {
		return "send them again with the same Idempotency-Key"
	}
	return "query /counts, or send those that have an id again"
}

// Read implements feed.Source. It also sets the fate of each entry (feed.Fate). The fate stays the same even if the app's
// settings change during the call.
func (c *counting) Read(ctx context.Context, most int) ([]entry, error) {
	if c.nextIndex == len(c.results) {
		return nil, io.EOF
	}
	entries := make([]entry, chunkSize(len(c.results)-c.nextIndex, most))
	for i := range entries {
		e := &entries[i]
		e.Data, e.Position, e.Next = c.nextIndex, c.position, int64(c.nextIndex)+1
		if err := c.decide(ctx, e); err != nil {
			return nil, err
		}
		c.nextIndex++
	}
	return entries, c.findRepeated(ctx, entries)
}

// chunkSize returns how many of the remaining items (left) the next chunk should contain. It divides them into equal
// chunks, which may be larger than the best size (best) by a quarter: this costs less time than one more commit.
func chunkSize(left, best int) int {
	most := best + best/4
	chunks := (left + most - 1) / most
	return (left + chunks - 1) / chunks
}

func (c *counting) decide(ctx context.Context, e *entry) error {
	if wrong := c.items.problems[e.Data]; wrong != "" {
		return e.Refuse(visit.Errorf(visit.Invalid, "", "%s", wrong))
	}
	return Decide(ctx, c.Counting, c.items.list[e.Data], e)
}

// findRepeated changes the fate of a refused entry to Repeated if a visit with the entry's id was already counted. The
// entry may be refused now, for example, because the app has stopped keeping the visit's day since then.
func (c *counting) findRepeated(ctx context.Context, entries []entry) error {
	var ids []string
	for i := range entries {
		if e := &entries[i]; e.Fate == feed.Refused && e.Visit.ID != "" {
			ids = append(ids, e.Visit.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	known, err := c.FindCounted(ctx, ids)
	for i := range entries {
		if e := &entries[i]; e.Fate == feed.Refused && known[e.Visit.ID] {
			e.Fate = feed.Repeated
		}
	}
	return err
}

// Decide implements feed.Source. The returned function does nothing, because Read has already set the fates.
func (c *counting) Decide(context.Context) (func(context.Context, *entry) error, error) {
	return func(context.Context, *entry) error { return nil }, nil
}

// onResult stores the result of a visit that was sent to the recorder.
func (c *counting) onResult(e *entry, got record.Result) {
	verr, ok := errors.AsType[*visit.Error](got.Err)
	switch {
	case got.Err == nil:
		c.results[e.Data] = Result{Outcome: Counted, Answer: c.AdaptAnswer(&e.Visit, got.Answer)}
	case errors.Is(got.Err, record.ErrNumbersLost):
		c.results[e.Data] = Result{Outcome: Counted, Answer: c.AdaptAnswer(&e.Visit, visit.Answer{NoNumbers: true})}
	case ok && verr.Kind == visit.Lost:
		c.results[e.Data] = Result{Outcome: Unknown, Fault: "it is unknown whether it was counted: " + c.remedy()}
	}
}

// Unaccepted implements feed.Source. If the call has an Idempotency-Key, Unaccepted stops the feed, so that the stored
// position of the call does not move past the entry. After such a move, the visit could not be sent again.
func (c *counting) Unaccepted(e *entry, err error) error {
	c.internal = errors.Join(c.internal, err)
	c.Recorder().NotCounted(err)
	if c.key == "" {
		return nil
	}
	c.results[e.Data] = Result{Outcome: Failed, Fault: "internal error"}
	return record.ErrNotReached
}

// Keep implements feed.Source. It stores the results of refused and skipped items. In the call's position, it marks these
// items as uncounted.
func (c *counting) Keep(e *entry, _ bool) []record.Refusal {
	switch e.Fate {
	case feed.Refused:
		c.results[e.Data] = Result{Outcome: Failed, Fault: e.Refusal.Message()}
	case feed.Skipped:
		c.results[e.Data] = Result{Outcome: Skipped, Answer: visit.Answer{Skipped: e.Why}}
	default:
		return nil
	}
	c.position.Uncounted[e.Data] = '1'
	return nil
}

// Settled implements feed.Source.
func (c *counting) Settled(entries []*entry) {
	for _, e := range entries {
		switch {
		case e.ByOthers, e.Fate == feed.Counted && c.results[e.Data].Outcome != Counted: // an identical call may have counted the item
			c.passed = append(c.passed, *e)
		case e.Fate == feed.Repeated:
			c.repeated = append(c.repeated, *e)
		}
	}
}

// findPassed sets the results of the items in c.passed, which another call with the same key may have counted. If that call
// has counted an item, the item is Repeated, even if the app's settings have changed since. Otherwise this call does not
// count it either.
func (c *counting) findPassed(ctx context.Context) error {
	if len(c.passed) == 0 {
		return nil
	}
	uncounted, err := c.Recorder().Uncounted(ctx, c.position)
	if err != nil {
		return err
	}
	for i := range c.passed {
		switch e := &c.passed[i]; {
		case e.Data >= len(uncounted):
			return visit.Errorf(visit.Unavailable, "", "the record of this call has just been deleted; try again")
		case uncounted[e.Data] == '0':
			e.Fate = feed.Repeated
		case e.Fate == feed.Counted:
			e.Fate, e.Refusal = feed.Refused, visit.Errorf(visit.Invalid, "",
				"it was not counted when this call was sent before, but would be counted now: send it in another call")
		}
	}
	if err := c.findRepeated(ctx, c.passed); err != nil {
		return err
	}
	for i := range c.passed {
		e := &c.passed[i]
		if e.Fate == feed.Repeated {
			c.repeated = append(c.repeated, *e)
		}
		c.Keep(e, false)
	}
	return nil
}

// answerRepeated sets the results of visits that were already counted. The results contain the current numbers if the
// caller wants them and the database responds.
func (c *counting) answerRepeated(ctx context.Context) {
	var ask []record.Visit
	var places []int
	for i := range c.repeated {
		e := &c.repeated[i]
		c.results[e.Data] = Result{Outcome: Repeated, Answer: visit.Answer{NoNumbers: c.numbers}}
		if c.numbers && e.Visit.Target.Page != "" {
			ask, places = append(ask, e.Visit), append(places, e.Data)
		}
	}
	for len(ask) > 0 {
		n := min(len(ask), numbersAtOnce)
		answers, err := c.Numbers(ctx, ask[:n])
		if err != nil {
			return
		}
		for k, place := range places[:n] {
			c.results[place].Answer = answers[k]
		}
		ask, places = ask[n:], places[n:]
	}
}
