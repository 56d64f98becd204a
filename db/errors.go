package db

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Fault says what an error means for the batch that met it.
type Fault int

// The faults, from the harmless to the grave.
const (
	// FaultNone: there was no error.
	FaultNone Fault = iota
	// FaultBusy: rolled back because of others; the same batch may well succeed when sent again.
	FaultBusy
	// FaultHint: a visitor called surely new was known. Rolled back; send again without hints.
	FaultHint
	// FaultStale: the batch was made from what no longer holds. Rolled back; forget what is remembered and send again.
	FaultStale
	// FaultDay: a site of the batch has been counted on a later day, because clocks differ. Rolled back; send again with that day.
	FaultDay
	// FaultNoDay: the partition of a day is missing. Rolled back; make it and send again.
	FaultNoDay
	// FaultData: some row of the batch is not acceptable. Rolled back; the others may be sent without it.
	FaultData
	// FaultRefused: rolled back, or never begun, for a reason that lies in the server: no space, shutting down, no
	// connection to be had.
	FaultRefused
	// FaultUnknown: the connection was lost under way. It may have committed, or may still do so.
	FaultUnknown
)

// FaultOf reads an error of this package. An error that the server reported came instead of a commit, so that only what
// the server did not report, or reported while it closed the connection, is unknown.
func FaultOf(err error) Fault {
	if err == nil {
		return FaultNone
	}
	var refused *notSentError
	if errors.As(err, &refused) {
		return FaultRefused
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) != 5 {
		return FaultUnknown
	}
	if severity := pg.SeverityUnlocalized; severity == "FATAL" || severity == "PANIC" {
		return FaultUnknown // the session ended with it; a PANIC may come after the commit was written
	}
	switch pg.Code {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
		return FaultBusy
	case "FF001": // raised by basis_must_be
		return FaultStale
	case "FF002": // raised by days_must_be
		return FaultDay
	case "23505": // unique violation
		if pg.ConstraintName == "visitors_pkey" || strings.HasPrefix(pg.TableName, "visits_") { // a partition
			return FaultHint
		}
	case "23514": // check violation; the name is empty where no partition takes the row
		if pg.TableName == "visits" && pg.ConstraintName == "" {
			return FaultNoDay
		}
	}
	switch pg.Code[:2] {
	case "22", "23", "54": // data exception, integrity violation, program limit exceeded
		return FaultData
	case "08", "57": // connection exception, operator intervention
		if pg.Code == "57014" { // statement timeout: the connection stays
			return FaultRefused
		}
		return FaultUnknown
	}
	return FaultRefused
}

// notSentError marks what failed before anything was sent: nothing can have committed.
type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// ErrNoRows is what a query for one row returns when there is none.
var ErrNoRows = pgx.ErrNoRows

// String names the fault for logs and metrics.
func (f Fault) String() string {
	return [...]string{"none", "busy", "hint", "stale", "day", "no_day", "data", "refused", "unknown"}[f]
}
