package admin

import (
	"context"
	"errors"

	"footfall/db"
)

// DeleteApp deletes an app with everything that was counted or accepted for it.
func (a *Admin) DeleteApp(ctx context.Context, name string) error {
	err := a.RunErasing(ctx, name, func(ctx context.Context, a *Admin) error { return a.deleteApp(ctx, name) })
	return a.waitForChange(ctx, "delete app "+name, err)
}

func (a *Admin) deleteApp(ctx context.Context, name string) error {
	err := a.withApp(ctx, name, func(q queries, row *db.App) error {
		if err := q.requireArrived(ctx, row); err != nil {
			return err
		}
		// As in SetApp, lock the inbox before the epoch of apps is raised (AppClose), so that no two commands wait for each other.
		// An instance that waits to write visits to the inbox then finds the app closed.
		if err := q.InboxHold(ctx); err != nil {
			return err
		}
		if err := q.note(ctx, name, "app", row.Name, "deleted"); err != nil {
			return err
		}
		return q.AppClose(ctx, row.ID)
	})
	if err != nil && !errors.Is(err, errBeingDeleted) { // complete the deletion that an interrupted command has begun
		return err
	}
	// Wait until no instance counts for the app. Then the steps below delay no visits. If an instance does not respond in time,
	// continue: the locks of AppRestDelete wait for the instance's batches.
	if err := a.db.WaitForInstances(ctx, instancesWithin); err != nil && !errors.Is(err, db.ErrInstancesBehind) {
		return err
	}
	if _, err := a.CountAccepted(ctx, name); err != nil {
		return err
	}
	if err := a.inLongTx(ctx, name, func(q queries, row *db.App) error { return q.AppPeopleDelete(ctx, row.ID) }); err != nil {
		return err
	}
	// Delete the app's rows in the largest tables first, without locks that other transactions wait for.
	if err := a.inErasure(ctx, name, func(q queries, row *db.App) error { return q.AppRowsDelete(ctx, row.ID) }); err != nil {
		return err
	}
	return a.inErasure(ctx, name, func(q queries, row *db.App) error {
		if err := q.AppRestDelete(ctx, row.ID); err != nil {
			return err
		}
		return q.AppDelete(ctx, row.ID)
	})
}
