package db

import (
	"context"
	"errors"
)

// Work that is done in one place at a time, by its lock.
const (
	DrainingInbox = "footfall.drain_inbox"
	Retaining     = "footfall.retain"
)

// Alone runs f unless another process, or another caller here, does the same work; it waits for
// nobody. The lock is the session's, since a transaction that stays open for as long as f keeps a
// snapshot: PostgreSQL would keep all versions of the sums that change meanwhile, and every batch
// would read them. If the connection is lost, others may begin before f has ended.
func (d *DB) Alone(ctx context.Context, work string, f func() error) (mine bool, err error) {
	conn, err := d.readers.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	q := New(conn)
	if mine, err = q.WorkBegin(ctx, work); err != nil || !mine {
		return false, err
	}
	defer func() {
		within, cancel := d.InTime(context.WithoutCancel(ctx))
		defer cancel()
		if failed := q.WorkEnd(within, work); failed != nil {
			_ = conn.Conn().Close(within) // nobody else may get it with the lock
			err = errors.Join(err, failed)
		}
	}()
	return true, f()
}
