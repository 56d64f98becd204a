package imports

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"

	"footfall/intake/logs"
)

// firstBuffer is the size of a buffer of lines.
const firstBuffer = 64 << 10

// lines reads the lines of a log that end with \n. The bytes after the last one may be half a line, and
// are left until the rest of it is there.
type lines struct {
	from *bufio.Reader
	done func() // when no more is read

	text   []byte // the line that was returned last, with its end
	before []byte // the line before it
	at     int64  // where the line that was returned last begins
	place  int64  // where the next line begins
	number int64  // of the line that was returned last, from 1
	rest   int64  // how many bytes follow the last line

	sum       xxhash.Digest // of all bytes before place
	sumBefore xxhash.Digest // of all bytes before at

	fault error // why nothing more can be read; nil: it is the end
}

// lines reads the lines of a file from a place on, before which it has so many, until they are closed.
func (f *file) lines(place, number int64) (*lines, error) {
	reader, done, err := f.read(place)
	if err != nil {
		return nil, err
	}
	return &lines{from: bufio.NewReaderSize(reader, firstBuffer), done: done, place: place, number: number}, nil
}

// next returns a line without its end, valid until the next call; false: there is no more now. Of a line
// that is too long it returns a part that is too long.
func (l *lines) next() ([]byte, bool) {
	l.before, l.text, l.rest = l.text, l.before[:0], 0
	sum := l.sum
	for {
		part, err := l.from.ReadSlice('\n')
		l.rest += int64(len(part))
		_, _ = sum.Write(part)
		if len(l.text) <= logs.LongestLine {
			l.text = append(l.text, part...)
		}
		switch {
		case err == nil:
			l.sumBefore, l.sum = l.sum, sum
			return l.last()
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, false
		default:
			l.fault = err
			return nil, false
		}
	}
}

// last returns the bytes after the last line end as a line; false: there are none.
func (l *lines) last() ([]byte, bool) {
	if l.rest == 0 {
		return nil, false
	}
	l.at, l.place, l.number, l.rest = l.place, l.place+l.rest, l.number+1, 0
	return bytes.TrimSuffix(l.text, []byte("\n")), true
}
