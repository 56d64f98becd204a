package imports

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/intake"
	"footfall/intake/logs"
	"footfall/record"
	"footfall/record/feed"
	"footfall/visit"
)

// logLine is a line of a log that is passed to the feed.
type logLine struct {
	counter.Item
	problem string // why the line is invalid; "": it is valid
	source  *source
	line    int64
	before  int64 // how many earlier lines of the file had already been counted

	hour         int32
	hash         uint64
	number       int  // how often the text of the line has occurred in the file so far, including this line; 0 if problem is set
	countedFirst bool // the line had already been counted before this import
	recorded     bool // record the line as counted, but without a visit, because --after leaves it out or 0.2 counted it
}

// reader merges the lines of several sources in the order of their times. It implements feed.Source.
type reader struct {
	*run
	timeline []*source // sorted by the time of each source's next line; a source is not read before it is the first one
	latest   time.Time // result of the last call of app.Latest
}

// count reads sources and counts their new lines.
func (r *run) count(ctx context.Context, sources []*source) error {
	if len(sources) == 0 {
		return nil
	}
	d, total := &reader{run: r}, int64(0)
	for _, s := range sources {
		s.queue, s.nextTime = nil, time.Time{}
		if err := s.findStart(r.Rules.Format); err != nil {
			s.problem("%s", s.file.readProblem(err))
			s.refused = true
			continue
		}
		total += s.file.size()
		s.ended, s.lines = false, nil
		d.timeline = append(d.timeline, s)
	}
	slices.SortStableFunc(d.timeline, func(a, b *source) int { return a.nextTime.Compare(b.nextTime) })
	r.progress.Total.Store(total)
	defer func() {
		for _, s := range sources {
			s.end()
		}
	}()
	f := feed.Feed[logLine]{Source: d, Recorder: r.app.Recorder(), Retry: r.retry, Fill: true, DryRun: r.DryRun, Choose: d.choose}
	return f.Run(ctx)
}

func (d *reader) Read(ctx context.Context, most int) ([]feed.Entry[logLine], error) {
	if err := d.hold(ctx); err != nil {
		return nil, err
	}
	if err := d.refreshed(ctx); err != nil {
		return nil, err
	}
	// The additional capacity is for the feed. If some entries do not count, the feed calls Read again, and appends the new
	// entries to this slice.
	entries := make([]feed.Entry[logLine], 0, most+most/8)
	for len(entries) < most && len(d.timeline) > 0 {
		s := d.timeline[0]
		if err := d.fill(ctx, s); err != nil {
			return entries, err
		}
		switch {
		case len(s.queue) == 0:
			d.timeline = d.timeline[1:]
		case s.queue[0].Data.At.After(s.nextTime):
			s.nextTime = s.queue[0].Data.At
			later := d.timeline[1:]
			to, _ := slices.BinarySearchFunc(later, s.nextTime, func(o *source, at time.Time) int { return o.nextTime.Compare(at) })
			copy(d.timeline, later[:to])
			d.timeline[to] = s
		default:
			d.sequence++
			e := s.queue[0]
			e.Position, e.Next = d.position, d.sequence
			entries, s.queue = append(entries, e), s.queue[1:]
		}
	}
	if len(d.timeline) == 0 {
		return entries, io.EOF
	}
	return entries, nil
}

// fill reads a source until its queue contains a line, or until no further line can be read.
func (d *reader) fill(ctx context.Context, s *source) error {
	for len(s.queue) == 0 && !s.ended {
		if err := d.readLine(ctx, s); err != nil {
			return err
		}
	}
	if d.servers && !s.checked && len(s.queue) > 0 {
		if err := d.checkServer(ctx, s); err != nil {
			return err
		}
		s.checked = true
	}
	return nil
}

