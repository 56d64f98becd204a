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
	// askWithin is the time limit for a query about a queue.
	askWithin = 15 * time.Second
	// fetchedAtOnce limits the bytes fetched at once. A server may exceed this limit for a unit that it does not split: a
	// message, or a Kafka batch.
	fetchedAtOnce = 4 << 20
)

// meaning is a message for permanent errors of a queue's client library.
type meaning struct {
	means string
	errs  []error
}

// problem translates an error of a queue's client library. An unknown error becomes a temporary error with the text
// otherwise.
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

// makeTemporary makes a permanent problem temporary. It serves a consumer that has already read from the queue: the
// operator may be changing passwords and rights one after the other.
func makeTemporary(err error) error {
	if verr, ok := errors.AsType[*visit.Error](err); ok && verr.Kind == visit.Invalid && verr.Field == "queue" {
		passing := *verr
		passing.Kind = visit.Unavailable
		return &passing
	}
	return err
}

// ErrReopen is returned by a source whose queue must be opened again, for example because the queue was deleted and then
// created again.
var ErrReopen = errors.New("the queue must be opened again")

// reopen wraps why in ErrReopen. It returns nil if why is nil.
func reopen(why error) error {
	if why == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrReopen, why)
}

// lostMessages returns the error for a part that ends before the stored position. Reading cannot continue, because it is
// unknown whether the next messages were already counted.
func lostMessages(queue, part, ends string, counted int64) error {
	return visit.Errorf(visit.Mismatch, "queue",
		"%s, but was counted up to %d: its servers have lost messages, or it is another queue of that name. "+
			"To count the messages that it has now, delete the stored position: DELETE FROM footfall.positions WHERE source = '%s' AND part = '%s'",
		ends, counted, strings.ReplaceAll(queue, "'", "''"), part)
}
