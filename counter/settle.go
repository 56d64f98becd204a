package counter

import (
	"context"
	"fmt"

	"footfall/inbox"
	"footfall/record"
)

// CountAccepted counts the visits that were accepted before, so that none of them comes out of the
// inbox after what it was counted for is gone. It returns how many there were.
func (a *Admin) CountAccepted(ctx context.Context) (visits int64, err error) {
	if visits, err = inbox.Waiting(ctx, a.db); err != nil || visits == 0 {
		return 0, wrap("look at the inbox", err)
	}
	r, err := record.Open(ctx, a.db, record.Options{})
	if err != nil {
		return 0, fmt.Errorf("count what is in the inbox: %w", err)
	}
	defer r.Close()
	visits, err = inbox.Settle(ctx, a.db, r, inbox.Options{})
	return visits, wrap("count what is in the inbox", err)
}
