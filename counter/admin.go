package counter

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"footfall/db"
	"footfall/visit"
)

// Admin changes apps and keys, erases visitors and deletes pages and apps. Every running instance
// knows of a change when the method returns nil; db.ErrInstancesBehind means that the change is
// made, but some instance has not answered yet.
type Admin struct {
	db     *db.DB
	secret Secret
}

// NewAdmin returns an Admin. It needs the secret for apps whose visitors are hashed.
func NewAdmin(d *db.DB, secret Secret) *Admin { return &Admin{d, secret} }

// instancesWithin is how long a change waits for the running instances. It is longer than the
// server takes to notice that one of them has vanished (db.Options.DeadAfter).
const instancesWithin = 15 * time.Second

var appName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// AddApp adds an app.
func (a *Admin) AddApp(ctx context.Context, name string, s Settings) error {
	if err := CheckNewApp(name, s); err != nil {
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
		if err := a.apply(s, &row); err != nil {
			return err
		}
		return setApp(ctx, q, &row)
	})
	if err != nil {
		return wrap("add app "+name, err)
	}
	return a.db.WaitForInstances(ctx, instancesWithin)
}

// CheckNewApp tells what is wrong with a new app, as far as no database is needed for that.
func CheckNewApp(name string, s Settings) error {
	if !appName.MatchString(name) {
		return visit.Errorf(visit.Invalid, "name", "%.64q is not a name for an app: use a–z, 0–9, - and _, at most 63, not beginning with - or _", name)
	}
	return s.make(&db.App{Name: name, Access: accessSites, RetainDays: 1}) // or more, by default: the row knows
}

// SetApp changes an app's settings.
func (a *Admin) SetApp(ctx context.Context, name string, s Settings) error {
	err := a.withApp(ctx, name, func(q *db.Queries, row *db.App) error {
		was := *row
		if err := a.apply(s, row); err != nil {
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
			if err := refuseFixed(&was, row); err != nil {
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

// make changes a row as the settings say, unless nothing could be counted for it then.
func (s Settings) make(row *db.App) error {
	if err := s.apply(row); err != nil {
		return err
	}
	if row.Access != accessOpen && len(row.Sites) == 0 {
		return visit.Errorf(visit.Invalid, "site", "app %s would count nothing: list its sites, or let anybody count any site with access %s", row.Name, accessOpen)
	}
	if row.Access == accessKey && row.PublicCounts == publicCount {
		return visit.Errorf(visit.Invalid, "public-counts", "with access %s nobody counts without a key: write %s, or give another access", accessKey, publicRead)
	}
	return nil
}

// apply is make, with the secret by which visitors are hashed.
func (a *Admin) apply(s Settings, row *db.App) error {
	was := row.Visitor
	if err := s.make(row); err != nil {
		return err
	}
	switch {
	case row.Visitor == byAddress:
		row.SecretID = nil
	case row.Visitor != was && len(a.secret) == 0:
		return visit.Errorf(visit.Invalid, "visitor", "%s visitors are hashed with a secret: give the one that the service has", row.Visitor)
	case row.Visitor != was:
		row.SecretID = a.secret.id()
	}
	return nil
}

// refuseFixed refuses to change settings on which the numbers of an app rest.
func refuseFixed(was, row *db.App) error {
	var f faults
	if row.Tz != was.Tz {
		f.add("tz: app %s has counted days of %s, which stay what they are: add another app for %s", row.Name, was.Tz, row.Tz)
	}
	if row.Visitor != was.Visitor {
		f.add("visitor: app %s has told visitors apart by %s, and they stay what they are: add another app for %s", row.Name, was.Visitor, row.Visitor)
	}
	if row.Ipv6Prefix != was.Ipv6Prefix {
		f.add("ipv6-prefix: app %s has told visitors apart by /%d networks, and they stay what they are: add another app for /%d", row.Name, was.Ipv6Prefix, row.Ipv6Prefix)
	}
	return f.error()
}

// demo is the app that is there to try out with.
const demo = "demo"

// IsDemo reports whether an app is the one to try out with, and anybody may still count for it.
func IsDemo(app db.App) bool {
	return app.Name == demo && app.Access == accessOpen && len(app.Sites) == 0
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
	open := accessOpen
	if err := a.AddApp(ctx, demo, Settings{Access: &open}); !errors.Is(err, db.ErrInstancesBehind) {
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
		named := slices.IndexFunc(apps, func(app db.App) bool { return app.Name == name })
		if named < 0 {
			return db.App{}, noApp(name)
		}
		return apps[named], nil
	}
	isApp := slices.ContainsFunc(apps, func(app db.App) bool { return app.Name == site })
	if isApp && !slices.ContainsFunc(apps, func(app db.App) bool { return newSites(app.Sites).have(site) }) {
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
	for _, app := range apps {
		switch {
		case newSites(app.Sites).have(site):
			listing = append(listing, app)
		case app.Access == accessOpen && len(app.Sites) == 0:
			counting = append(counting, app)
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
	for _, app := range apps {
		names = append(names, app.Name)
	}
	return strings.Join(names, ", ")
}

// withApp runs f in a transaction that locks an app: nobody else changes it, makes pages of it, or
// deletes it.
func (a *Admin) withApp(ctx context.Context, name string, f func(q *db.Queries, row *db.App) error) error {
	return a.db.InTx(ctx, func(q *db.Queries) error {
		row, err := q.AppLock(ctx, name)
		if errors.Is(err, db.ErrNoRows) {
			return noApp(name)
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

func noApp(name string) error {
	if strings.Contains(name, ".") {
		return visit.Errorf(visit.NotFound, "app", "there is no app %.64q, which looks like a site: `footfall app list` names the apps, each with its sites", name)
	}
	return visit.Errorf(visit.NotFound, "app", "there is no app %.64q: `footfall app list` names them", name)
}

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
