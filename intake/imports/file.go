package imports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// standardInput selects standard input in Options.Files. standardInputName is its name in messages.
const (
	standardInput     = "-"
	standardInputName = "standard input"
)

// file is an open log, compressed or not. It stays open during the import, so that the import can read it even after it was
// renamed. Many files can be open, because Go raises the limit on open files as far as the system allows.
type file struct {
	name   string   // the file's name in messages
	handle *os.File // the open file; nil for standard input
	info   fs.FileInfo
	packed packing
	stdin  io.Reader // standard input, which can be read only once
}

type packing int

const (
	plain packing = iota
	gzipped
	zstandard
)

// largestWindow limits the memory for decompressing a file, in bytes. A file needs more only if zstd compressed it with
// --long or --ultra.
const largestWindow = 16 << 20

// findFiles returns the files whose names are in names or match a pattern in names. It returns each file once.
func findFiles(names []string) (found []string, err error) {
	var faults []error
	known := map[string]bool{}
	for _, name := range names {
		matching := []string{name}
		if _, err := os.Lstat(name); err != nil && name != standardInput && strings.ContainsAny(name, "*?[") {
			if matching, err = filepath.Glob(name); err != nil || len(matching) == 0 {
				faults = append(faults, fmt.Errorf("%s: no file has a name like this", name))
			}
		}
		for _, one := range matching {
			if !known[one] {
				found, known[one] = append(found, one), true
			}
		}
	}
	return found, errors.Join(faults...)
}

// openFile opens a log and detects its compression.
func openFile(name string, stdin io.Reader) (*file, error) {
	if name == standardInput {
		in := bufio.NewReader(stdin)
		head, _ := in.Peek(4) // ignore the error, because the next read returns it again
		return &file{name: standardInputName, stdin: in, packed: packingOf(head)}, nil
	}
	handle, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, openProblem(err))
	}
	if whole, err := filepath.Abs(name); err == nil {
		name = whole
	}
	f := &file{name: name, handle: handle}
	f.info, err = handle.Stat()
	switch {
	case err != nil:
	case f.info.IsDir():
		err = fmt.Errorf("it is a directory: name its files, like '%s'", filepath.Join(name, "*.log"))
	case !f.info.Mode().IsRegular():
		err = errors.New("it is not a regular file: name a file, or - for standard input")
	default:
		head := make([]byte, 4)
		n, read := handle.ReadAt(head, 0)
		if f.packed = packingOf(head[:n]); !errors.Is(read, io.EOF) {
			err = read
		}
	}
	if err != nil {
		_ = handle.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func openProblem(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.Is(err, fs.ErrPermission):
		return "this user may not read it"
	}
	return err.Error()
}

func packingOf(head []byte) packing {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzipped
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zstandard
	}
	return plain
}

// read returns a reader of the decompressed content. from is the offset at which to start. It must be 0 if the file is
// compressed.
func (f *file) read(from int64) (reader io.Reader, done func(), err error) {
	raw, done := f.stdin, func() {}
	if f.stdin == nil {
		raw = io.NewSectionReader(f.handle, from, math.MaxInt64-from)
	}
	if f.packed == plain {
		return raw, done, nil
	}
	if f.packed == gzipped {
		reader, err = gzip.NewReader(raw)
	} else {
		var unpacking *zstd.Decoder
		if unpacking, err = zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(largestWindow)); err == nil {
			reader, done = unpacking, unpacking.Close
		}
	}
	return reader, done, err
}

// verify returns an error if a compressed file is damaged. It decompresses the whole file, because lines before the damaged
// place may be wrong, too. If only the end of the file is missing, verify returns nil, because the existing lines are
// right.
func (f *file) verify() error {
	if f.packed == plain || f.stdin != nil {
		return nil
	}
	reader, done, err := f.read(0)
	if err != nil {
		return err
	}
	defer done()
	if _, err = io.Copy(io.Discard, reader); errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// size returns the current size on disk, in bytes. It returns 0 for standard input.
func (f *file) size() int64 {
	if f.handle == nil {
		return 0
	}
	if now, err := f.handle.Stat(); err == nil {
		f.info = now
	}
	return f.info.Size()
}

// inode returns a text that identifies the file on this machine, even if its name changes. The text is empty for standard
// input.
func (f *file) inode() string {
	if f.handle == nil {
		return ""
	}
	stat := f.info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // of this system
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// readProblem returns a text that explains why reading the file failed with err.
func (f *file) readProblem(err error) string {
	what := "its gzip data"
	if f.packed == zstandard {
		what = "its zstd data"
	}
	switch {
	case f.packed == plain:
		return "it cannot be read: " + err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return what + " is incomplete"
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return what + " takes too much memory to decompress: compress it again without --long and --ultra"
	}
	var system syscall.Errno
	if errors.As(err, &system) {
		return "it cannot be read: " + err.Error()
	}
	return what + " is damaged"
}

// state returns a text that changes whenever the file changes: its size and ctime. The text is empty for standard input. It
// is also empty if the file has just been changed, because the next change could have the same ctime.
func (f *file) state() string {
	size := f.size()
	if f.handle == nil {
		return ""
	}
	changed := f.info.Sys().(*syscall.Stat_t).Ctim //nolint:forcetypeassert // of this system
	if time.Since(time.Unix(changed.Unix())) < settledAfter {
		return ""
	}
	return fmt.Sprintf("%d:%d.%09d", size, changed.Sec, changed.Nsec)
}

// settledAfter is the time after a change from which the next change certainly gets a different ctime, on any file system.
const settledAfter = 3 * time.Second

func (f *file) close() {
	if f.handle != nil {
		_ = f.handle.Close()
	}
}
