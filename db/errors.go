package db

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"footfall/pause"
)

// Fault classifies an error of a batch.
type Fault int

// The faults, from the most harmless to the most serious.
const (
	// FaultNone: there was no error.
	FaultNone Fault = iota
	// FaultBusy: rolled back because of other transactions. Send the same batch again.
	FaultBusy
	// FaultHint: rolled back because a visitor that PairColumns.Hinted marks as new was not new. Send the batch again
	// without these marks.
	FaultHint
	// FaultID: rolled back because another batch has counted a visit with the same id. Look up which ids were counted,
	// and send the batch again without these visits.
	FaultID
	// FaultStale: rolled back because Batch.Basis is no longer the present version. Drop the caches, and rebuild the
	// batch from the database.
	FaultStale
	// FaultDay: rolled back because a site of the batch was counted on a later day, which happens when clocks differ.
	// Send the batch again with the later day.
	FaultDay
	// FaultMoved: rolled back because the position of a source, a row of the inbox or an hour of a log is not in the
	// state that the batch expects. Usually another batch has counted these visits, so do not send them again.
	FaultMoved
	// FaultLate: rolled back because a past day of the batch is closed. Send the batch again with Batch.Late.
	FaultLate
	// FaultTooOld: rolled back because an app no longer keeps visits of a past day of the batch. Send the batch again
	// without the visits of that day.
	FaultTooOld
	// FaultLocked: rolled back because an app is locked against visits of past days, for example while a visitor is
	// erased. LockedApp returns the app.
	FaultLocked
	// FaultAhead: rolled back because a day of the batch has not started in any time zone by the database's clock.
	// Measure the clock before sending more.
	FaultAhead
	// FaultNoDay: rolled back because the partition of a day is missing. Call MakeDays, and send the batch again.
	FaultNoDay
	// FaultData: rolled back or not sent, because the tables do not accept a row, or because the app of a row was
	// deleted or changed. Send the other rows without this row.
	FaultData
	// FaultRefused: rolled back or never started, because the server has no space, is shutting down or cannot be
	// reached, or because the schema no longer accepts batches of this version.
	FaultRefused
	// FaultUnknown: the connection was lost, and the batch may have committed or may still commit. Or the batch has
	// committed, but it may be missing on the synchronous standby.
	FaultUnknown
)

