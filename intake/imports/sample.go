package imports

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// sampleSize is how many different lines of an hour a sample has at most.
const sampleSize = 256

// sampled is a line of a sample.
type sampled struct {
	hash    uint64
	place   int64  // the byte of its log at which it stands first
	count   uint32 // how often it is in this hour
	visitor uint64 // that it tells of; known of lines that were just read
}

// sample is those lines of an hour of a log that have the smallest hashes, in order of hashes. Two
// samples are compared by the lines below the lower of their limits, so that those of few lines are
// compared whole.
type sample struct {
	limit uint64 // all lines with a lower hash are there; math.MaxUint64: all lines
	lines []sampled
}

// samples are those of a log by hour.
type samples map[int32]*sample

func (s samples) of(hour int32) *sample {
	one := s[hour]
	if one == nil {
		one = &sample{limit: math.MaxUint64}
		s[hour] = one
	}
	return one
}

// hours are the hours that have lines, in order.
func (s samples) hours() []int32 { return slices.Sorted(maps.Keys(s)) }

// add adds lines that are equal.
func (s *sample) add(l sampled) {
	if l.hash >= s.limit {
		return
	}
	at, there := slices.BinarySearchFunc(s.lines, l.hash, func(l sampled, hash uint64) int { return cmp.Compare(l.hash, hash) })
	if there {
		same := &s.lines[at]
		same.count += l.count
		same.place = min(same.place, l.place)
		return
	}
	s.lines = slices.Insert(s.lines, at, l)
	s.limitTo(s.limit)
}

// limitTo lets go of lines that are not below a limit, or too many.
func (s *sample) limitTo(limit uint64) {
	if len(s.lines) > sampleSize {
		limit = min(limit, s.lines[sampleSize].hash)
	}
	s.limit = min(s.limit, limit)
	n := len(s.lines)
	for n > 0 && s.lines[n-1].hash >= s.limit {
		n--
	}
	s.lines = s.lines[:n]
}

// merge adds the lines of another part of the same log.
func (s *sample) merge(other *sample) {
	s.limitTo(other.limit)
	for _, l := range other.lines {
		s.add(l)
	}
}

// below are the lines below a limit.
func (s *sample) below(limit uint64) []sampled {
	n, _ := slices.BinarySearchFunc(s.lines, limit, func(l sampled, hash uint64) int { return cmp.Compare(l.hash, hash) })
	return s.lines[:n]
}

// bytes are what the table keeps of a sample.
func (s *sample) bytes() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 8+20*len(s.lines)), s.limit)
	for _, l := range s.lines {
		b = binary.BigEndian.AppendUint64(b, l.hash)
		b = binary.BigEndian.AppendUint64(b, uint64(l.place)) //nolint:gosec // it is not negative
		b = binary.BigEndian.AppendUint32(b, l.count)
	}
	return b
}

func sampleOf(b []byte) *sample {
	s := &sample{limit: binary.BigEndian.Uint64(b)}
	for b = b[8:]; len(b) >= 20; b = b[20:] {
		s.lines = append(s.lines, sampled{
			hash: binary.BigEndian.Uint64(b), place: int64(binary.BigEndian.Uint64(b[8:])), count: binary.BigEndian.Uint32(b[16:]),
			//nolint:gosec // as it was written
		})
	}
	return s
}

// tailLines is how many lines the tail of a log has at least, and longestTail at most. It goes back
// to the first line of its last second.
const (
	tailLines   = 64
	longestTail = 4096
)

// tailLine is a line of a tail.
type tailLine struct {
	hash   uint64
	second int64 // since 1970; 0: it shows none
	hour   int32 // of its key
	raw    bool  // the hash is not keyed yet
}

// tail is lines that follow each other, up to the one that was counted last.
type tail []tailLine

// add adds a line. last is the latest second of all lines. Marks of before keep the lines that they have.
func (t tail) add(l tailLine, last int64) tail {
	if len(t) == cap(t) {
		t = append(make(tail, 0, len(t.since(last))+longestTail), t.since(last)...)
	}
	return append(t, l)
}

// since are the lines that are kept, where this is the latest second.
func (t tail) since(last int64) tail {
	t = t[max(0, len(t)-longestTail):]
	from := max(0, len(t)-tailLines)
	for i, l := range t[:from] {
		if l.second == last {
			return t[i:]
		}
	}
	return t[from:]
}

// bytes are what the table keeps of a tail whose log shows this second as its last.
func (t tail) bytes(h *hashes, last int64) []byte {
	b := []byte{}
	for _, l := range t.since(last) {
		if l.raw {
			l.hash, _ = h.ofXX(l.hour, l.hash)
		}
		before := int64(math.MaxUint32)
		if l.second > 0 {
			before = min(last-l.second, math.MaxUint32-1)
		}
		b = binary.BigEndian.AppendUint64(b, l.hash)
		b = binary.BigEndian.AppendUint32(b, uint32(before)) //nolint:gosec // it is in range
	}
	return b
}

func tailOf(b []byte, last int64) (t tail) {
	for ; len(b) >= 12; b = b[12:] {
		l := tailLine{hash: binary.BigEndian.Uint64(b)}
		if before := binary.BigEndian.Uint32(b[8:]); before < math.MaxUint32 {
			l.second = last - int64(before)
		}
		t = append(t, l)
	}
	return t
}
