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

// numbersAtOnce is the number of visits whose numbers are read in one query.
const numbersAtOnce = 1000

// counting implements feed.Source for one call. Each entry is one item of the call, and Entry.Of is the item's index.
type counting struct {
	*counter.Counting
	items    items[counter.Item]
	results  []Result
	numbers  bool // the caller wants the numbers of repeated visits
	key      string
	position *record.Position

	nextIndex int     // index of the next item to read
	passed    []entry // entries that an identical call, sent before or at the same time, may have counted
	repeated  []entry
	internal  error // errors that are not the caller's fault
}

type entry = feed.Entry[int]

// count counts the items and fills in their results. After the first failure that is the service's fault, the remaining
// items stay Unreached.
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

// failure returns the error for the whole call. It returns nil if an item was counted, now or before, because the caller
// then needs the results of the items.
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

// remedy returns the remedy for visits whose outcome is unknown.
func (c *counting) remedy() string {
	if c.key != "" {
		return "send them again with the same Idempotency-Key"
	}
	return "query /counts, or send those that have an id again"
}

// Read implements feed.Source. It also sets the fate of each entry. If the app's settings change later in the call, the
// fate does not change.
func (c *counting) Read(ctx context.Context, most int) ([]entry, error) {
	if c.nextIndex == len(c.results) {
		return nil, io.EOF
	}
	entries := make([]entry, chunkSize(len(c.results)-c.nextIndex, most))
	for i := range entries {
		e := &entries[i]
		e.Of, e.Position, e.Next = c.nextIndex, c.position, int64(c.nextIndex)+1
		if err := c.decide(ctx, e); err != nil {
			return nil, err
		}
		c.nextIndex++
	}
	return entries, c.findRepeated(ctx, entries)
}

// chunkSize returns how many items to count next, if left items remain. It divides a call into chunks of equal size, each at
// most a quarter larger than best. A larger chunk delays waiting callers less than another commit would delay the call.
func chunkSize(left, best int) int {
	most := best + best/4
	chunks := (left + most - 1) / most
	return (left + chunks - 1) / chunks
}

func (c *counting) decide(ctx context.Context, e *entry) error {
	if wrong := c.items.problems[e.Of]; wrong != "" {
		return e.Refuse(visit.Errorf(visit.Invalid, "", "%s", wrong))
	}
	return Decide(ctx, c.Counting, c.items.list[e.Of], e)
}

// findRepeated changes the fate of a refused entry to Repeated if a visit with the entry's id was counted before. Only an
// entry whose day is no longer kept is both refused and counted before.
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
	known, err := c.Known(ctx, ids)
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

// onResult stores the recorder's result of a visit.
func (c *counting) onResult(e *entry, got record.Result) {
	verr, ok := errors.AsType[*visit.Error](got.Err)
	switch {
	case got.Err == nil:
		c.results[e.Of] = Result{Outcome: Counted, Answer: c.Shown(&e.Visit, got.Answer)}
	case errors.Is(got.Err, record.ErrNumbersLost):
		c.results[e.Of] = Result{Outcome: Counted, Answer: c.Shown(&e.Visit, visit.Answer{NoNumbers: true})}
	case ok && verr.Kind == visit.Lost:
		c.results[e.Of] = Result{Outcome: Unknown, Fault: "it is unknown whether it was counted: " + c.remedy()}
	}
}

// Unaccepted implements feed.Source. If the call has a key, its position is stored in the database. Unaccepted then stops the
// feed, so that the position does not pass the entry.
func (c *counting) Unaccepted(e *entry, err error) error {
	c.internal = errors.Join(c.internal, err)
	c.Recorder().NotCounted(err)
	if c.key == "" {
		return nil
	}
	c.results[e.Of] = Result{Outcome: Failed, Fault: "internal error"}
	return record.ErrNotReached
}

// Keep implements feed.Source. It stores the results of items that are not counted.
func (c *counting) Keep(e *entry, _ bool) []record.Refusal {
	switch e.Fate {
	case feed.Refused:
		c.results[e.Of] = Result{Outcome: Failed, Fault: e.Refusal.Message()}
	case feed.Skipped:
		c.results[e.Of] = Result{Outcome: Skipped, Answer: visit.Answer{Skipped: e.Why}}
	default:
		return nil
	}
	c.position.Uncounted[e.Of] = '1'
	return nil
}

// Settled implements feed.Source.
func (c *counting) Settled(entries []*entry) {
	for _, e := range entries {
		switch {
		case e.ByOthers, e.Fate == feed.Counted && c.results[e.Of].Outcome != Counted: // an identical call may have counted it
			c.passed = append(c.passed, *e)
		case e.Fate == feed.Repeated:
			c.repeated = append(c.repeated, *e)
		}
	}
}

// findPassed sets the results of c.passed, the items that an identical call may have counted. If the identical call counted
// an item, the item is Repeated, even if the app's settings, days or sites have changed since. If the identical call did not
// count an item, this call does not count the item either.
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
		case e.Of >= len(uncounted):
			return visit.Errorf(visit.Unavailable, "", "the record of this call has just been deleted; try again")
		case uncounted[e.Of] == '0':
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

// answerRepeated fills in the results of visits that were counted before. The results contain the current numbers if the
// database can be read.
func (c *counting) answerRepeated(ctx context.Context) {
	var ask []record.Visit
	var places []int
	for i := range c.repeated {
		e := &c.repeated[i]
		c.results[e.Of] = Result{Outcome: Repeated, Answer: visit.Answer{NoNumbers: c.numbers}}
		if c.numbers && e.Visit.Target.Page != "" {
			ask, places = append(ask, e.Visit), append(places, e.Of)
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
