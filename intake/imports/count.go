package imports

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"footfall/counter"
	"footfall/pause"
	"footfall/record"
	"footfall/visit"
)

// chunk is visits that are counted together.
type chunk struct {
	counting *counter.Counting
	record.Chunk
	places []Unread      // where the visits stand, to be told of those that cannot be counted
	ends   []record.Step // of sources that end behind the visits
	read   int64         // bytes
}

// count counts what is new in some sources. One goroutine reads, and this one hands over what it
// has read.
func (r *run) count(ctx context.Context, sources []*source) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	chunks, ended := make(chan *chunk, 1), make(chan error, 1)
	go func() {
		defer close(chunks)
		ended <- r.readAll(reading, sources, chunks)
	}()
	var err error
	for c := range chunks {
		if err == nil {
			if err = r.record(ctx, c); err != nil {
				cancel()
			}
		}
	}
	if read := <-ended; err == nil {
		err = read
	}
	return err
}

// reader reads sources into chunks.
type reader struct {
	*run
	chunk  *chunk
	chunks chan<- *chunk
}

// readAll reads all that is new in some sources.
func (r *run) readAll(ctx context.Context, sources []*source, chunks chan<- *chunk) error {
	var t timeline
	for _, s := range sources {
		if !s.idle && s.log.Next < s.until {
			s.line.Time = s.scanner.beginningAt(s.log.Next).first
			heap.Push(&t, s)
		}
	}
	d := reader{run: r, chunks: chunks}
	d.renew()
	for {
		s, err := t.first(d.next)
		if err != nil {
			return err
		}
		if s == nil {
			return d.send(ctx)
		}
		if err := d.take(ctx, s); err != nil {
			return err
		}
		if err := t.advance(d.next); err != nil {
			return err
		}
		if len(d.chunk.Visits) >= d.counting.ChunkVisits() {
			if err := d.send(ctx); err != nil {
				return err
			}
		}
	}
}

func (d *reader) renew() { d.chunk = &chunk{counting: d.counting} }

// send hands over the chunk.
func (d *reader) send(ctx context.Context) error {
	select {
	case d.chunks <- d.chunk:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := d.again(ctx, func() error { return d.refresh(ctx) }); err != nil {
		return err
	}
	d.renew()
	return d.keepPaused(ctx)
}

// next reads the next line of a source that may count; false: there is none.
func (d *reader) next(s *source) (bool, error) {
	if s.done == nil {
		if err := s.begin(s.log.Next, d.Rules.Format); err != nil {
			d.summary.problem(s.file.name, "%s", s.file.readProblem(err))
			return false, nil
		}
	}
	before := s.lines.place
	more := d.nextLine(s)
	d.chunk.read += s.lines.place - before
	d.progress.Done.Add(s.lines.place - before)
	if more {
		return true, nil
	}
	if s.lines.place < s.until {
		why := "it became shorter while it was read"
		if s.lines.fault != nil {
			why = s.file.readProblem(s.lines.fault)
		}
		d.summary.problem(s.file.name, "%s, after line %d", why, s.lines.number)
	}
	if s.lines.place > s.log.Next {
		d.chunk.ends = append(d.chunk.ends, record.Step{Position: s.position, Next: s.lines.place})
	}
	s.number = s.lines.number
	s.end()
	return false, nil
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
			d.summary.unread(s.file.name, s.lines.number, err.Error())
			continue
		}
		d.summary.Formats[s.line.Format]++
		why := d.Rules.leavesOut(&s.line, d.counting.Zone())
		if why == "" {
			return true
		}
		d.summary.Left[why]++
	}
	return false
}

// take adds the line of a source to the chunk, if it counts.
func (d *reader) take(ctx context.Context, s *source) error {
	leaveOut := func(why string) error {
		d.summary.unread(s.file.name, s.lines.number, why)
		return nil
	}
	uri, wrong := d.Rules.uriOf(&s.line)
	if wrong != "" {
		return leaveOut(wrong)
	}
	item := counter.Item{URI: uri, IP: string(s.line.Client), At: s.line.Time}
	if s.line.TellsAgent && !d.Rules.Bots {
		if item.Agent = string(s.line.Agent); item.Agent == "" {
			item.Agent = "-" // as servers write it; every browser sends one
		}
	}
	var v record.Visit
	var skipped visit.Skipped
	err := d.again(ctx, func() (err error) { v, skipped, err = d.chunk.counting.Visit(ctx, item); return err })
	told, ok := errors.AsType[*visit.Error](err)
	switch {
	case err != nil && (!ok || isAway(told)):
		return err
	case ok && told.Kind == visit.Forbidden:
		d.summary.Left[OtherHost]++
	case ok:
		return leaveOut(told.Message)
	case skipped == visit.SkippedBot:
		d.summary.Left[Bot]++
	case skipped != "":
		d.summary.Left[Ignored]++
	default:
		d.summary.visit(v.Target.Site, v.Day)
		d.chunk.Visits = append(d.chunk.Visits, v)
		d.chunk.Steps = append(d.chunk.Steps, record.Step{Position: s.position, Next: s.lines.place})
		d.chunk.places = append(d.chunk.places, Unread{File: s.file.name, Line: s.lines.number})
	}
	return nil
}

