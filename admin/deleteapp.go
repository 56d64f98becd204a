package admin

import (
	"context"
	"errors"

	"footfall/db"
)

// DeleteApp deletes an app with all its data, including visits that were accepted but are not counted yet.
func (a *Admin) DeleteApp(ctx context.Context, name string) error {
	err := a.RunErasing(ctx, name, func(ctx context.Context, a *Admin) error { return a.deleteApp(ctx, name) })
	return a.waitForChange(ctx, "delete app "+name, err)
}

func (a *Admin) deleteApp(ctx context.Context, name string) error {
	err := a.withApp(ctx, name, func(q queries, row *db.App) error {
		if err := q.requireArrived(ctx, row); err != nil {
			return err
		}
		// Lock the inbox before AppClose raises the epoch (version number) of apps. SetApp takes these two locks in the same
		// order, so that the two commands cannot deadlock. An instance that waits to write visits to the inbox then finds the
		// app closed.
		if err := q.InboxHold(ctx); err != nil {
			return err
		}
		if err := q.note(ctx, name, "app", row.Name, "deleted"); err != nil {
			return err
		}
		return q.AppClose(ctx, row.ID)
	})
	if err != nil && !errors.Is(err, errBeingDeleted) { // errBeingDeleted: an earlier command was interrupted, so complete its deletion
		return err
	}
	// Wait until no instance counts for the app, so that the steps below delay no visits. If an instance does not respond in
	// time, continue: AppRestDelete takes locks that wait for this instance's batches.
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
