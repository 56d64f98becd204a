package visit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
)

// app is an app as the counter needs it; it never changes.
type app struct {
	id         int32
	name       string
	open       bool
	sites      map[string]bool
	keepQuery  []string
	ipv6Prefix int
	zone       *time.Location
}

func newApp(row db.App) (*app, error) {
	zone, err := time.LoadLocation(row.Tz)
	if err != nil {
		return nil, fmt.Errorf("app %s: time zone: %w", row.Name, err)
	}
	a := &app{
		id: row.ID, name: row.Name, open: row.Open, keepQuery: row.KeepQuery,
		ipv6Prefix: int(row.Ipv6Prefix), zone: zone, sites: make(map[string]bool, len(row.Sites)),
	}
	for _, site := range row.Sites {
		a.sites[site] = true
	}
	return a, nil
}

// counts reports whether the app counts a site.
func (a *app) counts(site string) bool { return a.open || a.sites[site] }

// directory holds all apps in memory, as they stand in the database. While it watches, whoever changes apps waits
// for it; while it does not, it holds nothing and asks the database each time.
type directory struct {
	db     *db.DB
	log    *slog.Logger
	apps   atomic.Pointer[map[string]*app] // nil while nobody watches; written by the watching goroutine
	cancel context.CancelFunc
	done   sync.WaitGroup // the watching goroutine, ended by cancel
}

// newDirectory returns when the directory watches.
func newDirectory(ctx context.Context, d *db.DB, log *slog.Logger) (*directory, error) {
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	dir := &directory{db: d, log: log, cancel: cancel}
	first := make(chan error, 1)
	dir.done.Go(func() { dir.watch(watching, first) })
	select {
	case err := <-first:
		if err != nil {
			dir.close()
			return nil, err
		}
		return dir, nil
	case <-ctx.Done():
		dir.close()
		return nil, ctx.Err()
	}
}

func (dir *directory) close() {
	dir.cancel()
	dir.done.Wait()
}

// watch keeps the apps fresh until ctx ends. It tells first of its first success, or failure.
func (dir *directory) watch(ctx context.Context, first chan<- error) {
	for ctx.Err() == nil {
		err := dir.db.WatchApps(ctx, func(rows []db.App) {
			if rows == nil {
				dir.apps.Store(nil)
				return
			}
			apps := dir.read(rows)
			dir.apps.Store(&apps)
			report(first, nil)
		})
		report(first, err)
		if ctx.Err() == nil {
			dir.log.Warn("apps are not watched for now", "error", err)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func report(first chan<- error, err error) {
	select {
	case first <- err:
	default: // somebody was told before
	}
}

func (dir *directory) read(rows []db.App) map[string]*app {
	apps := make(map[string]*app, len(rows))
	for _, row := range rows {
		a, err := newApp(row)
		if err != nil {
			dir.log.Error("an app cannot count here", "error", err)
			continue
		}
		apps[row.Name] = a
	}
	return apps
}

func (dir *directory) get(ctx context.Context, name string) (*app, error) {
	if name == "" {
		return nil, &Error{Kind: Invalid, Message: "app: it is missing: name the app that counts"}
	}
	var apps map[string]*app
	if held := dir.apps.Load(); held != nil {
		apps = *held
	} else {
		ctx, cancel := context.WithTimeout(ctx, readPatience)
		defer cancel()
		var rows []db.App
		err := dir.db.Read(ctx, func(q *db.Queries) (err error) {
			rows, err = q.AppsList(ctx)
			return err
		})
		if err != nil {
			return nil, unavailable(err, "the database does not answer; try again")
		}
		apps = dir.read(rows)
	}
	if a := apps[name]; a != nil {
		return a, nil
	}
	return nil, &Error{Kind: NotFound, Message: fmt.Sprintf("app: there is no app %.64q: add it with `footfall app add NAME`", name)}
}
