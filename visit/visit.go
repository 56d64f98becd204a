// Package visit defines the terms that all other packages use: the target of a URI, the visitor of
// an address, days and ranges of days, the answer to a visit, and the errors that callers are told.
package visit

import (
	"fmt"
	"time"
)

// Counts are the numbers of one target at the moment of a visit.
type Counts struct {
	PV int64 `json:"pv"` // (visitor, day) pairs
	UV int64 `json:"uv"` // visitors
	// Rank is the visitor's place in the order of first visits; 0: they never came, or no visitor
	// was named.
	Rank int64 `json:"rank"`
	Hot  int64 `json:"hot"` // visits
}

// Answer is what a visit gets back: the numbers of its site and of its page.
type Answer struct {
	Site Counts `json:"site"`
	Page Counts `json:"page"`

	Other    Target  `json:"-"` // that it was counted for, if not for the one that it names
	Skipped  Skipped `json:"-"` // why the visit was not counted, if that was on purpose
	Repeated bool    `json:"-"` // it was counted before; the numbers are those of now
	Later    bool    `json:"-"` // it will be counted in a moment
	Untold   bool    `json:"-"` // the caller is told no numbers
	// NoNumbers: the visit was counted, now or before, and nobody knows its numbers.
	NoNumbers bool  `json:"-"`
	Behind    int64 `json:"-"` // of an answer that counts nothing: visits of the app that are accepted and not counted yet
	PageOnly  bool  `json:"-"` // the caller may read the numbers of the page, and not those of its site
	Now       Now   `json:"-"` // the numbers that a request selects with Request.With
}

// Now holds numbers of the moment. A nil field was not requested.
type Now struct {
	Site, Page *Today
	Here       *int64 // visitors of the site in the last five minutes
}

// Today holds the numbers of one target on the app's current day, without offsets.
type Today struct {
	Hot int64 // visits
	PV  int64 // visitors
}

// Skipped is the reason for which a visit was not counted on purpose. It is "" for a visit that was
// counted.
type Skipped string

// The reasons for which a visit is not counted. It is then answered as /counts would answer.
const (
	SkippedPrefetch Skipped = "prefetch"     // a browser fetched the page in advance
	SkippedIgnored  Skipped = "ignored"      // the app ignores this visitor
	SkippedDNT      Skipped = "do-not-track" // the visitor asks for it, and the app respects that
	SkippedBot      Skipped = "bot"          // the visitor is a crawler or another program
)

// Kind says what an Error means for the caller.
type Kind int

// The kinds of Error.
const (
	Invalid     Kind = iota + 1 // a field of the request is wrong
	NotFound                    // no such app
	BadKey                      // the key is wrong or missing
	Forbidden                   // the app does not allow it
	TooMany                     // not counted: more than the app's limits allow
	TooLarge                    // the body is larger than may be
	TooSlow                     // the body comes too slowly
	Mismatch                    // not what was sent under the same name before
	Unavailable                 // not counted; try again later
	// Unknown whether it was counted, or with which numbers: send it again only with an id, or with the
	// same Idempotency-Key.
	Lost
)

// Error is what callers are told. Errorf makes it.
type Error struct {
	Kind       Kind
	Field      string        // of the request, as callers write it, if it is wrong; else ""
	Message    string        // what is wrong and what to do; it begins with the field
	RetryAfter time.Duration // with Unavailable and TooMany: when to try again
	Err        error         // the cause, which is logged and not told to callers
	Logged     bool          // it is in the log already
}

// Errorf makes an Error. field is the field of the request that is wrong, or "".
func Errorf(kind Kind, field, format string, args ...any) *Error {
	e := &Error{Kind: kind, Field: field, Message: fmt.Sprintf(format, args...)}
	if field != "" {
		e.Message = field + ": " + e.Message
	}
	if kind == Unavailable {
		e.RetryAfter = time.Second
	}
	return e
}

// Because sets the cause of an error and returns the error.
func (e *Error) Because(cause error) *Error {
	e.Err = cause
	return e
}

// Unanswered makes a read of the database that has failed an Error.
func Unanswered(cause error) error {
	return Errorf(Unavailable, "", "the database does not answer; try again").Because(cause)
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
