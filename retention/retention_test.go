package retention

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/record"
	"footfall/visit"
)

// retention is a desk with apps that keep their visits for different times.
type retention struct {
	*desk.Desk
	day atomic.Int32           // the present day, as the number of days after the first day
	log map[string]*desk.Model // the model of each app
}

// keeps has for each app the number of days for which it keeps visits, and for which it remembers
// visitors; 0: for ever.
var keeps = map[string][2]int{"brief": {3, 5}, "long": {6, 0}, "forever": {0, 0}}

func (r *retention) now() time.Time {
	return time.Date(2019, 6, 1, 20, 0, 0, 0, time.UTC).AddDate(0, 0, int(r.day.Load()))
}

func (r *retention) today() int32 { return dayNumber(r.now()) }

func newRetention(t *testing.T) *retention {
	t.Helper()
	r := &retention{log: noVisits()}
	r.open(t, desk.Database(t, desk.Options{Began: r.now(), Apps: settings()}))
	return r
}

func noVisits() map[string]*desk.Model {
	return map[string]*desk.Model{"brief": {}, "long": {}, "forever": {}}
}

func settings() map[string]app.Settings {
	all, open := map[string]app.Settings{}, app.AccessOpen
	for name, keep := range keeps {
		all[name] = app.Settings{Access: &open, RetainDays: &keep[0], ForgetDays: &keep[1]}
	}
	return all
}

func (r *retention) open(t *testing.T, url string) {
	t.Helper()
	o := desk.Options{Began: r.now()}
	o.Clock, o.Memory = r.now, 8<<20
	r.Desk = desk.On(t, url, o)
}

func (r *retention) visit(t *testing.T, app string, visitor int, path string) visit.Answer {
	t.Helper()
	ip := fmt.Sprintf("192.0.2.%d", visitor)
	answer, err := r.Visit(t.Context(), counter.Request{App: app, IP: ip, URI: "http://a.example" + path})
	require.NoError(t, err)
	r.log[app].Counted(desk.Seen{Visitor: ip, Page: "a.example" + path, Day: r.today()})
	return answer
}

// countDay counts some visitors of each app. Visitor n visits on every n-th day.
func (r *retention) countDay(t *testing.T) {
	t.Helper()
	for app := range keeps {
		for visitor := 1; visitor <= 4; visitor++ {
			if int(r.day.Load())%visitor == 0 {
				r.visit(t, app, visitor, fmt.Sprintf("/%d", visitor%2))
			}
		}
	}
}

// uniques compares report.uniques of every target and every range with the visits.
func (r *retention) uniques(t *testing.T) {
	t.Helper()
	for app, model := range r.log {
		for target, o := range model.All() {
			var want []string
			for i, from := range o.Days() {
				for _, to := range o.Days()[i:] {
					want = append(want, fmt.Sprintf("%d to %d: %d t", from, to, o.Uniques(from, to)))
				}
			}
			assert.Equal(t, want, desk.Column[string](t, r.Desk, `
				SELECT format('%s to %s: %s %s', f.day, t.day, u.uniques, u.exact)
				FROM unnest($1::integer[]) AS f (day)
				JOIN unnest($1::integer[]) AS t (day) ON f.day <= t.day
				CROSS JOIN LATERAL report.uniques($2, $3::text, f.day, t.day) AS u
				ORDER BY f.day, t.day`, o.Days(), app, target), "%s %s", app, target)
		}
	}
}

// dump returns all rows that retention may change.
func (r *retention) dump(t *testing.T) (lines []string) {
	t.Helper()
	for _, table := range []string{"visits", "visitors", "erased_visitors", "visits_kept", "closed_days", "sketches", "tops", "days",
		"returns", "counters"} {
		lines = append(lines, desk.Column[string](t, r.Desk, fmt.Sprintf(`SELECT '%s ' || (to_jsonb(t) - 'closed_at')::text FROM %[1]s AS t
			ORDER BY 1`, table))...)
	}
	// Partitions of future days are left out, because upkeep may create some in the meantime.
	return append(lines, desk.Column[string](t, r.Desk, fmt.Sprintf(`SELECT relname FROM pg_class
		WHERE relispartition AND relkind = 'r' AND relname BETWEEN 'visits_2019' AND 'visits_%d' ORDER BY 1`, r.today()))...)
}

