package counter

import (
	"context"
	"errors"
	"fmt"

	"footfall/db"
	"footfall/visit"
)

// DeletePage moves all that was counted for a page to the page (deleted) of its site. Its URI may be counted anew.
func (a *Admin) DeletePage(ctx context.Context, app, uri string) error {
	err := a.erasing(ctx, func(q *db.Queries) error { return takeOff(ctx, q, app, uri) })
	var told *visit.Error
	if err == nil || errors.As(err, &told) && told.Kind == visit.NotFound {
		err = errors.Join(a.erasing(ctx, func(q *db.Queries) error { return mergeTakenOff(ctx, q, app) }), err)
	}
	return wrap("delete a page of app "+app, err)
}

// takeOff gives a page a name that no URI leads to. That takes a moment, however much was counted for it, and nobody waits for
// what follows: no batch that begins later may count for it, and those before have ended when the lock was had.
func takeOff(ctx context.Context, q *db.Queries, app, uri string) error {
	row, err := appOf(ctx, q, app)
	if err != nil {
		return err
	}
	target, err := visit.Normalize(uri, row.KeepQuery)
	if err != nil {
		return err
	}
	page, err := q.PageGet(ctx, db.PageGetParams{AppID: row.ID, Uri: target.Page})
	if errors.Is(err, db.ErrNoRows) {
		return visit.Errorf(visit.NotFound, "uri", "app %s has no page %s", row.Name, target.Page)
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
	return q.PageRename(ctx, db.PageRenameParams{ID: page.ID, Uri: fmt.Sprintf("%s%s %d", target.Site, visit.DeletedPage, page.ID)})
}

// makeDeletedPage makes the page (deleted) of a site, unless it is there. It is made within no limit and on no day's account, but counts
// among the app's pages.
func makeDeletedPage(ctx context.Context, q *db.Queries, app int32, site string) error {
	if _, err := q.PagesTallyLock(ctx, db.PagesTallyLockParams{AppID: app}); err != nil {
		return err
	}
	uri := site + visit.DeletedPage
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

// mergeTakenOff moves what was counted for the pages that were taken off their names, by this command or by one that was killed. No
// visit leads to them, nor to the page that it goes to: no lock but the erasures' turn is needed.
func mergeTakenOff(ctx context.Context, q *db.Queries, app string) error {
	row, err := appOf(ctx, q, app)
	if err != nil {
		return err
	}
	pages, err := q.PagesRenamed(ctx, row.ID)
	if err != nil {
		return err
	}
	kept, err := q.AppKeptFrom(ctx, row.ID)
	if err != nil {
		return err
	}
	for _, page := range pages {
		into, err := q.PageGet(ctx, db.PageGetParams{AppID: row.ID, Uri: page.Site + visit.DeletedPage})
		if err != nil {
			return err
		}
		m := merging{site: page.SiteID, from: page.ID, into: into.ID, keptFrom: kept}
		if err := m.run(ctx, q); err != nil {
			return err
		}
	}
	for _, page := range pages { // the last: it locks what new pages need
		if err := q.PageDrop(ctx, page.ID); err != nil {
			return err
		}
	}
	return nil
}

// merging is of one page of a site into another one.
type merging struct {
	site, from, into int64
	keptFrom         int32 // the first day of which all visits have their rows
}

// run moves all that was counted.
func (m merging) run(ctx context.Context, q *db.Queries) error {
	if err := q.VisitsMerge(ctx, db.VisitsMergeParams{Site: m.site, FromPage: m.from, IntoPage: m.into, KeptFrom: m.keptFrom}); err != nil {
		return err
	}
	days, err := q.DaysMerge(ctx, db.DaysMergeParams{Site: m.site, FromPage: m.from, IntoPage: m.into, KeptFrom: m.keptFrom})
	if err != nil {
		return err
	}
	visitors, err := q.VisitorsMerge(ctx, db.VisitorsMergeParams{Site: m.site, FromPage: m.from, IntoPage: m.into, Days: days})
	if err != nil {
		return err
	}
	if err := q.SketchesMerge(ctx, db.SketchesMergeParams{FromPage: m.from, IntoPage: m.into}); err != nil {
		return err
	}
	if err := q.TopsDelete(ctx, m.site); err != nil {
		return err
	}
	return q.CountersMerge(ctx, db.CountersMergeParams{FromPage: m.from, IntoPage: m.into, Visitors: visitors, Days: days})
}
