package reports

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// steadyConnections are those over which steady visits come: so many that hardly any visit waits
// for an answer to another, as none does among visitors who know nothing of each other.
const steadyConnections = 512

// steady sends requests at a fixed rate, however long the answers take, and times each from when it
// was due: what waits behind a slow answer has waited, too.
type steady struct {
	host      string
	perSecond int
	requests  [][]byte // each as it is written

	// Beside requests. Each is set by the goroutine of the one connection that sent the request.
	waits []time.Duration // from when it was due until it was answered
}

// send returns when all have been answered, or the first has failed.
func (s *steady) send(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.waits = make([]time.Duration, len(s.requests))
	due := make([]chan int, steadyConnections) // numbers of requests; each has room for all that it will be sent, so that the pace never waits
	var all sync.WaitGroup                     // the connections' goroutines, who end when their channel does, or the first has failed
	begin := time.Now().Add(100 * time.Millisecond)
	for i := range due {
		due[i] = make(chan int, len(s.requests)/steadyConnections+1)
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.host)
		if err != nil {
			cancel(err)
			break
		}
		all.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			answers := bufio.NewReader(conn)
			for n := range due[i] {
				if err := s.exchange(conn, answers, n, begin.Add(s.after(n))); err != nil {
					cancel(fmt.Errorf("visit %d: %w", n, err))
					return
				}
			}
		})
	}
	for n := 0; n < len(s.requests) && ctx.Err() == nil; n++ {
		time.Sleep(time.Until(begin.Add(s.after(n)))) // a millisecond late at most
		due[n%steadyConnections] <- n
	}
	for _, numbers := range due {
		if numbers != nil {
			close(numbers)
		}
	}
	all.Wait()
	return context.Cause(ctx)
}

// after is when a request is due, from the beginning.
func (s *steady) after(n int) time.Duration {
	return time.Duration(n) * time.Second / time.Duration(s.perSecond)
}

// exchange sends one request and reads its answer.
func (s *steady) exchange(conn net.Conn, answers *bufio.Reader, n int, due time.Time) error {
	if _, err := conn.Write(s.requests[n]); err != nil {
		return err
	}
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	s.waits[n] = time.Since(due)
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it was answered %s: %s", answer.Status, body)
	}
	return nil
}

func sortedWaits(waits []time.Duration) []time.Duration { return slices.Sorted(slices.Values(waits)) }
