package imports

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"footfall/intake/logs"
	"footfall/visit"
)

const (
	// A counted beginning of fewer lines or visitors may be that of several logs: a monitor asks all
	// servers at once.
	fewLines    = 64
	fewVisitors = 8
	// A line that lies further ahead than clocks differ waits until its time has come; one that lies
	// further ahead than this has no time that can be read.
	mostAhead = 24 * time.Hour
)

// seen is what was found in a file when it was read.
type seen struct {
	begins    bool  // it has a line that is no header
	beginning int64 // the hash of the first one
	is        *Log  // the log that it goes on; nil: none
	start     int64 // the byte behind what is counted
	few       bool  // what is counted is little

	before      upTo        // start
	place       int64       // where the file was read up to, in whole lines
	sum         hash.Hash   // of the bytes before that
	number      int64       // of lines, likewise
	holds       bool        // what the log was claimed for is what the file has
	rest        samples     // of the lines behind start that are to count
	first, last time.Time   // of these, as far as they show times
	nameless    logs.Format // the format of the first one, if it names no host
	ahead       int64       // lines behind place that lie ahead
	comes       time.Time   // when the first of these is to be counted
	size        int64       // of the file then
}

// upTo is what comes before a byte of a file.
type upTo struct {
	sum   hash.Hash
	lines int64
}

// readBeginning reads the line that a file begins with.
func (r *run) readBeginning(s *source) error {
	reader, done, err := s.file.read(0)
	if err != nil {
		return err
	}
	defer done()
	l := lines{from: reader}
	for text, ok := l.next(); ok; text, ok = l.next() {
		if !logs.IsHeader(text) {
			s.begins, s.beginning = true, r.app.hashes.ofBeginning(xxhash.Sum64(text))
			return nil
		}
	}
	if s.file.packed != plain && l.rest() > 0 && l.fault == nil && !logs.IsHeader(l.final()) {
		s.begins, s.beginning = true, r.app.hashes.ofBeginning(xxhash.Sum64(l.final()))
	}
	return l.fault
}

// look reads a file: which of some logs it is, and what is new in it.
func (r *run) look(ctx context.Context, s *source, known []Log) error {
	s.begin(nil)
	s.few = false
	if err := r.match(s, known); err != nil {
		return err
	}
	if s.is != nil {
		var err error
		if s.few, err = r.isFew(s); err != nil {
			return err
		}
	}
	return r.readOn(ctx, s)
}

// begin begins a file anew, as a log of which nothing is counted; nil: a new one.
func (s *source) begin(is *Log) {
	nothing := int64(0)
	s.is, s.start, s.place, s.number, s.sum, s.log = is, 0, 0, 0, sha256.New(), Log{Counted: &nothing}
	if is != nil {
		s.log = *is
	}
}

// match finds the log of which most is counted that a file begins with.
func (r *run) match(s *source, known []Log) error {
	known = slices.DeleteFunc(slices.Clone(known), func(l Log) bool { return knownUpTo(&l) == 0 })
	slices.SortFunc(known, func(a, b Log) int { return cmp.Compare(knownUpTo(&a), knownUpTo(&b)) })
	reader, done, err := s.file.read(0)
	if err != nil {
		return err
	}
	defer done()
	sum := sha256.New()
	at := int64(0)
	for i := range known {
		l := &known[i]
		n, err := io.CopyN(sum, reader, knownUpTo(l)-at)
		at += n
		r.progress.Looked.Add(n)
		if err != nil {
			break // it is shorter, or what is wrong with it is told when the rest is read
		}
		want := l.CountedHash
		if want == nil {
			want = l.Hash
		}
		if bytes.Equal(r.app.hashes.ofSum(sum), want) && (s.is == nil || r.isRather(s, l)) {
			s.is, s.start, s.sum = l, *l.Counted, cloned(sum)
		}
	}
	if s.is == nil {
		return nil
	}
	s.place, s.number, s.log = s.start, s.is.Lines, *s.is
	if s.is.CountedHash == nil { // it was read up to what 0.1.0 had claimed
		s.sum, err = s.file.sumTo(s.start)
	}
	return err
}

// isRather reports whether a file is rather this log than the one that it was found to be, of which
// no more is counted: that of another server it is last, and that of its name first.
func (r *run) isRather(s *source, l *Log) bool {
	if theirs := r.isOfAnother(l); theirs != r.isOfAnother(s.is) {
		return !theirs
	}
	return s.hasNameOf(l) || !s.hasNameOf(s.is)
}

// knownUpTo is how many bytes of a file tell whether it is a log. 0: none do.
func knownUpTo(l *Log) int64 {
	switch {
	case l.CountedHash != nil || *l.Counted == 0:
		return *l.Counted
	case len(l.Skips) > 0: // 0.1.0 has left out lines of it
		return 0
	}
	return l.Claimed
}

func cloned(sum hash.Hash) hash.Hash {
	clone, _ := sum.(hash.Cloner).Clone() // of the standard library's all can
	return clone
}

