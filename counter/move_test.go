package counter_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/record"
	"footfall/visit"
)

// moves moves the app demo. killed is a step at which the command stops as if it were killed: its open transactions
// end, and nothing else happens.
func moves(ctx context.Context, from, to *instance, cell, killed string, led *atomic.Int64) (err error) {
	m := &admin.AppMove{Name: "demo", Cell: cell, From: from.process(), To: to.process(),
		PointName: func(ctx context.Context) error { // names may be recorded where the app comes from
			led.Add(1)
			_, err := from.Admin.ClaimName(ctx, "demo", cell)
			return err
		},
		OnStep: func(step string) {
			if step == killed {
				runtime.Goexit()
			}
		}}
	done := make(chan error, 1)
	go func() {
		err := errors.New("killed")
		defer func() { done <- err }()
		err = m.MoveApp(ctx)
	}()
	return <-done
}

// ofApps counts the rows that belong to apps, apart from their names.
const ofApps = `
	SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM visitors), (SELECT count(*) FROM visits), (SELECT count(*) FROM keys),
	(SELECT count(*) FROM days), (SELECT count(*) FROM shares), (SELECT count(*) FROM webhooks), (SELECT count(*) FROM logs),
	(SELECT count(*) FROM log_lines), (SELECT count(*) FROM visit_ids), (SELECT count(*) FROM positions), (SELECT count(*) FROM people),
	(SELECT count(*) FROM inbox), (SELECT count(*) FROM tags), (SELECT count(*) FROM offsets), (SELECT count(*) FROM sketches)`

// A move takes everything along, including the parts that an export for people omits: addresses, keys, links,
// webhooks, ids, positions, logs. Only the app's name stays.
func TestAppMoves(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{app.ByAddress, app.ByID, app.ByDay} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			from, to := lived(t, mode), elsewhere(t, counter.Options{})
			key, err := from.Admin.AddKey(t.Context(), "demo", []app.Scope{app.ScopeCount, app.ScopeAssert})
			require.NoError(t, err)
			from.Exec(t, `INSERT INTO webhooks (app_id, seen, private, salt, uri, url)
				VALUES (1, 0, false, decode(repeat('ab', 16), 'hex'), 'a.example', 'https://hook.example/token')`)
			from.Exec(t, `INSERT INTO logs (app_id, claimed, lines, hash, file, rules, counted)
				VALUES (1, 7, 1, sha256('a'), 'a', '', 7)`)
			from.Exec(t, `INSERT INTO log_lines (app_id, log_id, line, hour, hashes) SELECT 1, id, 0, 1, '\x0011223344556677' FROM logs`)
			from.Exec(t, `SELECT count_lines(1, 'web1', '{7}', '{0}', '{1970-01-01 07:00Z}', ARRAY[int8send(1)])`)
			from.Exec(t, `INSERT INTO read_logs (app_id, options, inode, run) VALUES (1, sha256('a'), '1 2', 'run a')`)
			from.Exec(t, `INSERT INTO positions (app_id, source, part, next) VALUES (1, 'kafka', 'visits 0', 7)`)
			from.Exec(t, `INSERT INTO refused (app_id, source, part, position, reason, beginning)
				VALUES (1, 'kafka', 'visits 0', 3, 'a, "b"', E'\n')`)
			from.Exec(t, `UPDATE apps SET log_key = decode(repeat('ab', 32), 'hex') WHERE visitor = 'address'`)
			call := func(in *instance) *record.Position {
				counting, err := in.AuthorizeCounting(t.Context(), counter.Request{App: "demo", Key: key})
				require.NoError(t, err)
				at, err := counting.OpenCall(t.Context(), "call", sha256.Sum256([]byte("body")), 2)
				require.NoError(t, err)
				return at
			}
			_, err = to.Admin.AddKey(t.Context(), "second", []app.Scope{app.ScopeCount}) // this takes the next id
			require.NoError(t, err)
			require.Zero(t, call(from).Next)
			from.Exec(t, `UPDATE positions SET next = 2, uncounted = B'00' WHERE part = 'call'`)
			once := mover(mode, 1, 1)
			once.ID, once.Key = "once", key
			counted := from.CountAs(t, once)
			to.Clock.Set(from.Clock.Now())
			if mode == app.ByDay {
				to.hadDaily(t)
			}
			private := []string{`SELECT name, hash, scopes FROM keys WHERE app_id = (SELECT id FROM apps WHERE name = 'demo')`,
				`SELECT id, url, salt FROM webhooks`, `SELECT id, day_id FROM visit_ids`,
				`SELECT hash, file, counted, l.line, l.hashes FROM logs JOIN log_lines l ON log_id = logs.id`,
				`SELECT hour, servers, versions, gone, latest FROM log_hours`, `SELECT hour, server, first, hashes FROM counted_lines`,
				`SELECT options, inode, run FROM read_logs`,
				`SELECT source, part, next FROM positions WHERE content IS NULL`, `SELECT reason, beginning FROM refused`,
				`SELECT log_key FROM apps WHERE name = 'demo'`,
				`SELECT today, tags_today FROM page_tallies WHERE app_id = (SELECT id FROM apps WHERE name = 'demo')`}
			want := from.rows(t, "demo")
			for _, sql := range private {
				want = append(want, from.Table(t, sql)...)
			}
			var led atomic.Int64
			require.NoError(t, moves(t.Context(), from, to, "there", "", &led))
			have := to.rows(t, "demo")
			for _, sql := range private {
				have = append(have, to.Table(t, sql)...)
			}
			require.Equal(t, want, have)
			require.EqualValues(t, 1, led.Load())
			to.verified(t)
			from.verified(t)
			assert.Equal(t, []string{strings.TrimSuffix(strings.Repeat("0 ", 16), " ") + "\n"}, from.Table(t, ofApps))
			_, err = from.Visit(t.Context(), mover(mode, 1, 1))
			require.ErrorContains(t, err, "app demo is in the cell there")
			again := mover(mode, 1, 1)
			told, err := to.Counts(t.Context(), again)
			require.NoError(t, err)
			require.Equal(t, row(counted), row(told), "the numbers of a returning visitor")
			counted.Site.Hot++
			counted.Page.Hot++
			require.Equal(t, row(counted), row(to.CountAs(t, again)), "a visitor who has visited before, also on this day")
			before := to.One(t, `SELECT sum(hot) FROM counters`)
			to.CountAs(t, once)
			require.Equal(t, before, to.One(t, `SELECT sum(hot) FROM counters`), "it was counted before, with its id")
			require.EqualValues(t, 2, call(to).Next, "it was counted before, with its key")
			require.NoError(t, moves(t.Context(), from, to, "there", "", &led), "once more")
			if mode != app.ByDay {
				_, err = to.Admin.EraseVisitor(t.Context(), "demo", again.IP+again.Visitor)
				require.NoError(t, err, "it has wholly come")
			}
			to.verified(t)
		})
	}
}

