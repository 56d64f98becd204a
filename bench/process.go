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

// process is a contender that runs.
type process struct {
	url    string
	cmd    *exec.Cmd
	output bytes.Buffer  // of the process; to be read after ended only
	ended  chan struct{} // closed when the process has ended and result is set
	result error
}

// startProcess runs this program as a contender, and returns when it is ready. %s among the arguments is its address.
// The process ends with ctx, or with stop, which must be called.
func startProcess(ctx context.Context, args ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	for i := range args {
		if args[i] == "%s" {
			args[i] = addr
		}
	}
	p := &process{url: "http://" + addr, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, program, args...) //nolint:gosec // this program itself
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 20 * time.Second
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: start %s: %w", strings.Join(args, " "), err)
	}
	go func() {
		p.result = p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.ready(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// freeAddr finds a port that nobody listens on.
func freeAddr(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// ready waits until the contender says that it can count.
func (p *process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if status(ctx, p.url+"/readyz") == http.StatusOK {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return fmt.Errorf("bench: %s ended before it was ready", p.cmd) // stop tells how
		case <-ctx.Done():
			return fmt.Errorf("bench: %s was not ready in time: %w", p.cmd, ctx.Err())
		}
	}
}

// status asks once; 0 where nobody answers.
func status(ctx context.Context, address string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// peakMemory is the most memory that the process ever held, in bytes; 0 where the system does not tell.
func (p *process) peakMemory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return readPeak(string(text))
}

func readPeak(text string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kilobytes << 10
		}
	}
	return 0
}

// stop asks the process to end, and waits until it has; every visit that it took is counted then.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails where it has ended
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	if p.result != nil {
		// Not %w: its exit code is not ours.
		return fmt.Errorf("bench: %s: %s\n%s", p.cmd, p.result.Error(), lastBytes(p.output.String(), 4000))
	}
	return nil
}

func lastBytes(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}
