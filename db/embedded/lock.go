package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// locks are the paths of the lock files of one data directory. They are flocks: the kernel drops them when the
// last process that holds the open file has gone, so a killed process leaves none behind.
type locks struct {
	// serve is held by the process that serves, until it begins to stop: the next one then waits instead of being refused.
	serve string
	// owner is held by the process that started the server, or is about to.
	owner string
	// postgres is held by the server's processes themselves, who inherit it, and by initdb: it is free when the last of
	// them has gone, also where the one who started them was killed, or their postmaster was.
	postgres string
	// attached is held, shared, by the short commands that use another's server.
	attached string
}

const (
	exclusive = syscall.LOCK_EX
	sharedBy  = syscall.LOCK_SH
)

// openLocks makes dir and its folder of locks.
func openLocks(dir string) (locks, error) {
	folder := filepath.Join(dir, "lock")
	if err := makeDir(folder); err != nil {
		return locks{}, err
	}
	return locks{
		serve:    filepath.Join(folder, "serve"),
		owner:    filepath.Join(folder, "owner"),
		postgres: filepath.Join(folder, "postgres"),
		attached: filepath.Join(folder, "attached"),
	}, nil
}

// lock is a lock that is held. Who has it must release it.
type lock struct{ file *os.File }

// tryLock takes the lock at once, or returns nil where another has it.
func tryLock(path string, how int) (*lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a lock of the data directory (is it another user's?): %w", err)
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

// waitLock takes the lock as soon as it is free, as long as ctx lives.
func waitLock(ctx context.Context, path string, how int) (*lock, error) {
	for {
		if l, err := tryLock(path, how); l != nil || err != nil {
			return l, err
		}
		if !sleep(ctx, pollEvery) {
			return nil, ctx.Err()
		}
	}
}

// release gives the lock back, also for a child that another goroutine is forking right now and that has a copy of
// the open file for a moment. Twice is harmless.
func (l *lock) release() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}

// leaveToChildren closes our copy of the lock, so that it lasts as long as the children who inherited it.
func (l *lock) leaveToChildren() { _ = l.file.Close() }

// describe says who holds the lock, for the messages of others. Nothing is decided by it, so failing is harmless.
func (l *lock) describe(purpose string) {
	_ = l.file.Truncate(0)
	_, _ = l.file.WriteAt(fmt.Appendf(nil, "%s, process %d\n", purpose, os.Getpid()), 0)
}

// holder returns what describe wrote.
func holder(path string) string {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return "by another process"
	}
	return "by " + strings.TrimSpace(string(text))
}
