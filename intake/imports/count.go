package imports

import (
	"cmp"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/intake"
	"footfall/intake/logs"
	"footfall/record"
	"footfall/record/feed"
	"footfall/visit"
)

// read is a line that was read.
type read struct {
	counter.Item
	wrong string // why it has no visit
	file  string
	line  int64
}

// reading is a source while its lines are read for counting.
type reading struct {
	lines  *lines // nil: it is not read now
	parser *logs.Parser
	line   logs.Line // the one that counts next
	hour   int32     // of the last line that shows one
	latest int64     // the latest second of all lines
	tail   tail
	after  after
}

// reader is the lines of some sources, in the order of their times.
type reader struct {
	*run
	hashes   *hashes // of the goroutine that reads
	timeline timeline
	entries  []feed.Entry[read]
	marks    []mark // of these
	sums     []byte // of these
	permit   func(context.Context) (*counter.Counting, error)
}

const sumSize = 120 // of the state of a SHA-256, and a little more

// countThese counts what is new in some sources.
func (r *run) countThese(ctx context.Context, sources []*source) error {
	d := &reader{run: r, hashes: r.app.hashes.own()}
	for _, s := range sources {
		if s.position != nil && s.isNew() {
			s.line.Time = s.first
			heap.Push(&d.timeline, s)
		}
	}
	if len(d.timeline) == 0 {
		return nil
	}
	err := r.count(ctx, d)
	for _, s := range sources {
		s.endReading()
		if err == nil && s.isNew() && s.counted.at == s.end.at {
			s.start, s.quick = s.counted, s.end.sum
		}
	}
	return err
}

// beginReading makes a source ready to be read for counting.
func (s *source) beginReading(only logs.Format) error {
	parser, err := s.parserAt(only, s.start.at)
	if err != nil {
		return err
	}
	l, err := s.file.lines(s.start)
	if err != nil {
		return err
	}
	l.from = io.LimitReader(l.from, s.end.at-s.start.at)
	s.reading = reading{lines: l, parser: parser, line: s.line, after: afterOf(&s.log)}
	if s.log.LastAt != nil {
		s.latest = s.log.LastAt.Unix()
	}
	s.tail = tailOf(s.log.Tail, s.latest)
	return nil
}

// endReading lets go what a source needed while it was read.
func (s *source) endReading() {
	if s.lines != nil {
		s.lines.close()
	}
	s.reading = reading{}
}

// Read is for the feed.
func (d *reader) Read(ctx context.Context, most int) ([]feed.Entry[read], error) {
	if err := d.keepPaused(ctx); err != nil {
		return nil, err
	}
	// Some of the visits will be left out, and the feed adds as many.
	d.entries, d.marks, d.sums = make([]feed.Entry[read], 0, most+most/8), make([]mark, 0, most), make([]byte, 0, sumSize*most)
	for len(d.entries) < most {
		s := d.timeline.first(d.next)
		if s == nil {
			return d.entries, io.EOF
		}
		d.take(s)
		d.timeline.advance(d.next)
	}
	return d.entries, nil
}

// next reads the next line of a source that may count; false: there is none.
func (d *reader) next(s *source) bool {
	if s.lines == nil {
		if err := s.beginReading(d.Rules.Format); err != nil {
			s.problem("%s", s.file.readProblem(err))
			return false
		}
	}
	before := s.lines.place
	more := d.nextLine(s)
	d.progress.Done.Add(s.lines.place - before)
	if more {
		return true
	}
	if s.lines.place < s.end.at {
		why := "it became shorter while it was read"
		if s.lines.fault != nil {
			why = s.file.readProblem(s.lines.fault)
		}
		s.refused = true
		s.problem("%s, after line %d", why, s.lines.number)
	}
	if s.counted = s.lines.here(); s.counted.at > s.start.at {
		d.add(s, counter.Item{}, "")
		d.entries[len(d.entries)-1].Fate = feed.Passes
	}
	s.endReading()
	return false
}

// nextLine reads up to a line that may count.
func (d *reader) nextLine(s *source) bool {
	for s.lines.place < s.end.at {
		text, ok := s.lines.next()
		if !ok && s.lines.place+s.lines.rest() == s.end.at { // a last line without its end
			text, ok = s.lines.take(int(s.lines.rest()), 0), true
		}
		if !ok {
			return false
		}
		d.summary.Lines++
		d.progress.Lines.Add(1)
		if s.parser.Header(text) {
			d.summary.leaveOut(Header)
			continue
		}
		err := s.parser.Parse(text, &s.line)
		s.remember(text)
		if err != nil {
			d.add(s, counter.Item{}, err.Error())
			continue
		}
		d.summary.Formats[s.line.Format]++
		why := d.Rules.leavesOut(&s.line, d.app.zone)
		if s.after.leavesOut(d.hashes, &s.line, text) {
			why = CountedBefore
		}
		if why == "" {
			return true
		}
		d.summary.leaveOut(why)
	}
	return false
}

