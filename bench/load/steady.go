package load

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"footfall/bench"
)

// Steady sends requests at a fixed rate, whatever becomes of those before, and times each from when
// it was due: what waits behind slow answers has waited, too, as visitors do who know nothing of
// each other. Each must be answered 200 or 202, else it all ends.
type Steady struct {
	URL       string
	Requests  int
	Request   func(to []byte, n int) []byte // appends a request as it is written; by many at once
	PerSecond float64
	// Connections are made when they are needed, so many at most: default 2,000, which are more than
	// are under way at a time, as far as each is answered within a fraction of a second.
	Connections int

	Waits []time.Duration // has one for each request; 0: it was not answered
	Later atomic.Int64    // how many were answered 202

	mu   sync.Mutex    // guards idle
	idle []*connection // those used last come last: they are used next, as caches have them
}

// Send returns when all requests have been answered, or the first has failed, or ctx has ended.
func (s *Steady) Send(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil) // closes the connections
	s.Waits, s.idle = make([]time.Duration, s.Requests), nil
	free := make(chan struct{}, cmp.Or(s.Connections, 2000)) // has one for each request under way
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
	switch {
	case err != nil:
		return fmt.Errorf("visit %d was not answered: %w", n, err)
	case status == http.StatusAccepted:
		s.Later.Add(1)
	case status != http.StatusOK:
		return fmt.Errorf("visit %d was answered %d", n, status)
	}
	s.Waits[n] = time.Since(due)
	s.mu.Lock()
	s.idle = append(s.idle, c)
	s.mu.Unlock()
	return nil
}

// take returns a connection, which closes when ctx ends.
func (s *Steady) take(ctx context.Context) (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.idle) - 1; last >= 0 {
		c := s.idle[last]
		s.idle = s.idle[:last]
		return c, nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", HostOf(s.URL))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return &connection{Conn: conn, answers: bufio.NewReaderSize(conn, 1024)}, nil
}

// HostOf is host and port of a URL.
func HostOf(url string) string { return strings.TrimPrefix(url, "http://") }

// connection sends requests as they are written, and reads of the answers what a client needs to be
// cheap.
type connection struct {
	net.Conn
	answers *bufio.Reader
	request []byte // that is to be sent
}

// exchange sends the request, reads the answer to its end, whose length it must tell, and returns
// its status.
func (c *connection) exchange() (status int, err error) {
	if _, err := c.Write(c.request); err != nil {
		return 0, err
	}
	for length := -1; ; {
		line, err := c.answers.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case status == 0:
			_, code, _ := bytes.Cut(line, []byte(" "))
			if status, err = strconv.Atoi(string(code[:min(3, len(code))])); err != nil {
				return 0, fmt.Errorf("%q begins no answer", line)
			}
		case len(line) == 0 && length < 0:
			return 0, errors.New("the answer does not tell its length")
		case len(line) == 0:
			_, err := c.answers.Discard(length)
			return status, err
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		}
	}
}

// Offered is what became of visits that came at a rate.
type Offered struct {
	Measure
	WorstMs float64 // p99 of the worst second
	Later   int64   // answered 202
}

// Offer sends the visits of a sequence at a rate, with ends as a Job has them; a proxy names the
// visitors.
// early is called when a fifth has been sent.
func Offer(ctx context.Context, url string, sequence []Arrival, ends []string, perSecond float64, early func()) (o Offered, err error) {
	s := Steady{URL: url, Requests: len(sequence), PerSecond: perSecond, Request: func(to []byte, n int) []byte {
		if n == len(sequence)/5 {
			early()
		}
		a := sequence[n]
		query, headers, _ := strings.Cut(ends[n%len(ends)], "\t")
		return fmt.Appendf(to, "GET /visit?app=demo&uri=http://%s%s HTTP/1.1\r\nHost: %s\r\n%s\r\nX-Forwarded-For: %s\r\n\r\n",
			PageURI(int(a.Page)), query, HostOf(url), strings.ReplaceAll(headers, "\t", "\r\n"), Address(int(a.Visitor)))
	}}
	began := time.Now()
	if err := s.Send(ctx); err != nil {
		return o, fmt.Errorf("offer visits: %w", err)
	}
	took := time.Since(began)
	for second := range slices.Chunk(slices.Clone(s.Waits), max(int(perSecond), 100)) {
		if slices.Sort(second); len(second) >= 100 {
			o.WorstMs = max(o.WorstMs, bench.Ms(bench.Percentile(second, 99)))
		}
	}
	o.Later, o.Measure = s.Later.Load(), MeasureOf(s.Waits, took)
	return o, nil
}
