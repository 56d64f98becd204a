package counter_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/intake"
	"footfall/record"
	"footfall/retention"
	"footfall/verify"
	"footfall/visit"
)

// past is a visit on some day.
type past struct {
	ip, uri string
	at      time.Time
}

// pasts returns visits on days up to the present one of newClock, in order.
func pasts(rng *rand.Rand, n, visitors, days int) []past {
	list := make([]past, n)
	for i := range list {
		site, page := rng.IntN(2), rng.IntN(3)
		ago := time.Duration(rng.IntN(days))*24*time.Hour + time.Duration(rng.IntN(3600*11))*time.Second
		list[i] = past{fmt.Sprintf("10.0.0.%d", rng.IntN(visitors)), fmt.Sprintf("http://s%d.example/%d", site, page), desk.Noon.Add(-ago)}
	}
	slices.SortFunc(list, func(a, b past) int { return a.at.Compare(b.at) })
	return list
}

// countLive counts visits in order, each at its time.
func (in *instance) countLive(t *testing.T, visits []past) {
	t.Helper()
	now := in.Clock.Now()
	for _, v := range visits {
		in.Clock.Set(v.at)
		in.Count(t, v.ip, v.uri)
	}
	in.Clock.Set(now)
}

// countPast counts visits in this order, with their times, in chunks. It retries visits refused because the app is
// held at the moment.
func (in *instance) countPast(t *testing.T, visits []past, most int) {
	t.Helper()
	for chunk := range slices.Chunk(visits, most) {
		for len(chunk) > 0 {
			var err error
			if len(chunk) == 1 {
				v := chunk[0]
				_, err = in.Visit(t.Context(), counter.Request{App: "demo", IP: v.ip, URI: v.uri, At: v.at.Format(time.RFC3339)})
				if err == nil {
					break
				}
			} else {
				results := in.recordPast(t, chunk)
				n := slices.IndexFunc(results, func(r record.Result) bool { return r.Err != nil })
				if n < 0 {
					break
				}
				err, chunk = results[n].Err, chunk[n:]
			}
			var verr *visit.Error
			require.ErrorAs(t, err, &verr)
			require.Equal(t, visit.Unavailable, verr.Kind, verr.Message())
		}
	}
}

func (in *instance) recordPast(t *testing.T, visits []past) []record.Result {
	t.Helper()
	g, err := in.AuthorizeCounting(t.Context(), counter.Request{App: "demo"})
	require.NoError(t, err)
	var items []counter.Item
	for _, v := range visits {
		items = append(items, counter.Item{URI: v.uri, IP: v.ip, At: v.at})
	}
	return g.Recorder().RecordChunk(chunkOf(t, g, nil, items...))
}

// closeAll closes the days before a day, packs the returns of closed days, and makes missing lists.
func (in *instance) closeAll(t testing.TB, before int) {
	t.Helper()
	conn := in.Conn(t)
	for _, sql := range []string{
		fmt.Sprintf(`SELECT close_day(d.day_id) FROM (SELECT DISTINCT day_id FROM days WHERE day_id < %d) AS d`, before),
		`SELECT pack_returns(0, 1000000)`, `SELECT make_tops()`,
	} {
		_, err := conn.Exec(context.Background(), sql)
		require.NoError(t, err)
	}
}

// keepsAll lets an app keep its visits for ever, whatever the real day is.
func (in *instance) keepsAll(t *testing.T) { in.keeps(t, "demo", 0, 0) }

// verified checks all promises on the tables.
func (in *instance) verified(t *testing.T) {
	t.Helper()
	proof, err := verify.Run(t.Context(), in.DB, verify.Options{Limit: 3})
	require.NoError(t, err)
	for _, p := range proof.Promises {
		require.Zero(t, p.Violations, "%s: %v", p.Name, p.Offenders)
	}
}

// tellsAs checks that all numbers in the tables about the app demo, except ranks, equal those of another database.
func (in *instance) tellsAs(t *testing.T, other *instance) {
	t.Helper()
	mine, others := in.told(t), other.told(t)
	only := func(a, b []string) (lines []string) {
		for _, line := range a {
			if !slices.Contains(b, line) {
				lines = append(lines, line)
			}
		}
		return lines[:min(len(lines), 10)]
	}
	require.Equal(t, only(others, mine), only(mine, others))
	require.Equal(t, len(others), len(mine))
}

