package imports

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// The model of imports knows which request every line tells of, however often it stands in however
// many files, and what was counted of each. After each import it holds that against the rule: a file
// that is not refused is counted, each request once; of one that is refused nothing is; and what
// counts twice is only what shares less with each log than the rule sees.

// modelLog is what the model knows of a log in the book.
type modelLog struct {
	Log
	content []byte         // for which it was claimed
	lines   []int          // of these
	before  []int          // lines of its file before another one took its place
	claims  map[int]bool   // texts of all these
	ever    []map[int]bool // what claims were
	served  string         // whose it was when the imports began that run now
	ids     map[int]bool   // lines of these
	names   []string       // of files from which it was counted
	inodes  []string       // that it had
	out     map[int]bool   // lines that were counted when --after was told of it
}

// importSome imports something, or several things at once.
func (w *world) importSome() {
	var all []*imported
	for range []int{1, 1, 1, 2, 3}[w.random.IntN(5)] {
		var o Options
		files := w.choose()
		switch {
		case len(all) > 0 && all[0].stdin == nil && w.one(40):
			o = all[0].options
		case len(files) == 0:
			continue
		default:
			o = w.options(files...)
		}
		o.DryRun = w.one(10)
		i := &imported{options: o}
		if o.Stdin == nil && len(files) == 1 && len(all) == 0 && len(o.Files) == 1 && w.one(20) {
			p := *files[0]
			p.path, p.written = standardInputName, 0
			i.stdin, i.options = &p, w.options(&p)
		}
		if w.one(25) {
			i.killAt = w.pick(1, 30)
		}
		all = append(all, i)
	}
	w.run(all...)
	for _, i := range all {
		w.heed(i)
	}
}

// slide imports the last lines of a log, as docker logs --tail gives them.
func (w *world) slide(s *writer) {
	p := w.papers[s.log()]
	if p == nil || len(p.lines) == 0 {
		return
	}
	w.derived++
	last := &paper{path: filepath.Join(w.dir, fmt.Sprintf("derived%d.log", w.derived)), from: s}
	last.append(w, bodyOf(p.lines[w.random.IntN(len(p.lines)):])...)
	w.save(last)
	i := &imported{options: w.options(last)}
	w.run(i)
	w.heed(i)
}

// run runs imports, and holds what they have done against the rule.
func (w *world) run(all ...*imported) {
	counted, logs := slices.Clone(w.counted), len(w.logs)
	for _, i := range all {
		if i.world, i.files = w, w.papers; i.stdin != nil {
			i.files = maps.Clone(w.papers)
			i.files[standardInputName] = i.stdin
		}
		w.seen.imports++
	}
	for _, l := range w.logs {
		l.served = l.Server
	}
	w.memory.runAll(all)
	dry := true
	for _, i := range all {
		o := i.options
		dry = dry && o.DryRun
		w.note("import %v server=%q after=%v,%v another=%v dry=%v: killed=%q err=%v counted=%d problems=%v notes=%v", o.Files, o.Server,
			o.After, o.AfterCounted, o.Another, o.DryRun, i.killed, i.err, i.summary.Counted, i.summary.Problems, i.summary.Notes)
		w.verify(i)
	}
	if dry && len(all) > 0 && (!slices.Equal(counted, w.counted) || logs != len(w.logs)) {
		w.wrong("a dry run has changed something")
	}
	w.eachOnce()
}

var afterIn = regexp.MustCompile(`--after (\d\S+),`)

// heed does what refusals say, where that is true.
func (w *world) heed(i *imported) {
	for _, path := range slices.Sorted(maps.Keys(i.refused)) {
		p := i.files[path]
		o := w.options(p)
		o.Server = i.options.Server
		at := slices.IndexFunc(i.summary.Problems, func(s string) bool { return strings.HasPrefix(s, path+": ") })
		found := afterIn.FindStringSubmatch(i.summary.Problems[at])
		switch {
		case w.isAnother(p):
			o.Another = true
			w.seen.another++
		case len(found) > 0 && w.goesOnAfter(p, i.summary.Problems[at], found[1]):
			o.After, _ = time.Parse(time.RFC3339, found[1])
			w.seen.after++
		case w.isWindow(p):
			o.AfterCounted = true
			w.seen.window++
		default:
			continue
		}
		if w.one(70) {
			told := &imported{options: o, stdin: i.stdin}
			w.run(told)
			if o.Another && slices.ContainsFunc(told.summary.Problems,
				func(text string) bool { return strings.Contains(text, "of its lines are in") }) {
				w.wrong("%s is refused, though it was told to be another", w.short(path))
			}
		}
	}
}

