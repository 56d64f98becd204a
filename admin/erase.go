package admin

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"footfall/counter/app"
	"footfall/db"
	"footfall/inbox"
	"footfall/record"
	"footfall/visit"
)

// Visitor is the stored data about a visitor of an app.
type Visitor struct {
	StoredAs []netip.Addr // for a person, all ids
	Person   netip.Addr   // id that represents the person of these ids; invalid: none
	Tags     []string     // of the person
	Targets  []VisitorTargetsRow
}

// ShowVisitor returns the stored data about a visitor, who is given as an address, or as an id if the app uses ids. Any id of
// a person selects all ids of that person.
func (a *Admin) ShowVisitor(ctx context.Context, app, visitor string) (found Visitor, err error) {
	err = a.RunLong(ctx, app, func(ctx context.Context, a *Admin) error {
		return a.withVisitor(ctx, app, visitor, func(q queries, row *db.App, v Visitor) (err error) {
			found = v
			found.Targets, err = q.VisitorTargets(ctx, v.StoredAs, row.ID)
			return err
		})
	})
	return found, wrap("show a visitor of app "+app, err)
}

// searchedAtOnce is about how many targets one transaction searches for a visitor to erase. It locks the sites where it finds
// the visitor. The pages of a site are searched together.
const searchedAtOnce = 5000

// Erased has the numbers of erased data.
type Erased struct {
	Targets int64
	IDs     int // of the person
}

// EraseVisitor removes a visitor's addresses, or all ids of a person, from everything stored for an app. All sums and the ranks
// of other visitors stay. An erased visitor who visits again is a new visitor.
//
// It first counts the visits that were accepted before. A visit during the erasure may stay, with its site. If EraseVisitor
// fails, some sites are done. The next erasure finds the other sites by the same ids, which are deleted last. It also deletes
// the app's rejected messages, because their visitors are unknown.
func (a *Admin) EraseVisitor(ctx context.Context, app, visitor string) (erased Erased, err error) {
	err = a.RunErasing(ctx, app, func(ctx context.Context, a *Admin) error {
		_, err := a.CountAccepted(ctx, app)
		for linked := true; linked && err == nil; {
			linked, err = a.erasePerson(ctx, app, visitor, &erased)
		}
		return err
	})
	return erased, wrap("erase a visitor of app "+app, err)
}

// erasePerson erases a visitor. It returns linked if an id was linked to the person in the meantime, which has to be erased,
// too.
func (a *Admin) erasePerson(ctx context.Context, app, visitor string, erased *Erased) (linked bool, err error) {
	var of Visitor
	err = a.withVisitor(ctx, app, visitor, func(_ queries, _ *db.App, v Visitor) error { of = v; return nil })
	if err != nil {
		return false, err
	}
	var sites []AppSitesRow
	err = a.inErasure(ctx, app, func(q queries, row *db.App) (err error) {
		if sites, err = q.AppSites(ctx, row.ID); err != nil {
			return err
		}
		if err := q.note(ctx, row.Name, "visitor", "", "erased"); err != nil {
			return err
		}
		return q.RefusedDelete(ctx, row.ID)
	})
	for len(sites) > 0 && err == nil {
		var some []int64
		for targets := int64(0); len(sites) > 0 && (targets == 0 || targets+sites[0].Targets <= searchedAtOnce); sites = sites[1:] {
			targets += sites[0].Targets
			some = append(some, sites[0].ID)
		}
		err = a.inErasure(ctx, app, func(q queries, row *db.App) error {
			here, err := q.VisitorErase(ctx, VisitorEraseParams{AppID: row.ID, Sites: some, Ips: of.StoredAs})
			erased.Targets += here
			return err
		})
	}
	if err != nil || !of.Person.IsValid() {
		return false, err
	}
	deleteIDs := func(q queries, row *db.App) error {
		now, err := q.PersonIDs(ctx, row.ID, of.StoredAs)
		if linked = of.lacks(now); linked || err != nil {
			return err
		}
		erased.IDs = len(now)
		return q.PeopleErase(ctx, row.ID, of.StoredAs)
	}
	lock := func(q queries, ctx context.Context) error { // before the check for a move, which waits for this lock once
		row, err := appOf(ctx, q, app)
		if err != nil {
			return err
		}
		return q.PeopleLock(ctx, row.ID)
	}
	err = db.RetryBusy(ctx, func() error { return a.atLength(ctx, app, deleteIDs, lock) })
	return linked, err
}

// withVisitor runs f for a visitor, without the visitor's targets. It reads all people of the app to find all ids of a person.
// This takes long, so it does not block other erasures.
func (a *Admin) withVisitor(ctx context.Context, name, visitor string, f func(queries, *db.App, Visitor) error) error {
	return a.atLength(ctx, name, func(q queries, row *db.App) (err error) {
		var v Visitor
		if v.StoredAs, err = a.storedAs(ctx, q, row, visitor); err != nil {
			return err
		}
		if row.Visitor == app.ByID {
			if err := v.findPerson(ctx, q, row.ID); err != nil {
				return err
			}
		}
		return f(q, row, v)
	})
}