// readLine reads the next line of a source. It adds the line to s.queue, unless the rules leave out the line or the line
// was already counted.
func (d *reader) readLine(ctx context.Context, s *source) error {
	if s.lines == nil {
		if err := s.begin(d.Rules.Format, d.app.hashes.seed); err != nil {
			s.refuse("%s", s.file.readProblem(err))
			return nil
		}
	}
	before := s.lines.place
	text, ok := s.text()
	if !ok {
		s.stop()
		return nil
	}
	d.progress.Done.Add(s.lines.place - before)
	if s.parser.Header(text) {
		s.headed = true
		d.sawLine()
		d.summary.leaveOut(Header)
		return nil
	}
	err := s.parser.Parse(text, &s.line)
	if d.isAhead(s.line.Time) {
		s.wait(d.following)
		return nil
	}
	d.sawLine()
	if err != nil {
		s.add(logLine{problem: err.Error()})
		return nil
	}
	d.summary.Formats[s.line.Format]++
	return d.take(ctx, s, text)
}

// isAhead reports whether the line with the time at must wait until then: at is later than app.Latest, but by at most
// mostAhead. isAhead calls app.Latest only if its last result (d.latest) is too old to decide this.
func (d *reader) isAhead(at time.Time) bool {
	if at.After(d.latest) {
		d.latest = d.app.Latest()
	}
	return at.After(d.latest) && !at.After(d.latest.Add(mostAhead))
}

func (d *reader) sawLine() {
	d.summary.Lines++
	d.progress.Lines.Add(1)
}

func (s *source) add(of logLine) {
	of.source, of.line, of.before = s, s.lines.number, s.counted
	s.queue = append(s.queue, feed.Entry[logLine]{Data: of})
}

// take adds a parsed line to s.queue, unless the rules leave it out or it was already counted.
func (d *reader) take(ctx context.Context, s *source, text []byte) error {
	l := &s.line
	why := d.Rules.leavesOut(l, d.app.App().Zone)
	switch {
	case why != "":
	case l.Time.Before(d.app.first):
		why = TooOld
	case l.Time.Before(d.After) && !d.closed.has(l.Time):
		why = BeforeAfter
	}
	if why != "" {
		d.summary.leaveOut(why)
		return nil
	}
	uri, wrong := d.Rules.uriOf(l)
	if wrong != "" {
		s.add(logLine{problem: wrong})
		return nil
	}
	of := logLine{hour: l.Hour()}
	var ok bool
	if of.hash, ok = d.hash(l); !ok {
		if l.Time.After(d.app.Latest().Add(-keyDelay)) {
			s.wait(d.following)
			return nil
		}
		d.summary.leaveOut(TooOld)
		return nil
	}
	of.number = s.numbers.next(l.Time.Unix(), of.hash, s.lines.start, s.lines.number-1)
	counted, before, err := d.counted.numberNow(ctx, of.hour, of.hash)
	if err != nil {
		err = d.retry.Do(ctx, func() (err error) { counted, before, err = d.counted.numberNow(ctx, of.hour, of.hash); return err })
	}
	if err != nil {
		return err
	}
	if counted >= of.number {
		s.counted++
		d.summary.addCounted(before >= of.number)
		return nil
	}
	of.Item = counter.Item{URI: uri, IP: string(l.Client), At: l.Time, Referrer: string(l.Referer), Bots: d.Rules.Bots}
	if l.HasAgent {
		of.Agent = cmp.Or(string(l.Agent), "-") // servers write - if the request had no User-Agent
	}
	if err := d.decide02(ctx, s, text, &of); err != nil || s.refused {
		return err
	}
	s.add(of)
	return nil
}

// keyDelay is the maximum time from midnight until this process has loaded the new day's key for hashing lines.
const keyDelay = 15 * time.Minute

// hash returns the hash of a line. ok is false if hashing needs the key of the line's day, but the process does not have
// it.
func (d *reader) hash(l *logs.Line) (hash uint64, ok bool) {
	site, day := "", int32(0)
	if !l.NamesHost() {
		site = d.Rules.Site
	}
	if d.app.hashes.days != nil {
		day = visit.DayOf(l.Time, d.app.App().Zone)
	}
	return d.app.hashes.hashLine(day, l.Text, site)
}

