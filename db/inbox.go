package db

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Accept writes visits to the inbox in one transaction, one row per app, and returns when the transaction has
// committed. past lists the past days to which visits belong. id is the transaction's id in the table batches: if
// the connection is lost, DidCommit reports whether the transaction committed. FaultOf classifies the errors of Accept.
// ErrAppChanged means that an app was deleted or moved, or that its settings for days or visitors changed.
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
	switch err = d.commitChecked(ctx, conn, &q, false); {
	case err == nil:
		return nil
	case isAppChanged(err):
		err = errors.Join(ErrAppChanged, err)
	}
	return fmt.Errorf("write to the inbox: %w", err)
}

// ReadInbox runs f on a connection of the pool writers, whose sessions find the rows of the inbox only by index.
// Other sessions could keep plans from a time when the inbox had few rows. These plans would be slow later, because
// the inbox can fill with thousands of rows in a moment.
func (d *DB) ReadInbox(ctx context.Context, f func(q *Queries) error) error {
	return d.readForBatch(ctx, "read the inbox", f)
}

// Add adds a past day of an app to c, unless c already contains it.
func (c *PastDayColumns) Add(app, day int32) {
	for i, d := range slices.Backward(c.Days) { // usually the day is the last one in c
		if d == day && c.Apps[i] == app {
			return
		}
	}
	c.Apps, c.Days = append(c.Apps, app), append(c.Days, day)
}
