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

// lines reads the complete lines of a log. Bytes after the last \n are read again when the file has grown.
type lines struct {
	from    *bufio.Reader
	release func() // releases the reader

	text       []byte // the last line, with its \n
	previous   []byte // the line before text
	start      int64  // offset of the last line
	place      int64  // offset of the next line
	number     int64  // number of the last line, from 1
	unfinished int64  // number of bytes after the last line

	sum       xxhash.Digest // of all bytes before place
	sumBefore xxhash.Digest // of all bytes before at

	fault error // read error; nil at the end of the file
}

// lines starts to read at an offset. number is the number of lines before this offset. The caller calls done at the end.
func (f *file) lines(place, number int64) (*lines, error) {
	reader, done, err := f.read(place)
	if err != nil {
		return nil, err
	}
	return &lines{from: bufio.NewReaderSize(reader, firstBuffer), release: done, place: place, number: number}, nil
}

// next returns a line without its \n, valid until the next call, or false if no complete line is left. next shortens a line
// that is longer than logs.LongestLine. The result is still too long, so the parser refuses it.
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

// last returns the bytes after the last \n as a line, or false if there are none.
func (l *lines) last() ([]byte, bool) {
	if l.unfinished == 0 {
		return nil, false
	}
	l.start, l.place, l.number, l.unfinished = l.place, l.place+l.unfinished, l.number+1, 0
	return bytes.TrimSuffix(l.text, []byte("\n")), true
}
