// Package admin is what operators do: they add, change and delete apps, keys, links and notes, set
// numbers that came before, delete pages, and show or erase visitors.
package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// Admin changes apps and keys, erases visitors and deletes pages and apps. Every running instance
// knows of a change when the method returns nil; db.ErrInstancesBehind means that the change is
// made, but some instance has not answered yet.
type Admin struct {
	db     *db.DB
	secret app.Secret
}

// New returns an Admin. It needs the secret for apps whose visitors are hashed.
func New(d *db.DB, secret app.Secret) *Admin { return &Admin{d, secret} }

// instancesWithin is how long a change waits for the running instances. It is longer than the
// server takes to notice that one of them has vanished (db.Options.DeadAfter).
const instancesWithin = 15 * time.Second

// AddApp adds an app.
func (a *Admin) AddApp(ctx context.Context, name string, s app.Settings) error {
	if err := app.CheckNew(name, s); err != nil {
		return err
	}
	err := a.db.InTx(ctx, func(q *db.Queries) error {
		row, err := q.AppAdd(ctx, name)
		if errors.Is(err, db.ErrNoRows) {
			return visit.Errorf(visit.Invalid, "name", "there is an app %s already: change that one, or choose another name", name)
		}
		if err != nil {
			return err
		}
		if err := s.Apply(&row, a.secret); err != nil {
			return err
		}
		return setApp(ctx, q, &row)
	})
	if err != nil {
		return wrap("add app "+name, err)
	}
	return a.db.WaitForInstances(ctx, instancesWithin)
}

// SetApp changes an app's settings.
func (a *Admin) SetApp(ctx context.Context, name string, s app.Settings) error {
	err := a.withApp(ctx, name, func(q *db.Queries, row *db.App) error {
		was := *row
		if err := s.Apply(row, a.secret); err != nil {
			return err
		}
		if was.CountsBy() != row.CountsBy() { // as visits that are accepted meanwhile must not do
			if err := q.InboxHold(ctx); err != nil {
				return err
			}
		}
		counts, err := q.AppCounts(ctx, row.ID)
		if err != nil {
			return err
		}
		if counts {
			if err := app.CheckFixed(&was, row); err != nil {
				return err
			}
		}
		return setApp(ctx, q, row)
	})
	if err != nil {
		return wrap("set app "+name, err)
	}
	return a.db.WaitForInstances(ctx, instancesWithin)
}

func setApp(ctx context.Context, q *db.Queries, row *db.App) error {
	return q.AppSet(ctx, db.AppSetParams{
		ID: row.ID, Tz: row.Tz, Ipv6Prefix: row.Ipv6Prefix, Access: row.Access, Sites: row.Sites, KeepQuery: row.KeepQuery,
		Visitor: row.Visitor, SecretID: row.SecretID, RespectDnt: row.RespectDnt, Bots: row.Bots, Ignore: row.Ignore,
		MaxRequests: row.MaxRequests, MaxNewPages: row.MaxNewPages,
		RetainDays: row.RetainDays, ForgetDays: row.ForgetDays, PublicCounts: row.PublicCounts,
	})
}

// demo is the app that is there to try out with.
const demo = "demo"

// IsDemo reports whether an app is the one to try out with, and anybody may still count for it.
func IsDemo(row db.App) bool {
	return row.Name == demo && row.Access == app.AccessOpen && len(row.Sites) == 0
}

// AddDemo adds the app for trying out, which is open to everybody, to a database that has never had
// an app. Once it was deleted, or somebody has begun with an app of their own, nobody gets an open
// app that they did not ask for.
func (a *Admin) AddDemo(ctx context.Context) error {
	var changes int64
	err := a.db.Read(ctx, func(q *db.Queries) (err error) { changes, err = q.AppsEpoch(ctx); return err })
	if err != nil {
		return fmt.Errorf("look whether there was ever an app: %w", err)
	}
	if changes > 0 {
		return nil
	}
	open := app.AccessOpen
	if err := a.AddApp(ctx, demo, app.Settings{Access: &open}); !errors.Is(err, db.ErrInstancesBehind) {
		return err
	}
	return nil
}

