package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"footfall/db"
	"footfall/visit"
)

// Page is a page of an app, with its numbers.
type Page struct {
	Site, URI string // as reports write them
	PV, UV    int64
	Hot       int64

	Counted bool    // it has visits
	Offset  *Offset // nil: none
	History int64   // days that others have counted
}

// FindPage returns the page that somebody has typed, as a URI or as reports write it.
func (a *Admin) FindPage(ctx context.Context, app, typed string) (page Page, err error) {
	err = a.read(ctx, app, func(q queries, row *db.App) (err error) {
		if page.Site, page.URI, err = typedPage(row, typed); err != nil {
			return err
		}
		if page.Offset, _, err = offsetOf(ctx, q, row.ID, page.URI); err != nil {
			return err
		}
		if page.History, err = q.HistoryOfPage(ctx, page.URI, row.ID); err != nil {
			return err
		}
		found, err := q.CountsGet(ctx, db.CountsGetParams{AppID: row.ID, Uris: []string{page.URI}})
		if err == nil && len(found) == 0 && page.Offset == nil && page.History == 0 {
			return noPage(row.Name, page.URI)
		}
		for _, counts := range found {
			page.Counted, page.PV, page.UV, page.Hot = true, counts.Pv, counts.Uv, counts.Hot
		}
		return err
	})
	return page, wrap("find a page of app "+app, err)
}

// typedPage is the page that somebody has typed, and its site.
func typedPage(app *db.App, typed string) (site, page string, err error) {
	page, err = visit.ParseTarget(typed, app.KeepQuery)
	if err != nil {
		return "", "", err
	}
	site, path, isPage := strings.Cut(page, "/")
	switch {
	case !isPage:
		return "", "", visit.Errorf(visit.Invalid, "uri", "%s is a site: name a page of it, like %[1]s/about", page)
	case "/"+path == visit.OtherPage || "/"+path == visit.DeletedPage:
		return "", "", visit.Errorf(visit.Invalid, "uri", "%s has what was counted for other pages, and stays", page)
	}
	return site, page, nil
}

func noPage(app, uri string) error {
	return visit.Errorf(visit.NotFound, "uri", "app %s has no page %s", app, visit.Shown(uri))
}

// DeletePage moves all that was counted for a page, which is named as for FindPage, to the page
// (deleted) of its site, and deletes its webhooks, its offset and its history, which may be all that there is.
// Visits to its URI are then counted from 1 again. What was accepted before is counted first.
func (a *Admin) DeletePage(ctx context.Context, app, typed string) error {
	err := a.RunErasing(ctx, app, func(ctx context.Context, a *Admin) error {
		if _, err := a.CountAccepted(ctx, app); err != nil {
			return err
		}
		err := a.inErasure(ctx, app, func(q queries, row *db.App) error { return hidePage(ctx, q, row, typed) })
		var verr *visit.Error
		if err == nil || errors.As(err, &verr) && verr.Kind == visit.NotFound {
			err = errors.Join(a.inErasure(ctx, app, func(q queries, row *db.App) error { return mergeHidden(ctx, q, row) }), err)
		}
		return err
	})
	return a.changed(ctx, "delete a page of app "+app, err) // instances may know its offset
}

// hidePage gives a page a name that no URI leads to. That takes a moment, however much was counted
// for the page. After it no batch counts for the page: later ones do not find it, and earlier ones
// have ended when the lock on its counters is taken.
func hidePage(ctx context.Context, q queries, row *db.App, typed string) error {
	if row.DeletedAt != nil {
		return errBeingDeleted
	}
	site, uri, err := typedPage(row, typed)
	if err != nil {
		return err
	}
	if err := q.note(ctx, row.Name, "page", visit.Shown(uri), "deleted"); err != nil { // unless it is none: then nothing of this is kept
		return err
	}
	page, err := q.PageGet(ctx, row.ID, uri)
	if errors.Is(err, db.ErrNoRows) {
		some, err := removeByURI(ctx, q, row.ID, uri)
		if err == nil && !some {
			return noPage(row.Name, uri)
		}
		return err
	}
	if err != nil {
		return err
	}
	if err := makeDeletedPage(ctx, q, row.ID, site); err != nil {
		return err
	}
	if err := q.CountersMake(ctx, page.ID); err != nil { // waits for a first visit that is under way
		return err
	}
	if err := q.CountersHold(ctx, []int64{page.ID}); err != nil {
		return err
	}
	if err := q.PageRename(ctx, fmt.Sprintf("%s%s %d", site, visit.DeletedPage, page.ID), page.ID); err != nil {
		return err
	}
	_, err = removeByURI(ctx, q, row.ID, uri)
	return err
}

