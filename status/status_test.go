package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/record"
	"footfall/retention"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func read(t *testing.T, d *db.DB) *Status {
	t.Helper()
	s, err := Read(t.Context(), d, "")
	require.NoError(t, err)
	return s
}

// assertWarns checks that there is one warning with each of these words, and no other one.
func assertWarns(t *testing.T, s *Status, words ...string) {
	t.Helper()
	if assert.Len(t, s.Warnings, len(words), s.Warnings) {
		for i, word := range words {
			assert.Contains(t, s.Warnings[i], word)
		}
	}
}

const (
	nobodyRuns = "no instance of the service runs"
	notClosed  = " in all, the first is 20260102): the daily task has not run since then"
)

// The status lists what is counted and kept, and warns about problems.
func TestRead(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	d := dbtest.Open(t, address, db.Options{})
	assertWarns(t, read(t, d), nobodyRuns)

	open := "open"
	for _, name := range []string{"blog", "shop"} {
		require.NoError(t, admin.NewAdmin(d, nil).AddApp(t.Context(), name, app.Settings{Access: &open}))
	}
	now := d.Now()
	counting, err := counter.Open(t.Context(), d,
		counter.Options{Options: record.Options{Clock: func() time.Time { return now }, MaxWait: time.Minute, Calm: true}})
	require.NoError(t, err)
	for _, uri := range []string{"http://a.example/", "http://a.example/x", "http://b.example/"} {
		_, err = counting.Visit(t.Context(), counter.Request{App: "blog", IP: "192.0.2.1", URI: uri})
		require.NoError(t, err)
	}
	importing, err := counting.AuthorizeOperator(t.Context(), "blog")
	require.NoError(t, err)
	require.NoError(t, importing.PauseRetention(t.Context(), counter.NewPause()))
	today := visit.DayOf(now, time.UTC)
	s := read(t, d)
	assertWarns(t, s)
	if assert.Len(t, s.Instances, 1) {
		assert.Equal(t, "footfall", s.Instances[0].Name)
		assert.WithinDuration(t, now, *s.Instances[0].Since, time.Hour)
	}
	assert.Equal(t, []App{{"blog", 3, today, 3, 35, 0, true}, {"shop", 0, 0, 0, 35, 0, false}}, s.Apps)
	assert.Equal(t, Visits{2, visit.LastDays(2, today).From, today}, s.Visits)
	assert.Positive(t, s.Server.Bytes)
	assert.Contains(t, []string{"on", "off", "unknown"}, s.Server.HugePages)
	assert.True(t, slices.ContainsFunc(s.Tables, func(of Table) bool { return of.Name == "visits" && of.Bytes > 0 }), s.Tables)
	assert.Equal(t, Daily{}, s.Daily)

	_, err = dbtest.Connect(t, address).Exec(t.Context(), fmt.Sprintf("ALTER TABLE visits DETACH PARTITION visits_%d; DROP TABLE visits_%[1]d",
		today))
	require.NoError(t, err)
	assertWarns(t, read(t, d), "the table visits has no partition for [")
	counting.Close()
	require.Eventually(t, func() bool { return len(read(t, d).Instances) == 0 }, dbtest.Patience, dbtest.Tick, "the server has noticed")
	assertWarns(t, read(t, d), nobodyRuns)
}

// The service's own rights are sufficient.
func TestReadAsFootfallApp(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	conn := dbtest.Connect(t, address)
	dbtest.NeedSuperuser(t, conn)
	assertWarns(t, read(t, dbtest.Open(t, dbtest.WithParameter(t, address, "role", "footfall_app"), db.Options{})), nobodyRuns)
}

func TestReadWebhooksThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	conn := dbtest.Connect(t, address)
	_, err := conn.Exec(t.Context(), `INSERT INTO apps (name) VALUES ('blog'); INSERT INTO webhooks (app_id, uri, url, private, seen, waiting,
		since)
		SELECT 1, 'a.example', 'https://hook.example/secret', false, 0, waiting, since
		FROM (VALUES ('{a,b}'::text[], now() - interval '2 hours'), ('{}', now() - interval '2 hours'), ('{a}', now())) AS v (waiting, since)`)
	require.NoError(t, err)
	s := read(t, dbtest.Open(t, address, db.Options{}))
	assertWarns(t, s, nobodyRuns, "webhook 1 of app blog has a call that has been waiting since ")
	assert.Contains(t, s.Warnings[1], "(2 in all)")
	assert.NotContains(t, s.Warnings[1], "hook.example")
}

