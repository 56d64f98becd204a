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
	if ahead := u.db.ClockOffset(); u.warned.due(ahead, time.Now()) {
		u.log.Warn("this machine's clock differs from the database's, by which visits count: set it", "ahead", ahead)
	}
	return nil
}

// clockWarning keeps a warning about a clock from being repeated.
type clockWarning struct {
	at    time.Time
	ahead time.Duration // 0: the clock was right
}

// due reports whether a clock that is so far ahead is to be warned of: if it is wrong, and has not
// been told so within the hour, unless it was wrong by something else.
func (w *clockWarning) due(ahead time.Duration, now time.Time) bool {
	switch {
	case ahead.Abs() <= db.ClockMayDiffer:
		*w = clockWarning{}
		return false
	case (ahead-w.ahead).Abs() <= db.ClockMayDiffer && now.Sub(w.at) < clockWarnEvery:
		return false
	}
	*w = clockWarning{at: now, ahead: ahead}
	return true
}
