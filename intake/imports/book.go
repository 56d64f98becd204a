package imports

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"time"

	"footfall/db"
	"footfall/pause"
	"footfall/record"
	"footfall/visit"
)

// sourceOfLogs is what positions of logs have as their source.
const sourceOfLogs = "logs"

// logLines are lines of a log that follow each other and show the same hour: Line is the number of
// the first of them, from 0, and Hashes has 8 bytes of each.
type logLines struct{ db.LogLinesInHoursRow }

// count is how many lines these are.
func (l *logLines) count() int64 { return int64(len(l.Hashes)) / 8 }

// hash is that of a line, by its number in the log.
func (l *logLines) hash(line int64) uint64 {
	return binary.BigEndian.Uint64(l.Hashes[8*(line-l.Line):])
}

// book is what is written of the logs of an app, while nobody else changes it. Their skips are from
// which line on, and up to which, other logs had claimed them before, again and again.
type book struct {
	app  int32
	q    *db.Queries
	logs map[int64]*db.LogsListRow
}

// bookTries is how often in a second the book is asked for that somebody else has.
const bookTries = 10

// withBook runs f in a transaction with the book of the app's logs, which it waits for. What f has
// written stays if this returns nil.
func (r *run) withBook(ctx context.Context, f func(k *book) error) error {
	err := r.counting.DB().InTx(ctx, func(q *db.Queries) error {
		k := &book{r.counting.App().ID, q, map[int64]*db.LogsListRow{}}
		for {
			locked, err := q.LogsTryLock(ctx, k.app)
			if err != nil {
				return err
			}
			if locked {
				break
			}
			if err := pause.For(ctx, time.Second/bookTries); err != nil {
				return err
			}
		}
		list, err := q.LogsList(ctx, k.app)
		if err != nil {
			return err
		}
		for i := range list {
			k.logs[list[i].ID] = &list[i]
		}
		return f(k)
	})
	if _, says := errors.AsType[*visit.Error](err); says || err == nil || errors.Is(err, errDryRun) || ctx.Err() != nil {
		return err
	}
	return visit.Unanswered(err)
}

// linesUpTo are so many stretches of lines of a log that begin at a line or before it, in the order
// of lines.
func (k *book) linesUpTo(ctx context.Context, log, line int64, n int) ([]logLines, error) {
	rows, err := k.q.LogLinesUpTo(ctx, db.LogLinesUpToParams{LogID: log, Line: line, N: int32(n)}) //nolint:gosec // some
	lines := make([]logLines, 0, len(rows))
	for _, r := range slices.Backward(rows) {
		lines = append(lines, logLines{db.LogLinesInHoursRow{LogID: log, Line: r.Line, Hashes: r.Hashes}})
	}
	return lines, err
}

// stretchesAtOnce is how many stretches of lines are written in one statement.
const stretchesAtOnce = 1000

// claim writes down what a source has claimed, and makes its log if that has no ID yet.
func (k *book) claim(ctx context.Context, s *source) (err error) {
	l := &s.log
	// lines are those that are new; the first of them go on with a stretch that begins at the line
	// goesOn, if that is before them.
	var goesOn int64
	var lines []logLines
	if l.Claimed == s.scanner.place {
		var lastHour int32
		goesOn, lines, lastHour = s.scanner.unclaimed()
		l.LastHour = max(l.LastHour, lastHour)
	}
	if l.ID == 0 {
		if l.ID, err = k.q.LogMake(ctx, db.LogMakeParams{AppID: k.app, Hash: l.Hash, File: l.File, Rules: l.Rules}); err != nil {
			return err
		}
	}
	err = k.q.LogClaim(ctx, db.LogClaimParams{ID: l.ID, Claimed: l.Claimed, Lines: l.Lines, LastHour: l.LastHour, Skips: append([]int64{}, l.Skips...), Hash: l.Hash, File: l.File})
	if err == nil && len(lines) > 0 && goesOn < lines[0].Line {
		var added int64
		added, err = k.q.LogLinesAppend(ctx, db.LogLinesAppendParams{LogID: l.ID, Line: goesOn, SoFar: lines[0].Line - goesOn, More: lines[0].Hashes})
		if added > 0 {
			lines = lines[1:]
		}
	}
	for some := range slices.Chunk(lines, stretchesAtOnce) {
		if err != nil {
			return err
		}
		rows := db.LogLinesMakeParams{AppID: k.app, LogID: l.ID}
		for _, s := range some {
			rows.Lines, rows.Hours, rows.Hashes = append(rows.Lines, s.Line), append(rows.Hours, s.Hour), append(rows.Hashes, s.Hashes)
		}
		err = k.q.LogLinesMake(ctx, rows)
	}
	kept := *l
	k.logs[l.ID] = &kept
	return err
}

// positionOf is how far a log has been counted.
func (r *run) positionOf(l *db.LogsListRow) *record.Position {
	return &record.Position{Position: db.Position{App: r.counting.App().ID, Source: sourceOfLogs, Part: strconv.FormatInt(l.ID, 10)}, Next: l.Next}
}
