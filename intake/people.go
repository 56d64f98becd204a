package intake

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	"footfall/counter/app"
)

// longestLine is more than the longest line has that is not wrong, however it is written.
const longestLine = 16 << 10

// Loading is lines of links of ids, as PUT /people takes them, however many.
type Loading struct {
	From io.Reader
	// Put writes some of them, of which those in wrong are wrong already, and returns what is wrong
	// with each.
	Put   func(ctx context.Context, links []app.Link, wrong map[int]string) ([]string, error)
	Wrong func(line int64, why string) // is told of each line that is wrong

	Bytes, Lines atomic.Int64 // that were read
	Items        atomic.Int64 // that were written, or were there
}

// Run reads all lines. After an error some are written.
func (l *Loading) Run(ctx context.Context) error {
	from := bufio.NewReaderSize(l.From, longestLine)
	for end := false; !end; {
		links, at, wrong := make([]app.Link, 0, MostItems), make([]int64, 0, MostItems), map[int]string{}
		for len(links) < MostItems && !end {
			text, fault, err := l.line(from)
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if end = err != nil; strings.TrimSpace(text) == "" && fault == "" {
				continue
			}
			one := app.Link{}
			if fault == "" {
				if one, err = ReadLink(text); err != nil {
					fault = err.Error()
				}
			}
			if fault != "" {
				wrong[len(links)] = fault
			}
			links, at = append(links, one), append(at, l.Lines.Load())
		}
		faults, err := l.Put(ctx, links, wrong)
		if err != nil {
			return err
		}
		for i, fault := range faults {
			if fault == "" {
				l.Items.Add(1)
			} else {
				l.Wrong(at[i], fault)
			}
		}
	}
	return nil
}

// line reads a line, or what is wrong with it.
func (l *Loading) line(from *bufio.Reader) (text, fault string, err error) {
	part, err := from.ReadSlice('\n')
	l.Lines.Add(1)
	l.Bytes.Add(int64(len(part)))
	text = strings.TrimRight(string(part), "\r\n")
	for errors.Is(err, bufio.ErrBufferFull) {
		fault = "it is longer than any line may be: is it JSON, a line for each id?"
		part, err = from.ReadSlice('\n')
		l.Bytes.Add(int64(len(part)))
	}
	return text, fault, err
}
