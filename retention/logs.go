package retention

import (
	"context"
	"fmt"

	"footfall/db"
)

// forgetLogs forgets the lines of logs that were imported, of which no app keeps a day, one log
// at a time: in other files they would be refused.
func (r *run) forgetLogs(ctx context.Context) error {
	for forgotten := int64(1); forgotten > 0 && !r.dry; {
		if err := r.inLongTx(ctx, func(q *db.Queries) (err error) { forgotten, err = q.LogLinesForget(ctx); return err }); err != nil {
			return fmt.Errorf("forget the lines of logs: %w", err)
		}
	}
	return nil
}
