package imports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
)

// asked is a line that counts: an address asks for a path at a second.
func asked(address, path string, second int) string {
	return fmt.Sprintf("%s - - [%s] \"GET %s HTTP/1.1\" 200 512 \"-\" %q\n", address,
		firstTime.Add(time.Duration(second)*time.Second).Format("02/Jan/2006:15:04:05 -0700"), path, browser)
}

// written is what a server writes from one second to before another: a line every few seconds, of
// many addresses, and one of a monitor at the beginning of each minute, which asks all servers.
func written(server, from, to int) (lines []string) {
	for second := from; second < to; second++ {
		if second%60 == 0 {
			lines = append(lines, asked("192.0.2.1", "/up", second))
		}
		if second%(9+server) == 1 {
			lines = append(lines, asked(fmt.Sprintf("10.%d.%d.%d", server, second/250%250, second%250), fmt.Sprintf("/s%d", server), second))
		}
	}
	return lines
}

func text(lines ...[]string) []byte { return []byte(strings.Join(slices.Concat(lines...), "")) }

// total is how many visits are counted.
func (d *desk) total() int {
	d.t.Helper()
	conn := dbtest.Connect(d.t, d.url)
	defer conn.Close(context.Background())
	return int(dbtest.Column[int64](d.t, conn, `SELECT coalesce(sum(hot), 0)::bigint FROM footfall.counters JOIN footfall.pages AS p
		ON p.id = page_id JOIN footfall.apps AS a ON a.id = p.app_id WHERE site_id IS NOT NULL AND a.name = $1`, d.app)[0])
}

// step imports files, and says how many visits are counted then, and what is told of files that are
// refused: "" where none is.
type step struct {
	name    string
	files   []string
	set     func(o *Options)
	total   int
	refused string
}

func (d *desk) follow(steps ...step) {
	d.t.Helper()
	for _, s := range steps {
		o := d.options()
		for _, file := range s.files {
			o.Files = append(o.Files, d.folder+"/"+file)
		}
		if s.set != nil {
			s.set(&o)
		}
		got, err := d.run(o)
		require.NoError(d.t, err, s.name)
		assert.Equal(d.t, s.total, d.total(), s.name)
		if s.refused == "" {
			assert.Empty(d.t, got.Problems, s.name)
		} else {
			assert.Contains(d.t, strings.Join(got.Problems, "\n"), s.refused, s.name)
		}
	}
}

func another(o *Options) { o.Another = true }
func server(name string) func(o *Options) {
	return func(o *Options) { o.Server = name }
}