// begun are lines that are counted, or that an import has begun to count.
func (w *world) begun() map[int]bool {
	begun := maps.Clone(w.due)
	for _, l := range w.logs {
		maps.Copy(begun, l.ids)
	}
	return begun
}

// isAnother reports whether no import has begun any line of a file.
func (w *world) isAnother(p *paper) bool {
	begun := w.begun()
	return !slices.ContainsFunc(p.lines, func(l int) bool { return l != none && begun[l] })
}

// goesOnAfter reports whether just the lines of a file up to a time are counted, and those of that
// very second which are not counted equal none that are.
func (w *world) goesOnAfter(p *paper, problem, at string) bool {
	until, err := time.Parse(time.RFC3339, at)
	must(err)
	begun := w.begun()
	if !slices.ContainsFunc(slices.Collect(maps.Values(w.logs)), func(l *modelLog) bool {
		return l.LastAt != nil && l.LastAt.Equal(until) && strings.Contains(problem, " are in "+nameOf(&l.Log)+", ") &&
			!slices.ContainsFunc(p.lines, func(line int) bool { return line != none && begun[line] && !l.ids[line] }) &&
			!slices.ContainsFunc(l.lines, func(line int) bool {
				return line != none && w.of(line).second == until.Unix() && !slices.Contains(p.lines, line)
			})
	}) {
		return false
	}
	has, had := map[int]int{}, map[int]int{}
	for _, l := range p.lines {
		if l == none {
			continue
		}
		switch second := w.of(l).second; {
		case second < until.Unix() && !w.due[l], second > until.Unix() && begun[l]:
			return false
		case second == until.Unix() && w.due[l] != begun[l]:
			return false
		case second == until.Unix():
			has[w.lines[l]]++
			if w.due[l] {
				had[w.lines[l]]++
			}
		}
	}
	for t, n := range has {
		if w.counted[t] < n && w.counted[t] != had[t] || w.counted[t] >= n && had[t] != n {
			return false
		}
	}
	return true
}

// isWindow reports whether a file goes on behind the last lines of a log, which it has, too, and has
// none of others.
func (w *world) isWindow(p *paper) bool {
	begun := w.begun()
	for _, l := range w.logs {
		n := int(l.Lines)
		if *l.Counted != l.Claimed || n == 0 || n > len(l.lines) || l.lines[n-1] == none {
			continue
		}
		at := slices.Index(p.lines, l.lines[n-1])
		if at < 0 || at+1 > n || !slices.Equal(p.lines[:at+1], l.lines[n-at-1:n]) {
			continue
		}
		alone := !slices.ContainsFunc(slices.Collect(maps.Values(w.logs)), func(other *modelLog) bool {
			return other != l && slices.ContainsFunc(p.lines, func(line int) bool { return line != none && other.claims[w.lines[line]] })
		})
		if alone && l.After == nil && !slices.ContainsFunc(p.lines[at+1:], func(l int) bool { return l == none || begun[l] }) {
			return true
		}
	}
	return false
}

// decided hears that an import has written what is to be counted of a log.
func (w *world) decided(i *imported, l Log, was *Log) {
	p, mine := i.paperOf(&l), w.logs[l.ID]
	if mine == nil {
		mine = &modelLog{}
		w.logs[l.ID] = mine
	}
	if was != nil && l.Claimed == was.Claimed && bytes.Equal(l.Hash, was.Hash) { // nothing of it is new
		if mine.Log = l; p != nil {
			w.alias(i, p, mine, int(l.Claimed))
		}
		return
	}
	if p == nil {
		w.wrong("log %d is claimed for %d bytes that no file has", l.ID, l.Claimed)
		return
	}
	start, moved := int(*l.Counted), was != nil && *was.Counted != *l.Counted
	if len(p.content) >= start && !moved && !bytes.HasPrefix(mine.content, p.content[:start]) || len(p.content) < start {
		w.wrong("%s is no beginning of log %d", w.short(p.path), l.ID)
		return
	}
	claimed := int(l.Claimed)
	mine.Log = l
	if moved {
		mine.before, mine.lines = append(mine.before, mine.lines...), nil
	}
	n := w.alias(i, p, mine, claimed)
	mine.content, mine.lines = p.content[:claimed], append(slices.Clone(mine.lines[:n]), p.lines[n:p.upTo(claimed)]...)
	mine.claims, mine.ids = map[int]bool{}, map[int]bool{}
	for _, line := range w.leftOf(mine, append(slices.Clone(mine.before), mine.lines...)) {
		mine.claims[w.lines[line]], mine.ids[line] = true, true
	}
	w.note("log %d: %s from %d to %d, moved %v, told %q", l.ID, l.File, start, claimed, moved, l.Told)
	mine.inodes = append(mine.inodes, l.Inode)
	mine.ever = append(mine.ever, mine.claims)
	maps.DeleteFunc(w.twice, func(of [2]int, _ bool) bool { return of[0] == int(l.ID) && !mine.ids[of[1]] })
	w.holdAgainstAll(&fresh{mine, w.leftOf(mine, mine.lines[p.upTo(start):]), i.options.Server, start > 0 || l.After != nil})
}

