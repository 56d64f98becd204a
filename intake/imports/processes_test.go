package imports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/record"
)

// The cases of the model are played on PostgreSQL, too. An import that is killed there is a process,
// which this program is when it is asked by its environment: kill -9 ends it at a stage that the seed
// tells, or some moment after it has begun to count.

const (
	errand     = "FOOTFALL_MODEL_IMPORT"
	doneErrand = 7
)

// errandOf is what such a process is to do.
type errandOf struct {
	URL, App, Server      string
	Files                 []string
	Stdin                 []byte // nil: it reads files
	Bots                  bool
	AfterTime             time.Time
	AfterCounted, Another bool
	DryRun                bool
	KillAt                int           // the stage
	After                 time.Duration // that it is killed from when it begins to count; 0: it is not
}

type done struct {
	Problems, Notes []string
	Counted         int64
	Err             string
}

func init() {
	if text := os.Getenv(errand); text != "" {
		runErrand([]byte(text))
		os.Exit(doneErrand)
	}
}

func runErrand(text []byte) {
	ctx, e := context.Background(), errandOf{}
	must(json.Unmarshal(text, &e))
	tables, err := db.Open(ctx, e.URL, db.Options{Writers: record.Connections()})
	must(err)
	c, err := counter.Open(ctx, tables, counter.Options{Options: record.Options{MaxWait: time.Minute}})
	must(err)
	o := Options{
		App: e.App, Files: e.Files, Rules: modelRules, Server: e.Server, After: e.AfterTime, AfterCounted: e.AfterCounted, Another: e.Another,
		DryRun: e.DryRun,
		Stdin:  bytes.NewReader(e.Stdin), Notice: func(string, error) {}, pauses: time.Nanosecond,
	}
	o.Rules.Bots = e.Bots
	s, err := runOn(ctx, &doomed{database: &database{counter: c, name: e.App, pause: counter.NewPause()}, errand: e}, o, &Progress{})
	d := done{Problems: s.Problems, Notes: s.Notes, Counted: s.Counted}
	if err != nil {
		d.Err = err.Error()
	}
	must(json.NewEncoder(os.Stdout).Encode(d))
}

// doomed is the service, until it is killed.
type doomed struct {
	*database
	errand errandOf
	stages int
}

