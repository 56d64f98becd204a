package admin

import (
	"context"
	"errors"

	"footfall/db"
)

// DeleteApp deletes an app with everything that was counted or accepted for it.
func (a *Admin) DeleteApp(ctx context.Context, name string) error {
	err := a.RunErasing(ctx, name, func(ctx context.Context, a *Admin) error { return a.deleteApp(ctx, name) })
	return a.changed(ctx, "delete app "+name, err)
}

func (a *Admin) deleteApp(ctx context.Context, name string) error {
	err := a.withApp(ctx, name, func(q queries, row *db.App) error {
		if err := q.wholly(ctx, row); err != nil {
			return err
		}
		// The inbox is locked before anything that raises the epoch of apps, as in SetApp, so that no two commands wait for
		// each other. Visits that wait to write to the inbox then find the app closed.
		if err := q.InboxHold(ctx); err != nil {
			return err
		}
		if err := q.note(ctx, name, "app", row.Name, "deleted"); err != nil {
			return err
		}
		return q.AppClose(ctx, row.ID)
	})
	if err != nil && !errors.Is(err, errBeingDeleted) { // another command was killed while it deleted the app
		return err
	}
	// Once no instance counts for the app, the next steps delay no visits. If an instance does not respond, the locks of the
	// last step wait for it.
	if err := a.db.WaitForInstances(ctx, instancesWithin); err != nil && !errors.Is(err, db.ErrInstancesBehind) {
		return err
	}
	if _, err := a.CountAccepted(ctx, name); err != nil {
		return err
	}
	if err := a.atLength(ctx, name, func(q queries, row *db.App) error { return q.AppPeopleDelete(ctx, row.ID) }); err != nil {
		return err
	}
	// Delete the large tables first, without locks that other transactions need, then the rest.
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
