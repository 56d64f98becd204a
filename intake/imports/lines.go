package imports

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"

	"footfall/intake/logs"
)

const firstBuffer = 64 << 10

// lines reads the complete lines of a log. If the last line has no \n yet, it is read again after the file has grown.
type lines struct {
	from    *bufio.Reader
	release func() // closes the reader

	text       []byte // the last line that was read, with its \n
	previous   []byte // the line before text
	start      int64  // offset at which the last read line starts
	place      int64  // offset at which the next line starts
	number     int64  // number of the last read line in the file, from 1
	unfinished int64  // number of bytes of an incomplete line that were read after the last line

	sum       xxhash.Digest // hash of all bytes before place
	sumBefore xxhash.Digest // hash of all bytes before start

	fault error // read error; nil at the end of the file
}

// lines returns a reader of the file's lines, from the offset place. number is the number of lines before this offset. The
// caller must call the field release at the end.
func (f *file) lines(place, number int64) (*lines, error) {
	reader, done, err := f.read(place)
	if err != nil {
		return nil, err
	}
	return &lines{from: bufio.NewReaderSize(reader, firstBuffer), release: done, place: place, number: number}, nil
}

// next returns the next line without its \n, or false if no complete line is left. The line is valid until the next call.
// next may shorten a line that is longer than logs.LongestLine. The shortened line is still too long, so that the parser
// refuses it.
func (l *lines) next() ([]byte, bool) {
	l.previous, l.text, l.unfinished = l.text, l.previous[:0], 0
	sum := l.sum
	for {
		part, err := l.from.ReadSlice('\n')
		l.unfinished += int64(len(part))
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

// last returns the bytes after the last complete line as one more line, or false if there are no such bytes.
func (l *lines) last() ([]byte, bool) {
	if l.unfinished == 0 {
		return nil, false
	}
	l.start, l.place, l.number, l.unfinished = l.place, l.place+l.unfinished, l.number+1, 0
	return bytes.TrimSuffix(l.text, []byte("\n")), true
}
