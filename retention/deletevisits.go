package retention

import (
	"context"
	"fmt"
	"time"

	"footfall/db"
)

const (
	visitsAtOnce = 5000 // maximum number of rows that a transaction deletes; no arriving visit waits for the transaction

	// A day's partition is in use while a report reads it. Each attempt to drop it may block counting for up to 100 ms. The
	// pauses between the attempts double. Six attempts take longer than any report, which is cancelled after five seconds. If
	// another reader needs longer, the partition stays until the next run.
	dropTries = 6
	dropPause = 250 * time.Millisecond
)

// noteKept records the first day from which each app keeps its visits. This happens before any visits are deleted. If
// retention was paused for an app in the meantime, this run deletes no visits of the app.
func (r *run) noteKept(ctx context.Context) error {
	return r.eachApp(func(app *appRetention) error {
		if r.isDryRun || app.keptFrom == app.FromDay {
			return nil
		}
		err := r.inLongTx(ctx, func(q queries) error {
			return q.VisitsKeepFrom(ctx, app.ID, app.keptFrom)
		})
		if err != nil {
			app.keptFrom = app.FromDay
		}
		return err
	})
}

// dropDays drops the partitions of days that no app keeps. A query for visits uses all partitions, so if one partition is in
// use, the later ones are in use, too. Then dropDays drops no more partitions, and returns the error at the end. The next run
// drops the remaining partitions.
func (r *run) dropDays(ctx context.Context) error {
	var keep DayIsKeptParams
	for _, app := range r.apps {
		keep.Apps, keep.FromDays = append(keep.Apps, app.ID), append(keep.FromDays, app.keptFrom)
	}
	var busy error
	var kept []int32
	for _, day := range r.days {
		if day >= r.yesterday() {
			kept = append(kept, day)
			continue
		}
		keep.Day = day
		var isKept bool
		err := r.read(ctx, func(q queries) (err error) { isKept, err = q.DayIsKept(ctx, keep); return err })
		if err != nil {
			return err
		}
		if isKept {
			kept = append(kept, day)
			continue
		}
		if busy != nil {
			continue
		}
		dropped, err := r.dropDay(ctx, day)
		switch {
		case db.FaultOf(err) == db.FaultBusy:
			r.firstBusyDay, busy = day, fmt.Errorf("drop day %d: %w", day, err)
		case err != nil:
			return fmt.Errorf("drop day %d: %w", day, err)
		case !dropped: // a late visit to the day was counted in the meantime
			kept = append(kept, day)
		}
	}
	r.days = kept
	return busy
}

// dropDay drops the partition of a day, and records the day in r.done. A dry run only records the day. dropDay
// returns false if the partition is already gone, or if an app keeps the day now.
func (r *run) dropDay(ctx context.Context, day int32) (dropped bool, err error) {
	var rows []VisitsOfDayRow
	var bytes int64
	if err := r.inLongTx(ctx, func(q queries) (err error) {
		if bytes, err = q.DayBytes(ctx, day); err != nil {
			return err
		}
		rows, err = q.VisitsOfDay(ctx, day)
		return err
	}); err != nil {
		return false, err
	}
	if !r.isDryRun {
		if dropped, err = r.dropPatiently(ctx, day); !dropped || err != nil {
			return false, err
		}
	}
	for _, row := range rows {
		r.done.Visits = append(r.done.Visits, VisitsDeleted{day, row.App, row.Visits})
	}
	r.done.Dropped = append(r.done.Dropped, DayDropped{day, bytes})
	return true, nil
}

// dropPatiently drops the partition of a day, and retries while the partition is in use.
func (r *run) dropPatiently(ctx context.Context, day int32) (bool, error) {
	for try := 1; ; try++ {
		var dropped bool
		err := r.inTx(ctx, func(q queries) (err error) { dropped, err = q.DayDrop(ctx, day); return err })
		if db.FaultOf(err) != db.FaultBusy || try == dropTries {
			return dropped, err
		}
		if err := r.pause(ctx, dropPause<<(try-1)); err != nil {
			return false, err
		}
	}
}

// deleteVisits deletes the visit rows of each app on days that this app no longer keeps, but another app keeps. If retention
// was paused for an app in the meantime, the rest of the app's rows stay.
func (r *run) deleteVisits(ctx context.Context) error {
	return r.eachApp(func(app *appRetention) error { return r.deleteVisitsInApp(ctx, app) })
}

func (r *run) deleteVisitsInApp(ctx context.Context, app *appRetention) error {
	for _, day := range r.days {
		if day < app.GoneBefore || day >= app.keptFrom {
			continue
		}
		deleted, err := r.deleteDay(ctx, app, day)
		if deleted > 0 {
			r.done.Visits = append(r.done.Visits, VisitsDeleted{day, app.Name, deleted})
		}
		if err != nil {
			return fmt.Errorf("delete the visits of app %s on day %d: %w", app.Name, day, err)
		}
	}
	gone := app.keptFrom
	if r.firstBusyDay > 0 {
		gone = min(gone, r.firstBusyDay)
	}
	if r.isDryRun || app.GoneBefore >= gone {
		return nil
	}
	return r.inTx(ctx, func(q queries) error {
		return q.VisitsGoneNote(ctx, gone, app.ID)
	})
}

func (r *run) deleteDay(ctx context.Context, app *appRetention, day int32) (deleted int64, err error) {
	if r.isDryRun {
		err = r.inLongTx(ctx, func(q queries) error {
			deleted, err = q.VisitsOfAppOnDay(ctx, day, app.ID)
			return err
		})
		return deleted, err
	}
	p := VisitsDeleteParams{App: app.ID, Day: day, N: visitsAtOnce}
	for {
		var some VisitsDeleteRow
		if err := r.inLongTx(ctx, func(q queries) (err error) { some, err = q.VisitsDelete(ctx, p); return err }); err != nil {
			return deleted, err
		}
		deleted += some.Deleted
		if some.Deleted < visitsAtOnce {
			return deleted, nil
		}
		p.FromPage = some.LastPage
	}
}
