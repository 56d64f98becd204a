package counter

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/visit"
)

// app is an app with its settings parsed; it never changes.
type app struct {
	id         int32
	name       string
	access     string // one of accesses
	sites      sites
	keepQuery  []string
	ipv6Prefix int
	zone       *time.Location
	mode       string // one of visitorModes
	countsBy   db.CountsBy
	fault      error // why this instance cannot count for it; nil: it can
	respectDNT bool
	bots       string // botsCount, botsSkip or ""
	ignored    ignored
	limits     limits
	public     string                  // one of publicCounts
	offsets    map[string]visit.Counts // by target; nil: none
}

func newApp(row db.App, secret Secret) (*app, error) {
	zone, err := time.LoadLocation(row.Tz)
	if err != nil {
		return nil, fmt.Errorf("app %s: time zone: %w", row.Name, err)
	}
	a := &app{
		countsBy: row.CountsBy(),
		id:       row.ID, name: row.Name, access: row.Access, sites: newSites(row.Sites), keepQuery: row.KeepQuery,
		ipv6Prefix: int(row.Ipv6Prefix), zone: zone, mode: row.Visitor, fault: checkSecret(&row, secret),
		respectDNT: row.RespectDnt, ignored: newIgnored(row.Ignore), limits: newLimits(row),
		public: row.PublicCounts,
	}
	if row.Bots != nil {
		a.bots = *row.Bots
	}
	return a, nil
}

// isOpen reports whether anybody may count for the app as anybody, and ask about anybody.
func (a *app) isOpen() bool { return a.access == accessOpen }

// counts reports whether the app counts a site. An open app that lists no sites counts every one.
func (a *app) counts(site string) bool { return a.isOpen() && a.sites.empty() || a.sites.have(site) }

// register holds all apps, keys and links as they stood at one moment.
type register struct {
	apps   map[string]*app
	keys   map[[sha256.Size]byte]*openKey
	shares map[[sha256.Size]byte]share
	// shown holds the valid keys that requests have shown, by their text: hashing a key takes as
	// long as all other checks together. It has at most one entry for each key.
	shown sync.Map // string → *openKey
}

// key returns the key of a text that a request shows; nil if it is not a valid key.
func (r *register) key(shown string) *openKey {
	if known, ok := r.shown.Load(shown); ok {
		return known.(*openKey)
	}
	key := r.keys[hashKey(shown)]
	if key != nil {
		r.shown.Store(strings.Clone(shown), key) // a copy, which does not keep the whole request in memory
	}
	return key
}

// directory holds all apps and keys in memory, as they stand in the database. While it watches
// them, a command that changes an app or a key waits for it; while it does not, it holds nothing
// and asks the database each time.
type directory struct {
	db     *db.DB
	log    *slog.Logger
	secret Secret
	held   atomic.Pointer[register] // nil while the directory does not watch; written by the watching goroutine
	// offsets are the last that were read. They are read anew only where one has changed, also for
	// each request while the directory does not watch.
	offsets atomic.Pointer[offsets]
	cancel  context.CancelFunc
	done    sync.WaitGroup // the watching goroutine, ended by cancel
}

// newDirectory makes a directory and returns when it watches.
func newDirectory(ctx context.Context, d *db.DB, o Options) (*directory, error) {
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	dir := &directory{db: d, log: o.Log, secret: o.Secret, cancel: cancel}
	dir.offsets.Store(&offsets{})
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

// A watcher whose connection was lost is made anew after watchPause, and after each further failure
// twice as late, up to watchPauseMax. Meanwhile each request reads the apps from the database.
const (
	watchPause    = 200 * time.Millisecond
	watchPauseMax = 5 * time.Second
)

// watch keeps the apps up to date until ctx ends. It sends its first success or failure to first.
func (dir *directory) watch(ctx context.Context, first chan<- error) {
	for again := watchPause; ctx.Err() == nil; again = min(2*again, watchPauseMax) {
		known := dir.offsets.Load()
		err := dir.db.WatchApps(ctx, known.epoch, func(access *db.Access) {
			if access == nil {
				dir.held.Store(nil)
				return
			}
			again = watchPause
			known = newOffsets(access, known)
			dir.held.Store(dir.read(access, known, true))
			sendFirst(first, nil)
		})
		sendFirst(first, err)
		if ctx.Err() == nil {
			dir.log.Warn("apps are not watched for now", "again_in", again, "error", err)
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
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
func (dir *directory) read(access *db.Access, offsets *offsets, log bool) *register {
	r := &register{apps: make(map[string]*app, len(access.Apps)), keys: newOpenKeys(access.Keys)}
	dir.offsets.Store(offsets)
	for _, row := range access.Apps {
		if row.DeletedAt != nil {
			continue
		}
		a, err := newApp(row, dir.secret)
		if err == nil {
			a.offsets = offsets.ofApps[row.ID]
			r.apps[row.Name] = a
			err = a.fault
		}
		if err != nil && log {
			dir.log.Error("this instance cannot count for an app", "error", err)
		}
	}
	r.shares = newShares(access.Shares, r.apps)
	return r
}

// current returns the register as it stands.
func (dir *directory) current(ctx context.Context) (*register, error) {
	if held := dir.held.Load(); held != nil {
		return held, nil
	}
	ctx, cancel := dir.db.InTime(ctx)
	defer cancel()
	var access *db.Access
	known := dir.offsets.Load()
	err := dir.db.Read(ctx, func(q *db.Queries) (err error) {
		access, err = q.AccessGet(ctx, known.epoch)
		return err
	})
	if err != nil {
		return nil, unanswered(err)
	}
	return dir.read(access, newOffsets(access, known), false), nil
}

// app returns an app by its name.
func (r *register) app(name string) (*app, error) {
	if name == "" {
		return nil, visit.Errorf(visit.Invalid, "app", "it is missing: name the app that counts")
	}
	if a := r.apps[name]; a != nil {
		return a, nil
	}
	return nil, visit.Errorf(visit.NotFound, "app", "there is no app %.64q: ask its operator how it is written", name)
}
