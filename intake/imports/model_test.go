package imports

import (
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

	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/intake/logs"
	"footfall/visit"
)

// model contains how often each line of each server was counted. The rule: the k-th time a line is in a file, it counts if the
// line was counted fewer than k times before. For a named server, lines of that server and of no server are compared. Without a
// name, lines of all servers are compared.
type model map[string]map[string]int

// imports applies the rule to files of a server. A line much older than the newest one may get the number 1 again. If
// least is set, it does.
func (m model) imports(server string, least bool, files ...[]line) {
	for _, file := range files {
		number, newest := map[string]int{}, int64(0)
		for _, l := range file {
			newest = max(newest, l.at)
			if number[l.text]++; least && l.at < newest-numberedFor {
				number[l.text] = 1
			}
			m.raise(server, l.text, number[l.text])
		}
	}
}

func (m model) raise(server, text string, n int) {
	counted := 0
	for name, lines := range m {
		if server == "" || name == "" || name == server {
			counted += lines[text]
		}
	}
	if m[server] == nil {
		m[server] = map[string]int{}
	}
	m[server][text] += max(0, n-counted)
}

// line is a line of a log.
type line struct {
	text, inFile  string // as counted, and as in the file
	at            int64
	visitor, path string
	status        int
}

// paper is a log file.
type paper struct {
	path   string
	server int // that wrote all lines; -1: several servers did
	lines  []line
}

// world is one random case.
type world struct {
	*testing.T
	*desk
	r       *rand.Rand
	now     int64
	format  string
	named   bool
	pool    int
	current [3]*paper
	many    int // servers
	old     []*paper
	files   int
	model   model
	all     map[string]line // lines that were imported
	hot     int
	hash    *hashes
}

var formats = []string{"combined", "combined", "common", "combined+host", "nginx", "docker", "w3c", "caddy", "traefik", "alb", "cloudfront",
	"haproxy", "log_format"}

// headers are above the lines of a format. only contains the formats that an import must name.
var (
	headers = map[string]string{"w3c": "#Fields: date time c-ip cs-method cs-uri-stem sc-status",
		"cloudfront": "#Version: 1.0\n#Fields: date time x-edge-location c-ip cs-method cs-uri-stem sc-status x-host-header cs(User-Agent)"}
	only = map[string]logs.Format{"haproxy": "haproxy@UTC",
		"log_format": `$remote_addr [$time_local] ${scheme}://$host$request_uri "$request_method" $status rt=$request_time`}
)

func (w *world) options(files ...string) Options {
	o := w.desk.options(files...)
	o.Rules.Format = only[w.format]
	return o
}

func (w *world) one(of100 int) bool { return w.r.IntN(100) < of100 }

