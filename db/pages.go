package db

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
)

// CountsBy is how an app tells days and visitors apart. It is fixed once the app has pages.
type CountsBy struct {
	Tz, Visitor string
	Ipv6Prefix  int16
}

// CountsBy is how the app tells days and visitors apart at present.
func (a App) CountsBy() CountsBy {
	return CountsBy{Tz: a.Tz, Visitor: a.Visitor, Ipv6Prefix: a.Ipv6Prefix}
}

// errChanged is what a visit meets whose day and visitor were told in another way than its app's by now.
var errChanged = errors.New("the app has been changed meanwhile")

// Interning asks for the ids of pages of an app, and of their sites.
type Interning struct {
	App   int32
	By    CountsBy // nothing is made where it is not so any more
	Pages []string
	Sites []string // beside Pages: the site of each

	// They are made only as long as no more than so many are made on the day. 0: any number.
	Day      int32
	MaxToday int64
	Full     bool // it was found that there is no room: spares the question
}

// Intern returns the id of every page and site asked for, by uri, and makes those that are not there. Left out are those
// for which there is no room; full says that there is none for any. It counts nothing, so whatever its error, nothing has been counted.
func (d *DB) Intern(ctx context.Context, in Interning) (ids map[string]int64, full bool, err error) {
	ids = make(map[string]int64, 2*len(in.Pages))
	if full, err = d.intern(ctx, &in, ids); FaultOf(err) == FaultUnknown {
		err = &notSentError{err} // no visit was sent
	}
	return ids, full, err
}

func (d *DB) intern(ctx context.Context, in *Interning, ids map[string]int64) (full bool, err error) {
	if err := findPages(ctx, New(d.writers), in, ids); err != nil {
		return false, err
	}
	if in.Full || in.unknown(ids, math.MaxInt64).empty() {
		return in.Full, nil
	}
	err = pgx.BeginFunc(ctx, d.writers, func(tx pgx.Tx) (err error) {
		full, err = makePages(ctx, New(tx), in, ids)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("intern %d pages: %w", len(in.Pages), err)
	}
	// Only now, with a new snapshot, is what another instance inserted meanwhile visible.
	return full, findPages(ctx, New(d.writers), in, ids)
}

// makePages makes those pages and sites that are not there, as far as there is room.
func makePages(ctx context.Context, q *Queries, in *Interning, ids map[string]int64) (full bool, err error) {
	today, err := q.PagesTallyLock(ctx, PagesTallyLockParams{AppID: in.App, Day: in.Day})
	if err != nil {
		return false, err
	}
	room := int64(math.MaxInt64)
	if in.MaxToday > 0 {
		room = in.MaxToday - today
		// Another instance may have made some, and room is for what is not there.
		if err := findPages(ctx, q, in, ids); err != nil {
			return false, err
		}
	}
	wanted := in.unknown(ids, room)
	if wanted.empty() {
		return room <= 0, nil
	}
	sites, err := q.SitesIntern(ctx, SitesInternParams{AppID: in.App, Sites: wanted.sites})
	if err != nil {
		return false, err
	}
	pages, err := q.PagesIntern(ctx, PagesInternParams{AppID: in.App, Pages: wanted.pages, Sites: wanted.sites})
	if err != nil {
		return false, err
	}
	by, err := q.AppCountsBy(ctx, in.App)
	switch {
	case err != nil:
		return false, err
	case CountsBy(by) != in.By:
		return false, &notSentError{errChanged}
	}
	return sites+pages >= room, q.PagesTallyAdd(ctx, PagesTallyAddParams{AppID: in.App, Made: sites + pages})
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

// findPages adds the ids of those pages and sites that are there.
func findPages(ctx context.Context, q *Queries, in *Interning, ids map[string]int64) error {
	uris := append(append(make([]string, 0, len(in.Pages)+len(in.Sites)), in.Pages...), in.Sites...)
	rows, err := q.PagesFind(ctx, PagesFindParams{AppID: in.App, Uris: uris})
	if err != nil {
		return fmt.Errorf("find %d pages: %w", len(in.Pages), err)
	}
	for _, row := range rows {
		ids[row.Uri] = row.ID
	}
	return nil
}
