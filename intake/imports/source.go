package imports

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"footfall/intake/logs"
	"footfall/record/feed"
)

// source is a file that is imported.
type source struct {
	file          *file
	place, number int64          // the end of the last whole line that was read, and its number
	behind        []byte         // the line before the place
	sum           *xxhash.Digest // of the bytes before the place
	known         ReadLogsGetRow // how far an earlier import has counted it
	headed        bool           // it has headers
	numbers       numbering
	parser        *logs.Parser
	line          logs.Line

	lines   *lines             // nil: it is not being read
	queue   []feed.Entry[read] // read, and not sent yet
	at      time.Time          // the time of the first of these
	ended   bool               // no more is to be read now
	checked bool               // that no other server has counted it

	old   *beginning // as far as 0.2 has counted it; nil: not looked for
	tails tails

	size    int64     // of the file when it was last read
	state   string    // of the file when it was last read; "": the tables are not to remember it
	ahead   int64     // lines whose time has not come yet
	comes   time.Time // the time of the first of these
	refused bool      // and the operator must act

	before  int64 // lines of it that were counted before
	changes int   // how often new lines follow such lines, and the other way round. Only for the goroutine that counts
	newest  int64 // what before was at the last new line, and 1; 0: there was none
	summary *Summary
}

// note reports something about a file, once, however often it is read.
func (s *source) note(format string, args ...any) {
	s.summary.note(s.file.name + ": " + fmt.Sprintf(format, args...))
}

// problem reports something that the operator must look at.
func (s *source) problem(format string, args ...any) {
	addOnce(&s.summary.Problems, s.file.name+": "+fmt.Sprintf(format, args...))
}

// addNew adds a new line of a file, before which it has so many that were counted before.
func (s *source) addNew(before int64) {
	if s.newest > 0 && before >= s.newest {
		s.changes += 2
	}
	s.newest = before + 1
}

// begin makes a source ready to be read. A file that was cut, or replaced in place, is read from its start.
func (s *source) begin(only logs.Format, seed uint64) (err error) {
	s.size, s.state = s.file.size(), s.file.state()
	s.ahead, s.comes, s.ended = 0, time.Time{}, false
	if s.place > 0 && !s.goesOn() {
		s.place, s.number, s.behind, s.numbers, s.parser, s.old = 0, 0, nil, numbering{}, nil, nil
	}
	if err := s.file.verify(); err != nil {
		return err
	}
	if s.parser == nil {
		s.parser = logs.NewParser(only)
		if err := s.skip(seed); err != nil {
			return err
		}
	}
	if s.lines, err = s.file.lines(s.place, s.number); err == nil {
		s.lines.text, s.lines.sum = slices.Clone(s.behind), *s.sum
	}
	return err
}

// goesOn reports whether the file still has the line before the place, with its time.
func (s *source) goesOn() bool {
	now := make([]byte, len(s.behind))
	_, err := s.file.handle.ReadAt(now, s.place-int64(len(now)))
	return err == nil && bytes.Equal(now, s.behind)
}

// text returns the next line; false: there is no more now.
func (s *source) text() ([]byte, bool) {
	text, ok := s.lines.next()
	if !ok && s.lines.fault == nil && (s.file.packed != plain || s.file.stdin != nil) {
		text, ok = s.lines.last() // no more is going to follow
	}
	return text, ok
}

// wait ends reading before the line that was read last, whose time has not come yet.
func (s *source) wait(following bool) {
	s.comes, s.ahead = s.line.Time, 1
	s.place, s.number = s.lines.at, s.lines.number-1
	sum := s.lines.sumBefore // the lines may be read on
	s.behind, s.sum = slices.Clone(s.lines.before), &sum
	if !following {
		for _, ok := s.text(); ok; _, ok = s.text() {
			s.ahead++
		}
		s.note("%d of its lines lie ahead of this server's clock: they are counted when their time has come", s.ahead)
	}
	s.end()
}

// stop ends reading at the end of the file.
func (s *source) stop() {
	l := s.lines
	s.place, s.number, s.behind, s.sum = l.place, l.number, l.before, &l.sum
	switch {
	case l.fault != nil:
		s.problem("%s after line %d: what comes before is read", s.file.readProblem(l.fault), l.number)
	case l.rest > 0:
		s.note("its last line, of %d bytes, has no end: it is read when it has one", l.rest)
	}
	if l.fault != nil || l.rest > 0 {
		s.state = ""
	}
	s.end()
}

// end lets go what a source needed while it was read.
func (s *source) end() {
	if s.lines != nil {
		s.lines.done()
	}
	s.lines, s.ended = nil, true
	if s.ahead > 0 || s.file.state() != s.state {
		s.state = ""
	}
}

// findStart finds the time of the first line that shows one: files are read in this order. Standard input
// comes first.
func (s *source) findStart(only logs.Format) error {
	if s.file.stdin != nil {
		return nil
	}
	l, err := s.file.lines(s.place, 0)
	if err != nil {
		return err
	}
	defer l.done()
	parser := logs.NewParser(only)
	if s.parser != nil {
		parser.Head = s.parser.Head
	}
	const most = 100
	for range most {
		text, ok := l.next()
		if !ok {
			return nil
		}
		if !parser.Header(text) {
			_ = parser.Parse(text, &s.line)
			if s.at = s.line.Time; !s.at.IsZero() {
				return nil
			}
		}
	}
	return nil
}

// refuse says why no line of a file is counted.
func (s *source) refuse(format string, args ...any) {
	s.refused, s.queue = true, nil
	s.problem(format, args...)
	s.end()
	s.state = ""
}
