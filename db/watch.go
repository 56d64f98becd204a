package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/pause"
)

// Access is what decides who may count or look, all apps, and all keys and links that are not
// revoked; and the numbers from elsewhere that are added to what was counted.
type Access struct {
	Apps   []App
	Keys   []KeysOpenRow
	Shares []SharesOpenRow
	// OffsetsEpoch is that of the offsets. Where the reader has those of the same one, they are
	// left out.
	OffsetsEpoch string
	Offsets      []OffsetsAllRow
}

// AccessGet reads the apps, keys and links, and the offsets, unless they are still of offsetsEpoch,
// of which the reader has them.
func (q *Queries) AccessGet(ctx context.Context, offsetsEpoch string) (*Access, error) {
	apps, err := q.AppsList(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := q.KeysOpen(ctx)
	if err != nil {
		return nil, err
	}
	shares, err := q.SharesOpen(ctx)
	if err != nil {
		return nil, err
	}
	epoch, err := q.OffsetsEpoch(ctx) // before them, which may be of a later one, but not of an earlier one
	if err != nil {
		return nil, err
	}
	access := &Access{Apps: apps, Keys: keys, Shares: shares, OffsetsEpoch: epoch}
	if epoch != offsetsEpoch {
		access.Offsets, err = q.OffsetsAll(ctx)
	}
	return access, err
}

// WatchApps calls publish with all apps and keys, at once and again after every change, until ctx
// ends or the connection is lost. Then it publishes nil and returns the reason. As long as it runs,
// WaitForInstances waits until publish has returned from the latest change. offsetsEpoch is
// that of the offsets which the caller has; "": none.
func (d *DB) WatchApps(ctx context.Context, offsetsEpoch string, publish func(*Access)) (err error) {
	defer func() { err = fmt.Errorf("watch apps: %w", err) }() // it ends with an error alone
	conn, err := pgx.ConnectConfig(ctx, d.sessions.with(nil))
	if err != nil {
		return err
	}
	defer func() {
		publish(nil) // before the lock goes with the connection
		_ = conn.Close(context.WithoutCancel(ctx))
	}()
	q := New(conn)
	if err := q.AppsListen(ctx); err != nil {
		return err
	}
	held := int32(-1)
	for {
		within, cancel := context.WithTimeout(ctx, watchPatience(d.options.DeadAfter))
		epoch, access, err := holdApps(within, q, held, offsetsEpoch)
		cancel()
		if err != nil {
			return err
		}
		if epoch != held {
			publish(access)
			offsetsEpoch = access.OffsetsEpoch
		}
		if held >= 0 && held != epoch {
			if err := q.AppsEpochLetGo(ctx, held); err != nil {
				return err
			}
		}
		held = epoch
		if err := awaitNotification(ctx, conn, watchEvery(d.options.DeadAfter)); err != nil {
			return err
		}
		if d.sessions.left(conn.PgConn()) {
			return errors.New("batches go to another server now")
		}
	}
}

// A connection whose other end has vanished looks like one on which nothing happens. So the epoch
// is read every watchEvery, and must be read within watchPatience. Together these are half of
// deadAfter: when the server lets go of a watcher that has vanished, its instance has long stopped
// relying on it.
func watchEvery(deadAfter time.Duration) time.Duration    { return deadAfter / 5 }
func watchPatience(deadAfter time.Duration) time.Duration { return deadAfter * 3 / 10 }

func awaitNotification(ctx context.Context, conn *pgx.Conn, every time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, every)
	defer cancel()
	_, err := conn.WaitForNotification(wait)
	if wait.Err() != nil && ctx.Err() == nil && !conn.IsClosed() {
		return nil // nothing has happened
	}
	return err
}

// holdApps reads the apps and keys of an epoch and holds the lock of that epoch, which tells
// WaitForInstances what this instance has seen. The lock is taken first, so that whoever makes a
// change that is not in the answer finds it and waits.
func holdApps(ctx context.Context, q *Queries, held int32, offsetsEpoch string) (int32, *Access, error) {
	for {
		before, err := q.AppsEpoch(ctx)
		if err != nil {
			return 0, nil, err
		}
		epoch := int32(before) //nolint:gosec // an advisory lock's key; two billion changes of apps are far off
		if epoch != held {
			if err := q.AppsEpochHold(ctx, epoch); err != nil {
				return 0, nil, err
			}
		}
		access, err := q.AccessGet(ctx, offsetsEpoch)
		if err != nil {
			return 0, nil, err
		}
		after, err := q.AppsEpoch(ctx)
		if err != nil {
			return 0, nil, err
		}
		if before == after {
			return epoch, access, nil
		}
		if epoch != held {
			if err := q.AppsEpochLetGo(ctx, epoch); err != nil {
				return 0, nil, err
			}
		}
	}
}

// ErrInstancesBehind is what WaitForInstances returns when time is up.
var ErrInstancesBehind = errors.New("a running instance has not taken the change over yet")

// WaitForInstances returns when every WatchApps, in this and other instances, has published the
// apps and keys as they are now. The patience is for them alone: it begins once the database has
// answered.
func (d *DB) WaitForInstances(ctx context.Context, patience time.Duration) error {
	epoch, err := d.queries.AppsEpoch(ctx)
	if err != nil {
		return fmt.Errorf("wait for the instances: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		behind, err := d.queries.AppsEpochsHeldBefore(ctx, epoch)
		switch {
		case ctx.Err() != nil:
			return ErrInstancesBehind
		case err != nil:
			return fmt.Errorf("wait for the instances: %w", err)
		case behind == 0:
			return nil
		case pause.For(ctx, 5*time.Millisecond) != nil:
			return ErrInstancesBehind
		}
	}
}
