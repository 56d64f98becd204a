// Package visit knows what a visit is and makes it durable: it turns a URI into a target and an address into a visitor,
// and counts visits in batches, each batch one transaction.
//
// A Counter is the whole of it: Visit returns when the visit has committed, with the numbers that are its own.
package visit

import (
	"fmt"
	"time"
)

// Counts are the numbers of one target at the moment of a visit.
type Counts struct {
	PV   int64 `json:"pv"`   // (visitor, day) pairs
	UV   int64 `json:"uv"`   // visitors
	Rank int64 `json:"rank"` // this visitor's place in the order of first visits; 0: never came, or nobody was named
	Hot  int64 `json:"hot"`  // visits
}

// Answer is what one visit gets back.
type Answer struct {
	Site Counts `json:"site"`
	Page Counts `json:"page"`

	Skipped Skipped `json:"-"` // why the visit was not counted on purpose
}

// Kind says what an Error means for the caller.
type Kind int

// The kinds of Error.
const (
	Invalid     Kind = iota + 1 // a field of the request is wrong
	NotFound                    // no such app
	BadKey                      // the key opens nothing, or is missing
	Forbidden                   // the app does not allow it
	TooMany                     // not counted: more than the app's limits allow
	Unavailable                 // not counted; try again later
	Lost                        // counted, or perhaps counted, but its numbers are not known: do not send it again
)

// Error is what a Counter returns for a visit that it cannot answer. Message is for the caller; Err, if any, is
// for the log alone.
type Error struct {
	Kind       Kind
	Message    string
	RetryAfter time.Duration // with Unavailable and TooMany: when to try again
	Err        error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func unavailable(err error, message string) *Error {
	return &Error{Kind: Unavailable, Message: message, RetryAfter: time.Second, Err: err}
}