// line returns a line in the format of the case.
func (w *world) line(visitor, path string, status int) line {
	at := time.Unix(w.now, 0).UTC()
	clf := at.Format("02/Jan/2006:15:04:05 -0700")
	text := fmt.Sprintf(`%s - - [%s] "GET %s HTTP/1.1" %d 7`, visitor, clf, path, status)
	switch w.format {
	case "combined", "docker":
		text += ` "-" "` + browser + `"`
	case "combined+host":
		text = "blog.example " + text + ` "-" "` + browser + `"`
	case "nginx":
		text = fmt.Sprintf(`{"remote_addr":%q,"time_iso8601":%q,"request":"GET %s HTTP/1.1","status":%d,"http_user_agent":%q}`,
			visitor, at.Format(time.RFC3339), path, status, browser)
	case "caddy":
		text = fmt.Sprintf(`{"ts":%d,"request":{"remote_ip":%q,"method":"GET","host":"blog.example","uri":%q,`+
			`"headers":{"User-Agent":[%q]}},"status":%d}`, w.now, visitor, path, browser, status)
	case "traefik":
		text = fmt.Sprintf(`{"ClientHost":%q,"DownstreamStatus":%d,"RequestHost":"blog.example","RequestMethod":"GET","RequestPath":%q,`+
			`"StartUTC":%q,"request_User-Agent":%q}`, visitor, status, path, at.Format(time.RFC3339), browser)
	case "w3c":
		text = fmt.Sprintf("%s %s GET %s %d", at.Format("2006-01-02 15:04:05"), visitor, path, status)
	case "cloudfront":
		text = fmt.Sprintf("%s\tFRA2-C1\t%s\tGET\t%s\t%d\tblog.example\tMozilla/5.0%%20(X11)%%20Firefox/140.0",
			at.Format("2006-01-02\t15:04:05"), visitor, path, status)
	case "alb":
		text = fmt.Sprintf(`https %s app/blog/5 %s:2817 10.0.0.1:80 0.086 0.048 0.037 %d %[3]d 0 57 "GET https://blog.example:443%s HTTP/2.0" `+
			`"%s" ECDHE TLSv1.2 arn:aws:a "Root=1-5" "blog.example" "-" 0 %[1]s "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`,
			at.Format("2006-01-02T15:04:05.000000Z"), visitor, status, path, browser)
	case "haproxy":
		text = fmt.Sprintf(`%s web1 haproxy[1]: %s:3331 [%s] http-in static/srv1 10/0/30/69/109 %d 2750 - - ---- 1/1/1/1/0 0/0 "GET %s HTTP/1.1"`,
			at.Format("Jan 02 15:04:05"), visitor, at.Format("02/Jan/2006:15:04:05.000"), status, path)
	case "log_format":
		text = fmt.Sprintf(`%s [%s] https://blog.example%s "GET" %d rt=0.017`, visitor, clf, path, status)
	}
	in := text
	if w.format == "docker" {
		in = fmt.Sprintf(`{"log":%q,"stream":"stdout","time":"2026-01-01T00:00:00.%09dZ"}`, text+"\n", w.r.IntN(1e9))
	}
	return line{text, in, w.now, visitor, path, status}
}

func (w *world) save(p *paper) {
	var b strings.Builder
	if headers[w.format] != "" {
		b.WriteString(headers[w.format] + "\n")
	}
	for _, l := range p.lines {
		b.WriteString(l.inFile + "\n")
	}
	content := []byte(b.String())
	if strings.HasSuffix(p.path, ".gz") {
		content = packGzip(w.T, content)
	}
	require.NoError(w, os.WriteFile(p.path, content, 0o600))
}

// write appends lines to the logs of all servers.
func (w *world) write() {
	if w.one(5) {
		w.now -= int64(w.r.IntN(2000)) // the clock is set back
	}
	for range 1 + w.r.IntN(40) {
		w.now += int64(w.r.IntN(w.r.IntN(40) + 1))
		s, status := w.r.IntN(w.many), 200
		if w.one(10) {
			status = 404
		}
		l := w.line(fmt.Sprintf("192.0.2.%d", w.r.IntN(w.pool)), fmt.Sprintf("/%d", w.r.IntN(4)), status)
		for range 1 + w.r.IntN(3)*w.r.IntN(2) {
			w.append(s, w.again(l))
		}
		if w.one(15) { // a monitor requests a page from all servers
			l = w.line("198.51.100.1", "/up", 200)
			for s := range w.many {
				w.append(s, w.again(l))
			}
		}
	}
}