// findPerson adds the person that the visitor's id belongs to, if any, with all ids of that person.
func (v *Visitor) findPerson(ctx context.Context, q queries, app int32) error {
	typed := v.StoredAs[0]
	for {
		ids, err := q.PersonIDs(ctx, app, v.StoredAs)
		if err != nil || len(ids) == 0 {
			return err
		}
		more := v.lacks(ids)
		if v.StoredAs, v.Person = ids, typed; !more {
			break
		}
	}
	way, err := q.PersonTags(ctx, app, typed)
	for _, step := range way {
		v.Person, v.Tags = step.Person, step.Tags
	}
	return err
}

// lacks reports whether one of these ids is not the visitor's. Comparing how many ids there are would not be enough, because
// another erasure may have deleted some ids in the meantime.
func (v *Visitor) lacks(ids []netip.Addr) bool {
	has := make(map[netip.Addr]bool, len(v.StoredAs))
	for _, id := range v.StoredAs {
		has[id] = true
	}
	return slices.ContainsFunc(ids, func(id netip.Addr) bool { return !has[id] })
}

// inErasure runs f for an app in a transaction that excludes other erasures. f runs again after a deadlock, for example with an
// instance that counts visits from the inbox while their app is hashed.
func (a *Admin) inErasure(ctx context.Context, name string, f func(q queries, row *db.App) error) error {
	return a.RunErasing(ctx, name, func(ctx context.Context, a *Admin) error {
		return db.RetryBusy(ctx, func() error { return a.atLength(ctx, name, f, queries.EraseTurn) })
	})
}

// atLength runs f for an app in a slot, in a transaction without a statement timeout. The steps in first run before f.
func (a *Admin) atLength(ctx context.Context, name string, f func(q queries, row *db.App) error,
	first ...func(queries, context.Context) error) error {
	run := func(q queries) error {
		for _, step := range append([]func(queries, context.Context) error{queries.EraseBegin}, first...) {
			if err := step(q, ctx); err != nil {
				return err
			}
		}
		row, err := appOf(ctx, q, name)
		if err != nil {
			return err
		}
		if row.MovingTo != nil {
			return onItsWay(row)
		}
		if err := q.wholly(ctx, row); err != nil {
			return err
		}
		return f(q, row)
	}
	return a.RunLong(ctx, name, func(ctx context.Context, a *Admin) error { return a.inTx(ctx, run) })
}

// CountAccepted counts the visits that were accepted for an app, and returns their number. No visit can then leave the inbox
// after its target is deleted. Counting also deletes the visits' rows in the inbox, which contain addresses.
func (a *Admin) CountAccepted(ctx context.Context, app string) (visits int64, err error) {
	var id int32
	err = a.read(ctx, app, func(q queries, row *db.App) (err error) {
		id = row.ID
		visits, err = q.InboxBehind(ctx, id, 0)
		return err
	})
	if err == nil && visits > 0 {
		visits, err = a.settle(ctx, id)
	}
	return visits, wrap("count the visits in the inbox", err)
}

func (a *Admin) settle(ctx context.Context, app int32) (visits int64, err error) {
	r, err := record.Open(ctx, a.db, record.Options{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return inbox.Settle(ctx, a.db, r, app, inbox.Options{})
}

// StoredAs returns the addresses under which an app may have stored a visitor. typed is an address, an id (with the prefix
// id: if it is ambiguous), or a hash as in reports, which is an address in fd00::/8. If hashes change daily, there is one
// address for each day whose key still exists, the latest day first. If browsers are distinguished, there is one for each
// possible browser at an address.
func (a *Admin) StoredAs(ctx context.Context, row *db.App, typed string) (ips []netip.Addr, err error) {
	if stored, err := netip.ParseAddr(typed); err == nil && visit.IsHash(stored) {
		return []netip.Addr{stored}, nil
	}
	err = a.db.Read(ctx, func(shared *db.Queries) (err error) {
		q := queries{Queries: New(shared.Tx()), shared: shared}
		ips, err = a.storedAs(ctx, q, row, strings.TrimPrefix(typed, app.IDPrefix))
		return err
	})
	return ips, wrap("find a visitor of app "+row.Name, err)
}

// storedAs is like StoredAs, for an address or an id.
func (a *Admin) storedAs(ctx context.Context, q queries, row *db.App, visitor string) (ips []netip.Addr, err error) {
	of, err := app.New(*row, a.secret)
	if err != nil {
		return nil, err
	}
	if of.Fault != nil {
		return nil, visit.Errorf(visit.Invalid, "app", "%v", of.Fault)
	}
	if of.Mode == app.ByID {
		ip, err := of.VisitorByID(a.secret, visitor)
		return []netip.Addr{ip}, err
	}
	address, err := visit.ParseAddress(visitor)
	if err != nil {
		return nil, err
	}
	days := []DayKey{{}} // an empty key if none is needed
	if of.Mode == app.ByDay {
		if days, err = q.DayKeysList(ctx); err != nil {
			return nil, err
		}
	}
	for _, day := range slices.Backward(days) {
		of, err := of.VisitorsByAddress(a.secret, address, day.Key)
		if err != nil {
			return nil, err
		}
		ips = append(ips, of...)
	}
	return ips, nil
}
