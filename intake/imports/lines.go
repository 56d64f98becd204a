package imports

import (
	"bytes"
	"errors"
	"hash"
	"io"
	"sync"

	"github.com/cespare/xxhash/v2"

	"footfall/intake/logs"
)

// place is a place in a log, behind a whole line, and what comes before it. The zero place is its
// beginning.
type place struct {
	at, lines int64
	sum       hash.Hash // of the bytes before it; nil: nobody asks
}

// firstBuffer is the size of a buffer of lines as it begins.
const firstBuffer = 64 << 10

// lines reads the lines of a log that end with \n. What follows the last one may be half a line,
// and is left for when the rest of it is there.
type lines struct {
	from       io.Reader
	buffer     []byte
	line       int    // where the line begins that was returned last
	start, end int    // of what is in the buffer and was not returned
	long       int64  // bytes of a line that is too long, which are not in the buffer any more
	done       func() // when no more is read

	sum    hash.Hash // of the bytes before what the buffer has from summed on; nil: nobody asks
	summed int

	at     int64 // where the line that was returned last begins
	place  int64 // where the next one does
	number int64 // of the line that was returned last, from 1
	fault  error // why nothing more can be read; nil: it is the end
}

var buffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}

// lines reads the lines of a file from a place on, until they are closed.
func (f *file) lines(from place) (*lines, error) {
	reader, done, err := f.read(from.at)
	if err != nil {
		return nil, err
	}
	l := &lines{from: reader, done: done, place: from.at, number: from.lines, sum: cloned(from.sum)}
	l.buffer = buffers.Get().(*[firstBuffer]byte)[:]
	return l, nil
}

func (l *lines) close() {
	l.done()
	if len(l.buffer) == firstBuffer {
		buffers.Put((*[firstBuffer]byte)(l.buffer))
	}
	l.buffer = nil
}

func cloned(sum hash.Hash) hash.Hash {
	switch sum := sum.(type) {
	case *xxhash.Digest:
		clone := *sum
		return &clone
	case hash.Cloner: // of the standard library's all are
		clone, _ := sum.Clone()
		return clone
	}
	return nil
}

// here is the place behind the line that was returned last.
func (l *lines) here() place { return place{l.place, l.number, cloned(l.sumTo(l.start))} }

// before is the place before that line, which is not too long.
func (l *lines) before() place { return place{l.at, l.number - 1, cloned(l.sumTo(l.line))} }

// sumTo is the hash of all up to a place in the buffer.
func (l *lines) sumTo(end int) hash.Hash {
	if l.sum != nil {
		l.sum.Write(l.buffer[l.summed:end])
	}
	l.summed = end
	return l.sum
}

// longLine stands for every line that is too long.
var longLine = make([]byte, logs.LongestLine+1)

// next returns a line without its end, until it is called again; false: there is no more now.
func (l *lines) next() ([]byte, bool) {
	searched := 0
	for {
		if i := bytes.IndexByte(l.buffer[l.start+searched:l.end], '\n'); i >= 0 {
			return l.take(searched+i, 1), true
		}
		searched = l.end - l.start
		if searched > logs.LongestLine {
			l.long += int64(l.end - l.start)
			l.sumTo(l.end)
			l.line, l.start, l.end, l.summed, searched = 0, 0, 0, 0, 0
		}
		if !l.fill() {
			return nil, false
		}
	}
}

// take returns a line of so many bytes, whose end has so many.
func (l *lines) take(length, end int) []byte {
	line := l.buffer[l.start : l.start+length]
	l.line = l.start
	l.start += length + end
	l.at = l.place
	l.place += l.long + int64(length+end)
	l.number++
	if l.long > 0 {
		l.long = 0
		return longLine
	}
	return line
}

// fill reads more into the buffer; false: there is no more.
func (l *lines) fill() bool {
	if l.start > 0 {
		l.sumTo(l.start)
		copy(l.buffer, l.buffer[l.start:l.end])
		l.line, l.summed, l.start, l.end = 0, 0, 0, l.end-l.start
	}
	if l.end == len(l.buffer) {
		larger := make([]byte, max(firstBuffer, 2*len(l.buffer)))
		copy(larger, l.buffer)
		l.buffer = larger
	}
	for range 100 { // readers may return nothing a few times
		n, err := l.from.Read(l.buffer[l.end:])
		l.end += n
		if err != nil && !errors.Is(err, io.EOF) {
			l.fault = err
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
	return false
}

// rest is how many bytes follow the last line.
func (l *lines) rest() int64 { return l.long + int64(l.end-l.start) }

// final is these bytes, as far as a line may have them.
func (l *lines) final() []byte {
	if l.long > 0 {
		return longLine
	}
	return l.buffer[l.start:l.end]
}
