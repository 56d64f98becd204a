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

// ErrNoCluster is returned if Config.MustExist is set and the data directory has never been used.
var ErrNoCluster = errors.New("there is no data here")

// DirError reports a problem with a data directory, and how to solve it.
type DirError struct {
	Dir string
	Err error
}

func (e *DirError) Error() string { return e.Dir + ": " + e.Err.Error() }

// Unwrap returns the problem.
func (e *DirError) Unwrap() error { return e.Err }

// inDir wraps err in a DirError. It adds a remedy to errors of the operating system.
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

// lockFault returns the error to report for a lock that could not be taken. If another process still has the
// lock, the error contains the text held.
func lockFault(dir string, err error, held string) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &DirError{dir, errors.New(held)}
	}
	return inDir(dir, err)
}

// failedInitdb returns an error with initdb's output and a remedy.
func failedInitdb(dir string, err error, output string) error {
	remedy := "repair the installation, or name another PostgreSQL with --postgres-bin"
	if strings.Contains(output, "No space left") || strings.Contains(output, "Disk quota") {
		remedy = "a new cluster takes 40 MB, and grows: free some space, or name a folder on another disk"
	}
	return &DirError{dir, fmt.Errorf("PostgreSQL's initdb could not create a cluster (%w):\n%s\n%s", err, lastLines(output), remedy)}
}

// lastLines returns the last lines of a program's output, which show why the program gave up. It
// leaves out STATEMENT lines.
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

// serverLogs returns the log files of a cluster and their sizes.
func serverLogs(cluster string) map[string]int64 {
	sizes := map[string]int64{}
	paths, _ := filepath.Glob(filepath.Join(cluster, "log", "*")) // fails only for an invalid pattern
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			sizes[path] = info.Size()
		}
	}
	return sizes
}

// loggedSince returns the lines that a server has logged since its log files had the given sizes.
// Files that cannot be read are skipped.
func loggedSince(cluster string, sizes map[string]int64) string {
	var output strings.Builder
	for path, size := range serverLogs(cluster) {
		before := sizes[path]
		if before > size {
			before = 0 // the server has emptied the file
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
