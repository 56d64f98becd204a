package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Position names one part of a source of visits, of which the database knows how far it has been
// counted.
type Position struct {
	App          int32
	Source, Part string
	Row          int64 // of the inbox, whatever its app; 0: it is of another source
}

// Compare tells which of two positions comes first, in the order in which a batch moves them.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.App, q.App), cmp.Compare(p.Source, q.Source), cmp.Compare(p.Part, q.Part))
}

// Move moves a position with a batch. It fails with FaultMoved if the position is not at From.
type Move struct {
	Position
	From, To int64
	Refused  []Refusal // messages that it passes
	// Uncounted has a 0 or a 1 for each item of a call between From and To: 1 where it is not counted.
	Uncounted []byte
}

// Refusal is a message of a queue that cannot be counted.
type Refusal struct {
	Position          int64
	Reason, Beginning string // of its text; neither has anything by which a visitor could be told
}

func (m *Move) queue(q *pgx.Batch) {
	q.Queue(PositionMove, m.App, m.Source, m.Part, m.From, m.To, string(m.Uncounted))
	if len(m.Refused) == 0 {
		return
	}
	var positions []int64
	var reasons, beginnings []string
	for _, r := range m.Refused {
		positions, reasons, beginnings = append(positions, r.Position), append(reasons, r.Reason), append(beginnings, r.Beginning)
	}
	q.Queue(MessagesRefuse, m.App, m.Source, m.Part, positions, reasons, beginnings)
}

// OpenPosition returns where the position of a call stands, and the content that it was first opened
// with. If it was not there, it is made, at 0 and with this content.
func (d *DB) OpenPosition(ctx context.Context, p Position, content []byte) (row PositionOpenRow, err error) {
	err = d.write(ctx, d.writers, func(conn *pgxpool.Conn) (err error) {
		row, err = New(conn).PositionOpen(ctx, PositionOpenParams{AppID: p.App, Source: p.Source, Part: p.Part, Content: content})
		return err
	})
	return row, opened("a position", err)
}

func opened(what string, err error) error {
	switch {
	case isForeignKeyViolation(err):
		return ErrAppGone
	case err != nil:
		return fmt.Errorf("open %s: %w", what, err)
	}
	return nil
}

// Uncounted tells which items of a call before its position were not counted, as Move.Uncounted
// does.
func (d *DB) Uncounted(ctx context.Context, p Position) (string, error) {
	uncounted, err := New(d.writers).PositionUncounted(ctx, PositionUncountedParams{AppID: p.App, Source: p.Source, Part: p.Part})
	if err != nil {
		return "", fmt.Errorf("read what of a call was not counted: %w", err)
	}
	return uncounted, nil
}

// PositionNext returns where a position stands; -1 if it is not there any more. Who moved it may not
// be confirmed yet, so that something is committed behind it.
func (d *DB) PositionNext(ctx context.Context, p Position) (next int64, err error) {
	err = d.write(ctx, d.writers, func(conn *pgxpool.Conn) (err error) {
		q := New(conn)
		if next, err = q.PositionGet(ctx, PositionGetParams{AppID: p.App, Source: p.Source, Part: p.Part}); err == nil {
			err = q.SessionCommit(ctx)
		}
		return err
	})
	if errors.Is(err, ErrNoRows) {
		return -1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read a position: %w", err)
	}
	return next, nil
}

// OpenQueue returns where a part of a queue is to be read from: from its first message, if nobody
// has read it before.
func (d *DB) OpenQueue(ctx context.Context, p Position, first int64) (next int64, err error) {
	err = d.write(ctx, d.writers, func(conn *pgxpool.Conn) (err error) {
		next, err = New(conn).QueuePositionOpen(ctx, QueuePositionOpenParams{AppID: p.App, Source: p.Source, Part: p.Part, First: first})
		return err
	})
	return next, opened("a queue", err)
}

// ForgetRefused forgets the messages that were refused some days ago, and returns how many there
// were.
func (d *DB) ForgetRefused(ctx context.Context) (int64, error) {
	return forgetAll(func(most int32) (int64, error) { return d.queries.RefusedForget(ctx, most) })
}

// ForgetCalls forgets the calls that were last sent more than so many days ago, and returns how
// many there were.
func (d *DB) ForgetCalls(ctx context.Context, days int) (int64, error) {
	return forgetAll(func(most int32) (int64, error) {
		return d.queries.CallsForget(ctx, int32(days), most) //nolint:gosec // a number of days
	})
}

// ForgetVisitIDs forgets the ids of visits that came more than so many days ago, and returns how
// many there were.
func (d *DB) ForgetVisitIDs(ctx context.Context, days int) (int64, error) {
	return forgetAll(func(most int32) (int64, error) {
		return d.queries.VisitIDsForget(ctx, int32(days), most) //nolint:gosec // a number of days
	})
}

// forgetAll forgets some rows in each transaction, so that it is short, until there are no more.
func forgetAll(forget func(most int32) (int64, error)) (forgotten int64, err error) {
	const most = 2000
	for some := int64(most); err == nil && some == most; forgotten += some {
		some, err = forget(most)
	}
	return forgotten, err
}
