package imports

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"footfall/db"
	"footfall/intake/logs"
)

// A file may have lines that were claimed as part of another log: after `zcat access.log.*.gz
// access.log | footfall import -` the files come one by one, or the other way round. These lines are
// found by comparing the hashes of all lines that show the same hours: those that follow each other
// in both, in the same order, are an overlap, as many of them as there are.
//
// That lines are equal does not prove that they are the same: the logs of two servers are alike
// where a monitor asks both in the same second. Lines of many addresses that are equal one by one
// are the same ones. And where the overlap begins or ends in the middle of both, it cannot be told
// from which line to which: there the file is refused.

// evidence is of how many addresses lines must be, so that they are taken for the same ones. A
// monitor is one or two.
const evidence = 8

// overlap is lines of a file which are equal, one by one, to lines of a log.
type overlap struct {
	log      *db.LogsListRow
	shift    int64 // the number of a line in the file, less its number in the log
	from, to int64 // in the file

	// Where the next line before or behind them is not known to be another one.
	openBefore, openBehind bool
}

// beginsOne reports whether they begin where the file does, or the log.
func (o *overlap) beginsOne() bool { return o.from == 0 || o.from == o.shift }

// endsOne reports whether they end where the file does, which has so many lines, or the log.
func (o *overlap) endsOne(lines int64) bool { return o.to == lines || o.to == o.shift+o.log.Lines }

// mostEqual is how often a line may be in a file and still be looked for in others: by one of a
// burst nothing is found that another line would not find.
const mostEqual = 4

// stretchesRead is about how many stretches are read from the book at once.
const stretchesRead = 2000

// matcher finds the overlaps of a file.
type matcher struct {
	book  *book
	file  *scanner
	own   int64                // the log that the file is; 0: none that is known
	index map[int32][]numbered // lines of the file by hour, and there by hash
	found map[alignment][]overlap
}

type numbered struct {
	hash uint64
	line int64
}

type alignment struct{ log, shift int64 }

func (a alignment) compare(b alignment) int {
	return cmp.Or(cmp.Compare(a.log, b.log), cmp.Compare(a.shift, b.shift))
}

// overlapsOf finds the overlaps of what is not claimed of a file with the logs of the book.
func (k *book) overlapsOf(ctx context.Context, s *scanner) ([]overlap, error) {
	m := matcher{book: k, file: s, index: map[int32][]numbered{}, found: map[alignment][]overlap{}}
	if s.is != nil {
		m.own = s.is.ID
	}
	parts := map[int32][]int{} // stretches of the file
	var hours []int32
	for i, t := range s.stretches {
		if s.end(i) > s.base {
			if parts[t.hour] == nil {
				hours = append(hours, t.hour)
			}
			parts[t.hour] = append(parts[t.hour], i)
		}
	}
	if len(hours) == 0 {
		return nil, nil
	}
	there, err := k.q.LogLinesOfHours(ctx, db.LogLinesOfHoursParams{AppID: k.app, Hours: hours, But: m.own})
	if err != nil {
		return nil, err
	}
	hours = hours[:0]
	read := int64(0)
	for i, h := range there {
		hours, read = append(hours, h.Hour), read+h.Stretches
		m.add(h.Hour, parts[h.Hour])
		if read < stretchesRead && i+1 < len(there) {
			continue
		}
		if err := m.match(ctx, hours); err != nil {
			return nil, err
		}
		hours, read = hours[:0], 0
		clear(m.index)
	}
	return m.extended(ctx)
}

// add makes the index of the lines of an hour.
func (m *matcher) add(hour int32, parts []int) {
	s := m.file
	var lines []numbered
	for _, i := range parts {
		for line := max(s.stretches[i].line, s.base); line < s.end(i); line++ {
			lines = append(lines, numbered{s.hashes[line-s.base], line})
		}
	}
	slices.SortFunc(lines, func(a, b numbered) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.line, b.line)) })
	m.index[hour] = lines
}

