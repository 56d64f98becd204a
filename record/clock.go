package record

import (
	"context"
	"time"

	"footfall/db"
)

const clockWarnEvery = time.Hour

// keepTime measures how far this machine's clock is from the database's, which visits count by.
func (u *upkeep) keepTime() {
	ctx, cancel := context.WithTimeout(u.ctx, upkeepPatience)
	defer cancel()
	if err := u.measureClock(ctx); err != nil && u.ctx.Err() == nil {
		u.log.Error("this machine's clock could not be measured; it is tried again", "in", clockEvery, "error", err)
	}
}

func (u *upkeep) measureClock(ctx context.Context) error {
	if err := u.db.MeasureClock(ctx); err != nil {
		return err
	}
	if ahead := u.db.ClockOffset(); u.mayWarn(ahead, time.Now()) {
		u.log.Warn("this machine's clock differs from the database's, by which visits count: set it", "ahead", ahead)
	}
	return nil
}

// mayWarn reports whether a clock that is so far ahead is to be warned of: if it is wrong, and has
// not been warned of within the hour, unless it was wrong by something else.
func (u *upkeep) mayWarn(ahead time.Duration, now time.Time) bool {
	if ahead.Abs() <= db.ClockMayDiffer {
		return false
	}
	_, speak := u.warned.Next(ahead.Round(2*db.ClockMayDiffer), now)
	return speak
}
