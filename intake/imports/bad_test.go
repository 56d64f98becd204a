package imports

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/intake/logs"
	"footfall/visit"
)

// An error in a line is reported with its number, and the other lines count.
func TestBadLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	good := string(logOf(1, firstTime, 1))
	for !strings.Contains(good, "GET /") || strings.Contains(good, "css") || strings.Contains(good, "404") || strings.Contains(good, "bot") {
		good = string(logOf(rand.Uint64(), firstTime, 1)) //nolint:gosec // a line of a test
	}
	at := firstTime.Format("02/Jan/2006:15:04:05 -0700")
	lines := []struct{ line, says string }{
		{good, ""},
		{"garbled\n", "it has no time in brackets"},
		{strings.Replace(good, at, "yesterday", 1), "its time cannot be read"},
		{strings.Replace(good, "GET", "G\x00T", 1), "it contains a NUL character"},
		{strings.Replace(good, "GET /", "GET /"+strings.Repeat("a", logs.LongestLine), 1), "it is longer than 1 MB"},
		{good, ""},
		{strings.Replace(good, "GET /", "GET /%00", 1), "uri: it contains NUL"},
		{strings.Replace(good, "GET /", "GET /"+strings.Repeat("a", 5000), 1), "uri: its canonical form is longer than"},
		{strings.Replace(good, "192.0.2", "192.0.999", 1), "ip: it is not an IPv4"},
		{strings.Replace(good, "GET /", "GET ", 1), "the requested target is not a path"},
		{"\n", "it is empty"},
		{strings.Replace(good, at, "01/Jan/2100:00:00:00 +0000", 1), "at: "},
		{good, ""},
	}
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.line)
	}
	s := d.imported(d.file("access.log", []byte(text.String()+strings.TrimSuffix(good, "\n"))))
	require.EqualValues(t, 3, s.Counted)
	require.EqualValues(t, len(lines)-3, s.Unreadable)
	require.Contains(t, s.Notes[0], "its last line, of ", "an incomplete line does not count")
	told := s.Unread
	for i, l := range lines {
		if l.says == "" {
			continue
		}
		assert.EqualValues(t, i+1, told[0].Line, l.says)
		assert.Contains(t, told[0].Why, l.says)
		told = told[1:]
	}
	d.prove()
}

// An error in a file is reported. Its readable lines count once the file can be read.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	log := logOf(2, firstTime, 1500)
	good := d.file("good.log", log)
	for _, c := range []struct {
		files []string
		says  string
	}{
		{[]string{good, d.folder}, "it is a directory: name its files, like '" + d.folder},
		{[]string{good, filepath.Join(d.folder, "none")}, "none: there is no such file"},
		{[]string{good, filepath.Join(d.folder, "none*")}, "none*: no file has a name like this"},
		{[]string{good, os.DevNull}, "it is not a regular file"},
	} {
		_, err := d.run(d.options(c.files...))
		require.ErrorContains(t, err, c.says)
	}
	require.Equal(t, "this user may not read it", openProblem(&fs.PathError{Err: fs.ErrPermission}))
	require.Empty(t, d.numbers(), "no file counts if one cannot be opened")

	clean := d.of(t, "other")
	clean.imported(clean.file("good.log", log))
	for i, packed := range [][]byte{packGzip(t, log), packZstd(t, log)} {
		s, err := d.run(d.options(d.file(fmt.Sprintf("cut%d", i), packed[:len(packed)/2])))
		require.NoError(t, err)
		require.Len(t, s.Problems, 1)
		require.Contains(t, s.Problems[0], "data is incomplete")
		damaged := bytes.Clone(packed)
		damaged[len(packed)*3/4] ^= 0xff
		s, err = d.run(d.options(d.file(fmt.Sprintf("damaged%d", i), damaged)))
		require.NoError(t, err)
		require.Len(t, s.Problems, 1)
	}
	require.NotEmpty(t, d.numbers(), "lines before the damage count")
	d.imported(d.file("whole.gz", packGzip(t, log)))
	d.counts(clean.numbers())

	s := d.imported(d.file("empty", nil), d.file("short", log[:len(log)/2]), d.file("half a line", log[:30]))
	require.Zero(t, s.Counted)
	require.Empty(t, s.Problems)
}

// Lines of days that the app no longer keeps are left out. Lines without a host need --site.
func TestLinesThatCannotCount(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	old := d.file("old", logOf(5, time.Date(2019, 6, 29, 0, 0, 0, 0, time.UTC), 10))
	s := d.imported(old)
	require.Positive(t, s.Left[TooOld])
	require.Empty(t, d.numbers())
	o := d.options(old)
	o.Rules.From = visit.DayOf(firstTime, time.UTC)
	s, err := d.run(o)
	require.NoError(t, err)
	require.EqualValues(t, 10, s.Left[OtherFrom])

	o = d.options(d.file("hostless", logOf(6, firstTime, 10)))
	o.Rules.Site = ""
	s, err = d.run(o)
	require.NoError(t, err)
	require.Contains(t, s.Unread[0].Why, "it names no host: give the site with --site")
	o.App = "nobody"
	_, err = d.run(o)
	require.ErrorContains(t, err, "there is no app")
	require.Empty(t, d.numbers())
}

