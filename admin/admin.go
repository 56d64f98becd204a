// Package admin implements the commands of operators. They manage apps, keys, links, notes and webhooks, set offsets (numbers
// counted by other tools), and import daily numbers from other tools. They also move and delete apps, delete pages, and show
// or erase visitors.
package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// Admin changes apps and the data that operators manage, such as keys. When a method returns nil, every running instance of
// the service has applied the change. db.ErrInstancesBehind means that the change is stored, but some instance has not
// confirmed it yet.
type Admin struct {
	db     *db.DB
	secret app.Secret
	author string    // recorded in the change history as the author of each change
	listed Listed    // checks each site that is added to an existing app; nil: any site may be added
	tests  *sync.Map // names of apps whose webhook is being tested
	slots  *Slots
	inSlot bool // this Admin has a slot (see Slots), so its transactions use the connections for long work
}

// Listed reports whether any app that the caller may not change lists site.
type Listed func(ctx context.Context, site string) (bool, error)

// NewAdmin returns an Admin. secret is the secret of the service: the key for hashing visitors and signing webhook calls. It
// may be empty.
func NewAdmin(d *db.DB, secret app.Secret) *Admin {
	return &Admin{db: d, secret: secret, author: Shell, tests: &sync.Map{}, slots: NewSlots(context.Background())}
}

// instancesWithin limits how long a change waits until other instances have applied it. It is longer than the database server
// needs to detect that an instance has disappeared (db.Options.DeadAfter).
const instancesWithin = 15 * time.Second

// AddApp adds an app.
func (a *Admin) AddApp(ctx context.Context, name string, s app.Settings) error {
	if err := app.CheckName(name); err != nil {
		return err
	}
	// By default, everyone may read the numbers of an app with open access.
	if s.Access != nil && *s.Access == app.AccessOpen && s.PublicCounts == nil {
		read := app.PublicRead
		s.PublicCounts = &read
	}
	err := a.inTx(ctx, func(q queries) error {
		added, err := q.AppAdd(ctx, name)
		if err == nil && added == 0 {
			return visit.Errorf(visit.Invalid, "name", "there is an app %s already: change that one, or choose another name", name)
		}
		if err != nil {
			return err
		}
		row, err := q.AppLock(ctx, name)
		if err != nil {
			return err
		}
		was := row
		if err := s.Apply(&row, a.secret); err != nil {
			return err
		}
		if err := refuseOldInstances(ctx, q, &was, &row); err != nil {
			return err
		}
		if err := q.noteAdded(ctx, &was, &row); err != nil {
			return err
		}
		return setApp(ctx, q, &row, &row) // the same row twice, so that setApp records no changes: noteAdded has recorded them
	})
	return a.waitForChange(ctx, "add app "+name, err)
}

// SetApp changes an app's settings. If the new settings turn filters off, SetApp deletes the tags in the app's visit rows. If
// they turn titles off, SetApp deletes the titles of the app's pages.
func (a *Admin) SetApp(ctx context.Context, name string, s app.Settings) error {
	var set db.App
	err := a.change(ctx, "set app ", name, func(q queries, row *db.App) error {
		was := *row
		if err := s.Apply(row, a.secret); err != nil {
			return err
		}
		if err := cmp.Or(checkDropped(&was, row), a.checkListed(ctx, &was, row)); err != nil {
			return err
		}
		set = *row
		if err := checkCounted(ctx, q, &was, row); err != nil {
			return err
		}
		// Lock the table batches before the inbox, because transactions that write to the inbox take these locks in the same
		// order.
		if err := refuseOldInstances(ctx, q, &was, row); err != nil {
			return err
		}
		// Lock the inbox, which stores visits that are counted later, and check again. Since the first check, an instance may
		// have added visits with the old settings.
		if was.CountsBy() != row.CountsBy() {
			if err := q.InboxHold(ctx); err != nil {
				return err
			}
			if err := checkCounted(ctx, q, &was, row); err != nil {
				return err
			}
		}
		// Make the database refuse batches of visits that instances have built with the old setting, because such a batch could
		// still write tags.
		if was.Filters != row.Filters {
			if err := q.BasisRaise(ctx); err != nil {
				return err
			}
		}
		return setApp(ctx, q, &was, row)
	})
	if errors.Is(err, errHashes) {
		err = a.RunErasing(ctx, name, func(ctx context.Context, a *Admin) error { return a.hashVisitors(ctx, name, s) })
	}
	if err != nil && !errors.Is(err, db.ErrInstancesBehind) {
		return err
	}
	return cmp.Or(a.deleteUnkept(ctx, name, s, &set), err)
}