// isFew reports whether what is counted of a file is little.
func (r *run) isFew(s *source) (bool, error) {
	reader, done, err := s.file.read(0)
	if err != nil {
		return false, err
	}
	defer done()
	l, parser, line, visitors := lines{from: io.LimitReader(reader, s.start)}, logs.NewParser(r.Rules.Format), logs.Line{}, map[uint64]bool{}
	n := 0
	for text, ok := l.next(); ok && (n < fewLines || len(visitors) < fewVisitors); text, ok = l.next() {
		if logs.IsHeader(text) {
			continue
		}
		n++
		if parser.Parse(text, &line) == nil {
			visitors[r.visitorOf(&line)] = true
		}
	}
	return n < fewLines || len(visitors) < fewVisitors, l.fault
}

// visitorOf tells whose visit a line is, as far as the app tells addresses apart.
func (r *run) visitorOf(l *logs.Line) uint64 {
	address, err := netip.ParseAddr(string(l.Client))
	if err == nil {
		address, err = visit.NetworkOf(address, r.app.prefix)
	}
	if err != nil {
		return xxhash.Sum64(l.Client)
	}
	b := address.As16()
	return xxhash.Sum64(b[:])
}

// readOn reads a file on from where it was read to, up to its present end, or to a line that lies
// ahead.
func (r *run) readOn(ctx context.Context, s *source) error {
	s.rest, s.first, s.last, s.nameless = samples{}, time.Time{}, time.Time{}, ""
	s.ahead, s.comes, s.size = 0, time.Time{}, s.file.size()
	s.before = upTo{cloned(s.sum), s.number}
	s.holds = s.is == nil || s.is.Claimed <= s.place
	reader, done, err := s.file.read(s.place)
	if err != nil {
		return err
	}
	defer done()
	l := lines{from: reader, place: s.place, number: s.number, sum: s.sum}
	scan := scan{run: r, source: s, parser: logs.NewParser(r.Rules.Format), after: afterOf(&s.log), latest: r.latest()}
	for text, ok := l.next(); ok && ctx.Err() == nil; text, ok = l.next() {
		if !scan.add(text, &l) {
			s.ahead++
			continue
		}
		s.place, s.number = l.place, l.number
		if s.is != nil && l.place == s.is.Claimed {
			s.holds = bytes.Equal(r.app.hashes.ofSum(l.sum), s.is.Hash)
		}
	}
	r.progress.Looked.Add(l.place - s.start)
	if l.fault != nil && s.file.packed != plain && !errors.Is(l.fault, io.ErrUnexpectedEOF) {
		return l.fault // what was unpacked before that was noticed may be wrong, too
	}
	rest := l.rest()
	switch {
	case s.ahead > 0:
		r.summary.note(s.file.name, "%d of its lines lie ahead of this server's clock: they are counted when their time has come", s.ahead)
	case l.fault != nil:
		r.summary.problem(s.file.name, "%s after line %d: what comes before is read", s.file.readProblem(l.fault), l.number)
	case rest > 0 && s.file.packed != plain && scan.parser.Parse(l.final(), &scan.line) == nil:
		scan.add(l.take(int(rest), 0), &l)
		s.place, s.number = l.place, l.number
	case rest > 0:
		r.summary.note(s.file.name, "its last line, of %d bytes, has no end: it is read when it has one", rest)
	}
	if s.ahead > 0 || l.long > 0 { // the sum has more than the lines that count
		s.sum, err = s.file.sumTo(s.place)
	}
	return cmp.Or(ctx.Err(), err)
}

// scan samples the lines of a file.
type scan struct {
	*run
	source *source
	parser *logs.Parser
	line   logs.Line
	hour   int32
	after  after
	latest time.Time // that is taken for now
}

// add takes the line that was read last; false: it lies ahead, as one before it does.
func (c *scan) add(text []byte, l *lines) bool {
	s := c.source
	parsed := !logs.IsHeader(text) && c.parser.Parse(text, &c.line) == nil
	if s.ahead > 0 || parsed && c.line.Time.After(c.latest) && !c.line.Time.After(c.latest.Add(mostAhead)) {
		if s.comes.IsZero() {
			s.comes = c.line.Time
		}
		return false
	}
	if parsed {
		c.hour = c.line.Hour()
		c.see()
	}
	if logs.IsHeader(text) || parsed && c.after.leavesOut(c.app.hashes, &c.line, text) {
		return true
	}
	hash, ok := c.app.hashes.ofLine(c.hour, text)
	if !ok {
		return true
	}
	one := sampled{hash: hash, place: l.at, count: 1}
	if sample := s.rest.of(c.hour); hash < sample.limit {
		if parsed {
			one.visitor = c.visitorOf(&c.line)
		}
		sample.add(one)
	}
	return true
}

// see notes which times the lines show, and whether they name a host.
func (c *scan) see() {
	s := c.source
	if s.last = c.line.Time; !s.first.IsZero() {
		return
	}
	s.first = c.line.Time
	if len(c.line.Host) == 0 && !bytes.HasPrefix(c.line.Target, []byte("http")) {
		s.nameless = c.line.Format
	}
}
