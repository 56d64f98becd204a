package record

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/db"
	"footfall/pause"
	"footfall/visit"
)

const (
	clockEvery     = time.Minute
	clockWarnEvery = time.Hour
	upkeepEvery    = 10 * time.Minute
	upkeepPatience = time.Minute      // time limit of one run of a task
	daysAhead      = 8                // for how many days after today partitions are created
	batchesEvery   = 20 * time.Second // a third of db.BatchIDsStay, which is how long the ids of batches must stay
	tagsEvery      = time.Second
)

// upkeep runs the recurring tasks of an instance, which the method start lists. Several instances may run them
// concurrently.
type upkeep struct {
	db       *db.DB
	presence *presence
	titles   *titles
	server   serverMetrics
	log      *slog.Logger
	clock    func() time.Time
	idsStay  int // for how many days calls and visit ids are remembered
	warned   pause.Seldom[time.Duration]
	unfolded pause.Seldom[int]
	oldest   *snapshots
	daysLeft atomic.Int32 // number of consecutive days after today that have a partition of the table visits
	calm     bool
	cancel   context.CancelFunc
	ctx      context.Context // canceled by close
	done     sync.WaitGroup  // the goroutines started by start
}

func newUpkeep(d *db.DB, o Options, h *presence, t *titles, m *metrics) *upkeep {
	m.register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "footfall_clock_offset_seconds",
		Help: "How far this machine's clock is ahead of the database's clock, which decides the day of a visit. Measured every minute.",
	}, func() float64 { return d.ClockOffset().Seconds() })
	m.register.NewCounterFunc(prometheus.CounterOpts{
		Name: "footfall_commits_alone_total",
		Help: "Commits that returned before the synchronous standby had stored them, because waiting for the standby was cancelled, " +
			"or synchronous_standby_names was emptied while a standby was required.",
	}, func() float64 { return float64(d.UnreplicatedCommits()) })
	ctx, cancel := context.WithCancel(context.Background())
	return &upkeep{
		db: d, presence: h, titles: t, server: newServerMetrics(m), oldest: newSnapshots(m), log: o.Log, clock: o.Clock,
		idsStay: o.RememberIDs, calm: o.Calm || o.Brief, cancel: cancel, ctx: ctx,
		warned: pause.Seldom[time.Duration]{Every: clockWarnEvery}, unfolded: pause.Seldom[int]{Every: clockEvery},
	}
}

type task struct {
	purpose string // its name in the log
	level   slog.Level
	do      func(ctx context.Context) error
}

func (u *upkeep) start() {
	u.done.Go(func() {
		for pause.For(u.ctx, tagsEvery) == nil {
			// The context is never canceled. Otherwise, when close calls foldTags, the server could still hold the
			// locks of a transaction that was just canceled.
			u.foldTags(context.WithoutCancel(u.ctx))
		}
	})
	u.repeat(hereEvery,
		task{"recording recent visits", slog.LevelDebug, func(ctx context.Context) error { return u.presence.write(ctx, u.db) }},
		task{"recording the titles of pages", slog.LevelDebug, func(ctx context.Context) error { return u.titles.write(ctx, u.db) }})
	u.repeat(upkeepEvery,
		task{"creating the partitions of the coming days", slog.LevelError, u.makeDays},
		task{"checking which nodes are down or back", slog.LevelWarn, func(ctx context.Context) error {
			return u.db.Read(ctx, func(q *db.Queries) error { return q.NodesSettle(ctx) })
		}},
		u.makeDeleteTask("calls", func(ctx context.Context) (int64, error) { return u.db.ForgetCalls(ctx, u.idsStay) }),
		u.makeDeleteTask("ids of visits", func(ctx context.Context) (int64, error) { return u.db.ForgetVisitIDs(ctx, u.idsStay) }),
		u.makeDeleteTask("refused messages", u.db.ForgetRefused))
	u.repeat(clockEvery,
		task{"measuring this machine's clock", slog.LevelError, u.measureClock},
		task{"measuring the size and state of the database", slog.LevelDebug, u.measureServer},
		task{"starting a new period of the table people", slog.LevelError, u.db.TurnPeople},
		task{"looking for old snapshots", slog.LevelError, func(ctx context.Context) error { return u.oldest.look(ctx, u.db, u.clock(), u.log) }})
	u.repeat(batchesEvery,
		task{"deleting the ids of old batches", slog.LevelError, func(ctx context.Context) error {
			_, err := u.db.EmptyBatches(ctx)
			return err
		}})
}

// repeat runs tasks once per interval. The first run is immediate unless upkeep is calm.
func (u *upkeep) repeat(every time.Duration, tasks ...task) {
	u.done.Go(func() {
		for again := !u.calm || pause.For(u.ctx, every) == nil; again; again = pause.For(u.ctx, every) == nil {
			for _, t := range tasks {
				ctx, cancel := context.WithTimeout(u.ctx, upkeepPatience)
				if err := t.do(ctx); err != nil && u.ctx.Err() == nil {
					u.log.Log(ctx, t.level, t.purpose+" failed; trying again", "in", every, "error", err)
				}
				cancel()
			}
		}
	})
}

func (u *upkeep) close() {
	u.cancel()
	u.done.Wait()
	ctx, cancel := u.db.InTime(context.WithoutCancel(u.ctx))
	defer cancel()
	u.foldTags(ctx) // add up the last tags now, because perhaps no other instance is running to do it later
	_ = u.presence.write(ctx, u.db)
	_ = u.titles.write(ctx, u.db)
}

