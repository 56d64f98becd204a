// Package retention is the daily task: it closes days that are over (closedays.go), deletes the rows
// of visits that no app keeps any longer, and forgets visitors who have not come for long, and lines
// of logs. Sums, ranks and daily numbers stay.
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

// Retainer deletes and forgets what the apps of a database do not keep any longer. It is safe for
// concurrent use.
type Retainer struct {
	db    *db.DB
	clock func() time.Time
	pause func(context.Context, time.Duration) error
	log   *slog.Logger

	forgotOn atomic.Int32 // the last day on which all visitors were forgotten who are to be
}

// Options of NewRetainer. The zero value of a field means its default.
type Options struct {
	Clock func() time.Time                           // default: the database's, as db.DB.Now tells it
	Pause func(context.Context, time.Duration) error // waits before something is tried again; default: as long as it is told
	Log   *slog.Logger                               // default: nowhere
}

// NewRetainer returns a Retainer of a database.
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

// Done is what was deleted and forgotten, or would be.
type Done struct {
	Closed    []int32 // days of which the sketches were made, on which uniques rest once their rows are deleted
	Visits    []VisitsDeleted
	Dropped   []DayDropped
	Forgotten []VisitorsForgotten
}

// VisitsDeleted says how many rows of visits of an app and a day were deleted.
type VisitsDeleted struct {
	Day    int32
	App    string
	Visits int64
}

// DayDropped is a day that no app keeps. Its partition was dropped as a whole.
type DayDropped struct {
	Day   int32
	Bytes int64
}

// VisitorsForgotten says how many (target, visitor) pairs of an app were forgotten, since the
// visitor has not come to the site since the day Before.
type VisitorsForgotten struct {
	App      string
	Before   int32
	Visitors int64
}

// ErrRunning says that retention runs already, in another instance or by a command.
var ErrRunning = errors.New("retention runs at this moment, in another instance or by a command: try again when it has ended")

// Plan tells what Run would do, and changes nothing.
func (r *Retainer) Plan(ctx context.Context) (*Done, error) {
	run := run{Retainer: r, dry: true}
	err := run.do(ctx)
	if err != nil {
		err = fmt.Errorf("plan retention: %w", err)
	}
	return &run.done, err
}

// Run deletes and forgets all that need not be kept. It returns ErrRunning if retention runs
// already. Beside another error it returns what it has done so far; it can be run again, however
// far it came.
func (r *Retainer) Run(ctx context.Context) (done *Done, err error) {
	err = r.InTurn(ctx, func() error {
		done, err = r.runAlone(ctx, false)
		return err
	})
	return done, err
}

func (r *Retainer) runAlone(ctx context.Context, due bool) (*Done, error) {
	run := run{Retainer: r, due: due}
	if err := run.do(ctx); err != nil {
		return &run.done, fmt.Errorf("retention: %w", err)
	}
	return &run.done, r.inTx(ctx, func(q queries) error { return q.RetentionNote(ctx, dayNumber(run.today)) })
}

const (
	dailyAfter = 10 * time.Second // the start of the instance, which has enough else to do
	dailyTry   = 10 * time.Minute // between checks whether a day has ended, and between tries
)

// Daily runs retention once a day until ctx ends. Of several instances on a database, the first
// that comes to it does.
func (r *Retainer) Daily(ctx context.Context) {
	for wait := dailyAfter; r.pause(ctx, wait) == nil; wait = dailyTry {
		done, err := r.IfDue(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrRunning):
			continue
		case err != nil:
			r.log.Error("retention failed, so some rows that no app keeps are still there; it is tried again", "in", dailyTry, "error", err)
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
		r.log.Info("deleted what no app keeps any longer", "days_closed", len(done.Closed), "days_dropped", len(done.Dropped),
			"visits_deleted", visits, "visitors_forgotten", visitors)
	}
}

