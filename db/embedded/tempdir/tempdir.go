// Package tempdir creates folders for temporary PostgreSQL clusters of tests.
package tempdir

import (
	"os"
	"path/filepath"
	"syscall"
)

// memory is the folder of Linux's file system in memory. Creating and dropping databases takes only a third of the
// time there.
const memory = "/dev/shm"

// room is the free space that the folder memory must have, for all tests that run at the same time. In containers, this
// file system often has only 64 MB.
const room = 3 << 30

// Make creates a folder that a server's user can enter. The folder is in the file system in memory if there is room.
// The caller must remove the folder.
func Make() (string, error) {
	dir, err := os.MkdirTemp(parent(), "footfall-test-")
	return enterable(dir, err)
}

// MakeNamed is like Make, but the folder has the given name and may already exist.
func MakeNamed(name string) (string, error) {
	dir := filepath.Join(parent(), name)
	return enterable(dir, os.MkdirAll(dir, 0o755))
}

// parent returns the parent folder for Make. It does not use os.TempDir, because that folder may be private, or its path
// too long for a socket.
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
