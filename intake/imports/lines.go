package imports

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"footfall/intake/logs"
)

// firstBuffer is the size of a new buffer of lines.
const firstBuffer = 64 << 10

// lines reads the lines of a log that end with \n. The bytes after the last one may be half a line, and
// are left until the rest of it is there.
type lines struct {
	from       io.Reader
	buffer     []byte
	line       int    // where the line begins that was returned last
	start, end int    // the part of the buffer that was not returned yet
	long       int64  // bytes of a line that is too long, which are not in the buffer any more
	done       func() // when no more is read

	at     int64 // where the line that was returned last begins
	place  int64 // where the next line begins
	number int64 // of the line that was returned last, from 1
	fault  error // why nothing more can be read; nil: it is the end
}

var buffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}

// lines reads the lines of a file from a place on, before which it has so many, until they are closed.
func (f *file) lines(place, number int64) (*lines, error) {
	reader, done, err := f.read(place)
	if err != nil {
		return nil, err
	}
	return &lines{from: reader, done: done, place: place, number: number, buffer: buffers.Get().(*[firstBuffer]byte)[:]}, nil
}

func (l *lines) close() {
	l.done()
	if len(l.buffer) == firstBuffer {
		buffers.Put((*[firstBuffer]byte)(l.buffer))
	}
	l.buffer = nil
}

// longLine stands for every line that is too long.
var longLine = make([]byte, logs.LongestLine+1)

// next returns a line without its end, valid until the next call; false: there is no more now.
func (l *lines) next() ([]byte, bool) {
	searched := 0
	for {
		if i := bytes.IndexByte(l.buffer[l.start+searched:l.end], '\n'); i >= 0 {
			return l.take(searched+i, 1), true
		}
		searched = l.end - l.start
		if searched > logs.LongestLine {
			l.long += int64(l.end - l.start)
			l.line, l.start, l.end, searched = 0, 0, 0, 0
		}
		if !l.fill() {
			return nil, false
		}
	}
}

// last returns the bytes after the last line end as a line; false: there are none.
func (l *lines) last() ([]byte, bool) {
	if l.rest() == 0 {
		return nil, false
	}
	return l.take(l.end-l.start, 0), true
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
	if gone := l.start - comparedBytes; gone > 0 {
		copy(l.buffer, l.buffer[gone:l.end])
		l.start, l.end = comparedBytes, l.end-gone
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

// comparedBytes is how many bytes before its place a follower compares before it reads on: several lines,
// since many lines end with the same User-Agent.
const comparedBytes = 1024

// bytesBefore returns the bytes before a place in the buffer, as many as a follower compares.
func (l *lines) bytesBefore(place int) []byte {
	return slices.Clone(l.buffer[max(0, place-comparedBytes):place])
}

// rest is how many bytes follow the last line.
func (l *lines) rest() int64 { return l.long + int64(l.end-l.start) }