// remember adds the line that was read last to the tail of its log.
func (s *source) remember(text []byte) {
	one := tailLine{hash: xxhash.Sum64(text), raw: true}
	if !s.line.Time.IsZero() {
		s.hour, one.second = s.line.Hour(), s.line.Time.Unix()
		s.latest = max(s.latest, one.second)
	}
	one.hour = s.hour
	s.tail = s.tail.add(one, s.latest)
}

// mark is what is to be kept of a log that is counted up to a line. There is one of each visit, of which
// few are asked for.
type mark struct {
	*reader
	sum    []byte // the state of the SHA-256 of the bytes before it
	number int64  // of the line
	tail   tail
	latest int64
	after  after
}

func (m *mark) log() db.LogMark {
	h, sum := m.app.hashes.own(), sha256.New()
	_ = sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(m.sum) // it is its own
	l := db.LogMark{Hash: h.ofSum(sum), Lines: m.number, Tail: m.tail.bytes(h, m.latest)}
	if m.latest > 0 {
		at := time.Unix(m.latest, 0)
		l.LastAt = &at
	}
	if m.after.second > 0 {
		l.AfterLines = append([]byte{}, m.after.but...)
	}
	return l
}

// take takes the line of a source.
func (d *reader) take(s *source) {
	uri, wrong := d.Rules.uriOf(&s.line)
	item := counter.Item{URI: uri, IP: string(s.line.Client), At: s.line.Time, Referrer: string(s.line.Referer), Bots: d.Rules.Bots}
	if s.line.TellsAgent {
		item.Agent = cmp.Or(string(s.line.Agent), "-") // as servers write it; every browser sends one
	}
	d.add(s, item, wrong)
}

// add adds what was read of a source last.
func (d *reader) add(s *source, item counter.Item, wrong string) {
	from := len(d.sums)
	d.sums, _ = s.lines.sumTo(s.lines.start).(encoding.BinaryAppender).AppendBinary(d.sums)
	d.marks = append(d.marks, mark{d, d.sums[from:], s.lines.number, s.tail, s.latest, s.after})
	d.entries = append(d.entries, feed.Entry[read]{
		Of: read{item, wrong, s.file.name, s.lines.number}, Position: s.position, Next: s.lines.place, Log: d.marks[len(d.marks)-1].log,
	})
}

// Decide is for the feed.
func (d *reader) Decide(ctx context.Context) (func(context.Context, *feed.Entry[read]) error, error) {
	g, err := d.permit(ctx)
	return func(ctx context.Context, e *feed.Entry[read]) error {
		if e.Of.wrong != "" {
			return e.Refuse(visit.Errorf(visit.Invalid, "", "%s", e.Of.wrong))
		}
		if e.Of.Agent == "" && g.App().Mode == app.ByBrowser {
			return visit.Errorf(visit.Invalid, "app", "%s tells visitors apart by address and browser, and line %d of %s has no User-Agent: "+
				"import a log of the combined format, or into an app that goes by addresses", g.App().Name, e.Of.line, e.Of.file)
		}
		return intake.Decide(ctx, g, e.Of.Item, e)
	}, err
}

// Unaccepted is for the feed.
func (d *reader) Unaccepted(e *feed.Entry[read], err error) error {
	return fmt.Errorf("%s, line %d cannot be counted: %w", e.Of.file, e.Of.line, err)
}

// Keep is for the feed: lines stay in their log.
func (d *reader) Keep(*feed.Entry[read], bool) []record.Refusal { return nil }

// Settled is for the feed.
func (d *reader) Settled(entries []*feed.Entry[read]) {
	counted := int64(0)
	for _, e := range entries {
		switch {
		case e.Fate == feed.Refused && e.Refusal.Kind == visit.Forbidden:
			d.summary.leaveOut(OtherHost)
		case e.Fate == feed.Refused:
			d.summary.unread(e.Of.file, e.Of.line, e.Refusal.Message)
		case e.Fate == feed.Skipped && e.Why == visit.SkippedBot:
			d.summary.leaveOut(Bot)
		case e.Fate == feed.Skipped:
			d.summary.leaveOut(Ignored)
		case e.Fate == feed.Passes:
		default:
			d.summary.visit(e.Visit.Target.Site, e.Visit.Day)
			if e.ByOthers {
				d.summary.Others++
			} else {
				counted++
			}
		}
	}
	d.summary.Counted += counted
	d.progress.Counted.Add(counted)
}

// pauseEvery is how often an import says that it goes on.
const pauseEvery = 5 * time.Minute

// keepPaused keeps visits from being let go while they come in. Those of files that are followed
// are of the present.
func (r *run) keepPaused(ctx context.Context) error {
	if r.following || r.DryRun || time.Since(r.paused) < cmp.Or(r.pauses, pauseEvery) {
		return nil
	}
	err := r.pauseRetention(ctx)
	if err == nil {
		r.paused = time.Now()
	}
	return err
}
