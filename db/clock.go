package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	clockReadings = 5           // per measurement; the reading with the shortest round trip is used
	maxRoundTrip  = time.Second // a slower reading is ignored, because it may be wrong by half of the round trip
)

// ClockMayDiffer is how far this machine's clock may be from the database's before a warning is
// shown.
const ClockMayDiffer = time.Second

// Now returns the time by the database's clock, so that all instances use the same clock. The time
// is as exact as the last MeasureClock. Before the first MeasureClock, Now returns this machine's
// time.
func (d *DB) Now() time.Time { return d.options.LocalClock().Add(-d.ClockOffset()) }

// ClockOffset returns how far this machine's clock is ahead of the database's.
func (d *DB) ClockOffset() time.Duration { return time.Duration(d.clockOffset.Load()) }

// MeasureClock measures how far this machine's clock is from the database's. If the measurement
// fails, the previous offset is kept.
func (d *DB) MeasureClock(ctx context.Context) error {
	shortest := maxRoundTrip
	var offset time.Duration
	found := false
	for range clockReadings {
		var asked, theirs time.Time
		err := d.Read(ctx, func(q *Queries) (err error) {
			asked = d.options.LocalClock()
			theirs, err = q.ClockRead(ctx)
			return err
		})
		if err != nil {
			return fmt.Errorf("read the database's clock: %w", err)
		}
		if trip := d.options.LocalClock().Sub(asked); trip <= shortest {
			shortest, offset, found = trip, asked.Add(trip/2).Sub(theirs), true
		}
	}
	if !found {
		return errors.New("read the database's clock: each response took longer than a second")
	}
	d.clockOffset.Store(int64(offset))
	return nil
}