// visitDays returns the days for which an app has rows.
func (r *retention) visitDays(t *testing.T, app string) []string {
	t.Helper()
	return desk.Column[string](t, r.Desk, fmt.Sprintf(
		`SELECT DISTINCT v.day_id::text FROM visits v JOIN pages p ON p.id = v.page_id JOIN apps a ON a.id = p.app_id WHERE a.name = '%s'
			ORDER BY 1`, app))
}

// retainer returns a retainer that retries busy days without a pause.
func (r *retention) retainer(d *db.DB) *Retainer {
	return NewRetainer(d, Options{Clock: r.now, Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
}

func TestAppsKeepVisitsAsLongAsTheySay(t *testing.T) {
	t.Parallel()
	r := newRetention(t)
	retainer := r.retainer(r.DB)
	for day := range int32(10) {
		r.day.Store(day)
		r.countDay(t)
		before := r.dump(t)
		plan, err := retainer.Plan(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, r.dump(t), "a dry run changes nothing")
		done, err := retainer.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, plan, done, "and lists the later deletions, day %d", day)
		for app, keep := range keeps {
			first := time.Date(2019, 6, 1, 0, 0, 0, 0, time.UTC)
			if from := r.now().AddDate(0, 0, -keep[0]); keep[0] > 0 && from.After(first) {
				first = from
			}
			var want []string
			for d := first; !d.After(r.now()); d = d.AddDate(0, 0, 1) {
				want = append(want, fmt.Sprint(dayNumber(d)))
			}
			assert.Equal(t, want, r.visitDays(t, app), "%s on day %d", app, day)
		}
		again, err := retainer.Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, &Result{}, again, "all is done")
	}
	r.uniques(t)

	// A day is dropped when no app keeps it. Here, the app that kept all days keeps fewer from now on. On
	// days that another app still keeps, only its rows are deleted.
	three, never := 3, 0
	admin := r.Admin
	require.NoError(t, admin.SetApp(t.Context(), "forever", app.Settings{RetainDays: &three}))
	plan, err := retainer.Plan(t.Context())
	require.NoError(t, err)
	done, err := retainer.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, plan, done)
	var dropped []int32
	for _, d := range done.Dropped {
		dropped = append(dropped, d.Day)
		assert.Positive(t, d.Bytes)
	}
	assert.Equal(t, []int32{20190601, 20190602, 20190603}, dropped, "the longest of the others is 6 days, and it is the tenth")
	assert.Equal(t, []string{"20190607", "20190608", "20190609", "20190610"}, r.visitDays(t, "forever"))
	r.uniques(t)

	// If an app is changed to keep its visits longer, it keeps those that still exist.
	require.NoError(t, admin.SetApp(t.Context(), "brief", app.Settings{RetainDays: &never, ForgetDays: &never}))
	r.day.Store(20)
	_, err = retainer.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"20190607", "20190608", "20190609", "20190610"}, r.visitDays(t, "brief"))
	assert.Empty(t, r.visitDays(t, "long"))
	r.uniques(t)
}

// deaths are the events at which retention is killed. If there are two such events, it is killed at the second,
// after the transaction of the first has committed. DROP needs a superuser.
var deaths = []death{
	{"INSERT ON sketches", 2}, {"INSERT ON tops", 2}, {"INSERT OR UPDATE ON visits_kept", 2}, {"DROP", 2}, {"DELETE ON visits", 2},
	{"DELETE ON open_returns", 1}, {"INSERT ON erased_visitors", 1},
	{"UPDATE ON epochs", 2}, // recording that the run is complete
}

type death struct {
	event string
	nth   int
}

