package imports

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/bench/generate"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/record"
	"footfall/retention"
	"footfall/visit"
)

// lineAt is a line that counts.
func lineAt(address, path string, second int) string {
	return fmt.Sprintf("%s - - [%s] \"GET %s HTTP/1.1\" 200 512 \"-\" %q\n", address, firstTime.Add(time.Duration(second)*time.Second).Format("02/Jan/2006:15:04:05 -0700"), path, browser)
}

// serverLog is what a server writes from one second to before another: a line every few seconds,
// and one of a monitor at the beginning of each minute, which is the same in the logs of all servers.
func serverLog(server, from, to int) (lines []string) {
	for second := from; second < to; second++ {
		if second%60 == 0 {
			lines = append(lines, lineAt("192.0.2.1", "/up", second))
		}
		if second%(3+server) == 1 {
			lines = append(lines, lineAt(fmt.Sprintf("10.%d.%d.%d", server, second/250%250, second%250), fmt.Sprintf("/s%d-%d", server, second), second))
		}
	}
	return lines
}

func textOf(lines ...[]string) []byte { return []byte(strings.Join(slices.Concat(lines...), "")) }

// pathsOf is how often each page is asked for in lines that count.
func pathsOf(lines ...[]string) map[string]int {
	paths := map[string]int{}
	for _, line := range slices.Concat(lines...) {
		if strings.Contains(line, `" 200 `) && !strings.Contains(line, "Googlebot") {
			_, rest, _ := strings.Cut(line, "GET ")
			path, _, _ := strings.Cut(rest, " ")
			paths[path]++
		}
	}
	return paths
}

// holds holds how often each page was counted for an app against logs.
func (d *desk) holds(app string, logs ...[]string) {
	d.t.Helper()
	is, conn := map[string]int{}, dbtest.Connect(d.t, d.url)
	defer conn.Close(d.t.Context())
	for _, row := range dbtest.Column[string](d.t, conn, `
		SELECT concat_ws(' ', substr(p.uri, strpos(p.uri, '/')), c.hot) FROM footfall.pages AS p JOIN footfall.counters AS c ON c.page_id = p.id
		JOIN footfall.apps AS a ON a.id = p.app_id WHERE p.site_id IS NOT NULL AND a.name = '`+app+`'`) {
		var path string
		var hot int
		_, err := fmt.Sscan(row, &path, &hot)
		require.NoError(d.t, err)
		is[path] += hot
	}
	want := pathsOf(logs...)
	for _, path := range slices.Sorted(maps.Keys(want)) {
		require.Equal(d.t, want[path], is[path], path)
	}
	require.Len(d.t, is, len(want))
}

// took says what became of an import.
func took(t *testing.T, s *Summary, counted, repeated int) {
	t.Helper()
	require.Empty(t, s.Problems)
	require.EqualValues(t, counted, s.Counted)
	require.EqualValues(t, repeated, s.Repeated)
}