// makeDeleteTask returns a task that deletes old rows by calling the function older. The parameter what is the name
// of the rows in the log.
func (u *upkeep) makeDeleteTask(what string, older func(context.Context) (rows int64, err error)) task {
	return task{"deleting old " + what, slog.LevelError, func(ctx context.Context) error {
		rows, err := older(ctx)
		if rows > 0 {
			u.log.Debug("old "+what+" deleted", "rows", rows)
		}
		return err
	}}
}

// measureClock measures how far this machine's clock is from the database's clock, which determines the
// day of visits.
func (u *upkeep) measureClock(ctx context.Context) error {
	if err := u.db.MeasureClock(ctx); err != nil {
		return err
	}
	if ahead := u.db.ClockOffset(); u.mayWarn(ahead, time.Now()) {
		u.log.Warn("this machine's clock differs from the database's clock, which decides the day of a visit: set it", "ahead", ahead)
	}
	return nil
}

// mayWarn reports whether to log a warning that this machine's clock differs from the database's clock by ahead. The
// difference must exceed db.ClockMayDiffer, and there must have been no warning about a similar difference in the
// last hour.
func (u *upkeep) mayWarn(ahead time.Duration, now time.Time) bool {
	if ahead.Abs() <= db.ClockMayDiffer {
		return false
	}
	_, speak := u.warned.Next(ahead.Round(2*db.ClockMayDiffer), now)
	return speak
}

// serverMetrics are measurements of the database and its server.
type serverMetrics struct{ size, standbyAway, dailyTask prometheus.Gauge }

func newServerMetrics(m *metrics) serverMetrics {
	gauge := func(name, help string) prometheus.Gauge {
		return m.register.NewGauge(prometheus.GaugeOpts{Name: name, Help: help + " Measured every minute."})
	}
	return serverMetrics{
		size: gauge("footfall_database_bytes", "Size of the database with all its tables and indexes."),
		standbyAway: gauge("footfall_standby_away",
			"1 while no visit can be counted because a synchronous standby is missing: COMMIT waits for a standby that does not follow or "+
				"respond, or COMMIT waits for no standby although one is required. NaN: this could not be measured."),
		dailyTask: gauge("footfall_daily_task_timestamp_seconds",
			"Last day on which the daily task was completed, as the time when this day started in the time zone UTC-12; 0: never."),
	}
}

func (u *upkeep) measureServer(ctx context.Context) error {
	size, away := math.NaN(), math.NaN() // NaN: not measured; dailyTask instead keeps its last value, because that stays valid
	defer func() { u.server.size.Set(size); u.server.standbyAway.Set(away) }()
	standby, err := u.db.Standby(ctx)
	if err != nil {
		return err
	}
	return u.db.Read(ctx, func(q *db.Queries) error {
		server, err := q.StatusServer(ctx)
		if err != nil {
			return err
		}
		size, away = float64(server.Bytes), flag(standby.IsHanging || standby.IsMissing && !server.IsStandby)
		daily, err := q.StatusDaily(ctx)
		if err == nil && daily.DoneOn > 0 {
			u.server.dailyTask.Set(float64(visit.DateOf(daily.DoneOn).Add(12 * time.Hour).Unix()))
		}
		return err
	})
}

// makeDays creates the missing partitions of the table visits for the days from yesterday to daysAhead days after
// today, in UTC. These include the present day of every time zone, which is yesterday, today or tomorrow in UTC.
func (u *upkeep) makeDays(ctx context.Context) error {
	missing, err := u.missingDays(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	made, err := u.db.MakeDays(ctx, missing...)
	if len(made) > 0 {
		u.log.Debug("partitions created", "days", made)
	}
	return err
}

// ready returns an error unless the table visits has a partition for the present day of every time zone.
func (u *upkeep) ready(ctx context.Context) error {
	missing, err := u.missingDays(ctx)
	if err == nil && u.daysLeft.Load() < 1 { // perhaps only because the clock was corrected after it was measured: measure it again
		if err = u.db.MeasureClock(ctx); err == nil {
			missing, err = u.missingDays(ctx)
		}
	}
	if err == nil && u.daysLeft.Load() < 1 {
		tomorrow := visit.DayOf(u.clock().UTC().AddDate(0, 0, 1), time.UTC)
		err = visit.Errorf(visit.Unavailable, "", "visits cannot be counted now: there is no partition for %v",
			slices.DeleteFunc(missing, func(day int32) bool { return day > tomorrow }))
	}
	return err
}

// missingDays returns the days without a partition, from yesterday to daysAhead days after today. It also stores in
// daysLeft how many consecutive days after today have a partition.
func (u *upkeep) missingDays(ctx context.Context) (missing []int32, err error) {
	var days []int32
	for day := -1; day <= daysAhead; day++ {
		days = append(days, visit.DayOf(u.clock().UTC().AddDate(0, 0, day), time.UTC))
	}
	err = u.db.Read(ctx, func(q *db.Queries) (err error) { missing, err = q.VisitsDaysMissing(ctx, days); return err })
	if err != nil {
		return nil, fmt.Errorf("look for partitions: %w", err)
	}
	left := slices.IndexFunc(days, func(day int32) bool { return slices.Contains(missing, day) })
	if left < 0 {
		left = len(days)
	}
	u.daysLeft.Store(int32(left - 2))
	return missing, nil
}

// foldTags adds the tags of committed batches to the daily numbers of tags. These tags are in the table tag_news. If
// this fails, the rows stay in tag_news for the next attempt. Damaged rows are deleted.
func (u *upkeep) foldTags(ctx context.Context) {
	if err := u.db.FoldTags(ctx); err != nil && ctx.Err() == nil {
		if missed, speak := u.unfolded.Next(0, time.Now()); speak {
			u.log.Error("tags of visits could not be added up; trying again", "in", tagsEvery, "error", err, "unlogged_before", missed)
		}
	}
}