// Nothing is skipped but what the same log has counted: each file counts as a whole, or goes on where
// it was counted to, or is refused.
func TestRule(t *testing.T) {
	t.Parallel()
	a, b := written(1, 0, 1200), written(2, 3600, 4800)
	cases := map[string]func(d *desk) []step{
		"cat of two, then the files": func(d *desk) []step {
			d.file("ab", text(a, b))
			d.file("a", text(a))
			d.file("b", text(b))
			return []step{
				{"both", []string{"ab"}, nil, len(a) + len(b), ""},
				{"the first: all of its lines are known to be counted", []string{"a"}, nil, len(a) + len(b), ""},
				{"the second", []string{"b"}, nil, len(a) + len(b), ""},
			}
		},
		"cat of two with many lines, then one of them": func(d *desk) []step {
			d.file("ab", text(a, written(2, 1200, 3600)))
			d.file("a", text(a))
			return []step{
				{"both", []string{"ab"}, nil, len(a) + len(written(2, 1200, 3600)), ""},
				{"one: nobody knows whether all of its lines are in there", []string{"a"}, nil, len(a) + len(written(2, 1200, 3600)),
					"import these themselves"},
			}
		},
		"the files, then cat of both": func(d *desk) []step {
			d.file("ab", text(a, b))
			d.file("a", text(a))
			d.file("b", text(b))
			return []step{
				{"the first", []string{"a"}, nil, len(a), ""},
				{"the second", []string{"b"}, nil, len(a) + len(b), ""},
				{"both", []string{"ab"}, nil, len(a) + len(b), "import these themselves"},
			}
		},
		"the first, then cat of both": func(d *desk) []step {
			d.file("ab", text(a, b))
			d.file("a", text(a))
			return []step{
				{"the first", []string{"a"}, nil, len(a), ""},
				{"both", []string{"ab"}, nil, len(a) + len(b), ""},
			}
		},
		"cat of access.log*, then the grown access.log": func(d *desk) []step {
			d.file("cat", text(b, a)) // access.log comes before access.log.1
			more := written(2, 4800, 5000)
			d.file("access.log", text(b, more))
			last := firstTime.Add(4797 * time.Second)
			return []step{
				{"cat", []string{"cat"}, nil, len(a) + len(b), ""},
				{"grown", []string{"access.log"}, nil, len(a) + len(b), "add --after " + last.Truncate(time.Second).Format("2006-01-02")},
				{"behind what was counted", []string{"access.log"}, func(o *Options) { o.After = last }, len(a) + len(b) + len(more), ""},
				{"again", []string{"access.log"}, nil, len(a) + len(b) + len(more), ""},
			}
		},
		"logs of all hosts, and of one of them": func(d *desk) []step {
			var one []string
			for i, line := range a {
				if i%3 == 0 {
					one = append(one, line)
				}
			}
			d.file("all.log", text(a))
			d.file("one.log", text(one))
			return []step{
				{"both", []string{"*.log"}, nil, len(a), "one.log: "},
				{"again", []string{"*.log"}, nil, len(a), ""}, // all of its lines are known to be counted
			}
		},
		"two merged by time": func(d *desk) []step {
			merged := slices.Clone(a)
			for i, line := range written(2, 0, 1200) {
				merged = slices.Insert(merged, min(2*i, len(merged)), line)
			}
			d.file("a", text(a))
			d.file("merged", text(merged))
			return []step{
				{"one", []string{"a"}, nil, len(a), ""},
				{"both", []string{"merged"}, nil, len(a), "nothing of this file is counted"},
			}
		},
		"eight addresses of one network ask two servers in the same second": func(d *desk) []step {
			var same []string
			for i := range 8 {
				same = append(same, asked(fmt.Sprintf("2001:db8::%d", i+1), "/", 600))
			}
			one, two := slices.Concat(written(1, 0, 600), same, written(1, 601, 1200)),
				slices.Concat(written(2, 0, 600), same, written(2, 601, 1200))
			d.file("one", text(one))
			d.file("two", text(two))
			return []step{{"both", []string{"one", "two"}, nil, len(one) + len(two), ""}}
		},
		"servers of their own names": func(d *desk) []step {
			var mostly []string // what two servers write whom a crowd asks both
			for i := range 100 {
				mostly = append(mostly, asked(fmt.Sprintf("10.9.0.%d", i), "/", i))
			}
			one, two := slices.Concat(mostly, written(1, 100, 400)), slices.Concat(mostly, written(2, 100, 400))
			d.file("one", text(one))
			d.file("two", text(two))
			d.file("copy", text(one[1:]))
			return []step{
				{"one", []string{"one"}, nil, len(one), ""},
				{"two, of nobody", []string{"two"}, nil, len(one), "say which with --server"},
				{"one has a name now", []string{"one"}, server("web1"), len(one), ""},
				{"two has another", []string{"two"}, server("web2"), len(one) + len(two), ""},
				{"one under the wrong name", []string{"one"}, server("web2"), len(one) + len(two), "imported with --server web1"},
				{"nearly one under the wrong name", []string{"copy"}, server("web2"), len(one) + len(two), "are in " + d.folder + "/one of web1, too"},
			}
		},
		"it is known to be another": func(d *desk) []step {
			d.file("a", text(a))
			d.file("like a", text(a[1:]))
			return []step{
				{"one", []string{"a"}, nil, len(a), ""},
				{"the other", []string{"like a"}, nil, len(a), ""}, // it is there whole
				{"the other, told", []string{"like a"}, another, 2*len(a) - 1, ""},
				{"both, told no more", []string{"a", "like a"}, nil, 2*len(a) - 1, ""},
			}
		},
		"windows that slide": func(d *desk) []step {
			window := func(from, to int, told bool) func(o *Options) {
				return func(o *Options) {
					d.file("window", text(written(1, from, to)))
					o.AfterCounted = told
				}
			}
			d.file("window", nil)
			return []step{
				{"first", []string{"window"}, window(0, 900, true), len(written(1, 0, 900)), ""},
				{"second", []string{"window"}, window(300, 1200, true), len(written(1, 0, 1200)), ""},
				{"third, of which that is known", []string{"window"}, window(1100, 2400, false), len(written(1, 0, 2400)), ""},
				{"again", []string{"window"}, window(1100, 2400, false), len(written(1, 0, 2400)), ""},
				{"fourth", []string{"window"}, window(2000, 3000, false), len(written(1, 0, 3000)), ""},
			}
		},
		"little is counted": func(d *desk) []step {
			d.file("one", text(a[:5]))
			d.file("two", text(a[:5], b))
			d.file("gz", packGzip(d.t, text(a[:5])))
			return []step{
				{"one", []string{"one"}, nil, 5, ""},
				{"packed", []string{"gz"}, nil, 5, ""},
				{"two", []string{"two"}, nil, 5, "it begins as " + d.folder + "/one, of which too few lines are counted"},
				{"two is another", []string{"two"}, another, 10 + len(b), ""},
			}
		},
		"two servers begin alike": func(d *desk) []step {
			d.file("one", text(a[:5]))
			d.file("two", text(a[:5], b))
			web2 := func(o *Options) { o.Server, o.Another = "web2", true }
			return []step{
				{"one", []string{"one"}, server("web1"), 5, ""},
				{"two: all that is known of the one is in it", []string{"two"}, server("web2"), 5, "if you know that it is another log, add --another"},
				{"two, told", []string{"two"}, web2, 10 + len(b), ""},
				{"both go on", []string{"two"}, server("web2"), 10 + len(b), ""},
			}
		},
		"lines that only tell of others, and then others": func(d *desk) []step {
			head := []string{"#Version: 1.0\n", "#Fields: date time\n"}
			d.file("1", text(head))
			d.file("2", text(head, b))
			return []step{{"nothing yet", []string{"1"}, nil, 0, ""}, {"another file", []string{"2"}, nil, len(b), ""}}
		},
		"a window whose place is not known": func(d *desk) []step {
			d.file("window", text(a[3:6]))
			d.file("later", text(a[2:6], a[3:6], b))
			told := func(o *Options) { o.AfterCounted = true }
			return []step{
				{"first", []string{"window"}, told, 3, ""},
				{"later", []string{"later"}, told, 3, "it has the lines that were counted last at several places"},
			}
		},
		"two that go on differently": func(d *desk) []step {
			d.file("one", text(a))
			d.file("two", text(a, b))
			d.file("three", text(a, written(3, 3600, 4800)))
			return []step{
				{"one", []string{"one"}, nil, len(a), ""},
				{"both", []string{"two", "three"}, nil, len(a), "begin as the same log, and then differ"},
				{"the one", []string{"two"}, nil, len(a) + len(b), ""},
			}
		},
		"half of it is packed": func(d *desk) []step {
			packed := packGzip(d.t, text(a, b))
			d.file("access.log.1", text(a, b))
			d.file("access.log.1.gz", packed[:len(packed)/2])
			return []step{{"both", []string{"access.log.1*"}, nil, len(a) + len(b), "its gzip ends in the middle"},
				{"again", []string{"access.log.1"}, nil, len(a) + len(b), ""}}
		},
		"lines that only tell of others": func(d *desk) []step {
			head := []string{"#Version: 1.0\n", "#Fields: date time\n"}
			d.file("1", text(head, a))
			d.file("2", text(head, b))
			return []step{{"both", []string{"1", "2"}, nil, len(a) + len(b), ""}}
		},
		"a last line without its end": func(d *desk) []step {
			whole := bytes.TrimSuffix(text(a), []byte("\n"))
			d.file("plain", whole)
			d.file("packed", packGzip(d.t, whole))
			return []step{
				{"plain", []string{"plain"}, nil, len(a) - 1, ""},
				{"packed", []string{"packed"}, nil, len(a), ""},
				{"packed, again", []string{"packed"}, nil, len(a), ""},
			}
		},
		"left out before": func(d *desk) []step { // H7: what --from left out is not taken for counted
			d.file("a", text(a))
			return []step{
				{"from tomorrow on", []string{"a"}, func(o *Options) { o.Rules.From = 99990101 }, 0, ""},
				{"it was read, and is this log", []string{"a"}, nil, 0, ""},
			}
		},
	}
	var apps []string // one for each case
	for n := range len(cases) {
		apps = append(apps, fmt.Sprint("case", n))
	}
	all := newDeskOf(t, nil, app.Settings{}, apps...)
	t.Run("cases", func(t *testing.T) {
		for n, name := range slices.Sorted(maps.Keys(cases)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := all.of(t, apps[n])
				d.follow(cases[name](d)...)
			})
		}
	})
	all.prove()
}

