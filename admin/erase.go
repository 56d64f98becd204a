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
	StoredAs []netip.Addr // the visitor's stored addresses or hashes; for a person with several ids, the hashes of all ids
	Person   netip.Addr   // the id in StoredAs that represents the person; invalid: the visitor belongs to no person
	Tags     []string     // tags that are stored with the person
	Targets  []VisitorTargetsRow
}

// ShowVisitor returns the stored data about a visitor. visitor is an address or, if the app identifies visitors by ids, an id.
// Any id of a person selects all ids of that person.
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

// searchedAtOnce is the approximate number of pages and sites that one transaction of an erasure searches. It is limited
// because the transaction locks each site where it finds the visitor. A site and its pages are always searched in the same
// transaction.
const searchedAtOnce = 5000

// ErasureResult shows how much an erasure has removed.
type ErasureResult struct {
	Targets int64 // number of pages and sites; counted once for each address or id that was stored there
	IDs     int   // number of erased ids of the person; 0: the visitor belonged to no person
}

// EraseVisitor removes a visitor's addresses, or all ids of a person, from everything stored for an app. All sums and the
// ranks of other visitors stay the same. An erased visitor who visits again is a new visitor.
//
// EraseVisitor first counts the visits that wait in the inbox. A visit that arrives during the erasure may stay stored, for
// its page and its site. The visitor is erased site by site, and the ids of a person are deleted last. So after an error, a
// second call finds the remaining sites by the same ids. EraseVisitor also deletes the app's rejected messages from queues,
// because it is not recorded which visitors they are about.
func (a *Admin) EraseVisitor(ctx context.Context, app, visitor string) (erased ErasureResult, err error) {
	err = a.RunErasing(ctx, app, func(ctx context.Context, a *Admin) error {
		_, err := a.CountAccepted(ctx, app)
		for linked := true; linked && err == nil; {
			linked, err = a.erasePerson(ctx, app, visitor, &erased)
		}
		return err
	})
	return erased, wrap("erase a visitor of app "+app, err)
}

// erasePerson erases a visitor. linked is true if another id was linked to the person in the meantime. The caller then calls
// erasePerson again to erase this id, too.
func (a *Admin) erasePerson(ctx context.Context, app, visitor string, erased *ErasureResult) (linked bool, err error) {
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
	// Lock the app's people before inLongTx checks whether the app is moving. A move first marks the app as moving, and then
	// waits for this lock (Moving.copy). So either inLongTx finds the mark, or the move copies the people after this erasure.
	lock := func(q queries, ctx context.Context) error {
		row, err := findApp(ctx, q, app)
		if err != nil {
			return err
		}
		return q.PeopleLock(ctx, row.ID)
	}
	err = db.RetryBusy(ctx, func() error { return a.inLongTx(ctx, app, deleteIDs, lock) })
	return linked, err
}

// withVisitor looks up how a visitor is stored, and passes the result to f without the field Targets. To find all ids of a
// person, it reads all people of the app. Because this takes long, withVisitor does not block other erasures.
func (a *Admin) withVisitor(ctx context.Context, name, visitor string, f func(queries, *db.App, Visitor) error) error {
	return a.inLongTx(ctx, name, func(q queries, row *db.App) (err error) {
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

// findPerson sets v.Person and v.Tags, and sets v.StoredAs to all ids of the person. If the visitor's id belongs to no person,
// it changes nothing.
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

// lacks reports whether v.StoredAs lacks one of these ids. Comparing the numbers of ids would not be enough, because another
// erasure may have deleted some ids in the meantime.
func (v *Visitor) lacks(ids []netip.Addr) bool {
	has := make(map[netip.Addr]bool, len(v.StoredAs))
	for _, id := range v.StoredAs {
		has[id] = true
	}
	return slices.ContainsFunc(ids, func(id netip.Addr) bool { return !has[id] })
}

// inErasure runs f for an app in a transaction that excludes other erasures. It runs f again after a deadlock. For example,
// hashing the visitors of an app can deadlock with an instance that counts the app's visits from the inbox.
func (a *Admin) inErasure(ctx context.Context, name string, f func(q queries, row *db.App) error) error {
	return a.RunErasing(ctx, name, func(ctx context.Context, a *Admin) error {
		return db.RetryBusy(ctx, func() error { return a.inLongTx(ctx, name, f, queries.EraseTurn) })
	})
}

// inLongTx runs f for an app in a slot, in a transaction without a statement timeout. Before it reads the app, it runs the
// functions in first. It returns an error if the app is moving, or has not completely moved to this database.
func (a *Admin) inLongTx(ctx context.Context, name string, f func(q queries, row *db.App) error,
	first ...func(queries, context.Context) error) error {
	run := func(q queries) error {
		for _, step := range append([]func(queries, context.Context) error{queries.EraseBegin}, first...) {
			if err := step(q, ctx); err != nil {
				return err
			}
		}
		row, err := findApp(ctx, q, name)
		if err != nil {
			return err
		}
		if row.MovingTo != nil {
			return errMoving(row)
		}
		if err := q.requireArrived(ctx, row); err != nil {
			return err
		}
		return f(q, row)
	}
	return a.RunLong(ctx, name, func(ctx context.Context, a *Admin) error { return a.inTx(ctx, run) })
}

// CountAccepted counts the visits of an app that wait in the inbox, and returns their number. An erasure or deletion calls it
// first. Otherwise an older visit in the inbox could be counted after the deletion of its page. Counting also deletes the
// visits' rows in the inbox, which contain addresses.
func (a *Admin) CountAccepted(ctx context.Context, app string) (visits int64, err error) {
	var id int32
	err = a.read(ctx, app, func(q queries, row *db.App) (err error) {
		id = row.ID
		visits, err = q.InboxBehind(ctx, id, 0)
		return err
	})
	if err == nil && visits > 0 {
		visits, err = a.countInbox(ctx, id)
	}
	return visits, wrap("count the visits in the inbox", err)
}

func (a *Admin) countInbox(ctx context.Context, app int32) (visits int64, err error) {
	r, err := record.Open(ctx, a.db, record.Options{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return inbox.Settle(ctx, a.db, r, app, inbox.Options{})
}

// StoredAs returns the addresses under which an app may have stored a visitor. typed is an address, an id, or a hash as shown
// in reports. A hash is written as an IPv6 address in fd00::/8. An id that looks like a hash needs the prefix id:. If the app
// uses another key for hashes on each day, StoredAs returns an address for each day whose key still exists, the latest day
// first. If the app distinguishes browsers, it returns an address for each possible browser.
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

// storedAs is StoredAs for an address, or for an id from which the caller has removed the prefix "id:".
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
	days := []DayKey{{}} // one empty key, unless the app hashes visitors with a different key on each day
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
