// Package app implements apps: their settings, sites, keys, share links, visitor identification, limits, and numbers
// imported from other counters (offsets). A Directory keeps the current state of all apps in memory.
package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/pause"
	"footfall/visit"
	"footfall/visit/tag"
)

// App is a row of the table apps with parsed settings. It is immutable.
type App struct {
	db.App
	Zone     *time.Location
	Mode     string // one of visitorModes
	CountsBy db.CountingSettings
	Fault    error // why this instance cannot count for the app, or nil
	sites    sites
	ignored  ignored
	offsets  map[string]visit.Counts // imported numbers, by target; nil: none
}

// New parses the settings of an app.
func New(row db.App, secret Secret) (*App, error) {
	zone, err := time.LoadLocation(row.Tz)
	if err != nil {
		return nil, fmt.Errorf("app %s: time zone: %w", row.Name, err)
	}
	return &App{
		App: row, Zone: zone, Mode: row.Visitor, CountsBy: row.CountsBy(), Fault: checkSecret(&row, secret), sites: newSites(row.Sites),
		ignored: newIgnored(row.Ignore),
	}, nil
}

// Demo is the name of the app for trying out Footfall.
const Demo = "demo"

// IsDemo reports whether an app is the unchanged demo app, for which anybody can count.
func IsDemo(row *db.App) bool {
	return row.Name == Demo && row.Access == AccessOpen && len(row.Sites) == 0
}

// IsOpen reports whether any caller can count and query visits of any visitor.
func (a *App) IsOpen() bool { return a.Access == AccessOpen }

// NeedsKey reports whether callers need a key to count visits of the app and to read its numbers.
func (a *App) NeedsKey() bool { return a.Access == accessKey }

// AllowsBadges reports whether the app allows badges that show its numbers or, if count is true, badges that also count visits.
func (a *App) AllowsBadges(count bool) bool {
	return a.PublicCounts == publicCount || a.PublicCounts == PublicRead && !count
}

// HasPublicCounts reports whether callers without a key can read the numbers of pages and sites.
func (a *App) HasPublicCounts() bool { return a.PublicCounts != PublicOff }

// HasPublicTop reports whether callers without a key can list the most visited pages.
func (a *App) HasPublicTop() bool { return a.PublicTop && a.HasPublicCounts() }

// HasPublicEvent reports whether callers without a key can read the numbers of an event.
func (a *App) HasPublicEvent(t visit.Target) bool {
	event := strings.TrimPrefix(t.Page, visit.EventSite+"/")
	return a.HasPublicCounts() && slices.ContainsFunc(a.PublicEvents, func(public string) bool {
		above, below := strings.CutSuffix(public, "*")
		return event == public || below && strings.HasPrefix(event, above)
	})
}

// IsPublic reports whether anybody can open the dashboard and query reports.
func (a *App) IsPublic() bool { return a.IsOpen() && a.AllowsBadges(false) }

// SkipsBots reports whether visits of crawlers are skipped. By default, they are skipped unless a trusted caller vouches for
// the visitor.
func (a *App) SkipsBots(untrusted bool) bool {
	if a.Bots == nil {
		return untrusted
	}
	return *a.Bots == botsSkip
}

// Counts reports whether the app counts a site. An open app that lists no sites counts every site.
func (a *App) Counts(site string) bool {
	return a.IsOpen() && a.sites.empty() || a.sites.contains(site)
}

// CheckTags returns an error if a given tag is not one of the app's own tags.
func (a *App) CheckTags(given tag.Set) error {
	for _, t := range given {
		if tag.CheckName(t.Name) != nil || !slices.Contains(a.Tags, t.Name) {
			return visit.Errorf(visit.Invalid, "tags",
				"app %s has no tag %.64q of its own: leave it out, or have its operator list it (app set --tags)", a.Name, t.Name)
		}
	}
	return nil
}

// Register is a snapshot of all apps, keys and share links.
type Register struct {
	Apps   map[string]*App      // by name
	Cells  map[string]string    // app name → the cell (another database) that stores the app
	Began  map[string]time.Time // app name → when the app was added in its cell; has no entry if the time is not recorded
	keys   map[[sha256.Size]byte]*Key
	shares map[[sha256.Size]byte]Share
	// shown caches valid keys by the text that requests send, because hashing this text takes as long as all other checks
	// together. The cache has at most one entry for each key.
	shown sync.Map // string → *Key
}

// Key returns the key for a text in a request, or nil if no valid key has this text.
func (r *Register) Key(shown string) *Key {
	if cached, ok := r.shown.Load(shown); ok {
		return cached.(*Key)
	}
	key := r.keys[HashOf(shown)]
	if key != nil {
		r.shown.Store(strings.Clone(shown), key) // a copy, so that the request's buffer can be freed
	}
	return key
}

// Directory holds all apps and keys of the database in memory. While the directory watches the database, a command that changes
// an app or a key waits until the directory has the change. While the directory does not watch, it holds nothing, and every
// request reads the database.
type Directory struct {
	db       *db.DB
	log      *slog.Logger
	secret   Secret
	register atomic.Pointer[Register] // nil while the directory does not watch; written only by the watching goroutine
	// offsets are the imported numbers that were read last. They are read again only after they have changed, even while
	// the directory does not watch.
	offsets  atomic.Pointer[offsets]
	cancel   context.CancelFunc
	watching sync.WaitGroup // the watching goroutine, stopped by cancel
}

// Open creates a directory and returns once it watches the database.
func Open(ctx context.Context, d *db.DB, log *slog.Logger, secret Secret) (*Directory, error) {
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	dir := &Directory{db: d, log: log, secret: secret, cancel: cancel}
	dir.offsets.Store(&offsets{})
	first := make(chan error, 1)
	dir.watching.Go(func() { dir.watch(watching, first) })
	select {
	case err := <-first:
		if err != nil {
			dir.Close()
			return nil, err
		}
		return dir, nil
	case <-ctx.Done():
		dir.Close()
		return nil, ctx.Err()
	}
}