// Lines that lie ahead wait until their time has come, and nothing behind them is counted before.
func TestLinesThatLieAhead(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := func(ahead time.Duration) string {
		return asked("192.0.2.1", "/", int(time.Now().Add(ahead).Sub(firstTime).Seconds()))
	}
	path := d.file("access.log", []byte(at(-time.Minute)+at(time.Hour)+at(0)+at(2*time.Hour)))
	s := d.imported(path)
	require.EqualValues(t, 1, s.Counted)
	require.Contains(t, s.Notes[0], "3 of its lines lie ahead of this server's clock")
	d.follow(step{"again", []string{"access.log"}, nil, 1, ""})

	require.NoError(t, os.WriteFile(path, []byte(at(-time.Minute)+at(48*time.Hour)+at(0)), 0o600))
	s, err := d.run(d.options(d.file("far", []byte(at(-time.Second)+at(48*time.Hour)+at(0)))))
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Counted)
	require.EqualValues(t, 1, s.Unreadable, "no clock is two days ahead")
}

// A file that is followed and of which nothing more can be counted ends the import, and is named; one
// that was renamed is kept until its lines that lie ahead are counted.
func TestFollowGivesUpWithAWord(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b := written(1, 0, 1200), written(2, 3600, 4800)
	d.file("b", text(b))
	path := d.file("access.log", text(a))
	d.follow(step{"another log", []string{"b"}, nil, len(b), ""})
	o := d.options(path)
	o.Follow, o.every = true, dbtest.Tick
	type ending struct {
		summary *Summary
		err     error
	}
	ended := make(chan ending, 1)
	go func() { s, err := d.run(o); ended <- ending{s, err} }()
	require.Eventually(t, func() bool { return d.total() == len(a)+len(b) }, dbtest.Patience, dbtest.Tick)
	d.file("more", text(b)) // what was counted as another log is appended
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer file.Close()
	_, err = file.Write(text(b))
	require.NoError(t, err)
	got := <-ended
	require.NoError(t, got.err)
	require.Len(t, got.summary.Problems, 1, "the command ends with exit code 1")
	require.Contains(t, got.summary.Problems[0], "access.log: 129 of its lines are in "+d.folder+"/b, too")
	require.Equal(t, len(a)+len(b), d.total())
}

