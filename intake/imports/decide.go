package imports

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// A log is its bytes from the beginning: a file that begins with all that is counted of a log is that
// log, and its rest counts. Nothing else is skipped. A file that goes on with no log, and shares
// lines with one, is refused; every other one is a new log. What is found is written before a line
// of it counts, so that of two who import a file at once the second finds it.

// What whoever imports a log may tell of it, which is kept with it.
const (
	toldAnother = "another" // it is another log, whatever lines it shares
	toldCounted = "counted" // each of its files goes on behind the lines that were counted last
)

// inOrder are the files in the order in which they are decided about: first those that may go on, in
// the order in which batches lock their logs, and of others the largest, so that a part of one is
// compared with the whole.
func (r *run) inOrder(ctx context.Context) ([]*source, error) {
	r.twins = map[int64][]*source{}
	for _, s := range r.sources {
		s.position = nil
		if err := r.readBeginning(s); err == nil && s.begins {
			r.twins[s.beginning] = append(r.twins[s.beginning], s)
		}
	}
	mayGoOn := map[int64]int64{} // the id of a log that begins so
	if err := r.retry.Do(ctx, func() error {
		return r.inBook(ctx, func(b book) error {
			known, err := b.find(ctx, slices.Collect(maps.Keys(r.twins)))
			for _, l := range known {
				if l.Beginning != nil {
					mayGoOn[*l.Beginning] = l.ID
				}
			}
			return err
		})
	}); err != nil {
		return nil, err
	}
	order := slices.Clone(r.sources)
	slices.SortStableFunc(order, func(a, b *source) int {
		one, other := mayGoOn[a.beginning], mayGoOn[b.beginning]
		if one != other {
			return cmp.Compare(uint64(one-1), uint64(other-1)) //nolint:gosec // those without a log, 0, come last
		}
		return cmp.Compare(b.file.size(), a.file.size())
	})
	return order, nil
}

// decideEach decides what is to be counted of files.
func (r *run) decideEach(ctx context.Context, b book, files []*source) error {
	for _, s := range files { // that may have been decided about in a transaction that failed
		s.position = nil
	}
	for _, s := range files {
		if err := r.decide(ctx, b, s); err != nil {
			return err
		}
	}
	return nil
}

// refuse says why nothing more of a file is counted.
func (r *run) refuse(s *source, format string, args ...any) {
	s.position, s.refused = nil, true
	r.summary.problem(s.file.name, format, args...)
}

// decide reads a file, and writes down what is to be counted of it.
func (r *run) decide(ctx context.Context, b book, s *source) error {
	s.position, s.refused, s.rest, s.shorter = nil, false, nil, nil
	r.summary.lookAnew(s.file.name)
	err := r.readBeginning(s)
	var known []Log
	if err == nil && s.begins {
		if !slices.Contains(r.twins[s.beginning], s) {
			r.twins[s.beginning] = append(r.twins[s.beginning], s)
		}
		known, err = b.find(ctx, []int64{s.beginning})
		if err != nil {
			return err
		}
	}
	if err == nil {
		err = r.look(ctx, s, known)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		r.refuse(s, "%s: nothing of it is counted", s.file.readProblem(err))
		return nil
	case s.place == 0:
		if s.size == 0 {
			r.summary.note(s.file.name, "it is empty")
		}
		return nil
	}
	if goOn, err := r.identify(ctx, s, known); err != nil || !goOn {
		return err
	}
	r.tellBefore(s)
	if s.place > s.start {
		if goOn, err := r.weigh(ctx, b, s); err != nil || !goOn {
			return err
		}
	}
	if written, err := r.write(ctx, b, s); err != nil || written {
		return err
	}
	return r.decide(ctx, b, s) // somebody else has counted more of it meanwhile
}

