package db

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Accept writes visits to the inbox in one transaction, one row per app, and returns when the transaction has
// committed. id is a batch id: if the connection is lost, DidCommit reports whether the transaction committed. past
// has the past days of the visits. FaultOf classifies the errors of Accept. ErrAppChanged means that an app was
// deleted, or that its counting settings changed.
func (d *DB) Accept(ctx context.Context, id [16]byte, rows []InboxPutParams, past PastDayColumns) error {
	conn, err := d.writers.Acquire(ctx)
	if err != nil {
		return &notSentError{fmt.Errorf("write to the inbox: %w", err)}
	}
	defer conn.Release()

	var q pgx.Batch
	q.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	q.Queue(BatchBegin, uuidValue(id))
	if len(past.Apps) > 0 {
		q.Queue(PastDaysHold, past.Apps, past.Days, true)
	}
	for i := range rows {
		r := &rows[i]
		q.Queue(InboxPut, r.App, r.Tz, r.Visitor, r.Ipv6Prefix, r.Uris, r.Pages, r.Days, r.NewPages, r.Ips, r.Ids, r.TagSets, r.TagPlaces)
	}
	switch err = d.commitAsked(ctx, conn, &q, false); {
	case err == nil:
		return nil
	case isAppChanged(err):
		err = errors.Join(ErrAppChanged, err)
	}
	return fmt.Errorf("write to the inbox: %w", err)
}

// ReadInbox runs f on a connection that always finds the inbox's rows by index. Plans made while
// the inbox had few rows would be slow later, because it can fill with thousands of rows in a
// moment.
func (d *DB) ReadInbox(ctx context.Context, f func(q *Queries) error) error {
	return d.look(ctx, "read the inbox", f)
}

// Add adds a past day of an app unless it is already included.
func (c *PastDayColumns) Add(app, day int32) {
	for i, d := range slices.Backward(c.Days) { // usually it is the last one
		if d == day && c.Apps[i] == app {
			return
		}
	}
	c.Apps, c.Days = append(c.Apps, app), append(c.Days, day)
}