func (in *instance) told(t *testing.T) (all []string) {
	t.Helper()
	conn := in.Conn(t)
	_, err := conn.Exec(t.Context(), `SET plan_cache_mode = force_generic_plan`) // else each query for uniques is planned again
	require.NoError(t, err)
	for _, sql := range []string{
		`SELECT format('%s hot %s pv %s uv %s', uri, hot, pv, uv) FROM counters JOIN pages ON id = page_id ORDER BY uri`,
		`SELECT format('%s %s hot %s pv %s new %s', uri, day_id, hot, pv, new_visitors) FROM days JOIN pages ON id = page_id
			ORDER BY uri, day_id`,
		`SELECT format('%s %s after %s: %s', uri, day_id, previous_day, sum(visitors)) FROM returns JOIN pages ON id = page_id
			GROUP BY uri, day_id, previous_day ORDER BY uri, day_id, previous_day`,
		`SELECT format('%s %s %s after %s', uri, ip, day_id, previous_day) FROM visits JOIN pages ON id = page_id ORDER BY uri, ip, day_id`,
		`SELECT format('%s %s from %s to %s', uri, ip, first_day, last_day) FROM visitors JOIN pages ON id = page_id ORDER BY uri, ip`,
		`SELECT format('%s sketch of %s: %s', uri, day_id, entries) FROM sketches JOIN pages ON id = page_id ORDER BY uri, day_id`,
		`SELECT format('%s first of %s by %s: %s', s.uri, day_id, by, numbers) FROM tops LEFT JOIN pages AS s ON s.id = tops.site_id
			WHERE tops.app_id = 1 ORDER BY s.uri, day_id, by`,
		`SELECT format('%s from %s to %s: %s', uri, f.day_id, u.day_id, (report.uniques('demo', p.uri, f.day_id, u.day_id)).uniques)
		 FROM pages AS p, (SELECT DISTINCT day_id FROM days) AS f, (SELECT DISTINCT day_id FROM days) AS u WHERE f.day_id <= u.day_id
		 AND p.app_id = 1 ORDER BY uri, f.day_id, u.day_id`,
	} {
		for _, line := range dbtest.Column[string](t, conn, sql) {
			if !strings.HasPrefix(line, "b.example") {
				all = append(all, line)
			}
		}
	}
	return all
}

// Visits of many days, in any order and in chunks of any size, while days are closed and packed, lead to the same
// tables as visits counted as they happen.
func TestLateVisitsCountAsInTime(t *testing.T) {
	t.Parallel()
	for seed := range uint64(dbtest.LongOrShort(2, 1)) { //nolint:gosec // positive
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			visits := pasts(rng, 400, 12, 15)
			inTime, late := plain.newInstance(t, counter.Options{}), ways[3].newInstance(t, counter.Options{})
			late.keepsAll(t)
			inTime.countLive(t, visits)

			rng.Shuffle(len(visits), func(i, j int) { visits[i], visits[j] = visits[j], visits[i] })
			for i, most := range []int{1, 7, 30, 100} {
				late.countPast(t, visits[i*100:(i+1)*100], most)
				if i > 0 {
					late.closeAll(t, 20260617+2*i)
				}
				late.Check(t)
			}
			inTime.closeAll(t, 20260628)
			late.closeAll(t, 20260628)
			late.tellsAs(t, inTime)
			late.verified(t)
			late.warnsOfNoBatch(t)
		})
	}
}

