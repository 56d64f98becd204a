package counter

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"slices"
	"strings"

	"footfall/db"
	"footfall/visit"
)

// Footprint is what is stored of a visitor at one target.
type Footprint struct {
	Target            string
	Visitor           netip.Addr
	Rank              int64
	FirstDay, LastDay int32
}

// ShowVisitor returns what is stored of a visitor of an app, who is named by an address, or by an id where the app has ids.
func (a *Admin) ShowVisitor(ctx context.Context, app, visitor string) (prints []Footprint, err error) {
	err = a.withVisitor(ctx, app, visitor, func(q *db.Queries, row *db.App, ips []netip.Addr) error {
		found, err := q.VisitorTargets(ctx, db.VisitorTargetsParams{AppID: row.ID, Ips: ips})
		for _, f := range found {
			prints = append(prints, Footprint{Target: f.Uri, Visitor: f.Ip, Rank: f.Rank, FirstDay: f.FirstDay, LastDay: f.LastDay})
		}
		return err
	})
	return prints, wrap("show a visitor of app "+app, err)
}

// EraseVisitor takes the addresses of a visitor out of everything that is stored for an app, and returns at how many
// targets he was known. All sums and the ranks of others stay. Who comes again is a new visitor.
func (a *Admin) EraseVisitor(ctx context.Context, app, visitor string) (erased int64, err error) {
	err = a.withVisitor(ctx, app, visitor, func(q *db.Queries, row *db.App, ips []netip.Addr) error {
		pages, when, err := holdVisitor(ctx, q, db.VisitorTargetsParams{AppID: row.ID, Ips: ips})
		if err != nil || len(pages) == 0 {
			return err
		}
		if erased, err = q.VisitorErase(ctx, db.VisitorEraseParams{Pages: pages, Ips: ips}); err != nil {
			return err
		}
		days, err := q.VisitsDays(ctx, when)
		if err != nil {
			return err
		}
		for _, day := range days {
			if err := q.VisitsErase(ctx, db.VisitsEraseParams{Day: day, Pages: pages, Ips: ips}); err != nil {
				return err
			}
		}
		return nil
	})
	return erased, wrap("erase a visitor of app "+app, err)
}

// holdVisitor locks the sites of a visitor and returns all targets there at which he is known, and from when to when. No visit of his
// to those sites is under way then. Where else he has come meanwhile, that was after the erasure began.
func holdVisitor(ctx context.Context, q *db.Queries, who db.VisitorTargetsParams) (pages []int64, when db.VisitsDaysParams, err error) {
	found, err := q.VisitorTargets(ctx, who)
	if err != nil {
		return nil, when, err
	}
	held := []int64{}
	for _, f := range found {
		held = append(held, f.SiteID)
	}
	if err := q.CountersHold(ctx, held); err != nil {
		return nil, when, err
	}
	if found, err = q.VisitorTargets(ctx, who); err != nil { // with what was counted before the locks were had
		return nil, when, err
	}
	when.FirstDay = math.MaxInt32
	for _, f := range found {
		if slices.Contains(held, f.SiteID) {
			pages = append(pages, f.ID)
			when.FirstDay, when.LastDay = min(when.FirstDay, f.FirstDay), max(when.LastDay, f.LastDay)
		}
	}
	return pages, when, nil
}

// withVisitor runs f on the addresses under which an app may have stored a visitor.
func (a *Admin) withVisitor(ctx context.Context, name, visitor string, f func(*db.Queries, *db.App, []netip.Addr) error) error {
	return a.erasing(ctx, func(q *db.Queries) error {
		row, err := appOf(ctx, q, name)
		if err != nil {
			return err
		}
		ips, err := a.storedAs(ctx, q, row, visitor)
		if err != nil {
			return err
		}
		return f(q, row, ips)
	})
}

// StoredAs returns the addresses under which an app may have stored a visitor, by what somebody has typed: an address, an id
// (which may begin with id: where it would be read as something else), or the address in fd00::/8 by which reports name a visitor
// that is a hash. Where hashes turn each day there are several, the one of the latest day first.
func (a *Admin) StoredAs(ctx context.Context, app, typed string) (ips []netip.Addr, err error) {
	if stored, err := netip.ParseAddr(typed); err == nil && hashes.Contains(stored) {
		return []netip.Addr{stored}, nil
	}
	err = a.db.Read(ctx, func(q *db.Queries) error {
		row, err := appOf(ctx, q, app)
		if err == nil {
			ips, err = a.storedAs(ctx, q, row, strings.TrimPrefix(typed, ignoredID))
		}
		return err
	})
	return ips, wrap("find a visitor of app "+app, err)
}

// storedAs is every address under which an app may have stored a visitor: one, or one for each day where they turn.
func (a *Admin) storedAs(ctx context.Context, q *db.Queries, row *db.App, visitor string) (ips []netip.Addr, err error) {
	if err := checkSecret(row, a.secret); err != nil {
		return nil, visit.Errorf(visit.Invalid, "app", "%v", err)
	}
	app, err := newApp(*row, a.secret)
	if err != nil {
		return nil, err
	}
	if app.mode == byID {
		ip, err := app.visitorByID(a.secret, visitor)
		return []netip.Addr{ip}, err
	}
	address, err := visit.ParseAddress(visitor)
	if err != nil {
		return nil, err
	}
	days := []db.DayKey{{}} // no key, where none is needed
	if app.mode == byDay {
		if days, err = q.DayKeysList(ctx); err != nil {
			return nil, err
		}
	}
	for _, day := range slices.Backward(days) {
		ip, err := app.visitorByAddress(a.secret, address, day.Key)
		if err != nil {
			return nil, err
		}
		ips = append(ips, ip)
	}
	return ips, nil
}

// appOf returns an app by its name.
func appOf(ctx context.Context, q *db.Queries, name string) (*db.App, error) {
	row, err := q.AppGet(ctx, name)
	if errors.Is(err, db.ErrNoRows) {
		return nil, noApp("app", name)
	}
	return &row, err
}

// erasing runs f in a transaction that alone erases.
func (a *Admin) erasing(ctx context.Context, f func(q *db.Queries) error) error {
	return a.db.InTx(ctx, func(q *db.Queries) error {
		if err := q.EraseBegin(ctx); err != nil {
			return err
		}
		if err := q.EraseTurn(ctx); err != nil {
			return err
		}
		return f(q)
	})
}
