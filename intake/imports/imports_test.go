package imports

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/intake/logs"
	"footfall/record"
	"footfall/retention"
	"footfall/verify"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// desk has the counter, the app and the folder of logs of a test. The app counts blog.example.
type desk struct {
	t       *testing.T
	url     string
	folder  string
	app     string
	counter *counter.Counter
}

// newDesk returns a desk for the app blog. Its database also contains the app other.
func newDesk(t *testing.T) *desk { return newDeskOf(t, nil, app.Settings{}, "blog", "other") }

// newDeskOf returns a desk for the first app of a new database.
func newDeskOf(t *testing.T, secret app.Secret, settings app.Settings, apps ...string) *desk {
	t.Helper()
	d := &desk{t: t, folder: t.TempDir(), app: apps[0]}
	settings.Sites = []string{"blog.example"}
	d.url = dbtest.NewPrepared(t, fmt.Sprint(apps, *cmp.Or(settings.Visitor, new(string))), time.Now(), func(tables *db.DB) {
		for _, name := range apps {
			require.NoError(t, admin.NewAdmin(tables, secret).AddApp(t.Context(), name, settings))
		}
	})
	d.openWith(secret)
	return d
}

// of returns a desk for another app of the same database.
func (d *desk) of(t *testing.T, app string) *desk {
	other := *d
	other.t, other.folder, other.app = t, t.TempDir(), app
	return &other
}

func (d *desk) open() *db.DB { return d.openWith(nil) }

func (d *desk) openWith(secret app.Secret) *db.DB {
	d.t.Helper()
	tables := dbtest.Open(d.t, d.url, db.Options{Writers: record.Connections()})
	var err error
	d.counter, err = counter.Open(d.t.Context(), tables, counter.Options{Secret: secret, Options: record.Options{MaxWait: time.Minute}})
	require.NoError(d.t, err)
	d.t.Cleanup(d.counter.Close)
	return tables
}

func (d *desk) file(name string, content []byte) string {
	d.t.Helper()
	path := filepath.Join(d.folder, name)
	require.NoError(d.t, os.WriteFile(path, content, 0o600))
	return path
}

func (d *desk) options(files ...string) Options {
	return Options{App: d.app, Files: files, Rules: Rules{Methods: DefaultMethods, Statuses: DefaultStatuses, Site: "blog.example"},
		Notice: func(string, error) {},
		holds:  time.Nanosecond} // at every Read, to show races: a Counting is for one goroutine, and a feed has two
}

func (d *desk) run(o Options) (*Summary, error) { return Run(d.t.Context(), d.counter, o, &Progress{}) }

func (d *desk) imported(files ...string) *Summary {
	d.t.Helper()
	s, err := d.run(d.options(files...))
	require.NoError(d.t, err)
	return s
}

func (d *desk) exec(sql string) {
	conn, err := pgx.Connect(d.t.Context(), d.url)
	if !assert.NoError(d.t, err) {
		return
	}
	defer conn.Close(d.t.Context())
	_, err = conn.Exec(d.t.Context(), sql)
	assert.NoError(d.t, err)
}

// numbers returns all numbers that do not depend on the order of counting.
func (d *desk) numbers() string {
	d.t.Helper()
	conn := dbtest.Connect(d.t, d.url)
	defer conn.Close(context.Background()) // some tests call this many times
	lines := dbtest.Column[string](d.t, conn, `
		WITH pages AS (SELECT p.id AS page_id, p.uri FROM footfall.pages AS p JOIN footfall.apps AS a ON a.id = p.app_id WHERE a.name = $1)
		SELECT concat_ws(' ', 'counters', uri, hot, pv, uv) FROM pages JOIN footfall.counters USING (page_id)
		UNION ALL SELECT concat_ws(' ', 'days', uri, day_id, hot, pv, new_visitors) FROM pages JOIN footfall.days USING (page_id)
		UNION ALL SELECT concat_ws(' ', 'visitors', uri, ip, first_day, last_day) FROM pages JOIN footfall.visitors USING (page_id)
		UNION ALL SELECT concat_ws(' ', 'visits', uri, ip, day_id, previous_day) FROM pages JOIN footfall.visits USING (page_id)
		ORDER BY 1`, d.app)
	return strings.Join(lines, "\n")
}

