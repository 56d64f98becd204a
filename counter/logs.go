package counter

import (
	"context"
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
	ID            int64
	Named         int      // how many of its first bytes it is known by
	Hash          [32]byte // their SHA-256
	File, Rules   string
	Claimed, Next int64     // how many of its bytes are its own to count, and how many were counted
	Skips         []Stretch // what other logs had claimed before
	Begun, Used   time.Time
}

// Stretch is a part of a log.
type Stretch struct{ From, To int64 }

// LogMark is lines by which a log is found in other files.
type LogMark struct {
	Log, Place int64
	Lines      uint64 // a hash of them
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
		l := Log{ID: r.ID, Named: int(r.Named), Hash: [32]byte(r.Hash), File: r.File, Rules: r.Rules, Claimed: r.Claimed, Next: r.Next, Begun: r.BegunAt, Used: r.UsedAt}
		for i := 0; i+1 < len(r.Skips); i += 2 {
			l.Skips = append(l.Skips, Stretch{r.Skips[i], r.Skips[i+1]})
		}
		logs = append(logs, l)
	}
	return logs, err
}

// Marks are those of all logs, in the order of logs and places.
func (b *LogBook) Marks(ctx context.Context) ([]LogMark, error) {
	rows, err := b.q.LogMarksList(ctx, b.app)
	if err != nil {
		return nil, unanswered(err)
	}
	marks := make([]LogMark, 0, len(rows))
	for _, r := range rows {
		marks = append(marks, LogMark{r.LogID, r.Place, uint64(r.Lines)}) //nolint:gosec // its bits
	}
	return marks, nil
}

// marksAtOnce is how many marks are written in one statement.
const marksAtOnce = 10_000

// Claim keeps in the book what is known of a log now, and makes it if it has no ID yet. marks are
// those that are new.
func (b *LogBook) Claim(ctx context.Context, l *Log, marks []LogMark) error {
	if err := b.claim(ctx, l, marks); err != nil {
		return unanswered(err)
	}
	return nil
}

func (b *LogBook) claim(ctx context.Context, l *Log, marks []LogMark) (err error) {
	if l.ID == 0 {
		l.ID, err = b.q.LogMake(ctx, db.LogMakeParams{AppID: b.app, Named: int32(l.Named), Hash: l.Hash[:], File: l.File, Rules: l.Rules}) //nolint:gosec // 64 KiB at most
		if err != nil {
			return err
		}
	}
	skips := []int64{}
	for _, s := range l.Skips {
		skips = append(skips, s.From, s.To)
	}
	err = b.q.LogClaim(ctx, db.LogClaimParams{ID: l.ID, Claimed: l.Claimed, Skips: skips, Named: int32(l.Named), Hash: l.Hash[:], File: l.File}) //nolint:gosec // likewise
	for err == nil && len(marks) > 0 {
		some := marks[:min(len(marks), marksAtOnce)]
		marks = marks[len(some):]
		rows := db.LogMarksMakeParams{LogID: l.ID}
		for _, m := range some {
			rows.Places, rows.Lines = append(rows.Places, m.Place), append(rows.Lines, int64(m.Lines)) //nolint:gosec // its bits
		}
		err = b.q.LogMarksMake(ctx, rows)
	}
	return err
}

// PositionOf is how far a log has been counted.
func (g *Counting) PositionOf(l *Log) *record.Position {
	return &record.Position{Position: db.Position{App: g.app.id, Source: sourceOfLogs, Part: strconv.FormatInt(l.ID, 10)}, Next: l.Next}
}

// FindPosition looks where a position is now.
func (g *Counting) FindPosition(ctx context.Context, p *record.Position) error {
	ctx, cancel := g.counter.db.InTime(ctx)
	defer cancel()
	next, err := g.counter.db.PositionNext(ctx, p.Position)
	switch {
	case err != nil:
		return unanswered(err)
	case next < p.Next:
		return visit.Errorf(visit.NotFound, "app", "it has just been deleted, or its tables are others than before")
	}
	p.Next = next
	return nil
}

// MovePosition moves a position past what is not to be counted.
func (g *Counting) MovePosition(ctx context.Context, s record.Step) error {
	ctx, cancel := g.counter.db.InTime(ctx)
	defer cancel()
	err := g.counter.db.MovePosition(ctx, db.Move{Position: s.Position.Position, From: s.Position.Next, To: s.Next, Refused: s.Refused})
	switch {
	case err == nil:
		s.Position.Next = s.Next
		return nil
	case db.FaultOf(err) == db.FaultMoved:
		return record.ErrMoved
	}
	return unanswered(err)
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