// Very many small files take neither as many open files, nor a look at the whole book for each.
func TestManySmallFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	n := dbtest.FromEnv(t, "FOOTFALL_SMALL_FILES", mostOpen+100)
	for i := range n { // some hundreds an hour
		lines := asked(fmt.Sprintf("10.%d.%d.%d", i/62500, i/250%250, i%250), "/", 5*i) + asked("192.0.2.1", fmt.Sprint("/", i%100), 5*i)
		d.file(fmt.Sprintf("%06d.gz", i), packGzip(t, []byte("#Version: 1.0\n"+lines)))
	}
	d.follow(
		step{"all", []string{"*.gz"}, nil, 2 * n, ""},
		step{"again", []string{"*.gz"}, nil, 2 * n, ""},
	)
	d.file("000000.gz", packGzip(t, []byte("#Version: 1.0\n"+asked("10.0.0.0", "/", 0)+asked("192.0.2.1", "/0", 0)+
		asked("192.0.2.2", "/", 5000))))
	d.follow(step{"one has grown", []string{"*.gz"}, nil, 2*n + 1, ""})
}

// Of very many files those that were written last stay open: they may be rotated at any moment.
func TestWhatWasWrittenLastStaysOpen(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	newest := filepath.Join(folder, "000.log")
	for i := range mostOpen + 1 {
		name := filepath.Join(folder, fmt.Sprintf("%03d.log", i))
		require.NoError(t, os.WriteFile(name, []byte("a line\n"), 0o600))
		require.NoError(t, os.Chtimes(name, time.Time{}, time.Unix(int64(1e9-i), 0)))
	}
	r := &run{Options: Options{Files: []string{filepath.Join(folder, "*.log")}}, summary: newSummary()}
	require.NoError(t, r.open())
	defer r.close()
	require.NoError(t, os.Rename(newest, newest+".1"))
	opened := 0
	for _, s := range r.sources {
		if s.file.handle != nil {
			opened++
		}
		if s.file.name == newest {
			_, done, err := s.file.read(0)
			require.NoError(t, err)
			done()
		}
	}
	require.Positive(t, opened)
	require.LessOrEqual(t, opened, mostOpen)
}

