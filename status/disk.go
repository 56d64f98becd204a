package status

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// DiskOf returns how large the disk of a folder is, and how much of it is free.
func DiskOf(dir string) (*Disk, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return nil, fmt.Errorf("look at the disk of %s: %w", dir, err)
	}
	block := int64(fs.Bsize)                                                           //nolint:unconvert // its type is another one on other systems
	return &Disk{Bytes: int64(fs.Blocks) * block, Free: int64(fs.Bavail) * block}, nil //nolint:gosec // numbers of bytes
}
