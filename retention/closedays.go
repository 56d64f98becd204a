package retention

import (
	"context"
	"fmt"
)

// returnsAtOnce is the approximate number of rows of the table open_returns that one transaction packs. Visits to the pages
// and sites of these rows wait for the transaction, for some milliseconds.
const returnsAtOnce = 1000

// closeDays closes days that have ended: it creates their sketches (for estimating unique visitors) and their lists of top
// pages. It also recreates lists that were removed because a page was deleted or late visits arrived.
func (r *run) closeDays(ctx context.Context) error {
	var unclosed []int32
	if err := r.read(ctx, func(q queries) (err error) { unclosed, err = q.DaysUnclosed(ctx, r.days); return err }); err != nil {
		return err
	}
	if r.isDryRun {
		r.done.Closed = unclosed
		return nil
	}
	for _, day := range unclosed {
		closed := false
		if err := r.inLongTx(ctx, func(q queries) (err error) { closed, err = q.DayClose(ctx, day); return err }); err != nil {
			return fmt.Errorf("close day %d: %w", day, err)
		}
		if closed {
			r.done.Closed = append(r.done.Closed, day)
		}
	}
	return r.remakeTops(ctx)
}

// packReturns moves the numbers of returning visitors on closed days from the table open_returns to the smaller table
// packed_returns. If a run is killed, the next run continues.
func (r *run) packReturns(ctx context.Context) error {
	if r.isDryRun {
		return nil
	}
	for from := int64(0); ; {
		var some ReturnsPackRow
		if err := r.inLongTx(ctx, func(q queries) (err error) { some, err = q.ReturnsPack(ctx, from, returnsAtOnce); return err }); err != nil {
			return fmt.Errorf("pack returns: %w", err)
		}
		if some.Packed < returnsAtOnce { // rows that late visits have added in the meantime wait for the next run
			return nil
		}
		from = some.LastPage
	}
}

// remakeTops recreates missing lists of top pages. Each transaction recreates the lists of only one app and day, because late
// visits to the app have to wait for the transaction.
func (r *run) remakeTops(ctx context.Context) error {
	var missing []TopsMissingRow
	if err := r.inLongTx(ctx, func(q queries) (err error) { missing, err = q.TopsMissing(ctx); return err }); err != nil {
		return err
	}
	for _, of := range missing {
		if err := r.inLongTx(ctx, func(q queries) error {
			return q.TopsMake(ctx, of.AppID, of.Day)
		}); err != nil {
			return fmt.Errorf("list the top pages of a day: %w", err)
		}
	}
	return nil
}