// patience is how long an import waits for a database that does not count.
const patience = 10 * time.Minute

// isAway reports whether something failed because the database is away.
func isAway(told *visit.Error) bool { return told.Kind == visit.Unavailable || told.Kind == visit.Lost }

// again does something until it does not fail because the database is away.
func (r *run) again(ctx context.Context, do func() error) error {
	patience := cmp.Or(r.patience, patience)
	until := time.Now().Add(patience)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := do()
		told, ok := errors.AsType[*visit.Error](err)
		if !ok || !isAway(told) {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("the import ends, since the database has not counted for %s; what was counted stays, and the same command goes on: %w", patience, err)
		}
		if wait > time.Second/2 {
			r.Notice(told.Message, told.Err)
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// record counts a chunk, whatever happens to the database meanwhile: the positions tell what of it
// was counted.
func (r *run) record(ctx context.Context, c *chunk) error {
	if r.DryRun {
		r.counted(len(c.Visits))
		return nil
	}
	for r.summary.Others += c.dropCounted(); len(c.Visits) > 0; {
		err := r.again(ctx, func() error { return r.recordOnce(ctx, c) })
		if err != nil {
			return err
		}
	}
	for _, end := range c.ends {
		err := r.again(ctx, func() error { return r.moveTo(ctx, c, end) })
		if err != nil {
			return err
		}
	}
	return nil
}

// recordOnce counts what is left of a chunk. An error of the kind Unavailable is not the last word.
func (r *run) recordOnce(ctx context.Context, c *chunk) error {
	for k, got := range c.counting.Record(c.Chunk) { // up to k they are counted
		told, ok := errors.AsType[*visit.Error](got.Err)
		if got.Err == nil || errors.Is(got.Err, record.ErrNumbersLost) {
			continue
		}
		dropped, err := r.findPositions(ctx, c)
		if errors.Is(got.Err, record.ErrMoved) {
			r.counted(k)
			r.summary.Others += dropped - int64(k)
		} else {
			r.counted(int(dropped))
		}
		if err != nil || len(c.Visits) == 0 || errors.Is(got.Err, record.ErrMoved) {
			return err
		}
		switch {
		case ok && told.Field == "at": // its day has just been let go
			r.summary.unread(c.places[0].File, c.places[0].Line, told.Message)
			c.drop(func(int) bool { return true }, 1)
			return nil
		case ok:
			return got.Err
		}
		return fmt.Errorf("%s, line %d cannot be counted: %w", c.places[0].File, c.places[0].Line, got.Err)
	}
	r.counted(len(c.Visits))
	c.Visits = nil
	return nil
}

// dropCounted drops visits of a chunk that were counted, by this import or by another one of the
// same log, and returns how many these are.
func (c *chunk) dropCounted() int64 {
	before := len(c.Visits)
	c.drop(func(i int) bool { return c.Steps[i].Next <= c.Steps[i].Position.Next }, before)
	return int64(before - len(c.Visits))
}

// findPositions looks where the positions of a chunk are, and drops what was counted. Where it
// cannot look, that is what is known to be.
func (r *run) findPositions(ctx context.Context, c *chunk) (dropped int64, err error) {
	asked := map[*record.Position]bool{}
	for _, step := range c.Steps {
		if asked[step.Position] {
			continue
		}
		asked[step.Position] = true
		if err := c.counting.FindPosition(ctx, step.Position); err != nil {
			return c.dropCounted(), err
		}
	}
	return c.dropCounted(), nil
}

// drop takes some visits out of a chunk, so many at most, from the first on.
func (c *chunk) drop(is func(i int) bool, most int) {
	kept := 0
	for i := range c.Visits {
		if most > 0 && is(i) {
			most--
			continue
		}
		c.Visits[kept], c.Steps[kept], c.places[kept] = c.Visits[i], c.Steps[i], c.places[i]
		kept++
	}
	c.Visits, c.Steps, c.places = c.Visits[:kept], c.Steps[:kept], c.places[:kept]
}

func (r *run) counted(visits int) {
	r.summary.Counted += int64(visits)
	r.progress.Counted.Add(int64(visits))
}

// moveTo moves a position past lines that do not count.
func (r *run) moveTo(ctx context.Context, c *chunk, end record.Step) error {
	if end.Position.Next >= end.Next {
		return nil
	}
	err := c.counting.MovePosition(ctx, end)
	if err != nil { // somebody else has moved it, or nobody knows whether this did
		if lost := c.counting.FindPosition(ctx, end.Position); lost != nil {
			return lost
		}
		if end.Position.Next >= end.Next || errors.Is(err, record.ErrMoved) {
			return nil
		}
	}
	return err
}

// pauseEvery is how often an import says that it goes on.
const pauseEvery = 5 * time.Minute

// keepPaused keeps visits from being let go while they come in. Those of files that are followed
// are of the present. It is called by the goroutine that reads: a Counting is for one alone.
func (r *run) keepPaused(ctx context.Context) error {
	if r.following || r.DryRun || time.Since(r.paused) < cmp.Or(r.pauses, pauseEvery) {
		return nil
	}
	err := r.again(ctx, func() error { return r.counting.PauseRetention(ctx, r.pause) })
	r.paused = time.Now()
	return err
}
