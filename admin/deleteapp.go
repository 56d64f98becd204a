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
	if err := a.atLength(ctx, name, func(q queries, row *db.App) error {
		if err := inTurn(ctx, row.ID, q.PeopleLock, q.AppPeopleDelete); err != nil {
			return err
		}
		return q.AppPeopleDelete(ctx, row.ID) // again, as it says
	}); err != nil {
		return err
	}
	// The rows that are many, without locks that others wait for; then what is left.
	if err := a.inErasure(ctx, name, func(q queries, row *db.App) error {
		return inTurn(ctx, row.ID, q.AppDaysHold, q.AppRowsDelete)
	}); err != nil {
		return err
	}
	return a.inErasure(ctx, name, func(q queries, row *db.App) error {
		if err := deleteAll(ctx, q, row); err != nil {
			return err
		}
		return q.AppDelete(ctx, row.ID)
	})
}

// deleteAll deletes what is left. The lock of the app keeps others from making pages of it, and the
// locks of its counters from counting: a visit that was under way is counted and then deleted, or
// does not find its pages any more.
func deleteAll(ctx context.Context, q queries, row *db.App) error {
	if err := q.AppDaysHold(ctx, row.ID); err != nil {
		return err
	}
	// In the order in which batches that make pages take these locks.
	if _, err := q.PagesTallyLock(ctx, row.ID, 0); err != nil {
		return err
	}
	if _, err := q.AppLock(ctx, row.Name); err != nil {
		return err
	}
	if err := q.TagsHold(ctx); err != nil {
		return err
	}
	return inTurn(ctx, row.ID, q.QueuesHold, q.AppPositionsDelete, q.RefusedDelete, q.LinesHold, q.LinesDelete, q.AppCountersTake,
		q.AppRowsDelete, q.AppTargetsDelete, q.AppOffsetsDelete, q.AppRestDelete)
}

// inTurn runs steps on an app, up to the first error.
func inTurn(ctx context.Context, app int32, steps ...func(context.Context, int32) error) error {
	for _, step := range steps {
		if err := step(ctx, app); err != nil {
			return err
		}
	}
	return nil
}
