package moves

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"
	"sync/atomic"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"footfall/admin"
	"footfall/visit"
)

// File is a file to import: a table, a table that gzip has compressed, or a zip file that contains tables.
type File struct {
	Name string
	From io.Reader
	Done *atomic.Int64 // number of bytes read so far, shared by all files; may be nil
}

const (
	peeked             = 4096
	longest            = 1 << 20  // maximum length of a line, in bytes
	mostRatio          = 200      // maximum ratio of decompressed to compressed size
	alwaysAllowedBytes = 16 << 20 // this number of decompressed bytes is always allowed, even above mostRatio
)

// seekable is implemented by files that can be read more than once.
type seekable interface {
	io.ReaderAt
	io.Seeker
}

// file imports a file from its beginning. The first bytes show whether the file is a zip file, a gzip file or a plain
// table.
func (h *History) file(ctx context.Context, f File, to *admin.HistoryTo) error {
	again, isFile := f.From.(seekable)
	var size int64
	var err error
	if isFile {
		if size, err = again.Seek(0, io.SeekEnd); err == nil {
			_, err = again.Seek(0, io.SeekStart)
		}
		isFile = err == nil
	}
	counted := &byteCounter{from: f.From, all: f.Done}
	from := bufio.NewReaderSize(counted, peeked)
	begins, err := from.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return unreadFile(f.Name, err)
	}
	switch {
	case bytes.HasPrefix(begins, []byte("PK")) && !isFile:
		return fault("%s: a zip cannot be read from standard input: name the file", f.Name)
	case bytes.HasPrefix(begins, []byte("PK")):
		return h.archive(ctx, f, again, size, to)
	case bytes.HasPrefix(begins, []byte{0x1f, 0x8b}):
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			return unreadFile(f.Name, err)
		}
		return h.table(ctx, f.Name, &ratioLimitReader{from: unpacked, packed: counted.read.Load}, to)
	}
	return h.table(ctx, f.Name, from, to)
}

// checkDuplicates returns an error if two files have the same content, because their numbers would be added twice.
func (h *History) checkDuplicates() error {
	names := map[[sha256.Size]byte]string{}
	for _, f := range h.Files {
		again, is := f.From.(seekable)
		if !is || len(h.Files) == 1 {
			continue
		}
		if _, err := again.Seek(0, io.SeekStart); err != nil {
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, f.From); err != nil {
			return unreadFile(f.Name, err)
		}
		key := [sha256.Size]byte(sum.Sum(nil))
		if other, is := names[key]; is && other != f.Name {
			return fault("%s: it is the same as %s: name it once", f.Name, other)
		}
		names[key] = f.Name
	}
	return nil
}

func unreadFile(name string, err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fault("%s: it is incomplete: download it again", name)
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum),
		errors.Is(err, zip.ErrAlgorithm), corrupt:
		return fault("%s: it is damaged or incomplete (%v): download it again", name, err)
	case errors.Is(err, errTooLarge), errors.Is(err, errTooLong):
		return fault("%s: %v", name, err)
	}
	return err
}

// archive imports the tables in a zip file. It reads them in the order of the file name patterns in h.form.files. If a zip
// file from GoatCounter contains no table, archive imports its JSON files.
func (h *History) archive(ctx context.Context, f File, from io.ReaderAt, size int64, to *admin.HistoryTo) error {
	archive, err := zip.NewReader(from, size)
	if err != nil {
		return unreadFile(f.Name, err)
	}
	budget := int64(0)
	found := false
	each := func(pattern string, read func(name string, from io.Reader) error) error {
		for _, entry := range archive.File {
			if is, _ := path.Match(pattern, strings.ToLower(path.Base(entry.Name))); !is {
				continue
			}
			found = true
			name := f.Name + ": " + entry.Name
			unpacked, err := entry.Open()
			if err != nil {
				return unreadFile(name, err)
			}
			bounded := &ratioLimitReader{from: unpacked, out: budget, packed: func() int64 { return size }}
			err = read(name, bounded)
			budget = bounded.out
			if closed := unpacked.Close(); err == nil {
				err = closed
			}
			if err != nil {
				return unreadFile(name, err)
			}
			if f.Done != nil {
				f.Done.Add(int64(min(entry.CompressedSize64, uint64(size)))) //nolint:gosec // at most size
			}
		}
		return nil
	}
	for _, pattern := range h.form.files {
		if err := each(pattern, func(name string, from io.Reader) error { return h.table(ctx, name, from, to) }); err != nil {
			return err
		}
	}
	if h.Source == "goatcounter" && !found {
		paths := map[int64]string{}
		if err := each("paths.jsonl", func(name string, from io.Reader) error { return h.goatPaths(name, from, paths) }); err != nil {
			return err
		}
		if err := each("hit_stats.jsonl", func(name string, from io.Reader) error { return h.goatHits(ctx, name, from, paths, to) }); err != nil {
			return err
		}
	}
	if !found {
		return fault("%s: the zip contains none of the expected files, %s: from %s, this can be read: %s", f.Name,
			strings.Join(h.form.files, ", "), visit.CountedBy(h.Source), h.form.export)
	}
	return nil
}

// goatPaths reads GoatCounter's list of pages into the map paths, from a page's id to its path. The path of an event is
// empty.
func (h *History) goatPaths(name string, from io.Reader, paths map[int64]string) error {
	var p struct {
		ID    int64
		Path  string
		Event bool
	}
	return h.json(name, from, func() any { p.Event = false; return &p }, func(int) error {
		paths[p.ID] = p.Path
		if p.Event {
			paths[p.ID] = ""
		}
		return nil
	})
}