// FaultOf classifies an error of this package. It returns FaultUnknown in three cases:
//   - the batch may have been sent, and err contains no error of the server;
//   - the server reported an error while it closed the connection;
//   - the batch has committed, but may be missing on the synchronous standby.
//
// After any other error of the server, the batch has not committed.
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
	pg := serverError(err)
	if len(pg.Code) != 5 || errors.Is(err, ErrUnreplicated) || errors.Is(err, errUnconfirmed) {
		return FaultUnknown
	}
	if severity := pg.SeverityUnlocalized; severity == "FATAL" || severity == "PANIC" {
		return FaultUnknown // the session has ended; a PANIC may even occur after the commit
	}
	if isFunctionReplaced(err) {
		return FaultBusy
	}
	if fault, raised := faultByCode[pg.Code]; raised {
		return fault
	}
	switch class := pg.Code[:2]; { // HasPrefix, because in a cell a number follows the names of tables and constraints
	case pg.Code == "23505" && (strings.HasPrefix(pg.ConstraintName, "visitors_pkey") ||
		strings.HasPrefix(pg.TableName, "visits_")): // partitions of visits
		return FaultHint
	case pg.Code == "23505" && strings.HasPrefix(pg.ConstraintName, "visit_ids_pkey"):
		return FaultID
	case pg.Code == "23514" && strings.HasPrefix(pg.TableName, "visits") && pg.ConstraintName == "": // the day has no partition
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

// tablesAreNewer reports whether the tables refuse the batches of this program, because a newer migration step requires
// that batches write more.
func tablesAreNewer(pg *pgconn.PgError) bool {
	return pg.Code == "23514" && strings.HasPrefix(pg.ConstraintName, "batches_by_this_version") // a number follows it in a cell
}

// statementTimeout is the SQLSTATE of a statement that was canceled, for example by statement_timeout. The
// connection stays open.
const statementTimeout = "57014"

// faultByCode maps SQLSTATEs to faults. FaultOf checks the SQLSTATEs with several meanings separately.
var faultByCode = map[string]Fault{
	"40001": FaultBusy, // serialization failure
	"40P01": FaultBusy, // deadlock
	"55P03": FaultBusy, // lock not available
	// Raised by functions of the schema:
	"FF001": FaultStale,  // require_basis
	"FF002": FaultDay,    // require_days
	"FF003": FaultAhead,  // require_day_near
	"FF004": FaultMoved,  // move_position, take_from_inbox, count_lines
	"FF005": FaultTooOld, // require_past_days
	"FF006": FaultLate,   // require_past_days
	"FF007": FaultLocked, // lock_app_days_shared
	"FF008": FaultData,   // put_in_inbox
}

// serverError returns the server's error within err, or an empty PgError if err contains none.
func serverError(err error) *pgconn.PgError {
	if pg, is := errors.AsType[*pgconn.PgError](err); is {
		return pg
	}
	return &pgconn.PgError{}
}

// IsDenied reports whether the session's role lacks the right to run the statement.
func IsDenied(err error) bool { return serverError(err).Code == "42501" }

// Violates reports whether the constraint with this name refused a row.
func Violates(err error, constraint string) bool {
	return strings.HasPrefix(serverError(err).ConstraintName, constraint) // in a cell, a number follows the name
}

// IsInvalidText reports whether the database refused invalid text: U+0000, or invalid UTF-8.
func IsInvalidText(err error) bool { return serverError(err).Code == "22021" }

// ReadsTooManyRows reports whether an SQL function of the schema refused a query because it would read too many rows.
func ReadsTooManyRows(err error) bool {
	return serverError(err).Code == "54000" // raised by group_uniques
}

// Refused reports whether an SQL function of the schema refused its arguments. If so, it returns the error's message and
// DETAIL.
func Refused(err error) (message, detail string, refused bool) {
	pg := serverError(err)
	return pg.Message, pg.Detail, pg.Code == "22023"
}

// isFunctionReplaced reports whether a statement failed because it was prepared with SQL functions that a migration has
// replaced since. The statement had no effect, and succeeds when it is sent again.
func isFunctionReplaced(err error) bool {
	pg := serverError(err)
	return pg.Code == "XX000" && strings.HasPrefix(pg.Message, "cache lookup failed for function")
}

// TimedOut reports whether a statement waited too long, for example for locked rows, or was too slow.
func TimedOut(err error) bool {
	return serverError(err).Code == statementTimeout || FaultOf(err) == FaultBusy
}

// busyTries bounds the attempts of RetryBusy.
const busyTries = 10

// RetryBusy runs a transaction, and runs it again if it was rolled back because of other transactions, for example
// after a deadlock.
func RetryBusy(ctx context.Context, run func() error) error {
	for try := 1; ; try++ {
		if err := run(); FaultOf(err) != FaultBusy || try >= busyTries || !pause.Again(ctx, try) {
			return err
		}
	}
}

// LockedApp returns the id of the locked app if err is a FaultLocked.
func LockedApp(err error) int32 {
	app, _ := strconv.ParseInt(serverError(err).Detail, 10, 32)
	return int32(app)
}

// isAppChanged reports whether the SQL function put_in_inbox refused visits. It does so if their app was deleted or
// moved, or if the app's settings for days or visitors changed.
func isAppChanged(err error) bool { return serverError(err).Code == "FF008" }

func isForeignKeyViolation(err error) bool { return serverError(err).Code == "23503" }

// notSentError marks an error that occurred before any visit was sent, so that no visit can have been counted.
type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// ErrNoRows is returned by a query for one row that finds no row.
var ErrNoRows = pgx.ErrNoRows

// String returns the fault's name in logs and metrics.
func (f Fault) String() string {
	return [...]string{"none", "busy", "hint", "id", "stale", "day", "moved", "late", "too_old", "locked", "ahead", "no_day", "data",
		"refused", "unknown"}[f]
}
