package imports

import (
	"bytes"
	"errors"
	"hash"
	"io"

	"footfall/intake/logs"
)

// firstBuffer is the size of a buffer of lines as it begins.
const firstBuffer = 64 << 10

// lines reads the lines of a log that end with \n. What follows the last one may be half a line,
// and is left for when the rest of it is there.
type lines struct {
	from       io.Reader
	buffer     []byte
	start, end int   // of what is in the buffer and was not returned
	long       int64 // bytes of a line that is too long, which are not in the buffer any more

	sum hash.Hash // takes all bytes that are read of lines; nil: nobody asks

	at     int64 // where the line that was returned last begins
	place  int64 // where the next one does
	number int64 // of the line that was returned last, from 1
	fault  error // why nothing more can be read; nil: it is the end
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
			l.passLong()
			l.start, l.end, searched = 0, 0, 0
		}
		if !l.fill() {
			return nil, false
		}
	}
}

// passLong passes what is in the buffer of a line that is too long.
func (l *lines) passLong() {
	if l.sum != nil {
		l.sum.Write(l.buffer[l.start:l.end])
	}
	l.long += int64(l.end - l.start)
}

// take returns a line of so many bytes, whose end has so many.
func (l *lines) take(length, end int) []byte {
	line := l.buffer[l.start : l.start+length]
	if l.sum != nil {
		l.sum.Write(l.buffer[l.start : l.start+length+end])
	}
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
		copy(l.buffer, l.buffer[l.start:l.end])
		l.start, l.end = 0, l.end-l.start
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