// tellBefore tells how many lines of a file were counted before, and that other rules hold for the
// others.
func (r *run) tellBefore(s *source) {
	if !s.toldBefore {
		s.toldBefore = true
		r.summary.Before += s.log.Lines
	}
	if s.is != nil && s.start > 0 && s.log.Rules != r.Rules.String() && s.place > s.start {
		r.summary.note(s.file.name, "up to line %d it was imported %s; what is new counts %s", s.log.Lines, rulesInWords(s.log.Rules),
			rulesInWords(r.Rules.String()))
	}
}

func rulesInWords(rules string) string {
	if rules == "" {
		return "without any rules of its own"
	}
	return "with " + rules
}

// identify finds out which log a file is, beyond its bytes; false: nothing of it is to be counted.
func (r *run) identify(ctx context.Context, s *source, known []Log) (goOn bool, err error) {
	if s.is != nil && s.few && (s.place > s.start || r.Another) && (r.isOfAnother(s.is) || !s.hasNameOf(s.is)) {
		if !r.Another && !r.isOfAnother(s.is) {
			r.refuse(s, "it begins as %s, of which too few lines are counted to tell whether the two are one log: nothing more of it is counted. "+
				"If they are, import it under that name; if not, add --another, or say with --server of which server each is", nameOf(s.is))
			return false, nil
		}
		s.begin(nil)
		if err := r.readOn(ctx, s); err != nil {
			return false, err
		}
	}
	if s.is != nil && r.isOfAnother(s.is) {
		r.refuse(s, "it is %s: it was imported with --server %s, and belongs to no other", nameOf(s.is), s.is.Server)
		return false, nil
	}
	if goOn, err := r.compareTwins(s); err != nil || !goOn {
		return false, err
	}
	if s.is != nil {
		return true, nil
	}
	for i := range known { // a log that was begun, of which nothing is counted yet
		if l := &known[i]; *l.Counted == 0 && l.Beginning != nil && !r.isOfAnother(l) &&
			(r.ours(l.ID) == nil || slices.Contains(s.shorter, r.ours(l.ID))) {
			if s.begin(l); !r.After.IsZero() {
				s.log.After, s.log.AfterLines = nil, nil // which lines are left out is found anew
			}
			return true, r.readOn(ctx, s)
		}
	}
	return true, nil
}

// isOfAnother reports whether a log is of another server than the one that is imported.
func (r *run) isOfAnother(l *Log) bool {
	return r.Server != "" && l.Server != "" && r.Server != l.Server
}

// hasNameOf reports whether a file is the one that had a log last.
func (s *source) hasNameOf(l *Log) bool {
	inode := s.file.inode()
	return s.file.name == l.File || inode != "" && inode == l.Inode
}

// ours returns the source of this run that counts a log; nil: there is none.
func (r *run) ours(id int64) *source {
	for _, s := range r.sources {
		if s.position != nil && s.log.ID == id {
			return s
		}
	}
	return nil
}

// compareTwins compares a file with the others of this run that begin as it does; false: nothing of
// it is to be counted.
func (r *run) compareTwins(s *source) (goOn bool, err error) {
	for _, other := range r.twins[s.beginning] {
		if other == s || other.position == nil {
			continue
		}
		short, long := s, other
		if s.place > other.place {
			short, long = other, s
		}
		sum, err := long.file.sumTo(short.place)
		if err != nil {
			return false, visit.Errorf(visit.Invalid, "", "%s: %s", long.file.name, long.file.readProblem(err))
		}
		switch same := bytes.Equal(sum.Sum(nil), short.sum.Sum(nil)); {
		case same && short == s:
			r.readOnce(short, long)
			return false, nil
		case same:
			s.shorter = append(s.shorter, short)
		case s.is != nil && s.is.ID == other.log.ID:
			r.refuse(s, "it and %s begin as the same log, and then differ: nothing more of either is counted. Import the one that goes on",
				other.file.name)
			r.refuse(other, "it and %s begin as the same log, and then differ: nothing more of either is counted. Import the one that goes on",
				s.file.name)
			return false, nil
		}
	}
	return true, nil
}

