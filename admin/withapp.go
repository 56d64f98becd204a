package admin

import (
	"context"
	"errors"
	"slices"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// withApp runs f in a transaction that locks an app: nobody else changes it, makes pages of it, or
// deletes it.
func (a *Admin) withApp(ctx context.Context, name string, f func(q queries, row *db.App) error) error {
	return a.holding(ctx, name, queries.AppLock, f)
}

// holding runs f in a transaction that locks an app in one of two ways: it stays here as long.
func (a *Admin) holding(ctx context.Context, name string, lock locking, f func(q queries, row *db.App) error) error {
	return a.inTx(ctx, func(q queries) error {
		row, err := q.held(ctx, name, lock)
		if err != nil {
			return err
		}
		return f(q, row)
	})
}

// locking is a query that locks an app.
type locking func(q queries, ctx context.Context, name string) (db.App, error)

// held locks an app, unless it is about to leave, or has left.
func (q queries) held(ctx context.Context, name string, lock locking) (*db.App, error) {
	row, err := lock(q, ctx, name)
	switch {
	case err != nil:
		return nil, noRow(err, app.NoApp(name))
	case row.DeletedAt != nil:
		return nil, errBeingDeleted
	case row.Cell != nil:
		return nil, app.InCell(name, *row.Cell)
	case row.MovingTo != nil:
		return nil, onItsWay(&row)
	}
	return &row, nil
}

var errBeingDeleted = visit.Errorf(visit.NotFound, "app",
	"this app is being deleted: if that was interrupted, delete it again to complete it")

// change is withApp, and returns when every running instance knows of the change. doing says what is
// done to the app.
func (a *Admin) change(ctx context.Context, doing, name string, f func(q queries, row *db.App) error) error {
	return a.changed(ctx, doing+name, a.withApp(ctx, name, f))
}

// IsBehind reports whether a change was made, though some instance has not answered yet that it knows
// of it.
func IsBehind(err error) bool { return errors.Is(err, db.ErrInstancesBehind) }

// changed returns when every running instance knows of a change, if that was made.
func (a *Admin) changed(ctx context.Context, doing string, err error) error {
	if err != nil {
		return wrap(doing, err)
	}
	return a.db.WaitForInstances(ctx, instancesWithin)
}

// appOf returns an app by its name.
func appOf(ctx context.Context, q queries, name string) (*db.App, error) {
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

// read runs f on an app that nothing is changed of.
func (a *Admin) read(ctx context.Context, name string, f func(q queries, row *db.App) error) error {
	return a.db.Read(ctx, func(shared *db.Queries) error {
		q := queries{Queries: New(shared.Tx()), shared: shared}
		row, err := appOf(ctx, q, name)
		if err != nil {
			return err
		}
		return f(q, row)
	})
}
