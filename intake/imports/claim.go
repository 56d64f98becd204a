package imports

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"time"

	"footfall/counter"
	"footfall/visit"
)

// book is what is known of logs while a run claims what it reads.
type book struct {
	*counter.LogBook
	logs  map[int64]*counter.Log
	marks map[int64][]counter.LogMark // of each log, in the order of places
	known map[uint64]counter.LogMark  // by their lines
	ours  map[int64]*source           // logs of this run
}

// openBook reads the book, or takes over what was read of it before if that still holds.
func openBook(ctx context.Context, b *counter.LogBook, before *book) (*book, error) {
	k := &book{LogBook: b, logs: map[int64]*counter.Log{}, marks: map[int64][]counter.LogMark{}, known: map[uint64]counter.LogMark{}, ours: map[int64]*source{}}
	list, err := b.Logs(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		k.logs[list[i].ID] = &list[i]
	}
	if before != nil && before.holds(k.logs) {
		before.LogBook = b
		return before, nil
	}
	marks, err := b.Marks(ctx)
	for _, m := range marks {
		k.add(m)
	}
	return k, err
}

// holds reports whether no log is another one now, but for those of this run.
func (k *book) holds(now map[int64]*counter.Log) bool {
	for id, l := range now {
		known := k.logs[id]
		if known == nil || known.Claimed != l.Claimed {
			return false
		}
		known.Next = l.Next
	}
	return true
}

func (k *book) add(m counter.LogMark) {
	k.marks[m.Log] = append(k.marks[m.Log], m)
	k.known[m.Lines] = m
}

// claim finds out which logs the files are, and claims what is new in them. What it writes of a log
// it writes before anything of that is counted.
func (r *run) claim(ctx context.Context, b *counter.LogBook) error {
	k, err := openBook(ctx, b, nil)
	if err != nil {
		return err
	}
	r.book = k
	for _, s := range r.sources {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.idle = true // until it is known to be of use
		isNew, err := r.identify(k, s)
		if err != nil || !isNew {
			if err != nil {
				r.summary.problem(s.file.name, "%v", err)
			}
			continue
		}
		if err := r.look(ctx, k, s); err != nil {
			return err
		}
	}
	if err := r.checkHosts(); err != nil {
		return err
	}
	return r.checkDays(ctx)
}

// identify finds out which log a file is; false: nothing of it is to be counted.
func (r *run) identify(k *book, s *source) (bool, error) {
	head, err := s.file.prefix(named)
	if err != nil {
		return false, &problem{s.file.readProblem(err)}
	}
	if len(head) == 0 {
		r.summary.note(s.file.name, "it is empty")
		return false, nil
	}
	l := k.find(head)
	if l == nil {
		l = &counter.Log{Rules: r.Rules.String()}
	}
	s.log = *l
	s.log.Named, s.log.Hash, s.log.File = len(head), sha256.Sum256(head), s.file.name
	if other := k.ours[l.ID]; other != nil && l.ID != 0 {
		s.hopeless = true
		r.summary.note(s.file.name, "it is the same log as %s, and is read once", other.file.name)
		return false, nil
	}
	if l.Rules != r.Rules.String() {
		s.hopeless = true
		r.summary.problem(s.file.name, "it was imported %s: nothing more of it counts by other rules", rulesInWords(l.Rules))
		return false, nil
	}
	return true, nil
}

func rulesInWords(rules string) string {
	if rules == "" {
		return "without any rules of its own"
	}
	return "with " + rules
}

// problem is what is wrong with a file, in a sentence.
type problem struct{ sentence string }

func (p *problem) Error() string { return p.sentence }

// find returns the log that begins as a file does. A log that was shorter when it was seen is the
// same if the file goes on behind what it had.
func (k *book) find(head []byte) (found *counter.Log) {
	hashes := map[int][32]byte{}
	for _, l := range k.logs {
		if l.Named > len(head) || found != nil && l.Named <= found.Named {
			continue
		}
		hash, known := hashes[l.Named]
		if !known {
			hash = sha256.Sum256(head[:l.Named])
			hashes[l.Named] = hash
		}
		if hash == l.Hash {
			found = l
		}
	}
	return found
}

// look reads a file once, and claims what is new in it.
func (r *run) look(ctx context.Context, k *book, s *source) (err error) {
	if s.scanner, err = newScanner(s.file, r.Rules.Format, &r.progress.Looked); err != nil {
		r.summary.problem(s.file.name, "%s", s.file.readProblem(err))
		return nil
	}
	s.scanner.run(s.log.Next, k.known, s.log.ID)
	s.number = s.scanner.before
	if fault := s.scanner.fault; fault != nil && s.file.packed != plain && !errors.Is(fault, io.ErrUnexpectedEOF) {
		// What was unpacked before that was noticed may be wrong, too.
		r.summary.problem(s.file.name, "%s: nothing of it is counted", s.file.readProblem(fault))
		return nil
	} else if fault != nil {
		r.summary.problem(s.file.name, "%s after line %d: what comes before is read", s.file.readProblem(fault), s.scanner.number)
	} else if rest := s.scanner.rest(); rest > 0 {
		r.summary.note(s.file.name, "its last line, of %d bytes, has no end: it is read when it has one", rest)
	}
	if s.scanner.place < s.log.Next {
		r.summary.note(s.file.name, "of the log that it begins as, %d bytes were read, and it has %d: nothing in it is new", s.log.Next, s.scanner.place)
		return nil
	}
	return r.take(ctx, k, s)
}

