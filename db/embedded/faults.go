package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNoCluster is the error of Use where Config.MustExist is set and nothing was ever made.
var ErrNoCluster = errors.New("there is no data here")

// DirError is what is wrong with a data directory, and what to do about it.
type DirError struct {
	Dir string
	Err error
}

func (e *DirError) Error() string { return e.Dir + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *DirError) Unwrap() error { return e.Err }

// inDir adds to what the operating system refuses to do in a data directory what can be done about
// that. An error that says so itself is kept.
func inDir(dir string, err error) error {
	if already := (*DirError)(nil); err == nil || errors.As(err, &already) {
		return err
	}
	if system := syscall.Errno(0); !errors.As(err, &system) {
		return &DirError{dir, err}
	}
	remedy := "name another folder"
	switch {
	case errors.Is(err, fs.ErrPermission):
		remedy = fmt.Sprintf("user %s may not do that: run this as the folder's owner, or name another folder", userName(uint32(os.Geteuid())))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "free some space, or name a folder on another disk"
	case errors.Is(err, syscall.EROFS):
		remedy = "name a folder that can be written to"
	}
	return &DirError{dir, fmt.Errorf("it cannot be used (%w): %s", err, remedy)}
}

// lockFault says why a lock of a data directory was not had: held says so of one that another
// process still has.
func lockFault(dir string, err error, held string) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &DirError{dir, errors.New(held)}
	}
	return inDir(dir, err)
}

// failedInitdb says what initdb said, and what to do.
func failedInitdb(dir string, err error, output string) error {
	remedy := "mend the installation, or name another PostgreSQL with --postgres-bin"
	if strings.Contains(output, "No space left") || strings.Contains(output, "Disk quota") {
		remedy = "a new cluster takes 40 MB, and grows: free some space, or name a folder on another disk"
	}
	return &DirError{dir, fmt.Errorf("PostgreSQL's initdb could not make a cluster (%w):\n%s\n%s", err, lastLines(output), remedy)}
}

// lastLines returns the end of what a program printed, which tells why it gave up, without the
// statements in which it did.
func lastLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.Contains(line, "STATEMENT: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// serverLogs are the files of a cluster's log, with their sizes.
func serverLogs(cluster string) map[string]int64 {
	sizes := map[string]int64{}
	paths, _ := filepath.Glob(filepath.Join(cluster, "log", "*")) // fails for a bad pattern only
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			sizes[path] = info.Size()
		}
	}
	return sizes
}

// loggedSince returns what a server has added to its log since it had these sizes. What cannot be
// read makes the answer shorter.
func loggedSince(cluster string, sizes map[string]int64) string {
	var output strings.Builder
	for path, size := range serverLogs(cluster) {
		before := sizes[path]
		if before > size {
			before = 0 // it was begun anew
		}
		file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		_, _ = io.Copy(&output, io.NewSectionReader(file, before, size-before))
		_ = file.Close()
	}
	return output.String()
}