// paths are its files.
func (i *imported) paths() []string {
	if i.stdin != nil {
		return []string{standardInputName}
	}
	return i.options.Files
}

// paperOf is the file that has what a log is claimed for; nil: none of these files has.
func (i *imported) paperOf(l *Log) *paper {
	w := i.world
	for _, path := range append([]string{l.File}, i.paths()...) {
		p := i.files[path]
		if p != nil && slices.Contains(i.paths(), path) && int(l.Claimed) <= len(p.content) &&
			bytes.Equal(l.Hash, w.claimOf(p.content[:l.Claimed])) {
			return p
		}
	}
	return nil
}

// leftOf are lines without those that --after leaves out.
func (w *world) leftOf(l *modelLog, lines []int) (left []int) {
	for _, line := range lines {
		if line == none {
			continue
		}
		if l.After != nil {
			if l.out == nil {
				l.out = maps.Clone(w.due)
			}
			if at := w.of(line).second; at < l.After.Unix() || at == l.After.Unix() && l.out[line] {
				continue
			}
		}
		left = append(left, line)
	}
	return left
}

// upTo is how many lines end before a byte.
func (p *paper) upTo(place int) int {
	n, there := slices.BinarySearch(p.ends, place)
	if there {
		n++
	}
	return n
}

// alias returns how many lines of a file are those of its log. Others that equal them are taken for
// these: nobody can tell, where they are many and of many visitors, or the file has the name of the
// log, or nothing else.
func (w *world) alias(i *imported, p *paper, mine *modelLog, place int) (n int) {
	i.logOf[p.path] = mine
	counted := p.upTo(int(*mine.Counted))
	if mine.before != nil || counted > len(mine.lines) || slices.Equal(mine.lines[:counted], p.lines[:counted]) {
		return min(counted, len(mine.lines))
	}
	w.aliased = true
	w.seen.aliases++
	taken := map[int]bool{}
	for _, l := range mine.lines[:counted] {
		taken[l] = l != none
	}
	// Those which they are taken for may come later, as where a file was sorted of several.
	w.over = w.over || slices.ContainsFunc(p.lines[counted:], func(l int) bool { return taken[l] })
	if w.isFew(p.lines[:counted]) && !slices.Contains(mine.names, p.path) && !slices.Contains(mine.inodes, inodeOf(p.path)) &&
		p.upTo(place) > counted {
		w.wrong("%s goes on log %d, %s, of which %d lines are counted", w.short(p.path), mine.ID, w.short(fmt.Sprint(mine.names)), counted)
	}
	return counted
}

// isFew reports whether lines are too few to tell a log by them, or of too few visitors.
func (w *world) isFew(lines []int) bool {
	visitors, body := map[int]bool{}, bodyOf(lines)
	for _, l := range body {
		visitors[w.of(l).visitor] = true
	}
	return len(body) < 64 || len(visitors) < 8
}

// inodeOf names a file. Those of files that are gone are taken again.
func inodeOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return (&file{name: path, info: info}).inode()
}

func (w *world) isSame(a, b int) bool {
	return a == b || a != none && b != none && w.lines[a] == w.lines[b]
}

// fresh are lines of a log that are to be counted.
type fresh struct {
	of     *modelLog
	lines  []int
	server string // as the import says
	goesOn bool
}

// holdAgainstAll holds lines that are to be counted against all other logs.
func (w *world) holdAgainstAll(f *fresh) {
	for _, other := range w.logs {
		if other == f.of {
			continue
		}
		if f.of.Told != toldAnother && other.Told != toldAnother &&
			w.judge(f.lines, other.claims, other.Server, f.server, f.goesOn) == certainly {
			w.wrong("%d lines of log %d are counted, which are in log %d", len(f.lines), f.of.ID, other.ID)
		}
		for _, l := range f.lines {
			if other.ids[l] {
				w.twice[[2]int{int(f.of.ID), l}] = true
			}
		}
	}
}