// append appends a line to the log of a server.
func (w *world) append(server int, l line) {
	p := w.current[server]
	p.lines = append(p.lines, l)
	f, err := os.OpenFile(p.path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(w, err)
	_, err = f.WriteString(l.inFile + "\n")
	require.NoError(w, err)
	require.NoError(w, f.Close())
}

// again returns an equal line. Docker adds another time to it.
func (w *world) again(l line) line {
	if w.format == "docker" {
		l.inFile = fmt.Sprintf(`{"log":%q,"stream":"stdout","time":"2026-01-01T00:00:00.%09dZ"}`, l.text+"\n", w.r.IntN(1e9))
	}
	return l
}

// rotate rotates the log of a server by renaming, compressing, or copying and truncating it.
func (w *world) rotate() {
	p := w.current[w.r.IntN(w.many)]
	w.files++
	old := &paper{fmt.Sprintf("%s.%d", p.path, w.files), p.server, p.lines}
	switch w.r.IntN(3) {
	case 0:
		require.NoError(w, os.Rename(p.path, old.path))
	case 1:
		old.path += ".gz"
		w.save(old)
		require.NoError(w, os.Remove(p.path))
	case 2:
		w.save(old)
		require.NoError(w, os.Truncate(p.path, 0))
	}
	p.lines = nil
	w.save(p)
	w.old = append(w.old, old)
}

// derive makes a file from other files, as operators do.
func (w *world) derive() *paper {
	w.files++
	p := &paper{path: filepath.Join(w.folder, fmt.Sprintf("derived%d", w.files)), server: w.r.IntN(w.many)}
	own := w.filesOf(p.server)
	for _, i := range w.r.Perm(len(own)) {
		p.lines = append(p.lines, own[i].lines...)
	}
	n := len(p.lines)
	switch w.r.IntN(6) {
	case 0:
		p.lines = p.lines[:w.r.IntN(n+1)]
	case 1:
		p.lines = p.lines[w.r.IntN(n+1):]
	case 2: // grep
		path := fmt.Sprintf("/%d", w.r.IntN(4))
		p.lines = slices.DeleteFunc(slices.Clone(p.lines), func(l line) bool { return l.path == path })
	case 3: // sort -m
		p.server, p.lines = -1, nil
		for s := range w.many {
			for _, f := range w.filesOf(s) {
				p.lines = append(p.lines, f.lines...)
			}
		}
		slices.SortStableFunc(p.lines, func(a, b line) int { return int(a.at - b.at) })
	case 4: // cat of all
		p.server, p.lines = -1, nil
		for _, s := range w.r.Perm(w.many) {
			for _, f := range w.filesOf(s) {
				p.lines = append(p.lines, f.lines...)
			}
		}
	}
	p.lines = slices.Clone(p.lines)
	w.save(p)
	return p
}

func (w *world) filesOf(server int) (files []*paper) {
	for _, p := range w.old {
		if p.server == server {
			files = append(files, p)
		}
	}
	return append(files, w.current[server])
}

// job is an import of some files.
type job struct {
	server string
	files  []*paper
	o      Options
}

func (w *world) job() job {
	s := w.r.IntN(w.many)
	j := job{files: w.filesOf(s)}
	switch w.r.IntN(5) {
	case 0:
		p := w.derive()
		j.files, s = []*paper{p}, p.server
	case 1:
		j.files = slices.DeleteFunc(j.files, func(*paper) bool { return w.one(50) })
	case 2:
		j.files, s = nil, -1
		for s := range w.many {
			j.files = append(j.files, w.filesOf(s)...)
		}
	}
	if s >= 0 && w.named && w.one(80) {
		j.server = fmt.Sprintf("web%d", s)
	}
	j.o = w.options()
	for _, p := range j.files {
		j.o.Files = append(j.o.Files, p.path)
	}
	j.o.Server = j.server
	if w.one(20) {
		j.o.Rules.Statuses = []int{200, 404}
	}
	w.r.Shuffle(len(j.o.Files), func(a, b int) { j.o.Files[a], j.o.Files[b] = j.o.Files[b], j.o.Files[a] })
	return j
}

// taken returns the lines of a job's files that its rules do not leave out.
func (j job) taken() (files [][]line) {
	for _, p := range j.files {
		left := func(l line) bool { return !slices.Contains(j.o.Rules.Statuses, l.status) }
		files = append(files, slices.DeleteFunc(slices.Clone(p.lines), left))
	}
	return files
}

// do runs a job to its end, after it has killed it some times.
func (w *world) do(j job, kills int, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, seed))
	for kill := range kills + 1 {
		ctx, cancel := context.WithCancel(w.Context())
		p := &Progress{}
		if kill < kills {
			after := time.Duration(r.IntN(20)) * time.Millisecond
			go func() {
				time.Sleep(after) //nolint:forbidigo // the import is killed at any moment
				cancel()
			}()
		}
		s, err := Run(ctx, w.counter, j.o, p)
		cancel()
		if err == nil && len(s.Problems) > 0 {
			return fmt.Errorf("%s: %v", j.server, s.Problems)
		} else if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return nil
}

