// Package intake is how visits come in that do not come one by one: it reads many at once, and
// hands them in chunks to what counts.
package intake

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"time"

	"footfall/counter"
	"footfall/visit"
)

const (
	// callsAtOnce bounds the memory of calls that are counted: each has a text of MostBytes at most,
	// and its results. Their bodies, as they come, are bounded beside (mostReceived).
	callsAtOnce = 4
	// callWait is how long a call waits for memory, and then for its turn, before it is refused.
	callWait = 2 * time.Second
	// countWithin is how long after its beginning a call begins further chunks, so that it is
	// answered before its connection is closed, whatever happens to the last one.
	countWithin = 20 * time.Second
)

// Desk takes in calls of many visits. It is safe for concurrent use.
type Desk struct {
	turns  chan struct{}
	bodies bodies
	wait   time.Duration
}

// NewDesk makes a desk.
func NewDesk() *Desk {
	return &Desk{make(chan struct{}, callsAtOnce), bodies{free: mostReceived, freed: make(chan struct{})}, callWait}
}

// Call is many visits that a caller sends at once.
type Call struct {
	Counting *counter.Counting
	Body     io.Reader
	Length   int64 // of the body, if it is known
	// ReadUntil ends reading the body at a time, the present read as well; the zero time: not at
	// all. nil: nothing has to.
	ReadUntil func(time.Time) error
	Lines     bool   // a line of JSON for each visit, in place of one JSON array
	Gzip      bool   // the body is packed
	Key       string // makes the call repeatable; "": none
	SumsOnly  bool   // the caller wants no numbers
	// Turns has room for the calls that one of several databases counts at once, so that one which
	// does not answer leaves some of the desk's to the others. nil: there is one database.
	Turns chan struct{}
}

// Outcome is what became of one visit of a call.
type Outcome int

// The outcomes. Everything but Counted, and perhaps Unknown, counted nothing now.
const (
	Unreached Outcome = iota // not counted: to be sent again
	Counted
	Repeated // counted before: the numbers are those of now
	Skipped  // not counted, on purpose
	Failed   // not counted: something is wrong with it
	Unknown  // nobody knows whether it was counted
)

// Result is what a visit of a call is answered.
type Result struct {
	Outcome Outcome
	Answer  visit.Answer // of what was counted; Answer.Skipped says why nothing was
	Fault   string       // a sentence, of what has failed or is not known
}

// Count counts the visits of a call, and returns a result for each. An error means that none was
// counted, or where it is visit.Lost, that this is not known. internal is what to log of results
// that have failed through no fault of the caller's.
func (d *Desk) Count(ctx context.Context, c Call) (results []Result, internal, err error) {
	read, sum, leave, err := take(ctx, d, &c, &ofVisits)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	k := counting{Counting: c.Counting, items: read, results: make([]Result, len(read.list)), numbers: !c.SumsOnly, key: c.Key}
	ctx = context.WithoutCancel(ctx) // what has begun is finished, so that whoever comes again finds the rest
	if k.position, err = c.Counting.OpenCall(ctx, c.Key, sum, len(read.list)); err != nil {
		return nil, nil, err
	}
	err = k.count(ctx)
	return k.results, k.internal, err
}

// PutPeople writes what a call says of ids, and returns for each what is wrong with it, "" where
// nothing is. An error means that nothing was written, or where it is visit.Lost, that this is not
// known.
func (d *Desk) PutPeople(ctx context.Context, c Call, people *counter.People) (faults []string, err error) {
	read, _, leave, err := take(ctx, d, &c, &ofPeople)
	if err != nil {
		return nil, err
	}
	defer leave()
	return people.Put(ctx, read.list, read.wrong)
}

// take reads the items of a call, in its turn, which lasts until leave.
func take[T any](ctx context.Context, d *Desk, c *Call, f *form[T]) (read items[T], sum [sha256.Size]byte, leave func(), err error) {
	body, err := d.bodies.receive(c, d.wait)
	if err != nil {
		return read, sum, nil, err
	}
	defer d.bodies.leave(body)
	if leave, err = d.takeTurn(ctx, c.Turns); err != nil {
		return read, sum, nil, err
	}
	text, sum, err := c.read(body)
	d.bodies.leave(body)
	if err == nil {
		read, err = readItems(f, text, c.Lines)
	}
	if err != nil {
		leave()
	}
	return read, sum, leave, err
}

// takeTurn waits for a turn of the database of a call, if it has any, and for one of the desk. leave ends
// both.
func (d *Desk) takeTurn(ctx context.Context, of chan struct{}) (leave func(), err error) {
	wait := time.After(d.wait)
	leave = func() {}
	for _, turns := range []chan struct{}{of, d.turns} {
		if turns == nil {
			continue
		}
		before := leave
		select {
		case turns <- struct{}{}:
			leave = func() { <-turns; before() }
		case <-wait:
			before()
			return nil, tooMany()
		case <-ctx.Done():
			before()
			return nil, errors.Join(visit.Errorf(visit.Unavailable, "", "the caller has left"), ctx.Err())
		}
	}
	return leave, nil
}
