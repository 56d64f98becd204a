package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

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
	f := newFailover(t, true, "--require-standby")
	f.ids = true
	f.run(dbtest.FromEnv(t, "FOOTFALL_FAILOVERS", dbtest.LongOrShort(10, 2)), func() {
		f.pair.Kill()
		f.pair.Promote()
		f.warns("none follows it, so nothing is counted")
		f.pair.WaitFor("") // as some managers do
		f.warns("the server waits for no standby, which --require-standby asks for")
		eventually(t, "nobody waits for a standby", func() bool { return len(f.pair.Waiting("%")) == 0 })
		f.takesNothing()
		before := f.counted()
		f.takesNothing()
		assert.Equal(t, before, f.counted(), "counted on one machine")
		f.pair.WaitFor("*")
		f.pair.Rejoin()
	})
}

// With a standby that need not follow, what was answered is lost, and the comparison finds it.
func TestFailoverThatLoses(t *testing.T) {
	t.Parallel()
	f := newFailover(t, false)
	f.loses = true
	f.run(1, func() {
		f.pair.FreezeWalSender()
		f.awaitAnswers(f.answered.Load() + 200)
		f.pair.Kill()
		f.pair.Promote()
	})
}

// failover is two instances on a pair of servers, and what their clients were told.
type failover struct {
	*crash
	pair     *dbtest.Pair
	services []*running
}

// warns checks that status warns of something.
func (f *failover) warns(of string) {
	assert.Contains(f.t, footfall(f.t, "status", "--require-standby", "--database-url="+f.pair.URL()).stdout, of)
}

// counted is how many visits are in the tables.
func (f *failover) counted() int64 {
	conn := dbtest.Connect(f.t, f.pair.Primary())
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

func newFailover(t *testing.T, synchronous bool, flags ...string) *failover {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), crashPatience)
	t.Cleanup(cancel)
	f := &failover{crash: &crash{t: t, ctx: ctx, targets: make(map[string]*told), statuses: make(map[int]int64)}, pair: dbtest.NewPair(t, synchronous)}
	f.connect = func() (*pgx.Conn, bool) { return dbtest.Connect(t, f.pair.Primary()), true }
	flags = append(flags, "--database-url="+f.pair.URL())
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
	f.visits = int64(times+1) * 400
	var clients sync.WaitGroup
	for range failoverClients {
		clients.Go(f.client)
	}
	for n := range times {
		f.awaitAnswers(400 * int64(n+1))
		fail()
	}
	clients.Wait()
	require.NoError(f.t, f.ctx.Err(), "it took too long")
	compared := f.compare()
	f.t.Logf("%d visits answered by %d clients, %d failed %v: %s", f.answered.Load(), failoverClients, f.failed.Load(), f.statuses, compared)
	assert.Contains(f.t, well(f.t, "verify", "--database-url="+f.pair.URL()), "0 violations")
}
