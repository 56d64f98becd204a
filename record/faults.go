package record

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"footfall/db"
	"footfall/visit"
)

// markLogged marks err as logged and returns it. Call it only after logFault has logged the cause of err.
func markLogged(err *visit.Error) *visit.Error {
	err.Logged = true
	return err
}

func (w *writer) logFault(fault db.Fault, err error, visits int) {
	w.metrics.faults.WithLabelValues(fault.String()).Inc()
	level := slog.LevelWarn
	if w.isExpected(fault, err) {
		level = slog.LevelDebug
	}
	if missed, speak := w.pulse.faults.Next(fault, time.Now()); speak {
		w.pulse.log.Log(context.Background(), level, "a batch did not commit at once",
			"fault", fault.String(), "visits", visits, "error", err, "unlogged_before", missed)
	}
}

// isExpected reports whether a fault (the reason why a batch did not commit) is normal while other instances or
// commands are running. After such a fault, the writer sends the batch again. (If this does not help, the callers get
// an error.) All other faults mean that a clock, a disk, a connection or a table is faulty.
func (w *writer) isExpected(fault db.Fault, err error) bool {
	switch fault {
	case db.FaultMoved, // another instance reads the same source
		db.FaultID,     // another instance counts a visit with the same id
		db.FaultLate,   // the daily task has closed a past day
		db.FaultTooOld, // the daily task has deleted the visits of the day
		db.FaultLocked, // an erasure is running
		db.FaultBusy,   // other transactions hold locks, or a migration replaces functions
		db.FaultStale,  // the caches are out of date, for example after an erasure
		db.FaultDay:    // around midnight, if the clocks of instances differ
		return true
	case db.FaultNoDay: // normal only for past days, whose partitions are created when a visit needs them
		return len(w.draft.batch.PastDays.Days) > 0
	case db.FaultHint: // another instance has counted the visitor first
		return w.draft.hasHints()
	case db.FaultData:
		return errors.Is(err, db.ErrAppGone) || errors.Is(err, db.ErrAppChanged)
	}
	return false
}

func errDayUnavailable(err error) error {
	return visit.Errorf(visit.Unavailable, "", "the day cannot be counted yet; try again").Because(err)
}