// verdict is what the rule says of lines that two logs have.
type verdict int

const (
	never verdict = iota
	perhaps
	certainly
)

// judge says whether the rule sees that lines are in a log: as it stands in the documents, by all
// lines; and where there are more than a sample has, by what samples of these would have.
func (w *world) judge(lines []int, theirs map[int]bool, theirServer, server string, goesOn bool) verdict {
	type hour struct{ mine, theirs, both int }
	hours, visitors, mine := map[int32]*hour{}, map[int]bool{}, map[int]bool{}
	for _, l := range lines {
		t := w.lines[l]
		if mine[t] {
			continue
		}
		mine[t] = true
		h := hours[w.texts[t].hour]
		if h == nil {
			h = &hour{}
			hours[w.texts[t].hour] = h
		}
		h.mine++
		if theirs[t] {
			h.both++
			visitors[w.texts[t].visitor] = true
		}
	}
	for t := range theirs {
		if h := hours[w.texts[t].hour]; h != nil {
			h.theirs++
		}
	}
	var a, b, both, low, high float64 // by what was sampled of each hour; it may be as little or as much
	sampled := false
	for _, h := range hours {
		if h.theirs == 0 {
			continue
		}
		share := min(1, sampleSize/float64(max(h.mine, h.theirs)))
		a, b, both = a+share*float64(h.mine), b+share*float64(h.theirs), both+share*float64(h.both)
		switch sample := share * float64(h.both); {
		case share < 1 && sample < 20: // perhaps none of these few is in the sample
			high += float64(h.both)
		case share == 1, h.both == h.mine, h.both == h.theirs:
			low, high = low+sample, high+sample
		default:
			low, high = low+0.7*sample, high+1.4*sample
		}
		sampled = sampled || share < 1
	}
	if both == 0 {
		return never
	}
	sees := func(both float64, visitors int) bool {
		many := visitors >= 8
		switch {
		case server != "" && theirServer != "" && server != theirServer:
			return !goesOn && both >= 0.9*min(a, b)
		case goesOn:
			return many && both >= 0.2*a
		}
		return many && both >= 0.2*min(a, b) || both >= 0.9*min(a, b)
	}
	fewer := len(visitors)
	if sampled {
		fewer /= 2
	}
	switch {
	case sees(low, fewer):
		return certainly
	case sees(high, len(visitors)):
		return perhaps
	}
	return never
}

// moved hears that a log was counted on.
func (w *world) moved(l Log) {
	mine := w.logs[l.ID]
	n := int(*l.Counted)
	if n == 0 && l.CountedHash == nil {
		return
	}
	if n > len(mine.content) || !bytes.Equal(l.CountedHash, w.hashOf(mine.content[:n])) {
		w.wrong("log %d is counted for bytes that it has not", l.ID)
		return
	}
	lines, rest := bytes.Count(mine.content[:n], []byte("\n")), 0
	if n > 0 && mine.content[n-1] != '\n' {
		rest = 1
	}
	if lines+rest != int(l.Lines) {
		w.wrong("log %d has %d lines, and not %d", l.ID, lines, l.Lines)
	}
	mine.Log = l
}

// count hears that a line was counted.
func (w *world) count(i *imported, log int64, file string, number int64) {
	mine, line := w.logs[log], i.files[file].lines[number-1]
	if int(number) > len(mine.lines) || line == none || !w.isSame(line, mine.lines[number-1]) {
		w.wrong("line %d of %s was counted, which log %d has not", number, w.short(file), log)
		return
	}
	if !slices.Contains(mine.names, file) {
		mine.names = append(mine.names, file)
	}
	w.counted[w.lines[line]]++
	i.newly[file] = append(i.newly[file], line)
}

// verify holds what became of an import against what it says.
func (w *world) verify(i *imported) {
	if i.err != nil && !errors.Is(i.err, errKilled) {
		w.wrong("import fails: %v", i.err)
	}
	for _, problem := range i.summary.Problems {
		path, why, _ := strings.Cut(problem, ": ")
		if p := i.files[path]; p.broken != nil && strings.HasPrefix(why, "its gzip ends in the middle") {
			continue
		}
		i.refused[path] = true
		w.seen.refused++
		if i.err != nil || i.options.DryRun { // it may be about what was taken back
			continue
		}
		if len(i.newly[path]) > 0 {
			w.wrong("%s is refused, and %d lines of it are counted", w.short(path), len(i.newly[path]))
		}
		w.justify(i, i.files[path], why)
	}
	if i.err != nil || i.options.DryRun {
		return
	}
	for _, path := range i.paths() {
		if !i.refused[path] {
			w.isCounted(i, i.files[path])
		}
	}
}

