package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// TestUpgradeOfMuch replaces two instances of the last release by two instances of this version, one after the other, under
// load. The data has every kind of unfinished work: visits of several days with sources and countries, some of them late;
// people; a half-imported log; logs that are followed, imported each night, or imported in windows of time; waiting visits; and
// a webhook whose receiver is away. Before, between and after the replacements, every promise holds, and counted numbers do not
// change. A dump of the release can be loaded into the release and into this version. FOOTFALL_TRIAL_VISITS sets the number of
// visits (make upgrade-trial).
func TestUpgradeOfMuch(t *testing.T) {
	t.Parallel()
	visits := dbtest.FromEnv(t, "FOOTFALL_TRIAL_VISITS", 0)
	if visits == 0 {
		t.Skip("it takes minutes: make upgrade-trial")
	}
	before := builtBefore(t)
	database := dbtest.Empty(t)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, bytes.Repeat([]byte("s"), 32), 0o600))
	of := func(database string) []string {
		return []string{"--database-url=" + database, "--secret-file=" + secret}
	}
	here := of(database)
	with := func(program string, args []string, typed ...string) string {
		r := footfallOf(t, program, nil, "", append(typed, args...)...)
		require.Zero(t, r.code, "%v: %s", typed, r.stderr)
		return r.stdout
	}
	hook := newReceiver(t)
	for _, command := range []string{
		"migrate up", "app add demo --access=open --visitor=address", "app add blog --access=open --tz=UTC",
		"app add crm --access=open --visitor=id --tags=default,plan", "app add logs --site=blog.example --visitor=address --access=open",
		"app webhook add blog --private --site=blog.example " + hook.URL,
	} {
		with(before, here, strings.Fields(command)...)
	}
	old := [2]*running{startOf(t, before, here...), startOf(t, before, here...)}
	old[0].awaitReady()
	old[1].awaitReady()
	countMuch(t, old[0].url, visits)
	log := accessLog(t, "access.log", 7, 4000)
	whole, err := os.ReadFile(log)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(log, bytes.Join(bytes.SplitAfter(whole, []byte("\n"))[:2000], nil), 0o600))
	with(before, here, "import", log, "--app=logs")
	require.NoError(t, os.WriteFile(log, whole, 0o600))
	imports := importsBefore(t, before, here)

	ctx, cancel := context.WithTimeout(context.Background(), crashPatience)
	t.Cleanup(cancel)
	c := &crash{t: t, ctx: ctx, targets: make(map[string]*told), statuses: make(map[int]int64), visits: math.MaxInt32,
		pace: 10 * time.Millisecond}
	c.connect = func() (*pgx.Conn, bool) { conn, err := pgx.Connect(ctx, database); return conn, err == nil }
	c.goTo(old[0], old[1])
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(c.client)
	}
	clients.Go(c.caller)
	clients.Go(c.acceptor)
	defer func() { c.taken.Store(c.visits); clients.Wait() }()
	counts := func() { c.awaitAnswers(c.answered.Load() + 200) }
	counts()
	person := func(s *running) string { _, body := get(s.url + "/people?app=crm&id=cookie:7"); return body }
	had, is := numbers(t, database), person(old[0])
	require.Contains(t, with(before, here, "verify"), "0 violations")
	copied := dumped(t, database)

	first := start(t, here...)
	first.awaitReady()
	c.goTo(old[0], old[1], first)
	counts()
	c.goTo(old[1], first)
	require.Zero(t, old[0].stop())
	require.Contains(t, well(t, append([]string{"verify"}, here...)...), "0 violations", "between")
	second := start(t, here...)
	second.awaitReady()
	c.goTo(old[1], first, second)
	counts()
	c.goTo(first, second)
	require.Zero(t, old[1].stop())
	counts()
	imports.end()
	assert.Equal(t, had, numbers(t, database), "imports of the release count nothing more")
	assert.Equal(t, is, person(second))

	hook.open.Store(true)
	const rest = `\nvisits counted +2,000\n`
	assert.Regexp(t, rest, well(t, append([]string{"import", log, "--app=logs"}, here...)...))
	imports.goOn()
	c.taken.Store(c.visits) // stops the clients
	clients.Wait()
	c.allCounted(first.url)
	t.Logf("%d visits answered, %d failed, %d in calls, %d accepted, %v: %s", c.answered.Load(), c.failed.Load(), c.called, c.accepted,
		c.statuses, c.compare())
	assert.Positive(t, c.called)
	assert.Positive(t, c.accepted)
	uv := dbtest.Column[int64](t, dbtest.Connect(t, database), `SELECT uv FROM report.sites WHERE app = 'blog'`)[0]
	eventually(t, "every round number is reported", func() bool { return len(hook.all()) == len(rounds(uv)) })
	assert.Equal(t, rounds(uv), hook.all(), "each once")
	assert.Contains(t, well(t, append([]string{"verify"}, here...)...), "0 violations", "after")

	for name, program := range map[string]string{"the way back": before, "a dump of the release": os.Args[0]} {
		restored := dbtest.Empty(t)
		there := of(restored)
		r := footfallOf(t, program, nil, copied, append(append([]string{"psql"}, there...), "--", "-q", "-1", "-v", "ON_ERROR_STOP=1",
			"-o", "/dev/null")...)
		require.Zero(t, r.code, "%s: %s", name, r.stderr)
		s := startOf(t, program, there...)
		s.awaitReady()
		assert.Equal(t, had, numbers(t, restored), name)
		assert.Equal(t, is, person(s), name)
		assert.Regexp(t, rest, with(program, there, "import", log, "--app=logs"), name)
		assert.Contains(t, with(program, there, "verify"), "0 violations", name)
		require.Zero(t, s.stop())
	}
}

