package admin

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
	"footfall/visit/tag"
)

// errHashes ends a change of settings by which the addresses of visitors are to be hashed.
var errHashes = errors.New("the addresses of visitors are to be hashed")

// errHashed ends hashing the addresses of an app that has none any more.
var errHashed = errors.New("somebody else has hashed the addresses of visitors")

// hashedAtOnce is for how many addresses hashes are sent at once.
const hashedAtOnce = 50_000

// hashVisitors changes settings of an app that has counted by addresses, and is to count by their
// hashes: it puts these in place of all addresses in its rows, also of what waits in the inbox. First
// it keeps instances from counting for the app, so that nobody waits for its locks: its visits are
// answered 503 meanwhile. After an error all is as it was; where the command was killed, instances
// count again when the time is over that it had.
func (a *Admin) hashVisitors(ctx context.Context, name string, s app.Settings) error {
	var before, held *time.Time
	err := a.change(ctx, "hold app ", name, func(q queries, row *db.App) (err error) {
		before = row.HeldUntil // by another command
		held, err = q.AppHold(ctx, row.ID)
		return err
	})
	if err == nil || errors.Is(err, db.ErrInstancesBehind) { // for which the locks wait
		err = a.inErasure(ctx, name, func(q queries, row *db.App) error { return a.hashIn(ctx, q, row.ID, name, s) })
	}
	if err == nil {
		return a.changed(ctx, "set app "+name, nil)
	}
	letGo := func(q queries, row *db.App) error {
		return q.AppLetGo(context.WithoutCancel(ctx), AppLetGoParams{ID: row.ID, Held: held, Before: before})
	}
	// What was in the way of the one is told; the time ends.
	_ = a.change(context.WithoutCancel(ctx), "let go of app ", name, letGo)
	if errors.Is(err, errHashed) { // while this waited for its turn
		return a.SetApp(ctx, name, s)
	}
	return wrap("hash the addresses of app "+name, err)
}

// hashIn does so in a transaction. The row of the app keeps others from making pages, and the counters
// of all pages keep them from counting.
func (a *Admin) hashIn(ctx context.Context, q queries, id int32, name string, s app.Settings) error {
	was, err := q.AppLock(ctx, name)
	if err != nil {
		return err
	}
	if was.Visitor != app.ByAddress { // as those of another command would be hashed again
		return errHashed
	}
	if held, err := q.AppIsHeld(ctx, id); err != nil || !held { // instances that count wait for the locks, with other apps' visits
		return cmp.Or[error](err, visit.Errorf(visit.Unavailable, "", "app %s was held for as long as others erased: try again", name))
	}
	set := was
	if err := a.applyHashed(&was, &set, s); err != nil {
		return err
	}
	hashed, err := app.New(set, a.secret)
	if err != nil {
		return err
	}
	if _, err := visit.NetworkOf(app.BadgeVisitor, int(set.Ipv6Prefix)); err != nil {
		return err
	}
	hash := func(ips []netip.Addr) []netip.Addr {
		for i, ip := range ips {
			if ip != app.BadgeVisitor { // who is no address
				ips[i], _ = hashed.VisitorByAddress(a.secret, ip, tag.Agent{}, nil)
			}
		}
		return ips
	}
	var from int32
	for _, step := range []func() error{
		func() error { return q.AppCountersTake(ctx, id) },
		func() (err error) { from, err = hashCounted(ctx, q, id, hash); return err },
		func() error { return q.InboxHold(ctx) },
		func() error { return hashWaiting(ctx, q, id, set.Visitor, hash) },
		func() error { return q.VisitorsReadAnew(ctx) },
		func() error { return setApp(ctx, q, &was, &set) },
		func() error { return q.AppHashed(ctx, from, id) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// hashWaiting hashes the addresses of what waits in the inbox.
func hashWaiting(ctx context.Context, q queries, id int32, visitor string, hash func([]netip.Addr) []netip.Addr) error {
	waiting, err := q.InboxAddresses(ctx, id)
	for i := 0; i < len(waiting) && err == nil; i++ {
		err = q.InboxHash(ctx, InboxHashParams{Number: waiting[i].Number, Ips: hash(waiting[i].Ips), Visitor: visitor})
	}
	return err
}

// hashCounted hashes the addresses in rows that are counted, and returns from which day on sketches are
// of hashes.
func hashCounted(ctx context.Context, q queries, id int32, hash func([]netip.Addr) []netip.Addr) (from int32, err error) {
	all, err := q.AddressesList(ctx, id)
	for after := int64(0); after < all && err == nil; after += hashedAtOnce {
		var ips []netip.Addr
		if ips, err = q.AddressesListed(ctx, after, hashedAtOnce); err == nil {
			err = q.HashesNote(ctx, ips, hash(slices.Clone(ips)))
		}
	}
	if err != nil {
		return 0, err
	}
	return q.VisitorsHash(ctx, id)
}

// applyHashed applies settings to an app that counts by addresses, and is to do so by their hashes.
func (a *Admin) applyHashed(was, row *db.App, s app.Settings) error {
	if err := s.Apply(row, a.secret); err != nil {
		return err
	}
	if err := checkDropped(was, row); err != nil {
		return err
	}
	return app.CheckFixed(was, row)
}
