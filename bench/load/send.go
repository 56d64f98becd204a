package load

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // visits.lua
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"footfall/bench"
	"footfall/pause"
)

// Together lets so many clients do number 0, 1, 2 and so on, each the next one when its last is
// done, until all are done, the first has failed, or ctx has ended. begin makes what a client does;
// its ctx ends when Together returns.
func Together(ctx context.Context, clients, all int, begin func(ctx context.Context) func(n int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup // the clients
	for range clients {
		group.Go(func() {
			do := begin(ctx)
			for n := int(next.Add(1)) - 1; n < all && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if err := do(n); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// Steady sends requests at a fixed rate, whatever becomes of those before, and times each from when
// it was due: what waits behind slow answers has waited, too, as visitors do who know nothing of
// each other. Each must be answered 200 or 202, else it all ends.
type Steady struct {
	URL         string
	Requests    int
	Request     func(n int) []byte // is a request as it is written; called by many at once
	PerSecond   float64
	Connections int // are used in turns; no more requests are under way at a time

	Waits []time.Duration // has one for each request; 0: it was not answered
}

// Send returns when all requests have been answered, or the first has failed, or ctx has ended.
func (s *Steady) Send(ctx context.Context) error {
	s.Waits = make([]time.Duration, s.Requests)
	begin := time.Now()
	return Together(ctx, s.Connections, s.Requests, func(ctx context.Context) func(int) error {
		var conn net.Conn // is made when it is needed
		var answers *bufio.Reader
		return func(n int) (err error) {
			due := begin.Add(time.Duration(float64(n) / s.PerSecond * float64(time.Second)))
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
				return fmt.Errorf("visit %d was not answered: %w", n, err)
			case status != http.StatusOK && status != http.StatusAccepted:
				return fmt.Errorf("visit %d was answered %d", n, status)
			}
			s.Waits[n] = time.Since(due)
			return nil
		}
	})
}

// exchange sends a request as it is, which costs less than a client of net/http, and reads the
// answer to its end.
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

// hostOf is host and port of a URL.
func hostOf(url string) string { return strings.TrimPrefix(url, "http://") }

// VisitRequest is a visit to a page, as it is written: query begins with &, and headers have no ends.
func VisitRequest(url, app, page, query string, headers ...string) []byte {
	return fmt.Appendf(nil, "GET /visit?app=%s&uri=http://%s%s HTTP/1.1\r\nHost: %s\r\n%s\r\n",
		app, page, query, hostOf(url), strings.Join(append(headers, ""), "\r\n"))
}

// callVisits is how many visits one call has.
const callVisits = 1000

// Calls sends the visits of a sequence in calls of many each, one after the other, for as long as
// d. Times are those of calls. It returns the visits that were sent.
func Calls(ctx context.Context, url string, sequence []Arrival, d time.Duration) (Measure, []Arrival, error) {
	var bodies [][]byte // made before, as wrk's are
	for call := range slices.Chunk(sequence, callVisits) {
		body := []byte{'['}
		for _, a := range call {
			body = fmt.Appendf(body, `{"uri":"http://%s","ip":"%s"},`, PageURI(int(a.Page)), Address(int(a.Visitor)))
		}
		body[len(body)-1] = ']'
		bodies = append(bodies, body)
	}
	var took []time.Duration
	began := time.Now()
	for n := 0; time.Since(began) < d; n++ {
		if n == len(bodies) {
			return Measure{}, nil, usedUp(len(sequence))
		}
		sent := time.Now()
		// The tables say afterwards whether all of its visits were counted.
		if _, err := bench.Fetch(ctx, url+"/visits?app="+App, bodies[n]); err != nil {
			return Measure{}, nil, err
		}
		took = append(took, time.Since(sent))
	}
	visits := sequence[:min(len(took)*callVisits, len(sequence))]
	m := MeasureOf(took, time.Since(began))
	m.Requests, m.PerSecond = len(visits), m.PerSecond*float64(len(visits))/float64(m.Requests)
	return m, visits, nil
}

//go:embed visits.lua
var visitsLua []byte

// Threads is how many threads of wrk share a sequence; they take its visits in turns.
const Threads = 2

// Job is what one run of wrk is to do.
type Job struct {
	URL         string
	Dir         string // of what wrk reads; kept from one run to the next
	Name        string // of the visits, which are written into it once
	Visits      []Arrival
	Ends        []string // of the requests in turns: what the query ends with, and behind tabs headers beside Host; default: none
	Connections int      // Threads at least
	Duration    time.Duration
}

func (j Job) file(name string) string { return filepath.Join(j.Dir, name) }

// write puts what wrk is to do into files: the visits into one for each thread, a line each.
func (j Job) write() error {
	err := errors.Join(os.WriteFile(j.file("visits.lua"), visitsLua, 0o600),
		os.WriteFile(j.file("ends"), []byte(strings.Join(j.Ends, "\n")+"\n"), 0o600))
	for thread := range Threads {
		file := j.file(fmt.Sprintf("%s.%d", j.Name, thread+1))
		if _, missing := os.Stat(file); missing == nil {
			continue
		}
		var lines bytes.Buffer
		for n := thread; n < len(j.Visits); n += Threads {
			fmt.Fprintf(&lines, "%s\t%s\n", PageURI(int(j.Visits[n].Page)), Address(int(j.Visits[n].Visitor)))
		}
		err = errors.Join(err, os.WriteFile(file, lines.Bytes(), 0o600))
	}
	return err
}

// Measure is how quickly requests were answered.
type Measure struct {
	Requests  int     `json:"requests"`
	PerSecond float64 `json:"perSecond,omitempty"`
	P50Ms     float64 `json:"p50Ms"`
	P99Ms     float64 `json:"p99Ms"`
	MaxMs     float64 `json:"maxMs,omitempty"`
}

// MeasureOf sums up requests that took so long together; it sorts how long their answers took.
func MeasureOf(waits []time.Duration, took time.Duration) Measure {
	slices.Sort(waits)
	at := func(percent int) float64 { // the least that so many percent do not exceed
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

// Run loads a service, and returns the visits that were sent, too. Any error that wrk saw is an
// error here: what is not answered must not count as fast.
func (j Job) Run(ctx context.Context) (Measure, []Arrival, error) {
	ctx, cancel := context.WithTimeout(ctx, j.Duration+time.Minute)
	defer cancel()
	if err := j.write(); err != nil {
		return Measure{}, nil, fmt.Errorf("wrk: %w", err)
	}
	cmd := exec.CommandContext(ctx, "wrk", //nolint:gosec // fixed words and numbers
		"-t", strconv.Itoa(Threads), "-c", strconv.Itoa(j.Connections),
		"-d", fmt.Sprintf("%ds", int(j.Duration.Seconds())), "--timeout", "30s", "--latency",
		"-s", j.file("visits.lua"), j.URL, "--", j.file(j.Name), j.file("ends"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return Measure{}, nil, errors.New("wrk is missing: install it with scripts/install-deps wrk, or the system's package manager")
	}
	if err != nil {
		return Measure{}, nil, fmt.Errorf("wrk: %s: %s", err.Error(), strings.TrimSpace(stderr.String()))
	}
	m, sent, err := readWrk(string(out), j.Connections)
	return m, sentOf(j.Visits, sent), err
}

// readWrk reads the line that visits.lua writes at the end of a run: what was measured, and how many
// visits each thread sent. Some of the last were not answered, one on each connection at most.
func readWrk(out string, connections int) (m Measure, sent []int, err error) {
	_, line, _ := strings.Cut(out, "\nresult ")
	var result struct {
		Requests, Errors, Ended int
		Us, P50, P99            float64
		Sent                    []int
	}
	if err := json.Unmarshal([]byte(line), &result); err != nil {
		return m, nil, fmt.Errorf("wrk did not end as it should: %w:\n%s", err, out)
	}
	unanswered := -result.Requests
	for _, n := range result.Sent {
		unanswered += n
	}
	switch {
	case result.Errors != 0:
		err = fmt.Errorf("wrk saw errors, so the run counts for nothing: %s", line)
	case result.Ended != 0:
		err = usedUp(result.Requests)
	case result.Requests == 0 || result.Us == 0 || result.P99 == 0:
		err = errors.New("wrk got no answer at all")
	case len(result.Sent) != Threads || slices.Contains(result.Sent, 0):
		err = fmt.Errorf("not every thread of wrk sent visits: %s", line)
	case unanswered < 0 || unanswered > connections:
		err = fmt.Errorf("wrk sent visits over %d connections, and %d got no answer, which cannot be", connections, unanswered)
	}
	m = Measure{Requests: result.Requests, PerSecond: float64(result.Requests) / result.Us * 1e6, P50Ms: result.P50 / 1000,
		P99Ms: result.P99 / 1000}
	return m, result.Sent, err
}

func usedUp(visits int) error {
	return fmt.Errorf("the %d visits that were prepared are used up before the time is", visits)
}

// sentOf are the visits of a sequence that wrk sent, so many by each thread.
func sentOf(sequence []Arrival, by []int) (sent []Arrival) {
	for n, a := range sequence {
		if len(by) == Threads && n/Threads < by[n%Threads] {
			sent = append(sent, a)
		}
	}
	return sent
}
