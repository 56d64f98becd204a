package admin

import (
	"bytes"
	"fmt"
	"io"
)

// rewriting is a writer that changes fields of a CSV stream in PostgreSQL's format. It keeps the header line.
type rewriting struct {
	target  io.Writer
	fields  []rewrite // functions that change the fields, by column; nil or missing: the fields stay unchanged
	lines   int64     // number of lines written so far
	partial []byte    // the start of an incomplete line
	out     []byte
}

// rewrite appends the new value of a field to a buffer, and returns the buffer.
type rewrite func(to, field []byte) ([]byte, error)

// longestLine is a length in bytes that no valid line reaches.
const longestLine = 16 << 20

func (r *rewriting) Write(text []byte) (int, error) {
	whole, n := text, len(text)
	if len(r.partial) > 0 {
		r.partial = append(r.partial, text...)
		whole = r.partial
	}
	r.out = r.out[:0]
	for {
		length, err := r.line(whole)
		switch {
		case err != nil:
			return 0, fmt.Errorf("line %d: %w", r.lines+1, err)
		case length == 0 && len(whole) > longestLine:
			return 0, fmt.Errorf("line %d is too long, or a quote in it is not closed", r.lines+1)
		case length == 0:
			r.partial = append(r.partial[:0], whole...)
			_, err = r.target.Write(r.out)
			return n, err
		}
		whole = whole[length:]
		r.lines++
	}
}

// line rewrites the first line of a text and returns its length, or 0 if the line is incomplete.
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
