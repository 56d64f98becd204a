package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

const failoverClients = 24

// TestFailover repeatedly kills the primary of two instances under load, promotes its synchronous standby, and compares the
// tables with the answers that clients received. Before each kill, it weakens the primary's settings, cancels waiting commits,
// and configures the primary not to wait for a standby. While the new primary has no standby, no visit may be counted.
// FOOTFALL_FAILOVERS makes the test longer.
func TestFailover(t *testing.T) {
	t.Parallel()
	pair := dbtest.NewPair(t, true)
	f := newFailover(t, patientURL(t, pair), "--require-standby")
	f.ids = true
	times := dbtest.FromEnv(t, "FOOTFALL_FAILOVERS", dbtest.LongOrShort(10, 2))
	compared := f.run(times, func() {
		f.weaken()
		pair.WaitFor("")
		f.refuses(pair, "nobody waits for the standby that stands still")
		pair.Kill()
		f.killed["primaries"]++
		pair.Promote()
		f.warns("none follows it or responds, so nothing is counted")
		pair.WaitFor("") // as some managers do
		f.warns("a synchronous standby is required, but the server does not wait for one")
		f.refuses(pair, "the new primary is alone")
		pair.WaitFor("*")
		pair.Rejoin()
	})
	assert.Equal(t, times, f.killed["primaries"])
	t.Log(compared, f.killed.each(t, "primaries", "reloads", "cancels"))
}

// If no standby is required, the same faults lose answered visits, and the comparison finds them.
func TestFailoverThatLoses(t *testing.T) {
	t.Parallel()
	pair := dbtest.NewPair(t, true)
	f := newFailover(t, patientURL(t, pair))
	f.loses = true
	f.run(1, func() {
		f.weaken()
		pair.WaitFor("")
		f.awaitAnswers(f.answered.Load() + 200)
		pair.Kill()
		killed := time.Now()
		pair.Promote()
		pair.WaitFor("")
		f.countsAgain(killed)
	})
}

// TestManagedFailover is TestFailover with a cluster manager, which promotes the other server. FOOTFALL_MANAGER names the
// manager (scripts/manager).
func TestManagedFailover(t *testing.T) {
	name := os.Getenv("FOOTFALL_MANAGER")
	if name == "" {
		t.Skip("make failover sets FOOTFALL_MANAGER")
	}
	folder := dbtest.OwnDir(t)
	manager := func(step string) string {
		cmd := exec.Command("../../scripts/manager", name, step, folder)
		cmd.Stderr = os.Stderr
		printed, err := cmd.Output()
		assert.NoError(t, err, step)
		return strings.TrimSpace(string(printed))
	}
	t.Cleanup(func() { manager("down") })
	database := manager("up")
	require.NotEmpty(t, database)
	well(t, "migrate", "up", "--database-url="+database)
	f := newFailover(t, database, "--require-standby")
	f.ids = true
	times := dbtest.FromEnv(t, "FOOTFALL_FAILOVERS", 5)
	compared := f.run(times, func() {
		f.weaken()
		manager("kill")
		f.killed["primaries"]++
		f.countsAgain(time.Now())
		manager("back")
	})
	assert.Equal(t, times, f.killed["primaries"])
	t.Log(compared, f.killed.each(t, "primaries", "reloads", "cancels"))
}

// failover is two instances on several servers, and the answers to their clients.
type failover struct {
	*crash
	database string
	services []*running
}

// patientURL returns a URL for a pair whose servers do not hang. On a slow machine a connection may take longer than
// the limit for a hanging server.
func patientURL(t *testing.T, pair *dbtest.Pair) string {
	return dbtest.WithParameter(t, pair.URL(), "connect_timeout", "30")
}

// countsAgain waits for answers to new visits, and logs how long there were none.
func (f *failover) countsAgain(killed time.Time) {
	f.awaitAnswers(f.answered.Load() + failoverClients + 1)
	f.t.Logf("counts again after %.1f s", time.Since(killed).Seconds())
}

// warns waits until status shows a warning.
func (f *failover) warns(of string) {
	var last result
	defer func() {
		if f.t.Failed() {
			f.t.Logf("last status: %+v", last)
		}
	}()
	eventually(f.t, of, func() bool {
		last = footfall(f.t, "status", "--database-url="+f.database)
		return strings.Contains(last.stdout, of)
	})
}