// If a day is dropped between the check and the transaction, its visit is refused with the first day that is kept.
// Earlier visits of the chunk count.
func TestDayIsDroppedDuringALateVisit(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.keepsAll(t)
	g, err := in.AuthorizeCounting(t.Context(), counter.Request{App: "demo"})
	require.NoError(t, err)
	var items []counter.Item
	for _, day := range []int{20, 21, 10, 22} {
		items = append(items, counter.Item{URI: "http://a.example/", IP: "192.0.2.1", At: time.Date(2026, 6, day, 12, 0, 0, 0, time.UTC)})
	}
	c := chunkOf(t, g, nil, items...)
	in.Exec(t, `INSERT INTO visits_kept (app_id, from_day) SELECT id, 20260615 FROM apps`)
	results := g.Recorder().RecordChunk(c)
	var verr *visit.Error
	require.ErrorAs(t, results[2].Err, &verr)
	assert.Equal(t, visit.Invalid, verr.Kind)
	assert.Contains(t, verr.Message(), "at: ")
	assert.Contains(t, verr.Message(), "2026-06-15")
	require.NoError(t, results[1].Err)
	assert.Equal(t, "2 1 1 2 | 2 1 1 2", row(results[1].Answer))
	assert.Equal(t, record.ErrNotReached, results[3].Err)
	in.verified(t)
	in.warnsOfNoBatch(t)

	_, _, err = g.Visit(t.Context(), counter.Item{URI: "http://a.example/", IP: "192.0.2.1",
		At: time.Date(2026, 6, 14, 23, 59, 0, 0, time.UTC)})
	require.NoError(t, err, "the kept days are read once per call")
	_, err = in.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a.example/", At: "2026-06-14T23:59:00Z"})
	require.EqualError(t, err, "at: app demo no longer keeps visits of that day: the first possible day is 2026-06-15")
}

// The same holds in a call of many visits, which continues after this visit.
func TestDayIsDroppedDuringACall(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.keepsAll(t)
	for n, key := range []string{"", "one"} {
		g, err := in.AuthorizeCounting(t.Context(), counter.Request{App: "demo"})
		require.NoError(t, err)
		_, err = g.FirstDay(t.Context())
		require.NoError(t, err)
		in.Exec(t, fmt.Sprintf(`INSERT INTO visits_kept (app_id, from_day) SELECT id, %d FROM apps ON CONFLICT (app_id) DO UPDATE
			SET from_day = excluded.from_day`, 20260615+n))
		var body []string
		for _, day := range []int{14 + n, 20, 14 + n, 21} {
			body = append(body, fmt.Sprintf(`{"uri":"http://a.example/","ip":"192.0.2.1","at":"2026-06-%dT12:00:00Z"}`, day))
		}
		results, internal, err := intake.NewDesk().Count(t.Context(), intake.Call{Counting: g, Body: strings.NewReader(strings.Join(body, "\n")),
			Lines: true, Key: key})
		require.NoError(t, errors.Join(err, internal), key)
		for i, got := range results {
			if i%2 == 0 {
				assert.Equal(t, intake.Failed, got.Outcome, "%s %d", key, i)
				assert.Contains(t, got.Fault, fmt.Sprintf("the first possible day is 2026-06-%d", 15+n))
			} else {
				assert.Equal(t, intake.Counted, got.Outcome, "%s %d: %s", key, i, got.Fault)
			}
		}
		require.Equal(t, fmt.Sprintf("2 1 %d", 2+2*n), in.numbersOf(t, "a.example"), key)
	}
	in.verified(t)
}