// Two servers behind a balancer: lines that are equal in both, because somebody asked both in the
// same second, count as often as they are there.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	burst := func(n int) []string { return slices.Repeat([]string{lineAt("198.51.100.9", "/sale", 5000)}, n) }
	t.Run("a burst in the log of one that grows", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		before := serverLog(1, 0, 5000)
		for len(textOf(before)) > 65536-600 { // no line is a mark by its place
			before = before[1:]
		}
		first, second := slices.Concat(before, burst(12), serverLog(1, 5000, 9000)), slices.Concat(serverLog(2, 3000, 5000), burst(12), serverLog(2, 5000, 7000))
		took(t, d.imported(d.file("s1.log", textOf(first))), len(first), 0)
		had := 0
		for _, n := range []int{100, len(serverLog(2, 3000, 5000)) + 3, len(second) - 40, len(second)} {
			took(t, d.imported(d.file("s2.log", textOf(second[:n]))), n-had, 0)
			had = n
		}
		d.holds("blog", first, second)
	})
	t.Run("a burst of a thousand", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		first, second := slices.Concat(serverLog(1, 4000, 5000), burst(1000), serverLog(1, 5000, 6000)), slices.Concat(serverLog(2, 4000, 5000), burst(1000), serverLog(2, 5000, 6000))
		took(t, d.imported(d.file("s1.log", textOf(first))), len(first), 0)
		took(t, d.imported(d.file("s2.log", textOf(second))), len(second), 0)
		// Within a log that is there twice, it is repeated as all of it is.
		third := slices.Concat(serverLog(3, 0, 900), second)
		took(t, d.imported(d.file("s3.log", textOf(third))), len(third)-len(second), len(second))
		d.holds("blog", first, second, serverLog(3, 0, 900))
	})
	t.Run("a monitor asks both, as they grow", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		first := slices.Repeat([]string{lineAt("192.0.2.1", "/up", 0)}, 5)
		for minute := 1; minute <= 30; minute++ {
			for server := 1; server <= 2; server++ { // each log begins with the monitor's lines, and ends with one
				require.Empty(t, d.imported(d.file(fmt.Sprint("s", server), textOf(first, serverLog(server, 1, 60*minute+1)))).Problems)
			}
		}
		d.holds("blog", first, first, serverLog(1, 1, 1801), serverLog(2, 1, 1801))
	})
	t.Run("a log that is nothing but the monitor's", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		first := serverLog(1, 1, 6001)
		require.Empty(t, d.imported(d.file("s1", textOf(first))).Problems)
		monitor := []string{lineAt("192.0.2.1", "/up", 3000)}
		took(t, d.imported(d.file("s2", textOf(monitor))), 1, 0)
		last := []string{first[len(first)-1]}
		s := d.imported(d.file("s3", textOf(last)))
		took(t, s, 1, 0)
		require.Contains(t, strings.Join(s.Notes, "\n"), "of too few addresses to tell")
		d.holds("blog", first, monitor, last)
	})
}

// A pipe of all files, and then each of them as cron imports it; or the other way round.
func TestFilesAndPipe(t *testing.T) {
	t.Parallel()
	var days [4][]string
	for i := range days {
		days[i] = serverLog(1, 5000*i, 5000*(i+1))
	}
	parts := func(d *desk) []string {
		return []string{d.file("access.log.3.gz", packGzip(t, textOf(days[0]))), d.file("access.log.2.zst", packZstd(t, textOf(days[1]))), d.file("access.log.1", textOf(days[2])), d.file("access.log", textOf(days[3][:900]))}
	}
	pipe := func(d *desk, lines ...[]string) *Summary {
		o := d.options("-")
		o.Stdin = bytes.NewReader(textOf(lines...))
		s, err := d.run(o)
		require.NoError(t, err)
		return s
	}
	lines := len(slices.Concat(days[:3]...)) + 900
	t.Run("the pipe first", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		took(t, pipe(d, days[0], days[1], days[2], days[3][:900]), lines, 0)
		for i, file := range parts(d) {
			s := d.imported(file)
			require.Zero(t, s.Counted)
			require.Empty(t, s.Problems)
			require.Equal(t, i == 0, s.Repeated == 0, "the first one is what the pipe begins as")
		}
		for _, n := range []int{901, 1000, len(days[3])} {
			require.Empty(t, d.imported(d.file("access.log", textOf(days[3][:n]))).Problems)
		}
		d.holds("blog", days[:]...)
	})
	t.Run("the files first", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		took(t, d.imported(parts(d)...), lines, 0)
		took(t, pipe(d, days[0], days[1], days[2], days[3][:950]), 50, lines-len(days[0]))
		took(t, d.imported(d.file("access.log", textOf(days[3]))), len(days[3])-950, 50)
		took(t, pipe(d, days[2], days[3]), 0, len(days[3]))
		d.holds("blog", days[:]...)
	})
	t.Run("what cannot be decided", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		other := serverLog(2, 0, 3000)
		require.Empty(t, pipe(d, days[1][:500], other[:300]).Problems)
		numbers := d.numbers()
		for _, lines := range [][]string{days[1], slices.Concat(days[0], days[1]), slices.Concat(other[10:200], days[0][5:50], other[200:])} {
			s := d.imported(d.file("access.log", textOf(lines)))
			require.Len(t, s.Problems, 1)
			require.Contains(t, s.Problems[0], "Import what is new in it alone")
		}
		d.counts(numbers)
		took(t, d.imported(d.file("s2.log", textOf(other))), len(other)-300, 300)
	})
}

