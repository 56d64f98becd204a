package imports

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"footfall/intake/logs"
	"footfall/record"
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

// source is a file that is imported.
type source struct {
	file      *file
	begins    bool  // it has a line that is no header
	headed    bool  // it begins with a header
	beginning int64 // the hash of the first one
	fault     error // why that could not be read

	is      *Log      // the log that it goes on, as the book has it; nil: none
	log     Log       // that it is
	start   place     // behind what of it is counted, with its SHA-256
	quick   hash.Hash // of the same
	end     place     // behind what was read, with the quick hash
	counted place     // behind what was read for counting
	few     bool      // what is counted is little, and of a file of another name
	holds   bool      // what the log was claimed for is what the file has
	moved   bool      // it takes the place of the log, and begins elsewhere

	header   logs.Header // the last one before headedTo
	headedTo int64

	rest        samples     // of the lines between start and end that are to count
	first, last time.Time   // of these, as far as they show times
	nameless    logs.Format // the format of the first one, if it names no host
	ahead       int64       // lines behind end that lie ahead
	comes       time.Time   // when the first of these is to be counted
	size        int64       // of the file when it was read
	state       string      // likewise, if there is nothing behind end

	position        *record.Position // nil: nothing of it is to be counted
	shorter         []*source        // with which it begins, that are read where it is not
	refused         bool             // and somebody must look at it
	toldBefore      bool
	problems, notes []string
	reading
}

// isNew reports whether something of a file is to be counted.
func (s *source) isNew() bool { return s.end.at > s.start.at }

// note tells something of a file, once, however often it is looked at.
func (s *source) note(format string, args ...any) { s.tell(&s.notes, format, args) }

// problem tells what somebody must look at.
func (s *source) problem(format string, args ...any) { s.tell(&s.problems, format, args) }

