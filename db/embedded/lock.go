package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"footfall/pause"
)

// The locks of a data directory are flocks on the files in its folder lock. The kernel releases a lock
// when the last process that has the file open exits, so a killed process leaves no lock behind.
const (
	// serveLock is held by the process that serves, until this process starts to stop its server. After that,
	// the next process that serves waits for ownerLock instead of failing.
	serveLock = "serve"
	// ownerLock is held by the process that started the server, or that is about to start it.
	ownerLock = "owner"
	// postgresLock is held by initdb and by the server's processes, which inherit the lock. So the lock is
	// free only when all of these processes have exited, even if their parent or the postmaster was killed.
	postgresLock = "postgres"
	// attachedLock is held by short commands that use a server started by another process. These commands
	// share the lock.
	attachedLock = "attached"
)

const (
	exclusive = syscall.LOCK_EX
	shared    = syscall.LOCK_SH
)

func lockFolder(dir string) string { return filepath.Join(dir, "lock") }

func (cfg Config) lock(name string) string { return filepath.Join(lockFolder(cfg.Dir), name) }

// lock is a held lock. It must be released.
type lock struct{ file *os.File }

// tryLock takes the lock without waiting, or returns nil if another process has it.
func tryLock(path string, how int) (*lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if err == nil {
		return &lock{file}, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// waitLock takes the lock exclusively as soon as it is free. It gives up when ctx ends, or after the time
// within.
func waitLock(ctx context.Context, within time.Duration, path string) (*lock, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		if l, err := tryLock(path, exclusive); l != nil || err != nil {
			return l, err
		}
		if pause.For(ctx, pollEvery) != nil {
			return nil, ctx.Err()
		}
	}
}

// release releases the lock. It unlocks before it closes the file, because another goroutine may be
// forking a child, which has a copy of the open file for a moment. release may be called twice.
func (l *lock) release() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}

// leaveToChildren closes this process's copy of the lock. Children that inherited it keep holding it
// until they exit.
func (l *lock) leaveToChildren() { _ = l.file.Close() }

// describe writes the purpose and the number of this process to the lock's file, for error messages of
// other processes. It ignores errors, because only these messages depend on it.
func (l *lock) describe(purpose string) {
	_ = l.file.Truncate(0)
	_, _ = l.file.WriteAt(fmt.Appendf(nil, "%s, process %d\n", purpose, os.Getpid()), 0)
}

func holder(path string) string {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return "another process"
	}
	return strings.TrimSpace(string(text))
}
