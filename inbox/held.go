package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"footfall/db"
	"footfall/record"
)

const (
	// One in heldShare of the visits that the inbox may hold may be of held apps, and as many may
	// be counted ones that lie in the same tables.
	heldShare = 4
	// A table's visits of held apps are moved out of it once leastCleared others were counted there
	// for each of them, so that no more is written again than is counted; or sooner, where room is
	// short.
	leastCleared = 1
	// An app of which nothing could be counted rests before it is tried again: for lookEvery, then
	// for twice as long each time, at most for restsFor times as long as a statement may take. For
	// so long the others wait whenever it is tried.
	restsFor = 6
)

// held are the apps that counting leaves out for now: their visits wait, so that those of others do
// not have to.
type held struct {
	locked   []int32        // somebody holds them, as while a visitor is erased
	resting  map[int32]rest // nothing of them could be counted, as where rows are locked for long, nor has been since
	suspects []int32        // nothing of them could be counted just now: is it they, or the database?
	cause    error          // of the first one
	others   bool           // visits of other apps were counted since
}

// rest is how long an app is not tried.
type rest struct {
	until time.Time
	lasts time.Duration
}

// apps is never null, which would exclude every app.
func (h *held) apps() []int32 {
	apps := append(append([]int32{}, h.locked...), h.suspects...)
	for app, r := range h.resting {
		if time.Now().Before(r.until) {
			apps = append(apps, app)
		}
	}
	slices.Sort(apps)
	return slices.Compact(apps)
}

// counted notes that a visit of an app was counted.
func (h *held) counted(app int32) {
	h.others = true
	if len(h.resting) > 0 {
		delete(h.resting, app)
	}
}

// release looks which apps are free again.
func (h *held) release(ctx context.Context, d *db.DB) error {
	if len(h.locked) == 0 {
		return nil
	}
	return read(ctx, d, func(q *db.Queries) (err error) { h.locked, err = q.InboxHeld(ctx, h.locked); return err })
}

// suspect notes an app of which nothing could be counted. It returns false if it is rather the
// database that cannot count.
func (h *held) suspect(app int32, cause error) bool {
	if len(h.suspects) == 0 {
		h.cause = cause
	}
	h.suspects = append(h.suspects, app)
	return len(h.suspects) < mostFailures
}

// judge tells apps of which nothing can be counted from a database that cannot count: others were
// counted meanwhile. It returns those that rest, or the error.
func (h *held) judge(longest time.Duration) (apps []int32, err error) {
	apps = h.suspects
	if len(apps) == 0 {
		return nil, nil
	}
	h.suspects = nil
	if !h.others {
		return nil, h.cause
	}
	for _, app := range apps {
		lasts := min(max(2*h.resting[app].lasts, lookEvery), longest)
		h.resting[app] = rest{time.Now().Add(lasts), lasts}
	}
	return apps, nil
}

// findHeld counts the visits of a chunk anew, those of each app alone, where they could not be
// counted together: perhaps one app keeps the others waiting.
func (c *counting) findHeld(ctx context.Context, chunk record.Chunk, cause error) error {
	if len(c.held.suspects) == 0 {
		c.held.others = false
	}
	own := map[int32]*record.Chunk{}
	for i, v := range chunk.Visits {
		if step := chunk.Steps[i]; step.Next > step.Position.Next {
			if own[v.App] == nil {
				own[v.App] = new(record.Chunk)
			}
			own[v.App].Visits, own[v.App].Steps = append(own[v.App].Visits, v), append(own[v.App].Steps, step)
		}
	}
	for _, app := range slices.Sorted(maps.Keys(own)) {
		err := cause
		if len(own) > 1 {
			err = c.record(ctx, *own[app])
		}
		switch {
		case err == nil, errors.Is(err, errReadAgain):
		case !db.WaitedInVain(err) || !c.held.suspect(app, err):
			return err
		}
	}
	return errReadAgain
}

// clear empties the tables that were read to their end, or of which only visits of held apps wait.
// All instances, and the next start, learn from the tables which these are.
func (d *drainer) clear(ctx context.Context) error {
	seconds := int32(dumpsLock.Seconds())
	if err := read(ctx, d.db, func(q *db.Queries) error { _, err := q.InboxEmpty(ctx, seconds); return err }); err != nil {
		return err
	}
	apps := d.held.apps()
	if len(apps) == 0 && !d.noted {
		return nil
	}
	if err := read(ctx, d.db, func(q *db.Queries) error { return q.InboxNoteHeld(ctx, apps) }); err != nil {
		return fmt.Errorf("note which apps are held: %w", err)
	}
	d.noted = len(apps) > 0
	now, err := d.look(ctx)
	if err != nil {
		return err
	}
	cleared := float32(leastCleared)
	if now.Kept-now.Waiting >= d.writer.limit/heldShare {
		cleared = 0
	}
	return moveHeld(ctx, d.db, cleared)
}

// moveHeld empties the tables of which only visits of held apps wait, by moving these, if so many
// were counted for each of them.
func moveHeld(ctx context.Context, d *db.DB, cleared float32) error {
	return d.InTx(ctx, func(q *db.Queries) error {
		if err := q.EraseBegin(ctx); err != nil {
			return err
		}
		_, err := q.InboxMoveHeld(ctx, cleared)
		return err
	})
}
