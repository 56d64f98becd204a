package embedded

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// process is a child process. A goroutine waits for it and ends with it.
type process struct {
	*os.Process
	done chan struct{} // closed when the child has ended
	err  error         // how it ended; to be read once done is closed
}

// spawn starts cmd in a session of its own, so that Ctrl-C at a terminal reaches only Footfall. If
// Footfall ends without stopping it, the kernel tells it to stop.
func spawn(cmd *exec.Cmd, as *account) (*process, error) {
	cmd.Env = childEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: as.credential()}
	stopWithParent(cmd.SysProcAttr)
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// For the kernel, the parent ends when the thread that forked ends, so the thread must last
		// as long as the child.
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
// the language of its messages, or have it tell systemd how our service is.
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
