package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
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

// TestUpgradeOfMuch swaps two instances of the last release for two of this version, one after the
// other, under load, over data with all that a release leaves half done: days of visits with sources
// and countries, late ones among them, people, a log of which half is imported, visits that wait, and a
// webhook whose receiver is away. Before, between and after every promise holds, and what was counted
// of it stays. A dump of the release goes back to it, and forward to this version.
// FOOTFALL_TRIAL_VISITS says how many visits: make upgrade-trial.
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
	assert.Equal(t, had, numbers(t, database))
	assert.Equal(t, is, person(second))

	hook.open.Store(true)
	const rest = `\nvisits counted +2,000\n`
	assert.Regexp(t, rest, well(t, append([]string{"import", log, "--app=logs"}, here...)...))
	c.taken.Store(c.visits) // enough
	clients.Wait()
	c.allCounted(first.url)
	t.Logf("%d visits answered, %d failed, %d in calls, %d accepted, %v: %s", c.answered.Load(), c.failed.Load(), c.called, c.accepted,
		c.statuses, c.compare())
	assert.Positive(t, c.called)
	assert.Positive(t, c.accepted)
	uv := dbtest.Column[int64](t, dbtest.Connect(t, database), `SELECT uv FROM report.sites WHERE app = 'blog'`)[0]
	eventually(t, "everybody is told of", func() bool { return len(hook.all()) == len(rounds(uv)) })
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

// countMuch counts visits of five days, in calls whose days go back and forth, and says who is who.
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

// numbers is what was counted in the apps that nobody visits meanwhile, and with what.
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

// receiver takes calls of a webhook, once it is open.
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

// rounds are the round numbers up to one.
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
