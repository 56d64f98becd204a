package counter

import (
	"context"
	"fmt"
	"log/slog"
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
	daysBehind    = 1 // may still be counted somewhere: no time zone is a whole day behind UTC
)

// upkeep makes the keys of coming days, deletes those of past days, and writes down which keys of
// apps were used. Any number of instances may do so at once.
type upkeep struct {
	db     *db.DB
	log    *slog.Logger
	clock  func() time.Time
	days   *dayKeys
	uses   *keyUses
	cancel context.CancelFunc
	ctx    context.Context // ends with close
	done   sync.WaitGroup  // the goroutine of startUpkeep
}

func startUpkeep(d *db.DB, o Options, days *dayKeys, uses *keyUses) *upkeep {
	ctx, cancel := context.WithCancel(context.Background())
	u := &upkeep{db: d, log: o.Log, clock: o.Clock, days: days, uses: uses, ctx: ctx, cancel: cancel}
	u.done.Go(func() {
		tick, often := time.NewTicker(dayKeysEvery), time.NewTicker(usesEvery)
		defer tick.Stop()
		defer often.Stop()
		u.keepDayKeys()
		for {
			select {
			case <-tick.C:
				u.keepDayKeys()
			case <-often.C:
				u.noteUses(u.ctx)
			case <-u.ctx.Done():
				return
			}
		}
	})
	return u
}

func (u *upkeep) close() {
	u.cancel()
	u.done.Wait()
	ctx, cancel := u.db.InTime(context.WithoutCancel(u.ctx))
	defer cancel()
	u.noteUses(ctx)
}

func (u *upkeep) noteUses(ctx context.Context) {
	if err := u.uses.write(ctx, u.db); err != nil {
		u.log.Warn("the use of keys was not written down; it is tried again", "in", usesEvery, "error", err)
	}
}

func (u *upkeep) keepDayKeys() {
	ctx, cancel := context.WithTimeout(u.ctx, dayKeysWithin)
	defer cancel()
	// In UTC, where every day has 24 hours.
	today := u.clock().UTC()
	yesterday, tomorrow := today.AddDate(0, 0, -daysBehind), today.AddDate(0, 0, 1)
	err := u.days.keep(ctx, visit.DayOf(yesterday, time.UTC), visit.DayOf(today, time.UTC), visit.DayOf(tomorrow, time.UTC))
	if err != nil && u.ctx.Err() == nil {
		u.log.Error("upkeep of day keys failed; it is tried again", "in", dayKeysEvery, "error", err)
	}
}

// keyUses gathers which keys have been used, until they are written into the database. It is safe
// for concurrent use.
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

// write writes into the database which keys were used since the last time.
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
			u.note(id) // next time
		}
		return fmt.Errorf("write the use of keys: %w", err)
	}
	return nil
}