// App returns the app of a name, with what reports go by. For "" it returns the only app that there
// is, or else the one that counts a site ("": no site is named): one that lists it, or else one
// that counts any.
func (a *Admin) App(ctx context.Context, name, site string) (db.App, error) {
	apps, err := a.appsToRead(ctx)
	if err != nil {
		return db.App{}, fmt.Errorf("list apps: %w", err)
	}
	if name != "" {
		named := slices.IndexFunc(apps, func(row db.App) bool { return row.Name == name })
		if named < 0 {
			return db.App{}, app.NoApp(name)
		}
		return apps[named], nil
	}
	isApp := slices.ContainsFunc(apps, func(row db.App) bool { return row.Name == site })
	if isApp && !slices.ContainsFunc(apps, func(row db.App) bool { return app.ListsSite(&row, site) }) {
		return db.App{}, visit.Errorf(visit.Invalid, "", "%s is an app, and no site that one lists: name a site, or the app with --app %[1]s", site)
	}
	if len(apps) > 1 && site != "" {
		return appOfSite(apps, site)
	}
	switch len(apps) {
	case 0:
		return db.App{}, visit.Errorf(visit.NotFound, "app", "there is none yet: add one")
	case 1:
		return apps[0], nil
	}
	return db.App{}, visit.Errorf(visit.Invalid, "app", "there are several: name one of %s", namesOf(apps))
}

func (a *Admin) appsToRead(ctx context.Context) (apps []db.App, err error) {
	err = a.db.Report(ctx, func(q *db.Queries) error {
		rows, err := q.AppsToRead(ctx)
		apps = make([]db.App, len(rows))
		for i, row := range rows {
			apps[i] = db.App{ID: row.ID, Name: row.Name, Tz: row.Tz, Ipv6Prefix: row.Ipv6Prefix, Access: row.Access,
				Sites: row.Sites, KeepQuery: row.KeepQuery, Visitor: row.Visitor, SecretID: row.SecretID}
		}
		return err
	})
	return apps, err
}

// appOfSite returns the one among several apps that counts a site.
func appOfSite(apps []db.App, site string) (db.App, error) {
	var listing, counting []db.App
	for _, row := range apps {
		switch {
		case app.ListsSite(&row, site):
			listing = append(listing, row)
		case app.CountsSite(&row, site):
			counting = append(counting, row)
		}
	}
	if len(listing) > 0 {
		counting = listing
	}
	switch len(counting) {
	case 0:
		return db.App{}, visit.Errorf(visit.Invalid, "app", "none of them counts %s: name one of %s", visit.Shown(site), namesOf(apps))
	case 1:
		return counting[0], nil
	}
	return db.App{}, visit.Errorf(visit.Invalid, "app", "several count %s: name one of %s", visit.Shown(site), namesOf(counting))
}

func namesOf(apps []db.App) string {
	var names []string
	for _, row := range apps {
		names = append(names, row.Name)
	}
	return strings.Join(names, ", ")
}

// withApp runs f in a transaction that locks an app: nobody else changes it, makes pages of it, or
// deletes it.
func (a *Admin) withApp(ctx context.Context, name string, f func(q *db.Queries, row *db.App) error) error {
	return a.db.InTx(ctx, func(q *db.Queries) error {
		row, err := q.AppLock(ctx, name)
		if errors.Is(err, db.ErrNoRows) {
			return app.NoApp(name)
		}
		if err != nil {
			return err
		}
		if row.DeletedAt != nil {
			return errBeingDeleted
		}
		return f(q, &row)
	})
}

var errBeingDeleted = visit.Errorf(visit.NotFound, "app", "this app is being deleted: if that was interrupted, delete it again to complete it")

// wrap adds to an error what was being done, unless it is one for callers.
func wrap(doing string, err error) error {
	var verr *visit.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &verr):
		return verr
	}
	return fmt.Errorf("%s: %w", doing, err)
}