// readOnce lets go of a file with which a longer one begins that is read.
func (r *run) readOnce(short, long *source) {
	r.summary.note(short.file.name, "it is the same log as %s, and is read once", long.file.name)
	short.position = nil
}

// weigh compares what is new in a file with other logs; false: nothing of it is to be counted.
func (r *run) weigh(ctx context.Context, b book, s *source) (goOn bool, err error) {
	if goOn, err := r.checkLines(s); err != nil || !goOn {
		return false, err
	}
	if s.start == 0 && r.Another {
		s.log.Told = toldAnother
	}
	if s.log.Told == toldAnother {
		return true, nil
	}
	alike, err := r.compare(ctx, b, s)
	if err != nil {
		return false, err
	}
	if s.start == 0 {
		if whole := slices.IndexFunc(alike, func(o *shared) bool { return o.isWhole(s) && !r.isOfAnother(o.log) }); whole >= 0 {
			r.summary.Before += s.number
			r.summary.note(s.file.name, "all of its lines were counted as %s: 0 are new", nameOf(alike[whole].log))
			return false, nil
		}
		if goOn, err := r.goBehind(ctx, s, alike); err != nil || !goOn {
			return false, err
		}
		if s.start > 0 || s.log.After != nil { // of the lines that are left
			if alike, err = r.compare(ctx, b, s); err != nil {
				return false, err
			}
		}
	}
	for _, o := range alike {
		if o.log.Told != toldAnother && o.isShared(r.Server, s.start > 0 || s.log.After != nil) {
			r.refuse(s, "%s", o.refusal(r.Server))
			return false, nil
		}
	}
	return true, nil
}

// goBehind begins a new log behind the lines that others have counted, where somebody says so; false:
// nothing of it is to be counted.
func (r *run) goBehind(ctx context.Context, s *source, alike []*shared) (goOn bool, err error) {
	if !r.After.IsZero() {
		alike = slices.DeleteFunc(slices.Clone(alike), func(o *shared) bool { return o.log.Told == toldAnother || !o.isShared(r.Server, false) })
		s.begin(s.is)
		s.log.After, s.log.AfterLines = &r.After, append([]byte{}, endingIn(r.After.Unix(), alike)...)
		return true, r.readOn(ctx, s)
	}
	var why error
	for _, o := range alike {
		told := r.AfterCounted || o.log.Told == toldCounted && s.hasNameOf(o.log)
		if !told || r.ours(o.log.ID) != nil || r.isOfAnother(o.log) {
			continue
		}
		place, lines, err := r.findBehind(s, o.log)
		if errors.Is(err, errNowhere) || errors.Is(err, errTwice) {
			why = err
			continue
		} else if err != nil {
			return false, err
		}
		return true, r.takePlace(ctx, s, o.log, place, lines)
	}
	if r.AfterCounted {
		s.log.Told = toldCounted
	}
	if at := slices.IndexFunc(alike, func(o *shared) bool { return o.isShared(r.Server, false) }); why != nil && at >= 0 {
		r.refuse(s, "it shares lines with %s, but %s: nothing of it is counted. Say with --after TIME from when on it is to count",
			nameOf(alike[at].log), why)
		return false, nil
	}
	return true, nil
}

// takePlace makes a file a log that is counted up to a place, though it begins elsewhere.
func (r *run) takePlace(ctx context.Context, s *source, l *Log, place, lines int64) (err error) {
	s.begin(l)
	s.moved, s.start, s.place, s.number = true, place, place, lines
	if s.sum, err = s.file.sumTo(place); err != nil {
		return err
	}
	s.log.Counted, s.log.CountedHash, s.log.Lines, s.log.Told = &s.start, r.app.hashes.ofSum(s.sum), lines, toldCounted
	err = r.readOn(ctx, s)
	s.holds = false
	return err
}

