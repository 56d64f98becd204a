package load

import (
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
type Script struct {
	dir     string
	written map[string]bool
}

// NewScript makes the folder. It must be removed.
func NewScript() (*Script, error) {
	dir, err := os.MkdirTemp("", "footfall-wrk-")
	if err != nil {
		return nil, fmt.Errorf("wrk: %w", err)
	}
	s := &Script{dir, map[string]bool{}}
	if err := os.WriteFile(s.file("visits.lua"), visitsLua, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("wrk: %w", err), s.Remove())
	}
	return s, nil
}

// Remove removes the folder.
func (s *Script) Remove() error { return os.RemoveAll(s.dir) }

func (s *Script) file(name string) string { return filepath.Join(s.dir, name) }

// Job is what one run of wrk is to do.
type Job struct {
	URL         string
	Name        string // of the visits, which are written once
	Visits      []Arrival
	Again       bool     // from the beginning when they are used up
	Proxied     bool     // a proxy names the visitor, and not the caller
	Ends        []string // of the requests in turns: what the query ends with, and behind tabs headers beside Host; default: none
	Connections int      // Threads at least
	Duration    time.Duration
}

// write puts the visits into a file for each thread, a line each.
func (s *Script) write(j Job) error {
	for thread := range Threads {
		var lines bytes.Buffer
		for n := thread; n < len(j.Visits); n += Threads {
			fmt.Fprintf(&lines, "%s\t%s\n", PageURI(int(j.Visits[n].Page)), Address(int(j.Visits[n].Visitor)))
		}
		if err := os.WriteFile(s.file(fmt.Sprintf("%s.%d", j.Name, thread+1)), lines.Bytes(), 0o600); err != nil {
			return fmt.Errorf("wrk: %w", err)
		}
	}
	s.written[j.Name] = true
	return nil
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
	at := func(percent int) float64 { return bench.Ms(bench.Percentile(waits, percent)) }
	return Measure{len(waits), bench.Ratio(float64(len(waits)), took.Seconds()), at(50), at(99), at(100)}
}

// Run loads a service, and returns the visits that were sent, too. Any error that wrk saw is an
// error here: what is not answered must not count as fast.
func (s *Script) Run(ctx context.Context, j Job) (Measure, []Arrival, error) {
	ctx, cancel := context.WithTimeout(ctx, j.Duration+time.Minute)
	defer cancel()
	if !s.written[j.Name] {
		if err := s.write(j); err != nil {
			return Measure{}, nil, err
		}
	}
	atTheEnd, names := "once", "caller"
	if j.Again {
		atTheEnd = "again"
	}
	if j.Proxied {
		names = "proxy"
	}
	if err := os.WriteFile(s.file("ends"), []byte(strings.Join(j.Ends, "\n")+"\n"), 0o600); err != nil {
		return Measure{}, nil, fmt.Errorf("wrk: %w", err)
	}
	cmd := exec.CommandContext(ctx, "wrk", //nolint:gosec // fixed words and numbers
		"-t", strconv.Itoa(Threads), "-c", strconv.Itoa(j.Connections),
		"-d", fmt.Sprintf("%ds", int(j.Duration.Seconds())), "--timeout", "30s", "--latency",
		"-s", s.file("visits.lua"), j.URL, "--", s.file(j.Name), atTheEnd, s.file("ends"), names)
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
	m = Measure{Requests: result.Requests, PerSecond: bench.Ratio(float64(result.Requests), result.Us/1e6), P50Ms: result.P50 / 1000, P99Ms: result.P99 / 1000}
	return m, result.Sent, err
}

func usedUp(visits int) error {
	return fmt.Errorf("the %d visits that were prepared are used up before the time is: choose a shorter --duration", visits)
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
