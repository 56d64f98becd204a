package counter

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"slices"

	"footfall/db"
)

// Footprint is what is stored of a visitor for one target.
type Footprint struct {
	Target            string
	Visitor           netip.Addr
	Rank              int64
	FirstDay, LastDay int32
}

// ShowVisitor returns what is stored of a visitor of an app, who is named by an address, or by an
// id where the app tells visitors apart by ids.
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

// EraseVisitor takes the addresses of a visitor out of everything that is stored for an app, and
// returns for how many targets the visitor was erased. All sums and the ranks of others stay. An
// erased visitor who comes again is a new visitor.
func (a *Admin) EraseVisitor(ctx context.Context, app, visitor string) (erased int64, err error) {
	err = a.withVisitor(ctx, app, visitor, func(q *db.Queries, row *db.App, ips []netip.Addr) error {
		pages, days, err := holdVisitor(ctx, q, db.VisitorTargetsParams{AppID: row.ID, Ips: ips})
		if err != nil || len(pages) == 0 {
			return err
		}
		if erased, err = q.VisitorErase(ctx, db.VisitorEraseParams{Pages: pages, Ips: ips}); err != nil {
			return err
		}
		partitions, err := q.VisitsDays(ctx, days)
		if err != nil {
			return err
		}
		for _, day := range partitions {
			if err := q.VisitsErase(ctx, db.VisitsEraseParams{Day: day, Pages: pages, Ips: ips}); err != nil {
				return err
			}
		}
		return nil
	})
	return erased, wrap("erase a visitor of app "+app, err)
}

// holdVisitor locks the sites of a visitor, so that no visit of theirs to these sites is under way,
// and returns all targets there for which they are stored, with the first and the last of their
// days. A site that they came to in the meantime is left out: that visit came after the erasure
// began.
func holdVisitor(ctx context.Context, q *db.Queries, visitor db.VisitorTargetsParams) (pages []int64, days db.VisitsDaysParams, err error) {
	found, err := q.VisitorTargets(ctx, visitor)
	if err != nil {
		return nil, days, err
	}
	held := []int64{}
	for _, f := range found {
		held = append(held, f.SiteID)
	}
	if err := q.CountersHold(ctx, held); err != nil {
		return nil, days, err
	}
	if found, err = q.VisitorTargets(ctx, visitor); err != nil { // again, with what was counted until the locks were taken
		return nil, days, err
	}
	days.FirstDay = math.MaxInt32
	for _, f := range found {
		if slices.Contains(held, f.SiteID) {
			pages = append(pages, f.ID)
			days.FirstDay, days.LastDay = min(days.FirstDay, f.FirstDay), max(days.LastDay, f.LastDay)
		}
	}
	return pages, days, nil
}

// withVisitor runs f on the addresses under which an app may have stored a visitor.
func (a *Admin) withVisitor(ctx context.Context, name, visitor string, f func(*db.Queries, *db.App, []netip.Addr) error) error {
	return a.inErasure(ctx, func(q *db.Queries) error {
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

// appOf returns an app by its name.
func appOf(ctx context.Context, q *db.Queries, name string) (*db.App, error) {
	row, err := q.AppGet(ctx, name)
	if errors.Is(err, db.ErrNoRows) {
		return nil, noApp("app", name)
	}
	return &row, err
}

// inErasure runs f in a transaction while no other one erases.
func (a *Admin) inErasure(ctx context.Context, f func(q *db.Queries) error) error {
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
