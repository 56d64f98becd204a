package visit

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind classifies an Error for the caller.
type Kind int

// The kinds of Error.
const (
	Invalid     Kind = iota + 1 // a field of the request is wrong
	NotFound                    // the requested app, page or other thing does not exist
	BadKey                      // the key is wrong or missing
	Forbidden                   // the request is not allowed, for example by the app's settings
	TooMany                     // more requests than a limit allows, for example a limit in the settings of the app
	TooLarge                    // the body is larger than allowed
	TooSlow                     // the body arrives too slowly
	Mismatch                    // the request differs from an earlier request for the same Idempotency-Key or queue
	Unavailable                 // the request was not carried out, so no visit was counted; try again later
	// Lost means that it is unknown whether the visit was counted, or that the visit was counted but its numbers are unknown.
	// The caller may send the visit again only with an id, or with the same Idempotency-Key.
	Lost
)

// Text is an English sentence and the values to insert into it. Format is also the key with which package web/words
// finds the sentence in other languages.
type Text struct {
	Format string // a format for fmt.Sprintf
	Values []any  // the values for Format; an Error among them is translated like the sentence
}

// Textf makes a Text.
func Textf(format string, values ...any) Text {
	if false {
		_ = fmt.Sprintf(format, values...) // so that vet checks the callers' formats
	}
	return Text{format, values}
}

func (t Text) String() string { return fmt.Sprintf(t.Format, t.Values...) }

// Error is an error for callers, made by Errorf. The command line and the API show it in English (Message), and a
// page in the language of the page.
type Error struct {
	Kind       Kind
	Field      string        // the name of the wrong field, as callers write it; "" if no field is wrong
	Text       Text          // the problem and the remedy, without the field
	Parts      []*Error      // if a request has several errors: these errors, instead of Text
	RetryAfter time.Duration // for Unavailable and TooMany: how long to wait before trying again
	Err        error         // the cause, which is logged but not sent to callers
	Logged     bool          // the error is already in the log
}

// Errorf makes an Error. field is the wrong field of the request, or "".
func Errorf(kind Kind, field, format string, args ...any) *Error {
	e := &Error{Kind: kind, Field: field, Text: Textf(format, args...)}
	if kind == Unavailable {
		e.RetryAfter = time.Second
	}
	return e
}

// InField returns a copy of an Error in which the field is replaced. If err is not an Error, InField returns a new
// Error of the kind Invalid.
func InField(field string, err error) *Error {
	e, is := errors.AsType[*Error](err)
	if !is {
		return Errorf(Invalid, field, "%v", err)
	}
	copied := *e
	copied.Field = field
	return &copied
}

// Rename returns a copy of an Error in which its field and the fields of its parts are renamed. The function name
// returns the new name of a field.
func (e *Error) Rename(name func(field string) string) *Error {
	copied := *e
	copied.Field, copied.Parts = name(e.Field), nil
	for _, part := range e.Parts {
		copied.Parts = append(copied.Parts, part.Rename(name))
	}
	return &copied
}

// Join returns an Error that has the given errors as its parts. If there are no errors, it returns nil.
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

// All returns the parts of an Error, or the Error itself if it has no parts.
func (e *Error) All() []*Error {
	if e.Parts != nil {
		return e.Parts
	}
	return []*Error{e}
}

// Message returns the text of the Error in English, with one line for each part. Each line starts with the field, if
// there is one.
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

// Unanswered returns an Error that states that the database did not carry out a read or a write.
func Unanswered(cause error) error {
	return Errorf(Unavailable, "", "the database does not respond; try again").Because(cause)
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message(), e.Err)
	}
	return e.Message()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