// checkCounted rejects a new time zone, IPv6 prefix, or method of identifying visitors if the app has already counted or
// accepted visits. It returns errHashes if the change only replaces addresses by hashes. It also rejects a new time zone if
// the app has imported history.
func checkCounted(ctx context.Context, q queries, was, row *db.App) error {
	if was.CountsBy() == row.CountsBy() {
		return nil
	}
	counts, err := q.AppCounts(ctx, row.ID)
	if err == nil && !counts && was.Tz != row.Tz {
		err = q.checkHistory(ctx, was)
	}
	if err != nil || !counts {
		return err
	}
	if err := app.CheckFixed(was, row); err != nil {
		return err
	}
	return errHashes
}

// setApp stores an app's settings and adds the differences to the change history.
func setApp(ctx context.Context, q queries, was, row *db.App) error {
	if err := q.noteSettings(ctx, was, row); err != nil {
		return err
	}
	return q.AppSet(ctx, db.AppSetParams{
		ID: row.ID, Tz: row.Tz, Ipv6Prefix: row.Ipv6Prefix, Access: row.Access, Sites: row.Sites, KeepQuery: row.KeepQuery,
		Visitor: row.Visitor, SecretID: row.SecretID, RespectDnt: row.RespectDnt, Bots: row.Bots, Ignore: row.Ignore,
		MaxRequests: row.MaxRequests, MaxNewPages: row.MaxNewPages,
		RetainDays: row.RetainDays, ForgetDays: row.ForgetDays, PublicCounts: row.PublicCounts, Tags: row.Tags, Filters: row.Filters,
		Goals: row.Goals, Titles: row.Titles, PublicTop: row.PublicTop, PublicEvents: row.PublicEvents,
	})
}

// refuseOldInstances makes the database refuse batches from instances of older versions, which cannot distinguish browsers. It
// does so only if the app starts to distinguish visitors by browser.
func refuseOldInstances(ctx context.Context, q queries, was, row *db.App) error {
	if row.Visitor != app.ByBrowser || was.Visitor == app.ByBrowser {
		return nil
	}
	return q.OldVersionsRefuse(ctx)
}

// AddDemo adds the demo app, which is open to everyone, if the database has never had an app. A deleted demo app is not added
// again.
func (a *Admin) AddDemo(ctx context.Context) error {
	var changes int64
	err := a.db.Read(ctx, func(q *db.Queries) (err error) { changes, err = q.AppsEpoch(ctx); return err })
	if err != nil {
		return fmt.Errorf("check whether an app was ever added: %w", err)
	}
	if changes > 0 {
		return nil
	}
	open := app.AccessOpen
	if err := a.AddApp(ctx, app.Demo, app.Settings{Access: &open}); !errors.Is(err, db.ErrInstancesBehind) {
		return err
	}
	return nil
}

// AppNamed returns an app with all of its settings.
func (a *Admin) AppNamed(ctx context.Context, name string) (found db.App, err error) {
	err = a.read(ctx, name, func(_ queries, row *db.App) error { found = *row; return nil })
	return found, wrap("read app "+name, err)
}

// AppRow is an app with its stored settings.
type AppRow = db.App

// Apps returns all apps in this database, sorted by name.
func (a *Admin) Apps(ctx context.Context) (apps []AppRow, err error) {
	apps, err = a.db.Apps(ctx)
	apps = slices.DeleteFunc(apps, func(row db.App) bool { return row.Cell != nil })
	return apps, wrap("list apps", err)
}

// Instances lists the running instances in the order of their start.
func (a *Admin) Instances(ctx context.Context) (all []db.StatusInstancesRow, err error) {
	err = a.db.Read(ctx, func(q *db.Queries) (err error) { all, err = q.StatusInstances(ctx); return err })
	return all, wrap("list the instances", err)
}