// counted returns the number of visits in the tables.
func (f *failover) counted() int64 {
	conn, connected := f.connect()
	require.True(f.t, connected)
	defer conn.Close(f.ctx)
	return dbtest.Column[int64](f.t, conn, `SELECT sum(hot)::bigint FROM footfall.counters`)[0]
}

// weaken makes the primary load settings with which sessions would commit without a standby, and without a warning about
// cancelled commits. Then it cuts the primary off from its standbys, and cancels the waiting commits.
func (f *failover) weaken() {
	conn, connected := f.connect()
	require.True(f.t, connected)
	defer conn.Close(f.ctx)
	commit := []string{"local", "off"}[f.killed["reloads"]%2]
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_commit = " + commit, "ALTER SYSTEM SET client_min_messages = error",
		"SELECT pg_reload_conf()"} {
		_, err := conn.Exec(f.ctx, sql)
		require.NoError(f.t, err, sql)
	}
	f.killed["reloads"]++
	f.awaitAnswers(f.answered.Load() + 2*failoverClients) // these answers come from sessions that have loaded the settings
	for _, pid := range dbtest.Column[int](f.t, conn, `SELECT pid FROM pg_stat_replication`) {
		require.NoError(f.t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	const cancels = 20
	for until := f.killed["cancels"] + cancels; f.killed["cancels"] < until; require.NoError(f.t, f.ctx.Err()) {
		f.killed["cancels"] += dbtest.Column[int](f.t, conn,
			`SELECT count(*) FILTER (WHERE pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)[0]
	}
}

// refuses checks that all services refuse every request that needs a write, and write nothing.
func (f *failover) refuses(pair *dbtest.Pair, why string) {
	eventually(f.t, "no session waits for a standby", func() bool { return len(pair.Waiting("%")) == 0 })
	before := f.counted()
	f.takesNothing()
	assert.Equal(f.t, before, f.counted(), why)
}

// takesNothing sends to all services every kind of request that needs a write before the answer, and checks that they refuse
// it.
func (f *failover) takesNothing() {
	for _, s := range f.services {
		for path, body := range map[string]string{
			"/visits?app=demo": `[{"ip":"10.1.0.1","uri":"http://site1.example/1"}]`,
			"/visit":           `{"app":"demo","ip":"10.1.0.1","uri":"http://site1.example/1","answer":"later"}`,
		} {
			response, err := client.Post(s.url+path, "application/json", strings.NewReader(body))
			require.NoError(f.t, err)
			require.NoError(f.t, response.Body.Close())
			assert.Equal(f.t, http.StatusServiceUnavailable, response.StatusCode, path)
		}
	}
}

func newFailover(t *testing.T, database string, flags ...string) *failover {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), crashPatience)
	t.Cleanup(cancel)
	f := &failover{crash: &crash{t: t, ctx: ctx, killed: kills{}, targets: make(map[string]*told), statuses: make(map[int]int64)},
		database: database}
	f.connect = func() (*pgx.Conn, bool) {
		conn, err := pgx.Connect(ctx, dbtest.WithParameter(t, database, "target_session_attrs", "read-write"))
		return conn, err == nil
	}
	flags = append(flags, "--database-url="+database)
	well(t, append([]string{"app", "add", "demo", "--access=open", "--visitor=address"}, flags...)...)
	f.services = []*running{start(t, flags...), start(t, flags...)}
	for _, s := range f.services {
		s.awaitReady()
	}
	f.url.Store(&f.services[0].url)
	f.others = []string{f.services[1].url}
	return f
}

// run makes servers fail while visits arrive, which are counted immediately or later, and compares the tables with the answers.
func (f *failover) run(times int, fail func()) (compared string) {
	f.visits, f.pace = math.MaxInt32, 5*time.Millisecond
	var clients sync.WaitGroup
	for range failoverClients {
		clients.Go(f.client)
	}
	clients.Go(f.acceptor)
	for range times {
		f.awaitAnswers(f.answered.Load() + 400)
		fail()
	}
	f.awaitAnswers(f.answered.Load() + 400)
	f.taken.Store(f.visits) // stops the clients
	clients.Wait()
	require.NoError(f.t, f.ctx.Err(), "it took too long")
	assert.Positive(f.t, f.accepted)
	f.allCounted(f.services[0].url)
	compared = f.compare()
	assert.Contains(f.t, well(f.t, "verify", "--database-url="+f.database), "0 violations")
	return fmt.Sprintf("%d visits answered by %d clients, %d failed %v, %d accepted: %s;",
		f.answered.Load(), failoverClients, f.failed.Load(), f.statuses, f.accepted, compared)
}
