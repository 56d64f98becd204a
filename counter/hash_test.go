package counter_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/visit"
)

// addressed returns an app that has counted addresses on four days, the first of which has no rows left, and a
// function that reads its numbers.
func addressed(t *testing.T) (in *instance, numbers func() []string) {
	t.Helper()
	in = both.newInstance(t, counter.Options{})
	in.keepsAll(t)
	for day := range 4 {
		for n := range 12 {
			in.Count(t, fmt.Sprintf("192.0.2.%d", n%(6+day)), fmt.Sprintf("http://a.example/%d", n%3))
			in.Count(t, fmt.Sprintf("2001:db8:%x::1", n*day), "http://b.example/")
		}
		in.Clock.Set(in.Clock.Now().AddDate(0, 0, 1))
	}
	in.closeAll(t, 20260703)
	in.Exec(t, `INSERT INTO visits_kept (app_id, from_day, gone_before) VALUES (1, 20260630, 20260630)`)
	in.Exec(t, `DELETE FROM visits WHERE day_id < 20260630`)
	in.verified(t)
	return in, func() []string {
		return append(in.TotalsOf(t), in.Table(t, `
			SELECT p.uri, v.rank, v.first_day, v.last_day FROM visitors v JOIN pages p ON p.id = v.page_id ORDER BY 1, 2`)...)
	}
}

const (
	severalPages = `SELECT uniques FROM report.uniques('demo', ARRAY['a.example/0', 'a.example/1', 'b.example/'], %d, 20260702)`
	ofAddresses  = `SELECT ip FROM visitors WHERE NOT ip << 'fd00::/8' UNION ALL SELECT ip FROM visits WHERE NOT ip << 'fd00::/8'
		UNION ALL SELECT unnest(ips) FROM inbox WHERE visitor <> 'hashed'`
)

// Addresses that an app has counted by are hashed later: all numbers and ranks stay, returning visitors are
// recognized, and no address is left, including those of visits accepted during the hashing.
func TestAddressesAreHashedLater(t *testing.T) {
	t.Parallel()
	in, numbers := addressed(t)
	require.NoError(t, in.Admin.SetApp(t.Context(), "demo", app.Settings{PublicCounts: ptr("count")}))
	_, err := in.Badge(t.Context(), counter.Request{App: "demo", URI: "http://b.example/badge"}, true)
	require.NoError(t, err)
	in.Exec(t, `INSERT INTO here (site_id, visitors) SELECT id, '{192.0.2.222}' FROM pages WHERE uri = 'a.example'`)
	_, err = in.Tables().Exec(t.Context(), `UPDATE apps SET visitor = 'hashed', secret_id = '\x0102030405060708'`)
	require.ErrorContains(t, err, "has counted by its time zone, visitor mode", "and its visitors were not hashed")
	hashed := app.Settings{Visitor: ptr("hashed")}
	before, several := numbers(), in.Table(t, fmt.Sprintf(severalPages, 20260630))
	const hotOf = `SELECT hot FROM counters JOIN pages ON id = page_id WHERE uri = 'a.example/0'`
	const read = `SELECT value FROM epochs WHERE name = 'imports'`
	hot, readBefore := in.One(t, hotOf), in.One(t, read)
	writes, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = writes.Exec(t.Context(), `SELECT put_in_inbox(1, 'UTC', 'address', 64::smallint, '{a.example/0}', '{1}', '{20260702}', '{0}',
		'{192.0.2.3}', NULL)`)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- in.Admin.SetApp(context.Background(), "demo", hashed) }()
	require.Eventually(t, func() bool {
		return in.One(t, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = hashtext('footfall.inbox')::bigint & 4294967295
			AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) > 0
	}, dbtest.Patience, dbtest.Tick)
	_, err = in.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/0"})
	var verr *visit.Error
	require.ErrorAs(t, err, &verr)
	assert.Equal(t, visit.Unavailable, verr.Kind)
	assert.Positive(t, verr.RetryAfter)
	told, err := in.Counts(t.Context(), counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/0"})
	require.NoError(t, err, "which counts nothing")
	assert.Positive(t, told.Site.Rank)
	in.One(t, `SELECT value FROM epochs WHERE name = 'apps' FOR UPDATE NOWAIT`)
	require.NoError(t, writes.Commit(t.Context()))
	require.NoError(t, <-done)
	assert.Equal(t, before, numbers())
	in.Drained(t)
	assert.Equal(t, hot+1, in.One(t, hotOf), "with the visit that waited")
	assert.Greater(t, in.One(t, read), readBefore, "instances read the visitors again")
	assert.Zero(t, in.One(t, `SELECT count(*) FROM here WHERE '192.0.2.222' = ANY (visitors)`))
	assert.Equal(t, int64(2), in.One(t, `SELECT count(*) FROM visitors WHERE ip = $1`, app.BadgeVisitor), "of the page and its site")
	assert.Empty(t, in.Table(t, ofAddresses))
	in.verified(t)
	assert.Equal(t, several, in.Table(t, fmt.Sprintf(severalPages, 20260630)))
	_, err = in.Tables().Exec(t.Context(), fmt.Sprintf(severalPages, 20260629))
	require.ErrorContains(t, err, "visitors were counted by address before day 20260630")
	a := in.Count(t, "192.0.2.3", "http://a.example/0")
	assert.Equal(t, int64(2), a.Page.Rank, "a visitor whose visit waited in the inbox")
	shown, err := in.Admin.ShowVisitor(t.Context(), "demo", "192.0.2.3")
	require.NoError(t, err)
	assert.Len(t, shown.Targets, 4)
	in.Check(t)

	// The mode is fixed again, even for a manual UPDATE.
	require.ErrorContains(t, in.Admin.SetApp(t.Context(), "demo", app.Settings{Visitor: ptr("address")}), "distinguished visitors by hashed")
	_, err = in.Tables().Exec(t.Context(), `UPDATE apps SET visitor = 'address', secret_id = NULL`)
	require.ErrorContains(t, err, "has counted by its time zone, visitor mode")
}

