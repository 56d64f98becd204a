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

// longestLine is the maximum size of a line in bytes. No valid line needs more.
const longestLine = 16 << 10

// Loading stores links from ids to persons. From contains one link per line, in the JSON syntax of PUT /people. The number
// of lines is not limited.
type Loading struct {
	From io.Reader
	// Put stores links. wrong maps the indexes of links that could not be parsed to their errors. For each link, Put
	// returns its error, or "" if the link is stored.
	Put   func(ctx context.Context, links []app.Link, wrong map[int]string) ([]string, error)
	Wrong func(line int64, why string) // called for each line whose link is not stored

	Bytes, Lines atomic.Int64 // numbers of bytes and lines that were read so far
	Items        atomic.Int64 // number of stored links, including links that had been stored before
}

// Run reads all lines and stores their links. If Run returns an error, some links may already be stored.
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

// line reads the next line. If the line is too long, line skips the rest of it, and returns an error text in fault.
func (l *Loading) line(from *bufio.Reader) (text, fault string, err error) {
	part, err := from.ReadSlice('\n')
	l.Lines.Add(1)
	l.Bytes.Add(int64(len(part)))
	text = strings.TrimRight(string(part), "\r\n")
	for errors.Is(err, bufio.ErrBufferFull) {
		fault = "it is longer than a line may be: write JSON with one line for each id"
		part, err = from.ReadSlice('\n')
		l.Bytes.Add(int64(len(part)))
	}
	return text, fault, err
}
