package imports

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// world is what happens in a case: servers that write logs, and people who copy and import them.
type world struct {
	random   *rand.Rand
	dir      string
	memory   *memory
	hashes   *hashes // by which the logs are known
	now      int64   // of the servers
	clock    int64   // of whoever counts
	behind   int64   // by which that is behind the servers'
	firstDay int32

	texts   []wording
	byText  map[string]int
	lines   []int // the text of each
	servers []*writer
	papers  map[string]*paper // by path
	pool    int               // how many visitors there are
	monitor int               // of 100 lines, how many are a monitor's, who asks all servers at once
	step    int               // seconds between lines, at most
	named   int               // of 100 imports, how many tell the server
	many    int               // lines written at once
	derived int               // files that somebody made of logs

	logs    map[int64]*modelLog
	counted []int           // how often each text was counted
	due     map[int]bool    // lines that are counted, as an import has said
	twice   map[[2]int]bool // lines, by their log, that count again: nothing sees that
	over    bool            // nobody knows any more which lines are which
	aliased bool            // other lines were taken for those that they equal

	kills  map[stage]int
	lost   int
	traced bool
	seen   tally
	trace  []string
	faults []string
}

type tally struct{ imports, refused, doubled, aliases, whole, another, after, window int }

// wording is what equal lines say.
type wording struct {
	line    string
	second  int64
	hour    int32
	visitor int
}

// writer is a server, which writes a log.
type writer struct {
	name, folder string
	next         int // of rotated logs
}

// paper is a file.
type paper struct {
	path     string
	content  []byte // unpacked
	lines    []int  // one of each line; none: it is a header
	ends     []int  // where each line ends
	packed   bool
	half     int     // a line that stands behind the others, without its end
	written  int     // bytes of it; 0: there is none
	changed  bool    // since it was saved
	broken   []byte  // what is there of it on disk, if it was not written to its end
	from     *writer // nil: of several
	original bool    // it is as a server wrote it
}

const none = -1

const mostApart = 300 // seconds that clocks differ

func (w *world) wrong(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
	w.note("WRONG: "+format, args...)
}

// note tells what happens, to whoever looks into a case.
func (w *world) note(format string, args ...any) {
	if w.traced {
		w.trace = append(w.trace, w.short(fmt.Sprintf(format, args...)))
	}
}

// one tells whether something happens that happens so often of 100 times.
func (w *world) one(of100 int) bool { return w.random.IntN(100) < of100 }

func (w *world) pick(least, most int) int { return least + w.random.IntN(most-least+1) }

func newWorld(seed uint64, dir string) *world {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 46)), dir: dir, now: time.Date(2026, 1, 5, 10, 40, 0, 0, time.UTC).Unix(), firstDay: 20260101,
		byText: map[string]int{}, papers: map[string]*paper{}, logs: map[int64]*modelLog{}, due: map[int]bool{},
		twice: map[[2]int]bool{}, kills: map[stage]int{},
	}
	w.clock = w.now
	if w.one(15) {
		w.behind = int64(w.pick(300, 900))
	}
	w.hashes = newHashes(bytes.Repeat([]byte{byte(seed)}, 32), nil)
	w.memory = &memory{world: w, random: w.random, logs: map[int64]kept{}, locked: map[int64]bool{}}
	for n := range w.pick(1, 3) {
		s := &writer{name: fmt.Sprintf("web%d", n+1)}
		s.folder = filepath.Join(dir, s.name)
		must(os.Mkdir(s.folder, 0o700))
		w.servers = append(w.servers, s)
	}
	w.pool = []int{1, 3, 8, 30, 60}[w.random.IntN(5)]
	w.monitor = []int{0, 0, 10, 50, 100}[w.random.IntN(5)]
	w.step = []int{0, 1, 5, 60}[w.random.IntN(4)]
	w.named = []int{0, 0, 50, 100, 100}[w.random.IntN(5)]
	w.many = []int{3, 15, 40, 100}[w.random.IntN(4)]
	if w.one(4) { // more than a sample has
		w.many, w.step, w.pool = 500, 1, 60
	}
	return w
}

// line makes a line, and returns its number.
func (w *world) line(second int64, visitor int) int {
	address := fmt.Sprintf("192.0.2.%d", visitor)
	if visitor%4 == 3 { // several addresses are one visitor
		address = fmt.Sprintf("2001:db8:0:%x::%x", visitor, w.random.IntN(9)+1)
	}
	line := fmt.Sprintf(`%s - - [%s] "GET /%d HTTP/1.1" 200 7`, address, dayOfModel(second), w.random.IntN(4))
	t, there := w.byText[line]
	if !there {
		t = len(w.texts)
		w.byText[line] = t
		w.texts = append(w.texts, wording{line, second, int32(second / 3600), visitor}) //nolint:gosec // some hundred thousand
		w.counted = append(w.counted, 0)
	}
	w.lines = append(w.lines, t)
	return len(w.lines) - 1
}

// again makes a line that equals another one.
func (w *world) again(line int) int {
	w.lines = append(w.lines, w.lines[line])
	return len(w.lines) - 1
}