// IfDue is Run, unless retention was complete since the last day ended everywhere: then it returns
// nil.
func (r *Retainer) IfDue(ctx context.Context) (done *Done, err error) {
	is, err := r.isDone(ctx)
	if is || err != nil {
		return nil, err
	}
	err = r.InTurn(ctx, func() error {
		if is, err := r.isDone(ctx); is || err != nil { // another instance has done so meanwhile
			return err
		}
		done, err = r.runAlone(ctx, true)
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

// InTurn runs f while retention runs nowhere else, or returns ErrRunning. Should the connection be
// lost that keeps others from it, retention may run twice at once, which does no harm: each step
// may be done again.
func (r *Retainer) InTurn(ctx context.Context, f func() error) error {
	mine, err := r.db.Alone(ctx, db.Retaining, f)
	if err == nil && !mine {
		err = ErrRunning
	}
	return err
}

// lateBy is for how long after the end of a day visits of it may still be written: those that were
// under way.
const lateBy = 10 * time.Minute

// today returns the day in the time zone in which days begin last, so that the day before it is
// over everywhere.
func (r *Retainer) today() time.Time {
	return r.clock().UTC().Add(-12*time.Hour - lateBy).Truncate(24 * time.Hour)
}

// yesterday returns the first day whose partition is not dropped even if it is empty: an instance
// whose clock is slow may need it.
func (r *Retainer) yesterday() int32 { return daysBefore(r.clock().UTC(), 1) }

func dayNumber(t time.Time) int32 { return visit.DayOf(t, time.UTC) }

func daysBefore(t time.Time, n int32) int32 { return dayNumber(t.AddDate(0, 0, -int(n))) }

// run is one run of retention.
type run struct {
	*Retainer
	// today stays that of readKept, however long the run takes: by a later day visitors would be
	// forgotten whose visits are kept.
	today time.Time
	dry   bool // only count what would be deleted and forgotten
	due   bool // it runs once a day, and again on that day for what is left: visitors are not read twice
	apps  []keeping
	days  []int32 // days that are over and have a partition
	left  int32   // the first of them that is still to be dropped, as it is in use; 0: none
	done  Done
}

// keeping is what an app keeps.
type keeping struct {
	RetentionAppsRow
	to int32 // the day from which on its visits are to be kept: FromDay, or a later one
}

// do takes the steps in an order that leaves the tables right wherever it ends: a day is closed
// before its rows are deleted, and it is noted that they are not all there before the first of them
// is.
func (r *run) do(ctx context.Context) error {
	if err := r.readKept(ctx); err != nil {
		return err
	}
	var busy error // a day that is in use; the other steps do not wait for it
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

// eachApp does something for each app that is not paused. Where a pause of one has begun meanwhile,
// nothing more is done for it; that error is returned when it has been done for the others.
func (r *run) eachApp(do func(app *keeping) error) error {
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

// readKept reads what each app keeps, and which days there are, and sets the day of the run.
func (r *run) readKept(ctx context.Context) error {
	r.today = r.Retainer.today()
	return r.read(ctx, func(q queries) error {
		r.apps = nil
		apps, err := q.RetentionApps(ctx)
		if err != nil {
			return err
		}
		for _, app := range apps {
			k := keeping{app, app.FromDay}
			if app.RetainDays > 0 && !app.Paused {
				due := daysBefore(r.today, app.RetainDays)
				// An app without visits to delete keeps its first day: all of its visits are there.
				counted, err := q.AppCountedBetween(ctx, AppCountedBetweenParams{AppID: app.ID, FromDay: app.FromDay, Before: due})
				if err != nil {
					return err
				}
				if counted {
					k.to = due
				}
			}
			r.apps = append(r.apps, k)
		}
		r.days, err = q.VisitsDays(ctx, 0, daysBefore(r.today, 1))
		return err
	})
}

// queries are those that the daily task alone asks, and those that others ask, too.
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

// inLongTx runs f in a transaction whose statements may take long.
func (r *Retainer) inLongTx(ctx context.Context, f func(q queries) error) error {
	return r.inTx(ctx, func(q queries) error {
		if err := q.EraseBegin(ctx); err != nil {
			return err
		}
		return f(q)
	})
}
