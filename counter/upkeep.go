package counter

import (
	"context"
	"log/slog"
	"sync"
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
	if err := u.days.keep(ctx, u.utcDay(-daysBehind), u.utcDay(0), u.utcDay(1)); err != nil && u.ctx.Err() == nil {
		u.log.Error("upkeep of day keys failed; it is tried again", "in", dayKeysEvery, "error", err)
	}
}

// utcDay returns the day that lies so many days ahead. It counts in UTC, where every day has 24
// hours.
func (u *upkeep) utcDay(ahead int) int32 {
	return visit.DayOf(u.clock().UTC().AddDate(0, 0, ahead), time.UTC)
}
