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

// errHashes stops a change of settings that requires hashing the visitors' addresses first. SetApp then calls hashVisitors.
var errHashes = errors.New("the visitors' addresses must be hashed")

// errHashed stops hashVisitors if another command has already hashed the app's addresses.
var errHashed = errors.New("another command has hashed the visitors' addresses")

// hashedAtOnce is the number of addresses in one query.
const hashedAtOnce = 50_000

// hashVisitors changes an app so that it identifies visitors by hash instead of by address. It replaces all addresses in the
// app's rows and in the inbox by hashes. It first stops counting for the app, so that its locks delay no other app. Until it
// returns, the app's visits get status 503. After an error, everything is unchanged. If the command is killed, instances count
// for the app again after the time limit in AppHold.
func (a *Admin) hashVisitors(ctx context.Context, name string, s app.Settings) error {
	var before, held *time.Time
	err := a.change(ctx, "pause counting for app ", name, func(q queries, row *db.App) (err error) {
		before = row.HeldUntil // the end of a pause that another command has set; nil: none
		held, err = q.AppHold(ctx, row.ID)
		return err
	})
	// An instance that is behind may still count for the app, but hashInTx takes locks that wait for it.
	if err == nil || errors.Is(err, db.ErrInstancesBehind) {
		err = a.inErasure(ctx, name, func(q queries, row *db.App) error { return a.hashInTx(ctx, q, row.ID, name, s) })
	}
	if err == nil {
		return a.waitForChange(ctx, "set app "+name, nil)
	}
	letGo := func(q queries, row *db.App) error {
		return q.AppLetGo(context.WithoutCancel(ctx), AppLetGoParams{ID: row.ID, Held: held, Before: before})
	}
	// Ignore an error of this change, because the caller gets the first error. Even if this change fails, counting resumes
	// when the time limit of AppHold has passed.
	_ = a.change(context.WithoutCancel(ctx), "resume counting for app ", name, letGo)
	if errors.Is(err, errHashed) { // another command hashed the addresses while this command waited
		return a.SetApp(ctx, name, s)
	}
	return wrap("hash the addresses of app "+name, err)
}

// hashInTx hashes the addresses in a transaction. Its lock on the app's row keeps other transactions from creating pages. Its
// locks on the counters of all pages keep other transactions from counting.
func (a *Admin) hashInTx(ctx context.Context, q queries, id int32, name string, s app.Settings) error {
	was, err := q.AppLock(ctx, name)
	if err != nil {
		return err
	}
	if was.Visitor != app.ByAddress { // another command has already hashed the addresses
		return errHashed
	}
	// Stop if the pause has ended: instances count for the app again, so visits of other apps would wait for the locks below.
	if held, err := q.AppIsHeld(ctx, id); err != nil || !held {
		return cmp.Or[error](err, visit.Errorf(visit.Unavailable, "", "app %s was busy with other deletions for too long: try again", name))
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
			if ip != app.BadgeVisitor { // BadgeVisitor is not an address: it is the one visitor for all visits that badges count
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
		func() error { return q.VisitorsReload(ctx) },
		func() error { return setApp(ctx, q, &was, &set) },
		func() error { return q.AppHashed(ctx, from, id) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// hashWaiting hashes the addresses in the inbox.
func hashWaiting(ctx context.Context, q queries, id int32, visitor string, hash func([]netip.Addr) []netip.Addr) error {
	waiting, err := q.InboxAddresses(ctx, id)
	for i := 0; i < len(waiting) && err == nil; i++ {
		err = q.InboxHash(ctx, InboxHashParams{Number: waiting[i].Number, Ips: hash(waiting[i].Ips), Visitor: visitor})
	}
	return err
}

// hashCounted hashes the addresses in counted rows. It returns the first day whose sketches (which estimate the number of
// distinct visitors) were made from hashes.
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

// applyHashed applies settings that change an app from addresses to hashes.
func (a *Admin) applyHashed(was, row *db.App, s app.Settings) error {
	if err := s.Apply(row, a.secret); err != nil {
		return err
	}
	if err := checkDropped(was, row); err != nil {
		return err
	}
	return app.CheckFixed(was, row)
}