// imported runs jobs at the same time, and compares the tables with the rule.
func (w *world) imported(jobs ...job) {
	ended := make(chan error, len(jobs))
	for _, j := range jobs {
		kills, seed := w.r.IntN(2)*w.r.IntN(3), w.r.Uint64()
		go func() { ended <- w.do(j, kills, seed) }()
	}
	for range jobs {
		require.NoError(w, <-ended)
	}
	for _, j := range jobs {
		for _, file := range j.taken() {
			for _, l := range file {
				w.all[l.text] = l
			}
		}
	}
	// The order in which the imports decide about each line is unknown, so any order is right.
	var most, least []model
	for _, order := range permutations(jobs) {
		high, low := w.model.copied(), w.model.copied()
		for _, j := range order {
			high.imports(j.server, false, j.taken()...)
			low.imports(j.server, true, j.taken()...)
		}
		most, least = append(most, high), append(least, low)
	}
	now := w.tables()
	for text := range w.all {
		n, high, low := now.sum(text), 0, 1<<30
		for i := range most {
			high, low = max(high, most[i].sum(text)), min(low, least[i].sum(text))
		}
		require.True(w, low <= n && n <= high, "%s was counted %d times, but the rule allows %d to %d", text, n, low, high)
		w.hot += n - w.model.sum(text)
		if len(jobs) == 1 && low == high {
			for name := range most[0] {
				require.Equal(w, most[0][name][text], now[name][text], "%s of %q", text, name)
			}
		}
	}
	w.model = now
	w.numbers()
}

func (m model) copied() model {
	c := model{}
	for name, lines := range m {
		c[name] = maps.Clone(lines)
	}
	return c
}

func (m model) sum(text string) (n int) {
	for _, lines := range m {
		n += lines[text]
	}
	return n
}

func permutations(jobs []job) (all [][]job) {
	if len(jobs) < 2 {
		return [][]job{jobs}
	}
	for i := range jobs {
		for _, rest := range permutations(slices.Concat(jobs[:i], jobs[i+1:])) {
			all = append(all, append([]job{jobs[i]}, rest...))
		}
	}
	return all
}

// tables returns how often each line was counted, as stored in the tables.
func (w *world) tables() model {
	g, err := w.counter.AuthorizeOperator(w.Context(), w.app)
	require.NoError(w, err)
	c, m := newCounted(g.DB(), g.App().ID, ""), model{"": {}}
	hours, parser, parsed := map[int32]bool{}, logs.NewParser(only[w.format]), logs.Line{}
	for header := range strings.Lines(headers[w.format]) {
		parser.Header([]byte(strings.TrimSpace(header)))
	}
	for text, l := range w.all {
		require.NoError(w, parser.Parse([]byte(text), &parsed))
		hour, site := int32(l.at/3600), "blog.example" //nolint:gosec // some hundred thousand
		if parsed.NamesHost() {
			site = ""
		}
		if !hours[hour] {
			require.NoError(w, c.load(w.Context(), []int32{hour}))
			hours[hour] = true
		}
		hash, _ := w.hash.hashLine(0, []byte(text), site)
		for server := range c.hours[hour].servers {
			if m[server] == nil {
				m[server] = map[string]int{}
			}
			if n := c.hours[hour].numberOf(server, hash); n > 0 {
				m[server][text] = n
			}
		}
	}
	return m
}

// numbers compares hot with the rule, and pv and uv with the lines that exist.
func (w *world) numbers() {
	visitors, days := map[string]bool{}, map[string]bool{}
	for _, l := range w.all {
		visitors[l.visitor] = true
		days[fmt.Sprint(l.visitor, visit.DayOf(time.Unix(l.at, 0), time.UTC))] = true
	}
	conn := dbtest.Connect(w.T, w.url)
	defer conn.Close(context.Background())
	got := dbtest.Column[string](w.T, conn, `SELECT concat_ws(' ', c.hot, c.pv, c.uv) FROM counters AS c JOIN pages AS p ON p.id = c.page_id
		JOIN apps AS a ON a.id = p.app_id WHERE p.site_id IS NULL AND a.name = $1`, w.app)
	if len(w.all) > 0 {
		require.Equal(w, []string{fmt.Sprint(w.hot, len(days), len(visitors))}, got)
	}
}

