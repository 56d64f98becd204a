// Package visit holds the words that the rest speaks: what a URI counts, whom an address stands for, which day it is, what
// a visit is answered, and how callers are told what is wrong.
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

// Skipped says why a visit was not counted on purpose; "" for one that was.
type Skipped string

// The reasons for which a visit is not counted. Its answer is then what /counts would say.
const (
	SkippedPrefetch Skipped = "prefetch"     // a browser fetched the page in case somebody asks for it
	SkippedIgnored  Skipped = "ignored"      // the app ignores this visitor
	SkippedDNT      Skipped = "do-not-track" // the visitor asks not to be tracked, and the app respects that
	SkippedBot      Skipped = "bot"          // a crawler, or another program
)

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

// Error is what callers are told. Errorf makes it.
type Error struct {
	Kind       Kind
	Field      string        // of the request, as callers write it, where one is at fault
	Message    string        // what is wrong and what to do, with the field in front
	RetryAfter time.Duration // with Unavailable and TooMany: when to try again
	Err        error         // the cause, for the log alone
}

// Errorf makes an Error. field is the one that is at fault, or "".
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

// Because adds the cause.
func (e *Error) Because(cause error) *Error {
	e.Err = cause
	return e
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
