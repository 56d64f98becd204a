// Package app is what an app is: its settings, its sites, keys and links, how its visitors are told
// apart, its limits, and the numbers that it has from elsewhere. A Directory holds all apps as they
// stand now.
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

// App is an app with its settings parsed; it never changes.
type App struct {
	db.App
	Zone     *time.Location
	Mode     string // one of visitorModes
	CountsBy db.CountsBy
	Fault    error // why this instance cannot count for it; nil: it can
	sites    sites
	ignored  ignored
	offsets  map[string]visit.Counts // by target; nil: none
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

// Demo is the name of the app that is there to try out with.
const Demo = "demo"

// IsDemo reports whether an app is the one to try out with, and anybody may still count for it.
func IsDemo(row *db.App) bool {
	return row.Name == Demo && row.Access == AccessOpen && len(row.Sites) == 0
}

// IsOpen reports whether anybody may count for the app as anybody, and ask about anybody.
func (a *App) IsOpen() bool { return a.Access == AccessOpen }

// NeedsKey reports whether nobody counts for the app without a key.
func (a *App) NeedsKey() bool { return a.Access == accessKey }

// LetsBadges reports whether anybody may see numbers by badges, or count by them.
func (a *App) LetsBadges(count bool) bool {
	return a.PublicCounts == publicCount || a.PublicCounts == PublicRead && !count
}

// Tells reports whether anybody is told numbers of pages and sites.
func (a *App) Tells() bool { return a.PublicCounts != PublicOff }

// ListsTop reports whether anybody can list the most visited pages.
func (a *App) ListsTop() bool { return a.PublicTop && a.Tells() }

// TellsEvent reports whether anybody can read the numbers of an event.
func (a *App) TellsEvent(t visit.Target) bool {
	event := strings.TrimPrefix(t.Page, visit.EventSite+"/")
	return a.Tells() && slices.ContainsFunc(a.PublicEvents, func(public string) bool {
		above, below := strings.CutSuffix(public, "*")
		return event == public || below && strings.HasPrefix(event, above)
	})
}

// IsPublic reports whether anybody may look at the dashboard and ask for reports.
func (a *App) IsPublic() bool { return a.IsOpen() && a.LetsBadges(false) }

// SkipsBots reports whether the visits of crawlers do not count.
func (a *App) SkipsBots(untrusted bool) bool {
	if a.Bots == nil {
		return untrusted
	}
	return *a.Bots == botsSkip
}

// Counts reports whether the app counts a site. An open app that lists no sites counts every one.
func (a *App) Counts(site string) bool { return a.IsOpen() && a.sites.empty() || a.sites.have(site) }

// CheckTags returns an error unless all tags that a caller gives are of names of the app's own.
func (a *App) CheckTags(given tag.Set) error {
	for _, t := range given {
		if tag.CheckName(t.Name) != nil || !slices.Contains(a.Tags, t.Name) {
			return visit.Errorf(visit.Invalid, "tags",
				"app %s has no tag %.64q of its own: leave it out, or have its operator list it (app set --tags)", a.Name, t.Name)
		}
	}
	return nil
}

// Register holds all apps, keys and links as they stood at one moment.
type Register struct {
	Apps   map[string]*App      // by name
	Cells  map[string]string    // of the names of apps that are elsewhere, in which cell
	Began  map[string]time.Time // of those that were seen there, when they were added
	keys   map[[sha256.Size]byte]*Key
	shares map[[sha256.Size]byte]Share
	// shown holds the valid keys that requests have shown, by their text: hashing a key takes as
	// long as all other checks together. It has at most one entry for each key.
	shown sync.Map // string → *Key
}

// Key returns the key of a text that a request shows; nil if it is not a valid key.
func (r *Register) Key(shown string) *Key {
	if cached, ok := r.shown.Load(shown); ok {
		return cached.(*Key)
	}
	key := r.keys[HashOf(shown)]
	if key != nil {
		r.shown.Store(strings.Clone(shown), key) // a copy, which does not keep the whole request in memory
	}
	return key
}

// Directory holds all apps and keys in memory, as they stand in the database. While it watches
// them, a command that changes an app or a key waits for it; while it does not, it holds nothing
// and asks the database each time.
type Directory struct {
	db     *db.DB
	log    *slog.Logger
	secret Secret
	held   atomic.Pointer[Register] // nil while the directory does not watch; written by the watching goroutine
	// offsets are the last that were read. They are read anew only where one has changed, also for
	// each request while the directory does not watch.
	offsets atomic.Pointer[offsets]
	cancel  context.CancelFunc
	done    sync.WaitGroup // the watching goroutine, ended by cancel
}

// Open makes a directory and returns when it watches.
func Open(ctx context.Context, d *db.DB, log *slog.Logger, secret Secret) (*Directory, error) {
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	dir := &Directory{db: d, log: log, secret: secret, cancel: cancel}
	dir.offsets.Store(&offsets{})
	first := make(chan error, 1)
	dir.done.Go(func() { dir.watch(watching, first) })
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

// Close stops watching.
func (dir *Directory) Close() {
	dir.cancel()
	dir.done.Wait()
}

// A watcher whose connection was lost is made anew after watchPause, and after each further failure
// twice as late, up to watchPauseMax. Meanwhile each request reads the apps from the database.
const (
	watchPause    = 200 * time.Millisecond
	watchPauseMax = 5 * time.Second
)

// watch keeps the apps up to date until ctx ends. It sends its first success or failure to first.
func (dir *Directory) watch(ctx context.Context, first chan<- error) {
	for again := watchPause; ctx.Err() == nil; again = min(2*again, watchPauseMax) {
		cached := dir.offsets.Load()
		err := dir.db.WatchApps(ctx, cached.epoch, func(access *db.Access) {
			if access == nil {
				dir.held.Store(nil)
				return
			}
			again = watchPause
			cached = newOffsets(access, cached)
			dir.held.Store(dir.read(access, cached, true))
			sendFirst(first, nil)
		})
		sendFirst(first, err)
		if ctx.Err() == nil {
			dir.log.Warn("apps are not watched for now", "again_in", again, "error", err)
		}
		_ = pause.For(ctx, again) // when ctx ends, so does the loop
	}
}

func sendFirst(first chan<- error, err error) {
	select {
	case first <- err:
	default: // the first was sent before
	}
}

// read makes a register, and keeps the offsets. An app for which this instance cannot count is
// logged if log is true: not with each request.
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
			dir.log.Error("this instance cannot count for an app", "error", err)
		}
	}
	r.shares = newShares(access.Shares, r.Apps)
	return r
}

