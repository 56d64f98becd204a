package admin

import (
	"context"
	"sync"
	"time"

	"footfall/db"
	"footfall/visit"
)

const (
	longAtOnce = 2
	slotWithin = 10 * time.Second
)

// Slots limits the long work of one process: history imports, exports, loads, moves, erasures, deletions and the hashing of
// addresses. Long work may hold a connection for minutes and fill the disk. At most two tasks run at the same time. At most
// one task runs for the same app, and at most one erasing task in the same database. The tasks have their own connections
// (db.DB.InLongTx). A task that waits for a slot holds no connection.
type Slots struct {
	until context.Context //nolint:containedctx // cancels all long work
	rooms sync.Map        // a channel for each room, with a place for each task that may run at the same time
}

// room identifies a limit: for one app (db and app), for the erasing tasks of a database (only db), or for the process (the
// zero value).
type room struct {
	db  *db.DB
	app string
}

// NewSlots returns slots whose work is cancelled when ctx ends.
func NewSlots(ctx context.Context) *Slots { return &Slots{until: ctx} }

// WithSlots returns an Admin that uses the slots s, so that all Admins with these slots share the limits.
func (a *Admin) WithSlots(s *Slots) *Admin {
	shares := *a
	shares.slots = s
	return &shares
}

// RunLong waits for a slot, and then runs f. The Admin that f gets uses this slot, and does not wait for another slot.
func (a *Admin) RunLong(ctx context.Context, app string, f func(ctx context.Context, a *Admin) error) error {
	return a.runIn(ctx, f, room{a.db, app}, room{})
}

// RunErasing is like RunLong, but for work that calls EraseTurn. EraseTurn waits until no other erasure runs in the database,
// and occupies a connection in the meantime. So RunErasing runs only one such task per database at a time.
func (a *Admin) RunErasing(ctx context.Context, app string, f func(ctx context.Context, a *Admin) error) error {
	return a.runIn(ctx, f, room{a.db, app}, room{db: a.db}, room{})
}

func (a *Admin) runIn(ctx context.Context, f func(ctx context.Context, a *Admin) error, rooms ...room) error {
	if a.inSlot {
		return f(ctx, a)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.slots.until, cancel)()
	within := time.NewTimer(slotWithin)
	defer within.Stop()
	for _, r := range rooms {
		size := 1
		if r == (room{}) {
			size = longAtOnce
		}
		made, _ := a.slots.rooms.LoadOrStore(r, make(chan struct{}, size))
		places := made.(chan struct{})
		select {
		case places <- struct{}{}:
			defer func() { <-places }() //nolint:gocritic // three at most
		case <-within.C:
			busy := visit.Errorf(visit.Unavailable, "", "other long work is running, such as an import or an erasure: try again later")
			busy.RetryAfter = slotWithin
			return busy
		case <-ctx.Done():
			return a.slots.explain(ctx.Err())
		}
	}
	in := *a
	in.inSlot = true
	return a.slots.explain(f(ctx, &in))
}

// explain replaces the error of work that was cancelled because the service shuts down. ErrInstancesBehind stays, because it
// means that the change is already stored.
func (s *Slots) explain(err error) error {
	if err != nil && s.until.Err() != nil && !IsBehind(err) {
		return visit.Errorf(visit.Unavailable, "", "the service is shutting down").Because(err)
	}
	return err
}