// match looks for the lines of some hours in the book.
func (m *matcher) match(ctx context.Context, hours []int32) error {
	stretches, err := m.book.q.LogLinesInHours(ctx, db.LogLinesInHoursParams{AppID: m.book.app, Hours: hours, But: m.own})
	for _, stretch := range stretches {
		l := &logLines{stretch}
		index := m.index[l.Hour]
		for line := l.Line; line < l.Line+l.count(); line++ {
			hash := l.hash(line)
			at, is := slices.BinarySearchFunc(index, hash, func(n numbered, h uint64) int { return cmp.Compare(n.hash, h) })
			if !is {
				continue
			}
			equal := index[at:]
			if len(equal) > mostEqual && equal[mostEqual].hash == hash {
				// One of a burst. But where both begin with it, they may be the same log.
				if line == 0 && equal[0].line == 0 {
					m.compare(l, 0, 0)
				}
				continue
			}
			for _, n := range equal {
				if n.hash != hash {
					break
				}
				m.compare(l, line, n.line)
			}
		}
	}
	return err
}

// compare compares lines of a stretch of a log, and of a file, around two that are equal.
func (m *matcher) compare(l *logLines, line, own int64) {
	a := alignment{l.LogID, own - line}
	found := m.found[a]
	if n := len(found); n > 0 && found[n-1].from <= own && own < found[n-1].to {
		return
	}
	s, first, behind := m.file, max(l.Line, m.file.base-a.shift), min(l.Line+l.count(), m.file.number-a.shift)
	from, to := line, line+1
	for from > first && l.hash(from-1) == s.hashes[from-1+a.shift-s.base] {
		from--
	}
	for to < behind && l.hash(to) == s.hashes[to+a.shift-s.base] {
		to++
	}
	o := overlap{m.book.logs[l.LogID], a.shift, from + a.shift, to + a.shift, from == first, to == behind}
	if n := len(found); n > 0 && found[n-1].to == o.from && found[n-1].openBehind && o.openBefore {
		found[n-1].to, found[n-1].openBehind = o.to, o.openBehind
		return
	}
	m.found[a] = append(found, o)
}

// extended extends what was found as far as lines are equal, also where they are claimed, or all of
// a stretch was a burst. It returns them in the order of the file.
func (m *matcher) extended(ctx context.Context) ([]overlap, error) {
	var all []overlap
	own, theirs := &track{book: m.book, log: m.own}, &track{}
	for _, a := range slices.SortedFunc(maps.Keys(m.found), alignment.compare) {
		if theirs.log != a.log {
			theirs = &track{book: m.book, log: a.log}
		}
		found := m.found[a]
		equal := func(line int64, back bool) (bool, error) {
			their, ok, err := theirs.at(ctx, line-a.shift, back)
			if !ok || err != nil {
				return false, err
			}
			if line >= m.file.base {
				return m.file.hashes[line-m.file.base] == their, nil
			}
			mine, ok, err := own.at(ctx, line, back)
			return ok && mine == their, err
		}
		slices.SortFunc(found, func(a, b overlap) int { return cmp.Compare(a.from, b.from) })
		for len(found) > 0 {
			o := found[0]
			for found = found[1:]; o.openBefore && !o.beginsOne(); o.from-- {
				if is, err := equal(o.from-1, true); err != nil {
					return nil, err
				} else if !is {
					break
				}
			}
			for ; ; o.to++ {
				for ; len(found) > 0 && found[0].from <= o.to; found = found[1:] {
					o.to, o.openBehind = found[0].to, found[0].openBehind
				}
				if !o.openBehind || o.endsOne(m.file.number) {
					break
				}
				if is, err := equal(o.to, false); err != nil {
					return nil, err
				} else if !is {
					break
				}
			}
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b overlap) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.log.ID, b.log.ID), cmp.Compare(a.shift, b.shift))
	})
	return all, nil
}

// track is lines of a log, which are read from the book as they are asked for.
type track struct {
	book  *book
	log   int64
	lines []logLines
}

// stretchesBack is how many stretches are read at once, where it goes from the end to the beginning.
const stretchesBack = 50

// at returns the hash of a line; false: it is not there any more.
func (t *track) at(ctx context.Context, line int64, back bool) (uint64, bool, error) {
	for again := false; ; again = true {
		for i := range t.lines {
			if l := &t.lines[i]; l.Line <= line && line < l.Line+l.count() {
				return l.hash(line), true, nil
			}
		}
		if again {
			return 0, false, nil
		}
		n := 1
		if back {
			n = stretchesBack
		}
		var err error
		if t.lines, err = t.book.linesUpTo(ctx, t.log, line, n); err != nil {
			return 0, false, err
		}
	}
}

