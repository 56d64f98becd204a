package db_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/visit"
)

// acknowledged are writes after which somebody is told that something is done. n tells one from
// others of its kind.
var acknowledged = map[string]func(ctx context.Context, d *db.DB, n int) error{
	"a batch": func(ctx context.Context, d *db.DB, n int) error {
		return d.Write(ctx, visitBatch(fmt.Sprintf("192.0.2.%d", n), 1, 2), new(db.Outcome))
	},
	"a batch of visits with ids": func(ctx context.Context, d *db.DB, n int) error {
		b := visitBatch(fmt.Sprintf("198.51.100.%d", n), 3)
		b.Claims, b.Claimed = []db.Claim{{App: 1, ID: fmt.Sprint(n)}}, func(map[db.Claim]bool) {}
		return d.Write(ctx, b, new(db.Outcome))
	},
	"the inbox": func(ctx context.Context, d *db.DB, _ int) error {
		return d.Accept(ctx, batchID(), []db.InboxPutParams{{
			App: 1, Tz: "UTC", Visitor: "address", Ipv6Prefix: 64, Uris: []string{"example.com/a"}, Pages: []int32{1},
			Days: []int32{today}, NewPages: []int32{0}, Ips: []netip.Addr{netip.MustParseAddr("192.0.2.9")}, TagPlaces: []int16{0},
		}}, db.PastDayColumns{})
	},
	"the key of a day": func(ctx context.Context, d *db.DB, _ int) error {
		return d.KeepDayKey(ctx, visit.DayOf(d.Now(), time.UTC), make([]byte, 32))
	},
	"a call": func(ctx context.Context, d *db.DB, n int) error {
		_, err := d.OpenPosition(ctx, db.Position{App: 1, Source: "call", Part: fmt.Sprint(n)}, make([]byte, 32))
		return err
	},
	"a new page": func(ctx context.Context, d *db.DB, n int) error {
		_, _, err := d.Intern(ctx, interning([]string{fmt.Sprintf("example.com/%d", n)}, []string{"example.com"}))
		return err
	},
	"a command": func(ctx context.Context, d *db.DB, n int) error {
		return d.InTx(ctx, func(q *db.Queries) error { _, err := q.AppAdd(ctx, fmt.Sprint("app", n)); return err })
	},
}

// writing does all acknowledged writes beside each other.
type writing struct {
	t    *testing.T
	pair *dbtest.Pair
	d    *db.DB
}

func (w *writing) begin(n int) map[string]<-chan error {
	results := map[string]<-chan error{}
	for name, write := range acknowledged {
		results[name] = async(w.t, func() error { return write(w.t.Context(), w.d, n) })
	}
	return results
}

// awaitWaiting waits until all writes wait for the standby in a statement like this, and none
// returns.
func (w *writing) awaitWaiting(results map[string]<-chan error, statement string) (pids []int32) {
	returned := ""
	eventually(w.t, func() bool {
		for name, result := range results {
			if len(result) > 0 {
				returned = name
			}
		}
		pids = w.pair.Waiting(statement)
		return returned != "" || len(pids) == len(results)
	}, "all to wait for the standby")
	require.Empty(w.t, returned, "returned while the standby was away")
	return pids
}

func (w *writing) cancel(pids []int32) {
	for _, pid := range pids {
		w.pair.Exec(fmt.Sprintf("SELECT pg_cancel_backend(%d)", pid))
	}
}

const anything, again = "%", "%pg_logical_emit_message%"

// Who cancels a commit that waits for the standby does not have it acknowledged before the standby
// has it.
func TestCommitsThatAreCancelled(t *testing.T) {
	t.Parallel()
	p := dbtest.NewPair(t, true)
	makeTargets(t, dbtest.Connect(t, p.Primary()))
	w := &writing{t, p, dbtest.Open(t, dbtest.With(t, p.URL(), "synchronous_commit", "local"), db.Options{Writers: len(acknowledged)})}
	for name, result := range w.begin(1) {
		require.NoError(t, receive(t, result, name), name)
	}

	p.KillStandby()
	results := w.begin(2)
	w.cancel(w.awaitWaiting(results, anything))
	w.cancel(w.awaitWaiting(results, again))
	for name, result := range results {
		err := receive(t, result, name)
		assert.ErrorIs(t, err, db.ErrAlone, name)
		if name != "a new page" { // which counts nothing by itself
			assert.Equal(t, db.FaultUnknown, db.FaultOf(err), name)
		}
	}

	results = w.begin(3)
	w.cancel(w.awaitWaiting(results, anything))
	w.awaitWaiting(results, again)
	p.Rejoin()
	for name, result := range results {
		assert.NoError(t, receive(t, result, name), name)
	}
	assert.Equal(t, int64(2*len(acknowledged)), w.d.CommitsAlone())
}
