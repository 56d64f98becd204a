package imports

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"footfall/intake/logs"
)

// after leaves out lines that were counted before, as whoever imports them says.
type after struct {
	second int64  // lines of this one and before it; 0: none
	but    []byte // of that very second, only lines with these hashes, 8 bytes each, each once
}

func afterOf(l *Log) after {
	if l.After == nil {
		return after{}
	}
	return after{l.After.Unix(), l.AfterLines}
}

// leavesOut reports whether a line is left out.
func (a *after) leavesOut(h *hashes, l *logs.Line, text []byte) bool {
	if at := l.Time.Unix(); at != a.second {
		return at < a.second
	}
	hash, _ := h.ofLine(l.Hour(), text)
	for i := 0; i < len(a.but); i += 8 {
		if binary.BigEndian.Uint64(a.but[i:]) == hash {
			a.but = slices.Delete(slices.Clone(a.but), i, i+8) // whoever has the longer list keeps it
			return true
		}
	}
	return false
}

// endingIn are the lines of a second that are the last ones of some logs.
func endingIn(second int64, of []*shared) (lines []byte) {
	for _, o := range of {
		if o.log.LastAt == nil || o.log.LastAt.Unix() != second {
			continue
		}
		for _, l := range tailOf(o.log.Tail, second) {
			if l.second == second {
				lines = binary.BigEndian.AppendUint64(lines, l.hash)
			}
		}
	}
	return lines
}

// Why a file cannot go on behind the last lines of a log.
var (
	errNowhere = errors.New("none of its lines is the one that was counted last")
	errTwice   = errors.New("it has the lines that were counted last at several places")
)

// findBehind finds where a file goes on behind the last lines of a log: behind all of its tail or, where
// the file begins within that, behind what it has of it.
func (r *run) findBehind(s *source, of *Log) (behind place, err error) {
	t := tailOf(of.Tail, 0)
	t = t[max(0, len(t)-tailLines):]
	l, err := s.file.lines(place{})
	if err != nil {
		return behind, err
	}
	defer l.close()
	var times, lines int
	var recent []uint64
	parser, line, hour := logs.NewParser(r.Rules.Format), logs.Line{}, int32(0)
	for text, ok := l.next(); ok && len(t) > 0; text, ok = l.next() {
		if parser.Header(text) {
			continue
		}
		if lines++; parser.Time(text, &line) {
			hour = line.Hour()
		}
		hash, _ := r.app.hashes.ofLine(hour, text)
		recent = append(recent, hash)
		recent = recent[max(0, len(recent)-len(t)):]
		if (len(recent) == len(t) || len(recent) == lines) && t.endsWith(recent) {
			behind = l.here() // without its hash
			times++
		}
	}
	switch {
	case l.fault != nil && !errors.Is(l.fault, io.ErrUnexpectedEOF):
		return behind, l.fault
	case times == 0:
		return behind, errNowhere
	case times > 1:
		return behind, errTwice
	}
	return behind, nil
}

// endsWith reports whether the last lines of a tail have these hashes.
func (t tail) endsWith(hashes []uint64) bool {
	return slices.EqualFunc(t[len(t)-len(hashes):], hashes, func(l tailLine, hash uint64) bool { return l.hash == hash })
}
