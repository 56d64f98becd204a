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
// addresses. Such work may hold a connection for minutes and fill the disk. At most two tasks run at the same time. Of these,
// at most one is for the same app, and at most one is an erasing task in the same database. The tasks have their own
// connections (db.DB.InLongTx). A task that waits for a slot holds no connection.
type Slots struct {
	until context.Context //nolint:containedctx // cancels all long work
	rooms sync.Map        // a channel for each room
}

// room identifies a limit: for an app (db and app), for the erasing tasks of a database (db), or for the whole process (zero).
type room struct {
	db  *db.DB
	app string
}

// NewSlots returns slots whose work is cancelled when ctx ends.
func NewSlots(ctx context.Context) *Slots { return &Slots{until: ctx} }

// Sharing returns an Admin that shares these slots with others in this process.
func (a *Admin) Sharing(s *Slots) *Admin {
	shares := *a
	shares.slots = s
	return &shares
}

// RunLong waits for a slot and runs f, with an Admin that does not wait for another slot.
func (a *Admin) RunLong(ctx context.Context, app string, f func(ctx context.Context, a *Admin) error) error {
	return a.runIn(ctx, f, room{a.db, app}, room{})
}

// RunErasing is like RunLong, for work that takes the database's turn for erasures. Only one task per process and database
// waits for this turn, because a task that waits for it holds a connection.
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

// explain returns the reason if work failed because of the shutdown.
func (s *Slots) explain(err error) error {
	if err != nil && s.until.Err() != nil && !IsBehind(err) {
		return visit.Errorf(visit.Unavailable, "", "the service is shutting down").Because(err)
	}
	return err
}