// importsOfBefore are imports of the last release, each into its own app: a follower, a cron job whose log was rotated and
// packed, and an import of windows of a log.
type importsOfBefore struct {
	t        *testing.T
	program  string
	flags    []string
	folder   string
	lines    map[string][]string // of an app's log
	follower *follower
}

// importsBefore counts the first half of each log with the last release.
func importsBefore(t *testing.T, program string, flags []string) *importsOfBefore {
	t.Helper()
	i := &importsOfBefore{t: t, program: program, flags: flags, folder: t.TempDir(), lines: map[string][]string{}}
	for n, app := range []string{"follow", "cron", "window"} {
		text, err := os.ReadFile(accessLog(t, app, uint64(20+n), 600)) //nolint:gosec // few
		require.NoError(t, err)
		i.lines[app] = strings.SplitAfter(strings.TrimSpace(string(text))+"\n", "\n")[:600]
		i.write(app, app, 0, 300)
		require.Zero(t, i.run(program, "app", "add", app, "--site=blog.example").code)
	}
	i.follower = followWith(t, program, append([]string{i.path("follow"), "--app=follow"}, flags...)...)
	require.Zero(t, i.run(program, "import", i.path("cron"), "--app=cron").code)
	require.Zero(t, i.run(program, "import", i.path("window"), "--app=window", "--after=counted").code)
	conn := dbtest.Connect(t, strings.TrimPrefix(flags[0], "--database-url="))
	eventually(t, "the follower has counted", func() bool {
		return dbtest.Column[int64](t, conn, `SELECT coalesce(sum(hot), 0)::bigint FROM report.sites WHERE app = 'follow'`)[0] == 300
	})
	return i
}

func (i *importsOfBefore) path(name string) string { return filepath.Join(i.folder, name) }

// write writes some lines the lines of each app's log.
func (i *importsOfBefore) write(app, name string, from, to int) {
	require.NoError(i.t, os.WriteFile(i.path(name), []byte(strings.Join(i.lines[app][from:to], "")), 0o600))
}

func (i *importsOfBefore) run(program string, args ...string) result {
	return footfallOf(i.t, program, nil, "", append(args, i.flags...)...)
}

