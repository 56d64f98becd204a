package visit

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"footfall/db"
)

// Pages on which the sums of others gather. A visit to a URI of the same path counts there like any other.
const (
	otherPage   = "/(other)"   // of pages beyond a limit
	otherSite   = "(other)"    // of sites beyond a limit
	deletedPage = "/(deleted)" // of pages that were deleted
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
		pages, err := holdVisitor(ctx, q, db.VisitorTargetsParams{AppID: row.ID, Ips: ips})
		if err != nil || len(pages) == 0 {
			return err
		}
		if erased, err = q.VisitorErase(ctx, db.VisitorEraseParams{Pages: pages, Ips: ips}); err != nil {
			return err
		}
		days, err := q.VisitsDays(ctx)
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

// holdVisitor locks the sites of a visitor and returns all targets at which he is known. No visit of his to those sites is
// under way then.
func holdVisitor(ctx context.Context, q *db.Queries, who db.VisitorTargetsParams) (pages []int64, err error) {
	found, err := q.VisitorTargets(ctx, who)
	if err != nil {
		return nil, err
	}
	sites := []int64{}
	for _, f := range found {
		sites = append(sites, f.SiteID)
	}
	if err := q.CountersHold(ctx, sites); err != nil {
		return nil, err
	}
	if found, err = q.VisitorTargets(ctx, who); err != nil { // with what was counted before the locks were had
		return nil, err
	}
	for _, f := range found {
		pages = append(pages, f.ID)
	}
	return pages, nil
}

// withVisitor runs f on the addresses under which an app may have stored a visitor.
func (a *Admin) withVisitor(ctx context.Context, name, visitor string, f func(*db.Queries, *db.App, []netip.Addr) error) error {
	return a.inLongTx(ctx, func(q *db.Queries) error {
		row, err := a.appOf(ctx, q, name)
		if err != nil {
			return err
		}
		ips, err := a.storedAs(ctx, q, row, visitor)
		if err != nil {
			return invalid(err)
		}
		return f(q, row, ips)
	})
}

// storedAs is every address under which an app may have stored a visitor: one for each day where they turn.
func (a *Admin) storedAs(ctx context.Context, q *db.Queries, row *db.App, visitor string) ([]netip.Addr, error) {
	if err := checkSecret(row, a.secret); err != nil {
		return nil, &InputError{Field: "app", Problem: err.Error()}
	}
	app, err := newApp(*row, a.secret)
	if err != nil {
		return nil, err
	}
	if app.mode == byID {
		if err := readID(visitor); err != nil {
			return nil, err
		}
		return []netip.Addr{app.visitorByID(a.secret, visitor)}, nil
	}
	network, err := VisitorOf(visitor, app.ipv6Prefix)
	if err != nil {
		return nil, err
	}
	switch app.mode {
	case byHash:
		return []netip.Addr{app.visitorByHash(a.secret, network, nil)}, nil
	case byDay:
		days, err := q.DayKeysList(ctx)
		ips := []netip.Addr{}
		for _, day := range days {
			ips = append(ips, app.visitorByHash(a.secret, network, day.Key))
		}
		return ips, err
	}
	return []netip.Addr{network}, nil
}

// DeletePage moves all that was counted for a page to the page (deleted) of its site. Its URI may be counted anew.
func (a *Admin) DeletePage(ctx context.Context, app, uri string) error {
	err := a.inLongTx(ctx, func(q *db.Queries) error {
		row, err := a.appOf(ctx, q, app)
		if err != nil {
			return err
		}
		target, err := Normalize(uri, row.KeepQuery)
		if err != nil {
			return invalid(err)
		}
		if target.Page == target.Site+deletedPage {
			return invalidf("uri: this page holds the sums of pages that were deleted: it stays")
		}
		return takeOff(ctx, q, row, target)
	})
	if err == nil {
		err = a.mergeTakenOff(ctx, app)
	}
	return wrap("delete a page of app "+app, err)
}

// takeOff gives a page a name that no URI leads to. That takes a moment, however much was counted for it, and nobody waits for
// what follows. A run that ended between the two has left such a page; then there is nothing to do here.
func takeOff(ctx context.Context, q *db.Queries, row *db.App, target Target) error {
	page, err := q.PageGet(ctx, db.PageGetParams{AppID: row.ID, Uri: target.Page})
	if errors.Is(err, db.ErrNoRows) {
		left, err := q.PagesRenamed(ctx, row.ID)
		if err != nil || len(left) > 0 {
			return err
		}
		return &Error{Kind: NotFound, Message: fmt.Sprintf("uri: app %s has counted no page %s", row.Name, target.Page)}
	}
	if err != nil {
		return err
	}
	if err := makeDeletedPage(ctx, q, row.ID, target.Site); err != nil {
		return err
	}
	if err := q.CountersMake(ctx, page.ID); err != nil { // which waits for a first visit that is under way
		return err
	}
	if err := q.CountersHold(ctx, []int64{page.ID}); err != nil {
		return err
	}
	return q.PageRename(ctx, db.PageRenameParams{ID: page.ID, Uri: fmt.Sprintf("%s%s %d", target.Site, deletedPage, page.ID)})
}

// makeDeletedPage makes the page (deleted) of a site, unless it is there. It has no limit, but counts among the app's pages.
func makeDeletedPage(ctx context.Context, q *db.Queries, app int32, site string) error {
	if _, err := q.PagesTallyLock(ctx, db.PagesTallyLockParams{AppID: app}); err != nil {
		return err
	}
	uri := site + deletedPage
	made, err := q.PagesIntern(ctx, db.PagesInternParams{AppID: app, Pages: []string{uri}, Sites: []string{site}})
	if err != nil {
		return err
	}
	if err := q.PagesTallyAdd(ctx, db.PagesTallyAddParams{AppID: app, Made: made}); err != nil {
		return err
	}
	page, err := q.PageGet(ctx, db.PageGetParams{AppID: app, Uri: uri})
	if err != nil {
		return err
	}
	return q.CountersMake(ctx, page.ID)
}

// mergeTakenOff moves what was counted for the pages that were taken off their names. Nothing else is locked meanwhile but the
// page that it goes to.
func (a *Admin) mergeTakenOff(ctx context.Context, app string) error {
	return a.inLongTx(ctx, func(q *db.Queries) error {
		row, err := a.appOf(ctx, q, app)
		if err != nil {
			return err
		}
		pages, err := q.PagesRenamed(ctx, row.ID)
		if err != nil {
			return err
		}
		for _, page := range pages {
			into, err := q.PageGet(ctx, db.PageGetParams{AppID: row.ID, Uri: page.Site + deletedPage})
			if err != nil {
				return err
			}
			if err := q.CountersHold(ctx, []int64{page.ID, into.ID}); err != nil {
				return err
			}
			if err := q.PageMerge(ctx, db.PageMergeParams{FromPage: page.ID, IntoPage: into.ID}); err != nil {
				return err
			}
		}
		for _, page := range pages { // the last: it locks what new pages need
			if err := q.PageDrop(ctx, page.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteApp deletes an app and all that was counted for it.
func (a *Admin) DeleteApp(ctx context.Context, name string) error {
	err := a.withApp(ctx, name, func(q *db.Queries, row *db.App) error { return q.AppClose(ctx, row.ID) })
	if err != nil {
		return wrap("delete app "+name, err)
	}
	// Once no instance counts for it any more, what follows makes nobody wait. An instance that does not answer is waited for by
	// the locks of the last step.
	if err := a.db.SettleApps(ctx, settlePatience); err != nil && !errors.Is(err, db.ErrUnsettled) {
		return err
	}
	for _, step := range []func(context.Context, *db.Queries, int32) error{deleteRows, deleteAll} {
		err := a.inLongTx(ctx, func(q *db.Queries) error {
			row, err := a.appOf(ctx, q, name)
			if err != nil {
				return err
			}
			return step(ctx, q, row.ID)
		})
		if err != nil {
			return wrap("delete app "+name, err)
		}
	}
	return a.db.SettleApps(ctx, settlePatience)
}

// deleteRows deletes what takes long.
func deleteRows(ctx context.Context, q *db.Queries, app int32) error {
	return firstError(ctx, app, q.AppVisitsDelete, q.AppVisitorsDelete)
}

// deleteAll deletes what is left, under the locks of all counters: a visit that was under way has been counted and is deleted, or
// finds that its pages are gone.
func deleteAll(ctx context.Context, q *db.Queries, app int32) error {
	return firstError(ctx, app, q.AppCountersMake, q.AppCountersHold, q.AppVisitsDelete, q.AppVisitorsDelete, q.AppErasedVisitsDelete,
		q.AppErasedVisitorsDelete, q.AppCountersDelete, q.AppPagesDelete, q.AppTallyDelete, q.AppKeysDelete, q.AppDelete)
}

func firstError(ctx context.Context, app int32, steps ...func(context.Context, int32) error) error {
	for _, step := range steps {
		if err := step(ctx, app); err != nil {
			return err
		}
	}
	return nil
}

// appOf returns an app by its name.
func (a *Admin) appOf(ctx context.Context, q *db.Queries, name string) (*db.App, error) {
	row, err := q.AppGet(ctx, name)
	if errors.Is(err, db.ErrNoRows) {
		return nil, noApp("app", name)
	}
	return &row, err
}

// inLongTx runs f in a transaction whose statements may take long.
func (a *Admin) inLongTx(ctx context.Context, f func(q *db.Queries) error) error {
	return a.db.InTx(ctx, func(q *db.Queries) error {
		if err := q.TakeTime(ctx); err != nil {
			return err
		}
		return f(q)
	})
}
