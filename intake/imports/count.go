package imports

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"io"
	"time"

	"footfall/counter"
	"footfall/intake"
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

// reader is the lines of some sources, in the order of their times.
type reader struct {
	*run
	timeline timeline
	zone     *time.Location
	entries  []feed.Entry[read]
}

// count counts what is new in some sources.
func (r *run) count(ctx context.Context, sources []*source) error {
	d := &reader{run: r, zone: r.counting.App().Zone}
	for _, s := range sources {
		if !s.idle && s.log.Next < s.until {
			s.line.Time = s.scanner.beginningAt(s.log.Next).first
			heap.Push(&d.timeline, s)
		}
	}
	f := feed.Feed[read]{
		Source:   d,
		Recorder: r.counting.Recorder(),
		Retry:    r.retry,
		Fill:     true,
		DryRun:   r.DryRun,
	}
	return f.Run(ctx)
}

// Read is for the feed.
func (d *reader) Read(ctx context.Context, most int) ([]feed.Entry[read], error) {
	if err := d.keepPaused(ctx); err != nil {
		return nil, err
	}
	d.entries = make([]feed.Entry[read], 0, most)
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
	if s.done == nil {
		if err := s.begin(s.log.Next, d.Rules.Format); err != nil {
			d.summary.problem(s.file.name, "%s", s.file.readProblem(err))
			return false
		}
	}
	before := s.lines.place
	more := d.nextLine(s)
	d.progress.Done.Add(s.lines.place - before)
	if more {
		return true
	}
	if s.lines.place < s.until {
		why := "it became shorter while it was read"
		if s.lines.fault != nil {
			why = s.file.readProblem(s.lines.fault)
		}
		d.summary.problem(s.file.name, "%s, after line %d", why, s.lines.number)
	}
	if s.lines.place > s.log.Next {
		d.entries = append(d.entries, feed.Entry[read]{Position: s.position, Next: s.lines.place, Fate: feed.Passes})
	}
	s.number = s.lines.number
	s.end()
	return false
}

func (d *reader) nextLine(s *source) bool {
	for s.lines.place < s.until {
		text, ok := s.lines.next()
		if !ok {
			return false
		}
		d.summary.Lines++
		d.progress.Lines.Add(1)
		if s.skips(s.lines.number - 1) {
			d.summary.Repeated++
			continue
		}
		if err := s.parser.Parse(text, &s.line); err != nil {
			d.add(s, counter.Item{}, err.Error())
			continue
		}
		d.summary.Formats[s.line.Format]++
		why := d.Rules.leavesOut(&s.line, d.zone)
		if why == "" {
			return true
		}
		d.summary.leaveOut(why)
	}
	return false
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

func (d *reader) add(s *source, item counter.Item, wrong string) {
	d.entries = append(d.entries, feed.Entry[read]{Of: read{item, wrong, s.file.name, s.lines.number}, Position: s.position, Next: s.lines.place})
}

// Judge is for the feed.
func (d *reader) Judge(ctx context.Context) (func(context.Context, *feed.Entry[read]) error, error) {
	g, err := d.permit(ctx)
	return func(ctx context.Context, e *feed.Entry[read]) error {
		if e.Of.wrong != "" {
			return e.Refuse(visit.Errorf(visit.Invalid, "", "%s", e.Of.wrong))
		}
		return intake.Judge(ctx, g, e.Of.Item, e)
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
	err := r.counting.PauseRetention(ctx, r.pause)
	if err == nil {
		r.paused = time.Now()
	}
	return err
}
