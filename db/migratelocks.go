package db

import (
	"context"
	"fmt"
	"time"
)

// A migration that waits for a lock keeps everybody waiting who comes after it, even for a lock
// that would be granted at once. So it gives up after lockWait, leaves the others alone for
// lockPause, and tries again.
const (
	lockWait  = 100 * time.Millisecond
	lockPause = 200 * time.Millisecond
)

// defaultLockPatience is how long a migration tries to get its locks.
const defaultLockPatience = time.Minute

// tellAfter is what a migration may take without a line in the log.
const tellAfter = time.Second

// untilLocked runs f, which must roll back where it could not get a lock (FaultBusy), until it does
// or patience is up. The log tells what is waited for, and how long it took.
func (d *DB) untilLocked(ctx context.Context, what string, f func() error) error {
	first, told := time.Now(), time.Now()
	for {
		began := time.Now()
		err := f()
		if took := time.Since(began); err == nil && took > tellAfter {
			d.log.Info("migrated", "what", what, "took", took.Round(time.Millisecond))
		}
		if FaultOf(err) != FaultBusy {
			return err
		}
		waited := time.Since(first)
		if waited > d.lockPatience {
			return fmt.Errorf("%s: long transactions have held locks that it needs for %v; end them and try again "+
				"(SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start): %w", what, waited.Round(time.Second), err)
		}
		if time.Since(told) > tellAfter {
			told = time.Now()
			d.log.Warn("a migration waits until long transactions have ended; visits and reports go on", "what", what, "for", waited.Round(time.Second))
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