// hadDaily counts a visitor of an app that distinguishes visitors by day, and deletes the app. The instance then has
// day keys that no app needs any more.
func (in *instance) hadDaily(t *testing.T) {
	t.Helper()
	require.NoError(t, in.Admin.AddApp(t.Context(), "daily", app.Settings{Access: ptr("open"), Visitor: ptr(app.ByDay)}))
	in.CountAs(t, counter.Request{App: "daily", IP: "192.0.2.1", URI: "http://a.example/"})
	require.NoError(t, in.Admin.DeleteApp(t.Context(), "daily"))
}

// The command may be killed at each step, and repeated: each accepted visit counts once, in the cell that the app has
// moved to. After an error the app stays where it is.
func TestMovesThatAreKilled(t *testing.T) {
	t.Parallel()
	one := keepsUp(t, desk.Database(t, desk.Options{}), counter.Options{})
	other := keepsUp(t, desk.Database(t, desk.Options{Apps: map[string]app.Settings{"first": {Access: ptr("open")}}}), counter.Options{})
	places, names := []*instance{one, other}, []string{"one", "other"}
	var at, accepted, later atomic.Int64
	var over atomic.Bool
	var clients sync.WaitGroup
	defer clients.Wait()
	defer over.Store(true)
	for client := range 2 {
		clients.Go(func() {
			for n := 0; !over.Load(); n++ {
				r := stranger("192.0.2."+string(rune('0'+n%10)), "/"+string(rune('a'+n%7))+[]string{"later", ""}[client])
				r.App, r.CountLater = "demo", client == 0
				place := int(at.Load())
				if _, err := places[place].Visit(context.Background(), r); err == nil {
					accepted.Add(1)
					if r.CountLater {
						later.Add(1)
					}
				} else if text := err.Error(); strings.Contains(text, "is in the cell") || strings.Contains(text, "there is no app") {
					at.CompareAndSwap(int64(place), int64(1-place))
				} else if !assert.Regexp(t, "is moving to the cell|the app has just been changed; try again", text) {
					return
				}
			}
		})
	}
	grows := func(of *atomic.Int64) {
		was := of.Load()
		require.Eventually(t, func() bool { return of.Load() > was+5 }, dbtest.Patience, dbtest.Tick)
	}
	here := 0
	var led atomic.Int64
	for _, step := range []string{"hold", "copy", "commit", "leave", "lead", "carry", "carried", "clear", "forget", "end", ""} {
		from, to, cell := places[here], places[1-here], names[1-here]
		grows(&accepted)
		if step != "" {
			require.ErrorContains(t, moves(t.Context(), from, to, cell, step, &led), "killed")
			if step == "copy" || step == "commit" || step == "leave" {
				grows(&later) // while the app is in neither place
				require.ErrorContains(t, moves(t.Context(), from, to, "third", "", &led), "is moving to the cell "+cell)
				_, err := from.Admin.AddKey(t.Context(), "demo", []app.Scope{app.ScopeRead})
				require.ErrorContains(t, err, "run `footfall cell move-app demo --to "+cell)
			}
			if slices.Contains([]string{"leave", "lead", "carry", "carried", "clear", "forget"}, step) { // the new place may contain leftovers
				_, err := to.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.1")
				for _, err := range []error{err, to.Admin.DeletePage(t.Context(), "demo", "http://a.example/a"),
					to.Admin.DeleteApp(t.Context(), "demo"), moves(t.Context(), to, from, "third", "", &led)} {
					require.ErrorContains(t, err, "is not completely moved here yet", step)
				}
			}
		}
		require.NoError(t, moves(t.Context(), from, to, cell, "", &led), step)
		here = 1 - here
		grows(&accepted)
		t.Logf("killed at %q: %d visits accepted, %d of these to count later", step, accepted.Load(), later.Load())
	}
	// A failed move is undone.
	from, to := places[here], places[1-here]
	to.Exec(t, `ALTER TABLE visitors ADD CONSTRAINT nobody CHECK (rank < 1) NOT VALID`)
	require.ErrorContains(t, moves(t.Context(), from, to, names[1-here], "", &led), "nobody")
	grows(&accepted)
	over.Store(true)
	clients.Wait()
	from.Drained(t)
	require.Equal(t, later.Load(), from.One(t, `SELECT sum(hot) FROM counters JOIN pages ON id = page_id WHERE uri LIKE '%later'`))
	require.Equal(t, accepted.Load(), from.One(t, `SELECT sum(hot) FROM counters JOIN pages ON id = page_id WHERE site_id IS NULL`))
	require.Zero(t, to.One(t, `SELECT count(*) FROM counters`))
	one.verified(t)
	other.verified(t)
}

