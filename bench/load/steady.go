package load

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Steady sends requests at a fixed rate, whatever becomes of those before, and times each from when
// it was due: what waits behind slow answers has waited, too, as visitors do who know nothing of
// each other.
type Steady struct {
	URL       string
	Requests  int
	Request   func(to []byte, n int) []byte // appends a request as it is written
	PerSecond float64
	// Connections are made when they are needed, so many at most that hardly any request waits.
	Connections int
	// Answered is told the status of each answer, by many at once. An error ends it all. nil: each
	// must be 200.
	Answered func(n, status int) error

	// Waits has one for each request; 0: it was not answered.
	Waits []time.Duration

	begin time.Time
	all   sync.WaitGroup // the connections' goroutines, who end when their connection is closed

	mu   sync.Mutex // guards what follows
	open int        // connections
	idle []*sending // of these. Those used last come last: they are used next, as caches have them
}

// sending is a connection and the request that it has under way.
type sending struct {
	*Connection
	n int // set before it is sent
}

// Send returns when all requests have been answered, or the first has failed, or ctx has ended.
func (s *Steady) Send(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.Answered == nil {
		s.Answered = mustBeOK
	}
	s.Waits = make([]time.Duration, s.Requests)
	s.begin, s.open, s.idle = time.Now(), 0, nil
	if err := s.sendAll(ctx, cancel); err != nil {
		cancel(err)
	}
	for !s.closeIdle() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	cause := context.Cause(ctx)
	cancel(nil)
	s.all.Wait()
	return cause
}

func mustBeOK(n, status int) error {
	if status != http.StatusOK {
		return fmt.Errorf("visit %d was answered %d", n, status)
	}
	return nil
}

// sendAll sends each request when it is due, and a connection is idle. failed is told what else
// goes wrong.
func (s *Steady) sendAll(ctx context.Context, failed context.CancelCauseFunc) error {
	var request []byte
	for n := 0; n < s.Requests && ctx.Err() == nil; {
		if time.Now().Before(s.due(n)) {
			time.Sleep(time.Millisecond)
			continue
		}
		c, err := s.take(ctx, failed)
		if err != nil {
			return err
		}
		if c == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		request = s.Request(request[:0], n)
		c.n = n
		if _, err := c.Write(request); err != nil {
			return fmt.Errorf("visit %d: %w", n, err)
		}
		n++
	}
	return nil
}

func (s *Steady) due(n int) time.Time {
	return s.begin.Add(time.Duration(float64(n) / s.PerSecond * float64(time.Second)))
}

// read reads the answers of a connection until it is closed.
func (s *Steady) read(c *sending) error {
	for {
		status, err := c.answer()
		if err != nil {
			if s.leave(c) {
				return nil
			}
			return fmt.Errorf("a visit was not answered: %w", err)
		}
		s.Waits[c.n] = time.Since(s.due(c.n))
		if err := s.Answered(c.n, status); err != nil {
			return err
		}
		s.mu.Lock()
		s.idle = append(s.idle, c)
		s.mu.Unlock()
	}
}

// take returns a connection that is idle, or nil where there cannot be one more.
func (s *Steady) take(ctx context.Context, failed context.CancelCauseFunc) (*sending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.idle) - 1; last >= 0 {
		c := s.idle[last]
		s.idle = s.idle[:last]
		return c, nil
	}
	if s.open == s.Connections {
		return nil, nil //nolint:nilnil // there is none
	}
	conn, err := Dial(ctx, s.URL)
	if err != nil {
		return nil, err
	}
	s.open++
	c := &sending{Connection: conn}
	s.all.Go(func() {
		if err := s.read(c); err != nil {
			failed(err)
		}
	})
	return c, nil
}

// leave forgets a connection that has ended. It returns false if a request was under way.
func (s *Steady) leave(c *sending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.idle, c)
	if at < 0 {
		return false
	}
	s.idle = slices.Delete(s.idle, at, at+1)
	s.open--
	return true
}

// closeIdle closes the connections once all of them are idle.
func (s *Steady) closeIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) < s.open {
		return false
	}
	for _, c := range s.idle {
		c.Close()
	}
	return true
}