// Apps that list the same site are named. The sentence also names the app that counts pages without
// an app.
func TestReadSitesThatSeveralAppsList(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	_, err := dbtest.Connect(t, address).Exec(t.Context(), `INSERT INTO apps (name, sites) VALUES ('z', '{a.example,x.wild.example}'),
		('m', '{b.example,a.example}'), ('n', '{*.wild.example,*.other.example}'), ('o', '{c.example,*.x.other.example}'), ('p', '{d.example}')`)
	require.NoError(t, err)
	s := read(t, dbtest.Open(t, address, db.Options{}))
	const which = ": pages that do not specify an app, such as pages made for busuanzi, count for %s, unless `serve --busuanzi` specifies %s"
	assert.Equal(t, []string{"the apps z and m both list a.example" + fmt.Sprintf(which, "z", "m"),
		"the apps z and n both list *.wild.example" + fmt.Sprintf(which, "z", "n"),
		"the apps n and o both list *.x.other.example" + fmt.Sprintf(which, "n", "o")}, s.Shared)
	assertWarns(t, s, nobodyRuns) // this may be intended
}

func TestReadDaysThatTheDailyTaskLeft(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	d := dbtest.Open(t, address, db.Options{})
	for _, day := range []int32{20260102, 20260103} {
		_, err := d.MakeDays(t.Context(), day)
		require.NoError(t, err)
	}
	assertWarns(t, read(t, d), nobodyRuns, "past days are not closed (2"+notClosed)
	conn := dbtest.Connect(t, address)
	_, err := conn.Exec(t.Context(), `INSERT INTO closed_days (day_id) VALUES (20260103)`)
	require.NoError(t, err)
	assertWarns(t, read(t, d), nobodyRuns, "past days are not closed (1"+notClosed)
	_, err = conn.Exec(t.Context(), `INSERT INTO closed_days (day_id) VALUES (20260102); UPDATE epochs SET value = 20260103
		WHERE name = 'retention'`)
	require.NoError(t, err)
	assertWarns(t, read(t, d), nobodyRuns, "not completed since 20260103")

	daily := retention.NewRetainer(d, retention.Options{})
	require.NoError(t, daily.RunLocked(t.Context(), func() error {
		assert.True(t, read(t, d).Daily.Running)
		return nil
	}))
	_, err = daily.Run(t.Context())
	require.NoError(t, err)
	s := read(t, d)
	assertWarns(t, s, nobodyRuns)
	assert.False(t, s.Daily.Running)
	assert.Equal(t, int32(20260103), s.Daily.ClosedDay)
	assert.WithinDuration(t, d.Now(), *s.Daily.ClosedAt, time.Hour)
	assert.Greater(t, s.Daily.DoneOn, int32(20260103))

	_, err = d.MakeDays(t.Context(), 20260101)
	require.NoError(t, err)
	assertWarns(t, read(t, d), nobodyRuns) // late visits of an earlier day wait for the next daily task
}

// If the daily task skipped a step, the status reports this on the same day, regardless of the
// existing partitions.
func TestReadWhatTheDailyTaskLeftOut(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	d := dbtest.Open(t, address, db.Options{})
	before := visit.DayOf(d.Now().AddDate(0, 0, -2), time.UTC)
	_, err := dbtest.Connect(t, address).Exec(t.Context(), `UPDATE epochs SET value = $1 WHERE name = 'retention'`, before)
	require.NoError(t, err)
	assertWarns(t, read(t, d), nobodyRuns, fmt.Sprint("not completed since ", before))
	daily := retention.NewRetainer(d, retention.Options{})
	require.NoError(t, daily.RunLocked(t.Context(), func() error {
		assertWarns(t, read(t, d), nobodyRuns)
		return nil
	}))
	_, err = daily.Run(t.Context())
	require.NoError(t, err)
	assertWarns(t, read(t, d), nobodyRuns)
}

func TestReadClockThatIsWrong(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	for where, by := range map[string]time.Duration{" ahead of the database's": time.Hour, " behind the database's": -time.Hour} {
		d := dbtest.Open(t, address, db.Options{LocalClock: func() time.Time { return time.Now().Add(by) }})
		assertWarns(t, read(t, d), nobodyRuns, where)
	}
}

func TestReadWithoutTables(t *testing.T) {
	t.Parallel()
	s := read(t, dbtest.Open(t, dbtest.Empty(t), db.Options{}))
	assertWarns(t, s, "does not contain Footfall's schema", nobodyRuns)
	assert.NotEmpty(t, s.Server.Version)
	assert.Empty(t, s.Tables)
}

func TestReadSnapshotThatIsHeld(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	tx, err := dbtest.Connect(t, address).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT 1")
	require.NoError(t, err)
	var f facts
	require.NoError(t, dbtest.Open(t, address, db.Options{}).Read(t.Context(), func(q *db.Queries) (err error) {
		f.snapshots, err = q.SnapshotHolders(t.Context())
		return err
	}))
	pid := tx.Conn().PgConn().PID()
	assert.Contains(t, fmt.Sprint(f.warnings()), fmt.Sprintf("process %d has held a snapshot of the database since ", pid))
	assert.NotContains(t, fmt.Sprint(read(t, dbtest.Open(t, address, db.Options{})).Warnings), "has held a snapshot",
		"it is not five minutes old")
}