// stopsAt starts to move the app, and stops at a step, if the move reaches it, until goOn is called.
func stopsAt(from, to *instance, cell, step string) (goOn func() error) {
	reached, on, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	m := &admin.AppMove{Name: "demo", Cell: cell, From: from.process(), To: to.process(),
		PointName: func(context.Context) error { return nil },
		OnStep: func(at string) {
			if at == step {
				close(reached)
				<-on
			}
		}}
	go func() { done <- m.MoveApp(context.Background()) }()
	select {
	case <-reached:
	case err := <-done: // it ended without that step
		done <- err
	}
	return func() error { close(on); return <-done }
}

// If two commands move the app at the same time, one of them fails at a step that the other one has already done. Waiting
// visits are carried once, and the app stays in the cell that the other command moved it to, even if the targets differ.
func TestMovesAtOnce(t *testing.T) {
	t.Parallel()
	others := desk.Options{Apps: map[string]app.Settings{"first": {Access: ptr("open")}}}
	from, to := plain.newInstance(t, counter.Options{}), plain.startOn(t, desk.Database(t, others), counter.Options{})
	third := plain.startOn(t, desk.Database(t, others), counter.Options{})
	const another, onItsWay = "another command is moving app demo", "app demo is moving to the cell there"
	var visits int64
	for _, c := range []struct {
		third             bool   // the first command moves it there
		first, then, says string // the steps at which the first and second command stop. "": the second one moves the app in the meantime
	}{
		{false, "hold", "", another}, {false, "copy", "", another}, {false, "leave", "", another}, {false, "carry", "carried", another},
		{false, "clear", "", ""}, {true, "hold", "", another}, {true, "hold", "copy", onItsWay},
	} {
		require.NoError(t, from.DB.WaitForInstances(t.Context(), dbtest.Patience))
		for _, later := range []bool{false, true} {
			if later && !c.third { // typed before the visit, so that the visit waits
				from.Exec(t, `UPDATE apps SET moving_to = 'there' WHERE name = 'demo'`)
			}
			_, err := from.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/", CountLater: later})
			require.NoError(t, err)
			visits++
		}
		place, cell := to, "there"
		if c.third {
			place, cell = third, "third"
		}
		first := stopsAt(from, place, cell, c.first)
		then := stopsAt(from, to, "there", cmp.Or(c.then, "hold"))
		if c.then == "" {
			require.NoError(t, then(), c)
		}
		if err := first(); c.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.says, c)
		}
		if c.then != "" {
			require.NoError(t, then(), c)
		}
		require.Zero(t, from.One(t, `SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM pages) + (SELECT count(moving_to) FROM apps)
			+ (SELECT count(*) FROM apps WHERE name = 'demo' AND cell IS NULL)`), c)
		to.Drained(t)
		require.Equal(t, visits, to.One(t, `SELECT hot FROM counters JOIN pages ON id = page_id WHERE site_id IS NULL`), c)
		require.Zero(t, third.One(t, `SELECT count(*) FROM apps WHERE name = 'demo'`))
		from, to = to, from
	}
	from.verified(t)
}