// justify says whether a file is refused for a reason.
func (w *world) justify(i *imported, p *paper, why string) {
	isIt := false
	for _, l := range w.logs {
		switch {
		case strings.Contains(why, "of its lines are in"):
			isIt = isIt || slices.ContainsFunc(l.ever, func(claims map[int]bool) bool {
				return w.judge(bodyOf(w.present(p)), claims, l.Server, i.options.Server, false) != never || w.goesOnAs(p, l, claims)
			})
		case strings.Contains(why, "too few lines are counted"), strings.Contains(why, "and belongs to no other"):
			isIt = isIt || p.begins(l.content)
		default:
			isIt = true
		}
	}
	if !isIt {
		w.wrong("%s is refused without a reason: %s", w.short(p.path), w.short(why))
	}
}

// goesOnAs reports whether new lines of a file that goes on another log share some with this one.
func (w *world) goesOnAs(p *paper, l *modelLog, claims map[int]bool) bool {
	for _, mine := range w.logs {
		if mine != l && p.begins(mine.content) {
			for from := range w.present(p) {
				if w.judge(bodyOf(w.present(p)[from:]), claims, l.Server, "", true) != never {
					return true
				}
			}
		}
	}
	return false
}

// begins reports whether a file begins as a log.
func (p *paper) begins(content []byte) bool {
	end := bytes.IndexByte(content, '\n')
	return end >= 0 && bytes.HasPrefix(p.content, content[:end+1])
}

// present are the lines of a file up to the first one whose time has not come.
func (w *world) present(p *paper) []int {
	ahead := slices.IndexFunc(p.lines, func(l int) bool { return l != none && w.of(l).second > w.clock+mostApart })
	if ahead < 0 {
		return p.lines
	}
	return p.lines[:ahead]
}

// bodyOf are lines without headers.
func bodyOf(lines []int) []int {
	return slices.DeleteFunc(slices.Clone(lines), func(l int) bool { return l == none })
}

// isCounted asserts that all lines of a file are counted whose time has come, as an import says.
func (w *world) isCounted(i *imported, p *paper) {
	lines := w.present(p)
	if len(i.newly[p.path]) == 0 && (!i.options.Another || !w.isFew(lines)) && w.isInOne(lines, i.options.Server) {
		w.seen.whole++
		return
	}
	for n, l := range lines {
		if mine := i.logOf[p.path]; mine != nil && n < len(mine.lines) && w.isSame(l, mine.lines[n]) {
			l = mine.lines[n]
		}
		if l != none {
			w.due[l] = true
		}
	}
}

// isInOne reports whether one log has all of some lines, or such as equal them: nobody can tell that
// they are others.
func (w *world) isInOne(lines []int, server string) bool {
	want := map[int]int{}
	for _, l := range lines {
		if l != none {
			want[w.lines[l]]++
		}
	}
	for _, l := range w.logs {
		if server != "" && l.Server != "" && server != l.Server && l.served != "" {
			continue
		}
		has, in := map[int]int{}, true
		for _, line := range append(slices.Clone(l.before), l.lines[:l.Lines]...) {
			if line != none {
				has[w.lines[line]]++
			}
		}
		for t, n := range want {
			in = in && has[t] >= n
		}
		if in {
			w.aliased = w.aliased || slices.ContainsFunc(lines, func(line int) bool { return line != none && !l.ids[line] })
			return true
		}
	}
	return false
}

// eachOnce asserts that no line is counted less often than an import has said, or more often than it
// was written; but for those of which nothing tells.
func (w *world) eachOnce() {
	if w.over {
		return
	}
	least, most := make([]int, len(w.texts)), make([]int, len(w.texts))
	for l := range w.due {
		least[w.lines[l]]++
	}
	for l := range w.begun() {
		most[w.lines[l]]++
	}
	again, in := map[int]int{}, map[int]int{}
	for of := range w.twice {
		again[of[1]]++
	}
	for _, l := range w.logs {
		for line := range l.ids {
			in[line]++
		}
	}
	for line, n := range again {
		most[w.lines[line]] += max(0, min(n, in[line]-1))
	}
	whole := !w.aliased
	for _, l := range w.logs {
		whole = whole && *l.Counted == l.Claimed
	}
	for t, n := range w.counted {
		switch {
		case n < least[t]:
			w.wrong("%q was counted %d times, and not %d", w.texts[t].line, n, least[t])
		case n > most[t]:
			w.wrong("%q was counted %d times, and not at most %d", w.texts[t].line, n, most[t])
		case whole && n != most[t]:
			w.wrong("%q was counted %d times, and not just %d", w.texts[t].line, n, most[t])
		}
	}
}

