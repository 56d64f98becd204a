package imports

import (
	"bytes"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"footfall/counter"
	"footfall/intake/logs"
)

const (
	// named is how many bytes a log is known by.
	named = 64 << 10
	// markEvery is how far the marks of a log lie apart.
	markEvery = 64 << 10
	// markLines is how many lines are hashed for a mark. One alone may be in the logs of two
	// servers, as where the same monitor asks both.
	markLines = 4
)

// window hashes the last lines of a log.
type window struct {
	hashes [markLines]uint64
	places [markLines]int64
	count  int
}

// add adds a line, and returns where the first of the last lines begins, and their hash; false:
// there are too few.
func (w *window) add(line []byte, at int64) (place int64, lines uint64, ok bool) {
	oldest := w.count % markLines
	w.hashes[oldest], w.places[oldest] = xxhash.Sum64(line), at
	w.count++
	if w.count < markLines {
		return 0, 0, false
	}
	for i := range markLines {
		lines = bits.RotateLeft64(lines, 23)*0x9e3779b97f4a7c15 ^ w.hashes[(w.count+i)%markLines]
	}
	return w.places[w.count%markLines], lines, true
}

// hit is where lines of a log were found that are marked in another.
type hit struct {
	place int64
	mark  counter.LogMark
}

// scanner reads a log once, before anything of it is counted: it marks lines, and looks for those
// that are marked in other logs. It can go on where the log has grown.
type scanner struct {
	lines
	window   window
	done     func()
	parser   *logs.Parser
	read     *atomic.Int64 // bytes, for who watches
	nextMark int64

	marks       []counter.LogMark // of this log; they do not have its number yet
	hits        []hit
	before      int64       // lines before what is to be counted
	first, last time.Time   // of that: the times of its first line, and of the last one looked at
	final       []byte      // of that: its last line
	hostless    logs.Format // of that: the format of its first line, if it names no host
}

func newScanner(f *file, only logs.Format, read *atomic.Int64) (*scanner, error) {
	reader, done, err := f.read(0)
	if err != nil {
		return nil, err
	}
	return &scanner{lines: lines{from: reader}, done: done, parser: logs.NewParser(only), read: read}, nil
}

// run reads to the present end. Lines before byte from were counted. known are the marks of all
// logs, and own is the number of this one.
func (s *scanner) run(from int64, known map[uint64]counter.LogMark, own int64) {
	var line logs.Line
	seen := func(text []byte) {
		if s.parser.Parse(text, &line) != nil {
			return
		}
		if s.first.IsZero() {
			s.first = line.Time
			if len(line.Host) == 0 && !bytes.HasPrefix(line.Target, []byte("http")) {
				s.hostless = line.Format
			}
		}
		s.last = line.Time
	}
	told := s.place
	for {
		text, ok := s.next()
		if !ok {
			break
		}
		if s.at < from {
			s.before++
		} else if s.final = append(s.final[:0], text[:min(len(text), named)]...); s.first.IsZero() {
			seen(text)
		}
		place, hash, ok := s.window.add(text, s.at)
		if !ok {
			continue
		}
		if place >= s.nextMark {
			s.marks = append(s.marks, counter.LogMark{Place: place, Lines: hash})
			s.nextMark = (place/markEvery + 1) * markEvery
			if place >= from {
				seen(text)
			}
			s.read.Add(s.place - told)
			told = s.place
		}
		if mark, ok := known[hash]; ok && mark.Log != own {
			s.hits = append(s.hits, hit{place, mark})
		}
	}
	s.read.Add(s.place - told)
	if len(s.final) > 0 {
		seen(bytes.Clone(s.final))
	}
}
