package bench

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // visits.lua
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed visits.lua
var visitsLua []byte

// wrkThreads is how many threads of wrk share a sequence; they take its visits in turns.
const wrkThreads = 2

// script is the folder of what wrk reads.
type script struct{ dir string }

func newScript() (script, error) {
	dir, err := os.MkdirTemp("", "footfall-wrk-")
	if err != nil {
		return script{}, fmt.Errorf("wrk: %w", err)
	}
	s := script{dir}
	if err := os.WriteFile(s.lua(), visitsLua, 0o600); err != nil {
		return script{}, errors.Join(fmt.Errorf("wrk: %w", err), s.remove())
	}
	return s, nil
}

func (s script) remove() error             { return os.RemoveAll(s.dir) }
func (s script) lua() string               { return filepath.Join(s.dir, "visits.lua") }
func (s script) visits(load string) string { return filepath.Join(s.dir, load) }

// write puts a sequence into a file for each thread, its visitors as asserted ones.
func (s script) write(name string, sequence []arrival) error {
	return s.writeLines(name, sequence, func(to io.Writer, a arrival) {
		fmt.Fprintf(to, "ip=%s&uri=http://%s\n", addressOf(int(a.visitor)), pageURI(int(a.page)))
	})
}

// writeLines lets the caller say what a visit's line is.
func (s script) writeLines(name string, sequence []arrival, writeLine func(to io.Writer, a arrival)) error {
	for thread := range wrkThreads {
		file, err := os.Create(fmt.Sprintf("%s.%d", s.visits(name), thread+1))
		if err != nil {
			return fmt.Errorf("wrk: %w", err)
		}
		lines := bufio.NewWriter(file)
		for n := thread; n < len(sequence); n += wrkThreads {
			writeLine(lines, sequence[n])
		}
		if err := errors.Join(lines.Flush(), file.Close()); err != nil {
			return fmt.Errorf("wrk: %w", err)
		}
	}
	return nil
}

// load is what one run of wrk is to do.
type load struct {
	url         string
	workload    string   // whose sequence was written
	again       bool     // from the beginning when the sequence is used up
	headers     []string // beside Host, of the requests in turns: each a header, or several with tabs between them; default: none
	connections int      // wrkThreads at least
	duration    time.Duration
}

// measure is what one run of wrk saw.
type measure struct {
	requests      int64
	perSecond     float64
	p50, p95, p99 time.Duration
	sent          [wrkThreads]int64 // by each thread; some of the last were not answered
}

// run loads a contender. Any error that wrk saw is an error here: what is not answered must not count as fast.
func (s script) run(ctx context.Context, l load) (measure, error) {
	ctx, cancel := context.WithTimeout(ctx, l.duration+time.Minute)
	defer cancel()
	atTheEnd := "once"
	if l.again {
		atTheEnd = "again"
	}
	headers := filepath.Join(s.dir, "headers")
	if err := os.WriteFile(headers, []byte(strings.Join(l.headers, "\n")+"\n"), 0o600); err != nil {
		return measure{}, fmt.Errorf("wrk: %w", err)
	}
	cmd := exec.CommandContext(ctx, "wrk", //nolint:gosec // fixed words and numbers
		"-t", strconv.Itoa(wrkThreads), "-c", strconv.Itoa(l.connections),
		"-d", fmt.Sprintf("%ds", int(l.duration.Seconds())), "--timeout", "30s", "--latency",
		"-s", s.lua(), l.url, "--", s.visits(l.workload), atTheEnd, headers)
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return measure{}, errors.New("wrk is missing: install it with scripts/install-deps wrk, or the system's package manager")
	}
	if err != nil {
		return measure{}, fmt.Errorf("wrk: %s: %s", err.Error(), strings.TrimSpace(told.String()))
	}
	m, err := readWrk(string(out))
	if err != nil {
		return measure{}, err
	}
	return m, m.unanswered(l.connections)
}

// unanswered is an error where more visits are said to have been sent than were answered or on the way: then nobody knows which.
func (m measure) unanswered(connections int) error {
	sent := int64(0)
	for _, n := range m.sent {
		sent += n
	}
	if m.requests > sent || sent-m.requests > int64(connections) {
		return fmt.Errorf("wrk sent %d visits over %d connections and got %d answers, which cannot be", sent, connections, m.requests)
	}
	return nil
}

// readWrk reads the line that visits.lua writes at the end of a run.
func readWrk(out string) (m measure, err error) {
	var line string
	for l := range strings.Lines(out) {
		if strings.HasPrefix(l, "result ") {
			line = strings.TrimSpace(l)
		}
	}
	fields, err := readFields(line)
	if err != nil {
		return measure{}, err
	}
	for _, name := range []string{"requests", "us", "p50", "p95", "p99", "connect", "read", "write", "status", "timeout", "ended", "sent"} {
		if len(fields[name]) == 0 {
			return measure{}, fmt.Errorf("wrk did not tell %s:\n%s", name, out)
		}
	}
	for _, name := range []string{"connect", "read", "write", "status", "timeout"} {
		if fields[name][0] != 0 {
			return measure{}, fmt.Errorf("wrk saw errors, so the run counts for nothing: %s", line)
		}
	}
	m.requests = fields["requests"][0]
	if fields["ended"][0] != 0 {
		return measure{}, fmt.Errorf("the %d visits that were prepared are used up before the time is: choose a shorter --duration", m.requests)
	}
	if m.requests == 0 || fields["us"][0] == 0 {
		return measure{}, errors.New("wrk got no answer at all")
	}
	if copy(m.sent[:], fields["sent"]) != len(fields["sent"]) || slices.Contains(m.sent[:], 0) {
		return measure{}, fmt.Errorf("not every thread of wrk sent visits: %s", line)
	}
	micros := func(name string) time.Duration { return time.Duration(fields[name][0]) * time.Microsecond }
	m.perSecond = float64(m.requests) / micros("us").Seconds()
	m.p50, m.p95, m.p99 = micros("p50"), micros("p95"), micros("p99")
	return m, nil
}

// readFields reads name=number and name=number,number,… in a line.
func readFields(line string) (map[string][]int64, error) {
	fields := map[string][]int64{}
	for _, pair := range strings.Fields(line) {
		name, values, ok := strings.Cut(pair, "=")
		if !ok {
			continue
		}
		for value := range strings.SplitSeq(values, ",") {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("wrk: %s is not a number in: %s", name, line)
			}
			fields[name] = append(fields[name], n)
		}
	}
	return fields, nil
}

// sentOf are the visits of a sequence that wrk sent.
func (m measure) sentOf(sequence []arrival) []arrival {
	var sent []arrival
	for n, a := range sequence {
		if int64(n/wrkThreads) < m.sent[n%wrkThreads] {
			sent = append(sent, a)
		}
	}
	return sent
}
