// Package pause waits between the attempts of an operation, and limits how often a log message is
// repeated.
package pause

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"
)

// For waits for d. It returns the error of ctx if ctx ends first.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Again waits for a random time before the next attempt. The time grows with try, the number of attempts so far. It
// is random so that instances that blocked each other do not block each other again. Again returns false if ctx ends
// first.
func Again(ctx context.Context, try int) bool {
	limit := min(time.Millisecond<<min(try, 9), 250*time.Millisecond)
	return For(ctx, limit/2+rand.N(limit/2)) == nil //nolint:gosec // it only keeps callers out of step
}

// Seldom limits how often the same message is logged. Its methods may be called concurrently.
type Seldom[K comparable] struct {
	Every time.Duration

	mu     sync.Mutex // guards the following fields
	logged map[K]last
}

type last struct {
	at     time.Time
	missed int
}

// Next returns speak = true if the message with the key what may be logged at the time now. In this case, missed is
// how often the message was suppressed since it was last logged.
func (s *Seldom[K]) Next(what K, now time.Time) (missed int, speak bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, is := s.logged[what]
	if is && now.Sub(was.at) < s.Every {
		s.logged[what] = last{was.at, was.missed + 1}
		return 0, false
	}
	if s.logged == nil {
		s.logged = map[K]last{}
	}
	maps.DeleteFunc(s.logged, func(_ K, l last) bool { return l.missed == 0 && now.Sub(l.at) >= s.Every })
	s.logged[what] = last{at: now}
	return was.missed, true
}
