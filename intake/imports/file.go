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

// standardInput is how standard input is written where a file is named, and standardInputName what
// it is called.
const (
	standardInput     = "-"
	standardInputName = "standard input"
)

// file is a log, packed or not. It stays open, so that it is the same one also if it is renamed. Go raises
// the limit of open files as far as the system lets it.
type file struct {
	name   string   // as it is reported
	handle *os.File // nil: it is standard input
	info   fs.FileInfo
	packed packing
	stdin  io.Reader // of standard input, which is read once
}

type packing int

const (
	plain packing = iota
	gzipped
	zstandard
)

// largestWindow bounds the memory that unpacking a file may take. What zstd packs without --long or
// --ultra needs less.
const largestWindow = 16 << 20

// findFiles returns the files that are named, by themselves or by patterns, without repetitions.
func findFiles(names []string) (found []string, err error) {
	var faults []error
	known := map[string]bool{}
	for _, name := range names {
		matching := []string{name}
		if _, err := os.Lstat(name); err != nil && name != standardInput && strings.ContainsAny(name, "*?[") {
			if matching, err = filepath.Glob(name); err != nil || len(matching) == 0 {
				faults = append(faults, fmt.Errorf("%s: no file has such a name", name))
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

// openFile opens a log, and finds out how it is packed.
func openFile(name string, stdin io.Reader) (*file, error) {
	if name == standardInput {
		in := bufio.NewReader(stdin)
		head, _ := in.Peek(4) // an error is returned again when it is read
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
		err = errors.New("it is not a file: name one, or - for standard input")
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

// packingOf finds out how a file is packed, by its first bytes.
func packingOf(head []byte) packing {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzipped
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zstandard
	}
	return plain
}

// read returns a reader of the unpacked file; of a plain one from a byte on.
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

// verify unpacks a packed file: if it is damaged, its lines may be wrong long before that is noticed. One
// that ends in the middle is not damaged.
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

// size is how many bytes the file has, packed as it is.
func (f *file) size() int64 {
	if f.handle == nil {
		return 0
	}
	if now, err := f.handle.Stat(); err == nil {
		f.info = now
	}
	return f.info.Size()
}

// inode names the file on this machine, whatever it is called; "": it is standard input.
func (f *file) inode() string {
	if f.handle == nil {
		return ""
	}
	stat := f.info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // of this system
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// readProblem says why a file could not be read to its end.
func (f *file) readProblem(err error) string {
	what := "its gzip"
	if f.packed == zstandard {
		what = "its zstd"
	}
	switch {
	case f.packed == plain:
		return "it cannot be read: " + err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return what + " ends in the middle"
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return what + " takes too much memory to unpack: pack it again without --long and --ultra"
	}
	var system syscall.Errno
	if errors.As(err, &system) {
		return "it cannot be read: " + err.Error()
	}
	return what + " is damaged"
}

// state tells whether the file is as it was, by its size and the time of its last change; "": it is
// standard input, or was changed so lately that another change may show the same time.
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

// settledAfter is more than file systems may take to show another time.
const settledAfter = 3 * time.Second

func (f *file) close() {
	if f.handle != nil {
		_ = f.handle.Close()
	}
}
