package queues

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"footfall/visit"
)

const (
	// queryTimeout is the time limit for a query about a queue, such as a query for its parts.
	queryTimeout = 15 * time.Second
	// fetchedAtOnce is the maximum number of bytes that are fetched at once. A server may return more, because it does not
	// split a message or a Kafka batch.
	fetchedAtOnce = 4 << 20
)

// meaning is a text (means) that is shown for some permanent errors (errs) of a queue's client library.
type meaning struct {
	means string
	errs  []error
}

// problem translates err, an error of a queue's client library. TLS errors, and errors in all, become permanent errors. For
// an error in all, the text is the one in all. Any other error becomes a temporary error with the text otherwise.
func problem(err error, otherwise string, all []meaning) error {
	if err == nil {
		return nil
	}
	final := func(means string) error {
		return visit.Errorf(visit.Invalid, "queue", "%s", means).Because(err)
	}
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return final("the server's certificate is not trusted here: name the authority that signed it with ?ca=FILE")
	}
	if _, is := errors.AsType[tls.RecordHeaderError](err); is {
		return final("this port of the server does not support TLS: write kafka:// instead of kafkas://, or name its other port")
	}
	for _, k := range all {
		if slices.ContainsFunc(k.errs, func(one error) bool { return errors.Is(err, one) }) {
			return final(k.means)
		}
	}
	return visit.Errorf(visit.Unavailable, "", "%s", otherwise).Because(err)
}

// makeTemporary turns a permanent error of a queue into a temporary one. It is used after the queue has been open. Then a
// retry may succeed, because the operator may just be changing passwords or rights.
func makeTemporary(err error) error {
	if verr, ok := errors.AsType[*visit.Error](err); ok && verr.Kind == visit.Invalid && verr.Field == "queue" {
		passing := *verr
		passing.Kind = visit.Unavailable
		return &passing
	}
	return err
}

// ErrReopen is the error of a Source if the queue must be opened again, for example because the queue was deleted and then
// created again.
var ErrReopen = errors.New("the queue must be opened again")

// reopen returns an error that wraps both ErrReopen and why, or nil if why is nil.
func reopen(why error) error {
	if why == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrReopen, why)
}

// lostMessages returns the error for a part that ends before its stored position. Reading must stop: new messages will get
// positions before the stored one, but messages at such positions are taken for counted ones.
func lostMessages(queue, part, ends string, counted int64) error {
	return visit.Errorf(visit.Mismatch, "queue",
		"%s, but was counted up to %d: its servers have lost messages, or it is another queue of that name. "+
			"To count the messages that it has now, delete the stored position: DELETE FROM footfall.positions WHERE source = '%s' AND part = '%s'",
		ends, counted, strings.ReplaceAll(queue, "'", "''"), part)
}