// checkLines refuses lines that name no host, where no site is given for them, and those that are
// older than what the app keeps; false: nothing of the file is to be counted.
func (r *run) checkLines(s *source) (goOn bool, err error) {
	if r.Rules.Site == "" && s.nameless != "" {
		return false, visit.Errorf(visit.Invalid, "site", "%s: its lines (%s) name no host: say with --site which site they are of",
			s.file.name, s.nameless)
	}
	first := r.first
	if r.Rules.From >= first || s.first.IsZero() {
		return true, nil
	}
	from, to := visit.DayOf(s.first, r.app.zone), visit.DayOf(s.last, r.app.zone)
	switch {
	case max(from, to) < first:
		r.summary.note(s.file.name, "it is passed by: it ends with %s, and of app %s the first day that can still be counted is %s",
			visit.DayText(max(from, to)), r.App, visit.DayText(first))
		return false, nil
	case min(from, to) < first:
		r.refuse(s, "it has visits of %s, and of app %s the first day that can still be counted is %s: nothing of it is counted. "+
			"Leave out what is older with --from %d, or import all of it into an app of its own (footfall app add …-before --retain-days 0 …)",
			visit.DayText(min(from, to)), r.App, visit.DayText(first), first)
		return false, nil
	}
	return true, nil
}

// write writes down what is to be counted of a file; false: its log is not where it was.
func (r *run) write(ctx context.Context, b book, s *source) (written bool, err error) {
	l := &s.log
	changed, err := r.changed(ctx, b, s)
	if err != nil {
		return false, err
	}
	if l.ID != 0 && (s.place > s.start && (!s.holds || *l.Counted == 0 && !s.hasNameOf(l)) || s.moved && !s.holds) {
		l.Look++ // whoever counts what was there before looks anew
	}
	if s.place > s.start || s.moved || l.Claimed <= s.place {
		l.Claimed, l.Hash = s.place, r.app.hashes.ofSum(s.sum)
	}
	if s.place > s.start || l.ID == 0 {
		l.Rules, l.File, l.Inode = r.Rules.String(), s.file.name, s.file.inode()
	}
	l.Beginning = &s.beginning
	if s.is == nil || !s.few || s.place > s.start || s.hasNameOf(s.is) { // else it may be another one that has begun alike
		l.Server = cmp.Or(l.Server, r.Server)
	}
	if s.is == nil || s.place > s.start || s.moved || l.Server != s.is.Server {
		if written, err := b.set(ctx, l, s.is, changed); err != nil || !written {
			return false, err
		}
	}
	for _, short := range s.shorter {
		r.readOnce(short, s)
	}
	s.rest, s.moved = nil, false
	s.position = &record.Position{Position: db.Position{App: r.app.id, Log: l.ID, Look: l.Look}, Next: s.start}
	r.progress.Total.Add(s.place - s.start)
	return true, nil
}

// changed are the samples of a log with the new lines of a file. Lines for which it was claimed, and
// that are not counted, are let go: the file may have others there.
func (r *run) changed(ctx context.Context, b book, s *source) (samples, error) {
	if s.log.ID == 0 || s.place == s.start && !s.moved {
		return s.rest, nil
	}
	hours, all := s.rest.hours(), s.moved || s.log.Claimed > s.start
	if all {
		hours = nil
	}
	changed, err := b.samplesOf(ctx, s.log.ID, hours)
	for _, was := range changed {
		was.lines = slices.DeleteFunc(was.lines, func(l sampled) bool { return l.place >= *s.is.Counted })
		for i := range was.lines {
			if s.moved {
				was.lines[i].place = 0
			}
			if s.log.Claimed > *s.is.Counted {
				was.lines[i].count = 1 // some of these may have been behind what is counted
			}
		}
	}
	for hour, rest := range s.rest {
		changed.of(hour).merge(rest)
	}
	return changed, err
}
