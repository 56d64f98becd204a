package admin

import (
	"context"

	"footfall/db"
	"footfall/inbox"
	"footfall/record"
)

// CountAccepted counts the visits of an app that were accepted before, so that none of them comes
// out of the inbox after what it was counted for is gone, and deletes their rows there, which have
// addresses. It returns how many visits there were.
func (a *Admin) CountAccepted(ctx context.Context, app string) (visits int64, err error) {
	var row *db.App
	err = a.db.Read(ctx, func(q *db.Queries) (err error) { row, err = appOf(ctx, q, app); return err })
	if err == nil {
		visits, err = inbox.Behind(ctx, a.db, row.ID)
	}
	if err == nil && visits > 0 {
		visits, err = a.settle(ctx, row.ID)
	}
	if err == nil {
		err = a.inErasure(ctx, func(q *db.Queries) error { return q.InboxDeleteCounted(ctx, row.ID) })
	}
	return visits, wrap("count what is in the inbox", err)
}

func (a *Admin) settle(ctx context.Context, app int32) (visits int64, err error) {
	r, err := record.Open(ctx, a.db, record.Options{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return inbox.Settle(ctx, a.db, r, app, inbox.Options{})
}
