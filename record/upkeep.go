package record

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"footfall/db"
	"footfall/visit"
)

const (
	upkeepEvery   = 10 * time.Minute
	upkeepPatient = time.Minute    // for one round
	daysAhead     = 8              // of visits' partitions that are made before they are needed
	batchesStay   = 24 * time.Hour // how long the ids of batches are kept
)

// upkeep makes the partitions of coming days, and forgets the ids of old batches. Any number of instances may do so.
type upkeep struct {
	db     *db.DB
	log    *slog.Logger
	clock  func() time.Time
	cancel context.CancelFunc
	ctx    context.Context // ends with close
	done   sync.WaitGroup  // the goroutine of start
}

func newUpkeep(d *db.DB, o Options) *upkeep {
	ctx, cancel := context.WithCancel(context.Background())
	return &upkeep{db: d, log: o.Log, clock: o.Clock, cancel: cancel, ctx: ctx}
}

func (u *upkeep) start() {
	u.done.Go(func() {
		tick := time.NewTicker(upkeepEvery)
		defer tick.Stop()
		for {
			u.round()
			select {
			case <-tick.C:
			case <-u.ctx.Done():
				return
			}
		}
	})
}

func (u *upkeep) close() {
	u.cancel()
	u.done.Wait()
}

func (u *upkeep) round() {
	ctx, cancel := context.WithTimeout(u.ctx, upkeepPatient)
	defer cancel()
	if err := errors.Join(u.makeDays(ctx), u.pruneBatches(ctx)); err != nil && u.ctx.Err() == nil {
		u.log.Error("upkeep of days and batches failed; it is tried again", "in", upkeepEvery, "error", err)
	}
}

// makeDays makes the partitions from yesterday on. Yesterday and tomorrow are counted from UTC: no time zone is a
// whole day away from it, so that midnight everywhere falls between them.
func (u *upkeep) makeDays(ctx context.Context) error {
	for ahead := -1; ahead <= daysAhead; ahead++ {
		day := u.utcDay(ahead)
		made, err := u.db.MakeDay(ctx, day)
		if err != nil {
			return fmt.Errorf("make partition of day %d: %w", day, err)
		}
		if made {
			u.log.Debug("partition made", "day", day)
		}
	}
	return nil
}

// utcDay is the day so many days from now. Counted in UTC, where every day has 24 hours.
func (u *upkeep) utcDay(ahead int) int32 {
	return visit.DayOf(u.clock().UTC().AddDate(0, 0, ahead), time.UTC)
}

// ready reports whether every day that may be counted now has its partition.
func (u *upkeep) ready(ctx context.Context) error {
	var days []int32
	for ahead := -1; ahead <= 1; ahead++ {
		days = append(days, u.utcDay(ahead))
	}
	var missing int64
	err := u.db.Read(ctx, func(q *db.Queries) (err error) { missing, err = q.VisitsDaysMissing(ctx, days); return err })
	if err != nil {
		return fmt.Errorf("look for partitions: %w", err)
	}
	if missing > 0 {
		return fmt.Errorf("%d of the days %v have no partition of visits", missing, days)
	}
	return nil
}

// pruneBatches forgets batches that nobody can still ask after. Their ids begin with their time.
func (u *upkeep) pruneBatches(ctx context.Context) error {
	var before [16]byte
	millis := u.clock().Add(-batchesStay).UnixMilli()
	binary.BigEndian.PutUint64(before[:], uint64(millis)<<16) //nolint:gosec // the clock stands after 1970
	pruned, err := u.db.PruneBatches(ctx, before)
	if err != nil {
		return fmt.Errorf("forget old batches: %w", err)
	}
	u.log.Debug("old batches forgotten", "count", pruned)
	return nil
}