func (s *source) tell(list *[]string, format string, args []any) {
	if text := s.file.name + ": " + fmt.Sprintf(format, args...); !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// refuse says why nothing more of a file is counted.
func (s *source) refuse(format string, args ...any) {
	s.position, s.refused = nil, true
	s.problem(format, args...)
}

// readBeginning reads the line that a file begins with. Where that is another one than before, the
// file was cut.
func (r *run) readBeginning(s *source) error {
	was := s.beginning
	s.begins, s.beginning = false, 0
	l, err := s.file.lines(place{})
	if err != nil {
		return err
	}
	defer l.close()
	text, ok := l.next()
	s.headed = ok && logs.IsHeader(text)
	for ok && logs.IsHeader(text) {
		text, ok = l.next()
	}
	if !ok {
		text, ok = l.final(), s.file.packed != plain && l.rest() > 0 && l.fault == nil && !logs.IsHeader(l.final())
	}
	if ok {
		s.begins, s.beginning, l.fault = true, r.app.hashes.ofBeginning(xxhash.Sum64(text)), nil
	}
	if s.beginning != was || s.file.packed == plain && s.file.size() < s.end.at {
		s.headedTo = 0
		s.begin(nil)
	}
	return l.fault // that comes later is told when all is read
}

// begin begins a file anew, as a log of which nothing is counted; nil: a new one.
func (s *source) begin(is *Log) {
	s.is, s.start, s.quick, s.end, s.log, s.few, s.moved = is, place{}, nil, place{}, Log{Counted: new(int64)}, false, false
	if is != nil {
		s.log = *is
	}
}

// goOn goes on with a log behind what is counted of it.
func (s *source) goOn(is *Log, from place, quick hash.Hash) {
	s.begin(is)
	s.start, s.quick, s.end = from, quick, place{from.at, from.lines, quick}
}

// match finds the log of which most is counted that a file begins with; or, where it begins with none,
// one that was begun with its first line, and of which nothing is counted yet.
func (r *run) match(s *source, known []Log) error {
	read, quick, was := s.start, s.quick, s.log.ID
	s.begin(nil)
	known = slices.Clone(known)
	slices.SortFunc(known, func(a, b Log) int { return cmp.Compare(knownUpTo(&a), knownUpTo(&b)) })
	if n := len(known) - 1; n >= 0 && known[n].ID == was && read.at > 0 && s.counted.at == read.at && *known[n].Counted == read.at &&
		bytes.Equal(known[n].CountedHash, r.app.hashes.ofSum(read.sum)) { // this import has counted it, to where it was read
		s.goOn(&known[n], read, quick)
		return nil
	}
	if err := r.matchBytes(s, known); err != nil {
		return err
	}
	if s.is != nil && (r.isOfAnother(s.is) || !s.hasNameOf(s.is)) {
		few, err := r.isFew(s)
		if err != nil {
			return err
		}
		if few && (r.Another || r.isOfAnother(s.is)) {
			s.begin(nil)
		}
		s.few = few && s.is != nil
	}
	for i := range known {
		if l := &known[i]; s.is == nil && *l.Counted == 0 && l.Beginning != nil && !r.isOfAnother(l) && r.ours(l.ID) == nil {
			r.beginWith(s, l)
		}
	}
	return nil
}

// beginWith makes a file a log that was begun, and of which nothing is counted yet.
func (r *run) beginWith(s *source, l *Log) {
	s.begin(l)
	if !r.After.IsZero() {
		s.log.After, s.log.AfterLines = nil, nil // which lines are left out is found anew
	}
}

// matchBytes reads a file up to where logs are counted, in the order of these places.
func (r *run) matchBytes(s *source, known []Log) error {
	l, err := s.file.lines(place{})
	if err != nil {
		return err
	}
	defer l.close()
	sum, quick := sha256.New(), r.app.hashes.quick()
	both := io.MultiWriter(sum, quick)
	for i := range known {
		k := &known[i]
		n, err := io.CopyBuffer(both, io.LimitReader(l.from, knownUpTo(k)-l.place), l.buffer)
		l.place += n
		r.progress.Looked.Add(n)
		if err != nil || l.place < knownUpTo(k) {
			break // it is shorter, or what is wrong with it is told when the rest is read
		}
		want := k.CountedHash
		if want == nil {
			want = k.Hash
		}
		if l.place > 0 && bytes.Equal(r.app.hashes.ofSum(sum), want) && (s.is == nil || r.isRather(s, k)) {
			s.goOn(k, place{*k.Counted, k.Lines, cloned(sum)}, cloned(quick))
		}
	}
	if s.is != nil && s.is.CountedHash == nil { // it was read up to what 0.1.0 had claimed
		return r.goOnAt(s, s.is, s.start)
	}
	return nil
}

// goOnAt is goOn for a place that another log has.
func (r *run) goOnAt(s *source, is *Log, at place) error {
	sum, quick := sha256.New(), r.app.hashes.quick()
	err := s.file.sumTo(io.MultiWriter(sum, quick), at.at)
	s.goOn(is, place{at.at, at.lines, sum}, quick)
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

// isFew reports whether what is counted of a file is little.
func (r *run) isFew(s *source) (bool, error) {
	l, err := s.file.lines(place{})
	if err != nil {
		return false, err
	}
	defer l.close()
	parser, line, visitors := logs.NewParser(r.Rules.Format), logs.Line{}, map[uint64]bool{}
	n := 0
	for n < fewLines || len(visitors) < fewVisitors {
		text, ok := l.next()
		if !ok && l.place < s.start.at {
			return true, l.fault
		} else if !ok || l.place > s.start.at {
			return true, nil
		}
		if !parser.Header(text) {
			n++
			if parser.Parse(text, &line) == nil {
				visitors[r.visitorOf(&line)] = true
			}
		}
	}
	return false, nil
}

// visitorOf tells whose visit a line is, as far as the app tells addresses apart.
func (r *run) visitorOf(l *logs.Line) uint64 {
	if bytes.IndexByte(l.Client, ':') >= 0 {
		if address, err := netip.ParseAddr(string(l.Client)); err == nil {
			if address, err = visit.NetworkOf(address, r.app.prefix); err == nil {
				b := address.As16()
				return xxhash.Sum64(b[:])
			}
		}
	}
	return xxhash.Sum64(l.Client)
}

// readOn reads a file on from what is counted of it, up to its present end, or to a line that lies
// ahead.
func (r *run) readOn(ctx context.Context, s *source) error {
	s.rest, s.first, s.last, s.nameless = samples{}, time.Time{}, time.Time{}, ""
	s.ahead, s.comes, s.size, s.state = 0, time.Time{}, s.file.size(), s.file.state()
	s.holds = s.is == nil || s.is.Claimed <= s.start.at
	if s.quick == nil {
		s.start.sum, s.quick = sha256.New(), r.app.hashes.quick()
	}
	parser, err := s.parserAt(r.Rules.Format, s.start.at)
	if err != nil {
		return err
	}
	l, err := s.file.lines(place{s.start.at, s.start.lines, s.quick})
	if err != nil {
		return err
	}
	defer l.close()
	scan := scan{run: r, source: s, parser: parser, after: afterOf(&s.log), latest: r.latest()}
	each := func(text []byte) {
		if s.ahead == 0 && scan.add(text, l.at) {
			s.holds = s.holds || l.place == s.is.Claimed && bytes.Equal(r.app.hashes.ofSum(l.sumTo(l.start)), s.is.Hash)
			return
		}
		if s.ahead++; s.ahead == 1 {
			s.end, s.comes = l.before(), scan.line.Time
		}
	}
	for text, ok := l.next(); ok && ctx.Err() == nil; text, ok = l.next() {
		each(text)
	}
	r.progress.Looked.Add(l.place - s.start.at)
	if l.fault != nil && s.file.packed != plain && !errors.Is(l.fault, io.ErrUnexpectedEOF) {
		return l.fault // what was unpacked before that was noticed may be wrong, too
	}
	rest := l.rest()
	if rest > 0 && l.fault == nil && s.file.packed != plain && scan.parser.Parse(l.final(), &scan.line) == nil {
		each(l.take(int(rest), 0))
		rest = 0
	}
	switch {
	case s.ahead > 0:
		s.note("%d of its lines lie ahead of this server's clock: they are counted when their time has come", s.ahead)
	case l.fault != nil:
		s.problem("%s after line %d: what comes before is read", s.file.readProblem(l.fault), l.number)
	case rest > 0:
		s.note("its last line, of %d bytes, has no end: it is read when it has one", rest)
	}
	if s.ahead == 0 {
		s.end = l.here()
	}
	if s.ahead == 0 && l.long > 0 { // the sum has more than the lines that count
		s.end.sum = r.app.hashes.quick()
		err = s.file.sumTo(s.end.sum, l.place)
	}
	if s.ahead > 0 || l.fault != nil || rest > 0 || s.file.state() != s.state {
		s.state = ""
	}
	return cmp.Or(ctx.Err(), err)
}

// parserAt is a parser of what a file has from a place on, which has taken over the header that holds
// there.
func (s *source) parserAt(only logs.Format, at int64) (*logs.Parser, error) {
	parser := logs.NewParser(only)
	if at < s.headedTo {
		s.header, s.headedTo = logs.Header{}, 0
	}
	parser.Head = s.header
	if !s.headed || at == s.headedTo {
		return parser, nil
	}
	l, err := s.file.lines(place{at: s.headedTo})
	if err != nil {
		return nil, err
	}
	defer l.close()
	for l.place < at {
		text, ok := l.next()
		if !ok {
			return parser, l.fault
		}
		parser.Header(text)
	}
	s.header, s.headedTo = parser.Head, at
	return parser, nil
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
	hosted bool      // it is known whether lines name a host
}

// add takes the line that was read last; false: it lies ahead.
func (c *scan) add(text []byte, at int64) bool {
	if c.parser.Header(text) {
		return true
	}
	if c.parser.Time(text, &c.line) {
		if c.line.Time.After(c.latest) && !c.line.Time.After(c.latest.Add(mostAhead)) {
			return false
		}
		c.hour = c.line.Hour()
		c.see(text)
		if c.after.leavesOut(c.app.hashes, &c.line, text) {
			return true
		}
	}
	hash, ok := c.app.hashes.ofLine(c.hour, text)
	if sample := c.source.rest.of(c.hour); ok && hash < sample.limit {
		sample.add(sampled{hash: hash, place: at, count: 1, visitor: c.visitorOf(&c.line)})
	}
	return true
}

// see notes which times the lines show, and whether they name a host.
func (c *scan) see(text []byte) {
	s := c.source
	if s.last = c.line.Time; s.first.IsZero() {
		s.first = s.last
	}
	if !c.hosted && c.parser.Parse(text, &c.line) == nil {
		if c.hosted = true; len(c.line.Host) == 0 && !bytes.HasPrefix(c.line.Target, []byte("http")) {
			s.nameless = c.line.Format
		}
	}
}
