package admin

import (
	"context"
	"errors"
	"strings"

	"footfall/db"
	"footfall/visit"
)

// Page is a page of an app, with its numbers.
type Page struct {
	Site, URI string // written as in reports, such as example.com and example.com/about
	PV, UV    int64
	Hot       int64

	Counted bool    // Footfall has counted visits to the page
	Offset  *Offset // numbers that are added to the counted numbers; nil: none
	History int64   // number of days with numbers imported from another tool
}

// FindPage returns the page that a user typed. typed is the page's URI, or the page as written in reports, such as
// example.com/about.
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

// typedPage parses the page that a user typed (see FindPage), and returns the page and its site.
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
		return "", "", visit.Errorf(visit.Invalid, "uri", "%s collects the numbers of several other pages, so it cannot be deleted", page)
	}
	return site, page, nil
}

func noPage(app, uri string) error {
	return visit.Errorf(visit.NotFound, "uri", "app %s has no page %s", app, visit.Shown(uri))
}

// DeletePage moves all numbers of a page to the page (deleted) of its site, which collects the numbers of deleted pages. It
// deletes the page's webhooks, offset and imported history. It also works for a page that has only an offset or history. Later
// visits to the page's URI are counted from 1 again. DeletePage first counts the visits that wait in the inbox. typed is the
// page, as for FindPage.
func (a *Admin) DeletePage(ctx context.Context, app, typed string) error {
	err := a.RunErasing(ctx, app, func(ctx context.Context, a *Admin) error {
		if _, err := a.CountAccepted(ctx, app); err != nil {
			return err
		}
		err := a.inErasure(ctx, app, func(q queries, row *db.App) error { return hidePage(ctx, q, row, typed) })
		var verr *visit.Error
		if err == nil || errors.As(err, &verr) && verr.Kind == visit.NotFound {
			err = errors.Join(a.inErasure(ctx, app, func(q queries, row *db.App) error {
				if row.DeletedAt != nil { // the app is being deleted, so rows that the merge needs may be gone
					return nil
				}
				return q.HiddenPagesMerge(ctx, row.ID)
			}), err)
		}
		return err
	})
	return a.waitForChange(ctx, "delete a page of app "+app, err) // instances may have cached the page's offset
}

// hidePage detaches a page from its URI, and deletes its webhooks, its offset and its history.
func hidePage(ctx context.Context, q queries, row *db.App, typed string) error {
	if row.DeletedAt != nil {
		return errBeingDeleted
	}
	site, uri, err := typedPage(row, typed)
	if err != nil {
		return err
	}
	if err := q.note(ctx, row.Name, "page", visit.Shown(uri), "deleted"); err != nil { // this entry is rolled back if there is no page
		return err
	}
	hidden, err := q.PageHide(ctx, PageHideParams{AppID: row.ID, Site: site, Uri: uri})
	if err != nil {
		return err
	}
	some, err := removeByURI(ctx, q, row.ID, uri)
	if err == nil && !hidden && !some {
		return noPage(row.Name, uri)
	}
	return err
}

// removeByURI deletes the offset, the history and the webhooks of a page's URI. some reports whether there was an offset or
// history.
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