// Two files of a log in one import are read once; where the second has more, that is told.
func TestOneLogInTwoFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lines := serverLog(1, 0, 900)
	short, long := d.file("short", textOf(lines[:100])), d.file("long", textOf(lines))
	s := d.imported(short, long)
	require.EqualValues(t, 100, s.Counted)
	require.Len(t, s.Problems, 1)
	require.Contains(t, s.Problems[0], "it is the same log as "+short+", and goes on behind it: import it again")
	took(t, d.imported(long), len(lines)-100, 0)
	took(t, d.imported(long, short), 0, 0)
	d.holds("blog", lines)
}

// model is what should have been counted of the logs of some servers for one app.
type model struct {
	*desk
	random  *rand.Rand
	app     string
	logs    [][]string
	cuts    [][]int    // of each log, where it may be cut
	counted [][]bool   // of each log
	met     *modelMet  // over all models
	taken   [][]string // lines that were counted
}

type modelMet struct {
	sync.Mutex
	imports, skipped, refused, nothingNew, goneOn int64
	counted                                       int64
}

// newModel makes up logs: equal requests at the same moment are in several of them. They are cut
// where the lines before and behind are of one server alone: elsewhere the bytes are the same,
// whatever happened. Between two cuts are lines of three addresses, which are evidence here.
func newModel(t *testing.T, d *desk, admin *admin.Admin, met *modelMet, seed uint64) *model {
	m := &model{desk: d, random: rand.New(rand.NewPCG(seed, 23)), app: fmt.Sprint("case-", seed), met: met}
	open, all := "open", 0
	require.NoError(t, admin.AddApp(t.Context(), m.app, app.Settings{Access: &open, RetainDays: &all}))
	for server := range 2 + m.random.IntN(2) {
		var text bytes.Buffer
		visits := 12 + m.random.IntN(16)
		require.NoError(t, generate.WriteLog(&text, generate.Set{Visits: visits, Visitors: visits, Pages: 8, Sites: 1, Days: 1, Seed: 1 + seed*4 + uint64(server)})) //nolint:gosec // a small number
		var lines []string
		var cuts []int
		own := map[string]bool{} // addresses since the last cut
		for line := range strings.Lines(text.String()) {
			before, rest, _ := strings.Cut(line, "GET ")
			_, rest, _ = strings.Cut(rest, " ")
			address := strings.Fields(before)[1]
			if n := len(lines); len(own) >= 3 && !strings.Contains(lines[n-1], "/both") {
				cuts, own = append(cuts, n), map[string]bool{}
			}
			own[address] = true
			lines = append(lines, fmt.Sprintf("%sGET /s%d-%d %s", before, server, len(lines), rest))
			if len(lines)%7 == 3 {
				both := fmt.Sprintf("site-0.example 192.0.2.7 - - [%s] \"GET /both-%d HTTP/1.1\" 200 7 \"-\" %q\n", firstTime.Format("02/Jan/2006:15:04:05 -0700"), len(lines), browser)
				lines = append(lines, slices.Repeat([]string{both}, 1+len(lines)%2*(len(lines)%14))...)
			}
		}
		if len(own) < 3 {
			cuts = cuts[:max(0, len(cuts)-1)]
		}
		m.logs, m.cuts, m.counted = append(m.logs, lines), append(m.cuts, slices.Concat([]int{0}, cuts, []int{len(lines)})), append(m.counted, make([]bool, len(lines)))
	}
	return m
}

