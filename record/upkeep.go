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
	clockEvery     = time.Minute
	upkeepEvery    = 10 * time.Minute
	upkeepPatience = time.Minute    // how long one round may take
	daysAhead      = 8              // how many days before they are needed partitions are made
	batchesStay    = 24 * time.Hour // how long the ids of batches are kept
)

// upkeep measures this machine's clock, makes the partitions of coming days, and deletes the ids of
// old batches. Any number of instances may do so at once.
type upkeep struct {
	db     *db.DB
	log    *slog.Logger
	clock  func() time.Time
	warned clockWarning
	cancel context.CancelFunc
	ctx    context.Context // ends with close
	done   sync.WaitGroup  // the goroutine of start
}

func newUpkeep(d *db.DB, o Options, m *metrics) *upkeep {
	m.describeClock(d)
	ctx, cancel := context.WithCancel(context.Background())
	return &upkeep{db: d, log: o.Log, clock: o.Clock, cancel: cancel, ctx: ctx}
}

func (u *upkeep) start() {
	u.done.Go(func() {
		tick, often := time.NewTicker(upkeepEvery), time.NewTicker(clockEvery)
		defer tick.Stop()
		defer often.Stop()
		u.round()
		for {
			select {
			case <-tick.C:
				u.round()
			case <-often.C:
				u.keepTime()
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
	ctx, cancel := context.WithTimeout(u.ctx, upkeepPatience)
	defer cancel()
	if err := errors.Join(u.makeDays(ctx), u.pruneBatches(ctx)); err != nil && u.ctx.Err() == nil {
		u.log.Error("upkeep of days and batches failed; it is tried again", "in", upkeepEvery, "error", err)
	}
}

// makeDays makes the partitions from yesterday on. Days are those of UTC: no time zone is a whole
// day away from it, so it is yesterday, today or tomorrow everywhere.
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

// utcDay is the day in UTC so many days from now.
func (u *upkeep) utcDay(ahead int) int32 {
	return visit.DayOf(u.clock().UTC().AddDate(0, 0, ahead), time.UTC)
}

// ready returns an error unless every day that it is now somewhere has its partition.
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

// pruneBatches deletes the ids of batches about which no writer can still ask. An id begins with
// its time.
func (u *upkeep) pruneBatches(ctx context.Context) error {
	var before [16]byte
	millis := u.clock().Add(-batchesStay).UnixMilli()
	binary.BigEndian.PutUint64(before[:], uint64(millis)<<16) //nolint:gosec // it is after 1970
	pruned, err := u.db.PruneBatches(ctx, before)
	if err != nil {
		return fmt.Errorf("delete the ids of old batches: %w", err)
	}
	u.log.Debug("ids of old batches deleted", "count", pruned)
	return nil
}
