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
	// silentFor is for how long an operation is retried before the first message about it.
	silentFor = 500 * time.Millisecond
	// sameEvery is the minimum interval between two messages with the same text.
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

// NewRetry returns a Retry that retries for at most patience, or for ever if patience is 0. The function notice gets
// the reasons for waiting. The function again reports whether an operation is repeated after an error: see IsAway.
func NewRetry(notice func(text string, cause error), patience time.Duration, again func(error) bool) *Retry {
	return &Retry{notice, patience, again, pause.Seldom[string]{Every: sameEvery}}
}

// Do calls the function do until it succeeds or fails permanently. A nil Retry calls it only once.
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

// IsAway reports whether err means that the database or another server is unavailable at present.
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
		return fmt.Errorf("the database has not counted any visit for %s (visits counted before are kept; run the same command again to "+
			"continue after them): %w", w.patience, why)
	}
	if waited+w.next > silentFor {
		w.Say(why)
	}
	defer func() { w.next = min(2*w.next, longestWait) }()
	return pause.For(ctx, w.next)
}

// Say calls notice with the reason for waiting, unless it did so recently for the same reason.
func (r *Retry) Say(why error) {
	verr, _ := errors.AsType[*visit.Error](why)
	if _, speak := r.notices.Next(verr.Message(), time.Now()); speak {
		r.notice(verr.Message(), verr.Err)
	}
}
