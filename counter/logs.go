package counter

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

// MayImport is the permission to count the visits of logs for an app: whoever has the
// database needs no key.
func (c *Counter) MayImport(ctx context.Context, name string) (*Counting, error) {
	g, err := c.MayConsume(ctx, name)
	if err == nil && g.app.mode == byID {
		return nil, visit.Errorf(visit.Invalid, "app", "%s tells visitors apart by ids, which no log has: import into an app that goes by addresses", name)
	}
	return g, err
}

// Zone is the time zone whose days the app counts.
func (g *Counting) Zone() *time.Location { return g.app.zone }

// Log is a log that is imported.
type Log struct {
	ID             int64
	File, Rules    string
	Claimed, Lines int64    // how many of its bytes are its own to count, and how many lines these are
	Hash           [32]byte // the SHA-256 of these bytes
	LastHour       int32    // the latest hour of these lines, since 1970, by the clock that they show
	Next           int64    // how many of its bytes were counted
	Skips          []Stretch
	Begun, Used    time.Time
}

// Stretch is lines of a log that other logs had claimed before, by their numbers from 0.
type Stretch struct{ From, To int64 }

// LogLines are lines of a log that follow each other and show the same hour.
type LogLines struct {
	Log, Line int64 // Line is the number of the first of them, from 0
	Hour      int32
	Hashes    []byte // 8 of each line
}

// Count is how many lines these are.
func (l *LogLines) Count() int64 { return int64(len(l.Hashes)) / 8 }

// Hash is that of a line, by its number in the log.
func (l *LogLines) Hash(line int64) uint64 {
	return binary.BigEndian.Uint64(l.Hashes[8*(line-l.Line):])
}

// LogBook is what is known of the logs of an app, while nobody else changes it.
type LogBook struct {
	app int32
	q   *db.Queries
}

// bookTries is how often in a second the book is asked for that somebody else has.
const bookTries = 10

// WithLogs runs f in a transaction with the book of the app's logs, which it waits for. What f has
// written stays if this returns nil.
func (g *Counting) WithLogs(ctx context.Context, f func(b *LogBook) error) error {
	var own error
	err := g.counter.db.InTx(ctx, func(q *db.Queries) error {
		for {
			locked, err := q.LogsTryLock(ctx, g.app.id)
			if err != nil {
				return err
			}
			if locked {
				own = f(&LogBook{g.app.id, q})
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
		err = unanswered(err)
	}
	return err
}

// Logs are those in the book, in the order in which they were begun.
func (b *LogBook) Logs(ctx context.Context) (logs []Log, err error) {
	if logs, err = logsOf(ctx, b.q, b.app); err != nil {
		err = unanswered(err)
	}
	return logs, err
}

func logsOf(ctx context.Context, q *db.Queries, app int32) ([]Log, error) {
	rows, err := q.LogsList(ctx, app)
	logs := make([]Log, 0, len(rows))
	for _, r := range rows {
		l := Log{ID: r.ID, File: r.File, Rules: r.Rules, Claimed: r.Claimed, Lines: r.Lines, Hash: [32]byte(r.Hash), LastHour: r.LastHour, Next: r.Next, Begun: r.BegunAt, Used: r.UsedAt}
		for i := 0; i+1 < len(r.Skips); i += 2 {
			l.Skips = append(l.Skips, Stretch{r.Skips[i], r.Skips[i+1]})
		}
		logs = append(logs, l)
	}
	return logs, err
}

// Stretches are how many stretches of lines the app's logs have of each of some hours, but for one
// log. Hours of which there are none are left out.
func (b *LogBook) Stretches(ctx context.Context, hours []int32, but int64) ([]db.LogLinesOfHoursRow, error) {
	rows, err := b.q.LogLinesOfHours(ctx, db.LogLinesOfHoursParams{AppID: b.app, Hours: hours, But: but})
	if err != nil {
		err = unanswered(err)
	}
	return rows, err
}

// Lines are those of the app's logs in some hours, but for one log, in the order of logs and lines.
func (b *LogBook) Lines(ctx context.Context, hours []int32, but int64) ([]LogLines, error) {
	rows, err := b.q.LogLinesInHours(ctx, db.LogLinesInHoursParams{AppID: b.app, Hours: hours, But: but})
	if err != nil {
		return nil, unanswered(err)
	}
	lines := make([]LogLines, 0, len(rows))
	for _, r := range rows {
		lines = append(lines, LogLines{r.LogID, r.Line, r.Hour, r.Hashes})
	}
	return lines, nil
}

// LinesUpTo are so many stretches of lines of a log that begin at a line or before it, in the order
// of lines.
func (b *LogBook) LinesUpTo(ctx context.Context, log, line int64, n int) ([]LogLines, error) {
	rows, err := b.q.LogLinesUpTo(ctx, db.LogLinesUpToParams{LogID: log, Line: line, N: int32(n)}) //nolint:gosec // some
	if err != nil {
		return nil, unanswered(err)
	}
	lines := make([]LogLines, 0, len(rows))
	for _, r := range slices.Backward(rows) {
		lines = append(lines, LogLines{Log: log, Line: r.Line, Hashes: r.Hashes})
	}
	return lines, nil
}

// stretchesAtOnce is how many stretches of lines are written in one statement.
const stretchesAtOnce = 1000

// Claim keeps in the book what is known of a log now, and makes it if it has no ID yet. lines are
// those that are new; the first of them go on with a stretch that begins at the line goesOn, if that
// is before them.
func (b *LogBook) Claim(ctx context.Context, l *Log, goesOn int64, lines []LogLines) error {
	if err := b.claim(ctx, l, goesOn, lines); err != nil {
		return unanswered(err)
	}
	return nil
}

func (b *LogBook) claim(ctx context.Context, l *Log, goesOn int64, lines []LogLines) (err error) {
	if l.ID == 0 {
		if l.ID, err = b.q.LogMake(ctx, db.LogMakeParams{AppID: b.app, Hash: l.Hash[:], File: l.File, Rules: l.Rules}); err != nil {
			return err
		}
	}
	skips := []int64{}
	for _, s := range l.Skips {
		skips = append(skips, s.From, s.To)
	}
	err = b.q.LogClaim(ctx, db.LogClaimParams{ID: l.ID, Claimed: l.Claimed, Lines: l.Lines, LastHour: l.LastHour, Skips: skips, Hash: l.Hash[:], File: l.File})
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

// PositionOf is how far a log has been counted.
func (g *Counting) PositionOf(l *Log) *record.Position {
	return &record.Position{Position: db.Position{App: g.app.id, Source: sourceOfLogs, Part: strconv.FormatInt(l.ID, 10)}, Next: l.Next}
}

// LogsOfApp are the logs that were imported for an app.
type LogsOfApp struct {
	App  string
	Logs []Log
}

// Logs lists the logs that were imported for an app, or for each one, where name is "".
func (a *Admin) Logs(ctx context.Context, name string) (list []LogsOfApp, err error) {
	err = a.db.Read(ctx, func(q *db.Queries) error {
		apps, err := appsNamed(ctx, q, name)
		list = nil
		for _, app := range apps {
			logs, err := logsOf(ctx, q, app.ID)
			if err != nil {
				return err
			}
			list = append(list, LogsOfApp{app.Name, logs})
		}
		return err
	})
	return list, wrap("list the logs of apps", err)
}
