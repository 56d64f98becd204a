package imports

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/db/dbtest"
)

// asked returns the line of a request, some seconds after firstTime.
func asked(address, path string, second int) string {
	return fmt.Sprintf("%s - - [%s] \"GET %s HTTP/1.1\" 200 512 \"-\" %q\n", address,
		firstTime.Add(time.Duration(second)*time.Second).Format("02/Jan/2006:15:04:05 -0700"), path, browser)
}

// written returns lines, one every second, each from another address of a server's network.
func written(server, from, many int) (lines []string) {
	for i := range many {
		lines = append(lines, asked(fmt.Sprintf("10.%d.%d.%d", server, i/250, i%250), fmt.Sprintf("/%d", i%9), from+i))
	}
	return lines
}

func (d *desk) lines(name string, lines ...string) string {
	return d.file(name, []byte(strings.Join(lines, "")))
}

// as imports files of a named server.
func (d *desk) as(server string, files ...string) *Summary {
	d.t.Helper()
	o := d.options(files...)
	o.Server = server
	s, err := d.run(o)
	require.NoError(d.t, err)
	return s
}

// Small logs count each night if they are rotated by copytruncate or compressed at once.
func TestSmallLogsAreRotated(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"", "web1"} {
		d := newDesk(t)
		var current []string
		total := 0
		for day := range 5 {
			lines := written(day, day*10_000, 30)
			current = append(current, lines...)
			total += len(lines)
			rotated := d.lines("access.log.1", current...)
			if day%2 == 1 {
				require.NoError(t, os.Remove(rotated))
				d.file("access.log.1.gz", packGzip(t, []byte(strings.Join(current, ""))))
			}
			current = written(day, day*10_000+5000, 5)
			total += len(current)
			d.lines("access.log", current...)
			s := d.as(server, filepath.Join(d.folder, "access.log*"))
			require.Empty(t, s.Problems)
			require.Equal(t, total, d.hot(), "day %d", day)
		}
	}
}

// A file with a wrong server name is refused before a line of it counts. Lines that servers share do not matter.
func TestServers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	one, two := written(1, 0, 300), written(2, 0, 300)
	monitor := func(n int) (lines []string) {
		for i := range n {
			lines = append(lines, asked("192.0.2.1", "/up", 400+i))
		}
		return lines
	}
	d.as("web1", d.lines("one", append(one, monitor(100)...)...))
	require.Empty(t, d.as("web2", d.lines("two", append(monitor(100), two...)...)).Problems)
	require.Equal(t, 800, d.hot(), "the same requests of a monitor count for each server")

	s := d.as("web2", d.lines("wrong", one...))
	require.Len(t, s.Problems, 1)
	require.Contains(t, s.Problems[0], "the counted logs of the server web1 already contain its first 20 lines that would count: "+
		"if that server wrote the file, import it with --server web1; if another server wrote it, add --another")
	require.Equal(t, 800, d.hot())
	s = d.as("web2", d.lines("rotated", append(one[100:], written(1, 300, 100)...)...))
	require.Len(t, s.Problems, 1, "refused again after it has grown")
	require.Equal(t, 800, d.hot())
	o := d.options(d.lines("wrong", one...))
	o.Server, o.Another = "web2", true
	_, err := d.run(o)
	require.NoError(t, err)
	require.Equal(t, 1100, d.hot())
	d.prove()
}

// If a merged log was imported under one server's name, the lines of the other server count once, and its own log is
// refused.
func TestMergedLogsUnderOneName(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	one, two := written(1, 0, 200), written(2, 0, 200)
	d.as("web1", d.lines("merged", slices.Concat(one, two)...))
	require.Equal(t, 400, d.hot())
	one, two = append(one, written(1, 300, 20)...), append(two, written(2, 300, 20)...)
	require.Empty(t, d.as("web1", d.lines("one", one...)).Problems)
	require.Len(t, d.as("web2", d.lines("two", two...)).Problems, 1)
	require.Equal(t, 420, d.hot())
	require.Empty(t, d.as("web1", d.lines("two", two...)).Problems)
	require.Equal(t, 440, d.hot())
}

// A log counts once if its beginning and its end were imported before, even if all visitors share one proxy.
func TestLogsOfOneAddress(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var lines []string
	for i := range 200 {
		lines = append(lines, asked("10.0.0.1", fmt.Sprintf("/%d", i%7), i))
	}
	d.imported(d.lines("z.log", lines[:100]...))
	d.imported(d.lines("z-tail.log", lines[100:]...))
	d.imported(d.lines("z.log", lines...))
	require.Equal(t, 200, d.hot())
}

// Files made by cat or sort -m, and parts in any order, need no flags.
func TestPartsAndMerges(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	one, two := written(1, 0, 300), written(2, 0, 300)
	d.imported(d.lines("cat", slices.Concat(one, two)...))
	one, two = append(one, written(1, 500, 100)...), append(two, written(2, 500, 100)...)
	d.imported(d.lines("w1", one...))
	d.imported(d.lines("w2", two...))
	require.Equal(t, 800, d.hot())
	tail := d.lines("tail", one[250:]...)
	require.Zero(t, d.imported(tail, d.lines("newest first", slices.Concat(one[200:], one[:200])...)).Counted)
	d.prove()
}