// removeByURI removes what stands at the URI of a page: its offset, its history, of which either is some,
// and its webhooks.
func removeByURI(ctx context.Context, q queries, app int32, uri string) (some bool, err error) {
	offset, err := removeOffset(ctx, q, app, uri)
	if err != nil {
		return false, err
	}
	days, err := q.HistoryOfPageDelete(ctx, app, uri)
	if err != nil {
		return false, err
	}
	return offset != nil || days > 0, q.WebhooksOfTargetDelete(ctx, app, uri)
}

// makeDeletedPage makes the page (deleted) of a site, unless it is there. It is one of the app's
// pages, but not one of the new pages of a day that the app's limit is about.
func makeDeletedPage(ctx context.Context, q queries, app int32, site string) error {
	if _, err := q.PagesTallyLock(ctx, app, 0); err != nil {
		return err
	}
	uri := site + visit.DeletedPage
	made, err := q.PagesIntern(ctx, db.PagesInternParams{AppID: app, Pages: []string{uri}, Sites: []string{site}})
	if err != nil {
		return err
	}
	if err := q.PagesTallyAdd(ctx, db.PagesTallyAddParams{AppID: app, Pages: made}); err != nil {
		return err
	}
	page, err := q.PageGet(ctx, app, uri)
	if err != nil {
		return err
	}
	return q.CountersMake(ctx, page.ID)
}

// mergeHidden moves what was counted for the pages that were hidden, by this command or by one that
// was killed. No visit leads to them, nor to the page (deleted), so it takes no lock but the turn
// of erasures.
func mergeHidden(ctx context.Context, q queries, row *db.App) error {
	if row.DeletedAt != nil { // of such an app some rows are gone that prove the others
		return nil
	}
	if err := q.AppDaysHold(ctx, row.ID); err != nil { // late visits to the site may have lists of top pages go
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
		into, err := q.PageGet(ctx, row.ID, page.Site+visit.DeletedPage)
		if err != nil {
			return err
		}
		if err := mergePage(ctx, q, page.SiteID, page.ID, into.ID, kept); err != nil {
			return err
		}
	}
	if err := q.TagsHold(ctx); err != nil {
		return err
	}
	for _, page := range pages { // last, since it locks what new pages need
		if err := q.PageDrop(ctx, page.ID); err != nil {
			return err
		}
	}
	return nil
}

// mergePage moves all that was counted for one page of a site to another. keptFrom is the first day
// for which the app keeps its visits.
func mergePage(ctx context.Context, q queries, site, from, into int64, keptFrom int32) error {
	if err := q.VisitsMerge(ctx, VisitsMergeParams{Site: site, FromPage: from, IntoPage: into, KeptFrom: keptFrom}); err != nil {
		return err
	}
	days, err := q.DaysMerge(ctx, DaysMergeParams{Site: site, FromPage: from, IntoPage: into, KeptFrom: keptFrom})
	if err != nil {
		return err
	}
	visitors, err := q.VisitorsMerge(ctx, VisitorsMergeParams{Site: site, FromPage: from, IntoPage: into, Days: days})
	if err != nil {
		return err
	}
	if err := q.SketchesMerge(ctx, from, into); err != nil {
		return err
	}
	if err := q.TopsDelete(ctx, site); err != nil {
		return err
	}
	return q.CountersMerge(ctx, CountersMergeParams{FromPage: from, IntoPage: into, Visitors: visitors, Days: days})
}
