package retention

import (
	"context"
	"errors"
	"time"

	"footfall/db"
)

const (
	dailyAfter = 10 * time.Second // the start, which has enough to do
	dailyTry   = 10 * time.Minute // between looks whether a day has ended or something failed
)

// Daily lets go once a day, until ctx ends, whichever of the instances on a database comes first.
func (r *Retainer) Daily(ctx context.Context) {
	for wait := dailyAfter; r.pause(ctx, wait) == nil; wait = dailyTry {
		done, err := r.IfDue(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrRunning):
			continue
		case err != nil:
			r.log.Error("some of what need not be kept is still there; it is tried again", "in", dailyTry, "error", err)
		}
		if done.some() {
			r.log.Info("let go of what no app keeps", "days_closed", len(done.Closed), "days_dropped", len(done.Dropped),
				"visits", done.visits(), "visitors", done.visitors())
		}
	}
}

// IfDue is Run, unless some instance has done so since the day ended everywhere: then it returns nil.
func (r *Retainer) IfDue(ctx context.Context) (done *Done, err error) {
	is, err := r.isDone(ctx)
	if is || err != nil {
		return nil, err
	}
	err = r.inTurn(ctx, func() error {
		if is, err := r.isDone(ctx); is || err != nil { // while this one came to its turn
			return err
		}
		done, err = r.run(ctx)
		return err
	})
	return done, err
}

func (r *Retainer) isDone(ctx context.Context) (is bool, err error) {
	err = r.db.Read(ctx, func(q *db.Queries) error {
		is, err = q.RetentionDone(ctx, dayNumber(r.today()))
		return err
	})
	return is, err
}

func (r *Done) some() bool {
	return r != nil && len(r.Closed)+len(r.Dropped)+len(r.Visits)+len(r.Forgotten) > 0
}

func (r *Done) visits() (sum int64) {
	for _, v := range r.Visits {
		sum += v.Visits
	}
	return sum
}

func (r *Done) visitors() (sum int64) {
	for _, f := range r.Forgotten {
		sum += f.Visitors
	}
	return sum
}
