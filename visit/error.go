package visit

import (
	"errors"
	"fmt"
	"strings"
	"time"
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

// Text is a sentence in English with its values. Pages in another language find their own sentence by the format (web/words).
type Text struct {
	Format string // of fmt.Sprintf
	Values []any  // of the format; an Error among them is written in the language of the sentence
}

// Textf makes a Text.
func Textf(format string, values ...any) Text {
	if false {
		_ = fmt.Sprintf(format, values...) // so that vet checks the callers' formats
	}
	return Text{format, values}
}

func (t Text) String() string { return fmt.Sprintf(t.Format, t.Values...) }

// Error is an error for callers; Errorf makes it. The entry point writes it: Message for the shell and the API, and a page in its
// language.
type Error struct {
	Kind       Kind
	Field      string        // of the request, as callers write it, if it is wrong; else ""
	Text       Text          // what is wrong and what to do, without the field
	Parts      []*Error      // several errors of one request, in place of a text
	RetryAfter time.Duration // with Unavailable and TooMany: when to try again
	Err        error         // the cause, which is logged and not told to callers
	Logged     bool          // it is in the log already
}

// Errorf makes an Error. field is the field of the request that is wrong, or "".
func Errorf(kind Kind, field, format string, args ...any) *Error {
	e := &Error{Kind: kind, Field: field, Text: Textf(format, args...)}
	if kind == Unavailable {
		e.RetryAfter = time.Second
	}
	return e
}

// InField returns a copy of an Error that is about another field.
func InField(field string, err error) *Error {
	e, is := errors.AsType[*Error](err)
	if !is {
		return Errorf(Invalid, field, "%v", err)
	}
	copied := *e
	copied.Field = field
	return &copied
}

// Rename returns a copy of an Error with other names of its fields.
func (e *Error) Rename(name func(field string) string) *Error {
	copied := *e
	copied.Field, copied.Parts = name(e.Field), nil
	for _, part := range e.Parts {
		copied.Parts = append(copied.Parts, part.Rename(name))
	}
	return &copied
}

// Join returns an error that has some as its parts; nil if there are none.
func Join(errs ...error) error {
	if len(errs) == 0 {
		return nil
	}
	joined := &Error{Kind: Invalid}
	for _, err := range errs {
		part, is := errors.AsType[*Error](err)
		if !is {
			part = Errorf(Invalid, "", "%v", err)
		}
		joined.Parts = append(joined.Parts, part)
	}
	return joined
}

// All returns the parts of an Error that has some, else the Error itself.
func (e *Error) All() []*Error {
	if e.Parts != nil {
		return e.Parts
	}
	return []*Error{e}
}

// Message is the Error in English, each of its parts in a line. A line begins with the field.
func (e *Error) Message() string {
	var lines []string
	for _, part := range e.All() {
		line := part.Text.String()
		if part.Field != "" {
			line = part.Field + ": " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
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
		return fmt.Sprintf("%s: %v", e.Message(), e.Err)
	}
	return e.Message()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
