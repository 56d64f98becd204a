// Package intake receives visits in bulk: calls with many visits here, access logs, queues and numbers of other
// counters in its subpackages. It splits them into chunks, and package record counts them.
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
	// callsAtOnce limits the memory of calls that are being counted: each holds its results and a text of at most
	// MostBytes. mostReceived limits their bodies separately.
	callsAtOnce = 4
	// callWait is how long a call waits for memory, and then for its turn, before it is refused.
	callWait = 2 * time.Second
	// countWithin is how long after its start a call may begin new chunks. It leaves time to answer before the
	// connection is closed, even if the last chunk fails.
	countWithin = 20 * time.Second
)

// Desk counts calls with many visits. It is safe for concurrent use.
type Desk struct {
	turns  chan struct{}
	bodies bodies
	wait   time.Duration
}

// NewDesk returns a desk.
func NewDesk() *Desk {
	return &Desk{make(chan struct{}, callsAtOnce), bodies{free: mostReceived, freed: make(chan struct{})}, callWait}
}

// Call is a request with many visits.
type Call struct {
	Counting *counter.Counting
	Body     io.Reader
	Length   int64 // of the body, if known
	// ReadUntil sets the deadline for reading the body, also for a read in progress. The zero time removes it. It may
	// be nil.
	ReadUntil func(time.Time) error
	Lines     bool   // the body has one JSON object per line instead of a JSON array
	Gzip      bool   // the body is compressed
	Key       string // makes the call repeatable; "": none
	SumsOnly  bool   // the caller does not need each visit's numbers
	// Turns limits how many calls for the same database are counted at once if there are several databases, so that a database
	// that does not respond leaves capacity to the others. It is nil for a single database.
	Turns chan struct{}
}

// Outcome is the outcome of one visit in a call.
type Outcome int

// The outcomes. Only Counted, and possibly Unknown, mean that the visit was counted now.
const (
	Unreached Outcome = iota // not counted: send it again
	Counted
	Repeated // counted before: the numbers are current
	Skipped  // deliberately not counted
	Failed   // not counted: it is invalid
	Unknown  // the connection was lost: possibly counted
)

// Result is the result of one visit in a call.
type Result struct {
	Outcome Outcome
	Answer  visit.Answer // the visit's numbers or, if Outcome is Skipped, the reason in Answer.Skipped
	Fault   string       // a sentence, for Failed and Unknown
}

// Count counts the visits of a call and returns a result for each. An error means that no visit was counted or, if it
// is visit.Lost, that this is unknown. internal is an error to log: it made results fail through no fault of the
// caller.
func (d *Desk) Count(ctx context.Context, c Call) (results []Result, internal, err error) {
	read, sum, leave, err := take(ctx, d, &c, &ofVisits)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	k := counting{Counting: c.Counting, items: read, results: make([]Result, len(read.list)), numbers: !c.SumsOnly, key: c.Key}
	ctx = context.WithoutCancel(ctx) // finish even if the caller leaves, so that a repeated call finds all results
	if k.position, err = c.Counting.OpenCall(ctx, c.Key, sum, len(read.list)); err != nil {
		return nil, nil, err
	}
	err = k.count(ctx)
	return k.results, k.internal, err
}

// PutPeople writes the links of ids in a call. It returns for each item why it is invalid, or "". An error means that
// nothing was written or, if it is visit.Lost, that this is unknown.
func (d *Desk) PutPeople(ctx context.Context, c Call, people *counter.People) (faults []string, err error) {
	read, _, leave, err := take(ctx, d, &c, &ofPeople)
	if err != nil {
		return nil, err
	}
	defer leave()
	return people.Put(ctx, read.list, read.wrong)
}

// take reads the items of a call. It waits for a turn, which lasts until leave is called.
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

// takeTurn waits for a turn of the call's database, if it has a limit, and for a turn of the desk. leave ends both.
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
			return nil, errors.Join(visit.Errorf(visit.Unavailable, "", "the caller has disconnected"), ctx.Err())
		}
	}
	return leave, nil
}
