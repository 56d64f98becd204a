package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Position identifies one part of a source of visits, such as a partition of a Kafka topic. The database stores how far
// this part has been counted.
type Position struct {
	App          int32
	Source, Part string
	Row          int64 // if App is 0, which means visits from the inbox: the number of the inbox row; otherwise 0
}

// Compare orders positions by app, source and part. A batch moves its positions in this order.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.App, q.App), cmp.Compare(p.Source, q.Source), cmp.Compare(p.Part, q.Part))
}

// Move is a change of a position by a batch, from From to To. The batch fails with FaultMoved if the position
// is not at From.
type Move struct {
	Position
	From, To int64
	Refused  []Refusal // messages between From and To that cannot be counted
	// Uncounted is for calls of POST /visits: it has a byte for each item between From and To, '1' if the item is not
	// counted, else '0'.
	Uncounted []byte
}

// Refusal is a message of a queue that cannot be counted.
type Refusal struct {
	Position          int64
	Reason, Beginning string // Beginning is the start of the message; neither text identifies a visitor
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

// OpenPosition returns the position of a call of POST /visits, and the content with which the position was created.
// content is the SHA-256 of the call's body. If the call has no position yet, OpenPosition creates it at 0.
func (d *DB) OpenPosition(ctx context.Context, p Position, content []byte) (row PositionOpenRow, err error) {
	err = d.write(ctx, d.writers, func(conn *pgxpool.Conn) (err error) {
		row, err = New(conn).PositionOpen(ctx, PositionOpenParams{AppID: p.App, Source: p.Source, Part: p.Part, Content: content})
		return err
	})
	return row, openError("a position", err)
}

func openError(what string, err error) error {
	switch {
	case isForeignKeyViolation(err):
		return ErrAppGone
	case err != nil:
		return fmt.Errorf("open %s: %w", what, err)
	}
	return nil
}

// Uncounted returns which items of a call were not counted, up to the call's position, in the format of
// Move.Uncounted.
func (d *DB) Uncounted(ctx context.Context, p Position) (string, error) {
	uncounted, err := New(d.writers).PositionUncounted(ctx, PositionUncountedParams{AppID: p.App, Source: p.Source, Part: p.Part})
	if err != nil {
		return "", fmt.Errorf("read the uncounted items of a call: %w", err)
	}
	return uncounted, nil
}

// PositionNext returns how far the part p has been counted, or -1 if the position no longer exists. The transaction
// that moved the position may not be confirmed yet. So PositionNext commits something, too: when this commit is
// confirmed, all earlier commits are.
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

// OpenQueue returns the position from which to read a part of a queue. If the part has never been read, OpenQueue
// stores and returns the position that the caller passes as first.
func (d *DB) OpenQueue(ctx context.Context, p Position, first int64) (next int64, err error) {
	err = d.write(ctx, d.writers, func(conn *pgxpool.Conn) (err error) {
		next, err = New(conn).QueuePositionOpen(ctx, QueuePositionOpenParams{AppID: p.App, Source: p.Source, Part: p.Part, First: first})
		return err
	})
	return next, openError("a queue", err)
}

// ForgetRefused deletes messages that were refused more than 7 days ago, and returns their number.
func (d *DB) ForgetRefused(ctx context.Context) (int64, error) {
	return forgetAll(func(most int32) (int64, error) { return d.queries.RefusedForget(ctx, most) })
}

// ForgetCalls deletes the calls that were last sent more than the given number of days ago, and returns their number.
func (d *DB) ForgetCalls(ctx context.Context, days int) (int64, error) {
	return forgetAll(func(most int32) (int64, error) {
		return d.queries.CallsForget(ctx, int32(days), most) //nolint:gosec // a number of days
	})
}

// ForgetVisitIDs deletes the visit ids that arrived more than the given number of days ago, and returns their number.
func (d *DB) ForgetVisitIDs(ctx context.Context, days int) (int64, error) {
	return forgetAll(func(most int32) (int64, error) {
		return d.queries.VisitIDsForget(ctx, int32(days), most) //nolint:gosec // a number of days
	})
}

// forgetAll calls forget until it finds no more rows to delete. Each call is one short transaction.
func forgetAll(forget func(most int32) (int64, error)) (forgotten int64, err error) {
	const most = 2000
	for some := int64(most); err == nil && some == most; forgotten += some {
		some, err = forget(most)
	}
	return forgotten, err
}