// piece is lines of a server's log.
type piece struct{ server, from, to int }

func (m *model) piece(server int) piece {
	cuts := m.cuts[server]
	from := m.random.IntN(len(cuts) - 1)
	if m.random.IntN(3) == 0 {
		from = 0
	}
	return piece{server, cuts[from], cuts[from+1+m.random.IntN(len(cuts)-1-from)]}
}

// file makes up a file of one piece or of several, packed or not.
func (m *model) file(n int) (name string, pieces []piece) {
	pieces = []piece{m.piece(m.random.IntN(len(m.logs)))}
	if m.random.IntN(3) == 0 {
		for _, server := range m.random.Perm(len(m.logs)) {
			if p := m.piece(server); server != pieces[0].server || p.from >= pieces[0].to {
				pieces = append(pieces, p)
			}
		}
	}
	var lines []string
	for _, p := range pieces {
		lines = append(lines, m.logs[p.server][p.from:p.to]...)
	}
	content := textOf(lines)
	switch m.random.IntN(6) {
	case 0:
		content = packGzip(m.t, content)
	case 1:
		content = packZstd(m.t, content)
	}
	return m.desk.file(fmt.Sprint(m.app, "-", n), content), pieces
}

// run imports files until most of the logs is counted, and holds each summary against the model.
func (m *model) run(t *testing.T) {
	for n := 0; n < 12; n += 3 {
		files := map[string][]piece{}
		for i := range 1 + m.random.IntN(2) {
			name, pieces := m.file(n + i)
			files[name] = pieces
		}
		o := m.options(slices.Sorted(maps.Keys(files))...)
		o.App, o.Rules.Site, o.stretchLines, o.evidence = m.app, "", 1+m.random.IntN(9), 3
		s, err := m.desk.run(o)
		require.NoError(t, err)
		isNew := 0
		for name, pieces := range files {
			if slices.ContainsFunc(s.Problems, func(words string) bool { return strings.HasPrefix(words, name+":") }) {
				continue
			}
			for _, p := range pieces {
				for place := p.from; place < p.to; place++ {
					if line := m.logs[p.server][place : place+1]; !m.counted[p.server][place] {
						m.counted[p.server][place] = true
						m.taken = append(m.taken, line)
						for _, counts := range pathsOf(line) {
							isNew += counts
						}
					}
				}
			}
		}
		require.EqualValues(t, isNew, s.Counted, "%s: %v: %+v", m.app, files, s)
		m.met.Lock()
		m.met.imports++
		m.met.counted += s.Counted
		m.met.skipped += s.Repeated
		m.met.refused += int64(len(s.Problems))
		m.met.nothingNew += int64(strings.Count(strings.Join(s.Notes, "\n"), "nothing in it is new"))
		if s.Repeated > 0 && s.Counted > 0 {
			m.met.goneOn++
		}
		m.met.Unlock()
	}
	m.holds(m.app, m.taken...)
}

// Random splittings, concatenations and growths of logs of several servers, in any order: of each
// file that is not refused, every line counts once, and nothing is skipped that was not counted.
func TestEachLineCountsOnce(t *testing.T) {
	t.Parallel()
	cases := dbtest.FromEnv(t, "FOOTFALL_IMPORT_CASES", dbtest.LongOrShort(1000, 80))
	d, met := newDesk(t), &modelMet{}
	admin := admin.NewAdmin(dbtest.Open(t, d.url, db.Options{}), nil)
	var next atomic.Uint64
	var models sync.WaitGroup
	for range 4 {
		models.Go(func() {
			for n := next.Add(1); n <= uint64(cases) && !t.Failed(); n = next.Add(1) { //nolint:gosec // a small number
				newModel(t, d, admin, met, n).run(t)
			}
		})
	}
	models.Wait()
	t.Logf("%d cases: %d imports, %d visits counted, %d lines skipped, %d files refused, %d had nothing new, %d imports skipped some and counted others",
		cases, met.imports, met.counted, met.skipped, met.refused, met.nothingNew, met.goneOn)
	for _, n := range []int64{met.counted, met.skipped, met.refused, met.nothingNew, met.goneOn} {
		assert.Greater(t, n, int64(cases/20))
	}
}

