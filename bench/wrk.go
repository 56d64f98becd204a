package bench

import (
	"bytes"
	"context"
	_ "embed" // visits.lua
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

//go:embed visits.lua
var visitsLua []byte

// load is what one run of wrk is to do.
type load struct {
	url         string
	script      string // a file that holds visitsLua
	connections int
	threads     int
	duration    time.Duration
	seed        int
}

// measure is what one run of wrk saw.
type measure struct {
	requests      int64
	perSecond     float64
	p50, p99, max time.Duration
}

// runWrk loads a contender. Any error that wrk saw is an error here: what is not answered must not count as fast.
func runWrk(ctx context.Context, l load) (measure, error) {
	ctx, cancel := context.WithTimeout(ctx, l.duration+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "wrk", //nolint:gosec // fixed words and numbers
		"-t", strconv.Itoa(min(l.threads, l.connections)), "-c", strconv.Itoa(l.connections),
		"-d", fmt.Sprintf("%ds", int(l.duration.Seconds())), "--timeout", "30s", "--latency",
		"-s", l.script, l.url, "--", strconv.Itoa(l.seed))
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return measure{}, errors.New("wrk is missing: install it with scripts/install-deps wrk, or the system's package manager")
	}
	if err != nil {
		return measure{}, fmt.Errorf("wrk: %s: %s", err.Error(), strings.TrimSpace(told.String()))
	}
	return readWrk(string(out))
}

// readWrk reads the line that visits.lua writes at the end of a run.
func readWrk(out string) (measure, error) {
	var line string
	for l := range strings.Lines(out) {
		if strings.HasPrefix(l, "result ") {
			line = l
		}
	}
	fields := map[string]int64{}
	for _, pair := range strings.Fields(line) {
		if name, value, ok := strings.Cut(pair, "="); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return measure{}, fmt.Errorf("wrk: %s is not a number in: %s", name, line)
			}
			fields[name] = n
		}
	}
	for _, name := range []string{"requests", "us", "p50", "p99", "max", "connect", "read", "write", "status", "timeout"} {
		if _, ok := fields[name]; !ok {
			return measure{}, fmt.Errorf("wrk did not tell %s:\n%s", name, out)
		}
	}
	for _, name := range []string{"connect", "read", "write", "status", "timeout"} {
		if fields[name] != 0 {
			return measure{}, fmt.Errorf("wrk saw errors, so the run counts for nothing: %s", strings.TrimSpace(line))
		}
	}
	if fields["requests"] == 0 || fields["us"] == 0 {
		return measure{}, errors.New("wrk got no answer at all")
	}
	micros := func(name string) time.Duration { return time.Duration(fields[name]) * time.Microsecond }
	return measure{
		requests:  fields["requests"],
		perSecond: float64(fields["requests"]) / micros("us").Seconds(),
		p50:       micros("p50"), p99: micros("p99"), max: micros("max"),
	}, nil
}