// goatHits imports GoatCounter's hits. Each line contains how often a page was counted in an hour. GoatCounter counts a
// page once per visit. So this number is both the number of visitors and the number of page views.
func (h *History) goatHits(ctx context.Context, name string, from io.Reader, paths map[int64]string, to *admin.HistoryTo) error {
	var hit struct {
		Hour  string
		Path  int64 `json:"path_id"`
		Count int64
	}
	return h.json(name, from, func() any { hit.Hour, hit.Path, hit.Count = "", 0, 0; return &hit }, func(line int) error {
		h.Lines++
		page, is := paths[hit.Path]
		at, err := parseMoment(hit.Hour)
		switch {
		case err != nil:
			return h.wrong(name, line, "hour", err)
		case !is:
			return h.wrong(name, line, "path_id", fault("%d is not in paths.jsonl", hit.Path))
		case hit.Count < 0:
			return h.wrong(name, line, "count", fault("%d is less than 0", hit.Count))
		case page == "":
			h.LeftOut["events"]++
			return nil
		}
		err = to.Add(ctx, &admin.HistoryLine{Page: page, Day: to.Day(at), PageViews: hit.Count, Visits: admin.Unknown, Visitors: hit.Count,
			New: admin.Unknown})
		if err != nil {
			return h.wrong(name, line, "", err)
		}
		return nil
	})
}

// json reads a file with one JSON object per line. For each line, json calls into, decodes the object into the value that
// into returns, and then calls then with the line's number.
func (h *History) json(name string, from io.Reader, into func() any, then func(line int) error) error {
	lines := bufio.NewScanner(&sizeLimitReader{from, h})
	lines.Buffer(nil, longest)
	for line := 1; lines.Scan(); line++ {
		if text := bytes.TrimSpace(lines.Bytes()); len(text) == 0 || text[0] == '#' { // line 1 of a LeanCloud export is a comment
			continue
		}
		err := json.Unmarshal(lines.Bytes(), into())
		if err != nil {
			err = h.wrong(name, line, "", fault("it is not JSON from %s: %v", visit.CountedBy(h.Source), err))
		} else {
			err = then(line)
		}
		if err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errTooLong
	}
	return lines.Err()
}

// decodeText returns a reader of the text in UTF-8. It converts UTF-16 with a byte order mark, which Matomo and spreadsheet
// programs write.
func decodeText(from io.Reader) (*bufio.Reader, error) {
	text := bufio.NewReaderSize(from, peeked)
	begins, err := text.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(begins, []byte{0xff, 0xfe}), bytes.HasPrefix(begins, []byte{0xfe, 0xff}):
		utf16 := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder()
		return bufio.NewReaderSize(transform.NewReader(text, utf16), peeked), nil
	case bytes.HasPrefix(begins, []byte("\ufeff")):
		_, _ = text.Discard(len("\ufeff"))
	case bytes.IndexByte(begins, 0) >= 0:
		return nil, errors.New("it is not text: save it as CSV, as UTF-8")
	}
	return text, nil
}

var (
	errTooLong  = errors.New("a line is longer than 1 MB: is a quote not closed?")
	errTooLarge = errors.New("it unpacks to more than 200 times its size: if that is intended, unpack it by hand")
)

// lineLimitReader returns an error if a line has more than longest bytes. used is the number of bytes of the line that were
// read so far. The caller sets used to 0 before each line.
type lineLimitReader struct {
	from *bufio.Reader
	used int
}

func (l *lineLimitReader) Read(into []byte) (int, error) {
	if l.used > longest {
		return 0, errTooLong
	}
	n, err := l.from.Read(into)
	l.used += n
	return n, err
}

// ratioLimitReader returns an error if the decompressed file is much larger than the compressed file, as in a zip bomb. out
// is the number of decompressed bytes that were read so far.
type ratioLimitReader struct {
	from   io.Reader
	out    int64
	packed func() int64 // returns the number of compressed bytes that were read so far
}

func (u *ratioLimitReader) Read(into []byte) (int, error) {
	if u.out > alwaysAllowedBytes && u.out > mostRatio*u.packed() {
		return 0, errTooLarge
	}
	n, err := u.from.Read(into)
	u.out += int64(n)
	return n, err
}

// sizeLimitReader returns an error if all decompressed files together are larger than MostBytes or MostLines of the
// History.
type sizeLimitReader struct {
	from io.Reader
	of   *History
}

func (l *sizeLimitReader) Read(into []byte) (int, error) {
	n, err := l.from.Read(into)
	h := l.of
	h.unpacked += int64(n)
	h.newlines += int64(bytes.Count(into[:n], []byte("\n")))
	switch {
	case h.MostBytes > 0 && h.unpacked > h.MostBytes:
		return 0, visit.Errorf(visit.Invalid, "file",
			"it unpacks to more than %d MB: import it in the shell with footfall history import, which accepts more", h.MostBytes>>20)
	case h.MostLines > 0 && h.newlines > h.MostLines:
		return 0, visit.Errorf(visit.Invalid, "file",
			"it has more than %d lines: import it in the shell with footfall history import, which accepts more", h.MostLines)
	}
	return n, err
}

// byteCounter is a reader that counts the bytes that it reads. It adds their number to read and to all.
type byteCounter struct {
	from io.Reader
	read atomic.Int64
	all  *atomic.Int64
}

func (c *byteCounter) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	c.read.Add(int64(n))
	if c.all != nil {
		c.all.Add(int64(n))
	}
	return n, err
}
