package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"footfall/pause"
)

// RunConcurrently processes the items 0 to all-1 with several concurrent clients. Each client takes the next item when it
// has finished its last one. For each client, begin returns the function that processes an item. If this function returns
// io.EOF, only this client stops. RunConcurrently returns when all items are processed, when ctx ends, or after the first
// other error. Then the ctx of begin ends.
func RunConcurrently(ctx context.Context, clients, all int, begin func(ctx context.Context) func(n int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup // the goroutines of the clients
	for range clients {
		group.Go(func() {
			do := begin(ctx)
			for n := int(next.Add(1)) - 1; n < all && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				err := do(n)
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// Clients sends requests over several connections. If a response has a status other than 200 or 202, all connections stop.
type Clients struct {
	URL         string
	Requests    int
	Request     func(n int) []byte // returns the raw text of request n; called concurrently
	Connections int                // number of connections, and of concurrent requests
	// PerSecond is the rate of requests. 0: each connection sends its next request after the response to the previous one.
	// Otherwise requests become due at this rate even if responses are late, like the requests of independent visitors. The
	// time until a response is measured from the moment when the request was due. It includes the time of waiting for a
	// free connection.
	PerSecond float64
	For       time.Duration // stop sending after this time; 0: send all requests

	Waits []time.Duration // for each request, the time until its response; 0: no response
}

// Send sends the requests. It returns when all responses have arrived, after the first error, or when ctx ends.
func (s *Clients) Send(ctx context.Context) error {
	s.Waits = make([]time.Duration, s.Requests)
	begin := time.Now()
	return RunConcurrently(ctx, s.Connections, s.Requests, func(ctx context.Context) func(int) error {
		var conn net.Conn // opened when the client sends its first request
		var answers *bufio.Reader
		return func(n int) (err error) {
			due := time.Now()
			if s.For > 0 && due.Sub(begin) >= s.For {
				return io.EOF
			}
			if s.PerSecond > 0 {
				due = begin.Add(time.Duration(float64(n) / s.PerSecond * float64(time.Second)))
			}
			if wait := time.Until(due); wait > 0 {
				if err := pause.For(ctx, wait); err != nil {
					return err
				}
			}
			if conn == nil {
				if conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", hostOf(s.URL)); err != nil {
					return err
				}
				context.AfterFunc(ctx, func() { conn.Close() })
				answers = bufio.NewReaderSize(conn, 1024)
			}
			status, err := exchange(conn, answers, s.Request(n))
			switch {
			case err != nil:
				return fmt.Errorf("visit %d was not answered: %s", n, err.Error()) // not %w, because RunConcurrently treats io.EOF as the end
			case status != http.StatusOK && status != http.StatusAccepted:
				return fmt.Errorf("visit %d was answered %d", n, status)
			}
			s.Waits[n] = time.Since(due)
			return nil
		}
	})
}

// exchange sends a raw request and reads the complete response. It needs less CPU time than the client of net/http.
func exchange(conn net.Conn, answers *bufio.Reader, request []byte) (status int, err error) {
	if _, err := conn.Write(request); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// hostOf returns the host and port of a URL.
func hostOf(url string) string { return strings.TrimPrefix(url, "http://") }

// VisitRequest returns the raw text of a request that counts a visit. query must start with &. headers must be complete
// header lines.
func VisitRequest(url, app, page, query, headers string) []byte {
	return fmt.Appendf(nil, "GET /visit?app=%s&uri=http://%s%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", app, page, query, hostOf(url), headers)
}

// Visits sends the visits of a sequence, in order, until the time d has passed. Each connection sends its next visit after
// the response to the previous one. The requests use the elements of ends in turn. The header X-Forwarded-For contains the
// visitor's address. Visits returns the measured times, and the visits that got a response.
func Visits(ctx context.Context, url string, sequence []Arrival, ends []End, connections int, d time.Duration) (Measure, []Arrival, error) {
	s := Clients{URL: url, Requests: len(sequence), Connections: connections, For: d, Request: func(n int) []byte {
		end := ends[n%len(ends)]
		return VisitRequest(url, App, PageURI(int(sequence[n].Page)), end.Query,
			end.Headers+"X-Forwarded-For: "+Address(int(sequence[n].Visitor)).String()+"\r\n")
	}}
	began := time.Now()
	if err := s.Send(ctx); err != nil {
		return Measure{}, nil, err
	}
	took := time.Since(began)
	if took < d {
		return Measure{}, nil, fmt.Errorf("all %d prepared visits were sent before the time was up", len(sequence))
	}
	var sent []Arrival
	var waits []time.Duration
	for n, wait := range s.Waits {
		if wait > 0 {
			sent, waits = append(sent, sequence[n]), append(waits, wait)
		}
	}
	return MeasureOf(waits, took), sent, nil
}

// End contains the parts of a request that describe the visitor's browser and referrer.
type End struct {
	Query   string // query parameters, starting with &
	Headers string // header lines
}

// Measure contains the rate of requests, and their latencies in milliseconds.
type Measure struct {
	Requests  int
	PerSecond float64
	P50Ms     float64
	P99Ms     float64
	MaxMs     float64
}

// MeasureOf computes a Measure from the latencies of all requests (waits) and the duration of the whole run (took). It
// sorts waits.
func MeasureOf(waits []time.Duration, took time.Duration) Measure {
	slices.Sort(waits)
	at := func(percent int) float64 { // returns this percentile of the latencies in milliseconds
		if len(waits) == 0 {
			return 0
		}
		return float64(waits[max(0, (len(waits)*percent+99)/100-1)].Microseconds()) / 1000
	}
	m := Measure{Requests: len(waits), P50Ms: at(50), P99Ms: at(99), MaxMs: at(100)}
	if took > 0 {
		m.PerSecond = float64(len(waits)) / took.Seconds()
	}
	return m
}
