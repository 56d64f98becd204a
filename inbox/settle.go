package inbox

import (
	"context"
	"errors"
	"math"
	"time"

	"footfall/db"
	"footfall/pause"
	"footfall/visit"
)

// settleWithin is how long settleAll continues if neither it nor another instance counts a visit.
const settleWithin = time.Minute

// settleAll counts all visits of an app that are waiting in the inbox when settleAll is called, and returns their number.
// Another instance may count some of them.
func (d *drainer) settleAll(ctx context.Context, app int32) (waited int64, err error) {
	until := int64(math.MaxInt64)
	var left db.InboxUncountedRow
	look := func() error {
		return read(ctx, d.db, func(q *db.Queries) (err error) { left, err = q.InboxUncounted(ctx, app, until); return err })
	}
	err = look()
	waited, until = left.Visits, left.Last
	var failed error
	for first, progress := left.First, time.Now(); err == nil && left.Visits > 0 && ctx.Err() == nil; err = look() {
		switch {
		case left.First != first:
			first, progress = left.First, time.Now()
		case time.Since(progress) > settleWithin:
			return waited, visit.Errorf(visit.Unavailable, "",
				"visits that were accepted earlier could not be counted yet (%d); try again", left.Visits).Because(failed)
		}
		_, failed = d.db.RunAlone(ctx, db.DrainingInbox, func() error { return d.count(ctx, app) })
		if d.pausedApps[app] != nil || failed != nil {
			_ = pause.For(ctx, restFor)
		}
	}
	return waited, errors.Join(err, ctx.Err())
}