// If retention is stopped after a step, or killed within a step, another run leads to the same result. No number is
// wrong in the meantime.
func TestRetentionContinuesAfterAnInterruption(t *testing.T) {
	t.Parallel()
	const steps = 6
	dumps, names := make([][]string, 1+steps+len(deaths)), make([]string, 1+steps+len(deaths))
	t.Run("cut short", func(t *testing.T) {
		for i := range dumps {
			if testing.Short() && i > 0 && i <= steps {
				continue // the other kinds stop retention within its steps
			}
			name, cut := fmt.Sprintf("after %d of its steps", i), func(t *testing.T, r *retention) { r.takeSteps(t, i) }
			if i > steps {
				at := deaths[i-steps-1]
				name, cut = "at "+at.event, func(t *testing.T, r *retention) { r.die(t, at) }
			}
			names[i] = name
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dumps[i] = cutShort(t, cut)
			})
		}
	})
	require.Contains(t, dumps[0], "brief a.example erased 5")
	require.Contains(t, dumps[0], "brief a.example open 20190608 20190607 1")
	require.Contains(t, dumps[0], "brief a.example packed 20190607 111 111001")
	for i, dump := range dumps {
		if dump != nil { // the test was not skipped
			assert.Equal(t, dumps[0], dump, "cut short %s", names[i])
		}
	}
}

// takeSteps runs the first steps of retention.
func (r *retention) takeSteps(t *testing.T, n int) {
	t.Helper()
	run := run{Retainer: r.retainer(r.DB)}
	require.NoError(t, run.readKept(t.Context()))
	for _, step := range []func(context.Context) error{run.closeDays, run.packReturns, run.noteKept, run.dropDays, run.deleteVisits,
		run.forget}[:n] {
		require.NoError(t, step(t.Context()))
	}
}

// die runs retention until its backend terminates itself.
func (r *retention) die(t *testing.T, at death) {
	t.Helper()
	ends, trigger := "trigger", "TRIGGER death AFTER "+at.event+" FOR EACH STATEMENT"
	if at.event == "DROP" {
		if desk.Column[string](t, r.Desk, `SELECT current_setting('is_superuser')`)[0] != "on" {
			t.Skip("the tests' user is not a superuser: it cannot make event triggers")
		}
		ends, trigger = "event_trigger", "EVENT TRIGGER death ON sql_drop"
	}
	_, err := r.Tables().Exec(t.Context(), fmt.Sprintf(`CREATE SEQUENCE deaths;
		CREATE FUNCTION die() RETURNS %s LANGUAGE plpgsql SECURITY DEFINER SET search_path = footfall AS $$
		BEGIN
			IF nextval('deaths') = %d THEN
				PERFORM pg_terminate_backend(pg_backend_pid());
			END IF;
			%s
		END $$;
		CREATE %s EXECUTE FUNCTION die()`, ends, at.nth, map[bool]string{true: "RETURN NULL;"}[ends == "trigger"], trigger))
	require.NoError(t, err)
	_, err = r.retainer(r.DB).Run(t.Context())
	require.Equal(t, db.FaultUnknown, db.FaultOf(err), "%v", err)
}

// eightDays returns a database on whose eighth day every step of retention has work to do. It is counted once for all
// tests.
func eightDays(t *testing.T) *retention {
	t.Helper()
	r := &retention{}
	url := dbtest.NewPrepared(t, "eight days", r.now(), func(d *db.DB) {
		made := &retention{log: noVisits()}
		for name, s := range settings() {
			require.NoError(t, admin.NewAdmin(d, nil).AddApp(t.Context(), name, s))
		}
		c, err := counter.Open(t.Context(), d, counter.Options{Options: record.Options{Clock: made.now, MaxWait: time.Minute, Calm: true}})
		require.NoError(t, err)
		made.Desk = &desk.Desk{Counter: c}
		for day := range int32(8) {
			made.day.Store(day)
			for visitor := 1; visitor <= 5; visitor++ { // in a fixed order
				if visitor < 5 && int(day)%visitor == 0 || visitor == 5 && day < 2 {
					for _, app := range []string{"brief", "forever", "long"} {
						made.visit(t, app, visitor, fmt.Sprintf("/%d", visitor%2))
					}
				}
			}
		}
		c.Close()
		require.NoError(t, admin.NewAdmin(d, nil).SetApp(t.Context(), "forever", app.Settings{RetainDays: new(6)}))
		eightDaysLog = made.log
	})
	r.day.Store(7)
	r.log = eightDaysLog
	r.open(t, url)
	return r
}