// A time is interpreted in the app's time zone. A time slightly in the future counts as now. Other times in the future, or too
// long ago, are refused with the possible days.
func TestGivenTimes(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	open, sites, tz, daily, never := "open", "sites", "Pacific/Kiritimati", "daily", 0 // 14 hours ahead
	require.NoError(t, in.Admin.AddApp(t.Context(), "east", app.Settings{Access: &open, TZ: &tz, RetainDays: &never}))
	require.NoError(t, in.Admin.AddApp(t.Context(), "daily", app.Settings{Access: &open, Visitor: &daily, RetainDays: &never}))
	require.NoError(t, in.Admin.AddApp(t.Context(), "blog", app.Settings{Access: &sites, Sites: []string{"a.example"},
		PublicCounts: ptr("answers")}))
	in.keepsAll(t)
	for _, c := range []struct{ app, at, says string }{
		{"demo", "2026-06-29T12:05:00Z", ""},
		{"demo", "2026-06-29T12:05:01Z", "at: it is in the future: give a day from 1991-01-01 to 2026-06-29"},
		{"demo", "2100-01-01T00:00:00Z", "at: it is in the future: give a day from 1991-01-01 to 2026-06-29"},
		{"demo", "1970-01-01T00:00:00Z", "at: app demo no longer keeps visits of that day: the first possible day is 1991-01-01"},
		{"demo", "0000-01-01T00:00:00Z", "at: app demo no longer keeps visits of that day: the first possible day is 1991-01-01"},
		{"demo", "yesterday", `at: "yesterday" is not a time: write one like 2019-06-29T13:05:00+02:00 or 2019-06-29T11:05:00Z`},
		{"demo", "2026-06-29T00:30:00+02:00", ""}, // the day before
		{"east", "2026-06-29T09:59:59Z", ""},
		{"east", "2026-06-29T10:00:00Z", ""}, // the next day there
		{"daily", "2026-06-29T00:00:00Z", ""},
		{"daily", "2026-06-27T23:59:59Z", "at: app daily hashes visitors with a new key every day, and the key of that day is deleted: the " +
			"first possible day is 2026-06-29"},
		{"blog", "2026-06-29T12:00:00Z", "at: app blog accepts it only with a key of the scope assert: leave at out, or send such a key as " +
			"Authorization: Bearer …"},
	} {
		ip := "192.0.2.7"
		if c.app == "blog" {
			ip = ""
		}
		_, err := in.Visit(t.Context(), counter.Request{App: c.app, IP: ip, Peer: peer, Agent: browser, URI: "http://a.example/", At: c.at})
		if c.says == "" {
			require.NoError(t, err, "%s %s", c.app, c.at)
		} else {
			require.EqualError(t, err, c.says)
		}
	}
	require.Equal(t, []string{"daily 20260629", "demo 20260628", "demo 20260629", "east 20260629", "east 20260630"}, in.list(t,
		`SELECT concat_ws(' ', a.name, d.day_id) FROM days AS d JOIN pages AS p ON p.id = d.page_id JOIN apps AS a ON a.id = p.app_id
			WHERE p.site_id IS NULL ORDER BY 1`))
}

// While visits are imported, no rows of the app are deleted, and no visitor is forgotten. The pause ends by itself.
func TestPausedRetention(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.keeps(t, "demo", 3, 5)
	for day := range 8 {
		in.Clock.Set(firstDay.AddDate(0, 0, day))
		in.Count(t, fmt.Sprintf("192.0.2.%d", day), "http://a.example/")
	}
	g, err := in.AuthorizeCounting(t.Context(), counter.Request{App: "demo"})
	require.NoError(t, err)
	pause := counter.NewPause()
	require.NoError(t, g.PauseRetention(t.Context(), pause))
	in.Exec(t, `UPDATE retention_pauses SET from_day = 20190601`) // as if the pause had started then
	first, err := g.FirstDay(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int32(20190601), first)
	const rows = `SELECT concat_ws(' ', v.ip, v.rank, d.day_id) FROM visitors AS v JOIN visits AS d USING (page_id, ip) ORDER BY 1`
	before := in.list(t, rows)
	require.Len(t, before, 16)
	done := in.retain(t)
	assert.Empty(t, done.Visits)
	assert.Empty(t, done.Dropped)
	assert.Empty(t, done.Forgotten)
	assert.Equal(t, before, in.list(t, rows))
	for _, sql := range []string{
		`SELECT keep_visits_from(id, 20190603) FROM apps`, `SELECT forget_visitors(id, 20190603, '{1}', '{192.0.2.1}') FROM apps`,
	} {
		_, err := in.Conn(t).Exec(t.Context(), sql)
		var told *pgconn.PgError
		require.ErrorAs(t, err, &told)
		assert.Equal(t, "55P03", told.Code)
	}
	in.Exec(t, `UPDATE retention_pauses SET until = now() - interval '1 second'`)
	done = in.retain(t)
	assert.NotEmpty(t, done.Dropped)
	assert.NotEmpty(t, done.Forgotten)
	in.verified(t)
	require.NoError(t, g.PauseRetention(t.Context(), pause))
	require.NoError(t, g.ResumeRetention(t.Context(), pause))
	assert.Equal(t, []string{"f"}, in.list(t, `SELECT is_retention_paused(id)::text::char FROM apps`))
}

