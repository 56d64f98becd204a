package counter_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/record"
	"footfall/retention"
	"footfall/verify"
	"footfall/visit"
)

// TestStorm lets all that may happen to a database happen at once: instances whose clocks differ,
// days that pass in a moment, visits, some of which go through the inbox, commands, retention,
// connections that are cut, instances that are killed. Whatever the order, no promise is broken at
// any moment, each visit that was answered has a number of its own, each that was accepted is
// counted once, and there is no deadlock. STORM_SECONDS makes it longer, STORM_SEED repeats what is
// done, though not the order in which it meets.
func TestStorm(t *testing.T) {
	t.Parallel()
	s := newStorm(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var all sync.WaitGroup
	again := func(pause time.Duration, do func(r *rand.Rand)) {
		r := rand.New(rand.NewPCG(s.seed, uint64(s.parts)))
		s.parts++
		all.Go(func() {
			for wait(ctx, pause/2+time.Duration(r.Int64N(int64(pause)))) && !t.Failed() {
				do(r)
			}
		})
	}
	for client := range s.underWay {
		if client < stormErasers {
			again(20*time.Millisecond, func(r *rand.Rand) { s.eraseMyself(client, r) })
		} else {
			again(time.Millisecond, func(r *rand.Rand) { _, _ = s.visit(client, maybeOtherwise(anyRequest(r), r), r) })
		}
	}
	again(80*time.Millisecond, s.eraseSomebody)
	again(40*time.Millisecond, s.deletePage)
	again(100*time.Millisecond, s.moveIn)
	again(700*time.Millisecond, s.replaceBrief)
	again(s.day/2, s.retain)
	again(300*time.Millisecond, s.kill)
	for time.Since(s.began) < s.lasts && !t.Failed() {
		wait(ctx, min(2*time.Second, s.lasts/2))
		s.verify()
	}
	assert.Eventually(t, func() bool { return s.closed.Load() > 0 || t.Failed() }, time.Minute, time.Millisecond, "no day was closed")
	end()
	all.Wait()
	s.drained()
	s.verify()
	s.checkHot()
	assert.NotEmpty(t, s.accepted)
	if s.answered+s.refused > 1000 { // fewer, on a machine that is busy or in little time, tell neither
		assert.Positive(t, s.repeated)
		assert.Greater(t, s.answered, s.refused, "more visits were refused than killed instances are a reason for")
	}
	var deadlocks int
	require.NoError(t, s.conn.QueryRow(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks))
	assert.Zero(t, deadlocks)
	t.Logf("%d visits answered, %d accepted, %d repeated, %d refused, %d commands, %d days closed, %d dropped, %d proofs", s.answered, sum(s.accepted), s.repeated, s.refused, s.commands.Load(), s.closed.Load(), s.dropped.Load(), s.verified.Load())
}

const (
	stormClients = 10
	stormErasers = 2                      // those of the clients who erase what is stored of themselves
	stormDay     = 400 * time.Millisecond // how long a day lasts; longer where there would be too many
	stormDays    = 100
	briefApp     = "brief" // the app that is deleted, and made again

	cutOff, dayInUse = "57P01", "55P03" // as PostgreSQL tells them
)

// stormApps are the apps, and for how many days they keep visits and visitors.
var stormApps = []struct {
	name             string
	visits, visitors int
	visitor          string
}{
	{"long", 3, 0, "address"}, {"short", 1, 0, "address"}, {"forgets", 2, 4, "address"}, {"daily", 1, 1, "daily"},
	{briefApp, 0, 0, "address"},
}

// stormClocks say how far clocks of instances may be ahead of the slowest one. A second is some
// days.
var stormClocks = []time.Duration{0, time.Second, 50 * time.Millisecond, 300 * time.Millisecond}

// stormWays are the instances that run side by side.
var stormWays = []way{{name: "plain"}, {name: "both", filter: true, memory: 8 << 20}, {name: "full filter", filter: true, filterMemory: 8, memory: 1 << 20}}

type storm struct {
	*testing.T
	url        string
	instances  []stormInstance
	admin      *counter.Admin
	retains    *db.DB
	proofs     *db.DB    // kill cuts none of its connections
	conn       *pgx.Conn // nor this one, for questions of the test's own
	killer     *pgx.Conn // nor that of kill
	seed       uint64    // of the choices of all parts
	parts      int       // how many there are
	began      time.Time
	lasts, day time.Duration
	underWay   []atomic.Int64 // when the latest visit of each client began, by the slowest clock

	commands, closed, dropped, verified atomic.Int64

	mu       sync.Mutex // guards what follows
	answered int64
	repeated int64
	refused  int64
	ids      map[string]bool           // with which visits were counted, behind the app
	hots     map[string]map[int64]bool // the numbers that were answered, by app and site
	accepted map[string]int64          // visits that are counted later, likewise
	lost     map[string]int64          // visits that may have been counted, likewise
}

type stormInstance struct {
	way
	db     *db.DB
	now    atomic.Pointer[counter.Counter]
	isDown atomic.Bool // it is being replaced
}

func newStorm(t *testing.T) *storm {
	s := &storm{
		T: t, url: dbtest.New(t), instances: make([]stormInstance, len(stormWays)), underWay: make([]atomic.Int64, stormClients),
		ids: map[string]bool{}, hots: map[string]map[int64]bool{}, accepted: map[string]int64{}, lost: map[string]int64{}, seed: rand.Uint64(),
		lasts: time.Duration(dbtest.LongOrShort(10, 2)) * time.Second,
	}
	if text := os.Getenv("STORM_SEED"); text != "" {
		var err error
		s.seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "STORM_SEED")
	}
	if text := os.Getenv("STORM_SECONDS"); text != "" {
		seconds, err := strconv.Atoi(text)
		require.NoError(t, err, "STORM_SECONDS")
		s.lasts = time.Duration(seconds) * time.Second
	}
	s.day = max(stormDay, s.lasts/stormDays)
	t.Logf("STORM_SEED=%d STORM_SECONDS=%d", s.seed, int(s.lasts.Seconds()))
	s.conn, s.killer = (&instance{url: s.url}).conn(t), (&instance{url: s.url}).conn(t)
	s.retains, s.proofs = s.open("retention"), dbtest.Open(t, s.url, db.Options{})
	s.admin = counter.NewAdmin(s.open("command"), secret)
	for _, app := range stormApps {
		require.NoError(t, s.addApp(app.name))
	}
	s.began = time.Now()
	for i := range s.instances {
		in := &s.instances[i]
		in.way, in.db = stormWays[i], s.open(stormWays[i].name)
		s.start(in, stormClocks[i])
		require.False(t, t.Failed())
		t.Cleanup(func() { in.now.Load().Close() })
	}
	return s
}

