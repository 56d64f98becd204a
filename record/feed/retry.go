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
	// silentFor is how long it is waited without a word.
	silentFor = 500 * time.Millisecond
	// sameEvery is how often the same is said at most.
	sameEvery = 10 * time.Second
)

// Retry does again what has failed because the database is away, or a server of a queue. It is safe
// for concurrent use.
type Retry struct {
	notice   func(text string, cause error)
	patience time.Duration
	again    func(error) bool

	said pause.Seldom[string]
}

// NewRetry makes one that waits for so long; 0: for ever. notice hears what it waits for, and again
// tells what is to be tried again, as IsAway does.
func NewRetry(notice func(text string, cause error), patience time.Duration, again func(error) bool) *Retry {
	return &Retry{notice, patience, again, pause.Seldom[string]{Every: sameEvery}}
}

// Do does something until it does not fail for a while only.
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

// isTemporary reports whether what has failed is to be tried again.
func (r *Retry) isTemporary(err error) bool { return r != nil && r.again(err) }

// IsAway reports whether something failed because what it needs is away.
func IsAway(err error) bool {
	verr, ok := errors.AsType[*visit.Error](err)
	return ok && (verr.Kind == visit.Unavailable || verr.Kind == visit.Lost)
}

// waiting is the pauses between tries.
type waiting struct {
	*Retry
	began time.Time
	next  time.Duration
}

func (r *Retry) begin() waiting { return waiting{r, time.Now(), shortestWait} }

// wait waits before the next try.
func (w *waiting) wait(ctx context.Context, why error) error {
	waited := time.Since(w.began)
	if w.patience > 0 && waited > w.patience {
		return fmt.Errorf("the database has not counted for %s: what was counted stays, and the same command goes on: %w", w.patience, why)
	}
	if waited+w.next > silentFor {
		w.Say(why)
	}
	defer func() { w.next = min(2*w.next, longestWait) }()
	return pause.For(ctx, w.next)
}

// Say says why it is waited, unless that was said of late.
func (r *Retry) Say(why error) {
	verr, _ := errors.AsType[*visit.Error](why)
	if _, speak := r.said.Next(verr.Message(), time.Now()); speak {
		r.notice(verr.Message(), verr.Err)
	}
}