// choose decides which lines of a chunk count. First it loads from the database which lines of the same hours other imports
// have counted in the meantime.
func (d *reader) choose(ctx context.Context, entries []feed.Entry[logLine]) error {
	c := d.counted
	c.mu.Lock()
	defer c.mu.Unlock()
	hours := map[int32]*db.LogHour{}
	for i := range entries {
		if of := &entries[i].Data; of.number > 0 && hours[of.hour] == nil {
			hours[of.hour] = &db.LogHour{App: c.app, Server: c.server, Hour: of.hour}
		}
	}
	if err := c.load(ctx, slices.Collect(maps.Keys(hours))); err != nil {
		return err
	}
	for hour, known := range hours {
		known.Version = c.hours[hour].version()
	}
	pending := map[uint64]int{}
	for i := range entries {
		e := &entries[i]
		of := &e.Data
		e.Line = db.LogLine{}
		if of.number == 0 || e.Fate != feed.Counts && e.Fate != feed.Before {
			continue
		}
		h := c.hours[of.hour]
		all, before := h.number(of.hash)
		e.Fate, of.countedFirst = feed.Before, before >= of.number
		if all+pending[of.hash] >= of.number {
			continue
		}
		if !of.recorded {
			e.Fate = feed.Counts
		}
		e.Line = db.LogLine{Hour: hours[of.hour], Hash: of.hash, At: of.At.Unix()}
		if d.DryRun {
			h.dry.add([]uint64{of.hash})
		} else {
			pending[of.hash]++
		}
	}
	return nil
}

func (d *reader) Decide(ctx context.Context) (func(context.Context, *feed.Entry[logLine]) error, error) {
	g, err := d.permit(ctx)
	return func(ctx context.Context, e *feed.Entry[logLine]) error {
		if e.Data.problem != "" {
			return e.Refuse(visit.Errorf(visit.Invalid, "", "%s", e.Data.problem))
		}
		if e.Data.Agent == "" && g.App().Mode == app.ByBrowser {
			return visit.Errorf(visit.Invalid, "app", "%s distinguishes visitors by address and browser, but line %d of %s has no User-Agent: "+
				"import a log in the combined format, or into an app that distinguishes visitors by address",
				g.App().Name, e.Data.line, e.Data.source.file.name)
		}
		return intake.Decide(ctx, g, e.Data.Item, e)
	}, err
}

func (d *reader) Unaccepted(e *feed.Entry[logLine], err error) error {
	return fmt.Errorf("%s, line %d cannot be counted: %w", e.Data.source.file.name, e.Data.line, err)
}

// Keep stores no refusals, because the log still contains the refused lines.
func (d *reader) Keep(*feed.Entry[logLine], bool) []record.Refusal { return nil }

func (d *reader) Settled(entries []*feed.Entry[logLine]) {
	counted := int64(0)
	for _, e := range entries {
		switch {
		case e.Data.recorded && e.Fate == feed.Before:
			d.summary.leaveOut(BeforeAfter)
		case e.Fate == feed.Refused && e.Refusal.Kind == visit.Forbidden:
			d.summary.leaveOut(OtherHost)
		case e.Fate == feed.Refused:
			d.summary.unread(e.Data.source.file.name, e.Data.line, e.Refusal.Message())
		case e.Fate == feed.Skipped && e.Why == visit.SkippedBot:
			d.summary.leaveOut(Bot)
		case e.Fate == feed.Skipped:
			d.summary.leaveOut(Ignored)
		case e.Fate == feed.Before:
			d.summary.addCounted(e.Data.countedFirst)
		default:
			d.summary.visit(e.Visit.Target.Site, e.Visit.Day)
			e.Data.source.addNew(e.Data.before)
			counted++
		}
	}
	d.summary.Counted += counted
	d.progress.Counted.Add(counted)
}