func (w *world) of(line int) *wording { return &w.texts[w.lines[line]] }

// append writes lines behind a file.
func (p *paper) append(w *world, lines ...int) {
	p.changed = true
	if p.written > 0 {
		p.written, lines = 0, append([]int{p.half}, lines...)
	}
	for _, l := range lines {
		switch l {
		case none:
			p.content = append(p.content, "#Fields: date time\n"...)
		default:
			p.content = append(append(p.content, w.of(l).line...), '\n')
		}
		p.lines, p.ends = append(p.lines, l), append(p.ends, len(p.content))
	}
}

// save writes a file to disk as it is, in place.
func (w *world) save(p *paper) {
	content := p.content
	if p.written > 0 {
		content = append(slices.Clone(content), w.of(p.half).line[:p.written]...)
	}
	p.changed = false
	w.papers[p.path] = p
	if p.broken != nil {
		must(os.WriteFile(p.path, p.broken, 0o600))
		return
	}
	if p.packed {
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
		_, _ = z.Write(content)
		_ = z.Close()
		content = packed.Bytes()
	}
	must(os.WriteFile(p.path, content, 0o600))
}

func (s *writer) log() string { return filepath.Join(s.folder, "access.log") }

// current is the file to which a server writes.
func (w *world) current(s *writer) *paper {
	p := w.papers[s.log()]
	if p == nil {
		p = &paper{path: s.log(), from: s, original: true, changed: true}
		if w.one(10) {
			p.append(w, none)
		}
		w.papers[s.log()] = p
	}
	return p
}

// write lets all servers write for a while.
func (w *world) write() {
	burst := w.one(3)
	defer func() { w.clock = w.now - w.behind }()
	for range w.pick(1, w.many) {
		w.now += int64(w.random.IntN(w.step + 1))
		if w.one(w.monitor) {
			line := w.line(w.now, w.random.IntN(w.pool))
			for n, s := range w.servers {
				if n > 0 {
					line = w.again(line)
				}
				w.current(s).append(w, line)
			}
			continue
		}
		s := w.servers[w.random.IntN(len(w.servers))]
		line := w.line(w.now, w.random.IntN(w.pool))
		w.current(s).append(w, line)
		for w.one(10) {
			line = w.again(line)
			w.current(s).append(w, line)
		}
		if burst {
			burst = false
			for range 1000 {
				w.current(s).append(w, w.again(line))
			}
		}
	}
	for _, s := range w.servers {
		p := w.current(s)
		if w.one(5) && p.written == 0 { // it is still writing
			p.half, p.changed = w.line(w.now, w.random.IntN(w.pool)), true
			p.written = w.pick(1, len(w.of(p.half).line))
		}
		if p.changed {
			w.save(p)
		}
	}
	if w.traced {
		w.note("write: %v", w.sizes())
	}
}

func (w *world) sizes() (of []string) {
	for _, path := range slices.Sorted(maps.Keys(w.papers)) {
		of = append(of, fmt.Sprintf("%s:%d", path, len(w.papers[path].lines)))
	}
	return of
}

func (w *world) short(text string) string { return strings.ReplaceAll(text, w.dir+"/", "") }