// open opens the database under a name by which its connections are known.
func (s *storm) open(name string) *db.DB {
	return dbtest.Open(s.T, dbtest.With(s.T, s.url, "application_name", "storm "+name), db.Options{})
}

// start starts an instance whose clock is ahead of the slowest one. One of them has its visits go
// to the inbox rather than wait.
func (s *storm) start(in *stormInstance, ahead time.Duration) {
	o := counter.Options{Secret: secret, Options: record.Options{
		Clock:   func() time.Time { return s.now(ahead) },
		MaxWait: time.Minute, // a slow machine refuses nobody
		Filter:  in.filter, FilterMemory: in.filterMemory, Memory: in.memory,
	}}
	if in == &s.instances[0] {
		o.Overflow, o.MaxWait = true, 10*time.Millisecond
	}
	c, err := counter.Open(context.Background(), in.db, o)
	if assert.NoError(s, err) {
		in.now.Store(c)
	}
}

// now is the time by a clock that is ahead of the slowest one.
func (s *storm) now(ahead time.Duration) time.Time {
	days := float64(time.Since(s.began)+ahead) / float64(s.day)
	return firstDay.Add(time.Duration(days * float64(24*time.Hour)))
}

func (s *storm) addApp(name string) error {
	open := "open"
	for _, app := range stormApps {
		if app.name == name {
			return s.admin.AddApp(context.Background(), name, counter.Settings{Access: &open, RetainDays: &app.visits, ForgetDays: &app.visitors, Visitor: &app.visitor})
		}
	}
	panic("no app " + name)
}

func anyURI(r *rand.Rand) string { return fmt.Sprintf("http://s%d.example/%d", r.IntN(2), r.IntN(4)) }

func anyRequest(r *rand.Rand) counter.Request {
	return counter.Request{App: stormApps[r.IntN(len(stormApps))].name, IP: fmt.Sprintf("192.0.2.%d", r.IntN(12)), URI: anyURI(r)}
}

// maybeOtherwise gives some visits ids, of which some come again, and has some counted later.
func maybeOtherwise(q counter.Request, r *rand.Rand) counter.Request {
	if r.IntN(3) == 0 {
		q.ID = fmt.Sprint(r.IntN(1000))
	}
	q.Later = r.IntN(4) == 0
	return q
}

