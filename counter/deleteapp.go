package counter

import (
	"context"
	"errors"

	"footfall/db"
)

// DeleteApp deletes an app and all that was counted for it.
func (a *Admin) DeleteApp(ctx context.Context, name string) error {
	if err := a.deleteApp(ctx, name); err != nil {
		return wrap("delete app "+name, err)
	}
	return a.db.WaitForInstances(ctx, instancesWithin)
}

func (a *Admin) deleteApp(ctx context.Context, name string) error {
	err := a.withApp(ctx, name, func(q *db.Queries, row *db.App) error { return q.AppClose(ctx, row.ID) })
	if err != nil && !errors.Is(err, errBeingDeleted) { // by a command that was killed
		return err
	}
	// Once no instance counts for it any more, what follows makes nobody wait. An instance that does not answer is waited for by
	// the locks of the last step.
	if err := a.db.WaitForInstances(ctx, instancesWithin); err != nil && !errors.Is(err, db.ErrInstancesBehind) {
		return err
	}
	for _, step := range []func(context.Context, *db.Queries, string) error{deleteRows, deleteAll} {
		if err := a.erasing(ctx, func(q *db.Queries) error { return step(ctx, q, name) }); err != nil {
			return err
		}
	}
	return nil
}

// deleteRows deletes what takes long.
func deleteRows(ctx context.Context, q *db.Queries, name string) error {
	row, err := appOf(ctx, q, name)
	if err != nil {
		return err
	}
	return inTurn(ctx, row.ID, q.AppVisitsDelete, q.AppVisitorsDelete, q.AppSketchesDelete)
}

// deleteAll deletes what is left. The lock of the app keeps everybody from making pages of it, those of its counters from counting: a
// visit that was under way has been counted and is deleted, or finds that its pages are gone.
func deleteAll(ctx context.Context, q *db.Queries, name string) error {
	row, err := appOf(ctx, q, name)
	if err != nil {
		return err
	}
	// In the order of those who make pages.
	if _, err := q.PagesTallyLock(ctx, db.PagesTallyLockParams{AppID: row.ID}); err != nil {
		return err
	}
	if _, err := q.AppLock(ctx, name); err != nil {
		return err
	}
	return inTurn(ctx, row.ID, q.AppCountersTake, q.AppVisitsDelete, q.AppVisitorsDelete, q.AppErasedVisitsDelete,
		q.AppErasedVisitorsDelete, q.AppDaysDelete, q.AppReturnsDelete, q.AppSketchesDelete,
		q.AppTopsDelete, q.AppKeptDelete, q.AppCountersDelete, q.AppPagesDelete, q.AppTallyDelete, q.AppKeysDelete, q.AppDelete)
}

// inTurn does what is to be done to an app, up to the first error.
func inTurn(ctx context.Context, app int32, steps ...func(context.Context, int32) error) error {
	for _, step := range steps {
		if err := step(ctx, app); err != nil {
			return err
		}
	}
	return nil
}
