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

// Visitor is what is stored of a visitor of an app.
type Visitor struct {
	StoredAs []netip.Addr // of a person all ids
	Person   netip.Addr   // to whom these lead, one of them; not valid: nobody has said whose id it is
	Tags     []string     // of the person
	Targets  []VisitorTargetsRow
}

// ShowVisitor returns what is stored of a visitor of an app, who is named by an address, or by an
// id where the app tells visitors apart by ids: any id of a person stands for all of them.
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

// searchedAtOnce is for about how many targets one transaction looks for a visitor, to erase them
// there: it locks the sites at which they are found. The pages of a site stay together.
const searchedAtOnce = 5000

// Erased says what was erased of a visitor.
type Erased struct {
	Targets int64
	IDs     int // of the person
}

// EraseVisitor takes the addresses of a visitor, of a person all ids, out of everything that is
// stored for an app. All sums and the ranks of others stay. An erased visitor who comes again is a
// new visitor. What they visit while they are erased may stay, with its site: that visit came after
// the erasure began. After an error some sites are done, and the next erasure finds the others, by
// the same ids, which go last. What was accepted before is counted first. Refused messages of the
// app go: nobody can tell whose they were.
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

// erasePerson erases a visitor, unless an id was linked to the person meanwhile: then that is to be
// erased, too.
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
	err = a.atLength(ctx, app, func(q queries, row *db.App) error {
		now, err := q.PersonIDs(ctx, row.ID, of.StoredAs)
		if linked = of.lacks(now); linked || err != nil {
			return err
		}
		erased.IDs = len(now)
		return q.PeopleErase(ctx, row.ID, of.StoredAs)
	}, func(q queries, ctx context.Context) error { // before it looks whether the app moves, which waits for this once
		row, err := appOf(ctx, q, app)
		if err != nil {
			return err
		}
		return q.PeopleLock(ctx, row.ID)
	})
	return linked, err
}

// withVisitor runs f on a visitor of an app, of whom it has not looked for targets yet. It lets others
// erase meanwhile: to find all ids of a person it reads all people of the app.
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

// findPerson adds the person to whom the visitor's id leads, if there is one, and all ids that do.
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

// lacks reports whether one of these ids is none of the visitor's. There may be as many as before
// nevertheless: another erasure may have taken some meanwhile.
func (v *Visitor) lacks(ids []netip.Addr) bool {
	has := make(map[netip.Addr]bool, len(v.StoredAs))
	for _, id := range v.StoredAs {
		has[id] = true
	}
	return slices.ContainsFunc(ids, func(id netip.Addr) bool { return !has[id] })
}

// inErasure runs f on an app in a transaction while no other one erases.
func (a *Admin) inErasure(ctx context.Context, name string, f func(q queries, row *db.App) error) error {
	return a.RunErasing(ctx, name, func(ctx context.Context, a *Admin) error { return a.atLength(ctx, name, f, queries.EraseTurn) })
}

// atLength runs f on an app in a slot, in a transaction whose statements may take long, after what comes first.
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

// CountAccepted counts the visits of an app that were accepted before, so that none of them comes
// out of the inbox after what it was counted for is gone; their rows there, which have addresses, go
// with that. It returns how many visits there were.
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
	return visits, wrap("count what is in the inbox", err)
}

func (a *Admin) settle(ctx context.Context, app int32) (visits int64, err error) {
	r, err := record.Open(ctx, a.db, record.Options{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return inbox.Settle(ctx, a.db, r, app, inbox.Options{})
}

// StoredAs returns the addresses under which an app may have stored a visitor. A visitor is typed
// as an address, as an id (with id: in front where it could be read as something else), or as
// reports write one who is a hash: an address in fd00::/8. Where hashes change each day there is
// one address for each day whose key is still there, that of the latest day first; where browsers are
// told apart, one for each that may be behind an address.
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

// storedAs does so for an address or an id.
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
	days := []DayKey{{}} // no key, where none is needed
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
