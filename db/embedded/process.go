package embedded

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// process is a child process. A goroutine waits for it to exit.
type process struct {
	*os.Process
	done chan struct{} // closed when the child has exited
	err  error         // the child's exit status; may be read once done is closed
}

// spawn starts cmd in its own session, so that Ctrl-C at a terminal reaches only Footfall. If Footfall exits
// without stopping the child, the kernel signals the child to stop (see stopWithParent).
func spawn(cmd *exec.Cmd, as *account) (*process, error) {
	cmd.Env = childEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: as.credential()}
	stopWithParent(cmd.SysProcAttr)
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// For the kernel, the parent is the thread that forked, so this thread must live as long as
		// the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.Process = cmd.Process
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	return p, <-started
}

// childEnv returns the environment without the variables that would change the server's settings or
// the language of its messages, or make it report to systemd instead of Footfall.
func childEnv() []string {
	env := []string{"LC_ALL=C"}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && name != "LANGUAGE" && name != "NOTIFY_SOCKET" {
			env = append(env, entry)
		}
	}
	return env
}