// counts compares the numbers with the expected ones, and shows the first difference.
func (d *desk) counts(want string) {
	d.t.Helper()
	is, should := strings.Split(d.numbers(), "\n"), strings.Split(want, "\n")
	for i := range min(len(is), len(should)) {
		require.Equal(d.t, should[i], is[i])
	}
	require.Equal(d.t, len(should), len(is))
}

// prove verifies all numbers.
func (d *desk) prove() {
	d.t.Helper()
	tables := dbtest.Open(d.t, d.url, db.Options{})
	proof, err := verify.Run(d.t.Context(), tables, verify.Options{})
	require.NoError(d.t, err)
	require.Zero(d.t, proof.Violations)
}

// firstTime is the start of the logs.
var firstTime = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -6)

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// logOf returns n lines, one every two minutes. Most of the lines count.
func logOf(seed uint64, from time.Time, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var text bytes.Buffer
	for i := range n {
		path, status, agent := fmt.Sprintf("/%d?seed=%d", r.IntN(8), r.IntN(1e9)), 200, browser
		switch r.IntN(10) {
		case 0:
			path = "/style.css"
		case 1:
			status = 404
		case 2:
			agent = "Googlebot/2.1"
		}
		at := from.Add(time.Duration(i) * 2 * time.Minute)
		fmt.Fprintf(&text, "192.0.2.%d - - [%s] \"GET %s HTTP/1.1\" %d 7 \"-\" \"%s\"\n", r.IntN(60), at.Format("02/Jan/2006:15:04:05 -0700"),
			path, status, agent)
	}
	return text.Bytes()
}

func packGzip(t *testing.T, content []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return packed.Bytes()
}

func packZstd(t *testing.T, content []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll(content, nil)
}

