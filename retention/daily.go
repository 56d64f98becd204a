package retention

import (
	"context"
	"errors"
	"time"

	"footfall/db"
)

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
	err = r.db.Read(ctx, func(q *db.Queries) error {
		is, err = q.RetentionDone(ctx, dayNumber(r.today()))
		return err
	})
	return is, err
}