// followed follows the log of a server while servers write and rotate logs, and then imports the remaining lines.
func (w *world) followed() {
	s := w.r.IntN(w.many)
	o := w.options(w.current[s].path)
	o.Follow, o.every = true, dbtest.Tick
	if w.named {
		o.Server = fmt.Sprintf("web%d", s)
	}
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { _, err := Run(ctx, w.counter, o, &Progress{}); ended <- err }()
	for range 1 + w.r.IntN(4) {
		w.write()
		if w.one(30) {
			w.rotate()
		}
		time.Sleep(time.Duration(w.r.IntN(60)) * time.Millisecond) //nolint:forbidigo // so that it reads in between
	}
	stop()
	require.ErrorIs(w, <-ended, context.Canceled)
	j := job{server: o.Server, files: w.filesOf(s), o: w.options()}
	for _, p := range j.files {
		j.o.Files = append(j.o.Files, p.path)
	}
	j.o.Server = o.Server
	w.imported(j)
}

// forget forgets all lines of a server, or of all servers.
func (w *world) forget() {
	var server *string
	if w.named {
		name := "web0"
		server = &name
	}
	_, err := admin.NewAdmin(w.open(), nil).ForgetLines(w.Context(), w.app, server, 20000101, 20990101)
	require.NoError(w, err)
	for name := range w.model {
		if server == nil || name == *server {
			w.model[name] = map[string]int{}
		}
	}
}

// step does a random step.
func (w *world) step() {
	switch n := w.r.IntN(100); {
	case n < 30:
		w.write()
	case n < 45:
		w.rotate()
	case n < 78:
		w.imported(w.job())
	case n < 88:
		jobs := []job{w.job(), w.job()}
		if w.one(50) {
			jobs = append(jobs, jobs[0])
		}
		w.imported(jobs...)
	case n < 96:
		w.followed()
	default:
		w.forget()
	}
}

// The rule holds while logs are rotated, compressed, cut, merged, followed and imported at the same time, and imports
// are killed. No file is refused. FOOTFALL_IMPORT_CASES is the number of random cases.
func TestRule(t *testing.T) {
	t.Parallel()
	cases := dbtest.FromEnv(t, "FOOTFALL_IMPORT_CASES", dbtest.LongOrShort(100, 8))
	first := dbtest.FromEnv(t, "FOOTFALL_IMPORT_SEED", 1)
	names := make([]string, cases)
	for i := range names {
		names[i] = fmt.Sprint("case-", first+i)
	}
	base := newDeskOf(t, nil, app.Settings{}, names...)
	for i, name := range names {
		d := base.of(t, name)
		seed := uint64(first + i) //nolint:gosec // few
		w := &world{T: t, desk: d, r: rand.New(rand.NewPCG(seed, 60)), model: model{"": {}}, all: map[string]line{},
			now: firstTime.Add(10 * time.Hour).Unix()}
		w.format, w.named, w.many = formats[w.r.IntN(len(formats))], w.one(60), 1+w.r.IntN(3)
		w.pool = []int{1, 3, 30, 200}[w.r.IntN(4)]
		for s := range w.many {
			w.current[s] = &paper{path: filepath.Join(w.folder, fmt.Sprintf("web%d.log", s)), server: s}
			w.save(w.current[s])
		}
		g, err := w.counter.AuthorizeOperator(t.Context(), name)
		require.NoError(t, err)
		w.hash, err = loadHashes(t.Context(), g)
		require.NoError(t, err)
		t.Logf("%s: %s, %d servers, named %v, %d visitors", name, w.format, w.many, w.named, w.pool)
		for range 14 {
			w.step()
		}
		if t.Failed() {
			return
		}
	}
	base.prove()
}
