package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/pause"
)

// Access contains the data for deciding which requests may count or read: all apps, and the keys and links that are
// not revoked. It also contains the offsets: numbers from before Footfall, which are added to the counted numbers.
type Access struct {
	Apps   []App
	Keys   []KeysOpenRow
	Shares []SharesOpenRow
	// OffsetsEpoch is the version of the offsets. If the caller already has this version, Offsets is
	// empty.
	OffsetsEpoch string
	Offsets      []OffsetsAllRow
}

// AccessGet reads the apps, keys, links and offsets. It skips the offsets if offsetsEpoch is still their
// version.
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
	epoch, err := q.OffsetsEpoch(ctx) // read before the offsets, so that the offsets are never older than the epoch
	if err != nil {
		return nil, err
	}
	access := &Access{Apps: apps, Keys: keys, Shares: shares, OffsetsEpoch: epoch}
	if epoch != offsetsEpoch {
		access.Offsets, err = q.OffsetsAll(ctx)
	}
	return access, err
}

// WatchApps calls publish with all apps and keys, now and after every change. It runs until ctx ends, the
// connection is lost, or batches go to another server. Then it calls publish(nil) and returns the reason. While it
// runs, WaitForInstances waits until publish has returned for the latest change. offsetsEpoch is the version of the
// offsets that the caller already has, or "" if it has none.
func (d *DB) WatchApps(ctx context.Context, offsetsEpoch string, publish func(*Access)) (err error) {
	defer func() { err = fmt.Errorf("watch apps: %w", err) }() // WatchApps never returns nil
	conn, err := pgx.ConnectConfig(ctx, d.sessions.connConfig(nil))
	if err != nil {
		return err
	}
	defer func() {
		publish(nil) // while the connection still has its lock
		_ = conn.Close(context.WithoutCancel(ctx))
	}()
	q := New(conn)
	if err := q.AppsListen(ctx); err != nil {
		return err
	}
	heldEpoch := int32(-1)
	for {
		within, cancel := context.WithTimeout(ctx, watchPatience(d.options.DeadAfter))
		epoch, access, err := holdApps(within, q, heldEpoch, offsetsEpoch)
		cancel()
		if err != nil {
			return err
		}
		if epoch != heldEpoch {
			publish(access)
			offsetsEpoch = access.OffsetsEpoch
		}
		if heldEpoch >= 0 && heldEpoch != epoch {
			if err := q.AppsEpochLetGo(ctx, heldEpoch); err != nil {
				return err
			}
		}
		heldEpoch = epoch
		if err := awaitNotification(ctx, conn, watchEvery(d.options.DeadAfter)); err != nil {
			return err
		}
		if d.sessions.leadsElsewhere(conn.PgConn()) {
			return errors.New("batches now go to another server")
		}
	}
}

// A connection whose other end has vanished looks like an idle connection. So WatchApps reads the version of the apps
// (their epoch) at the interval watchEvery, and each read must finish within watchPatience. The sum of these two times
// is half of deadAfter. So when WatchApps has lost the server, it calls publish(nil) before the server closes the
// connection and releases the lock of the epoch.
func watchEvery(deadAfter time.Duration) time.Duration    { return deadAfter / 5 }
func watchPatience(deadAfter time.Duration) time.Duration { return deadAfter * 3 / 10 }

func awaitNotification(ctx context.Context, conn *pgx.Conn, every time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, every)
	defer cancel()
	_, err := conn.WaitForNotification(wait)
	if wait.Err() != nil && ctx.Err() == nil && !conn.IsClosed() {
		return nil // no notification arrived
	}
	return err
}

// holdApps reads the apps and keys, and returns them with their epoch, a number that rises with every change.
// The session of q then holds the lock of this epoch, which shows WaitForInstances how far this instance has read.
// heldEpoch is an epoch whose lock the session already holds. holdApps takes the lock before it reads the apps. So if a
// change is missing in the result, the locked epoch is older than the change, and WaitForInstances waits.
func holdApps(ctx context.Context, q *Queries, heldEpoch int32, offsetsEpoch string) (int32, *Access, error) {
	for {
		before, err := q.AppsEpoch(ctx)
		if err != nil {
			return 0, nil, err
		}
		epoch := int32(before) //nolint:gosec // an advisory lock's key; two billion changes of apps are far off
		if epoch != heldEpoch {
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
		if epoch != heldEpoch {
			if err := q.AppsEpochLetGo(ctx, epoch); err != nil {
				return 0, nil, err
			}
		}
	}
}

// ErrInstancesBehind is returned by WaitForInstances if an instance has not published the present apps within the
// time patience.
var ErrInstancesBehind = errors.New("a running instance has not applied the change yet")

// WaitForInstances returns when every WatchApps, in this and other instances, has published the
// present apps and keys. The time limit patience starts when the database has returned the present epoch.
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
