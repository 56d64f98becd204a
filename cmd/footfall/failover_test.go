package main

import (
	"context"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

const failoverClients = 24

// TestFailover kills the primary of two instances under load, again and again, lets its synchronous
// standby take its place, and holds the tables against what the clients were answered. While the new
// primary has no standby, nothing counts. FOOTFALL_FAILOVERS makes it longer.
func TestFailover(t *testing.T) {
	t.Parallel()
	pair := dbtest.NewPair(t, true)
	f := newFailover(t, patientURL(t, pair), "--require-standby")
	f.ids = true
	f.run(dbtest.FromEnv(t, "FOOTFALL_FAILOVERS", dbtest.LongOrShort(10, 2)), func() {
		pair.Kill()
		pair.Promote()
		f.warns("none follows it or answers, so nothing is counted")
		pair.WaitFor("") // as some managers do
		f.warns("the server waits for no standby, though one is required")
		eventually(t, "nobody waits for a standby", func() bool { return len(pair.Waiting("%")) == 0 })
		f.takesNothing()
		before := f.counted()
		f.takesNothing()
		assert.Equal(t, before, f.counted(), "counted on one machine")
		pair.WaitFor("*")
		pair.Rejoin()
	})
}

// With a standby that need not follow, what was answered is lost, and the comparison finds it.
func TestFailoverThatLoses(t *testing.T) {
	t.Parallel()
	pair := dbtest.NewPair(t, false)
	f := newFailover(t, patientURL(t, pair))
	f.loses = true
	f.run(1, func() {
		pair.FreezeWalSender()
		f.awaitAnswers(f.answered.Load() + 200)
		pair.Kill()
		killed := time.Now()
		pair.Promote()
		f.countsAgain(killed)
	})
}

// TestManagedFailover does so where a manager has another server take the primary's place:
// FOOTFALL_MANAGER names it (scripts/manager).
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
	f.run(dbtest.FromEnv(t, "FOOTFALL_FAILOVERS", 5), func() {
		manager("kill")
		f.countsAgain(time.Now())
		manager("back")
	})
}

// failover is two instances on several servers, and what their clients were told.
type failover struct {
	*crash
	database string
	services []*running
}

// patientURL leads to a pair none of whose servers hangs: on a slow machine a connection may take
// longer than one may wait for a server that does.
func patientURL(t *testing.T, pair *dbtest.Pair) string {
	return dbtest.With(t, pair.URL(), "connect_timeout", "30")
}

// countsAgain waits until visits are answered that were not under way, and logs for how long none was.
func (f *failover) countsAgain(killed time.Time) {
	f.awaitAnswers(f.answered.Load() + failoverClients + 1)
	f.t.Logf("counts again after %.1f s", time.Since(killed).Seconds())
}

// warns waits until status warns of something.
func (f *failover) warns(of string) {
	var last result
	defer func() {
		if f.t.Failed() {
			f.t.Logf("status said last: %+v", last)
		}
	}()
	eventually(f.t, of, func() bool {
		last = footfall(f.t, "status", "--database-url="+f.database)
		return strings.Contains(last.stdout, of)
	})
}

// counted is how many visits are in the tables.
func (f *failover) counted() int64 {
	conn, connected := f.connect()
	require.True(f.t, connected)
	defer conn.Close(f.ctx)
	return dbtest.Column[int64](f.t, conn, `SELECT sum(hot)::bigint FROM footfall.counters`)[0]
}

// takesNothing sends to all services what they answer when it is written.
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
	f := &failover{crash: &crash{t: t, ctx: ctx, targets: make(map[string]*told), statuses: make(map[int]int64)}, database: database}
	f.connect = func() (*pgx.Conn, bool) {
		conn, err := pgx.Connect(ctx, dbtest.With(t, database, "target_session_attrs", "read-write"))
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

// run lets servers fail while visits are counted, and compares.
func (f *failover) run(times int, fail func()) {
	f.visits, f.pace = math.MaxInt32, 5*time.Millisecond
	var clients sync.WaitGroup
	for range failoverClients {
		clients.Go(f.client)
	}
	for range times {
		f.awaitAnswers(f.answered.Load() + 400)
		fail()
	}
	f.awaitAnswers(f.answered.Load() + 400)
	f.taken.Store(f.visits) // enough
	clients.Wait()
	require.NoError(f.t, f.ctx.Err(), "it took too long")
	compared := f.compare()
	f.t.Logf("%d visits answered by %d clients, %d failed %v: %s", f.answered.Load(), failoverClients, f.failed.Load(), f.statuses, compared)
	assert.Contains(f.t, well(f.t, "verify", "--database-url="+f.database), "0 violations")
}