// A command that is interrupted has changed nothing, and can be repeated.
func TestHashingThatIsCutOff(t *testing.T) {
	t.Parallel()
	in, numbers := addressed(t)
	before, addresses := numbers(), in.Table(t, ofAddresses)
	release := in.hold(t, "a.example")
	done := make(chan error, 1)
	go func() { done <- in.Admin.SetApp(context.Background(), "demo", app.Settings{Visitor: ptr("hashed")}) }()
	in.endWaiters(t)
	require.Error(t, <-done)
	release()
	assert.Equal(t, before, numbers())
	assert.Equal(t, addresses, in.Table(t, ofAddresses))

	// The command also fails if a visit has a visitor without a hash.
	in.Exec(t, `INSERT INTO visits (page_id, day_id, previous_day, ip) SELECT page_id, day_id, 0, '203.0.113.9' FROM visits
		WHERE day_id = 20260702 LIMIT 1`)
	require.ErrorContains(t, in.Admin.SetApp(t.Context(), "demo", app.Settings{Visitor: ptr("hashed")}), "are missing at its site")
	in.Exec(t, `DELETE FROM visits WHERE ip = '203.0.113.9'`)
	assert.Equal(t, addresses, in.Table(t, ofAddresses))

	// A command that waits until its hold on the app has expired changes nothing, either.
	erased := in.erasing(t)
	go func() { done <- in.Admin.SetApp(context.Background(), "demo", app.Settings{Visitor: ptr("hashed")}) }()
	in.waitForTurn(t, 1)
	in.Exec(t, `UPDATE apps SET held_until = now() - interval '1 second'`)
	erased()
	require.ErrorContains(t, <-done, "was busy with other deletions for too long")
	assert.Equal(t, addresses, in.Table(t, ofAddresses))
	in.Count(t, "192.0.2.1", "http://a.example/0")

	// A killed command leaves the app held until the hold expires or the next command releases it.
	in.Exec(t, `UPDATE apps SET held_until = now() + interval '1 hour', public_counts = 'count'`)
	require.NoError(t, in.DB.WaitForInstances(t.Context(), dbtest.Patience))
	assert.Equal(t, visit.Unavailable, in.kindOf(t, counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/0"}))
	many, err := in.AuthorizeOperator(t.Context(), "demo")
	require.NoError(t, err)
	_, _, err = many.Visit(t.Context(), counter.Item{IP: "192.0.2.1", URI: "http://a.example/0"})
	require.ErrorContains(t, err, "are being hashed")
	_, err = in.Badge(t.Context(), counter.Request{App: "demo", URI: "http://a.example/0"}, true)
	require.ErrorContains(t, err, "are being hashed")
	in.Exec(t, `UPDATE apps SET held_until = now() - interval '1 second'`)
	require.NoError(t, in.DB.WaitForInstances(t.Context(), dbtest.Patience))
	in.Count(t, "192.0.2.1", "http://a.example/0")
	require.NoError(t, in.Admin.SetApp(t.Context(), "demo", app.Settings{Visitor: ptr("hashed")}))
	assert.Empty(t, in.Table(t, ofAddresses))
	in.verified(t)
}

// Hashing that is rolled back by a deadlock is repeated: an instance locks the inbox before the counters of its visits, and
// hashing locks the counters first.
func TestHashingAfterDeadlock(t *testing.T) {
	t.Parallel()
	in, _ := addressed(t)
	tx, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `SET LOCAL deadlock_timeout = '10min'`) // hashing is rolled back
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock_shared(hashtext('footfall.inbox'))`)
	require.NoError(t, err)
	done := begin(func() error {
		return in.Admin.SetApp(context.Background(), "demo", app.Settings{Visitor: ptr("hashed")})
	})
	in.waiters(t, 1)
	_, err = tx.Exec(t.Context(), `SELECT FROM counters FOR UPDATE`) // which hashing had locked
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-done)
	assert.Empty(t, in.Table(t, ofAddresses))
	in.verified(t)
}

// process returns the commands of another process: its long work takes no slot from others.
func (in *instance) process() *admin.Admin {
	return in.Admin.WithSlots(admin.NewSlots(context.Background()))
}

// erasing makes other commands wait for their turn to erase, until the returned function is called.
func (in *instance) erasing(t *testing.T) (erased func()) {
	t.Helper()
	tx, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT value FROM epochs WHERE name = 'erasures' FOR UPDATE`)
	require.NoError(t, err)
	return func() { t.Helper(); require.NoError(t, tx.Commit(t.Context())) }
}