// longerLog returns the log of which a file is the beginning; nil: there is none. Of several, that
// of which most was counted.
func (k *book) longerLog(s *scanner, overlaps []overlap) (found *db.LogsListRow) {
	for _, o := range overlaps {
		if o.from == 0 && o.shift == 0 && o.to == s.number && (found == nil || found.Next < o.log.Next) {
			found = o.log
		}
	}
	return found
}

// repeated returns the lines of a source that other logs have claimed. Where it cannot tell which
// these are, it says why.
func (r *run) repeated(ctx context.Context, s *source, overlaps []overlap) (skips []int64, why string, err error) {
	evident, err := r.evident(ctx, s, overlaps)
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if err != nil {
		return nil, s.file.readProblem(err), nil
	}
	for i, o := range overlaps {
		from, to := max(o.from, s.scanner.base), o.to
		whole := o.beginsOne() && o.endsOne(s.scanner.number)
		theirs := r.ours(o.log.ID)
		switch {
		case !evident[i] && whole:
			r.summary.note(s.file.name, "its lines %d to %d are also in %s, and are counted: they are of too few addresses to tell whether they are the same ones", from+1, to, o.log.File)
		case !evident[i]:
		case o.from == 0 && o.shift == 0:
			return nil, fmt.Sprintf("it begins as %s, which was imported, but is another one from line %d on: nothing of it is counted. Import what is new in it alone", o.log.File, to+1), nil
		case !whole:
			return nil, fmt.Sprintf("it has lines that were imported as part of %s (%d to %d), with others between them: nothing of it is counted. Import what is new in it alone", o.log.File, o.from+1, to), nil
		case o.log.Next < o.log.Claimed && theirs == nil:
			return nil, "it has lines of " + o.log.File + ", which was not imported to its end: import that first, or both together", nil
		default:
			skips = append(skips, from, to)
		}
	}
	return skips, "", nil
}

// evident returns which overlaps are of enough addresses. They are read from the file, only as far
// as it takes.
func (r *run) evident(ctx context.Context, s *source, overlaps []overlap) ([]bool, error) {
	enough := cmp.Or(r.evidence, evidence)
	is := make([]bool, len(overlaps))
	addresses := make([]map[string]bool, len(overlaps))
	f, start := s.scanner, int64(-1)
	for i, o := range overlaps {
		if o.to-o.from < int64(enough) || o.from >= f.base && !several(f.hashes[o.from-f.base:o.to-f.base], enough) {
			continue
		}
		addresses[i] = map[string]bool{}
		if start < 0 {
			start = o.from
		}
	}
	if start < 0 {
		return is, nil
	}
	l := lines{}
	for _, t := range f.stretches {
		if t.line <= start {
			l.place, l.number = t.place, t.line
		}
	}
	reader, done, err := s.file.read(l.place)
	if err != nil {
		return nil, err
	}
	defer done()
	l.from = reader
	var line logs.Line
	for next := 0; ; { // overlaps before that are done
		for next < len(overlaps) && (addresses[next] == nil || is[next] || overlaps[next].to <= l.number) {
			next++
		}
		if next == len(overlaps) || ctx.Err() != nil {
			return is, ctx.Err()
		}
		text, ok := l.next()
		if !ok {
			return is, cmp.Or(l.fault, io.ErrUnexpectedEOF)
		}
		if overlaps[next].from >= l.number || f.parser.Parse(text, &line) != nil {
			continue
		}
		for i := next; i < len(overlaps) && overlaps[i].from < l.number; i++ {
			if addresses[i] != nil && !is[i] && l.number <= overlaps[i].to {
				addresses[i][string(line.Client)] = true
				is[i] = len(addresses[i]) >= enough
			}
		}
	}
}

// several reports whether there are so many different hashes.
func several(hashes []uint64, n int) bool {
	different := make(map[uint64]bool, n)
	for _, h := range hashes {
		different[h] = true
		if len(different) >= n {
			return true
		}
	}
	return false
}