// Each rule leaves out its lines, reports their number, and can be changed.
func TestWhatCounts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	line := func(host, address, request string, status int, agent string, days int) string {
		at := firstTime.Add(time.Duration(days)*24*time.Hour + time.Hour).Format("02/Jan/2006:15:04:05 -0700")
		return strings.TrimLeft(host+" ", " ") + address + " - - [" + at + `] "` + request + `" ` + fmt.Sprint(status) + ` 7 "-" "` + agent +
			"\"\n"
	}
	log := line("blog.example", "192.0.2.1", "GET /a?x=1 HTTP/1.1", 200, browser, 0) +
		line("blog.example:443", "192.0.2.1", "GET /a HTTP/1.1", 304, browser, 1) +
		line("", "192.0.2.2", "GET /a HTTP/1.1", 200, browser, 1) +
		line("blog.example", "192.0.2.1", "POST /a HTTP/1.1", 200, browser, 1) +
		line("blog.example", "192.0.2.1", "GET /a HTTP/1.1", 404, browser, 1) +
		line("blog.example", "192.0.2.1", "GET /a.CSS?v=1 HTTP/1.1", 200, browser, 1) +
		line("blog.example", "192.0.2.1", "GET /a HTTP/1.1", 200, "Googlebot/2.1", 1) +
		line("blog.example", "192.0.2.1", "GET /a HTTP/1.1", 200, "", 1) +
		line("other.example", "192.0.2.1", "GET /a HTTP/1.1", 200, browser, 1) +
		line("blog.example", "192.0.2.1", "GET http://other.example/ HTTP/1.1", 200, browser, 1) +
		line("blog.example", "192.0.2.1", "\\x16\\x03", 400, "-", 1) +
		line("blog.example", "192.0.2.1", "GET /late HTTP/1.1", 200, browser, 3)
	file := d.file("access.log", []byte(log))
	for name, c := range map[string]struct {
		change func(r *Rules)
		counts int64
		left   map[Reason]int64
	}{
		"default": {func(*Rules) {}, 4, map[Reason]int64{OtherMethod: 2, OtherStatus: 1, StaticFile: 1, Bot: 2, OtherHost: 2}},
		"methods": {func(r *Rules) { r.Methods = []string{"GET", "POST"} }, 5, map[Reason]int64{OtherMethod: 1, OtherStatus: 1, StaticFile: 1,
			Bot: 2, OtherHost: 2}},
		"status": {func(r *Rules) { r.Statuses = []int{404} }, 1, map[Reason]int64{OtherMethod: 2, OtherStatus: 9}},
		"static": {func(r *Rules) { r.Static = true }, 5, map[Reason]int64{OtherMethod: 2, OtherStatus: 1, Bot: 2, OtherHost: 2}},
		"bots":   {func(r *Rules) { r.Bots = true }, 6, map[Reason]int64{OtherMethod: 2, OtherStatus: 1, StaticFile: 1, OtherHost: 2}},
		"host": {func(r *Rules) { r.Hosts = []string{"Blog.example:443"} }, 1, map[Reason]int64{OtherMethod: 2, OtherStatus: 1, StaticFile: 1,
			OtherHost: 7}},
		"from": {func(r *Rules) { r.From = visit.DayOf(firstTime.AddDate(0, 0, 2), time.UTC) }, 1,
			map[Reason]int64{OtherFrom: 11}},
		"to": {func(r *Rules) { r.To = visit.DayOf(firstTime, time.UTC) }, 1, map[Reason]int64{OtherTo: 11}},
	} {
		o := d.options(file)
		o.DryRun = true
		c.change(&o.Rules)
		s, err := d.run(o)
		require.NoError(t, err, name)
		assert.Equal(t, c.counts, s.Counted, name)
		assert.Equal(t, c.left, s.Left, name)
		assert.Equal(t, int64(12), s.Lines, name)
		assert.Empty(t, s.Unread, name)
	}
	require.Empty(t, d.numbers(), "a dry run writes nothing")

	o := d.options(file)
	o.Rules.Format = logs.Combined
	o.DryRun = true
	s, err := d.run(o)
	require.NoError(t, err)
	require.EqualValues(t, 11, s.Unreadable)

	require.EqualValues(t, 4, d.imported(file).Counted)
	numbers := d.numbers()
	assert.Contains(t, numbers, "counters blog.example 4 4 2\n")
	assert.Contains(t, numbers, "counters blog.example/a 3 3 2\n", "443 is the default port of https")
	assert.Contains(t, numbers, fmt.Sprintf("days blog.example/a %d 1 1 1\n", visit.DayOf(firstTime, time.UTC)))
	d.prove()

	o.DryRun, o.Rules.Format, o.Rules.Bots = false, "", true
	s, err = d.run(o)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Counted, "other rules count the lines that the first rules left out")
	require.EqualValues(t, 4, s.Before)
}

// A log counts once, under any name and compression.
func TestOneLogCountsOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	log := logOf(1, firstTime, 1500)
	require.Greater(t, len(log), 2*firstBuffer)
	s := d.imported(d.file("access.log", log), d.file("copy.log", log))
	require.Positive(t, s.Counted)
	require.EqualValues(t, 3000, s.Lines)
	require.Equal(t, s.Counted, s.Twice)
	require.Empty(t, s.Notes)
	numbers := d.numbers()
	d.prove()
	o := d.options("-")
	for name, stdin := range map[string]io.Reader{"plain": bytes.NewReader(log), "packed": bytes.NewReader(packGzip(t, log))} {
		o.Stdin = stdin
		s, err := d.run(o)
		require.NoError(t, err, name)
		require.Zero(t, s.Counted, name)
		require.Empty(t, s.Problems, name)
	}
	for _, file := range []string{
		d.file("access.log", log), d.file("renamed", log), d.file("access.log.1.gz", packGzip(t, log)), d.file("x.zst", packZstd(t, log)),
		d.file("twice.gz", append(packGzip(t, log[:1000]), packGzip(t, log[1000:])...)), d.file("shorter", log[:len(log)/2]),
	} {
		s := d.imported(file)
		require.Zero(t, s.Counted, file)
		require.Empty(t, s.Problems, file)
	}
	d.counts(numbers)

	o = d.options(filepath.Join(d.folder, "access.*"))
	o.App = "other"
	other, err := d.run(o)
	require.NoError(t, err)
	require.Equal(t, s.Counted, other.Counted, "each app counts the lines")
}

