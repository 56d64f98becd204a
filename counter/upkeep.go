package counter

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/visit"
)

const (
	dayKeysEvery  = 10 * time.Minute
	usesEvery     = 15 * time.Second
	dayKeysWithin = time.Minute
	daysBehind    = 1 // a day before today (UTC) may still be an app's current day: no time zone is more than a day behind UTC
)

// keepUp runs until ctx ends. It creates the keys for hashing visitors on coming days (day keys), deletes those of past
// days, and stores which callers' keys were used. If calm is true, it does nothing before the first interval has passed.
// Any number of instances may run keepUp at the same time.
func (c *Counter) keepUp(ctx context.Context, calm bool) {
	tick, usesTick := time.NewTicker(dayKeysEvery), time.NewTicker(usesEvery)
	defer tick.Stop()
	defer usesTick.Stop()
	if !calm {
		c.keepDayKeys(ctx)
	}
	for {
		select {
		case <-tick.C:
			c.keepDayKeys(ctx)
		case <-usesTick.C:
			c.writeUses(ctx)
		case <-ctx.Done():
			c.writeUses(context.WithoutCancel(ctx))
			return
		}
	}
}

func (c *Counter) writeUses(ctx context.Context) {
	ctx, cancel := c.db.InTime(ctx)
	defer cancel()
	if err := c.uses.write(ctx, c.db); err != nil {
		c.log.Warn("cannot store which keys were used; retrying", "in", usesEvery, "error", err)
	}
}

func (c *Counter) keepDayKeys(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, dayKeysWithin)
	defer cancel()
	// Days in UTC, because every day has 24 hours in UTC.
	today := c.clock().UTC()
	yesterday, tomorrow := today.AddDate(0, 0, -daysBehind), today.AddDate(0, 0, 1)
	err := c.days.store(within, visit.DayOf(yesterday, time.UTC), visit.DayOf(today, time.UTC), visit.DayOf(tomorrow, time.UTC))
	if err != nil && ctx.Err() == nil {
		c.log.Error("cannot create or delete the daily keys that hash visitors; retrying", "in", dayKeysEvery, "error", err)
	}
}

// keyUses collects which keys of callers were used, until write stores them. It is safe for concurrent use.
type keyUses struct {
	used  sync.Map // id → *atomic.Bool
	dirty atomic.Bool
}

func (u *keyUses) note(id int32) {
	mark, ok := u.used.Load(id)
	if !ok {
		mark, _ = u.used.LoadOrStore(id, new(atomic.Bool))
	}
	if used := mark.(*atomic.Bool); !used.Load() {
		used.Store(true)
		u.dirty.Store(true)
	}
}

// write stores which keys were used since the last call.
func (u *keyUses) write(ctx context.Context, d *db.DB) error {
	if !u.dirty.Swap(false) {
		return nil
	}
	var ids []int32
	u.used.Range(func(id, mark any) bool {
		if mark.(*atomic.Bool).Swap(false) {
			ids = append(ids, id.(int32))
		}
		return true
	})
	if err := d.InTx(ctx, func(q *db.Queries) error { return q.KeysUsed(ctx, ids) }); err != nil {
		for _, id := range ids {
			u.note(id) // so that the next call stores it
		}
		return fmt.Errorf("store which keys were used: %w", err)
	}
	return nil
}
