package imports

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"footfall/db"
	"footfall/intake/logs"
)

// stretchLines is how many lines a stretch has at most: with 8 bytes of each, a row of the database
// is stored in one piece.
const stretchLines = 200

// stretch is lines that follow each other and show the same hour.
type stretch struct {
	line, place int64 // the number of the first one, from 0, and the byte at which it begins
	hour        int32
}

// beginning is where a log may go on that was counted so far.
type beginning struct {
	place    int64
	before   int64       // lines
	first    time.Time   // the time of its first line
	hostless logs.Format // the format of that, if it names no host
}

// scanner reads a file once, before anything of it is counted. It finds out which log that is, and
// keeps the hashes of the lines which that has not claimed. It can go on where the file has grown.
type scanner struct {
	lines
	done   func()
	parser *logs.Parser
	hours  *hours
	line   logs.Line
	read   *atomic.Int64 // bytes, for who watches
	told   int64         // of these
	most   int64         // lines of a stretch

	logs []*db.LogsListRow // that it may be, by how much they have claimed
	is   *db.LogsListRow   // the longest one that it begins with; nil: none

	base      int64 // lines that this has claimed
	hashes    []uint64
	stretches []stretch // of these, in order; the first one may begin before them

	places     []int64 // where a beginning may be, in order
	beginnings []beginning
	final      []byte    // the last line
	last       time.Time // that it shows
}

func newScanner(f *file, only logs.Format, read *atomic.Int64, most int, claimed map[int64]*db.LogsListRow) (*scanner, error) {
	reader, done, err := f.read(0)
	if err != nil {
		return nil, err
	}
	s := &scanner{lines: lines{from: reader, sum: sha256.New()}, done: done, parser: logs.NewParser(only), hours: newHours(), read: read, most: int64(most), places: []int64{0}}
	for _, l := range claimed {
		s.logs, s.places = append(s.logs, l), append(s.places, l.Next)
	}
	slices.SortFunc(s.logs, func(a, b *db.LogsListRow) int { return int(min(max(a.Claimed-b.Claimed, -1), 1)) })
	slices.Sort(s.places)
	return s, nil
}

// run reads to the present end.
func (s *scanner) run() {
	for {
		text, ok := s.next()
		if !ok {
			break
		}
		s.begin(text)
		s.final = append(s.final[:0], text[:min(len(text), firstBuffer)]...)
		s.add(text)
		s.identify()
	}
	s.read.Add(s.place - s.told)
	s.told = s.place
	if len(s.final) > 0 && s.parser.Parse(s.final, &s.line) == nil {
		s.last = s.line.Time
	}
}

// begin notes what is where a log may go on, by the first line there that can be read.
func (s *scanner) begin(text []byte) {
	for len(s.places) > 0 && s.places[0] <= s.at {
		if s.places[0] == s.at && (len(s.beginnings) == 0 || s.beginnings[len(s.beginnings)-1].place < s.at) {
			s.beginnings = append(s.beginnings, beginning{place: s.at, before: s.number - 1})
		}
		s.places = s.places[1:]
	}
	if n := len(s.beginnings); n == 0 || !s.beginnings[n-1].first.IsZero() || s.parser.Parse(text, &s.line) != nil {
		return
	}
	for i := len(s.beginnings) - 1; i >= 0 && s.beginnings[i].first.IsZero(); i-- {
		s.beginnings[i].first = s.line.Time
		if len(s.line.Host) == 0 && !bytes.HasPrefix(s.line.Target, []byte("http")) {
			s.beginnings[i].hostless = s.line.Format
		}
	}
}

// beginningAt is what is where a log goes on.
func (s *scanner) beginningAt(place int64) beginning {
	for _, b := range s.beginnings {
		if b.place == place {
			return b
		}
	}
	return beginning{place: place, before: s.number}
}

// add keeps the hash of a line.
func (s *scanner) add(text []byte) {
	number := s.number - 1
	hour, ok := s.hours.of(text)
	if n := len(s.stretches); n == 0 || ok && hour != s.stretches[n-1].hour || number-s.stretches[n-1].line >= s.most {
		if !ok && n > 0 {
			hour = s.stretches[n-1].hour
		}
		s.stretches = append(s.stretches, stretch{number, s.at, hour})
		s.read.Add(s.place - s.told)
		s.told = s.place
	}
	s.hashes = append(s.hashes, xxhash.Sum64(text))
}

// identify looks whether what was read so far is all that a log has claimed.
func (s *scanner) identify() {
	for ; len(s.logs) > 0 && s.logs[0].Claimed <= s.place; s.logs = s.logs[1:] {
		if l := s.logs[0]; l.Claimed == s.place && bytes.Equal(l.Hash, s.hash()) {
			s.is = l
			s.settle()
		}
	}
}

// settle lets go of the hashes of lines that are claimed: all that were read.
func (s *scanner) settle() {
	s.base, s.hashes = s.number, s.hashes[:0]
	if n := len(s.stretches); n > 0 {
		s.stretches = append(s.stretches[:0], s.stretches[n-1])
	}
}

// end is the number of the first line behind a stretch.
func (s *scanner) end(i int) int64 {
	if i+1 < len(s.stretches) {
		return s.stretches[i+1].line
	}
	return s.number
}

// unclaimed are the lines that are kept, as the book has them; the first of them go on with a
// stretch that begins at the line goesOn.
func (s *scanner) unclaimed() (goesOn int64, lines []logLines, lastHour int32) {
	for i, t := range s.stretches {
		from, to := max(t.line, s.base), s.end(i)
		if from >= to {
			continue
		}
		if len(lines) == 0 {
			goesOn = t.line
		}
		hashes := make([]byte, 0, 8*(to-from))
		for _, h := range s.hashes[from-s.base : to-s.base] {
			hashes = binary.BigEndian.AppendUint64(hashes, h)
		}
		lines = append(lines, logLines{db.LogLinesInHoursRow{Line: from, Hour: t.hour, Hashes: hashes}})
		lastHour = max(lastHour, t.hour)
	}
	return goesOn, lines, lastHour
}
