package db

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Intern returns the id of every page and site asked for, by uri, and makes those that are not there; sites[i] is the site of
// pages[i]. It counts nothing, so whatever its error, nothing has been counted.
func (d *DB) Intern(ctx context.Context, app int32, pages, sites []string) (map[string]int64, error) {
	ids, err := d.intern(ctx, app, pages, sites)
	if fault := FaultOf(err); fault == FaultUnknown {
		err = &notSentError{err} // no visit was sent
	}
	return ids, err
}

func (d *DB) intern(ctx context.Context, app int32, pages, sites []string) (map[string]int64, error) {
	ids := make(map[string]int64, 2*len(pages))
	if err := d.findPages(ctx, app, pages, sites, ids); err != nil {
		return nil, err
	}
	var newPages, newSites []string
	for i, page := range pages {
		if _, known := ids[page]; !known {
			newPages, newSites = append(newPages, page), append(newSites, sites[i])
		}
	}
	if len(newPages) == 0 {
		return ids, nil
	}
	err := pgx.BeginFunc(ctx, d.writers, func(tx pgx.Tx) error {
		q := New(tx)
		if err := q.SitesIntern(ctx, SitesInternParams{AppID: app, Sites: newSites}); err != nil {
			return err
		}
		return q.PagesIntern(ctx, PagesInternParams{AppID: app, Pages: newPages, Sites: newSites})
	})
	if err != nil {
		return nil, fmt.Errorf("intern %d pages: %w", len(newPages), err)
	}
	// Only now, with a new snapshot, is what another instance inserted meanwhile visible.
	if err := d.findPages(ctx, app, newPages, newSites, ids); err != nil {
		return nil, err
	}
	return ids, nil
}

func (d *DB) findPages(ctx context.Context, app int32, pages, sites []string, ids map[string]int64) error {
	uris := append(append(make([]string, 0, len(pages)+len(sites)), pages...), sites...)
	rows, err := New(d.writers).PagesFind(ctx, PagesFindParams{AppID: app, Uris: uris})
	if err != nil {
		return fmt.Errorf("find %d pages: %w", len(pages), err)
	}
	for _, row := range rows {
		ids[row.Uri] = row.ID
	}
	return nil
}
