package db

import (
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Fault says what an error means for the batch that got it.
type Fault int

// The faults, from the most harmless to the gravest.
const (
	// FaultNone: there was no error.
	FaultNone Fault = iota
	// FaultBusy: rolled back because of other transactions. Send the same batch again.
	FaultBusy
	// FaultHint: rolled back, since a visitor with a hint was not new. Send it again without hints.
	FaultHint
	// FaultID: rolled back, since a visit with an id of the batch was counted meanwhile. Look its ids
	// up, and send it again without that visit.
	FaultID
	// FaultStale: rolled back, since the batch's basis no longer holds. Drop the caches, and send
	// it again with what the database tells.
	FaultStale
	// FaultDay: rolled back, since a site of the batch has been counted on a later day, as happens
	// when clocks differ. Send it again with that day.
	FaultDay
	// FaultMoved: rolled back, since the batch's position is not where the batch began. What others
	// have counted up to where it is must not be sent again.
	FaultMoved
	// FaultLate: rolled back, since a past day is closed. Send the batch as one of late
	// visits.
	FaultLate
	// FaultTooOld: rolled back, since an app keeps a past day no longer. Send the batch
	// without those visits.
	FaultTooOld
	// FaultLocked: rolled back, since an app is locked, so that visits of past days must not
	// be counted meanwhile, as while a visitor is erased. LockedApp tells which.
	FaultLocked
	// FaultAhead: rolled back, since a day of the batch has come nowhere yet by the database's
	// clock. Measure the clock before more is sent.
	FaultAhead
	// FaultNoDay: rolled back, since the partition of a day is missing. Make it, and send it again.
	FaultNoDay
	// FaultData: rolled back or not sent, since the tables do not accept some row, or its app is
	// gone or has changed. Send the others without it.
	FaultData
	// FaultRefused: rolled back, or never begun, because the server has no space, is shutting down,
	// or cannot be connected to, or because its schema takes no batches of this version any more.
	FaultRefused
	// FaultUnknown: the connection was lost, and the batch may have committed, or may still commit;
	// or it has, but the synchronous standby may not have it.
	FaultUnknown
)

// FaultOf tells what an error of this package means. When the server reports an error, it has not
// committed. Unknown is only what it did not report, or reported as it closed the connection.
func FaultOf(err error) Fault {
	if err == nil {
		return FaultNone
	}
	if errors.Is(err, ErrAppGone) || errors.Is(err, ErrAppChanged) {
		return FaultData
	}
	if _, notSent := errors.AsType[*notSentError](err); notSent {
		return FaultRefused
	}
	pg := answerOf(err)
	if len(pg.Code) != 5 || errors.Is(err, ErrAlone) || errors.Is(err, errUnconfirmed) {
		return FaultUnknown
	}
	if severity := pg.SeverityUnlocalized; severity == "FATAL" || severity == "PANIC" {
		return FaultUnknown // the session has ended; a PANIC may come after the commit was written
	}
	if functionsMadeAgain(err) {
		return FaultBusy
	}
	if fault, raised := faultsRaised[pg.Code]; raised {
		return fault
	}
	switch class := pg.Code[:2]; { // in a cell a number follows each name
	case pg.Code == "23505" && (strings.HasPrefix(pg.ConstraintName, "visitors_pkey") ||
		strings.HasPrefix(pg.TableName, "visits_")): // which are partitions
		return FaultHint
	case pg.Code == "23505" && strings.HasPrefix(pg.ConstraintName, "visit_ids_pkey"):
		return FaultID
	case pg.Code == "23514" && strings.HasPrefix(pg.TableName, "visits") && pg.ConstraintName == "": // no partition takes the row
		return FaultNoDay
	case tablesAreNewer(pg):
		return FaultRefused
	case class == "22", class == "23", class == "54": // data exception, integrity violation, program limit exceeded
		return FaultData
	case class == "08", class == "57" && pg.Code != statementTimeout: // connection exception, operator intervention
		return FaultUnknown
	}
	return FaultRefused
}

// tablesAreNewer reports whether a step was applied after which batches have to write more than this
// program knows of.
func tablesAreNewer(pg *pgconn.PgError) bool {
	return pg.Code == "23514" && strings.HasPrefix(pg.ConstraintName, "batches_by_this_version") // in a cell a number follows
}

// statementTimeout ends a statement; its connection stays.
const statementTimeout = "57014"

// faultsRaised are what SQLSTATEs mean that leave nothing to ask.
var faultsRaised = map[string]Fault{
	"40001": FaultBusy, // serialization failure
	"40P01": FaultBusy, // deadlock
	"55P03": FaultBusy, // lock not available
	// Those that functions of the schema raise:
	"FF001": FaultStale,  // require_basis
	"FF002": FaultDay,    // require_days
	"FF003": FaultAhead,  // require_day_near
	"FF004": FaultMoved,  // move_position
	"FF005": FaultTooOld, // require_past_days
	"FF006": FaultLate,   // likewise
	"FF007": FaultLocked, // lock_app_days_shared
	"FF008": FaultData,   // put_in_inbox
}

// answerOf is what the server has said in an error; the zero value, if it has not.
func answerOf(err error) *pgconn.PgError {
	if pg, is := errors.AsType[*pgconn.PgError](err); is {
		return pg
	}
	return &pgconn.PgError{}
}

// IsDenied reports whether the role of a session has not the right to do what it was asked for.
func IsDenied(err error) bool { return answerOf(err).Code == "42501" }

// Violates reports whether a constraint of the tables has kept something out.
func Violates(err error, constraint string) bool {
	return strings.HasPrefix(answerOf(err).ConstraintName, constraint) // in a cell a number follows
}

// IsNoText reports whether the database was given what is no text: U+0000, or no UTF-8.
func IsNoText(err error) bool { return answerOf(err).Code == "22021" }

// IsTooMuch reports whether a function of the schema refused to read as much as it was asked for.
func IsTooMuch(err error) bool {
	return answerOf(err).Code == "54000" // raised by group_uniques
}

// Refused returns the message and the DETAIL of a function of the schema that refused its arguments, and whether one did.
func Refused(err error) (message, detail string, refused bool) {
	pg := answerOf(err)
	return pg.Message, pg.Detail, pg.Code == "22023"
}

// functionsMadeAgain reports whether a statement was prepared with functions that a migration has
// made again since. It does nothing then, and finds the new ones when it is sent again.
func functionsMadeAgain(err error) bool {
	pg := answerOf(err)
	return pg.Code == "XX000" && strings.HasPrefix(pg.Message, "cache lookup failed for function")
}

// WaitedInVain reports whether the server says that a statement has waited for others for too long,
// as for rows that somebody has locked; or whether it was slow.
func WaitedInVain(err error) bool {
	return answerOf(err).Code == statementTimeout || FaultOf(err) == FaultBusy
}

// LockedApp returns the id of the app that is locked, of an error that is FaultLocked.
func LockedApp(err error) int32 {
	app, _ := strconv.ParseInt(answerOf(err).Detail, 10, 32)
	return int32(app)
}

// isAppChanged reports whether put_in_inbox says that an app is gone, or counts in another way.
func isAppChanged(err error) bool { return answerOf(err).Code == "FF008" }

func isForeignKeyViolation(err error) bool { return answerOf(err).Code == "23503" }

// notSentError marks an error that came before any visit was sent, so that nothing can have
// committed.
type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// ErrNoRows is the error of a query for one row that finds none.
var ErrNoRows = pgx.ErrNoRows

// String names the fault for logs and metrics.
func (f Fault) String() string {
	return [...]string{"none", "busy", "hint", "id", "stale", "day", "moved", "late", "too_old", "locked", "ahead", "no_day", "data",
		"refused", "unknown"}[f]
}
