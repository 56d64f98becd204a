package admin

import (
	"context"
	"errors"
	"slices"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// withApp runs f in a transaction that locks an app. In the meantime no other transaction changes or deletes the app, or
// creates pages of the app.
func (a *Admin) withApp(ctx context.Context, name string, f func(q queries, row *db.App) error) error {
	return a.withLockedApp(ctx, name, queries.AppLock, f)
}

// withLockedApp runs f in a transaction that locks an app with lock: AppLock or AppShare. With either lock, the app cannot move to
// another database in the meantime.
func (a *Admin) withLockedApp(ctx context.Context, name string, lock lockQuery, f func(q queries, row *db.App) error) error {
	return a.inTx(ctx, func(q queries) error {
		row, err := q.lockApp(ctx, name, lock)
		if err != nil {
			return err
		}
		return f(q, row)
	})
}

// lockQuery is a query that locks an app.
type lockQuery func(q queries, ctx context.Context, name string) (db.App, error)

// lockApp locks an app. It returns an error if the app is moving, has moved, or is being deleted.
func (q queries) lockApp(ctx context.Context, name string, lock lockQuery) (*db.App, error) {
	row, err := lock(q, ctx, name)
	switch {
	case err != nil:
		return nil, replaceNoRows(err, app.NoApp(name))
	case row.DeletedAt != nil:
		return nil, errBeingDeleted
	case row.Cell != nil:
		return nil, app.InCell(name, *row.Cell)
	case row.MovingTo != nil:
		return nil, errMoving(&row)
	}
	return &row, nil
}

var errBeingDeleted = visit.Errorf(visit.NotFound, "app",
	"this app is being deleted: if that was interrupted, delete it again to complete it")

// change runs f like withApp, and then waits until every running instance has applied the change. doing describes the action
// in error messages.
func (a *Admin) change(ctx context.Context, doing, name string, f func(q queries, row *db.App) error) error {
	return a.waitForChange(ctx, doing+name, a.withApp(ctx, name, f))
}

// IsBehind reports whether err means that a change is stored, but some instance has not confirmed it yet.
func IsBehind(err error) bool { return errors.Is(err, db.ErrInstancesBehind) }

// waitForChange waits until every running instance has applied a change. err is the error of the change. If err is not nil,
// waitForChange does not wait, but returns err with the action added by wrap.
func (a *Admin) waitForChange(ctx context.Context, doing string, err error) error {
	if err != nil {
		return wrap(doing, err)
	}
	return a.db.WaitForInstances(ctx, instancesWithin)
}

// findApp returns an app by its name. It returns an error if the app is in a cell.
func findApp(ctx context.Context, q queries, name string) (*db.App, error) {
	apps, err := q.AppsList(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(apps, func(row db.App) bool { return row.Name == name })
	if at < 0 {
		return nil, app.NoApp(name)
	}
	if cell := apps[at].Cell; cell != nil {
		return nil, app.InCell(name, *cell)
	}
	return &apps[at], nil
}

// read runs f for an app on a connection for reading. f runs without a transaction, and may run twice (db.DB.Read).
func (a *Admin) read(ctx context.Context, name string, f func(q queries, row *db.App) error) error {
	return a.db.Read(ctx, func(shared *db.Queries) error {
		q := queries{Queries: New(shared.Tx()), shared: shared}
		row, err := findApp(ctx, q, name)
		if err != nil {
			return err
		}
		return f(q, row)
	})
}