// Close stops watching the database.
func (dir *Directory) Close() {
	dir.cancel()
	dir.watching.Wait()
}

// A watcher that lost its connection is restarted after watchPause. Each further failure doubles the pause, up to
// watchPauseMax. In the meantime each request reads the apps from the database.
const (
	watchPause    = 200 * time.Millisecond
	watchPauseMax = 5 * time.Second
)

// watch keeps the apps up to date until ctx ends. It sends the result of its first attempt to first.
func (dir *Directory) watch(ctx context.Context, first chan<- error) {
	for again := watchPause; ctx.Err() == nil; again = min(2*again, watchPauseMax) {
		cached := dir.offsets.Load()
		err := dir.db.WatchApps(ctx, cached.epoch, func(access *db.Access) {
			if access == nil {
				dir.register.Store(nil)
				return
			}
			again = watchPause
			cached = newOffsets(access, cached)
			dir.register.Store(dir.read(access, cached, true))
			sendFirst(first, nil)
		})
		sendFirst(first, err)
		if ctx.Err() == nil {
			dir.log.Warn("cannot watch the apps for changes; retrying", "again_in", again, "error", err)
		}
		_ = pause.For(ctx, again) // the loop stops when ctx ends
	}
}

func sendFirst(first chan<- error, err error) {
	select {
	case first <- err:
	default: // the first result was already sent
	}
}

// read builds a register and stores the offsets. If log is true, it logs each app for which this instance cannot count. A
// caller that reads for every request passes false, so that it does not log the same error for every request.
func (dir *Directory) read(access *db.Access, offsets *offsets, log bool) *Register {
	r := &Register{Apps: make(map[string]*App, len(access.Apps)), Cells: map[string]string{}, Began: map[string]time.Time{},
		keys: newKeys(access.Keys)}
	dir.offsets.Store(offsets)
	for _, row := range access.Apps {
		if row.DeletedAt != nil {
			continue
		}
		if row.Cell != nil {
			r.Cells[row.Name] = *row.Cell
			if row.CellBegan != nil {
				r.Began[row.Name] = *row.CellBegan
			}
			continue
		}
		a, err := New(row, dir.secret)
		if err == nil {
			a.offsets = offsets.ofApps[row.ID]
			r.Apps[row.Name] = a
			err = a.Fault
		}
		if err != nil && log {
			dir.log.Error("this instance cannot count visits of an app", "error", err)
		}
	}
	r.shares = newShares(access.Shares, r.Apps)
	return r
}

// Register returns the register, or nil while the directory does not watch the database.
func (dir *Directory) Register() *Register { return dir.register.Load() }

// Current returns the current register: from memory or, while the directory does not watch the database, from the database.
func (dir *Directory) Current(ctx context.Context) (*Register, error) {
	if held := dir.register.Load(); held != nil {
		return held, nil
	}
	ctx, cancel := dir.db.InTime(ctx)
	defer cancel()
	var access *db.Access
	cached := dir.offsets.Load()
	err := dir.db.Read(ctx, func(q *db.Queries) (err error) {
		access, err = q.AccessGet(ctx, cached.epoch)
		return err
	})
	if err != nil {
		return nil, visit.Unanswered(err)
	}
	return dir.read(access, newOffsets(access, cached), false), nil
}

// App returns an app by its name.
func (r *Register) App(name string) (*App, error) {
	if name == "" {
		return nil, visit.Errorf(visit.Invalid, "app", "it is missing: name the app that counts")
	}
	if a := r.Apps[name]; a != nil {
		return a, nil
	}
	if cell := r.Cells[name]; cell != "" {
		return nil, InCell(name, cell)
	}
	return nil, visit.Errorf(visit.NotFound, "app", "there is no app %.64q: ask its operator for its exact name", name)
}

// InCell returns the error for a request for an app that is stored in a cell, which is another database.
func InCell(name, cell string) error {
	return visit.Errorf(visit.Unavailable, "app",
		"app %s is in the cell %s: only the service of that cell handles its requests", name, cell)
}

// NoApp returns the error for an operator who names an app that does not exist.
func NoApp(name string) error {
	if strings.Contains(name, ".") {
		return visit.Errorf(visit.NotFound, "app",
			"there is no app %.64q, which looks like a site: `footfall app list` shows all apps with their sites", name)
	}
	return visit.Errorf(visit.NotFound, "app", "there is no app %.64q: `footfall app list` shows all apps", name)
}

// Default limits for visitors that no trusted caller vouches for. No human reaches them, but a program can send far more.
const (
	usualRequests = 600   // a minute from one address; even all people in an office with one address send fewer
	usualNewPages = 2_000 // a day, so that new pages take at most 3 GB a year (docs/decisions/0011-limits.md)
)

// chooseLimit returns the limit for a request, 0 for no limit. A limit that the app sets (chosen) applies to all callers. The
// default limit (usual) applies only to untrusted callers.
func chooseLimit(chosen *int32, usual int64, untrusted bool) int64 {
	switch {
	case chosen != nil:
		return int64(*chosen)
	case untrusted:
		return usual
	}
	return 0
}

// MostRequests returns how many requests a minute the app accepts from one address, 0 for no limit.
func (a *App) MostRequests(untrusted bool) int64 {
	return chooseLimit(a.MaxRequests, usualRequests, untrusted)
}

// MostNewPages returns how many new pages the app stores a day, 0 for no limit.
func (a *App) MostNewPages(untrusted bool) int64 {
	return chooseLimit(a.MaxNewPages, usualNewPages, untrusted)
}
