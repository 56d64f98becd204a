package record

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"footfall/db"
	"footfall/visit"
)

// logged is an error whose cause logFault has logged.
func logged(err *visit.Error) *visit.Error {
	err.Logged = true
	return err
}

func (w *writer) logFault(fault db.Fault, err error, visits int) {
	w.metrics.faults.WithLabelValues(fault.String()).Inc()
	level := slog.LevelWarn
	if w.expected(fault, err) {
		level = slog.LevelDebug
	}
	if missed, speak := w.pulse.faults.Next(fault, time.Now()); speak {
		w.pulse.log.Log(context.Background(), level, "a batch did not commit at once",
			"fault", fault.String(), "visits", visits, "error", err, "unlogged_before", missed)
	}
}

// expected reports whether a fault is normal beside other instances and commands, and mended by
// sending the batch again. (If it is not, its visits are refused, which their answers say.) Others
// mean that a clock, a disk, a connection or tables are not as they should be.
func (w *writer) expected(fault db.Fault, err error) bool {
	switch fault {
	case db.FaultMoved, // somebody else reads the same source
		db.FaultID,     // or counts a visit with the same id
		db.FaultLate,   // the daily task has closed a day
		db.FaultTooOld, // or keeps it no longer
		db.FaultLocked, // somebody erases
		db.FaultBusy,   // other transactions, or functions that a migration makes again
		db.FaultStale,  // somebody or something was erased
		db.FaultDay:    // midnight, where clocks differ
		return true
	case db.FaultNoDay: // days to come are made ahead of time, and past days when they are needed
		return len(w.draft.batch.PastDays.Days) > 0
	case db.FaultHint: // another instance has counted the visitor
		return w.draft.hinted()
	case db.FaultData:
		return errors.Is(err, db.ErrAppGone) || errors.Is(err, db.ErrAppChanged)
	}
	return false
}

func dayNotYet(err error) error {
	return visit.Errorf(visit.Unavailable, "", "the day cannot be counted yet; try again").Because(err)
}