// Only a file of its name takes the place of a log that shows its last lines each time.
func TestOnlyItsOwnFileTakesThePlaceOfALog(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b := written(1, 0, 1200), written(2, 3600, 7200)
	d.file("window", text(a))
	d.file("other", text(a[len(a)-1:], b))
	d.follow(
		step{"a window", []string{"window"}, func(o *Options) { o.AfterCounted = true }, len(a), ""},
		step{"a log that begins with its last line", []string{"other"}, nil, len(a), "1 of its lines are in " + d.folder + "/window, too"},
		step{"the window, as ever", []string{"window"}, nil, len(a), ""},
	)
}

// What --after leaves out stays left out, also where the import ends before it has counted a line.
func TestAfterHoldsOverAnEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b := written(1, 0, 1200), written(2, 3600, 4800)
	same := asked("192.0.2.7", "/same", 4799) // in the second that was counted last, and again behind it
	d.file("ba", text(b, []string{same}, a))
	d.file("b", text(b, []string{same, same}, written(2, 4800, 5400)))
	last := firstTime.Add(4799 * time.Second)
	d.follow(step{"cat of two", []string{"ba"}, nil, len(a) + len(b) + 1, ""})
	d.exec(`ALTER TABLE footfall.counters ADD CONSTRAINT no_more CHECK (hot < 0) NOT VALID`)
	o := d.options(d.folder + "/b")
	o.After = last
	_, err := d.run(o)
	require.ErrorContains(t, err, "cannot be counted")
	d.exec(`ALTER TABLE footfall.counters DROP CONSTRAINT no_more`)
	d.follow(step{"again", []string{"b"}, func(o *Options) { o.After = last }, len(a) + len(b) + 2 + len(written(2, 4800, 5400)), ""})
}

// What was wrong with a file is not told of it any more when it is looked at anew, and counts.
func TestNothingIsToldThatIsNotTrueAnyMore(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b := written(1, 0, 1200), written(2, 3600, 4800)
	d.file("cat", text(b, a))
	d.follow(step{"cat", []string{"cat"}, nil, len(a) + len(b), ""})
	d.exec(`CREATE FUNCTION footfall.no_room() RETURNS trigger LANGUAGE plpgsql
		AS $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$`)
	d.exec(`CREATE CONSTRAINT TRIGGER no_room AFTER INSERT ON footfall.logs DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION footfall.no_room()`)
	more := written(3, 7200, 9000)
	o := d.options(d.file("a", text(a)), d.file("more", text(more)))
	o.Rules.Site = "blog.example"
	d.file("a", text(a, written(1, 1200, 1260))) // of which more than a part is there
	o.Notice = func(string, error) {             // what was found is taken back
		d.exec(`DROP TRIGGER IF EXISTS no_room ON footfall.logs`)
		d.exec(`DELETE FROM footfall.logs`) // as if the log was forgotten meanwhile
	}
	s, err := d.run(o)
	require.NoError(t, err)
	require.Empty(t, s.Problems)
	require.Equal(t, 2*len(a)+len(b)+len(written(1, 1200, 1260))+len(more), d.total())
}

