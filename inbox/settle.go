package inbox

import (
	"context"
	"errors"
	"time"

	"footfall/db"
	"footfall/pause"
	"footfall/visit"
)

// settleWithin is how long settling goes on while nothing is counted, here or by another instance.
const settleWithin = time.Minute

// settle counts all visits of an app that were accepted before, unless another instance does, and
// returns how many these were. Whatever is put aside meanwhile waits in a turn before the last one,
// too, and is tried each second.
func (d *drainer) settle(ctx context.Context, app int32) (waited int64, err error) {
	waited, err = Behind(ctx, d.db, app)
	if err != nil || waited == 0 {
		return waited, err
	}
	now, err := d.look(ctx)
	if err == nil {
		_, err = d.close(ctx)
	}
	var failed error
	for left, progress := int64(-1), time.Now(); err == nil && ctx.Err() == nil; {
		var still db.InboxUncountedRow
		asked := db.InboxUncountedParams{App: app, Turn: now.Turn}
		err = read(ctx, d.db, func(q *db.Queries) (err error) { still, err = q.InboxUncounted(ctx, asked); return err })
		if err != nil || still.OfApp == 0 {
			return waited, err
		}
		switch {
		case still.OfAll != left:
			left, progress = still.OfAll, time.Now()
		case time.Since(progress) > settleWithin:
			return waited, visit.Errorf(visit.Unavailable, "", "visits that were accepted before are not counted yet (%d), and cannot be now; try again", still.OfApp).Because(failed)
		default:
			_ = pause.For(ctx, restFor)
		}
		failed = read(ctx, d.db, func(q *db.Queries) error { return q.InboxTrySoon(ctx, app) })
		if failed == nil {
			_, failed = d.db.Alone(ctx, db.DrainingInbox, func() error { _, err := d.countUntil(ctx, now.Turn); return err })
		}
	}
	return waited, errors.Join(err, ctx.Err())
}