// A line that is in a file three times counts three times in total, whichever files were imported before.
func TestRepeatedLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	line := asked("192.0.2.1", "/", 1)
	for n, want := range []int{1, 2, 2, 3} {
		have := []int{1, 2, 1, 3}[n]
		d.imported(d.lines(fmt.Sprint("log", n), slices.Repeat([]string{line}, have)...))
		require.Equal(t, want, d.hot())
	}
	s := d.imported(d.lines("a", line, asked("192.0.2.2", "/", 2)), d.lines("b", line, asked("192.0.2.2", "/", 2)))
	require.EqualValues(t, []int64{1, 2, 1}, []int64{s.Counted, s.Before, s.Twice})
}

// A line is identified by its text: without CR, and in Docker's json-file by the text of the container.
func TestLinesInOtherClothes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var docker, crlf, whole []string
	for i, line := range written(1, 0, 10) {
		text := strings.TrimSuffix(line, "\n")
		docker = append(docker, fmt.Sprintf("{\"log\":%q,\"stream\":\"stdout\",\"time\":\"2026-11-20T10:00:%02dZ\"}\n", line, i))
		crlf, whole = append(crlf, text+"\r\n"), append(whole, line)
	}
	d.imported(d.lines("docker", docker[:5]...))
	d.imported(d.lines("crlf", crlf...))
	d.imported(d.lines("plain", whole...))
	require.Zero(t, d.imported(d.lines("docker", docker...)).Counted)
	require.Equal(t, 10, d.hot())
	o := d.options(d.lines("plain", whole...))
	o.Rules.Site = "blog.example:8080"
	s, err := d.run(o)
	require.NoError(t, err)
	require.EqualValues(t, 10, s.Counted+s.Left[OtherHost], "with another site it is a different line")
}

// A last line without its end counts if gzip or the pipe ended properly.
func TestLastLineWithoutEnd(t *testing.T) {
	t.Parallel()
	text := []byte(strings.TrimSuffix(strings.Join(written(1, 0, 3), ""), "\n"))
	d := newDesk(t)
	s := d.imported(d.file("plain", text))
	require.EqualValues(t, 2, s.Counted)
	require.Contains(t, s.Notes[0], "is incomplete: it is read when it is complete")
	require.EqualValues(t, 1, d.imported(d.file("packed", packGzip(t, text))).Counted)
	o := d.of(t, "other").options("-")
	o.Stdin = bytes.NewReader(text)
	s, err := d.run(o)
	require.NoError(t, err)
	require.EqualValues(t, 3, s.Counted)
}

// A file is read again if it has changed, or other settings decide which lines count, and not otherwise.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	path := d.lines("access.log", written(1, 0, 10)...)
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, long, long)) // ctime is now
	require.EqualValues(t, 10, d.imported(path).Lines)
	require.EqualValues(t, 10, d.imported(path).Lines, "it was changed just before it was read")
	require.Eventually(t, func() bool { return d.imported(path).Unchanged == 1 }, dbtest.Patience, dbtest.Tick)
	require.NoError(t, os.Rename(path, path+".1"))
	path += ".1"
	read := func(what string, change func(o *Options)) {
		t.Helper()
		o := d.options(path)
		change(&o)
		s, err := d.run(o)
		require.NoError(t, err)
		require.EqualValues(t, 10, s.Lines, what)
	}
	read("with another server", func(o *Options) { o.Server = "web1" })
	read("with other rules", func(o *Options) { o.Rules.Bots = true })
	read("in a dry run", func(o *Options) { o.DryRun = true })
	d.exec(`UPDATE footfall.read_logs SET state = ''`) // a killed import leaves this
	require.EqualValues(t, 10, d.imported(path).Lines)
	require.Eventually(t, func() bool { return d.imported(path).Unchanged == 1 }, dbtest.Patience, dbtest.Tick)
	_, err := admin.NewAdmin(d.open(), nil).ForgetLines(t.Context(), "blog", nil, 20000101, 20990101)
	require.NoError(t, err)
	require.EqualValues(t, 10, d.imported(path).Counted)
	require.Equal(t, 20, d.hot())

	d.exec(`UPDATE footfall.apps SET bots = 'count'`)
	for range 3 { // as in one process after the other
		d.open()
		require.EqualValues(t, 0, d.imported(path).Counted)
	}
	d.open()
	require.EqualValues(t, 1, d.imported(path).Unchanged)
}