// An import reads the lines of the hours of its own file, however many logs the app had.
func TestImportReadsTheHoursOfItsFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lines := serverLog(1, 0, 5000)
	d.imported(d.file("access.log.1", textOf(lines[:1000])))
	d.exec(`INSERT INTO footfall.logs (app_id, claimed, lines, last_hour, hash, file, rules, skips) SELECT id, 1000000, 5000, 0, sha256(n::text::bytea), n, '', '{}'
		FROM footfall.apps, generate_series(1, 200) AS n WHERE name = 'blog'`)
	d.exec(`INSERT INTO footfall.positions (app_id, source, part, next) SELECT app_id, 'logs', id, claimed FROM footfall.logs WHERE lines = 5000`)
	d.exec(`INSERT INTO footfall.log_lines SELECT app_id, id, n * 50, 400000 + n, sha256(concat(id, n)::bytea) FROM footfall.logs, generate_series(0, 99) AS n WHERE lines = 5000`)
	d.exec(`ANALYZE footfall.log_lines`)
	read := func() int64 {
		conn := dbtest.Connect(t, d.url)
		defer conn.Close(t.Context())
		require.Eventually(t, func() bool { // those who have read tell how much when they end
			return len(dbtest.Column[bool](t, conn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)) == 0
		}, dbtest.Patience, dbtest.Tick)
		return dbtest.Column[int64](t, conn, `SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'log_lines'`)[0]
	}
	d.counter.Close()
	before := read()
	d.open()
	took(t, d.imported(d.file("access.log", textOf(lines[900:]))), len(lines)-1000, 100)
	d.counter.Close()
	require.Less(t, read()-before, int64(50))
}

// The lines of a log go when the app keeps no day of them; what is left of the log still keeps them
// from being counted again, and so does their age.
func TestLinesOfOldLogsAreForgotten(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	tables := dbtest.Open(t, d.url, db.Options{})
	old, longer := serverLog(1, 0, 5000), serverLog(2, 0, 5*86400)
	longer = slices.Concat(longer[:500], longer[len(longer)-500:])
	for name, lines := range map[string][]string{"old": old, "longer": longer} {
		require.EqualValues(t, len(lines), d.imported(d.file(name, textOf(lines))).Counted)
	}
	stretches := func() string {
		conn := dbtest.Connect(t, d.url)
		defer conn.Close(t.Context())
		return strings.Join(dbtest.Column[string](t, conn, `SELECT concat(regexp_replace(l.file, '.*/', ''), ' ', count(s.line) > 0) FROM footfall.logs AS l LEFT JOIN footfall.log_lines AS s ON s.log_id = l.id GROUP BY l.id, l.file ORDER BY 1`), ", ")
	}
	retains := func(days int) {
		require.NoError(t, admin.NewAdmin(tables, nil).SetApp(t.Context(), "blog", app.Settings{RetainDays: &days}))
		_, err := retention.NewRetainer(tables, retention.Options{}).Run(t.Context())
		require.NoError(t, err)
	}
	retains(30)
	require.Equal(t, "longer t, old t", stretches())
	retains(1)
	require.Equal(t, "longer t, old f", stretches())

	took(t, d.imported(d.file("renamed", textOf(old))), 0, 0)
	both := d.file("both", textOf(serverLog(3, 0, 60), old))
	_, err := d.run(d.options(both))
	require.ErrorContains(t, err, "the first day that can still be counted is")
	o := d.options(d.file("all", textOf(old, longer)))
	o.Rules.From = visit.DayOf(time.Now().AddDate(0, 0, -1), time.UTC)
	s, err := d.run(o)
	require.NoError(t, err)
	require.Zero(t, s.Counted)
}