// end makes the logs grow after the upgrade, and checks that the release's follower and cron job exit.
func (i *importsOfBefore) end() {
	i.t.Helper()
	for _, app := range []string{"follow", "cron"} {
		file, err := os.OpenFile(i.path(app), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(i.t, err)
		_, err = file.WriteString(strings.Join(i.lines[app][300:450], ""))
		require.NoError(i.t, errors.Join(err, file.Close()))
	}
	i.follower.ends("this version can no longer import: run the same command of the new version")
	r := i.run(i.program, "import", i.path("cron"), "--app=cron")
	require.Equal(i.t, 1, r.code)
	require.Contains(i.t, r.stderr, "use a newer footfall")
}

// goOn imports the logs with the same commands of this version, and checks that each line counts once.
func (i *importsOfBefore) goOn() {
	i.t.Helper()
	imported := func(visits, how string, args ...string) {
		i.t.Helper()
		r := i.run(os.Args[0], append([]string{"import"}, args...)...)
		assert.Zero(i.t, r.code, "%s: %s", how, r.stderr)
		assert.Regexp(i.t, `\nvisits counted +`+visits+`\n`, r.stdout, how)
	}
	imported("150", "the followed log", i.path("follow"), "--app=follow")
	i.write("follow", "new", 450, 600)
	imported("150", "the file after it", i.path("follow"), i.path("new"), "--app=follow")

	i.write("cron", "cron.1", 0, 450)
	i.write("cron", "cron", 450, 600)
	require.NoError(i.t, exec.Command("gzip", i.path("cron.1")).Run())
	imported("300", "a log that was rotated and packed", i.path("cron"), i.path("cron.1.gz"), "--app=cron")

	i.write("window", "window", 200, 500)
	imported("200", "a window", i.path("window"), "--app=window", "--after=counted")
	i.write("window", "window", 350, 600)
	imported("100", "the next window", i.path("window"), "--app=window", "--after=counted")

	i.write("cron", "tail", 100, 600)
	require.Zero(i.t, i.run(os.Args[0], "import", i.path("tail"), "--app=cron").code, "its lines are recorded")
	i.write("window", "other", 0, 250)
	require.Zero(i.t, i.run(os.Args[0], "import", i.path("other"), "--app=window").code, "0.2 was told that its windows are counted")
	for app := range i.lines {
		hot := dbtest.Column[int64](i.t, dbtest.Connect(i.t, strings.TrimPrefix(i.flags[0], "--database-url=")),
			`SELECT sum(hot)::bigint FROM report.sites WHERE app = $1`, app)[0]
		assert.EqualValues(i.t, 600, hot, app)
	}
}

// countMuch counts visits of five days, in calls with days in mixed order, and links people.
func countMuch(t *testing.T, service string, visits int) {
	t.Helper()
	send := func(method, path, body, says string) {
		request, err := http.NewRequestWithContext(t.Context(), method, service+path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-ndjson")
		response, err := client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Contains(t, string(answer), says)
	}
	const each = 5000
	countries := []string{"DE", "FR", "US", "CN"}
	for call := range (visits + each - 1) / each {
		var body strings.Builder
		at := time.Now().UTC().AddDate(0, 0, -call*3%5).Format(time.RFC3339)
		for n := range each {
			who := (call*each + n*n) % (visits/7 + 1)
			fmt.Fprintf(&body, `{"uri":"http://blog.example/%d?utm_source=s%d","ip":"10.%d.%d.%d","at":%q,"country":%q,"agent":%q}`+"\n",
				n%50, who%9, who>>16, who>>8&255, who&255, at, countries[who%4], browser)
		}
		send(http.MethodPost, "/visits?app=blog&answers=none", body.String(), fmt.Sprintf(`"counted":%d`, each))
	}
	var people, visited strings.Builder
	for n := range 900 {
		fmt.Fprintf(&people, `{"id":"cookie:%d","is":"user:%d"}`+"\n"+`{"id":"user:%d","tags":{"plan":"pro"}}`+"\n", n, n/3, n/3)
		fmt.Fprintf(&visited, `{"uri":"http://crm.example/%d","visitor":"cookie:%d"}`+"\n", n%5, n)
	}
	send(http.MethodPut, "/people?app=crm", people.String(), `"ok":true`)
	send(http.MethodPost, "/visits?app=crm&answers=none", visited.String(), `"counted":900`)
}

// numbers returns the numbers and tags of the apps that get no new visits.
func numbers(t *testing.T, database string) []string {
	t.Helper()
	return dbtest.Column[string](t, dbtest.Connect(t, database), `
		SELECT concat_ws(' ', a.name, p.uri, c.hot, c.pv, c.uv)
		FROM footfall.apps AS a JOIN footfall.pages AS p ON p.app_id = a.id JOIN footfall.counters AS c ON c.page_id = p.id
		WHERE a.name <> 'demo'
		UNION ALL
		SELECT concat_ws(' ', app, day_id, name, value, sum(pv)) FROM report.tag_days WHERE app <> 'demo' GROUP BY app, day_id, name, value
		ORDER BY 1`)
}

// receiver accepts calls of a webhook, after it is opened.
type receiver struct {
	*httptest.Server
	open  atomic.Bool
	mu    sync.Mutex // guards ranks
	ranks []int64
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var said struct{ Rank int64 }
		if !r.open.Load() || json.NewDecoder(request.Body).Decode(&said) != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ranks = append(r.ranks, said.Rank)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ranks)
}

// rounds returns the round numbers up to most.
func rounds(most int64) (list []int64) {
	for ten := int64(1); ten <= most; ten *= 10 {
		for _, n := range []int64{ten, 2 * ten, 5 * ten} {
			if n <= most {
				list = append(list, n)
			}
		}
	}
	return list
}
