package counter

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"footfall/db"
)

// keyUses gathers which keys have been used, until they are written into the database. It is safe
// for concurrent use.
type keyUses struct {
	used  sync.Map // id → *atomic.Bool
	dirty atomic.Bool
}

func (u *keyUses) note(id int32) {
	mark, ok := u.used.Load(id)
	if !ok {
		mark, _ = u.used.LoadOrStore(id, new(atomic.Bool))
	}
	if used := mark.(*atomic.Bool); !used.Load() {
		used.Store(true)
		u.dirty.Store(true)
	}
}

// write writes into the database which keys were used since the last time.
func (u *keyUses) write(ctx context.Context, d *db.DB) error {
	if !u.dirty.Swap(false) {
		return nil
	}
	var ids []int32
	u.used.Range(func(id, mark any) bool {
		if mark.(*atomic.Bool).Swap(false) {
			ids = append(ids, id.(int32))
		}
		return true
	})
	if err := d.InTx(ctx, func(q *db.Queries) error { return q.KeysUsed(ctx, ids) }); err != nil {
		for _, id := range ids {
			u.note(id) // next time
		}
		return fmt.Errorf("write the use of keys: %w", err)
	}
	return nil
}