// rotate renames a log, or copies and truncates it.
func (w *world) rotate(s *writer) {
	p := w.papers[s.log()]
	if p == nil || len(p.lines) == 0 {
		return
	}
	s.next++
	old := *p
	old.path = fmt.Sprintf("%s.%d", s.log(), s.next)
	if w.one(50) {
		must(os.Rename(s.log(), old.path))
		w.papers[old.path] = &old
		delete(w.papers, s.log())
		w.note("rotate by rename: %s", old.path)
		return
	}
	w.save(&old)
	p.content, p.lines, p.ends, p.written = nil, nil, nil, 0
	w.save(p)
	w.note("rotate by copytruncate: %s", old.path)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// pack packs a rotated log.
func (w *world) pack(s *writer) {
	path := fmt.Sprintf("%s.%d", s.log(), s.next)
	p := w.papers[path]
	if p == nil || p.packed {
		return
	}
	packed := *p
	packed.path, packed.packed = path+".gz", true
	w.save(packed.ended(w))
	if w.one(20) {
		w.breakOff(&packed)
	} else if w.one(80) {
		must(os.Remove(path))
		delete(w.papers, path)
	}
	w.note("gzip %s", path)
}

// ended makes a packed file of one whose last line has no end: it is a line if it can be read.
func (p *paper) ended(w *world) *paper {
	if p.written > 0 && p.written == len(w.of(p.half).line) {
		p.content = append(slices.Clone(p.content), w.of(p.half).line...)
		p.lines, p.ends, p.written = append(slices.Clone(p.lines), p.half), append(slices.Clone(p.ends), len(p.content)), 0
	}
	return p
}

// breakOff leaves of a packed file what gzip had written of it when it was stopped.
func (w *world) breakOff(p *paper) {
	whole, err := os.ReadFile(p.path)
	must(err)
	p.broken, p.written = whole[:w.pick(10, len(whole)-1)], 0
	var readable bytes.Buffer
	z, err := gzip.NewReader(bytes.NewReader(p.broken))
	if err != nil {
		return
	}
	_, _ = io.Copy(&readable, z)
	n := p.upTo(readable.Len())
	p.lines, p.ends = p.lines[:n:n], p.ends[:n:n]
	p.content = readable.Bytes()
	if p.content = nil; n > 0 {
		p.content = slices.Clone(readable.Bytes()[:p.ends[n-1]])
	}
	w.save(p)
	w.note("broken off")
}

// filesOf are the logs of a server, as access.log* names them.
func (w *world) filesOf(s *writer) (files []*paper) {
	for _, path := range slices.Sorted(maps.Keys(w.papers)) {
		if p := w.papers[path]; p.original && p.from == s {
			files = append(files, p)
		}
	}
	return files
}

// derive makes a file of others, as people do, of which each has each line at most once.
func (w *world) derive() *paper {
	w.derived++
	p := &paper{path: filepath.Join(w.dir, fmt.Sprintf("derived%d.log", w.derived))}
	s := w.servers[w.random.IntN(len(w.servers))]
	files := w.filesOf(s)
	if len(files) == 0 {
		return nil
	}
	p.from = s
	one := files[w.random.IntN(len(files))]
	take := func(keep func(n int) bool) {
		for n, l := range one.lines {
			if l != none && keep(n) {
				p.append(w, l)
			}
		}
	}
	how := w.random.IntN(8)
	switch n := len(one.lines); how {
	case 0: // cat
		if w.one(50) && len(w.servers) > 1 {
			p.from = nil
			files = append(files, w.filesOf(w.servers[(slices.Index(w.servers, s)+1)%len(w.servers)])...)
		}
		w.random.Shuffle(len(files), func(a, b int) { files[a], files[b] = files[b], files[a] })
		had := map[int]bool{}
		for _, f := range files {
			for _, l := range f.lines {
				if l == none || !had[l] {
					p.append(w, l)
				}
				had[l] = true
			}
		}
	case 1: // grep of a visitor, or of all others
		visitor, not := w.random.IntN(w.pool), w.one(50)
		take(func(n int) bool { return w.of(one.lines[n]).visitor == visitor != not })
	case 2: // of some paths
		share := w.pick(5, 99)
		take(func(n int) bool { return w.lines[one.lines[n]]*7919%100 < share })
	case 3: // sort -m
		p.from = nil
		had := map[int]bool{}
		var all []int
		for _, s := range w.servers {
			for _, f := range w.filesOf(s) {
				for _, l := range f.lines {
					if l != none && !had[l] {
						all = append(all, l)
					}
					had[l] = true
				}
			}
		}
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(w.of(a).second, w.of(b).second) })
		p.append(w, all...)
	case 4: // an excerpt
		from := w.random.IntN(n + 1)
		to := from + w.random.IntN(n-from+1)
		take(func(n int) bool { return n >= from && n < to })
	case 5: // the last lines, as docker logs --tail gives
		last := w.pick(1, n+1)
		take(func(at int) bool { return at >= n-last })
	case 6: // the state of now
		p.append(w, one.lines...)
	case 7: // a half of it
		p.append(w, one.lines[:w.random.IntN(n+1)]...)
	}
	if w.one(20) {
		p.path, p.packed = p.path+".gz", true
	}
	w.save(p)
	w.note("derive by %d: %s of %s: %d", how, p.path, one.path, len(p.lines))
	return p
}

// options are those of an import of some files.
func (w *world) options(files ...*paper) Options {
	rules := modelRules
	rules.Bots = w.one(10) // which changes nothing here
	o := Options{App: "blog", Rules: rules, Notice: func(string, error) {}}
	same := true
	for _, p := range files {
		if p.path == standardInputName {
			o.Files, o.Stdin = []string{standardInput}, bytes.NewReader(p.content)
		} else {
			o.Files = append(o.Files, p.path)
		}
		same = same && p.from == files[0].from && p.from != nil
	}
	if same && w.one(w.named) {
		o.Server = files[0].from.name
	}
	w.random.Shuffle(len(o.Files), func(a, b int) { o.Files[a], o.Files[b] = o.Files[b], o.Files[a] })
	return o
}

// choose are the files of an import.
func (w *world) choose() (files []*paper) {
	s := w.servers[w.random.IntN(len(w.servers))]
	switch w.random.IntN(6) {
	case 0, 1:
		files = w.filesOf(s)
	case 2:
		files = slices.DeleteFunc(w.filesOf(s), func(*paper) bool { return w.one(50) })
	case 3:
		for _, s := range w.servers {
			files = append(files, w.filesOf(s)...)
		}
	case 4:
		if p := w.derive(); p != nil {
			files = append(files, p)
		}
	case 5:
		for _, path := range slices.Sorted(maps.Keys(w.papers)) {
			if w.one(30) {
				files = append(files, w.papers[path])
			}
		}
	}
	return files
}