func (d *doomed) stage() {
	if d.stages++; d.stages == d.errand.KillAt {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

func (d *doomed) inBook(ctx context.Context, f func(b book) error) error {
	d.stage()
	err := d.database.inBook(ctx, func(b book) error {
		err := f(b)
		d.stage()
		return err
	})
	d.stage()
	return err
}

func (d *doomed) count(ctx context.Context, r *reader) error {
	d.stage()
	if d.errand.After > 0 {
		time.AfterFunc(d.errand.After, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
	err := d.database.count(ctx, r)
	d.stage()
	return err
}

// onPostgres plays a case on PostgreSQL.
type onPostgres struct {
	*world
	t       *testing.T
	url     string
	app     string
	counter *counter.Counter
	conn    *pgx.Conn
	killed  *atomic.Int64
}

func (p *onPostgres) runAll(all []*imported) {
	var running sync.WaitGroup
	for _, i := range all {
		i.newly, i.refused, i.logOf = map[string][]int{}, map[string]bool{}, map[string]*modelLog{}
		i.options.App, i.options.pauses = p.app, time.Nanosecond
		o := i.options
		e := errandOf{
			URL: dbtest.With(p.t, p.url, "application_name", p.app), App: p.app, Server: o.Server,
			Files: o.Files, Bots: o.Rules.Bots, AfterTime: o.After, AfterCounted: o.AfterCounted,
			Another: o.Another, DryRun: o.DryRun, KillAt: i.killAt,
		}
		if i.killAt > 12 {
			e.KillAt, e.After = 0, time.Duration(p.random.IntN(6000))*time.Microsecond
		}
		if i.stdin != nil {
			e.Stdin = i.stdin.content
		}
		running.Go(func() {
			if i.killAt == 0 {
				i.summary, i.err = Run(context.Background(), p.counter, i.options, &Progress{})
			} else {
				p.process(i, e)
			}
		})
	}
	running.Wait()
	if slices.ContainsFunc(all, func(i *imported) bool { return i.killed != "" }) {
		p.awaitSessions()
	}
	p.observe(all)
}

// awaitSessions waits until the sessions of processes are over: what a process that was killed has sent
// is still carried out, and commits.
func (p *onPostgres) awaitSessions() {
	assert.Eventually(p.t, func() bool {
		var n int
		must(p.conn.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name = $1`, p.app).Scan(&n))
		return n == 0
	}, dbtest.Patience, dbtest.Tick)
}

// process runs an import by itself.
func (p *onPostgres) process(i *imported, e errandOf) {
	i.summary = newSummary()
	text, err := json.Marshal(e)
	must(err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), errand+"="+string(text), "GOGC=off", "GOMAXPROCS=1") // it is short
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, _ := cmd.Output()
	switch status := cmd.ProcessState.Sys().(syscall.WaitStatus); {
	case status.Signaled():
		p.killed.Add(1)
		i.killed, i.err = "by kill -9", errKilled
	case status.ExitStatus() != doneErrand:
		i.err = fmt.Errorf("the process has ended with %d: %s", status.ExitStatus(), errs.String())
	default:
		var d done
		must(json.Unmarshal(out, &d))
		i.summary.Problems, i.summary.Notes, i.summary.Counted = d.Problems, d.Notes, d.Counted
		if d.Err != "" {
			i.err = errors.New(d.Err)
		}
	}
}

// observe finds out what imports have done, when they have ended.
func (p *onPostgres) observe(all []*imported) {
	ctx := context.Background()
	rows, err := p.conn.Query(ctx, "SELECT l.* FROM footfall.logs AS l JOIN footfall.apps AS a ON a.id = l.app_id WHERE a.name = $1 "+
		"ORDER BY l.id", p.app)
	must(err)
	logs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Log])
	must(err)
	p.late = []*fresh{}
	for _, l := range logs {
		p.found(all, l)
	}
	for _, f := range p.late {
		p.holdAgainstAll(f)
	}
	was := slices.Clone(p.counted)
	clear(p.counted)
	rows, err = p.conn.Query(ctx, "SELECT s.uri, c.hot FROM footfall.pages AS s JOIN footfall.counters AS c ON c.page_id = s.id JOIN "+
		"footfall.apps AS a ON a.id = s.app_id WHERE a.name = $1", p.app)
	must(err)
	var uri string
	var hot int64
	_, err = pgx.ForEachRow(rows, []any{&uri, &hot}, func() error {
		if _, path, found := strings.Cut(uri, "/t"); found {
			var t int
			_, err := fmt.Sscan(path, &t)
			p.counted[t] = int(hot)
			return err
		}
		return nil
	})
	must(err)
	p.refusedCountNothing(all, was)
}

// found notes how a log is now.
func (p *onPostgres) found(all []*imported, l Log) {
	mine := p.logs[l.ID]
	var was *Log
	counted := int64(0)
	if mine != nil {
		copied := mine.Log
		was, counted = &copied, *copied.Counted
		if copied.Claimed == l.Claimed && *copied.Counted == *l.Counted && bytes.Equal(copied.Hash, l.Hash) {
			mine.Log = l
			return
		}
	}
	at := slices.IndexFunc(all, func(i *imported) bool { return i.paperOf(&l) != nil })
	if at < 0 {
		p.wrong("log %d is claimed for %d bytes that no file has", l.ID, l.Claimed)
		return
	}
	i, paper := all[at], all[at].paperOf(&l)
	start := counted
	if mine != nil && !bytes.HasPrefix(paper.content, mine.content[:counted]) { // it has taken the place of another file
		n := slices.IndexFunc(paper.lines, func(line int) bool { return line != none && !mine.ids[line] })
		if n < 0 {
			n = len(paper.lines)
		}
		if start = 0; n > 0 {
			start = int64(paper.ends[n-1])
		}
		if start == counted {
			p.over = true
			return
		}
	}
	decided := l
	decided.Counted = &start
	p.decided(i, decided, was)
	p.moved(l)
	if *l.Counted > start {
		for _, i := range all {
			for _, path := range i.paths() {
				if paper := i.files[path]; bytes.HasPrefix(paper.content, p.logs[l.ID].content[:*l.Counted]) {
					i.newly[path] = append(i.newly[path], bodyOf(paper.lines[paper.upTo(int(start)):paper.upTo(int(*l.Counted))])...)
					i.logOf[path] = p.logs[l.ID]
				}
			}
		}
	}
}

// refusedCountNothing asserts that what only refused files have is counted as before.
func (p *onPostgres) refusedCountNothing(all []*imported, was []int) {
	elsewhere, refused := map[int]bool{}, map[int]bool{}
	for _, i := range all {
		for _, path := range i.paths() {
			is := i.err == nil && slices.ContainsFunc(i.summary.Problems, func(text string) bool { return strings.HasPrefix(text, path+": ") })
			if is {
				i.newly[path] = nil // asserted here
			}
			for _, line := range bodyOf(i.files[path].lines) {
				if is {
					refused[p.lines[line]] = true
				} else {
					elsewhere[p.lines[line]] = true
				}
			}
		}
	}
	for t := range refused {
		if !elsewhere[t] && p.counted[t] != was[t] {
			p.wrong("%q of a file that is refused was counted", p.texts[t].line)
		}
	}
}

// What is written of logs is found again: samples of each hour that is asked for, and not those that were deleted; and whoever has
// found a log that somebody else has looked at since writes nothing.
func TestBook(t *testing.T) {
	t.Parallel()
	g, err := newDesk(t).counter.AuthorizeOperator(t.Context(), "blog")
	require.NoError(t, err)
	require.NoError(t, withBook(t.Context(), g, func(b tables) error {
		nothing, l, changed := int64(0), Log{Hash: make([]byte, sha256.Size)}, samples{}
		l.Counted = &nothing
		for hour := range int32(3) {
			changed.of(hour).add(sampled{hash: 7, count: 1})
		}
		written, err := b.set(t.Context(), &l, nil, changed)
		require.NoError(t, err)
		require.True(t, written)
		found := l
		l.Look++
		for _, writes := range []bool{true, false} {
			written, err = b.set(t.Context(), &l, &found, samples{2: new(sample)})
			require.NoError(t, err)
			require.Equal(t, writes, written)
		}
		of, err := b.samplesOf(t.Context(), l.ID, nil)
		require.NoError(t, err)
		require.Equal(t, []int32{0, 1}, of.hours())
		all, err := b.samplesOfHours(t.Context(), []int32{0, 1, 2})
		require.NoError(t, err)
		require.Equal(t, []int32{0, 1}, all[l.ID].hours())
		return nil
	}))
}

// Cases of the model on PostgreSQL, with processes that are killed.
func TestModelOnPostgres(t *testing.T) {
	t.Parallel()
	cases := dbtest.FromEnv(t, "FOOTFALL_MODEL_PROCESSES", dbtest.LongOrShort(200, 50))
	seeds := make([]uint64, cases)
	for n := range seeds {
		seeds[n] = uint64(n + 1) //nolint:gosec // it is not negative
	}
	if seed := dbtest.FromEnv(t, "FOOTFALL_MODEL_SEED", -1); seed >= 0 {
		seeds = []uint64{uint64(seed)} //nolint:gosec // it is not negative
	}
	url := dbtest.Made(t, "model", time.Now(), func(tables *db.DB) {
		for n := range seeds {
			require.NoError(t, admin.NewAdmin(tables, nil).AddApp(t.Context(), fmt.Sprintf("case%d", n+1),
				app.Settings{Sites: []string{"blog.example"}}))
		}
	})
	tables := dbtest.Open(t, url, db.Options{Writers: record.Connections()})
	c, err := counter.Open(t.Context(), tables, counter.Options{Options: record.Options{MaxWait: time.Minute}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	dir, killed, next, imports, refused := quickDir(t), atomic.Int64{}, atomic.Int64{}, atomic.Int64{}, atomic.Int64{}
	var workers sync.WaitGroup
	for range 3 {
		conn := dbtest.Connect(t, url)
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(seeds); n = int(next.Add(1)) - 1 {
				folder := filepath.Join(dir, fmt.Sprint(seeds[n]))
				must(os.Mkdir(folder, 0o700))
				w := newWorld(seeds[n], folder)
				w.start = time.Now().Add(-26 * time.Hour).Unix()
				w.now, w.clock, w.behind, w.many, w.paths = w.start, w.start, 0, min(w.many, 40), true
				w.kill, w.traced = 35, true
				p := &onPostgres{world: w, t: t, url: url, app: fmt.Sprintf("case%d", n+1), counter: c, conn: conn, killed: &killed}
				w.runAll = p.runAll
				g, err := c.AuthorizeOperator(context.Background(), p.app)
				must(err)
				w.hashes, err = hashesOf(context.Background(), g)
				must(err)
				w.play()
				imports.Add(int64(w.seen.imports))
				refused.Add(int64(w.seen.refused))
				if len(w.faults) > 0 {
					t.Errorf("seed %d, %d lines: %s\n%s", seeds[n], len(w.lines), firstFaults(w), strings.Join(w.trace, "\n"))
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d cases, %d imports, %d refused, %d killed", len(seeds), imports.Load(), refused.Load(), killed.Load())
	require.GreaterOrEqual(t, int(killed.Load()), len(seeds)/4)
}
