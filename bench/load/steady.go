package load

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Steady sends requests at a fixed rate, whatever becomes of those before, and times each from when
// it was due: what waits behind slow answers has waited, too, as visitors do who know nothing of
// each other.
type Steady struct {
	URL       string
	Requests  int
	Request   func(to []byte, n int) []byte // appends a request as it is written; by many at once
	PerSecond float64
	// Connections are made when they are needed, so many at most that hardly any request waits.
	Connections int
	// Answered is called with the status of each answer, by many at once. An error ends it all.
	// nil: each must be 200.
	Answered func(n, status int) error

	// Waits has one for each request; 0: it was not answered.
	Waits []time.Duration

	mu   sync.Mutex    // guards idle
	idle []*connection // those used last come last: they are used next, as caches have them
}

// Send returns when all requests have been answered, or the first has failed, or ctx has ended.
func (s *Steady) Send(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil) // closes the connections
	if s.Answered == nil {
		s.Answered = mustBeOK
	}
	s.Waits, s.idle = make([]time.Duration, s.Requests), nil
	free := make(chan struct{}, s.Connections) // has one for each request under way
	begin := time.Now()
	var all sync.WaitGroup // of the requests under way, which end with ctx
	for n := 0; n < s.Requests && ctx.Err() == nil; n++ {
		due := begin.Add(time.Duration(float64(n) / s.PerSecond * float64(time.Second)))
		for time.Now().Before(due) {
			time.Sleep(time.Millisecond)
		}
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		all.Go(func() {
			if err := s.send(ctx, n, due); err != nil {
				cancel(err)
			}
			<-free
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// send sends a request over a connection that is idle, or a new one.
func (s *Steady) send(ctx context.Context, n int, due time.Time) error {
	c, err := s.take(ctx)
	if err != nil {
		return err
	}
	c.request = s.Request(c.request[:0], n)
	status, err := c.exchange()
	if err != nil {
		return fmt.Errorf("visit %d was not answered: %w", n, err)
	}
	s.Waits[n] = time.Since(due)
	s.mu.Lock()
	s.idle = append(s.idle, c)
	s.mu.Unlock()
	return s.Answered(n, status)
}

func (s *Steady) take(ctx context.Context) (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.idle) - 1; last >= 0 {
		c := s.idle[last]
		s.idle = s.idle[:last]
		return c, nil
	}
	return dial(ctx, s.URL)
}

func mustBeOK(n, status int) error {
	if status != http.StatusOK {
		return fmt.Errorf("visit %d was answered %d", n, status)
	}
	return nil
}