// staged is the service, which does not count before it may.
type staged struct {
	*database
	decided chan struct{}
	counts  chan struct{}
}

func (s *staged) count(ctx context.Context, r *reader) error {
	s.decided <- struct{}{}
	<-s.counts
	return s.database.count(ctx, r)
}

// A log that an import has begun, and of which it has counted nothing yet, does not become another
// file's without its hearing of it: which of the two it is cannot be told by a few lines.
func TestLogThatIsBegunIsTakenOverAloud(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b := written(1, 0, 1200), written(2, 3600, 4800)
	files := []string{d.file("one", text(a[:5])), d.file("two", text(a[:5], b))}
	type ending struct {
		summary *Summary
		err     error
	}
	var imports []*staged
	var ended []chan ending
	for _, file := range files {
		own := *d // as a process of its own has
		own.open()
		s := &staged{&database{counter: own.counter, name: d.app, pause: counter.NewPause()}, make(chan struct{}, 10), make(chan struct{})}
		end := make(chan ending, 1)
		imports, ended = append(imports, s), append(ended, end)
		go func() { got, err := runOn(t.Context(), s, own.options(file), &Progress{}); end <- ending{got, err} }()
		<-s.decided
	}
	close(imports[0].counts)
	one := <-ended[0]
	close(imports[1].counts)
	two := <-ended[1]
	require.NoError(t, errors.Join(one.err, two.err))
	require.Empty(t, one.summary.Problems)
	require.Contains(t, strings.Join(two.summary.Problems, "\n"), "it begins as "+files[0]+", of which too few lines are counted")
	require.Equal(t, 5, d.total())
}

// Samples of two parts of a log are together the sample of all of it.
func TestSamplesOfParts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(46, 46))
	for _, n := range []int{10, 300, 1000} {
		whole, parts := samples{}.of(0), [2]*sample{samples{}.of(0), samples{}.of(0)}
		var had []uint64
		for i := range int64(n) {
			l, part := sampled{hash: r.Uint64N(1 << 40), place: i, count: 1}, 0
			if i%8 == 7 { // lines that are in the other part, too
				l.hash, part = had[r.IntN(len(had))], 1
			} else {
				had = append(had, l.hash)
			}
			whole.add(l)
			parts[part].add(l)
		}
		for _, p := range [][2]*sample{parts, {parts[1], parts[0]}} {
			both := sampleOf(p[0].bytes())
			both.merge(p[1])
			require.Equal(t, whole.bytes(), both.bytes(), n)
		}
	}
}

// A file that was counted to its end is not read again until it is changed; also where it is as long then.
// It runs alone, since settledAfter is everybody's.
func TestFileThatWasNotChanged(t *testing.T) {
	was := settledAfter
	settledAfter = 0
	defer func() { settledAfter = was }()
	d := newDesk(t)
	a := text(written(1, 0, 1200))
	path := d.file("access.log", a)
	looked := func(counts int) bool {
		p := &Progress{}
		s, err := Run(t.Context(), d.counter, d.options(path), p)
		require.NoError(t, err)
		require.Empty(t, s.Problems)
		require.EqualValues(t, counts, s.Counted)
		return p.Looked.Load() > 0
	}
	require.True(t, looked(bytes.Count(a, []byte("\n"))))
	require.False(t, looked(0))
	require.NoError(t, os.Chmod(path, 0o640)) // which changes its state, and nothing of it
	require.True(t, looked(0))
	require.False(t, looked(0))
	more := asked("10.1.9.9", "/more", 1300)
	path = d.file("access.log", append(bytes.Clone(a), more...))
	require.True(t, looked(1))
	require.False(t, looked(0))
	other := bytes.ReplaceAll(append(bytes.Clone(a), more...), []byte("10.1."), []byte("10.3."))
	path = d.file("access.log", other)
	require.True(t, looked(bytes.Count(other, []byte("\n"))))
}
