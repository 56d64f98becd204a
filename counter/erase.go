package counter

import (
	"context"
	"errors"
	"math"
	"net/netip"

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
// erased visitor who comes again is a new visitor. A site that they come to for the first time
// while they are erased is left out: that visit came after the erasure began.
func (a *Admin) EraseVisitor(ctx context.Context, app, visitor string) (erased int64, err error) {
	err = a.withVisitor(ctx, app, visitor, func(q *db.Queries, row *db.App, ips []netip.Addr) error {
		if err := q.AppDaysHold(ctx, row.ID); err != nil {
			return err
		}
		unseen, err := q.OldestUnseen(ctx)
		if err != nil {
			return err
		}
		found, err := q.VisitorTargets(ctx, db.VisitorTargetsParams{AppID: row.ID, Ips: ips})
		if err != nil || len(found) == 0 {
			return err
		}
		if err := eraseOldVisits(ctx, q, found, ips); err != nil {
			return err
		}
		erased, err = eraseHeld(ctx, q, found, ips, unseen)
		return err
	})
	return erased, wrap("erase a visitor of app "+app, err)
}

// eraseOldVisits erases a visitor's visits of the days before the last one of each site. Nobody
// counts on these now but late visits, which wait, so it holds nothing that another visit waits
// for, however long it takes.
func eraseOldVisits(ctx context.Context, q *db.Queries, found []db.VisitorTargetsRow, ips []netip.Addr) error {
	between := db.VisitsDaysParams{FirstDay: math.MaxInt32}
	for _, f := range found {
		between.FirstDay, between.LastDay = min(between.FirstDay, f.FirstDay), max(between.LastDay, f.LastDay)
	}
	days, err := q.VisitsDays(ctx, between)
	if err != nil {
		return err
	}
	for _, day := range days {
		var pages []int64
		for _, f := range found {
			if f.FirstDay <= day && day < f.SiteDay {
				pages = append(pages, f.ID)
			}
		}
		if len(pages) == 0 {
			continue
		}
		if err := q.VisitsErase(ctx, db.VisitsEraseParams{Day: day, Pages: pages, Ips: ips}); err != nil {
			return err
		}
	}
	return nil
}

// eraseHeld locks the sites of a visitor, so that no visit of theirs to these sites is under way,
// and erases what is left there, with what was counted by transactions that were unseen when the
// targets were found. Visits wait meanwhile, so nothing is read but by its key; and what came while
// the targets were found, which may have taken long, is looked at before.
func eraseHeld(ctx context.Context, q *db.Queries, found []db.VisitorTargetsRow, ips []netip.Addr, unseen int64) (erased int64, err error) {
	seen := map[int64]bool{}
	var pages, sites []int64
	var fromDays []int32
	for _, f := range found {
		pages = append(pages, f.ID)
		if !seen[f.SiteID] {
			seen[f.SiteID] = true
			sites, fromDays = append(sites, f.SiteID), append(fromDays, f.SiteDay)
		}
	}
	look := func(unseen int64) error {
		since, err := q.VisitorPagesSince(ctx, db.VisitorPagesSinceParams{Sites: sites, FromDays: fromDays, OldestUnseen: unseen, Ips: ips})
		pages = append(pages, since...)
		return err
	}
	if err := q.EraseByKey(ctx); err != nil {
		return 0, err
	}
	stillUnseen, err := q.OldestUnseen(ctx)
	if err != nil {
		return 0, err
	}
	if err := look(unseen); err != nil {
		return 0, err
	}
	if err := q.CountersHold(ctx, sites); err != nil {
		return 0, err
	}
	if err := look(stillUnseen); err != nil {
		return 0, err
	}
	if erased, err = q.VisitorErase(ctx, db.VisitorEraseParams{Pages: pages, Ips: ips}); err != nil {
		return 0, err
	}
	days, err := q.SitesDaysSince(ctx, db.SitesDaysSinceParams{Sites: sites, FromDays: fromDays})
	if err != nil {
		return 0, err
	}
	for _, day := range days {
		if err := q.VisitsErase(ctx, db.VisitsEraseParams{Day: day, Pages: pages, Ips: ips}); err != nil {
			return 0, err
		}
	}
	return erased, nil
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
