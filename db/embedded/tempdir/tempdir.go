// Package tempdir makes folders for PostgreSQL clusters that nobody keeps: those of tests.
package tempdir

import (
	"os"
	"path/filepath"
	"syscall"
)

// memory is where Linux has a file system in memory: making and dropping databases takes a third of
// the time there.
const memory = "/dev/shm"

// room is what all tests that run at once may need. A container often has 64 MB there.
const room = 3 << 30

// Make makes a folder that a server's user can enter, in memory where there is room. The caller
// removes it.
func Make() (string, error) {
	dir, err := os.MkdirTemp(parent(), "footfall-test-")
	return enterable(dir, err)
}

// MakeNamed is Make for a folder of that name, which may be there already.
func MakeNamed(name string) (string, error) {
	dir := filepath.Join(parent(), name)
	return enterable(dir, os.MkdirAll(dir, 0o755))
}

// parent is not os.TempDir, which may be private, or too long a path for a socket.
func parent() string {
	var stat syscall.Statfs_t
	if syscall.Statfs(memory, &stat) == nil && stat.Bavail*uint64(stat.Bsize) > room { //nolint:gosec // a size of blocks
		return memory
	}
	return "/tmp"
}

func enterable(dir string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}
