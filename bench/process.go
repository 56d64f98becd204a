package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a server that was started to be loaded.
type Process struct {
	URL    string
	Admin  string // where its metrics are
	cmd    *exec.Cmd
	output bytes.Buffer  // of the process; to be read after ended only
	ended  chan struct{} // closed when the process has ended and result is set
	result error
}

// The names of the metrics that are read, of the service and of what is served beside it.
const (
	MetricWaiting     = "footfall_visits_waiting"
	MetricAsked       = "footfall_existence_queries_total"
	MetricFilterReady = "footfall_filter_ready"
	MetricFilterBytes = "footfall_filter_bytes"
	MetricMemoryBytes = "footfall_memory_bytes"
	MetricAccepted    = "footfall_inbox_accepted_total"
	MetricDrained     = "footfall_inbox_drained_total"
)

// Start runs a program, this one where none is named, and returns when it is ready. The arguments
// may depend on the addresses it is to listen on. The process ends with ctx, or with Stop, which
// must be called.
func Start(ctx context.Context, program string, arguments func(addr, admin string) []string) (_ *Process, err error) {
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
	}
	addrs, err := freeAddrs(ctx)
	if err != nil {
		return nil, err
	}
	p := &Process{URL: "http://" + addrs[0], Admin: "http://" + addrs[1], ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, program, arguments(addrs[0], addrs[1])...) //nolint:gosec // this program itself, or one that the caller names
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 20 * time.Second
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: start %s: %w", p.cmd, err)
	}
	go func() {
		p.result = p.cmd.Wait()
		close(p.ended)
	}()
	err = p.await(ctx, "it is ready", func() (bool, error) {
		_, err := Fetch(ctx, p.URL+"/readyz")
		return err == nil, nil // until it listens there is an error
	})
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// freeAddrs finds two addresses that nobody listens on.
func freeAddrs(ctx context.Context) (addrs [2]string, err error) {
	for i := range addrs {
		free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return addrs, fmt.Errorf("bench: %w", err)
		}
		defer free.Close() //nolint:gocritic // when both are found
		addrs[i] = free.Addr().String()
	}
	return addrs, nil
}

// await is WaitUntil that gives up when the process has ended.
func (p *Process) await(ctx context.Context, what string, done func() (bool, error)) error {
	return WaitUntil(ctx, what, func() (bool, error) {
		select {
		case <-p.ended:
			return false, fmt.Errorf("bench: %s ended early", p.cmd) // Stop says how
		default:
			return done()
		}
	})
}

// Fetch returns the body of an answer that is well.
func Fetch(ctx context.Context, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return "", fmt.Errorf("bench: %w", err)
	case answer.StatusCode == http.StatusServiceUnavailable:
		return "", fmt.Errorf("bench: %s: %w", address, ErrBusy)
	case answer.StatusCode != http.StatusOK:
		return "", fmt.Errorf("bench: %s answers %s", address, answer.Status)
	}
	return string(body), nil
}

// ErrBusy is why Fetch fails where the service has too much to do for an answer.
var ErrBusy = errors.New("the service is busy")

// Shows waits until a metric has a value.
func (p *Process) Shows(ctx context.Context, metric string, value float64) error {
	return p.await(ctx, fmt.Sprintf("%s is %v", metric, value), func() (bool, error) {
		figures, err := p.Figures(ctx)
		if err != nil {
			return false, err
		}
		return figures[metric] == value, figures.Has(metric)
	})
}

// Figures are the sums of the process's metrics over their labels.
func (p *Process) Figures(ctx context.Context) (Figures, error) {
	text, err := Fetch(ctx, p.Admin+"/metrics")
	return readFigures(text), err
}

// Figures are numbers by the name of a metric.
type Figures map[string]float64

func readFigures(text string) Figures {
	f := Figures{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] == "#" {
			continue
		}
		name, _, _ := strings.Cut(words[0], "{")
		if value, err := strconv.ParseFloat(words[len(words)-1], 64); err == nil {
			f[name] += value
		}
	}
	return f
}

// Has is an error where a figure is missing.
func (f Figures) Has(names ...string) error {
	for _, name := range names {
		if _, there := f[name]; !there {
			return fmt.Errorf("bench: the process has no metric %s", name)
		}
	}
	return nil
}

// PeakMemory is the most memory that the process ever had, in bytes; 0 where the system does not
// say.
func (p *Process) PeakMemory() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	return readPeak(string(text))
}

func readPeak(text string) (kilobytes float64) {
	_, rest, _ := strings.Cut(text, "VmHWM:")
	_, _ = fmt.Sscan(rest, &kilobytes)
	return kilobytes * 1024
}

// Stop asks the process to end, and waits until it has; every visit that it took is counted then.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails where it has ended
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	if p.result == nil {
		return nil
	}
	output := p.output.String()
	// Not %w: its exit code is not ours.
	return fmt.Errorf("bench: %s: %s\n%s", p.cmd, p.result.Error(), output[max(0, len(output)-4000):])
}