var eightDaysLog map[string]*desk.Model

// cutShort stops retention with cut, runs it again, and returns the rows.
func cutShort(t *testing.T, cut func(*testing.T, *retention)) []string {
	t.Helper()
	r := eightDays(t)
	cut(t, r)
	r.uniques(t)
	_, err := r.retainer(r.DB).Run(t.Context())
	require.NoError(t, err)
	r.uniques(t)
	return desk.Column[string](t, r.Desk, `
		WITH targets AS (SELECT p.id AS page_id, concat_ws(' ', a.name, p.uri) AS name FROM pages p JOIN apps a ON a.id = p.app_id)
		SELECT concat_ws(' ', name, day_id, ip) FROM visits JOIN targets USING (page_id)
		UNION ALL SELECT concat_ws(' ', name, rank, ip, first_day, last_day) FROM visitors JOIN targets USING (page_id)
		UNION ALL SELECT concat_ws(' ', name, 'erased', rank) FROM erased_ranks JOIN targets USING (page_id)
		UNION ALL SELECT concat_ws(' ', name, 'sketch', day_id, entries::text) FROM sketches JOIN targets USING (page_id)
		UNION ALL SELECT concat_ws(' ', name, 'open', day_id, previous_day, visitors) FROM open_returns JOIN targets USING (page_id)
		UNION ALL SELECT concat_ws(' ', name, 'packed', day_id, previous_days, visitors) FROM packed_returns JOIN targets USING (page_id)
		UNION ALL SELECT concat_ws(' ', a.name, from_day, gone_before) FROM visits_kept k JOIN apps a ON a.id = k.app_id
		UNION ALL SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' AND relname BETWEEN 'visits_20190601'
		AND 'visits_20190608' -- later ones are made beside it
		ORDER BY 1`)
}

