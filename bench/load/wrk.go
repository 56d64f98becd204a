package load

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // visits.lua
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"footfall/bench"
)

//go:embed visits.lua
var visitsLua []byte

// Threads is how many threads of wrk share a sequence; they take its visits in turns.
const Threads = 2

// Script is the folder of what wrk reads.
type Script struct{ dir string }

// NewScript makes the folder. It must be removed.
func NewScript() (Script, error) {
	dir, err := os.MkdirTemp("", "footfall-wrk-")
	if err != nil {
		return Script{}, fmt.Errorf("wrk: %w", err)
	}
	s := Script{dir}
	if err := os.WriteFile(s.lua(), visitsLua, 0o600); err != nil {
		return Script{}, errors.Join(fmt.Errorf("wrk: %w", err), s.Remove())
	}
	return s, nil
}

// Remove removes the folder.
func (s Script) Remove() error { return os.RemoveAll(s.dir) }

func (s Script) lua() string               { return filepath.Join(s.dir, "visits.lua") }
func (s Script) visits(load string) string { return filepath.Join(s.dir, load) }

// Asserted is the line of a visit whose visitor the caller asserts.
func Asserted(a Arrival) string {
	return fmt.Sprintf("ip=%s&uri=http://%s", Address(int(a.Visitor)), PageURI(int(a.Page)))
}

// Forwarded is the line of a visit whose visitor is told by a proxy.
func Forwarded(a Arrival) string {
	return fmt.Sprintf("uri=http://%s\t%s", PageURI(int(a.Page)), Address(int(a.Visitor)))
}

// Write puts a sequence into a file for each thread, a line each visit.
func (s Script) Write(name string, sequence []Arrival, line func(Arrival) string) error {
	for thread := range Threads {
		file, err := os.Create(fmt.Sprintf("%s.%d", s.visits(name), thread+1))
		if err != nil {
			return fmt.Errorf("wrk: %w", err)
		}
		lines := bufio.NewWriter(file)
		for n := thread; n < len(sequence); n += Threads {
			fmt.Fprintln(lines, line(sequence[n]))
		}
		if err := errors.Join(lines.Flush(), file.Close()); err != nil {
			return fmt.Errorf("wrk: %w", err)
		}
	}
	return nil
}

// Job is what one run of wrk is to do.
type Job struct {
	URL         string
	Visits      string   // the name under which they were written
	Again       bool     // from the beginning when they are used up
	Headers     []string // beside Host, of the requests in turns: each a header, or several with tabs between them; default: none
	Connections int      // Threads at least
	Duration    time.Duration
}

// Measure is what one run of wrk saw.
type Measure struct {
	Requests  int64
	PerSecond float64
	P50, P99  time.Duration
	sent      [Threads]int64 // by each thread; some of the last were not answered
}

// measureOf sums up so many requests that took so long together, and how long answers took.
func measureOf(requests int, waits []time.Duration, took time.Duration) Measure {
	slices.Sort(waits)
	return Measure{Requests: int64(requests), PerSecond: float64(requests) / took.Seconds(), P50: bench.Percentile(waits, 50), P99: bench.Percentile(waits, 99)}
}

// Run loads a service. Any error that wrk saw is an error here: what is not answered must not count
// as fast.
func (s Script) Run(ctx context.Context, l Job) (Measure, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Duration+time.Minute)
	defer cancel()
	atTheEnd := "once"
	if l.Again {
		atTheEnd = "again"
	}
	headers := filepath.Join(s.dir, "headers")
	if err := os.WriteFile(headers, []byte(strings.Join(l.Headers, "\n")+"\n"), 0o600); err != nil {
		return Measure{}, fmt.Errorf("wrk: %w", err)
	}
	cmd := exec.CommandContext(ctx, "wrk", //nolint:gosec // fixed words and numbers
		"-t", strconv.Itoa(Threads), "-c", strconv.Itoa(l.Connections),
		"-d", fmt.Sprintf("%ds", int(l.Duration.Seconds())), "--timeout", "30s", "--latency",
		"-s", s.lua(), l.URL, "--", s.visits(l.Visits), atTheEnd, headers)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return Measure{}, errors.New("wrk is missing: install it with scripts/install-deps wrk, or the system's package manager")
	}
	if err != nil {
		return Measure{}, fmt.Errorf("wrk: %s: %s", err.Error(), strings.TrimSpace(stderr.String()))
	}
	m, err := readWrk(string(out))
	if err != nil {
		return Measure{}, err
	}
	return m, m.unanswered(l.Connections)
}

// unanswered is an error where more visits are said to have been sent than were answered or on the
// way: then nobody knows which.
func (m Measure) unanswered(connections int) error {
	sent := int64(0)
	for _, n := range m.sent {
		sent += n
	}
	if m.Requests > sent || sent-m.Requests > int64(connections) {
		return fmt.Errorf("wrk sent %d visits over %d connections and got %d answers, which cannot be", sent, connections, m.Requests)
	}
	return nil
}

// readWrk reads the line that visits.lua writes at the end of a run.
func readWrk(out string) (Measure, error) {
	_, line, _ := strings.Cut(out, "\nresult ")
	var result struct {
		Requests, Errors, Ended int64
		Us, P50, P99            time.Duration
		Sent                    []int64
	}
	err := json.Unmarshal([]byte(line), &result)
	switch {
	case err != nil:
		return Measure{}, fmt.Errorf("wrk did not end as it should: %w:\n%s", err, out)
	case result.Errors != 0:
		return Measure{}, fmt.Errorf("wrk saw errors, so the run counts for nothing: %s", line)
	case result.Ended != 0:
		return Measure{}, fmt.Errorf("the %d visits that were prepared are used up before the time is: choose a shorter --duration", result.Requests)
	case result.Requests == 0 || result.Us == 0 || result.P99 == 0:
		return Measure{}, errors.New("wrk got no answer at all")
	case len(result.Sent) != Threads || slices.Contains(result.Sent, 0):
		return Measure{}, fmt.Errorf("not every thread of wrk sent visits: %s", line)
	}
	return Measure{
		Requests: result.Requests, PerSecond: float64(result.Requests) / (result.Us * time.Microsecond).Seconds(),
		P50: result.P50 * time.Microsecond, P99: result.P99 * time.Microsecond, sent: [Threads]int64(result.Sent),
	}, nil
}

// SentOf are the visits of a sequence that wrk sent.
func (m Measure) SentOf(sequence []Arrival) []Arrival {
	var sent []Arrival
	for n, a := range sequence {
		if int64(n/Threads) < m.sent[n%Threads] {
			sent = append(sent, a)
		}
	}
	return sent
}
