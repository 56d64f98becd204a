package imports

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// sourceOfLogs is what positions of logs have as their source.
const sourceOfLogs = "logs"

// logLines are lines of a log that follow each other and show the same hour.
type logLines struct {
	Log, Line int64 // Line is the number of the first of them, from 0
	Hour      int32
	Hashes    []byte // 8 of each line
}

// Count is how many lines these are.
func (l *logLines) Count() int64 { return int64(len(l.Hashes)) / 8 }

// Hash is that of a line, by its number in the log.
func (l *logLines) Hash(line int64) uint64 {
	return binary.BigEndian.Uint64(l.Hashes[8*(line-l.Line):])
}

// logBook is what is known of the logs of an app, while nobody else changes it.
type logBook struct {
	app int32
	q   *db.Queries
}

// bookTries is how often in a second the book is asked for that somebody else has.
const bookTries = 10

// withBook runs f in a transaction with the book of the app's logs, which it waits for. What f has
// written stays if this returns nil.
func (r *run) withBook(ctx context.Context, f func(b *logBook) error) error {
	var own error
	err := r.counting.DB().InTx(ctx, func(q *db.Queries) error {
		for {
			locked, err := q.LogsTryLock(ctx, r.counting.App().ID)
			if err != nil {
				return err
			}
			if locked {
				own = f(&logBook{r.counting.App().ID, q})
				return own
			}
			select {
			case <-time.After(time.Second / bookTries):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	if err != nil && own == nil {
		err = visit.Unanswered(err)
	}
	return err
}

// Logs are those in the book, in the order in which they were begun. Skips are from which line on,
// and up to which, other logs had claimed them before, again and again.
func (b *logBook) Logs(ctx context.Context) ([]db.LogsListRow, error) {
	logs, err := b.q.LogsList(ctx, b.app)
	if err != nil {
		return nil, visit.Unanswered(err)
	}
	return logs, nil
}

// Stretches are how many stretches of lines the app's logs have of each of some hours, but for one
// log. Hours of which there are none are left out.
func (b *logBook) Stretches(ctx context.Context, hours []int32, but int64) ([]db.LogLinesOfHoursRow, error) {
	rows, err := b.q.LogLinesOfHours(ctx, db.LogLinesOfHoursParams{AppID: b.app, Hours: hours, But: but})
	if err != nil {
		err = visit.Unanswered(err)
	}
	return rows, err
}

// Lines are those of the app's logs in some hours, but for one log, in the order of logs and lines.
func (b *logBook) Lines(ctx context.Context, hours []int32, but int64) ([]logLines, error) {
	rows, err := b.q.LogLinesInHours(ctx, db.LogLinesInHoursParams{AppID: b.app, Hours: hours, But: but})
	if err != nil {
		return nil, visit.Unanswered(err)
	}
	lines := make([]logLines, 0, len(rows))
	for _, r := range rows {
		lines = append(lines, logLines{r.LogID, r.Line, r.Hour, r.Hashes})
	}
	return lines, nil
}

// LinesUpTo are so many stretches of lines of a log that begin at a line or before it, in the order
// of lines.
func (b *logBook) LinesUpTo(ctx context.Context, log, line int64, n int) ([]logLines, error) {
	rows, err := b.q.LogLinesUpTo(ctx, db.LogLinesUpToParams{LogID: log, Line: line, N: int32(n)}) //nolint:gosec // some
	if err != nil {
		return nil, visit.Unanswered(err)
	}
	lines := make([]logLines, 0, len(rows))
	for _, r := range slices.Backward(rows) {
		lines = append(lines, logLines{Log: log, Line: r.Line, Hashes: r.Hashes})
	}
	return lines, nil
}

// stretchesAtOnce is how many stretches of lines are written in one statement.
const stretchesAtOnce = 1000

// Claim keeps in the book what is known of a log now, and makes it if it has no ID yet. lines are
// those that are new; the first of them go on with a stretch that begins at the line goesOn, if that
// is before them.
func (b *logBook) Claim(ctx context.Context, l *db.LogsListRow, goesOn int64, lines []logLines) error {
	if err := b.claim(ctx, l, goesOn, lines); err != nil {
		return visit.Unanswered(err)
	}
	return nil
}

func (b *logBook) claim(ctx context.Context, l *db.LogsListRow, goesOn int64, lines []logLines) (err error) {
	if l.ID == 0 {
		if l.ID, err = b.q.LogMake(ctx, db.LogMakeParams{AppID: b.app, Hash: l.Hash, File: l.File, Rules: l.Rules}); err != nil {
			return err
		}
	}
	err = b.q.LogClaim(ctx, db.LogClaimParams{ID: l.ID, Claimed: l.Claimed, Lines: l.Lines, LastHour: l.LastHour, Skips: append([]int64{}, l.Skips...), Hash: l.Hash, File: l.File})
	if err == nil && len(lines) > 0 && goesOn < lines[0].Line {
		var added int64
		added, err = b.q.LogLinesAppend(ctx, db.LogLinesAppendParams{LogID: l.ID, Line: goesOn, SoFar: lines[0].Line - goesOn, More: lines[0].Hashes})
		if added > 0 {
			lines = lines[1:]
		}
	}
	for err == nil && len(lines) > 0 {
		some := lines[:min(len(lines), stretchesAtOnce)]
		lines = lines[len(some):]
		rows := db.LogLinesMakeParams{AppID: b.app, LogID: l.ID}
		for _, s := range some {
			rows.Lines, rows.Hours, rows.Hashes = append(rows.Lines, s.Line), append(rows.Hours, s.Hour), append(rows.Hashes, s.Hashes)
		}
		err = b.q.LogLinesMake(ctx, rows)
	}
	return err
}

// positionOf is how far a log has been counted.
func (r *run) positionOf(l *db.LogsListRow) *record.Position {
	return &record.Position{Position: db.Position{App: r.counting.App().ID, Source: sourceOfLogs, Part: strconv.FormatInt(l.ID, 10)}, Next: l.Next}
}
