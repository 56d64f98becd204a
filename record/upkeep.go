package record

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/db"
	"footfall/pause"
	"footfall/visit"
)

const (
	clockEvery     = time.Minute
	upkeepEvery    = 10 * time.Minute
	upkeepPatience = time.Minute      // how long one round may take
	daysAhead      = 8                // how many days before they are needed partitions are made
	batchesEvery   = 20 * time.Second // a third of the time in which ids of batches may go
)

// upkeep measures this machine's clock and the size of the database, looks for old snapshots, makes
// the partitions of coming days, forgets old calls, ids and refused messages, and empties the
// tables of old batches. Any number of instances may do so at once.
type upkeep struct {
	db      *db.DB
	size    prometheus.Gauge
	log     *slog.Logger
	clock   func() time.Time
	idsStay int // for how many days calls and ids of visits are remembered
	warned  pause.Seldom[time.Duration]
	oldest  *snapshots
	cancel  context.CancelFunc
	ctx     context.Context // ends with close
	done    sync.WaitGroup  // the goroutine of start
}

func newUpkeep(d *db.DB, o Options, m *metrics) *upkeep {
	m.describeClock(d)
	size := m.register.NewGauge(prometheus.GaugeOpts{
		Name: "footfall_database_bytes", Help: "Size of the database with all its tables and indexes. It is measured every minute.",
	})
	ctx, cancel := context.WithCancel(context.Background())
	return &upkeep{
		db: d, size: size, oldest: newSnapshots(m), log: o.Log, clock: o.Clock, idsStay: o.RememberIDs, cancel: cancel, ctx: ctx,
		warned: pause.Seldom[time.Duration]{Every: clockWarnEvery},
	}
}

func (u *upkeep) start() {
	u.done.Go(func() {
		tick, often, batches := time.NewTicker(upkeepEvery), time.NewTicker(clockEvery), time.NewTicker(batchesEvery)
		defer tick.Stop()
		defer often.Stop()
		defer batches.Stop()
		u.round()
		u.measureSize()
		u.lookAtSnapshots()
		for {
			select {
			case <-tick.C:
				u.round()
			case <-often.C:
				u.keepTime()
				u.measureSize()
				u.lookAtSnapshots()
			case <-batches.C:
				u.emptyBatches()
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
	if err := u.makeDays(ctx); err != nil && u.ctx.Err() == nil {
		u.log.Error("upkeep of days failed; it is tried again", "in", upkeepEvery, "error", err)
	}
	u.forget("calls", func() (int64, error) { return u.db.ForgetCalls(ctx, u.idsStay) })
	u.forget("ids of visits", func() (int64, error) { return u.db.ForgetVisitIDs(ctx, u.idsStay) })
	u.forget("refused messages", func() (int64, error) { return u.db.ForgetRefused(ctx) })
}

// forget has old rows deleted, and logs what came of it.
func (u *upkeep) forget(what string, older func() (int64, error)) {
	switch forgotten, err := older(); {
	case err != nil && u.ctx.Err() == nil:
		u.log.Error("old "+what+" were not forgotten; it is tried again", "in", upkeepEvery, "error", err)
	case forgotten > 0:
		u.log.Debug("old "+what+" forgotten", "rows", forgotten)
	}
}

func (u *upkeep) measureSize() {
	ctx, cancel := context.WithTimeout(u.ctx, upkeepPatience)
	defer cancel()
	var server db.StatusServerRow
	err := u.db.Read(ctx, func(q *db.Queries) (err error) { server, err = q.StatusServer(ctx); return err })
	if err != nil {
		u.log.Debug("the size of the database could not be measured; it is tried again", "in", clockEvery, "error", err)
		return
	}
	u.size.Set(float64(server.Bytes))
}

func (u *upkeep) lookAtSnapshots() {
	ctx, cancel := context.WithTimeout(u.ctx, upkeepPatience)
	defer cancel()
	if err := u.oldest.look(ctx, u.db, u.clock(), u.log); err != nil && u.ctx.Err() == nil {
		u.log.Error("old snapshots could not be looked for; it is tried again", "in", clockEvery, "error", err)
	}
}

// makeDays makes the partitions that are missing from yesterday on. Days are those of UTC: no time
// zone is a whole day away from it, so it is yesterday, today or tomorrow everywhere.
func (u *upkeep) makeDays(ctx context.Context) error {
	missing, err := u.missingDays(ctx, daysAhead)
	if err != nil || len(missing) == 0 {
		return err
	}
	made, err := u.db.MakeDays(ctx, missing...)
	if len(made) > 0 {
		u.log.Debug("partitions made", "days", made)
	}
	return err
}

// utcDay is the day in UTC so many days from now.
func (u *upkeep) utcDay(ahead int) int32 {
	return visit.DayOf(u.clock().UTC().AddDate(0, 0, ahead), time.UTC)
}

// ready returns an error unless every day that it is now somewhere has its partition.
func (u *upkeep) ready(ctx context.Context) error {
	missing, err := u.missingDays(ctx, 1)
	if err == nil && len(missing) > 0 {
		err = visit.Errorf(visit.Unavailable, "", "visits cannot be counted now: there is no partition for %v", missing)
	}
	return err
}

// missingDays returns the days without a partition, from yesterday to so many days from now.
func (u *upkeep) missingDays(ctx context.Context, ahead int) (missing []int32, err error) {
	var days []int32
	for day := -1; day <= ahead; day++ {
		days = append(days, u.utcDay(day))
	}
	err = u.db.Read(ctx, func(q *db.Queries) (err error) { missing, err = q.VisitsDaysMissing(ctx, days); return err })
	if err != nil {
		return nil, fmt.Errorf("look for partitions: %w", err)
	}
	return missing, nil
}

// emptyBatches forgets the ids of batches about which no writer can still ask.
func (u *upkeep) emptyBatches() {
	ctx, cancel := context.WithTimeout(u.ctx, upkeepPatience)
	defer cancel()
	emptied, err := u.db.EmptyBatches(ctx)
	switch {
	case err != nil && u.ctx.Err() == nil:
		u.log.Error("ids of old batches were not deleted; it is tried again", "in", batchesEvery, "error", err)
	case emptied:
		u.log.Debug("ids of old batches deleted")
	}
}