// App returns the app called name, with the columns that reports need. If name is "" and there is only one app, App returns
// this app. If there are several apps, App returns the only app that has site in its list of sites. If no app lists site, App
// returns the only app that counts visits to site. In all other cases, App returns an error.
func (a *Admin) App(ctx context.Context, name, site string) (db.App, error) {
	apps, err := a.appsToRead(ctx)
	if err != nil {
		return db.App{}, fmt.Errorf("list apps: %w", err)
	}
	if name != "" {
		for _, row := range apps {
			if row.Name == name && row.Cell != nil {
				return db.App{}, app.InCell(name, *row.Cell)
			} else if row.Name == name {
				return row, nil
			}
		}
		return db.App{}, app.NoApp(name)
	}
	apps = slices.DeleteFunc(apps, func(row db.App) bool { return row.Cell != nil })
	lists := func(row db.App) bool { return app.ListsSite(&row, site) }
	if slices.ContainsFunc(apps, func(row db.App) bool { return row.Name == site }) && !slices.ContainsFunc(apps, lists) {
		return db.App{}, visit.Errorf(visit.Invalid, "", "%s is an app, and not a listed site: name a site, or the app with --app %[1]s",
			site)
	}
	among, several := apps, "there are several apps"
	if len(apps) > 1 && site != "" {
		several = "several apps count " + visit.Shown(site)
		among = slices.DeleteFunc(slices.Clone(apps), func(row db.App) bool { return !app.CountsSite(&row, site) })
		if slices.ContainsFunc(among, lists) {
			among = slices.DeleteFunc(among, func(row db.App) bool { return !lists(row) })
		}
	}
	switch {
	case len(apps) == 0:
		return db.App{}, visit.Errorf(visit.NotFound, "app", "there is no app yet: add one")
	case len(among) == 0:
		return db.App{}, visit.Errorf(visit.Invalid, "app", "no app counts %s: name one of %s", visit.Shown(site), namesOf(apps))
	case len(among) == 1:
		return among[0], nil
	}
	return db.App{}, visit.Errorf(visit.Invalid, "app", "%s: name one of %s", several, namesOf(among))
}

func (a *Admin) appsToRead(ctx context.Context) (apps []db.App, err error) {
	err = a.db.Report(ctx, func(tx db.Tx) error {
		rows, err := db.New(tx).AppsToRead(ctx)
		apps = make([]db.App, len(rows))
		for i, row := range rows {
			apps[i] = db.App{ID: row.ID, Name: row.Name, Tz: row.Tz, Ipv6Prefix: row.Ipv6Prefix, Access: row.Access,
				Sites: row.Sites, KeepQuery: row.KeepQuery, Visitor: row.Visitor, SecretID: row.SecretID, HashedAs: row.HashedAs, Cell: row.Cell}
		}
		return err
	})
	return apps, err
}

func namesOf(apps []db.App) string {
	var names []string
	for _, row := range apps {
		names = append(names, row.Name)
	}
	return strings.Join(names, ", ")
}

// queries combines the queries of this package with those of package db.
type queries struct {
	*Queries
	*shared
	author string // recorded in the change history as the author of each change
}

type shared = db.Queries

func (a *Admin) inTx(ctx context.Context, f func(q queries) error) error {
	run := a.db.InTx
	if a.inSlot {
		run = a.db.InLongTx
	}
	return run(ctx, func(q *db.Queries) error { return f(queries{New(q.Tx()), q, a.author}) })
}

// listing is a query that returns an app's rows of one kind, such as keys.
type listing[Row any] func(q queries, ctx context.Context, app int32) ([]Row, error)

// list runs query for the app called name. The parameter what is the word for the rows in error messages.
func list[Row any](ctx context.Context, a *Admin, what, name string, query listing[Row]) (rows []Row, err error) {
	err = a.read(ctx, name, func(q queries, row *db.App) (err error) { rows, err = query(q, ctx, row.ID); return err })
	return rows, wrap("list the "+what+" of app "+name, err)
}

// appsNamed returns the app called name, or all apps if name is "".
func appsNamed(ctx context.Context, q queries, name string) ([]db.App, error) {
	if name == "" {
		return q.AppsList(ctx)
	}
	app, err := findApp(ctx, q, name)
	if err != nil {
		return nil, err
	}
	return []db.App{*app}, nil
}

// requireRow returns err. If err is nil but the statement has changed no row, it returns a NotFound error.
func requireRow(changed int64, err error, field, says string, args ...any) error {
	if err == nil && changed == 0 {
		return visit.Errorf(visit.NotFound, field, says, args...)
	}
	return err
}

// replaceNoRows replaces ErrNoRows by the error in the parameter means. It returns other errors unchanged.
func replaceNoRows(err error, means error) error {
	if errors.Is(err, db.ErrNoRows) {
		return means
	}
	return err
}

// wrap adds the action to err, unless err is a *visit.Error, whose text is shown to users. It also replaces errors about
// invalid text and missing rights by a *visit.Error.
func wrap(doing string, err error) error {
	var verr *visit.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &verr):
		return verr
	case db.IsInvalidText(err):
		return visit.Errorf(visit.Invalid, "", "this is not valid text: remove bytes that are not UTF-8, and the character U+0000")
	case db.IsDenied(err):
		return visit.Errorf(visit.Forbidden, "", "this service's database role may only count visits: "+
			"make this change with a command, as the owner of the tables").Because(err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