// waitForTurn returns when this many commands wait for their turn to erase.
func (in *instance) waitForTurn(t *testing.T, commands int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		return in.One(t, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
			AND query LIKE '%EraseTurn%'`) == commands
	}, dbtest.Patience, dbtest.Tick)
}

// Of two concurrent hashing commands the second finds hashes, and leaves them unchanged.
func TestHashingTwiceAtATime(t *testing.T) {
	t.Parallel()
	in, numbers := addressed(t)
	before := numbers()
	erased := in.erasing(t)
	done, cut, days := make(chan error, 2), make(chan error, 1), 100
	set := func(ctx context.Context, s app.Settings, done chan<- error) {
		done <- in.process().SetApp(ctx, "demo", s)
	}
	go set(context.Background(), app.Settings{Visitor: ptr("hashed")}, done)
	in.waitForTurn(t, 1)
	held := in.Table(t, `SELECT held_until FROM apps`)
	ctx, cancel := context.WithCancel(t.Context())
	go set(ctx, app.Settings{Visitor: ptr("hashed")}, cut)
	in.waitForTurn(t, 2)
	cancel()
	require.ErrorIs(t, <-cut, context.Canceled)
	assert.Equal(t, held, in.Table(t, `SELECT held_until FROM apps`), "for the first one")
	go set(context.Background(), app.Settings{Visitor: ptr("hashed"), RetainDays: &days}, done)
	in.waitForTurn(t, 2)
	erased()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	assert.Equal(t, before, numbers())
	assert.Empty(t, in.Table(t, ofAddresses))
	assert.Equal(t, int64(days), in.One(t, `SELECT retain_days FROM apps`))
	assert.Equal(t, int64(2), in.Count(t, "192.0.2.4", "http://a.example/1").Page.Rank, "who came before")
	in.verified(t)
	_, err := in.Tables().Exec(t.Context(), `SELECT hash_visitors(1)`)
	require.ErrorContains(t, err, "does not distinguish visitors by address")
}

// Two instances, one of which also counts for another app, count while addresses are hashed: each answered visit is
// counted once, for the same visitor.
func TestHashingDuringCounting(t *testing.T) {
	t.Parallel()
	in, _ := addressed(t)
	other := plain.startOn(t, in.URL, counter.Options{})
	other.Clock.Set(in.Clock.Now())
	require.NoError(t, in.Admin.AddApp(t.Context(), "other", app.Settings{Access: ptr("open")}))
	const (
		hotOf = `SELECT sum(hot) FROM counters JOIN pages ON id = page_id WHERE app_id = $1 AND site_id IS NULL`
		uvOf  = `SELECT uv FROM counters JOIN pages ON id = page_id WHERE uri = 'a.example' AND app_id = 1`
	)
	before, uv := in.One(t, hotOf, 1), in.One(t, uvOf)
	var told, elsewhere atomic.Int64
	var ended atomic.Bool
	var clients sync.WaitGroup
	for client := range 8 {
		clients.Go(func() {
			at := []*instance{in, other}[client%2]
			for n := 0; !ended.Load() || n < 20; n++ {
				r := counter.Request{App: "demo", IP: fmt.Sprintf("192.0.2.%d", n%6), URI: "http://a.example/0", CountLater: client == 6}
				if client == 7 {
					r.App = "other"
				}
				var verr *visit.Error
				switch _, err := at.Visit(context.Background(), r); {
				case err == nil && client == 7:
					elsewhere.Add(1)
				case err == nil:
					told.Add(1)
				case client == 7, !errors.As(err, &verr), verr.Kind != visit.Unavailable:
					assert.NoError(t, err)
					return
				}
			}
		})
	}
	require.NoError(t, in.Admin.SetApp(t.Context(), "demo", app.Settings{Visitor: ptr("hashed")}))
	ended.Store(true)
	clients.Wait()
	in.Drained(t)
	other.Drained(t)
	assert.Equal(t, before+told.Load(), in.One(t, hotOf, 1))
	assert.Equal(t, elsewhere.Load(), in.One(t, hotOf, 2))
	assert.Equal(t, uv, in.One(t, uvOf))
	assert.Empty(t, in.Table(t, `SELECT v.ip FROM visitors v JOIN pages p ON p.id = v.page_id WHERE p.app_id = 1 AND NOT v.ip << 'fd00::/8'`))
	in.verified(t)
}
