// Package intake counts many visits at once. This package reads them from a request. Its subpackages read them from access
// logs and queues, and read numbers from other counters. Package record counts the visits in chunks.
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
	// callsAtOnce is the maximum number of calls that are counted at the same time. It limits the memory for the calls'
	// results and decompressed texts. (mostReceived limits the memory for bodies that are not decompressed yet.)
	callsAtOnce = 4
	// callWait is how long a call waits for memory, and then for its turn, before it is refused.
	callWait = 2 * time.Second
	// countWithin is how long a call may start new chunks. It is short enough that the server can still respond before it
	// closes the connection, even if the last chunk runs into a timeout.
	countWithin = 20 * time.Second
)

// Desk counts the visits of calls, and limits how many calls are processed at the same time. It is safe for concurrent use.
type Desk struct {
	turns  chan struct{}
	bodies bodies
	wait   time.Duration
}

// NewDesk returns a Desk with the default limits.
func NewDesk() *Desk {
	return &Desk{make(chan struct{}, callsAtOnce), bodies{free: mostReceived, freed: make(chan struct{})}, callWait}
}

// Call is a request with many visits, or with many links from ids to persons.
type Call struct {
	Counting *counter.Counting
	Body     io.Reader
	Length   int64 // size of the body in bytes; -1: unknown
	// ReadUntil sets the deadline for reading the body. If a read is already waiting, the deadline applies to it, too. The
	// zero time removes the deadline. ReadUntil may be nil.
	ReadUntil func(time.Time) error
	Lines     bool   // the body has one JSON object per line instead of a JSON array
	Gzip      bool   // the body is compressed with gzip
	Key       string // the Idempotency-Key: if the call is sent again with the same key, no visit counts twice; "": no key
	SumsOnly  bool   // the caller does not need the current numbers for each visit
	// Turns limits how many calls for one database are counted at the same time. So if a database does not respond, its
	// calls cannot use all turns of the Desk. Turns is nil if there is only one database.
	Turns chan struct{}
}

// Outcome is the result of counting one visit of a call.
type Outcome int

// The outcomes of a visit.
const (
	Unreached Outcome = iota // not counted, because the call failed before this visit: send it again
	Counted
	Repeated // counted by an earlier call; the result contains the current numbers
	Skipped  // not counted on purpose, for example because it is from a bot
	Failed   // not counted, because it is invalid or caused an internal error
	Unknown  // perhaps counted, because the connection to the database was lost
)

// Result is the result of one visit of a call.
type Result struct {
	Outcome Outcome
	Answer  visit.Answer // the visit's numbers or, if Outcome is Skipped, the reason in Answer.Skipped
	Fault   string       // a description of the problem, if Outcome is Failed or Unknown
}

// Count counts the visits of a call, and returns a result for each visit. If err has the kind visit.Lost, it is unknown
// whether visits were counted. If Count returns any other err, no visit was counted. internal is an error that is not the
// caller's fault, and must be logged.
func (d *Desk) Count(ctx context.Context, c Call) (results []Result, internal, err error) {
	read, sum, leave, err := take(ctx, d, &c, &visitForm)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	k := counting{Counting: c.Counting, items: read, results: make([]Result, len(read.list)), numbers: !c.SumsOnly, key: c.Key}
	ctx = context.WithoutCancel(ctx) // continue if the caller disconnects, so that a repeated call finds all results
	if k.position, err = c.Counting.OpenCall(ctx, c.Key, sum, len(read.list)); err != nil {
		return nil, nil, err
	}
	err = k.count(ctx)
	return k.results, k.internal, err
}

// PutPeople stores the links of a call. Each link assigns a visitor's id to a person, or sets the person's tags. faults
// contains an element for each link: the reason why the link is invalid, or "". If err has the kind visit.Lost, it is
// unknown whether links were stored. If PutPeople returns any other err, no link was stored.
func (d *Desk) PutPeople(ctx context.Context, c Call, people *counter.People) (faults []string, err error) {
	read, _, leave, err := take(ctx, d, &c, &linkForm)
	if err != nil {
		return nil, err
	}
	defer leave()
	return people.Put(ctx, read.list, read.problems)
}

// take receives the body of a call, waits for a turn, and parses the items in the body. The caller must call leave at the
// end, so that the next call gets the turn.
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

// takeTurn waits until two limits allow another call: the limit for the call's database (of; nil: no such limit), and the
// limit of the Desk. The caller must call leave at the end, so that another call can start.
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
