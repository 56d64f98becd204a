package db

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// CountingSettings contains the settings of an app that determine the day and the visitor of a visit. Once the app
// has pages, these settings change only when the stored addresses of its visitors are replaced with hashes.
type CountingSettings struct {
	Tz, Visitor string
	Ipv6Prefix  int16
}

// CountsBy returns the settings that determine the day and the visitor of the app's visits.
func (a App) CountsBy() CountingSettings {
	return CountingSettings{Tz: a.Tz, Visitor: a.Visitor, Ipv6Prefix: a.Ipv6Prefix}
}

// Interning is a request for the ids of an app's pages and their sites.
type Interning struct {
	App      int32
	Settings CountingSettings // the settings that the caller has read; if they have changed, Intern finds and creates no page
	Pages    []string
	Sites    []string // the site of each page

	// MaxToday is the maximum number of pages and sites that are created for the app on Day. 0: no limit.
	Day      int32
	MaxToday int64
	Full     bool // the app has reached MaxToday, so Intern creates nothing
}

// Errors of Intern that concern only the visits of this app.
var (
	ErrAppGone    = errors.New("the app was deleted after the visit was admitted")
	ErrAppChanged = errors.New("the app's time zone, visitor mode or IPv6 prefix changed after the visit was admitted")
)

// Intern returns a map from the URIs of the pages and sites to their ids. It creates missing pages and sites until the
// app has reached its limit for the day. Further pages get no id, and full reports that the limit is reached. Intern
// counts no visits, so after an error no visit has been counted.
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
	if in.Full || in.missing(ids, math.MaxInt64).empty() {
		return in.Full, nil
	}
	err = d.inTx(ctx, d.writers, func(q *Queries) (err error) {
		full, err = makePages(ctx, q, in, ids)
		return err
	})
	if isForeignKeyViolation(err) { // every row that makePages inserts refers to the app
		err = ErrAppGone
	}
	if err != nil {
		return false, fmt.Errorf("intern %d pages: %w", len(in.Pages), err)
	}
	// Only a new query also finds the rows that another instance has inserted in the meantime.
	return full, findPages(ctx, New(d.writers), in, ids)
}

// makePages creates the missing pages and sites until the app has reached its limit for the day. full reports whether
// the limit is reached.
func makePages(ctx context.Context, q *Queries, in *Interning, ids map[string]int64) (full bool, err error) {
	tally, err := q.PagesTallyLock(ctx, in.App, in.Day)
	if err != nil {
		return false, err
	}
	room := int64(math.MaxInt64)
	if in.MaxToday > 0 {
		room = in.MaxToday - tally.Today
		// Another instance may have created some of the pages already. Only pages that are still missing count against
		// the limit.
		if err := findPages(ctx, q, in, ids); err != nil {
			return false, err
		}
	}
	wanted := in.missing(ids, room)
	if wanted.empty() {
		return room <= 0, nil
	}
	sites, err := q.SitesIntern(ctx, in.App, wanted.sites)
	if err != nil {
		return false, err
	}
	pages, err := q.PagesIntern(ctx, PagesInternParams{AppID: in.App, Pages: wanted.pages, Sites: wanted.sites})
	if err != nil {
		return false, err
	}
	if err := checkCountsBy(ctx, q, in); err != nil {
		return false, err
	}
	return sites+pages >= room, q.PagesTallyAdd(ctx, PagesTallyAddParams{AppID: in.App, Pages: sites + pages})
}

// checkCountsBy returns ErrAppGone if the app was deleted, and ErrAppChanged if it is being moved or if its settings
// differ from in.Settings.
func checkCountsBy(ctx context.Context, q *Queries, in *Interning) error {
	by, err := q.AppCountsBy(ctx, in.App)
	switch {
	case errors.Is(err, ErrNoRows):
		return ErrAppGone
	case err == nil && CountingSettings(by) != in.Settings:
		return ErrAppChanged
	}
	return err
}

type newPages struct{ pages, sites []string }

func (n newPages) empty() bool { return len(n.pages) == 0 }

// missing returns those of in.Pages that have no id in ids, and their sites. room is the number of pages and sites that
// may still be created. missing leaves out pages beyond this number.
func (in *Interning) missing(ids map[string]int64, room int64) (n newPages) {
	chosen := map[string]bool{}
	costs := func(uri string) int64 {
		if _, exists := ids[uri]; exists || chosen[uri] {
			return 0
		}
		return 1
	}
	for i, page := range in.Pages {
		cost := costs(page)
		if cost == 0 {
			continue
		}
		cost += costs(in.Sites[i])
		if cost > room {
			continue
		}
		room -= cost
		chosen[page], chosen[in.Sites[i]] = true, true
		n.pages, n.sites = append(n.pages, page), append(n.sites, in.Sites[i])
	}
	return n
}

// findPages adds the ids of existing pages and sites to the map ids. If it finds any, but the app's settings
// differ from in.Settings, it adds nothing and returns an error.
func findPages(ctx context.Context, q *Queries, in *Interning, ids map[string]int64) error {
	uris := append(append(make([]string, 0, len(in.Pages)+len(in.Sites)), in.Pages...), in.Sites...)
	rows, err := q.PagesFind(ctx, PagesFindParams{
		AppID: in.App, Tz: in.Settings.Tz, Visitor: in.Settings.Visitor, Ipv6Prefix: in.Settings.Ipv6Prefix, Uris: uris,
	})
	if err == nil && len(rows) > 0 && !rows[0].CountsSo {
		err = checkCountsBy(ctx, q, in)
	}
	if err != nil {
		return fmt.Errorf("find %d pages: %w", len(in.Pages), err)
	}
	for _, row := range rows {
		ids[row.Uri] = row.ID
	}
	return nil
}
