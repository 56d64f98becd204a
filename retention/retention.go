// Package retention runs the daily task. The task closes days that have ended (closedays.go). It deletes visit rows that no
// app keeps any more, visitors who have not visited for a long time, and records of counted log lines. Sums, ranks and daily
// numbers stay.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/pause"
	"footfall/visit"
)

// Retainer deletes the data that the apps of a database no longer keep. It is safe for concurrent use.
type Retainer struct {
	db    *db.DB
	clock func() time.Time
	pause func(context.Context, time.Duration) error
	log   *slog.Logger

	forgotOn atomic.Int32 // the day of the last complete run of the method forget
}

// Options of NewRetainer. A zero field means its default.
type Options struct {
	Clock func() time.Time                           // default: the database's clock, as in db.DB.Now
	Pause func(context.Context, time.Duration) error // waits before a retry; default: pause.For
	Log   *slog.Logger                               // default: discards all log lines
}

// NewRetainer returns a Retainer for a database.
func NewRetainer(d *db.DB, o Options) *Retainer {
	if o.Clock == nil {
		o.Clock = d.Now
	}
	if o.Pause == nil {
		o.Pause = pause.For
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Retainer{db: d, clock: o.Clock, pause: o.Pause, log: o.Log}
}

// Result lists the data that Run has deleted. The result of Plan lists the data that Run would delete.
type Result struct {
	Closed    []int32 // closed days: reports of unique visitors now use sketches instead of visit rows
	Visits    []VisitsDeleted
	Dropped   []DayDropped
	Forgotten []VisitorsForgotten
}

// VisitsDeleted is the number of visit rows that were deleted for an app and a day.
type VisitsDeleted struct {
	Day    int32
	App    string
	Visits int64
}

// DayDropped is a day that no app keeps. Its whole partition was dropped.
type DayDropped struct {
	Day   int32
	Bytes int64
}

// VisitorsForgotten is the number of an app's visitors that were forgotten. A visitor counts once for each page and each site.
// These visitors have not visited the site since the day Before.
type VisitorsForgotten struct {
	App      string
	Before   int32
	Visitors int64
}

// ErrRunning is returned while retention runs in another instance or by a command.
var ErrRunning = errors.New("retention is already running, in another instance or by a command: try again when it has ended")

// Plan returns the data that Run would delete. It changes nothing.
func (r *Retainer) Plan(ctx context.Context) (*Result, error) {
	run := run{Retainer: r, isDryRun: true}
	err := run.do(ctx)
	if err != nil {
		err = fmt.Errorf("plan retention: %w", err)
	}
	return &run.done, err
}

// Run deletes all data that no app keeps. It returns ErrRunning if retention is already running. With any other error
// it also returns the work done so far. It can be run again after any error.
func (r *Retainer) Run(ctx context.Context) (done *Result, err error) {
	err = r.RunLocked(ctx, func() error {
		done, err = r.runExclusively(ctx, false)
		return err
	})
	return done, err
}

func (r *Retainer) runExclusively(ctx context.Context, due bool) (*Result, error) {
	run := run{Retainer: r, isDaily: due}
	if err := run.do(ctx); err != nil {
		return &run.done, fmt.Errorf("retention: %w", err)
	}
	return &run.done, r.inTx(ctx, func(q queries) error { return q.RetentionNote(ctx, dayNumber(run.today)) })
}

const (
	dailyAfter = 10 * time.Second // time from the start of an instance to its first run: a starting instance has other work
	dailyTry   = 10 * time.Minute // pause between checks whether a day has ended, and between retries
)

// Daily runs retention once a day until ctx ends. If several instances share a database, only the first instance that
// finds retention due runs retention.
func (r *Retainer) Daily(ctx context.Context) {
	for wait := dailyAfter; r.pause(ctx, wait) == nil; wait = dailyTry {
		done, err := r.IfDue(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrRunning):
			continue
		case err != nil:
			r.log.Error("retention failed, so some rows that no app keeps are still stored; trying again", "in", dailyTry, "error", err)
		}
		if done == nil || len(done.Closed)+len(done.Dropped)+len(done.Visits)+len(done.Forgotten) == 0 {
			continue
		}
		var visits, visitors int64
		for _, v := range done.Visits {
			visits += v.Visits
		}
		for _, f := range done.Forgotten {
			visitors += f.Visitors
		}
		r.log.Info("deleted data that no app keeps any longer", "days_closed", len(done.Closed), "days_dropped", len(done.Dropped),
			"visits_deleted", visits, "visitors_forgotten", visitors)
	}
}

// IfDue runs retention like Run, unless retention has already completed for the last day that has ended in all time
// zones. If retention has already completed, IfDue returns nil.
func (r *Retainer) IfDue(ctx context.Context) (done *Result, err error) {
	is, err := r.isDone(ctx)
	if is || err != nil {
		return nil, err
	}
	err = r.RunLocked(ctx, func() error {
		if is, err := r.isDone(ctx); is || err != nil { // another instance has run retention in the meantime
			return err
		}
		done, err = r.runExclusively(ctx, true)
		return err
	})
	return done, err
}

func (r *Retainer) isDone(ctx context.Context) (is bool, err error) {
	err = r.read(ctx, func(q queries) error {
		is, err = q.RetentionDone(ctx, dayNumber(r.today()))
		return err
	})
	return is, err
}

