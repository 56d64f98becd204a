package admin

import (
	"bytes"
	"fmt"
	"io"
)

// rewriting puts something else in the place of fields, while CSV as PostgreSQL writes it goes by. The
// first line, with the names of columns, stays.
type rewriting struct {
	to     io.Writer
	fields []rewrite // by column; nil, or none: as it is
	lines  int64     // that have gone by
	rest   []byte    // of a line that has not ended yet
	out    []byte
}

// rewrite appends what is to be in the place of a field.
type rewrite func(to, field []byte) ([]byte, error)

// longestLine is more than any row has.
const longestLine = 16 << 20

func (r *rewriting) Write(text []byte) (int, error) {
	whole, n := text, len(text)
	if len(r.rest) > 0 {
		r.rest = append(r.rest, text...)
		whole = r.rest
	}
	r.out = r.out[:0]
	for {
		length, err := r.line(whole)
		switch {
		case err != nil:
			return 0, fmt.Errorf("line %d: %w", r.lines+1, err)
		case length == 0 && len(whole) > longestLine:
			return 0, fmt.Errorf("line %d has no end", r.lines+1)
		case length == 0:
			r.rest = append(r.rest[:0], whole...)
			_, err = r.to.Write(r.out)
			return n, err
		}
		whole = whole[length:]
		r.lines++
	}
}

// line rewrites the line at the beginning of a text, and returns its length; 0: it has not ended yet.
func (r *rewriting) line(text []byte) (length int, err error) {
	begun, start, column, quoted := len(r.out), 0, 0, false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '\n'):
			if r.lines == 0 || column >= len(r.fields) || r.fields[column] == nil {
				r.out = append(r.out, text[start:i]...)
			} else if r.out, err = r.fields[column](r.out, bytes.Trim(text[start:i], `"`)); err != nil {
				return 0, err
			}
			r.out = append(r.out, c)
			start = i + 1
			column++
			if c == '\n' {
				return start, nil
			}
		}
	}
	r.out = r.out[:begun]
	return 0, nil
}