// play plays a case.
func (w *world) play() {
	w.write()
	for range w.pick(2, 7) {
		if len(w.faults) > 0 || w.over {
			return
		}
		switch s := w.servers[w.random.IntN(len(w.servers))]; w.random.IntN(11) {
		case 0, 1:
			w.write()
		case 2:
			w.rotate(s)
		case 3:
			w.pack(s)
		case 4:
			w.slide(s)
		default:
			w.importSome()
		}
	}
	if w.behind > 0 {
		w.clock += 48 * 3600
	}
	for range 1 + w.random.IntN(5)/4 {
		for _, s := range w.servers {
			if files := w.filesOf(s); len(files) > 0 {
				w.run(&imported{options: w.options(files...), quiet: true})
			}
		}
	}
}

func playCase(seed uint64, dir string, traced bool) (w *world) {
	folder := filepath.Join(dir, fmt.Sprint(seed))
	must(os.Mkdir(folder, 0o700))
	defer func() { _ = os.RemoveAll(folder) }()
	w = newWorld(seed, folder)
	w.traced = traced
	w.play()
	return w
}

// quickDir is a folder in memory, where there is one: writing files takes most of the time of the model.
func quickDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "footfall-model-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Of 9,800 cases, 2,000 in the short form, none ends otherwise than in each line once, or in a refusal. FOOTFALL_MODEL_CASES
// makes it longer, and FOOTFALL_MODEL_SEED shows a case.
func TestModel(t *testing.T) {
	t.Parallel()
	dir := quickDir(t)
	if seed := dbtest.FromEnv(t, "FOOTFALL_MODEL_SEED", -1); seed >= 0 {
		w := playCase(uint64(seed), dir, true) //nolint:gosec // it is not negative
		t.Log("\n" + strings.Join(w.trace, "\n"))
		require.Empty(t, w.faults)
		return
	}
	cases := uint64(dbtest.FromEnv(t, "FOOTFALL_MODEL_CASES", dbtest.LongOrShort(9800, 2000))) //nolint:gosec // it is not negative
	var next atomic.Uint64
	var mu sync.Mutex
	var all tally
	var lost int
	kills, faults := map[stage]int{}, map[uint64]*world{}
	var workers sync.WaitGroup
	var failed atomic.Int32
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := next.Add(1); seed <= cases && failed.Load() < 10; seed = next.Add(1) {
				w := playCase(seed, dir, false)
				mu.Lock()
				for at, n := range w.kills {
					kills[at] += n
				}
				lost += w.lost
				all.imports += w.seen.imports
				all.refused += w.seen.refused
				all.aliases += w.seen.aliases
				all.whole += w.seen.whole
				all.another += w.seen.another
				all.after += w.seen.after
				all.window += w.seen.window
				if len(w.twice) > 0 {
					all.doubled++
				}
				if len(w.faults) > 0 {
					faults[seed] = w
					failed.Add(1)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Logf("%d cases: %+v, %d lost, kills: %v", cases, all, lost, kills)
	seeds := slices.Sorted(maps.Keys(faults))
	slices.SortStableFunc(seeds, func(a, b uint64) int { return cmp.Compare(len(faults[a].lines), len(faults[b].lines)) })
	for _, seed := range seeds[:min(len(seeds), 10)] {
		t.Errorf("seed %d, %d lines: %s", seed, len(faults[seed].lines), firstFaults(faults[seed]))
	}
	if len(seeds) > 0 {
		t.Errorf("%d cases have failed", len(seeds))
		return
	}
	for _, at := range []stage{beforeBook, inBook, beforeCommit, afterCommit, midRead, beforeCount, afterCount} {
		require.NotZero(t, kills[at], at)
	}
}

// firstFaults are what went wrong first.
func firstFaults(w *world) string {
	return w.short(strings.Join(w.faults[:min(2, len(w.faults))], "; "))
}