func TestOneInstanceLetsGo(t *testing.T) {
	t.Parallel()
	r := newRetention(t)
	for day := range int32(8) {
		r.day.Store(day)
		r.countDay(t)
	}
	for round := range 2 {
		var did atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				done, err := r.retainer(r.DB).IfDue(context.Background())
				if err != nil {
					assert.ErrorIs(t, err, ErrRunning)
				} else if done != nil {
					did.Add(1)
				}
			})
		}
		all.Wait()
		assert.Equal(t, int32(1), did.Load(), "instances that did it on day %d", round)
		r.day.Add(1)
	}
	// Only one process runs retention at a time. A second run reports this.
	other, err := r.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtext('footfall.retain'))`)
	require.NoError(t, err)
	before, err := r.retainer(r.DB).Plan(t.Context())
	require.NoError(t, err, "a dry run asks for no turn")
	_, err = r.retainer(r.DB).Run(t.Context())
	require.ErrorIs(t, err, ErrRunning)
	require.NoError(t, other.Rollback(t.Context()))
	after, err := r.retainer(r.DB).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// A day is due by the instance's clock, from ten past noon UTC on: then the day has ended in all time
// zones.
func TestRetentionIsDueWhenADayIsOverEverywhere(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]int32{
		"2019-06-10 00:00": 20190609, "2019-06-10 12:09": 20190609, "2019-06-10 12:10": 20190610, "2019-06-11 00:00": 20190610,
	} {
		now, err := time.Parse("2006-01-02 15:04", at)
		require.NoError(t, err)
		retainer := Retainer{clock: func() time.Time { return now }}
		assert.Equal(t, want, dayNumber(retainer.today()), at)
	}
}

// A run uses the day on which it started, even if that day ends. If it used the next day, it would forget
// visitors whose visits it has kept.
func TestRunGoesByOneDay(t *testing.T) {
	t.Parallel()
	r := newRetention(t)
	_, err := r.Tables().Exec(t.Context(), `UPDATE apps SET forget_days = retain_days WHERE name = 'brief'`)
	require.NoError(t, err)
	r.visit(t, "brief", 1, "/a")
	r.day.Store(1)
	r.visit(t, "brief", 2, "/a")
	r.day.Store(4)
	asked := 0
	clock := func() time.Time { asked++; return r.now().AddDate(0, 0, min(asked-1, 1)) }
	done, err := NewRetainer(r.DB, Options{Clock: clock}).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []VisitorsForgotten{{"brief", 20190602, 2}}, done.Forgotten)
	require.Equal(t, []string{"20190602 192.0.2.2"}, desk.Column[string](t, r.Desk, `SELECT DISTINCT day_id || ' ' || host(ip) FROM visits`))
	require.Equal(t, []string{"20190605"}, desk.Column[string](t, r.Desk, `SELECT value::text FROM epochs WHERE name = 'retention'`))
}

func TestForgottenVisitorsAreNewWhenTheyReturn(t *testing.T) {
	t.Parallel()
	r := newRetention(t)
	r.visit(t, "brief", 1, "/a")
	r.visit(t, "brief", 2, "/a")
	r.visit(t, "brief", 3, "/a")
	r.visit(t, "brief", 3, "/b")
	r.visit(t, "long", 1, "/a")
	r.day.Store(4)
	r.visit(t, "brief", 2, "/a")
	r.visit(t, "brief", 3, "/b") // the site remembers the visitor, so /a does, too, although the last visit there is long ago
	r.day.Store(6)
	done, err := r.retainer(r.DB).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []VisitorsForgotten{{"brief", 20190602, 2}}, done.Forgotten)
	require.Equal(t, []string{"a.example 1", "a.example/a 1"},
		desk.Column[string](t, r.Desk, `SELECT p.uri || ' ' || e.rank FROM erased_ranks e JOIN pages p ON p.id = e.page_id ORDER BY 1`))
	require.Empty(t, desk.Column[string](t, r.Desk, `SELECT p.uri FROM visitors v JOIN pages p ON p.id = v.page_id
		JOIN apps a ON a.id = p.app_id WHERE ip = '192.0.2.1' AND a.name = 'brief'
		UNION ALL SELECT p.uri FROM visits v JOIN pages p ON p.id = v.page_id JOIN apps a ON a.id = p.app_id WHERE ip = '192.0.2.1'
		AND a.name = 'brief'`))
	r.uniques(t)

	three := r.visit(t, "brief", 3, "/a")
	assert.Equal(t, [2]int64{3, 3}, [2]int64{three.Page.UV, three.Page.Rank}, "others keep their ranks")
	one := r.visit(t, "brief", 1, "/a")
	assert.Equal(t, [4]int64{4, 4, 4, 4}, [4]int64{one.Page.UV, one.Page.Rank, one.Site.UV, one.Site.Rank}, "the visitor has the next rank")
	one = r.visit(t, "long", 1, "/a")
	assert.Equal(t, [2]int64{1, 1}, [2]int64{one.Page.UV, one.Page.Rank}, "the other app has not forgotten the visitor")
}

// Retention works in a service without the right to delete rows.
func TestRetentionAsFootfallApp(t *testing.T) {
	t.Parallel()
	r := newRetention(t)
	dbtest.NeedSuperuser(t, r.Tables())
	service := dbtest.Open(t, dbtest.WithParameter(t, r.URL, "role", "footfall_app"), db.Options{})
	for day := range int32(9) {
		r.day.Store(day)
		r.countDay(t)
	}
	_, err := r.Tables().Exec(t.Context(), `UPDATE apps SET retain_days = 7 WHERE name = 'forever'`)
	require.NoError(t, err)
	r.visit(t, "brief", 9, "/a")
	r.day.Store(15)
	plan, err := r.retainer(service).Plan(t.Context())
	require.NoError(t, err)
	done, err := r.retainer(service).IfDue(t.Context())
	require.NoError(t, err)
	require.Equal(t, plan, done)
	require.NotEmpty(t, done.Closed)
	require.NotEmpty(t, done.Dropped)
	require.NotEmpty(t, done.Visits)
	require.NotEmpty(t, done.Forgotten)
	r.uniques(t)
}

// A query reads visits for hours, so all days are in use. Retention tries to drop only the first of the days to
// drop, and leaves the others to the next run. It still forgets visitors, but searches for them only once a day.
func TestDaysInUseAreLeftForTheNextRun(t *testing.T) {
	t.Parallel()
	r := newRetention(t)
	for day := range int32(3) {
		r.day.Store(day)
		r.visit(t, "brief", int(day), "/a")
	}
	r.day.Store(12)
	reading, err := r.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = reading.Exec(t.Context(), `LOCK TABLE visits IN ACCESS SHARE MODE`)
	require.NoError(t, err)

	var waited time.Duration
	retainer := NewRetainer(r.DB, Options{Clock: r.now, Pause: func(_ context.Context, wait time.Duration) error {
		waited += wait
		return nil
	}})
	done, err := retainer.IfDue(t.Context())
	require.Equal(t, db.FaultBusy, db.FaultOf(err))
	assert.Greater(t, waited, 5*time.Second, "it outlasts a report")
	assert.Less(t, waited, 10*time.Second, "only one day is tried")
	assert.Empty(t, done.Dropped)
	require.Equal(t, []VisitorsForgotten{{"brief", 20190608, 6}}, done.Forgotten)

	// A new visitor that could be forgotten shows that no search took place.
	_, err = reading.Exec(t.Context(), `INSERT INTO visitors SELECT id, 4, 20190601, 20190601, '192.0.2.9' FROM pages WHERE uri = 'a.example'`)
	require.NoError(t, err)
	require.NoError(t, reading.Commit(t.Context()))
	done, err = retainer.IfDue(t.Context())
	require.NoError(t, err)
	assert.Greater(t, len(done.Dropped), 3)
	assert.Empty(t, done.Forgotten, "visitors are not read again on the same day")
	r.day.Add(1)
	done, err = retainer.IfDue(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []VisitorsForgotten{{"brief", 20190609, 1}}, done.Forgotten)
}

// late counts a late visit. day is the number of days after the first day.
func (r *retention) late(t *testing.T, app string, day int) {
	t.Helper()
	at := time.Date(2019, 6, 1+day, 12, 0, 0, 0, time.UTC)
	_, err := r.Visit(t.Context(), counter.Request{App: app, IP: "192.0.2.1", URI: "http://a.example/", At: at.Format(time.RFC3339)})
	require.NoError(t, err)
}

// A late visit is counted on a day that no app kept, just before the day is dropped. The day is kept, the rows of
// the other apps on this day are deleted, and the run continues with the next day.
func TestDayIsKeptWhenItIsToBeDropped(t *testing.T) {
	t.Parallel()
	r := newRetention(t)
	for day := range int32(3) {
		r.day.Store(day)
		r.visit(t, "brief", int(day), "/a")
	}
	r.day.Store(12)
	_, err := r.Tables().Exec(t.Context(), `DROP TABLE visits_20190531`) // so that the first dropped day has rows
	require.NoError(t, err)
	reading, err := r.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = reading.Exec(t.Context(), `LOCK TABLE visits IN ACCESS SHARE MODE`)
	require.NoError(t, err)
	count := sync.OnceFunc(func() {
		require.NoError(t, reading.Rollback(t.Context()))
		r.late(t, "forever", 0)
	})
	retainer := NewRetainer(r.DB, Options{Clock: r.now, Pause: func(context.Context, time.Duration) error { count(); return nil }})
	done, err := retainer.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []VisitsDeleted{{20190602, "brief", 2}, {20190603, "brief", 2}, {20190601, "brief", 2}}, done.Visits)
	require.Equal(t, []VisitorsForgotten{{"brief", 20190608, 6}}, done.Forgotten)
	assert.Equal(t, []string{"forever 20190601"}, desk.Column[string](t, r.Desk, `SELECT concat_ws(' ', a.name, v.day_id)
		FROM visits AS v JOIN pages AS p ON p.id = v.page_id AND p.site_id IS NULL JOIN apps AS a ON a.id = p.app_id`))
}

// A day could not be dropped because it was in use. By the next run, an app keeps the day, so the run deletes only
// the rows of the other apps.
func TestDayIsKeptSinceItWasInUse(t *testing.T) {
	t.Parallel()
	r := newRetention(t)
	r.visit(t, "brief", 0, "/a")
	r.day.Store(12)
	reading, err := r.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = reading.Exec(t.Context(), `LOCK TABLE visits IN ACCESS SHARE MODE`)
	require.NoError(t, err)
	retainer := NewRetainer(r.DB, Options{Clock: r.now, Pause: func(context.Context, time.Duration) error { return nil }})
	_, err = retainer.Run(t.Context())
	require.Equal(t, db.FaultBusy, db.FaultOf(err))
	require.NoError(t, reading.Rollback(t.Context()))
	r.late(t, "forever", 0)
	done, err := retainer.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []VisitsDeleted{{20190601, "brief", 2}}, done.Visits)
}

// Packing finishes even while late visits add more.
func TestReturnsArePackedDuringLateVisits(t *testing.T) {
	t.Parallel()
	r := newRetention(t)
	for day := range int32(2) {
		r.day.Store(day)
		r.visit(t, "forever", 1, "/a")
	}
	r.day.Store(12)
	// Packed rows reappear immediately, as if a batch had been waiting for the locks.
	_, err := r.Tables().Exec(t.Context(), `
		CREATE FUNCTION come_again() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN INSERT INTO footfall.open_returns VALUES (NEW.page_id, NEW.day_id, 20190601, 1) ON CONFLICT DO NOTHING; RETURN NULL; END';
		CREATE TRIGGER come_again AFTER INSERT OR UPDATE ON packed_returns FOR EACH ROW EXECUTE FUNCTION come_again()`)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = NewRetainer(r.DB, Options{Clock: r.now}).Run(ctx)
	require.NoError(t, err)
}

func TestDaily(t *testing.T) {
	t.Parallel()
	r := newRetention(t)
	var waits []time.Duration
	done := func() []string {
		return desk.Column[string](t, r.Desk, `SELECT value::text FROM epochs WHERE name = 'retention' AND value > 0`)
	}
	NewRetainer(r.DB, Options{Clock: r.now, Pause: func(_ context.Context, wait time.Duration) error {
		waits = append(waits, wait)
		switch len(waits) {
		case 1:
			assert.Empty(t, done(), "the start comes first")
		case 2:
			assert.Equal(t, []string{"20190601"}, done())
			r.day.Add(1)
			_, err := r.Tables().Exec(t.Context(), `ALTER TABLE closed_days RENAME TO gone`)
			assert.NoError(t, err)
		case 3:
			assert.Equal(t, []string{"20190601"}, done(), "it failed, and is tried again")
			_, err := r.Tables().Exec(t.Context(), `ALTER TABLE gone RENAME TO closed_days`)
			assert.NoError(t, err)
		case 5:
			assert.Equal(t, []string{"20190602"}, done())
			return context.Canceled
		}
		return nil
	}}).Daily(t.Context())
	assert.Equal(t, []time.Duration{10 * time.Second, 10 * time.Minute, 10 * time.Minute, 10 * time.Minute, 10 * time.Minute}, waits)
}

func TestMain(m *testing.M) { dbtest.Main(m) }
