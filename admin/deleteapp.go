package admin

import (
	"context"
	"errors"

	"footfall/db"
)

// DeleteApp deletes an app and all that was counted for it, or accepted to be.
func (a *Admin) DeleteApp(ctx context.Context, name string) error {
	err := a.RunErasing(ctx, name, func(ctx context.Context, a *Admin) error { return a.deleteApp(ctx, name) })
	return a.changed(ctx, "delete app "+name, err)
}

func (a *Admin) deleteApp(ctx context.Context, name string) error {
	err := a.withApp(ctx, name, func(q queries, row *db.App) error {
		if err := q.wholly(ctx, row); err != nil {
			return err
		}
		// Before anything that raises the epoch of apps, as in SetApp: commands never wait for each
		// other. Visits that wait to be written there then find the app closed.
		if err := q.InboxHold(ctx); err != nil {
			return err
		}
		if err := q.note(ctx, name, "app", row.Name, "deleted"); err != nil {
			return err
		}
		return q.AppClose(ctx, row.ID)
	})
	if err != nil && !errors.Is(err, errBeingDeleted) { // such an app is left by a command that was killed
		return err
	}
	// Once no instance counts for the app any more, nobody waits for what follows. For an instance
	// that does not answer, the locks of the last step wait.
	if err := a.db.WaitForInstances(ctx, instancesWithin); err != nil && !errors.Is(err, db.ErrInstancesBehind) {
		return err
	}
	if _, err := a.CountAccepted(ctx, name); err != nil {
		return err
	}
	if err := a.atLength(ctx, name, func(q queries, row *db.App) error { return q.AppPeopleDelete(ctx, row.ID) }); err != nil {
		return err
	}
	// The rows that are many, without locks that others wait for; then what is left.
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