// Imports that are stopped at any moment, and started again while the log grows and gets other names, count the same
// as one complete import.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	log := append(logOf(2, firstTime, 2000), logOf(3, firstTime.AddDate(0, 0, 3), 1000)...)
	d := newDesk(t)
	clean := d.of(t, "other")
	clean.imported(clean.file("access.log", log))
	r := rand.New(rand.NewPCG(4, 4))
	for n := 1; n < len(log); n += 1 + r.IntN(1+n) {
		ctx, cancel := context.WithCancel(t.Context())
		p := &Progress{}
		if n%2 == 0 {
			go func() {
				for p.Counted.Load() == 0 && ctx.Err() == nil {
					time.Sleep(100 * time.Microsecond) //nolint:forbidigo // the import is stopped at any moment
				}
				cancel()
			}()
		}
		file := d.file(fmt.Sprintf("access.log.%d", n), log[:n])
		if n%3 == 0 {
			file = d.file("access.log.gz", packGzip(t, log[:n]))
		}
		if _, err := Run(ctx, d.counter, d.options(file), p); !errors.Is(err, context.Canceled) {
			require.NoError(t, err)
		}
		cancel()
	}
	for range 3 {
		s := d.imported(d.file("access.log", log))
		require.Empty(t, s.Problems)
	}
	d.counts(clean.numbers())
	d.prove()
}

// An import also reads the headers in the part of a W3C log that was already counted, because the columns change in the middle.
// This also works if the log is compressed.
func TestImportGoesOnBelowHeaders(t *testing.T) {
	t.Parallel()
	const columns = 250 // lines below each header
	log, w3c := logOf(5, firstTime, 1000), bytes.Buffer{}
	parser, line, ends := logs.NewParser(""), logs.Line{}, []int{}
	for i, text := range bytes.Split(bytes.TrimSpace(log), []byte("\n")) {
		require.NoError(t, parser.Parse(text, &line))
		agent := strings.ReplaceAll(string(line.Agent), " ", "+")
		path, query, _ := strings.Cut(string(line.Target), "?")
		if query == "" {
			query = "-"
		}
		if i%columns == 0 {
			w3c.WriteString([]string{"#Software: IIS\n#Fields: date time c-ip cs-method cs-uri-stem cs-uri-query sc-status cs(User-Agent)\n",
				"#Fields: sc-status cs-uri-query cs(User-Agent) c-ip time date cs-method cs-uri-stem\n"}[i/columns%2])
		}
		if at := line.Time.Format(time.DateOnly + " " + time.TimeOnly); i/columns%2 == 0 {
			fmt.Fprintf(&w3c, "%s %s %s %s %s %d %s\n", at, line.Client, line.Method, path, query, line.Status, agent)
		} else {
			day, clock, _ := strings.Cut(at, " ")
			fmt.Fprintf(&w3c, "%d %s %s %s %s %s %s %s\n", line.Status, query, agent, line.Client, clock, day, line.Method, path)
		}
		ends = append(ends, w3c.Len())
	}
	d := newDesk(t)
	clean := d.of(t, "other")
	clean.imported(clean.file("access.log", log))
	for i, end := range []int{ends[100], ends[300], ends[301], ends[749], ends[751], w3c.Len()} {
		content := w3c.Bytes()[:end]
		if i%2 == 1 {
			content = packGzip(t, content)
		}
		s := d.imported(d.file("u_ex.log", content))
		require.Empty(t, s.Problems)
		require.Zero(t, s.Unreadable, s.Unread)
	}
	d.counts(clean.numbers())
	d.prove()
}