// Nothing is counted while the server waits for a standby that is missing, does not respond, or has another name.
// The same applies while the server does not wait for a standby, although one is required. A demoted server does
// not wait for a standby.
func TestWarningOfTheStandby(t *testing.T) {
	t.Parallel()
	p := dbtest.NewPair(t, true)
	d := dbtest.Open(t, p.URL(), db.Options{RequireStandby: true})
	warns := func(of string) func() bool {
		return func() bool {
			var f facts
			err := d.Read(t.Context(), func(q *db.Queries) error { return f.readServer(t.Context(), q) })
			if err == nil {
				f.standby, err = d.Standby(t.Context())
			}
			return err == nil && strings.Contains(fmt.Sprint(f.warnings()), of)
		}
	}
	const inVain, waitsForNone = "but none follows it or responds", "a synchronous standby is required, but the server does not wait for one"
	well := func() bool { return warns("no instance of the service runs")() && !warns("standby")() }
	require.Eventually(t, well, dbtest.Patience, dbtest.Tick)
	p.WaitFor("another")
	require.Eventually(t, warns(inVain), dbtest.Patience, dbtest.Tick)
	p.WaitFor("")
	require.Eventually(t, warns(waitsForNone), dbtest.Patience, dbtest.Tick)
	p.WaitFor("*")
	p.AwaitStandby()
	require.Eventually(t, well, dbtest.Patience, dbtest.Tick)

	waiting := dbtest.Connect(t, p.URL())
	p.FreezeWalSender()
	go func() { _, _ = waiting.Exec(t.Context(), "SELECT pg_logical_emit_message(true, '', '')") }()
	require.Eventually(t, warns(inVain), dbtest.Patience, dbtest.Tick)
	p.Kill()
	p.Promote()
	p.Rejoin()
	require.Eventually(t, well, dbtest.Patience, dbtest.Tick)
	p.KillStandby()
	require.Eventually(t, warns(inVain), dbtest.Patience, dbtest.Tick)
}

// If the tables cannot be read, status does not warn that visits can be counted for only 0 more days.
func TestNoWarningOfUnreadDays(t *testing.T) {
	t.Parallel()
	f := facts{instances: []db.StatusInstancesRow{{}}}
	assert.Contains(t, fmt.Sprint(f.warnings()), "only 0 more days")
	f.unreadable = errors.New("the schema is newer")
	assert.NotContains(t, fmt.Sprint(f.warnings()), "more days")
}

func TestWarningOfTheDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		disk Disk
		warn bool
	}{
		{Disk{1 << 40, 60 << 30}, false},
		{Disk{1 << 40, 40 << 30}, true},
		{Disk{10 << 30, 2 << 30}, false},
		{Disk{10 << 30, 1<<30 - 1}, true},
	} {
		warned := fmt.Sprint((&facts{disk: &c.disk}).warnings())
		assert.Equal(t, c.warn, strings.Contains(warned, "the disk of the data has "), "%v: %s", c.disk, warned)
	}
	disk, err := DiskOf(t.TempDir())
	require.NoError(t, err)
	assert.Positive(t, disk.Free)
	assert.GreaterOrEqual(t, disk.Bytes, disk.Free)
	_, err = DiskOf("/no/such/folder")
	assert.Error(t, err)
}

func TestStatusOfTheInbox(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	d := dbtest.Open(t, address, db.Options{})
	conn := dbtest.Connect(t, address)
	assert.Equal(t, Inbox{}, read(t, d).Inbox)
	_, err := conn.Exec(t.Context(), `INSERT INTO inbox (received_at, app_id, visits, counted, tz, visitor, ipv6_prefix, uris, pages, days,
		new_pages, ips)
		SELECT to_timestamp(1e9 + app), app, 3, 1, 'UTC', 'address', 64, '{a.example/}', '{1,1,1}', '{20260629,20260629,20260629}', '{0,0,0}',
		'{::1,::2,::3}'
		FROM unnest('{9,7,9}'::integer[]) AS app`)
	require.NoError(t, err)
	oldest := time.Unix(1e9+7, 0)
	for _, c := range []struct {
		sql   string
		aside int64
	}{{`SELECT pg_advisory_lock(hashtext('footfall.past_days'), 9)`, 4},
		{`SELECT pg_advisory_unlock_all(), pg_advisory_lock_shared(hashtext('footfall.past_days'), 9)`, 0}} {
		_, err = conn.Exec(t.Context(), c.sql)
		require.NoError(t, err)
		got := read(t, d).Inbox
		assert.True(t, oldest.Equal(*got.Oldest), got.Oldest)
		got.Oldest = nil
		assert.Equal(t, Inbox{Waiting: 6, Skipped: c.aside}, got)
	}
}
