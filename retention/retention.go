// Package retention deletes rows that no app keeps any longer: days of visits, and visitors who are to be forgotten. Sums, ranks and
// daily numbers stay.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"footfall/db"
)

// Retainer lets go of what no app keeps: rows of visits, and visitors who are to be forgotten. Sums, ranks and daily numbers stay.
// It is safe for concurrent use.
type Retainer struct {
	db    *db.DB
	clock func() time.Time
	pause func(context.Context, time.Duration) error
	log   *slog.Logger
}

// Options of New. The zero value of a field means its default.
type Options struct {
	Clock func() time.Time                           // default time.Now
	Pause func(context.Context, time.Duration) error // waits before something is tried again; default: as long as it is told
	Log   *slog.Logger                               // default: nowhere
}

// New lets go of what is in a database.
func New(d *db.DB, o Options) *Retainer {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Pause == nil {
		o.Pause = pause
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Retainer{db: d, clock: o.Clock, pause: o.Pause, log: o.Log}
}

// Done is what was let go, or would be.
type Done struct {
	Closed    []int32 // days whose sketches were made, so that their rows may go
	Visits    []VisitsDeleted
	Dropped   []DayDropped
	Forgotten []VisitorsForgotten
}

// VisitsDeleted are the rows of an app on a day.
type VisitsDeleted struct {
	Day    int32
	App    string
	Visits int64
}

// DayDropped is a day that nobody keeps: its partition goes at once.
type DayDropped struct {
	Day   int32
	Bytes int64
}

// VisitorsForgotten are visitors of an app who have not come to a site since a day: how many (target, visitor) pairs.
type VisitorsForgotten struct {
	App      string
	Before   int32
	Visitors int64
}

// ErrRunning says that another instance is at it.
var ErrRunning = errors.New("another instance is letting go at this moment: try again when it has done")

// Plan tells what Run would do, and changes nothing.
func (r *Retainer) Plan(ctx context.Context) (*Done, error) {
	run := retaining{Retainer: r, dry: true}
	err := run.do(ctx)
	if err != nil {
		err = fmt.Errorf("look for what need not be kept: %w", err)
	}
	return &run.done, err
}

// Run lets go of all that need not be kept, unless another instance does: ErrRunning. What it did is told beside an error, too. However
// far it came, it may be done again.
func (r *Retainer) Run(ctx context.Context) (done *Done, err error) {
	err = r.inTurn(ctx, func() error {
		done, err = r.run(ctx)
		return err
	})
	return done, err
}

func (r *Retainer) run(ctx context.Context) (*Done, error) {
	run := retaining{Retainer: r}
	if err := run.do(ctx); err != nil {
		return &run.done, fmt.Errorf("let go of what need not be kept: %w", err)
	}
	return &run.done, r.db.InTx(ctx, func(q *db.Queries) error { return q.RetentionNote(ctx, dayNumber(r.today())) })
}

// inTurn runs f while no other instance does. The turn is a lock of a transaction of its own, which does nothing else; should its
// connection be lost, two instances do beside each other what each may do again.
func (r *Retainer) inTurn(ctx context.Context, f func() error) error {
	return r.db.InTx(ctx, func(q *db.Queries) error {
		mine, err := q.RetainTurn(ctx)
		if err != nil {
			return err
		}
		if !mine {
			return ErrRunning
		}
		return f()
	})
}

// settled is how long after its end a day gets visits still: those that were under way.
const settled = 10 * time.Minute

// today is the day in the last time zone in which it begins, so that the day before is over everywhere.
func (r *Retainer) today() time.Time {
	return r.clock().UTC().Add(-12*time.Hour - settled).Truncate(24 * time.Hour)
}

// yesterday is a day whose partition is there whether anybody came or not: an instance whose clock is slow may want it.
func (r *Retainer) yesterday() int32 { return daysBefore(r.clock().UTC(), 1) }

func dayNumber(t time.Time) int32 {
	return int32(t.Year()*10000 + int(t.Month())*100 + t.Day()) //nolint:gosec // a day like 20190629
}

func daysBefore(t time.Time, n int32) int32 { return dayNumber(t.AddDate(0, 0, -int(n))) }

// retaining is one run, or a dry one.
type retaining struct {
	*Retainer
	dry  bool
	apps []keeping
	days []int32 // that are over and have a partition
	done Done
}

// keeping is what an app keeps.
type keeping struct {
	db.RetentionAppsRow
	to int32 // the day from which on its visits are to be kept: FromDay, or a later one
}

// do does all in an order in which nothing is lost that is needed later: sums of a day before its rows go, and the word that they are
// not all there before that. Whatever it has done stays done when it is ended at any point.
func (r *retaining) do(ctx context.Context) error {
	if err := r.look(ctx); err != nil {
		return err
	}
	var busy error // a day that somebody uses: the rest does not wait for it
	for _, step := range []func(context.Context) error{r.closeDays, r.raise, r.dropDays, r.deleteVisits, r.forget} {
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

// look finds out what each app keeps, and which days there are.
func (r *retaining) look(ctx context.Context) error {
	return r.db.Read(ctx, func(q *db.Queries) error { return r.lookWith(ctx, q) })
}

func (r *retaining) lookWith(ctx context.Context, q *db.Queries) error {
	today := r.today()
	r.apps = nil
	apps, err := q.RetentionApps(ctx)
	if err != nil {
		return err
	}
	for _, app := range apps {
		k := keeping{app, app.FromDay}
		if app.RetainDays > 0 {
			due := daysBefore(today, app.RetainDays)
			// Where it has counted nothing that would go, all that it has stays known to be there.
			counted, err := q.AppCountedBetween(ctx, db.AppCountedBetweenParams{AppID: app.ID, FromDay: app.FromDay, Before: due})
			if err != nil {
				return err
			}
			if counted {
				k.to = due
			}
		}
		r.apps = append(r.apps, k)
	}
	r.days, err = q.VisitsDays(ctx, db.VisitsDaysParams{FirstDay: 0, LastDay: daysBefore(today, 1)})
	return err
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// long runs f in a transaction whose statements may take long.
func (r *Retainer) long(ctx context.Context, f func(q *db.Queries) error) error {
	return r.db.InTx(ctx, func(q *db.Queries) error {
		if err := q.EraseBegin(ctx); err != nil {
			return err
		}
		return f(q)
	})
}