// People are moved too if their link is written as the move starts, or if an erasure has not erased their ids yet:
// the erasure has to be repeated.
func TestPeopleMove(t *testing.T) {
	t.Parallel()
	from, _ := plain.newPeople(t, counter.Options{})
	to := plain.startOn(t, desk.Database(t, desk.Options{Apps: map[string]app.Settings{"first": {Access: ptr("open")}}}), counter.Options{})
	from.link(t, "cookie:1", "user:1")
	from.link(t, "cookie:2", "user:2")
	writing, err := from.Tables().Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = writing.Rollback(context.Background()) })
	_, err = writing.Exec(t.Context(), `WITH locked AS MATERIALIZED (SELECT lock_people(id) FROM apps)
		INSERT INTO people (app_id, period, height, id, person)
		SELECT app_id, period, height, 'fd00::77', person FROM people, locked WHERE id = $1`,
		from.stored(t, "cookie:2"))
	require.NoError(t, err)
	erased := from.erases("user:1")
	from.waiters(t, 1)
	moved := begin(func() error { return moves(context.Background(), from, to, "there", "", new(atomic.Int64)) })
	from.waiters(t, 2)
	require.NoError(t, writing.Commit(t.Context()))
	require.ErrorContains(t, <-erased, "app demo is moving to the cell there")
	require.NoError(t, <-moved)
	require.EqualValues(t, 5, to.One(t, `SELECT count(*) FROM people`))
	require.NoError(t, <-to.erases("user:1"))
	require.EqualValues(t, 3, to.One(t, `SELECT count(*) FROM people`))
}

// A move of an app that cannot be moved completely is refused at the start.
func TestMovesThatAreRefused(t *testing.T) {
	t.Parallel()
	from, to := lived(t, app.ByDay), elsewhere(t, counter.Options{})
	var led atomic.Int64
	refused := func(says string) {
		t.Helper()
		require.ErrorContains(t, moves(t.Context(), from, to, "there", "", &led), says)
		require.Zero(t, from.One(t, `SELECT count(moving_to) FROM apps`))
		from.CountAs(t, mover(app.ByDay, 1, 1))
	}
	to.Exec(t, `UPDATE apps SET name = 'demo' WHERE name = 'first'`)
	refused("the cell there cannot take app demo: the cell already has an app with this name")
	to.Exec(t, `UPDATE apps SET name = 'first', visitor = 'daily', secret_id = $1 WHERE name = 'demo'`, desk.Secret.ID())
	refused("it has apps with --visitor daily")
	to.Exec(t, `UPDATE apps SET secret_id = '\x0011223344556677' WHERE name = 'first'`)
	refused("its apps hash visitors with another secret")
	to.Exec(t, `DELETE FROM apps WHERE name = 'first'`)
	for _, in := range []*instance{from, to} {
		in.Exec(t, `INSERT INTO webhooks (app_id, seen, private, uri, url)
			SELECT id, 0, false, 'a.example', 'https://hook.example' FROM apps LIMIT 1`)
	}
	refused("it has webhooks with the same numbers")
	to.Exec(t, `DELETE FROM webhooks`)
	from.Exec(t, `INSERT INTO retention_pauses (app_id, run, until, from_day) VALUES (1, 1, now() + interval '1 hour', 0)`)
	refused("an import of logs is running for app demo")
	from.Exec(t, `DELETE FROM retention_pauses`)
	goOn := stopsAt(from, to, "there", "copy") // after the check
	require.NoError(t, to.Admin.AddApp(t.Context(), "daily", app.Settings{Access: ptr("open"), Visitor: ptr(app.ByDay)}))
	require.ErrorContains(t, goOn(), "an app with --visitor daily has just been added there")
	require.Zero(t, from.One(t, `SELECT count(moving_to) FROM apps`))
	to.Exec(t, `DELETE FROM apps WHERE name = 'daily'`)
	goOn = stopsAt(from, to, "there", "hold")
	from.Exec(t, `UPDATE apps SET deleted_at = now() WHERE name = 'demo'`)
	require.ErrorContains(t, goOn(), "this app is being deleted")
	require.Zero(t, from.One(t, `SELECT count(moving_to) FROM apps`))
	require.ErrorContains(t, func() error {
		m := &admin.AppMove{Name: "none", Cell: "there", From: from.Admin, To: to.Admin}
		return m.MoveApp(t.Context())
	}(), "there is no app \"none\"")
	require.Zero(t, led.Load())
}

