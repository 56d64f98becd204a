package admin

import (
	"context"
	"math"
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
		return inTurn(ctx, row.ID, q.QueuesHold, q.RefusedDelete)
	})
	for len(sites) > 0 && err == nil {
		var some []int64
		for targets := int64(0); len(sites) > 0 && (targets == 0 || targets+sites[0].Targets <= searchedAtOnce); sites = sites[1:] {
			targets += sites[0].Targets
			some = append(some, sites[0].ID)
		}
		err = a.inErasure(ctx, app, func(q queries, row *db.App) error {
			here, err := eraseAt(ctx, q, row, of.StoredAs, some)
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
		return erasePeople(ctx, q, PeopleEraseParams{AppID: row.ID, Ids: of.StoredAs})
	}, func(q queries, ctx context.Context) error { // before it looks whether the app moves, which waits for this once
		row, err := appOf(ctx, q, app)
		if err != nil {
			return err
		}
		return q.PeopleLock(ctx, row.ID)
	})
	return linked, err
}

// erasePeople deletes the rows of some ids. A row of the period before may be copied into the present
// one until it is deleted, so the copies come after it.
func erasePeople(ctx context.Context, q queries, rows PeopleEraseParams) error {
	rows.Closed = true
	if err := q.PeopleErase(ctx, rows); err != nil {
		return err
	}
	rows.Closed = false
	return q.PeopleErase(ctx, rows)
}

// eraseAt erases a visitor at some sites.
func eraseAt(ctx context.Context, q queries, row *db.App, ips []netip.Addr, sites []int64) (erased int64, err error) {
	if err := q.AppDaysHold(ctx, row.ID); err != nil {
		return 0, err
	}
	if err := q.HereErase(ctx, sites, ips); err != nil {
		return 0, err
	}
	unseen, err := q.OldestUnseen(ctx)
	if err != nil {
		return 0, err
	}
	found, err := q.VisitorTargetsAt(ctx, ips, sites)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	if err := eraseOldVisits(ctx, q, found, ips); err != nil {
		return 0, err
	}
	e := erasing{q: q, ips: ips}
	e.add(found)
	return e.eraseHeld(ctx, unseen)
}

// eraseOldVisits erases a visitor's visits of the days before the last one of each site. Nobody
// counts on these now but late visits, which wait, so it holds nothing that another visit waits
// for, however long it takes.
func eraseOldVisits(ctx context.Context, q queries, found []VisitorTargetsAtRow, ips []netip.Addr) error {
	first, last := int32(math.MaxInt32), int32(0)
	for _, f := range found {
		first, last = min(first, f.FirstDay), max(last, f.LastDay)
	}
	days, err := q.VisitsDays(ctx, first, last)
	if err != nil {
		return err
	}
	for _, day := range days {
		var pages []int64
		for _, f := range found {
			if f.FirstDay <= day && day <= f.LastDay && day < f.SiteDay {
				pages = append(pages, f.ID)
			}
		}
		if len(pages) == 0 {
			continue
		}
		if err := q.VisitsErase(ctx, VisitsEraseParams{Day: day, Pages: pages, Ips: ips}); err != nil {
			return err
		}
	}
	return nil
}

// erasing is the end of an erasure: what other visits wait for.
type erasing struct {
	q     queries
	ips   []netip.Addr
	sites []int64
	days  []int32 // of each site the last one, when the visitor was looked for

	pages   []int64 // the targets at which they were found
	visited []int64 // those of them that they may have visited on that day or since
}

// add adds the targets at which the visitor was found.
func (e *erasing) add(found []VisitorTargetsAtRow) {
	seen := map[int64]bool{}
	for _, f := range found {
		e.pages = append(e.pages, f.ID)
		if f.LastDay >= f.SiteDay || f.ID == f.SiteID { // a site whose page they visited since is visited itself
			e.visited = append(e.visited, f.ID)
		}
		if !seen[f.SiteID] {
			seen[f.SiteID] = true
			e.sites, e.days = append(e.sites, f.SiteID), append(e.days, f.SiteDay)
		}
	}
}

// eraseHeld locks the sites, so that no visit of the visitor's to these is under way, and erases
// what is left there, with what was counted by transactions that were unseen when the targets were
// found. Visits wait meanwhile, so nothing is read but by its key, and as much as can be is read
// before: what came while the targets were found, which may have taken long, and the rows that will
// go.
func (e *erasing) eraseHeld(ctx context.Context, unseen int64) (erased int64, err error) {
	if err := e.q.EraseByKey(ctx); err != nil {
		return 0, err
	}
	stillUnseen, err := e.q.OldestUnseen(ctx)
	if err != nil {
		return 0, err
	}
	if err := e.look(ctx, unseen); err != nil {
		return 0, err
	}
	if err := e.q.VisitorKeep(ctx, e.pages, e.ips); err != nil {
		return 0, err
	}
	if err := e.q.VisitsKeep(ctx, VisitsKeepParams{Days: e.days, Pages: e.visited, Ips: e.ips}); err != nil {
		return 0, err
	}
	if err := e.q.CountersHold(ctx, e.sites); err != nil {
		return 0, err
	}
	if err := e.look(ctx, stillUnseen); err != nil {
		return 0, err
	}
	if erased, err = e.q.VisitorErase(ctx, e.pages, e.ips); err != nil {
		return 0, err
	}
	days, err := e.q.SitesDaysSince(ctx, e.sites, e.days)
	if err != nil {
		return 0, err
	}
	for _, day := range days {
		if err := e.q.VisitsErase(ctx, VisitsEraseParams{Day: day, Pages: e.visited, Ips: e.ips}); err != nil {
			return 0, err
		}
	}
	return erased, nil
}

// look adds the targets at which the visitor was counted by transactions that were unseen.
func (e *erasing) look(ctx context.Context, unseen int64) error {
	since, err := e.q.VisitorPagesSince(ctx, VisitorPagesSinceParams{Sites: e.sites, FromDays: e.days, OldestUnseen: unseen, Ips: e.ips})
	e.pages, e.visited = append(e.pages, since...), append(e.visited, since...)
	return err
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
