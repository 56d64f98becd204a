package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"footfall/pause"
	"footfall/visit"
)

const (
	shortestWait = 50 * time.Millisecond
	longestWait  = 2 * time.Second
	// silentFor is how long an operation is retried without a message.
	silentFor = 500 * time.Millisecond
	// sameEvery is the minimum interval between equal messages.
	sameEvery = 10 * time.Second
)

// Retry repeats operations that failed because the database, or a queue's server, is unavailable.
// It is safe for concurrent use.
type Retry struct {
	notice   func(text string, cause error)
	patience time.Duration
	again    func(error) bool

	notices pause.Seldom[string]
}

// NewRetry returns a Retry that retries for at most patience, or for ever if patience is 0. notice receives the
// reasons for waiting. again reports whether an error is retried (see IsAway).
func NewRetry(notice func(text string, cause error), patience time.Duration, again func(error) bool) *Retry {
	return &Retry{notice, patience, again, pause.Seldom[string]{Every: sameEvery}}
}

// Do repeats do until do succeeds or fails permanently. A nil Retry never repeats.
func (r *Retry) Do(ctx context.Context, do func() error) error {
	for w := r.begin(); ; {
		err := do()
		if !r.isTemporary(err) {
			return err
		}
		if err := w.wait(ctx, err); err != nil {
			return err
		}
	}
}

func (r *Retry) isTemporary(err error) bool { return r != nil && r.again(err) }

// IsAway reports whether an error means that the database or another server is unavailable.
func IsAway(err error) bool {
	verr, ok := errors.AsType[*visit.Error](err)
	return ok && (verr.Kind == visit.Unavailable || verr.Kind == visit.Lost)
}

// waiting computes the pauses between the attempts of one operation.
type waiting struct {
	*Retry
	began time.Time
	next  time.Duration
}

func (r *Retry) begin() waiting { return waiting{r, time.Now(), shortestWait} }

// wait waits before the next attempt. It returns an error if the patience of the Retry has run out, or if ctx has
// ended.
func (w *waiting) wait(ctx context.Context, why error) error {
	waited := time.Since(w.began)
	if w.patience > 0 && waited > w.patience {
		return fmt.Errorf("the database has counted nothing for %s: counted visits are kept, and the same command continues after them: %w",
			w.patience, why)
	}
	if waited+w.next > silentFor {
		w.Say(why)
	}
	defer func() { w.next = min(2*w.next, longestWait) }()
	return pause.For(ctx, w.next)
}

// Say passes the reason for waiting to notice, unless Say passed the same reason recently.
func (r *Retry) Say(why error) {
	verr, _ := errors.AsType[*visit.Error](why)
	if _, speak := r.notices.Next(verr.Message(), time.Now()); speak {
		r.notice(verr.Message(), verr.Err)
	}
}
