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

// source is a file that is being imported. It also records how far the file was read.
type source struct {
	file          *file
	place, number int64          // offset after the last complete line that was read, and the number of this line
	lastLine      []byte         // the line that ends at place
	sum           *xxhash.Digest // hash of all bytes before place
	earlier       ReadLogsGetRow // describes how far an earlier import read the file
	headed        bool           // the file contains header lines
	numbers       numbering
	parser        *logs.Parser
	line          logs.Line

	lines    *lines                // nil while the file is not being read
	queue    []feed.Entry[logLine] // lines that were read, but not passed to the feed yet
	nextTime time.Time             // the time of the next line in the queue or, before reading, in the file
	ended    bool                  // no further line can be read at present
	checked  bool                  // checkServer has checked the file

	old   *beginning // the part that Footfall 0.2 counted; nil: not determined yet
	tails tails

	size       int64     // size of the file when reading started
	state      string    // result of file.state when reading started; "": a later import must read the file again
	ahead      int64     // number of lines that wait until they can be counted
	aheadUntil time.Time // the time of the first waiting line
	refused    bool      // the file is not imported; Summary.Problems contains the reason

	counted int64 // number of lines that had already been counted before they were read
	changes int   // how often new and already counted lines alternate; used only by the goroutine that counts
	newest  int64 // 1 + the number of already counted lines before the last new line; 0: no new line yet
	summary *Summary
}

// note adds a note about the file to the summary, unless the summary already has this note.
func (s *source) note(format string, args ...any) {
	s.summary.note(s.file.name + ": " + fmt.Sprintf(format, args...))
}

func (s *source) problem(format string, args ...any) {
	addOnce(&s.summary.Problems, s.file.name+": "+fmt.Sprintf(format, args...))
}

// addNew updates s.changes after a new line was counted. before is how many earlier lines of the file had already been
// counted.
func (s *source) addNew(before int64) {
	if s.newest > 0 && before >= s.newest {
		s.changes += 2
	}
	s.newest = before + 1
}

// begin starts to read a source at the place where the previous reading stopped. If the file was truncated or overwritten
// since then, begin starts at the beginning of the file.
func (s *source) begin(only logs.Format, seed uint64) (err error) {
	s.size, s.state = s.file.size(), s.file.state()
	s.ahead, s.aheadUntil, s.ended = 0, time.Time{}, false
	if s.place > 0 && !s.stillHasLastLine() {
		s.place, s.number, s.lastLine, s.numbers, s.parser, s.old = 0, 0, nil, numbering{}, nil, nil
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
		s.lines.text, s.lines.sum = slices.Clone(s.lastLine), *s.sum
	}
	return err
}

// stillHasLastLine reports whether the last line that was read is still at the same offset. If not, the file was truncated
// or overwritten.
func (s *source) stillHasLastLine() bool {
	now := make([]byte, len(s.lastLine))
	_, err := s.file.handle.ReadAt(now, s.place-int64(len(now)))
	return err == nil && bytes.Equal(now, s.lastLine)
}

// text returns the next line, or false if the file contains no further line now.
func (s *source) text() ([]byte, bool) {
	text, ok := s.lines.next()
	if !ok && s.lines.fault == nil && (s.file.packed != plain || s.file.stdin != nil) {
		text, ok = s.lines.last() // the last line is complete even without \n, because the file cannot grow
	}
	return text, ok
}

// wait stops reading the file, because the last line cannot be counted yet: its time is in the future, or the key of its
// day is missing. The next reading starts with this line.
func (s *source) wait(following bool) {
	s.aheadUntil, s.ahead = s.line.Time, 1
	s.place, s.number = s.lines.start, s.lines.number-1
	sum := s.lines.sumBefore // a copy, because reading further lines changes sumBefore
	s.lastLine, s.sum = slices.Clone(s.lines.previous), &sum
	if !following {
		for _, ok := s.text(); ok; _, ok = s.text() {
			s.ahead++
		}
		s.note("%d of its lines are ahead of this server's clock: they are counted when their time has come", s.ahead)
	}
	s.end()
}

// stop stops reading the file at its end, or after a read error.
func (s *source) stop() {
	l := s.lines
	s.place, s.number, s.lastLine, s.sum = l.place, l.number, l.previous, &l.sum
	switch {
	case l.fault != nil:
		s.problem("%s after line %d: the lines before that are read", s.file.readProblem(l.fault), l.number)
	case l.unfinished > 0:
		s.note("its last line, of %d bytes, is incomplete: it is read when it is complete", l.unfinished)
	}
	if l.fault != nil || l.unfinished > 0 {
		s.state = ""
	}
	s.end()
}

// end closes the reader. If the file has changed since begin, or if it contains lines that cannot be counted yet, end
// clears s.state, so that a later import reads the file again.
func (s *source) end() {
	if s.lines != nil {
		s.lines.release()
	}
	s.lines, s.ended = nil, true
	if s.ahead > 0 || s.file.state() != s.state {
		s.state = ""
	}
}

// findStart sets s.nextTime to the time of the first line that was not read yet. Files are read in the order of these
// times. Standard input is read first, because its nextTime stays zero.
func (s *source) findStart(only logs.Format) error {
	if s.file.stdin != nil {
		return nil
	}
	l, err := s.file.lines(s.place, 0)
	if err != nil {
		return err
	}
	defer l.release()
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
			if s.nextTime = s.line.Time; !s.nextTime.IsZero() {
				return nil
			}
		}
	}
	return nil
}

// refuse stops reading the file, and reports a problem.
func (s *source) refuse(format string, args ...any) {
	s.refused, s.queue = true, nil
	s.problem(format, args...)
	s.end()
	s.state = ""
}