// If the connection is lost during the copy, the error does not blame the files that were not sent.
func TestMoveIsCutOff(t *testing.T) {
	t.Parallel()
	others := desk.Options{Apps: map[string]app.Settings{"first": {Access: ptr("open")}}}
	from, to := plain.newInstance(t, counter.Options{}), plain.startOn(t, desk.Database(t, others), counter.Options{})
	from.Count(t, "192.0.2.1", "http://a.example/")
	holds, err := from.Tables().Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = holds.Rollback(context.Background()) })
	_, err = holds.Exec(t.Context(), `LOCK TABLE titles`)
	require.NoError(t, err)
	var led atomic.Int64
	done := make(chan error, 1)
	go func() { done <- moves(context.Background(), from, to, "there", "", &led) }()
	require.Eventually(t, func() bool {
		return len(done) > 0 || from.One(t, `SELECT count(pg_terminate_backend(a.pid)) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
			WHERE l.relation = 'titles'::regclass AND NOT l.granted AND a.query LIKE 'COPY%'`) > 0
	}, dbtest.Patience, dbtest.Tick)
	err = <-done
	require.ErrorContains(t, err, "targets could not be read completely")
	var refused *visit.Error
	assert.NotErrorAs(t, err, &refused, "nothing that was typed is wrong")
	require.NoError(t, holds.Rollback(t.Context()))
	require.NoError(t, moves(t.Context(), from, to, "there", "", &led))
}

// If an app leaves while a setting drops rows, only the rows here are dropped: the setting has to be repeated in the
// new cell.
func TestSettingsAsAnAppLeaves(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.1", "http://a.example/")
	in.Exec(t, `INSERT INTO titles (page_id, title, told_at) SELECT id, 'A', now() FROM pages WHERE uri = 'a.example/'`)
	behind, err := in.Tables().Begin(t.Context()) // an instance that has not read the apps again
	require.NoError(t, err)
	t.Cleanup(func() { _ = behind.Rollback(context.Background()) })
	_, err = behind.Exec(t.Context(), `
		SELECT pg_advisory_xact_lock_shared(hashtext('footfall.apps'), value::integer) FROM epochs WHERE name = 'apps'`)
	require.NoError(t, err)
	off, done := app.Settings{Filters: ptr("off"), Titles: ptr("off")}, make(chan error, 1)
	go func() { done <- in.Admin.SetApp(context.Background(), "demo", off) }()
	require.Eventually(t, func() bool { return in.One(t, `SELECT count(*) FROM apps WHERE NOT filters`) == 1 }, dbtest.Patience, dbtest.Tick)
	in.Exec(t, `UPDATE apps SET moving_to = 'there'`)
	require.NoError(t, behind.Rollback(t.Context()))
	require.ErrorContains(t, <-done, "app demo is moving to the cell there")
	const left = `SELECT (SELECT count(*) FROM visits WHERE tags IS NOT NULL) + (SELECT count(*) FROM titles)`
	require.EqualValues(t, 2, in.One(t, left), "which may be copied just now")
	in.Exec(t, `UPDATE apps SET moving_to = NULL`)
	require.NoError(t, in.Admin.SetApp(t.Context(), "demo", off))
	require.Zero(t, in.One(t, left))
}
