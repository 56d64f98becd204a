package counter

import (
	"context"

	"footfall/inbox"
	"footfall/record"
)

// CountAccepted counts the visits that were accepted before, so that none of them comes out of the
// inbox after what it was counted for is gone, and empties its tables, which have addresses, unless
// somebody uses them. It returns how many visits there were.
func (a *Admin) CountAccepted(ctx context.Context) (visits int64, err error) {
	if visits, err = inbox.Waiting(ctx, a.db); err == nil && visits > 0 {
		visits, err = a.settle(ctx)
	}
	if err == nil {
		err = inbox.Empty(ctx, a.db)
	}
	return visits, wrap("count what is in the inbox", err)
}

func (a *Admin) settle(ctx context.Context) (visits int64, err error) {
	r, err := record.Open(ctx, a.db, record.Options{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return inbox.Settle(ctx, a.db, r, inbox.Options{})
}