// visit sends a visit to any of the instances, and holds its answer against the others.
func (s *storm) visit(client int, q counter.Request, r *rand.Rand) (visit.Answer, error) {
	s.underWay[client].Store(s.now(0).UnixNano())
	in := &s.instances[r.IntN(len(s.instances))]
	isDown := in.isDown.Load()
	a, err := in.now.Load().Visit(context.Background(), q)
	isDown = isDown || in.isDown.Load()
	site := q.App + " " + strings.Split(q.URI, "/")[2]
	s.mu.Lock()
	defer s.mu.Unlock()
	var told *visit.Error
	switch {
	case err == nil && a.Repeated:
		s.repeated++
		assert.NotEmpty(s, q.ID)
	case err == nil && a.NoNumbers: // it is counted, and nothing more is known of it
		s.lost[site]++
	case err == nil && a.Later && q.ID != "": // it is not counted if another with the id is
		s.lost[site]++
	case err == nil && a.Later:
		s.accepted[site]++
	case err == nil:
		s.answered++
		assert.False(s, q.ID != "" && s.ids[q.App+" "+q.ID] && q.App != briefApp, "%s counted twice", q.ID)
		s.ids[q.App+" "+q.ID] = true
		if s.hots[site] == nil {
			s.hots[site] = map[int64]bool{}
		}
		assert.False(s, s.hots[site][a.Site.Hot] && q.App != briefApp, "two visits to %s got hot %d", site, a.Site.Hot)
		s.hots[site][a.Site.Hot] = true
	case !assert.ErrorAs(s, err, &told, "%+v", q):
	case told.Kind == visit.Lost:
		s.lost[site]++
	default:
		assert.True(s, told.Kind == visit.Unavailable || told.Kind == visit.NotFound && q.App == briefApp, "%+v: %v", q, err)
		if !isDown { // an instance that is closed refuses at once, and so as many as there is time for
			s.refused++
		}
	}
	return a, err
}

// eraseMyself erases a visitor whom no other client sends: when they come again they are new.
func (s *storm) eraseMyself(client int, r *rand.Rand) {
	q := counter.Request{App: stormApps[r.IntN(3)].name, IP: fmt.Sprintf("198.51.100.%d", client), URI: anyURI(r)}
	if _, err := s.visit(client, q, r); err != nil {
		return
	}
	erased, err := s.admin.EraseVisitor(context.Background(), q.App, q.IP)
	if s.command("erase a visitor", err); err != nil {
		return
	}
	assert.Positive(s, erased, "%+v", q)
	if a, err := s.visit(client, q, r); err == nil && !a.Later {
		assert.Equal(s, a.Site.UV, a.Site.Rank, "erased, and not new at the site: %+v, %+v", q, a)
		assert.Equal(s, a.Page.UV, a.Page.Rank, "erased, and not new at the page: %+v, %+v", q, a)
	}
}

func (s *storm) eraseSomebody(r *rand.Rand) {
	q := anyRequest(r)
	_, err := s.admin.EraseVisitor(context.Background(), q.App, q.IP)
	s.command("erase a visitor", err)
}

func (s *storm) deletePage(r *rand.Rand) {
	q := anyRequest(r)
	s.command("delete a page", s.admin.DeletePage(context.Background(), q.App, q.URI))
}

// moveIn sets an offset of a page, or removes it. Those of sites would take part in the numbers by
// which the answers are told apart.
func (s *storm) moveIn(r *rand.Rand) {
	q, n := anyRequest(r), r.Int64N(1000)
	if n%4 == 0 {
		_, err := s.admin.RemoveOffset(context.Background(), q.App, q.URI)
		s.command("remove an offset", err)
		return
	}
	_, err := s.admin.SetOffsets(context.Background(), q.App, []counter.Offset{{URI: q.URI, Hot: n + 2, PV: n + 1, UV: n}}, n%4 == 1)
	s.command("set an offset", err)
}

func (s *storm) replaceBrief(*rand.Rand) {
	s.command("delete an app", s.admin.DeleteApp(context.Background(), briefApp))
	s.command("add an app", s.addApp(briefApp))
}

// retain runs retention by a clock that is behind every visit under way: however slow the machine
// is, no day is closed before its last visit has been counted.
func (s *storm) retain(*rand.Rand) {
	behind := func() time.Time {
		at := s.now(0).UnixNano()
		for i := range s.underWay {
			at = min(at, s.underWay[i].Load())
		}
		return time.Unix(0, max(at, firstDay.UnixNano()))
	}
	soon := func(ctx context.Context, d time.Duration) error { wait(ctx, d/20); return ctx.Err() }
	done, err := retention.New(s.retains, retention.Options{Clock: behind, Pause: soon}).Run(context.Background())
	s.command("retention", err)
	s.closed.Add(int64(len(done.Closed)))
	s.dropped.Add(int64(len(done.Dropped)))
}

