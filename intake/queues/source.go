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

// What sources have in common.
const (
	// askWithin is how long a server has for an answer about a queue.
	askWithin = 15 * time.Second
	// fetchedAtOnce bounds what is fetched at once, in bytes. What a server does not divide it
	// sends all the same: a message, or a batch of Kafka.
	fetchedAtOnce = 4 << 20
)

// meaning is what some errors of a client mean that do not pass by themselves.
type meaning struct {
	means string
	errs  []error
}

// problem is what an error of a client means: what is known of it, or otherwise something that
// passes.
func problem(err error, otherwise string, all []meaning) error {
	if err == nil {
		return nil
	}
	final := func(means string) error {
		return visit.Errorf(visit.Invalid, "queue", "%s", means).Because(err)
	}
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return final("the server's certificate is not valid here: name the authority that signed it with ?ca=FILE")
	}
	if _, is := errors.AsType[tls.RecordHeaderError](err); is {
		return final("the server does not speak TLS there: leave out the s of kafkas://, or name its other port")
	}
	for _, k := range all {
		if slices.ContainsFunc(k.errs, func(one error) bool { return errors.Is(err, one) }) {
			return final(k.means)
		}
	}
	return visit.Errorf(visit.Unavailable, "", "%s", otherwise).Because(err)
}

// whileReading is what a problem means to whoever reads already. What has worked at the start may
// work again: passwords and rights are changed one after the other.
func whileReading(err error) error {
	if verr, ok := errors.AsType[*visit.Error](err); ok && verr.Kind == visit.Invalid && verr.Field == "queue" {
		passing := *verr
		passing.Kind = visit.Unavailable
		return &passing
	}
	return err
}

// ErrAnew is returned by a source whose queue has to be opened anew: it was deleted and made anew,
// say, or what the server sent did not come.
var ErrAnew = errors.New("the queue has to be opened anew")

// anew is ErrAnew, and why. It is nil where why is.
func anew(why error) error {
	if why == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrAnew, why)
}

// lostMessages is an error about a part of a queue that ends before what was counted of it: of what
// comes there next nobody could tell whether it was counted.
func lostMessages(queue, part, ends string, counted int64) error {
	return visit.Errorf(visit.Mismatch, "queue",
		"%s, but was counted up to %d: its servers have lost messages, or it is another queue of that name. "+
			"If what it has now is to be counted, forget how far it was: DELETE FROM footfall.positions WHERE source = '%s' AND part = '%s'",
		ends, counted, strings.ReplaceAll(queue, "'", "''"), part)
}