// Two imports of the same lines at the same time count each line once.
func TestTwoImportsAtOnce(t *testing.T) {
	t.Parallel()
	log := logOf(8, firstTime, 4000)
	d := newDesk(t)
	clean := d.of(t, "other")
	clean.imported(clean.file("access.log", log))
	first, second := d.file("access.log", log), d.file("access.log.gz", packGzip(t, log))
	ended := make(chan error, 2)
	for _, file := range []string{first, second} {
		go func() { _, err := Run(t.Context(), d.counter, d.options(file), &Progress{}); ended <- err }()
	}
	for range 2 {
		require.NoError(t, <-ended)
	}
	d.counts(clean.numbers())
	d.prove()
}

// Each import pauses retention until it has ended, and for a day if it was killed. Other imports of the app do not
// end this pause.
func TestImportsPauseRetentionEachForItself(t *testing.T) {
	t.Parallel()
	const imports = 4
	d := newDesk(t)
	clean := d.of(t, "other")
	tables, conn := d.open(), dbtest.Connect(t, d.url)
	keep := func(days int) {
		require.NoError(t, admin.NewAdmin(tables, nil).SetApp(t.Context(), "blog", app.Settings{RetainDays: &days}))
	}
	var files []string
	for i := range imports { // the first log starts eight days ago
		from := time.Now().UTC().AddDate(0, 0, -8)
		if i > 0 {
			from = time.Now().UTC().Add(-time.Hour)
		}
		files = append(files, d.file(fmt.Sprint("access.log.", i), logOf(uint64(i), from, 20))) //nolint:gosec // few
	}
	d.imported(d.file("before", logOf(99, time.Now().UTC().Add(-time.Hour), 20)))
	clean.imported(append(files, d.folder+"/before")...)

	keep(10)
	held, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = held.Exec(t.Context(), `SELECT FROM counters FOR UPDATE`)
	require.NoError(t, err)
	ctx, kill := context.WithCancel(t.Context())
	killed := make(chan error, 1)
	go func() { _, err := Run(ctx, d.counter, d.options(files[0]), &Progress{}); killed <- err }()
	dbtest.AwaitWaiting(t, conn, 1)
	kill()
	require.NoError(t, held.Rollback(t.Context()))
	require.ErrorIs(t, <-killed, context.Canceled)

	keep(3) // as if nights had passed
	ended := make(chan error, imports)
	for _, file := range files[1:] {
		own := *d // like a separate process
		own.open()
		go func() { _, err := own.run(own.options(file)); ended <- err }()
	}
	for range files[1:] {
		require.NoError(t, <-ended)
	}
	retain := func() *retention.Result {
		done, err := retention.NewRetainer(tables, retention.Options{}).Run(t.Context())
		require.NoError(t, err)
		return done
	}
	assert.Empty(t, retain().Visits)
	d.imported(files[0])
	d.counts(clean.numbers())
	d.prove()

	d.exec(`UPDATE footfall.retention_pauses SET until = now() - interval '1 second'`) // as if a day had passed
	assert.NotEmpty(t, retain().Visits)
	assert.Empty(t, dbtest.Column[int64](t, conn, `SELECT run FROM retention_pauses`))
	d.prove()
}

// Visits of several logs are counted in the order of their times, as the ranks show.
func TestLogsAreMergedByTime(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var files [3]bytes.Buffer
	for i := range 900 {
		at := firstTime.Add(time.Duration(i) * 7 * time.Minute)
		fmt.Fprintf(&files[i*i%7%3], "10.0.%d.%d - - [%s] \"GET / HTTP/1.1\" 200 7\n", i/250, i%250, at.Format("02/Jan/2006:15:04:05 -0700"))
	}
	s := d.imported(d.file("a", files[0].Bytes()), d.file("b.gz", packGzip(t, files[1].Bytes())), d.file("c", files[2].Bytes()))
	require.EqualValues(t, 900, s.Counted)
	order := dbtest.Column[string](t, dbtest.Connect(t, d.url),
		`SELECT host(ip) FROM footfall.visitors JOIN footfall.pages ON id = page_id WHERE uri = 'blog.example/' ORDER BY rank`)
	for i, ip := range order {
		require.Equal(t, fmt.Sprintf("10.0.%d.%d", i/250, i%250), ip)
	}
}
