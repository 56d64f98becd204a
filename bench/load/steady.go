package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
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
	// Connections are so many that hardly any request waits for one.
	Connections int
	// Answered is told the status of each answer, by many at once. An error ends it all. nil: each
	// must be 200.
	Answered func(n, status int) error

	// Waits has one for each request; 0: it was not answered.
	Waits []time.Duration

	begin time.Time
	mu    sync.Mutex // guards idle
	idle  []*sending // those used last come last: they are used next, as caches have them
}

// sending is a connection and the request that it has under way.
type sending struct {
	*Connection
	n atomic.Int64 // noRequest: it is idle
}

const noRequest = -1

// Send returns when all requests have been answered, or the first has failed, or ctx has ended.
func (s *Steady) Send(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.Answered == nil {
		s.Answered = mustBeOK
	}
	s.Waits = make([]time.Duration, s.Requests)
	var all sync.WaitGroup // the connections' goroutines, who end when their connection is closed
	for range s.Connections {
		conn, err := Dial(ctx, s.URL)
		if err != nil {
			cancel(err)
			break
		}
		c := &sending{Connection: conn}
		s.giveBack(c)
		all.Go(func() {
			if err := s.read(c); err != nil {
				cancel(err)
			}
		})
	}
	s.begin = time.Now()
	if err := s.sendAll(ctx); err != nil {
		cancel(err)
	}
	for closed := 0; closed < s.Connections && ctx.Err() == nil; {
		if c := s.take(); c != nil {
			c.Close()
			closed++
			continue
		}
		time.Sleep(time.Millisecond)
	}
	all.Wait()
	return context.Cause(ctx)
}

func mustBeOK(n, status int) error {
	if status != http.StatusOK {
		return fmt.Errorf("visit %d was answered %d", n, status)
	}
	return nil
}

// sendAll sends each request when it is due, and a connection is idle.
func (s *Steady) sendAll(ctx context.Context) error {
	var request []byte
	for n := 0; n < s.Requests && ctx.Err() == nil; {
		var c *sending
		if !time.Now().Before(s.due(n)) {
			c = s.take()
		}
		if c == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		request = s.Request(request[:0], n)
		c.n.Store(int64(n))
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
		n := int(c.n.Load())
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case n == noRequest:
			return fmt.Errorf("a connection ended between two visits: %w", err)
		case err != nil:
			return fmt.Errorf("visit %d: %w", n, err)
		}
		s.Waits[n] = time.Since(s.due(n))
		if err := s.Answered(n, status); err != nil {
			return err
		}
		s.giveBack(c)
	}
}

func (s *Steady) take() *sending {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.idle) - 1
	if last < 0 {
		return nil
	}
	c := s.idle[last]
	s.idle = s.idle[:last]
	return c
}

func (s *Steady) giveBack(c *sending) {
	c.n.Store(noRequest)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, c)
}
