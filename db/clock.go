package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	clockReadings = 5           // in a measurement, of which the one that came back soonest is taken
	longestTrip   = time.Second // a reading that took longer says too little: it may be off by half of that
)

// ClockMayDiffer is how far the clock of this machine may be from the database's before somebody is
// told.
const ClockMayDiffer = time.Second

// Now is the time by the database's clock, so that all instances count by the same one. It is as
// exact as the last MeasureClock; before the first, it is the time of this machine.
func (d *DB) Now() time.Time { return d.options.LocalClock().Add(-d.ClockOffset()) }

// ClockOffset is how far the clock of this machine is ahead of the database's.
func (d *DB) ClockOffset() time.Duration { return time.Duration(d.clockOffset.Load()) }

// MeasureClock measures how far the clock of this machine is from the database's. If it fails, what
// was measured before stays.
func (d *DB) MeasureClock(ctx context.Context) error {
	shortest := longestTrip
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
		return errors.New("read the database's clock: each answer took longer than a second")
	}
	d.clockOffset.Store(int64(offset))
	return nil
}