// command fails the test unless a command did what it says, found nothing to do it to, had its
// connection cut, or met a day in use. A deadlock is none of these.
func (s *storm) command(what string, err error) {
	s.commands.Add(1)
	var told *visit.Error
	var refused *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, db.ErrInstancesBehind):
	case errors.As(err, &told):
		assert.True(s, told.Kind == visit.NotFound || strings.Contains(told.Message, "there is an app"), "%s: %v", what, err)
	case errors.As(err, &refused):
		assert.Contains(s, []string{cutOff, dayInUse}, refused.Code, "%s: %v", what, err)
	default:
		assert.Equal(s, db.FaultUnknown, db.FaultOf(err), "%s: %v", what, err)
	}
}

// kill cuts some connections, or kills an instance: all of its connections are cut, and another
// instance takes its place, which remembers nothing and has another clock.
func (s *storm) kill(r *rand.Rand) {
	const cut = `SELECT count(pg_terminate_backend(pid)) FROM (
		SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE $1 ORDER BY random() LIMIT $2) AS them`
	killed, most := "storm %", 2
	in := &s.instances[r.IntN(len(s.instances))]
	dies := r.IntN(4) == 0
	if dies {
		killed, most = "storm "+in.name, 1000
	}
	_, err := s.killer.Exec(context.Background(), cut, killed, most)
	assert.NoError(s, err)
	if dies {
		in.isDown.Store(true)
		in.now.Load().Close()
		s.start(in, stormClocks[r.IntN(len(stormClocks))])
		in.isDown.Store(false)
	}
}

// verify proves all promises, in many snapshots; and that each visitor of a page was
// counted at its site on the same day, which sums alone need not show.
func (s *storm) verify() {
	proof, err := verify.Run(context.Background(), s.proofs, verify.Options{Limit: 3, Jobs: 2, Within: 20 * time.Millisecond})
	if !assert.NoError(s, err) {
		return
	}
	s.verified.Add(1)
	for _, p := range proof.Promises {
		assert.Zero(s, p.Violations, "%s: %+v", p.Name, p.Offenders)
	}
	rows, err := s.conn.Query(context.Background(), `
		SELECT format('%s %s on day %s', a.name, p.uri, v.day_id)
		FROM visits v JOIN pages p ON p.id = v.page_id JOIN apps a ON a.id = p.app_id AND a.deleted_at IS NULL
		LEFT JOIN visits_kept k ON k.app_id = a.id LEFT JOIN visits s ON s.page_id = p.site_id AND s.day_id = v.day_id AND s.ip = v.ip
		WHERE p.site_id IS NOT NULL AND v.day_id >= coalesce(k.from_day, 0) AND s.ip IS NULL LIMIT 3`)
	require.NoError(s, err)
	alone, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s, err)
	assert.Empty(s, alone, "pages with a visitor whom their site does not have on that day")
}

// drained waits until all that was accepted is counted.
func (s *storm) drained() {
	require.Eventually(s, func() bool {
		var waiting int64
		err := s.conn.QueryRow(context.Background(), `SELECT sum(inbox_behind(id)) FROM apps`).Scan(&waiting)
		return assert.NoError(s, err) && waiting == 0
	}, time.Minute, 10*time.Millisecond)
}

func sum(of map[string]int64) (n int64) {
	for _, one := range of {
		n += one
	}
	return n
}

// checkHot holds hot of each site against the answers: all visits that were answered, or accepted,
// are counted, and none but those and the ones of which the service said that it does not know.
func (s *storm) checkHot() {
	rows, err := s.conn.Query(context.Background(), `
		SELECT a.name || ' ' || p.uri, c.hot
		FROM counters c JOIN pages p ON p.id = c.page_id AND p.site_id IS NULL JOIN apps a ON a.id = p.app_id
		WHERE a.name <> $1`, briefApp)
	require.NoError(s, err)
	var site string
	var hot int64
	_, err = pgx.ForEachRow(rows, []any{&site, &hot}, func() error {
		counted := int64(len(s.hots[site])) + s.accepted[site]
		assert.GreaterOrEqual(s, hot, counted, "%s: visits were lost that had been answered", site)
		assert.LessOrEqual(s, hot, counted+s.lost[site], "%s: visits were counted twice, or though they were refused", site)
		return nil
	})
	require.NoError(s, err)
}

// wait waits, and returns false if ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