// An import that waits for a database in vain ends, and leaves nothing out: the same command goes on.
func TestImportEndsWithoutDatabase(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	daily, secret := "daily", bytes.Repeat([]byte{7}, 32)
	tables := dbtest.Open(t, d.url, db.Options{Writers: record.Connections()})
	d.exec(`CREATE OR REPLACE FUNCTION footfall.forget_day_keys(before integer) RETURNS boolean LANGUAGE sql RETURN false`) // for keys are made of days that are over
	var err error
	d.counter, err = counter.Open(t.Context(), tables, counter.Options{Secret: secret})
	require.NoError(t, err)
	t.Cleanup(d.counter.Close)
	require.NoError(t, admin.NewAdmin(tables, secret).AddApp(t.Context(), "days", app.Settings{Sites: []string{"blog.example"}, Visitor: &daily}))
	d.exec(`INSERT INTO footfall.day_keys (day_id, key) SELECT to_char(now() - n * interval '1 day', 'YYYYMMDD')::integer, sha256('a') FROM generate_series(0, 9) AS n ON CONFLICT DO NOTHING`)
	d.exec(`CREATE FUNCTION footfall.goes_away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ALTER TABLE footfall.day_keys RENAME TO away; RETURN NULL; END $$`)
	d.exec(`CREATE CONSTRAINT TRIGGER goes_away AFTER UPDATE ON footfall.logs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION footfall.goes_away()`)
	lines := serverLog(1, 0, 500)
	o := d.options(d.file("access.log", textOf(lines)))
	o.App, o.patience = "days", time.Millisecond
	s, err := d.run(o)
	require.ErrorContains(t, err, "the same command goes on")
	require.Zero(t, s.Counted+s.Unreadable)
	d.exec(`DROP TRIGGER goes_away ON footfall.logs; ALTER TABLE footfall.away RENAME TO day_keys`)
	s, err = d.run(o)
	require.NoError(t, err)
	took(t, s, len(lines), 0)
	d.holds("days", lines)
}

// The hour of a line is the same one, whatever was read before it.
func TestHoursDependOnTheLineAlone(t *testing.T) {
	t.Parallel()
	same := newHours()
	for _, line := range []string{
		`192.0.2.1 - - [22/Nov/2026:10:31:00 +0000] "GET / HTTP/1.1" 200 7`,
		`192.0.2.1 - [21/Nov/2026] [22/Nov/2026:10:59:59 +0100] "GET /[ HTTP/1.1" 200 7`,
		`{"level":"info","ts":1795343460.52,"request":{"remote_ip":"192.0.2.1","method":"GET","host":"a.example","uri":"/"},"status":200}`,
		`{"time_local":"22/Nov/2026:10:31:00 +0000","remote_addr":"192.0.2.1","request":"GET / HTTP/1.1","status":"200"}`,
		`{"time_iso8601":"2026-11-22T10:31:00+00:00","remote_addr":"192.0.2.1","request":"GET / HTTP/1.1","status":"200"}`,
		`{"timed":"?","msec":"1795343460.520","remote_addr":"192.0.2.1","request":"GET / HTTP/1.1","status":"200"}`,
		`{"@timestamp": "2026-11-22T10:31:00Z","remote_addr":"192.0.2.1","request":"GET / HTTP/1.1","status":"200"}`,
	} {
		alone, ok := newHours().of([]byte(line))
		require.True(t, ok, line)
		hour, ok := same.of([]byte(line))
		require.True(t, ok, line)
		assert.Equal(t, alone, hour, line)
		assert.EqualValues(t, 1795343460/3600, hour, line)
	}
	for _, line := range []string{"", "garbled", `{"a":1}`, `192.0.2.1 - - [] "GET / HTTP/1.1" 200 7`} {
		_, ok := same.of([]byte(line))
		assert.False(t, ok, line)
	}
}
