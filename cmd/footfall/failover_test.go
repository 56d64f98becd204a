package main

import (
	"context"
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
		f.pair.WaitFor("") // as some managers do
		conn := dbtest.Connect(t, f.pair.Primary())
		counted := func() int64 {
			return dbtest.Column[int64](t, conn, `SELECT coalesce(sum(hot), 0)::bigint FROM footfall.counters`)[0]
		}
		eventually(t, "nobody waits for a standby", func() bool { return len(f.pair.Waiting("%")) == 0 })
		before, refused := counted(), f.refused()
		eventually(t, "batches are refused", func() bool { return f.refused() > refused })
		assert.Equal(t, before, counted(), "counted on one machine")
		require.NoError(t, conn.Close(t.Context()))
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

// refused is how often the services have logged that they count nothing, as there is no standby.
func (f *failover) refused() (times int) {
	for _, s := range f.services {
		times += strings.Count(s.said(), "synchronous_standby_names is empty")
	}
	return times
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