// If a log has grown, only its last ten minutes are read again. A file in its place is read from its start.
func TestGrownLogsAreReadFromTheirEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lines := written(1, 0, 2000)
	lines = append(lines, lines[1999], asked("10.9.9.9", "/ahead", int(time.Since(firstTime).Seconds())+1000))
	path := d.lines("access.log", lines[:1500]...)
	require.EqualValues(t, 1500, d.imported(path).Counted)
	d.lines("access.log", lines[:2000]...)
	s := d.imported(path)
	require.EqualValues(t, []int64{500, 899, 601}, []int64{s.Counted, s.Skipped, s.Before})
	d.lines("access.log", lines...)
	s = d.imported(path)
	require.EqualValues(t, []int64{1, 1399, 601}, []int64{s.Counted, s.Skipped, s.Before}, "a line is repeated, and another one waits")
	require.Len(t, s.Notes, 1)
	require.EqualValues(t, []int64{0, 1399}, []int64{d.imported(path).Counted, s.Skipped})
	d.lines("access.log", append(written(2, 3000, 1), lines[1:]...)...)
	s = d.imported(path)
	require.EqualValues(t, []int64{1, 0}, []int64{s.Counted, s.Skipped})
	d.prove()
}

// An import decides again after another import has counted lines of the same hour, and does not loop.
func TestHourChangesUnderAChunk(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lines := written(1, 0, 600)
	d.imported(d.lines("first", lines[:10]...)) // creates the pages
	conn := dbtest.Connect(t, d.url)
	held, err := dbtest.Connect(t, d.url).Begin(t.Context())
	require.NoError(t, err)
	_, err = held.Exec(t.Context(), `SELECT FROM footfall.counters FOR UPDATE`)
	require.NoError(t, err)
	ended := make(chan *Summary, 2)
	for _, name := range []string{"a", "b"} { // one locks the hour and waits for counters, the other one waits for the hour
		own := *d
		own.open()
		path := d.lines(name, lines...)
		r := newRun(own.counter, own.options(path), &Progress{})
		r.following = true // do not pause retention, which would wait for the other import
		go func() { assert.NoError(t, r.all(t.Context())); ended <- r.summary }()
	}
	require.Eventually(t, func() bool {
		return dbtest.Column[int64](t, conn, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND wait_event_type = 'Lock' AND query LIKE '%count_lines(%'`)[0] == 1
	}, dbtest.Patience, dbtest.Tick)
	require.NoError(t, held.Rollback(t.Context()))
	counted := (<-ended).Counted + (<-ended).Counted
	require.EqualValues(t, 590, counted)
	require.Equal(t, 600, d.hot())
	d.prove()
}

// A killed import's position is deleted after a week.
func TestPositionsOfImportsEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	positions := func() int64 {
		return dbtest.Column[int64](t, dbtest.Connect(t, d.url), `SELECT count(*) FROM positions`)[0]
	}
	d.imported(d.lines("a", written(1, 0, 10)...))
	require.Zero(t, positions())
	d.exec(`INSERT INTO footfall.positions (app_id, source, part, used_at) SELECT id, 'logs', 'run ' || d, now() - d * interval '1 day'
		FROM footfall.apps, unnest(ARRAY[6, 8]) AS d WHERE name = 'blog'`)
	d.exec(`SELECT footfall.forget_log_lines()`)
	require.EqualValues(t, 1, positions())
}

// --after leaves out lines. Without it, the next import counts them.
func TestAfter(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lines := written(1, 0, 100)
	o := d.options(d.lines("a", lines...))
	o.After = firstTime.Add(40 * time.Second)
	s, err := d.run(o)
	require.NoError(t, err)
	require.EqualValues(t, []int64{60, 40}, []int64{s.Counted, s.Left[BeforeAfter]})
	require.EqualValues(t, 40, d.imported(d.lines("copy", lines...)).Counted)
	require.Equal(t, 100, d.hot())
}

// Already counted lines that are scattered over a file may be lines of another server.
func TestSeveralServersAreNoticed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var both, one []string
	for i, line := range written(1, 0, 120) {
		if both = append(both, line); i%3 == 0 {
			one = append(one, line)
		}
	}
	require.Empty(t, d.imported(d.lines("one", one...)).Notes)
	s := d.imported(d.lines("both", both...))
	require.Equal(t, []string{"these may be logs of several servers: name each with --server"}, s.Notes)
	require.Empty(t, d.imported(d.lines("both", both...)).Notes)
	require.Equal(t, 120, d.hot())
}

// Lines whose time has not come wait, and count later.
func TestLinesAhead(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	now := int(time.Since(firstTime).Seconds())
	lines := append(written(1, now-100, 5), written(2, now+1000, 5)...)
	path := d.lines("a", lines...)
	s := d.imported(path)
	require.EqualValues(t, 5, s.Counted)
	require.Contains(t, s.Notes[0], "5 of its lines are ahead of this server's clock")
	require.EqualValues(t, 5, d.imported(path).Before)
}

// A follower notices if the content of a file was replaced, even if the new content is longer.
func TestFileIsReplacedInPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	path := d.lines("access.log", written(1, 0, 50)...)
	o := d.options(path)
	o.Follow, o.every = true, dbtest.Tick
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := Run(ctx, d.counter, o, &Progress{}); ended <- err }()
	counts := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return d.hot() == n }, dbtest.Patience, dbtest.Tick)
	}
	counts(50)
	d.lines("access.log", written(2, 100, 80)...)
	counts(130)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	assert.Zero(t, dbtest.Column[int64](t, dbtest.Connect(t, d.url), `SELECT count(*) FROM positions`)[0])
}