// A followed file counts as it grows. After a rename, the rest of the renamed file and the new file count. After the file was
// truncated, new lines count.
func TestFollow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	parts := [][]byte{logOf(7, firstTime, 700), logOf(8, firstTime.AddDate(0, 0, 1), 50), logOf(9, firstTime.AddDate(0, 0, 2), 40),
		logOf(10, firstTime.AddDate(0, 0, 3), 30),
		logOf(11, firstTime.AddDate(0, 0, 4), 20)}
	clean := d.of(t, "other")
	clean.imported(clean.file("all", bytes.Join(parts, nil)))
	path := d.file("access.log", parts[0][:len(parts[0])/2])
	o := d.options(path + "*")
	o.Follow, o.every = true, dbtest.Tick
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := Run(ctx, d.counter, o, &Progress{}); ended <- err }()

	had := ""
	grows := func() {
		t.Helper()
		require.Eventually(t, func() bool { now := d.numbers(); grown := now != had; had = now; return grown }, dbtest.Patience, dbtest.Tick)
	}
	grows()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	for rest := parts[0][len(parts[0])/2:]; len(rest) > 0; { // also parts of lines
		n := min(9999, len(rest))
		_, err := file.Write(rest[:n])
		require.NoError(t, err)
		rest = rest[n:]
		grows()
	}
	require.NoError(t, os.Rename(path, path+".1"))
	_, err = file.Write(parts[1]) // the server has not opened the new file yet
	require.NoError(t, err)
	grows()
	d.file("access.log", parts[2])
	grows()
	require.NoError(t, os.Truncate(path, 0))
	d.file("access.log", parts[3])
	d.file("access.log-2", parts[4])
	whole := clean.numbers()
	require.Eventually(t, func() bool { return d.numbers() == whole }, dbtest.Patience, dbtest.Tick)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	d.prove()
	s := d.imported(path, path+".1", path+"-2")
	require.Zero(t, s.Counted)
	require.Empty(t, s.Problems)
	d.counts(whole)
}

// The lines do not depend on how the reader splits the text.
func TestLines(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		var text []byte
		var want []int
		for range 30 {
			n := r.IntN(200)
			if r.IntN(10) == 0 {
				n = r.IntN(2 * logs.LongestLine)
			}
			text = append(append(text, bytes.Repeat([]byte{'x'}, n)...), '\n')
			want = append(want, min(n, logs.LongestLine+1))
		}
		whole := len(text)
		text = append(text, bytes.Repeat([]byte{'y'}, r.IntN(2)*r.IntN(2*logs.LongestLine))...)
		for _, from := range []io.Reader{bytes.NewReader(text), iotest.HalfReader(bytes.NewReader(text)),
			iotest.DataErrReader(bytes.NewReader(text))} {
			l := lines{from: bufio.NewReaderSize(from, firstBuffer)}
			for i, n := range want {
				line, ok := l.next()
				require.True(t, ok)
				if n > logs.LongestLine {
					n = len(line) // the length does not matter if it is too long
					require.Greater(t, n, logs.LongestLine)
				}
				require.Len(t, line, n)
				require.EqualValues(t, i+1, l.number)
				if i > 0 && want[i-1] <= logs.LongestLine {
					require.Equal(t, text[l.start-int64(want[i-1]+1):l.start], l.previous)
				}
			}
			_, ok := l.next()
			require.False(t, ok)
			require.EqualValues(t, whole, l.place)
			require.EqualValues(t, len(text)-whole, l.unfinished)
			require.NoError(t, l.fault)
		}
	}
	l := lines{from: bufio.NewReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrUnexpectedEOF)))}
	line, ok := l.next()
	require.True(t, ok)
	require.Equal(t, "a", string(line))
	_, ok = l.next()
	require.False(t, ok)
	require.ErrorIs(t, l.fault, io.ErrUnexpectedEOF)
}

func TestStaticFiles(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]bool{
		"/": false, "/a": false, "/a.css": true, "/a.CSS?v=a": true, "/a.html": false, "/a?b=.css": false, "/v1.2/a": false, "/a.b/c.PNG#x": true,
		"/favicon.ico": true, "/robots.txt": true, "/feed.xml": true, "/a.pdf": false, "/.css": true, "/a.": false, "/a.verylongending": false,
		"/a.webmanifest": true,
	} {
		assert.Equal(t, want, isStatic([]byte(target)), target)
	}
}
