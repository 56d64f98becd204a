package db

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
)

// Interning asks for the ids of pages of an app, and of their sites.
type Interning struct {
	App   int32
	Pages []string
	Sites []string // beside Pages: the site of each

	// They are made only as long as the app then has no more than so many: made on the day, and in all. 0: any number.
	Day      int32
	MaxToday int64
	MaxTotal int64
	Full     bool // it was found that there is no room: spares the question
}

// Intern returns the id of every page and site asked for, by uri, and makes those that are not there. Left out are those
// for which there is no room. It counts nothing, so whatever its error, nothing has been counted.
func (d *DB) Intern(ctx context.Context, in Interning) (ids map[string]int64, err error) {
	ids = make(map[string]int64, 2*len(in.Pages))
	if err = d.intern(ctx, &in, ids); FaultOf(err) == FaultUnknown {
		err = &notSentError{err} // no visit was sent
	}
	return ids, err
}

func (d *DB) intern(ctx context.Context, in *Interning, ids map[string]int64) error {
	if err := d.findPages(ctx, in.App, in.Pages, in.Sites, ids); err != nil {
		return err
	}
	hope := int64(math.MaxInt64)
	if in.Full {
		hope = 0
	}
	if in.unknown(ids, hope).empty() {
		return nil
	}
	var made newPages
	err := pgx.BeginFunc(ctx, d.writers, func(tx pgx.Tx) (err error) {
		made, err = makePages(ctx, New(tx), in, ids)
		return err
	})
	if err != nil {
		return fmt.Errorf("intern %d pages: %w", len(in.Pages), err)
	}
	if made.empty() {
		return nil
	}
	// Only now, with a new snapshot, is what another instance inserted meanwhile visible.
	return d.findPages(ctx, in.App, made.pages, made.sites, ids)
}

// makePages makes those pages and sites that have no id, as far as there is room, and returns them.
func makePages(ctx context.Context, q *Queries, in *Interning, ids map[string]int64) (newPages, error) {
	tally, err := q.PagesTallyLock(ctx, PagesTallyLockParams{AppID: in.App, Day: in.Day})
	if err != nil {
		return newPages{}, err
	}
	wanted := in.unknown(ids, in.room(tally))
	if wanted.empty() {
		return wanted, nil
	}
	sites, err := q.SitesIntern(ctx, SitesInternParams{AppID: in.App, Sites: wanted.sites})
	if err != nil {
		return newPages{}, err
	}
	pages, err := q.PagesIntern(ctx, PagesInternParams{AppID: in.App, Pages: wanted.pages, Sites: wanted.sites})
	if err != nil {
		return newPages{}, err
	}
	return wanted, q.PagesTallyAdd(ctx, PagesTallyAddParams{AppID: in.App, Made: sites + pages})
}

// room is how many more pages and sites may be made.
func (in *Interning) room(tally PagesTallyLockRow) int64 {
	room := int64(math.MaxInt64)
	if in.Full {
		return 0
	}
	if in.MaxToday > 0 {
		room = min(room, in.MaxToday-tally.Today)
	}
	if in.MaxTotal > 0 {
		room = min(room, in.MaxTotal-tally.Total)
	}
	return room
}

// newPages are pages to be made, and beside each its site, which may be there.
type newPages struct{ pages, sites []string }

func (n newPages) empty() bool { return len(n.pages) == 0 }

// unknown returns the pages that have no id, but no more than there is room for, with their sites.
func (in *Interning) unknown(ids map[string]int64, room int64) (n newPages) {
	chosen := map[string]bool{}
	costs := func(uri string) int64 {
		if _, known := ids[uri]; known || chosen[uri] {
			return 0
		}
		return 1
	}
	for i, page := range in.Pages {
		cost := costs(page)
		if cost == 0 {
			continue
		}
		if cost += costs(in.Sites[i]); cost > room {
			continue
		}
		room -= cost
		chosen[page], chosen[in.Sites[i]] = true, true
		n.pages, n.sites = append(n.pages, page), append(n.sites, in.Sites[i])
	}
	return n
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
