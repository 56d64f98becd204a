package imports

import (
	"cmp"
	"context"
	"errors"
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

// decideAll decides what is to be counted of files; in a dry run without leaving a trace.
func (r *run) decideAll(ctx context.Context, files []*source) error {
	// Not while the book is open, which has a connection already.
	if err := r.retry.Do(ctx, func() (err error) { r.first, err = r.firstDay(ctx); return err }); err != nil {
		return err
	}
	order, err := r.inOrder(ctx, files)
	if err != nil {
		return err
	}
	if r.DryRun {
		err := r.inBook(ctx, func(b book) error { return cmp.Or(r.decideEach(ctx, b, order), errDryRun) })
		if errors.Is(err, errDryRun) {
			return nil
		}
		return err
	}
	for len(order) > 0 { // several small files in a transaction
		n, bytes := 1, order[0].file.size()
		for ; n < len(order) && n < filesAtOnce && bytes+order[n].file.size() <= bytesAtOnce; n++ {
			bytes += order[n].file.size()
		}
		if err := r.retry.Do(ctx, func() error {
			return r.inBook(ctx, func(b book) error { return r.decideEach(ctx, b, order[:n]) })
		}); err != nil {
			return err
		}
		order = order[n:]
	}
	return nil
}

// So many files, and bytes of them, are looked at in a transaction.
const (
	filesAtOnce = 500
	bytesAtOnce = 8 << 20
)

// inOrder are files in the order in which they are decided about: first those that may go on, in the
// order in which batches lock their logs, and of others the largest, so that a part of one is compared
// with the whole.
func (r *run) inOrder(ctx context.Context, files []*source) ([]*source, error) {
	var beginnings []int64
	for _, s := range files {
		s.position = nil
		if s.fault = r.readBeginning(s); s.begins {
			beginnings = append(beginnings, s.beginning)
		}
	}
	r.twins = map[int64][]*source{}
	for _, s := range r.sources {
		if s.begins {
			r.twins[s.beginning] = append(r.twins[s.beginning], s)
		}
	}
	mayGoOn := map[int64]int64{} // the id of a log that begins so
	for some := range slices.Chunk(beginnings, filesAtOnce) {
		if err := r.retry.Do(ctx, func() error {
			return r.inBook(ctx, func(b book) error {
				known, err := b.find(ctx, some)
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
	}
	order := slices.Clone(files)
	slices.SortStableFunc(order, func(a, b *source) int {
		one, other := uint64(mayGoOn[a.beginning]-1), uint64(mayGoOn[b.beginning]-1) //nolint:gosec // 0, without a log, comes last
		return cmp.Or(cmp.Compare(one, other), cmp.Compare(b.file.size(), a.file.size()))
	})
	return order, nil
}

// decideEach decides what is to be counted of files.
func (r *run) decideEach(ctx context.Context, b book, files []*source) error {
	r.near = neighbours{}
	defer func() { r.near = neighbours{} }()
	for _, s := range files { // that may have been decided about in a transaction that failed
		s.position = nil
	}
	if err := r.find(ctx, b, files); err != nil {
		return err
	}
	for _, s := range files {
		for {
			done, err := r.decide(ctx, b, s)
			if err == nil && !done { // somebody else has counted more of it meanwhile
				err = r.find(ctx, b, files)
			}
			if err != nil {
				return err
			} else if done {
				break
			}
		}
	}
	return nil
}

// find finds the logs that may begin as files do.
func (r *run) find(ctx context.Context, b book, files []*source) error {
	var beginnings []int64
	for _, s := range files {
		if s.begins {
			beginnings = append(beginnings, s.beginning)
		}
	}
	found, err := b.find(ctx, beginnings)
	r.known = map[int64][]Log{}
	for _, l := range found {
		r.knows(&l)
	}
	return err
}

// knows adds a log as it is now.
func (r *run) knows(l *Log) {
	key := int64(0)
	if l.Beginning != nil {
		key = *l.Beginning
	}
	for _, key := range []int64{0, key} {
		r.known[key] = slices.DeleteFunc(r.known[key], func(had Log) bool { return had.ID == l.ID })
	}
	r.known[key] = append(r.known[key], *l)
}

// decide reads a file, and writes down what is to be counted of it; false: its log is not where it was.
func (r *run) decide(ctx context.Context, b book, s *source) (done bool, err error) {
	s.position, s.refused, s.shorter, s.problems = nil, false, nil, nil
	var known []Log
	if s.begins {
		known = slices.Concat(r.known[0], r.known[s.beginning])
	}
	if at := slices.IndexFunc(known, func(l Log) bool { return r.isAsItWas(s, &l) }); at >= 0 {
		s.begin(&known[at])
		s.size = s.file.size()
		r.tellBefore(s)
		return true, nil
	}
	if err = s.fault; err == nil {
		err = r.match(s, known)
	}
	if err == nil {
		err = r.readOn(ctx, s)
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		s.refuse("%s: nothing of it is counted", s.file.readProblem(err))
		return true, nil
	case s.end.at == 0:
		if s.size == 0 {
			s.note("it is empty")
		}
		return true, nil
	}
	if goOn, err := r.identify(ctx, s); err != nil || !goOn {
		return true, err
	}
	r.tellBefore(s)
	if s.isNew() {
		if goOn, err := r.weigh(ctx, b, s); err != nil || !goOn {
			return true, err
		}
	}
	return r.write(ctx, b, s)
}

// isAsItWas reports whether a file was not changed since it was counted to its end as a log.
func (r *run) isAsItWas(s *source, l *Log) bool {
	return l.State != "" && l.State == s.file.state() && l.Inode == s.file.inode() && *l.Counted == l.Claimed &&
		(r.Server == "" || r.Server == l.Server)
}

// tellBefore tells how many lines of a file were counted before, and that other rules hold for the
// others.
func (r *run) tellBefore(s *source) {
	if !s.toldBefore {
		s.toldBefore = true
		r.summary.Before += s.log.Lines
	}
	if s.is != nil && s.start.at > 0 && s.isNew() && s.log.Rules != r.Rules.String() {
		s.note("up to line %d it was imported %s; what is new counts %s", s.log.Lines, rulesInWords(s.log.Rules), rulesInWords(r.Rules.String()))
	}
}

func rulesInWords(rules string) string {
	if rules == "" {
		return "without any rules of its own"
	}
	return "with " + rules
}

// weigh compares what is new in a file with other logs; false: nothing of it is to be counted.
func (r *run) weigh(ctx context.Context, b book, s *source) (goOn bool, err error) {
	if goOn, err := r.checkLines(s); err != nil || !goOn {
		return false, err
	}
	if s.start.at == 0 && r.Another {
		s.log.Told = toldAnother
	}
	if s.log.Told == toldAnother {
		return true, nil
	}
	alike, err := r.compare(ctx, b, s)
	if err != nil {
		return false, err
	}
	if s.start.at == 0 {
		if whole := slices.IndexFunc(alike, func(o *shared) bool { return o.isWhole(s) && !r.isOfAnother(o.log) }); whole >= 0 {
			r.summary.Before += s.end.lines
			s.note("all of its lines were counted as %s: 0 are new", nameOf(alike[whole].log))
			return false, nil
		}
		if goOn, err := r.goBehind(ctx, s, alike); err != nil || !goOn {
			return false, err
		}
		if s.start.at > 0 || s.log.After != nil { // of the lines that are left
			if alike, err = r.compare(ctx, b, s); err != nil {
				return false, err
			}
		}
	}
	for _, o := range alike {
		if o.log.Told != toldAnother && o.isShared(r.Server, s.start.at > 0 || s.log.After != nil) {
			s.refuse("%s", o.refusal(r.Server))
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
		behind, err := r.findBehind(s, o.log)
		if errors.Is(err, errNowhere) || errors.Is(err, errTwice) {
			why = err
			continue
		} else if err != nil {
			return false, err
		}
		// It takes the place of the log, though it begins elsewhere.
		if err := r.goOnAt(s, o.log, behind); err != nil {
			return false, err
		}
		s.moved = true
		s.log.Counted, s.log.Lines, s.log.Told = &behind.at, behind.lines, toldCounted
		return true, r.readOn(ctx, s)
	}
	if r.AfterCounted {
		s.log.Told = toldCounted
	}
	if at := slices.IndexFunc(alike, func(o *shared) bool { return o.isShared(r.Server, false) }); why != nil && at >= 0 {
		s.refuse("it shares lines with %s, but %s: nothing of it is counted. Say with --after TIME from when on it is to count",
			nameOf(alike[at].log), why)
		return false, nil
	}
	return true, nil
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
		s.note("it is passed by: it ends with %s, and of app %s the first day that can still be counted is %s",
			visit.DayText(max(from, to)), r.App, visit.DayText(first))
		return false, nil
	case min(from, to) < first:
		s.refuse("it has visits of %s, and of app %s the first day that can still be counted is %s: nothing of it is counted. "+
			"Leave out what is older with --from %d, or import all of it into an app of its own (footfall app add …-before --retain-days 0 …)",
			visit.DayText(min(from, to)), r.App, visit.DayText(first), first)
		return false, nil
	}
	return true, nil
}

// write writes down what is to be counted of a file; false: its log is not where it was.
func (r *run) write(ctx context.Context, b book, s *source) (written bool, err error) {
	l, isNew := &s.log, s.isNew() || s.moved
	changed, err := r.changed(ctx, b, s)
	if err != nil {
		return false, err
	}
	if l.ID != 0 && isNew && (s.moved || !s.holds || *l.Counted == 0 && !s.hasNameOf(l)) {
		l.Look++ // whoever counts what was there before looks anew
	}
	if isNew {
		l.Claimed, l.Hash = s.end.at, r.app.hashes.ofSum(s.end.sum)
		if s.start.at > 0 { // of a log of 0.1.0, and where a file takes the place, another one is there
			l.CountedHash = r.app.hashes.ofSum(s.start.sum)
		}
		l.Rules, l.File, l.Inode = r.Rules.String(), s.file.name, s.file.inode()
	}
	if l.Inode == s.file.inode() {
		l.State = s.state
	}
	l.Beginning = &s.beginning
	if !s.few || isNew { // else it may be another one that has begun alike
		l.Server = cmp.Or(l.Server, r.Server)
	}
	if isNew || l.Server != s.is.Server || l.State != s.is.State {
		if written, err := b.set(ctx, l, s.is, changed); err != nil || !written {
			return false, err
		}
		r.near.wrote(l.ID, changed)
		r.knows(l)
	}
	for _, short := range s.shorter {
		short.isIn(s)
	}
	s.rest, s.moved = nil, false
	s.position = &record.Position{Position: db.Position{App: r.app.id, Log: l.ID, Look: l.Look}, Next: s.start.at}
	r.progress.Total.Add(s.end.at - s.start.at)
	return true, nil
}

// changed are the samples of a log with the new lines of a file. Lines for which it was claimed, and
// that are not counted, are let go: the file may have others there.
func (r *run) changed(ctx context.Context, b book, s *source) (samples, error) {
	if s.log.ID == 0 || !s.isNew() && !s.moved {
		return s.rest, nil
	}
	hours := s.rest.hours()
	if s.moved || s.log.Claimed > s.start.at {
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