// take claims what a scanner has found.
func (r *run) take(ctx context.Context, k *book, s *source) error {
	if at, ok := differs(k.marks[s.log.ID], s.scanner.marks); ok {
		s.hopeless = true
		r.summary.problem(s.file.name, "it begins as a log that was imported, but is another one from byte %d on at the latest: nothing of it is counted", at)
		return nil
	}
	skips, words := k.overlaps(s)
	if words != "" {
		s.hopeless = true
		r.summary.problem(s.file.name, "%s", words)
		return nil
	}
	s.idle = false
	s.until = s.scanner.place
	s.log.Skips = append(s.log.Skips, skips...)
	s.log.Claimed = max(s.log.Claimed, s.until)
	if err := k.claim(ctx, s); err != nil {
		return err
	}
	s.position = r.counting.PositionOf(&s.log)
	r.progress.Total.Add(s.until - s.log.Next)
	return nil
}

// claim writes down what a source has claimed.
func (k *book) claim(ctx context.Context, s *source) error {
	last := int64(-1)
	if before := k.marks[s.log.ID]; len(before) > 0 {
		last = before[len(before)-1].Place
	}
	var marks []counter.LogMark
	for _, m := range s.scanner.marks {
		if m.Place > last && !s.skips(m.Place) {
			marks = append(marks, m)
		}
	}
	if err := k.Claim(ctx, &s.log, marks); err != nil {
		return err
	}
	kept := s.log
	k.logs[s.log.ID], k.ours[s.log.ID] = &kept, s
	for _, m := range marks {
		m.Log = s.log.ID
		k.add(m)
	}
	return nil
}

// differs returns where a log that was imported is another one than a file, both by their marks.
func differs(kept, found []counter.LogMark) (at int64, is bool) {
	places := make(map[int64]uint64, len(found))
	end := int64(-1)
	for _, m := range found {
		places[m.Place], end = m.Lines, m.Place
	}
	for _, m := range kept {
		if lines, there := places[m.Place]; m.Place <= end && (!there || lines != m.Lines) {
			return m.Place, true
		}
	}
	return 0, false
}

// overlaps finds the parts of a source that other logs have claimed. Where it cannot tell which
// these are, it says so in words.
func (k *book) overlaps(s *source) (skips []counter.Stretch, words string) {
	type alignment struct{ log, shift int64 }
	found := map[alignment]int{}
	var order []alignment
	for _, h := range s.scanner.hits {
		if h.place < s.log.Claimed { // it has been settled whose that is
			continue
		}
		a := alignment{h.mark.Log, h.place - h.mark.Place}
		if found[a] == 0 {
			order = append(order, a)
		}
		found[a]++
	}
	for _, a := range order {
		other := k.logs[a.log]
		part := counter.Stretch{From: max(a.shift, s.log.Claimed), To: min(a.shift+other.Claimed, s.scanner.place)}
		expected := 0
		for _, m := range k.marks[a.log] {
			if place := m.Place + a.shift; place >= part.From && place <= s.scanner.lastWindow() {
				expected++
			}
		}
		switch {
		case found[a] < expected:
			return nil, "it has lines that were imported as part of " + other.File + ", with others between them: nothing of it is counted. Import what is new in it alone"
		case other.Next < other.Claimed && k.ours[a.log] == nil:
			return nil, "it has lines of " + other.File + ", which was not imported to its end: import that first, or both together"
		}
		skips = append(skips, part)
	}
	slices.SortFunc(skips, func(a, b counter.Stretch) int { return cmp.Compare(a.From, b.From) })
	return skips, ""
}

// lastWindow is where the last lines begin that were compared with marks.
func (s *scanner) lastWindow() int64 {
	if s.window.count < markLines {
		return -1
	}
	return s.window.places[s.window.count%markLines]
}

// checkHosts refuses lines that name no host, where no site is given for them.
func (r *run) checkHosts() error {
	if r.Rules.Site != "" {
		return nil
	}
	for _, s := range r.sources {
		if !s.idle && s.scanner.hostless != "" {
			return visit.Errorf(visit.Invalid, "site", "%s: its lines (%s) name no host: say with --site which site they are of", s.file.name, s.scanner.hostless)
		}
	}
	return nil
}

// checkDays refuses logs that are older than what the app keeps.
func (r *run) checkDays(ctx context.Context) error {
	first, err := r.counting.FirstDay(ctx)
	if err != nil {
		return err
	}
	if r.Rules.From >= first {
		return nil
	}
	for _, s := range r.sources {
		if s.idle || s.scanner.first.IsZero() {
			continue
		}
		oldest := s.scanner.first
		if s.scanner.last.Before(oldest) {
			oldest = s.scanner.last
		}
		if day := visit.DayOf(oldest, r.counting.Zone()); day < first {
			return visit.Errorf(visit.Invalid, "from", "%s has visits of %s, and of app %s the first day that can still be counted is %s: "+
				"leave out what is older with --from %d, or import all of it into an app of its own (footfall app add …-before --retain-days 0 …)",
				s.file.name, dayInWords(day), r.App, dayInWords(first), first)
		}
	}
	return nil
}

func dayInWords(day int32) string { return visit.DateOf(day).Format(time.DateOnly) }

// skips reports whether another log had claimed the line at a place before.
func (s *source) skips(place int64) bool {
	for _, part := range s.log.Skips {
		if part.From <= place && place < part.To {
			return true
		}
	}
	return false
}