// A pause that starts while retention runs keeps all rows of its app, and no rows of other apps.
func TestPauseBeginsWhileRetentionRuns(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	open, days := "open", 3
	require.NoError(t, in.Admin.AddApp(t.Context(), "later", app.Settings{Access: &open, RetainDays: &days, ForgetDays: &days}))
	in.keeps(t, "demo", days, days)
	for day := range 8 {
		in.Clock.Set(firstDay.AddDate(0, 0, day))
		in.Count(t, "192.0.2.1", "http://a.example/")
		_, err := in.Visit(t.Context(), counter.Request{App: "later", IP: fmt.Sprintf("192.0.2.%d", day), URI: "http://b.example/"})
		require.NoError(t, err)
	}
	release := in.hold(t, "a.example") // packing waits for it
	done := make(chan error, 1)
	retainer := retention.NewRetainer(in.DB, retention.Options{Clock: in.Clock.Now})
	go func() {
		_, err := retainer.Run(context.Background())
		done <- err
	}()
	in.waiters(t, 1)
	require.NoError(t, in.counting(t).PauseRetention(t.Context(), counter.NewPause()))
	release()
	require.Equal(t, db.FaultBusy, db.FaultOf(<-done), "it is to be tried again")
	assert.Equal(t, []string{"demo 8 1", "later 4 4"}, in.list(t, `SELECT concat_ws(' ', a.name, count(*), count(DISTINCT v.ip))
		FROM apps AS a JOIN pages AS p ON p.app_id = a.id AND p.site_id IS NULL JOIN visits AS v ON v.page_id = p.id GROUP BY a.name ORDER BY 1`))
	in.verified(t)
}

// A pause that starts after retention has noted the kept days also keeps the rows of its app that are left.
func TestPauseStartsAfterKeptDaysWereNoted(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	open, days, never := "open", 3, 0
	require.NoError(t, in.Admin.AddApp(t.Context(), "keeper", app.Settings{Access: &open, RetainDays: &never}))
	require.NoError(t, in.Admin.AddApp(t.Context(), "later", app.Settings{Access: &open, RetainDays: &days, ForgetDays: &days}))
	in.keeps(t, "demo", days, days)
	for day := range 8 {
		in.Clock.Set(firstDay.AddDate(0, 0, day))
		for _, app := range []string{"demo", "keeper", "later"} {
			if app == "keeper" && day == 0 {
				continue // so that the day is dropped
			}
			_, err := in.Visit(t.Context(), counter.Request{App: app, IP: fmt.Sprintf("192.0.2.%d", day), URI: "http://a.example/"})
			require.NoError(t, err)
		}
	}
	reading, err := in.Tables().Begin(t.Context()) // dropping a day waits for this transaction
	require.NoError(t, err)
	_, err = reading.Exec(t.Context(), "SELECT FROM visits")
	require.NoError(t, err)
	begin := sync.OnceValue(func() error {
		return errors.Join(in.counting(t).PauseRetention(t.Context(), counter.NewPause()), reading.Rollback(t.Context()))
	})
	busy := func(context.Context, time.Duration) error { return begin() }
	_, err = retention.NewRetainer(in.DB, retention.Options{Clock: in.Clock.Now, Pause: busy}).Run(context.Background())
	require.Equal(t, db.FaultBusy, db.FaultOf(err), "it is to be tried again")
	assert.Equal(t, []string{"demo 7 8", "keeper 7 7", "later 4 4"}, in.list(t, `SELECT concat_ws(' ', a.name,
			(SELECT count(*) FROM visits AS v WHERE v.page_id = p.id), (SELECT count(*) FROM visitors AS v WHERE v.page_id = p.id))
		FROM apps AS a JOIN pages AS p ON p.app_id = a.id AND p.site_id IS NULL ORDER BY 1`))
	in.verified(t)
}

func (in *instance) list(t *testing.T, sql string) []string {
	t.Helper()
	return dbtest.Column[string](t, in.Conn(t), sql)
}