// Held is the register while the directory watches; nil: it does not.
func (dir *Directory) Held() *Register { return dir.held.Load() }

// Current returns the register as it stands.
func (dir *Directory) Current(ctx context.Context) (*Register, error) {
	if held := dir.held.Load(); held != nil {
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
	return nil, visit.Errorf(visit.NotFound, "app", "there is no app %.64q: ask its operator how it is written", name)
}

// InCell is the error for whoever asks here for an app that a cell has.
func InCell(name, cell string) error {
	return visit.Errorf(visit.Unavailable, "app", "app %s is in the cell %s: the service of that cell counts and answers for it", name, cell)
}

// NoApp is the error for an operator who names an app that there is not.
func NoApp(name string) error {
	if strings.Contains(name, ".") {
		return visit.Errorf(visit.NotFound, "app",
			"there is no app %.64q, which looks like a site: `footfall app list` names the apps, each with its sites", name)
	}
	return visit.Errorf(visit.NotFound, "app", "there is no app %.64q: `footfall app list` names them", name)
}

// Limits of an app that sets none of its own, where no trusted caller vouches for the visitor: far
// above what people do, and far below what a program can.
const (
	usualRequests = 600   // a minute from one address: an office behind one address clicks less
	usualNewPages = 2_000 // a day: at worst 3 GB a year (docs/decisions/0011-limits.md)
)

// mostOf is a limit as it holds for a request; 0: any number. One that the app has chosen holds for
// trusted callers, too.
func mostOf(chosen *int32, usual int64, untrusted bool) int64 {
	switch {
	case chosen != nil:
		return int64(*chosen)
	case untrusted:
		return usual
	}
	return 0
}

// MostRequests is how many requests of one address the app takes a minute; 0: any number.
func (a *App) MostRequests(untrusted bool) int64 {
	return mostOf(a.MaxRequests, usualRequests, untrusted)
}

// MostNewPages is how many pages the app makes a day; 0: any number.
func (a *App) MostNewPages(untrusted bool) int64 {
	return mostOf(a.MaxNewPages, usualNewPages, untrusted)
}
