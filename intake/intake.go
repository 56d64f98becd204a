// Package intake receives visits in bulk. This package handles requests with many visits. Its subpackages read access
// logs, queues, and numbers from other counters. Visits are split into chunks, and package record counts the chunks.
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
	// callsAtOnce is the maximum number of calls that are counted at the same time. Each call holds its results and a text
	// of at most MostBytes in memory. mostReceived limits the memory of the received bodies separately.
	callsAtOnce = 4
	// callWait is how long a call waits for memory, and then for its turn, before it is refused.
	callWait = 2 * time.Second
	// countWithin is the time after which a call starts no more chunks. Even if the last chunk fails, the server can still
	// respond before it closes the connection.
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
	// ReadUntil sets the deadline for reading the body, also for a read in progress. The zero time removes the deadline.
	// ReadUntil may be nil.
	ReadUntil func(time.Time) error
	Lines     bool   // the body has one JSON object per line instead of a JSON array
	Gzip      bool   // the body is compressed
	Key       string // the Idempotency-Key, which makes the call repeatable; "": the call has no key
	SumsOnly  bool   // the caller does not need each visit's numbers
	// Turns limits how many calls for one database are counted at once. A database that does not respond then leaves
	// capacity to the other databases. Turns is nil if there is only one database.
	Turns chan struct{}
}

// Outcome is the outcome of one visit in a call.
type Outcome int

// The outcomes. Counted means that this call counted the visit, and Unknown means that this call may have counted it.
const (
	Unreached Outcome = iota // not counted: send it again
	Counted
	Repeated // counted before: the numbers are current
	Skipped  // deliberately not counted
	Failed   // not counted: the visit is invalid, or caused an internal error
	Unknown  // the connection was lost: possibly counted
)

// Result is the result of one visit in a call.
type Result struct {
	Outcome Outcome
	Answer  visit.Answer // the visit's numbers or, if Outcome is Skipped, the reason in Answer.Skipped
	Fault   string       // the problem as a sentence, for Failed and Unknown
}

// Count counts the visits of a call and returns a result for each visit. If err has the kind visit.Lost, it is unknown
// whether visits were counted. After any other err, no visit was counted. internal is an error to log that is not the
// caller's fault.
func (d *Desk) Count(ctx context.Context, c Call) (results []Result, internal, err error) {
	read, sum, leave, err := take(ctx, d, &c, &visitForm)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	k := counting{Counting: c.Counting, items: read, results: make([]Result, len(read.list)), numbers: !c.SumsOnly, key: c.Key}
	ctx = context.WithoutCancel(ctx) // finish even if the caller disconnects, so that a repeated call finds all results
	if k.position, err = c.Counting.OpenCall(ctx, c.Key, sum, len(read.list)); err != nil {
		return nil, nil, err
	}
	err = k.count(ctx)
	return k.results, k.internal, err
}

// PutPeople writes the links between ids that a call contains. faults has an element for each item: why the item is
// invalid, or "". If err has the kind visit.Lost, it is unknown whether links were written. After any other err, no link
// was written.
func (d *Desk) PutPeople(ctx context.Context, c Call, people *counter.People) (faults []string, err error) {
	read, _, leave, err := take(ctx, d, &c, &ofPeople)
	if err != nil {
		return nil, err
	}
	defer leave()
	return people.Put(ctx, read.list, read.problems)
}

// take receives the body of a call, waits for a turn, and reads the items. The turn lasts until the caller calls leave.
func take[T any](ctx context.Context, d *Desk, c *Call, f *form[T]) (read items[T], sum [sha256.Size]byte, leave func(), err error) {
	body, err := d.bodies.receive(c, d.wait)
	if err != nil {
		return read, sum, nil, err
	}
	defer d.bodies.release(body)
	if leave, err = d.takeTurn(ctx, c.Turns); err != nil {
		return read, sum, nil, err
	}
	text, sum, err := c.read(body)
	d.bodies.release(body)
	if err == nil {
		read, err = readItems(f, text, c.Lines)
	}
	if err != nil {
		leave()
	}
	return read, sum, leave, err
}

// takeTurn waits for a turn in of, the turns of the call's database, unless of is nil. Then it waits for a turn of the desk.
// leave ends these turns.
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