// RunLocked runs f while it holds the lock of retention. If another process holds the lock, it returns ErrRunning. If the
// connection that holds the lock is lost, a second process may run retention concurrently. This does no harm, because every
// step can be repeated.
func (r *Retainer) RunLocked(ctx context.Context, f func() error) error {
	mine, err := r.db.RunAlone(ctx, db.Retaining, f)
	if err == nil && !mine {
		err = ErrRunning
	}
	return err
}

// lateBy is the time after the end of a day during which the day's last visits may still be written.
const lateBy = 10 * time.Minute

// today returns the date in the westernmost time zone (UTC-12) at the time lateBy ago. So the day before this date
// has ended in all time zones.
func (r *Retainer) today() time.Time {
	return r.clock().UTC().Add(-12*time.Hour - lateBy).Truncate(24 * time.Hour)
}

// yesterday returns the previous day in UTC. Partitions of this day and later days are never dropped, even if they are empty:
// an instance with a slow clock may need them.
func (r *Retainer) yesterday() int32 { return daysBefore(r.clock().UTC(), 1) }

func dayNumber(t time.Time) int32 { return visit.DayOf(t, time.UTC) }

func daysBefore(t time.Time, n int32) int32 { return dayNumber(t.AddDate(0, 0, -int(n))) }

// run is one run of retention.
type run struct {
	*Retainer
	// today is set by readKept, and stays the same during the run. If today changed at midnight, the run would forget
	// visitors whose visits are kept.
	today        time.Time
	isDryRun     bool // only count the data to delete
	isDaily      bool // this is the daily run, which skips the method forget if forget has already completed today
	apps         []appRetention
	days         []int32 // days that have ended and have a partition
	firstBusyDay int32   // the first day that could not be dropped because it is in use; 0: none
	done         Result
}

// appRetention is an app with the range of visits that it keeps.
type appRetention struct {
	RetentionAppsRow
	keptFrom int32 // the first day whose visits are kept after this run: FromDay or later
}

// do runs all steps. Their order leaves the tables consistent if the run is interrupted. For example, closeDays closes a day
// before the day's rows are deleted. And noteKept records which days lose their rows before the first row is deleted.
func (r *run) do(ctx context.Context) error {
	if err := r.readKept(ctx); err != nil {
		return err
	}
	var busy error // the error if a day is in use or an app is paused; the other steps still run
	for _, step := range []func(context.Context) error{r.closeDays, r.packReturns, r.noteKept, r.dropDays, r.deleteVisits, r.forget,
		r.forgetLogs} {
		err := step(ctx)
		if db.FaultOf(err) == db.FaultBusy {
			busy, err = err, nil
		}
		if err != nil {
			return err
		}
	}
	return busy
}

// eachApp calls do for each app for which retention is not paused. If do fails because retention has been paused for
// an app in the meantime, all further steps skip the app. eachApp then continues with the other apps, and returns the
// error at the end.
func (r *run) eachApp(do func(app *appRetention) error) error {
	var busy error
	for i := range r.apps {
		app := &r.apps[i]
		if app.Paused {
			continue
		}
		err := do(app)
		switch {
		case db.FaultOf(err) == db.FaultBusy:
			app.Paused, busy = true, err
		case err != nil:
			return err
		}
	}
	return busy
}

// readKept reads which visits each app keeps and which days exist, and sets today.
func (r *run) readKept(ctx context.Context) error {
	r.today = r.Retainer.today()
	return r.read(ctx, func(q queries) error {
		r.apps = nil
		apps, err := q.RetentionApps(ctx)
		if err != nil {
			return err
		}
		for _, app := range apps {
			k := appRetention{app, app.FromDay}
			if app.RetainDays > 0 && !app.Paused {
				due := daysBefore(r.today, app.RetainDays)
				// If an app has no visits to delete, k.keptFrom stays at FromDay, because no visit from FromDay on is
				// missing then.
				counted, err := q.AppCountedBetween(ctx, AppCountedBetweenParams{AppID: app.ID, FromDay: app.FromDay, Before: due})
				if err != nil {
					return err
				}
				if counted {
					k.keptFrom = due
				}
			}
			r.apps = append(r.apps, k)
		}
		r.days, err = q.VisitsDays(ctx, 0, daysBefore(r.today, 1))
		return err
	})
}

// queries combines the queries of this package with those of package db.
type queries struct {
	*Queries
	*shared
}

type shared = db.Queries

func (r *Retainer) read(ctx context.Context, f func(q queries) error) error {
	return r.db.Read(ctx, func(q *db.Queries) error { return f(queries{New(q.Tx()), q}) })
}

func (r *Retainer) inTx(ctx context.Context, f func(q queries) error) error {
	return r.db.InTx(ctx, func(q *db.Queries) error { return f(queries{New(q.Tx()), q}) })
}

// inLongTx runs f in a transaction without a statement timeout.
func (r *Retainer) inLongTx(ctx context.Context, f func(q queries) error) error {
	return r.inTx(ctx, func(q queries) error {
		if err := q.EraseBegin(ctx); err != nil {
			return err
		}
		return f(q)
	})
}
