// Package tempdir makes folders for PostgreSQL clusters that nobody keeps: those of tests.
package tempdir

import (
	"errors"
	"os"
	"syscall"
)

// memory is where Linux has a file system in memory: making and dropping databases takes a third of the time there.
const memory = "/dev/shm"

// room is what all tests that run at once may need. A container often has 64 MB there.
const room = 3 << 30

// Make makes a folder that a server's user can enter, in memory where there is room. The caller removes it.
func Make() (string, error) {
	// Not below os.TempDir, which may be private, or too long a path for a socket.
	parent := "/tmp"
	var stat syscall.Statfs_t
	if syscall.Statfs(memory, &stat) == nil && stat.Bavail*uint64(stat.Bsize) > room { //nolint:gosec // a size of blocks
		parent = memory
	}
	dir, err := os.MkdirTemp(parent, "footfall-test-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}
