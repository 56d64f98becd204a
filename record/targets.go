package record

import (
	"context"
	"fmt"
	"strings"

	"footfall/db"
	"footfall/record/cache"
	"footfall/visit"
)

// targetIDs caches the ids of recently counted targets (pages and sites), so that these targets need no query.
// Counting never changes an id. The cache is bounded and safe for concurrent use.
type targetIDs struct {
	ids *cache.Cache[targetKey, targetID]
	// full contains the apps that have reached their limit of new pages on a day. For these apps, DB.Intern does not
	// try to create pages. Otherwise, if a client visits many made-up paths, each batch would cause a further
	// transaction.
	full *cache.Cache[fullApp, struct{}]
}

type targetKey struct {
	app int32
	uri string
}

type targetID struct {
	id int64
	// countsBy contains the app's settings for days and visitors. They cannot change once the app has targets.
	countsBy *db.CountingSettings
}

// fullApp is an app that has reached its limit of new pages (newPages) on a day.
type fullApp struct {
	app      int32
	day      int32
	newPages int64
}

const (
	targetBytes    = 32 << 20
	targetOverhead = 128 // approximate size of a target without its URI
	fullBytes      = 1 << 20
	fullEntry      = 64 // approximate size of a fullApp
)

func newTargetIDs() *targetIDs {
	return &targetIDs{
		cache.New[targetKey, targetID](targetBytes, func(k targetKey) int { return len(k.uri) + targetOverhead }),
		cache.New[fullApp, struct{}](fullBytes, func(fullApp) int { return fullEntry }),
	}
}

// lookUp sets the ids of an entry's site and page from the cache. If the entry was accepted with outdated settings of
// the app, lookUp sets no ids. The writer then queries the database for the entry's targets, and the database refuses
// the entry.
func (t *targetIDs) lookUp(e *entry) {
	site, hit := t.ids.Get(targetKey{e.App, e.Target.Site})
	if !hit || *site.countsBy != e.CountsBy {
		return
	}
	page, _ := t.ids.Get(targetKey{e.App, e.Target.Page})
	e.site.id, e.page.id = site.id, page.id
}

// intern sets the ids of targets that are not in the cache. It creates targets that are not in the database either.
// Once the app has reached its limit of new pages per day, a visit to a new page counts for the page (other) of its
// site. A visit to a new site counts for the site (other).
func (t *targetIDs) intern(ctx context.Context, d *db.DB, entries []*entry) error {
	type group struct {
		app      int32
		countsBy db.CountingSettings
		newPages int64
	}
	missing := map[group][]*entry{}
	for _, e := range entries {
		if !e.repeated && e.lacksTarget() {
			g := group{e.App, e.CountsBy, e.NewPages}
			missing[g] = append(missing[g], e)
		}
	}
	for g, entries := range missing {
		full := fullApp{g.app, entries[len(entries)-1].Day, g.newPages}
		in := db.Interning{App: g.app, Settings: g.countsBy, Day: full.day, MaxToday: g.newPages}
		_, in.Full = t.full.Get(full)
		targets := make([]visit.Target, len(entries))
		for i, e := range entries {
			targets[i] = e.Target
		}
		others, isFull, err := t.request(ctx, d, in, entries, targets)
		if err != nil {
			return err
		}
		if isFull {
			t.full.Put(full, struct{}{})
		}
		if len(others) == 0 {
			continue
		}
		if err := t.internOthers(ctx, d, db.Interning{App: g.app, Settings: g.countsBy}, others); err != nil {
			return err
		}
	}
	return nil
}

// internOthers sets the target ids of entries whose visits count for a page (other), because the app has reached its
// limit of new pages.
func (t *targetIDs) internOthers(ctx context.Context, d *db.DB, in db.Interning, entries []*entry) error {
	targets := make([]visit.Target, len(entries))
	for i, e := range entries {
		site := e.Target.Site
		if e.site.id == 0 {
			site = visit.OtherSite
		}
		targets[i] = visit.Target{Site: site, Page: site + visit.OtherPage}
	}
	lost, _, err := t.request(ctx, d, in, entries, targets)
	for i, e := range entries {
		e.other = targets[i]
	}
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("the page or site (other) of app %d was created, but its row was not found", in.App)
	}
	return err
}

// request gets the ids of the entries' targets from the database. The visit of entries[i] counts for targets[i]. The
// result without contains the entries whose page was not created. The result full reports whether the app has reached
// its limit of new pages per day.
func (t *targetIDs) request(
	ctx context.Context, d *db.DB, in db.Interning, entries []*entry, targets []visit.Target,
) (without []*entry, full bool, err error) {
	for _, t := range targets {
		in.Pages, in.Sites = append(in.Pages, t.Page), append(in.Sites, t.Site)
	}
	ids, full, err := d.Intern(ctx, in)
	if err != nil {
		return nil, false, err
	}
	countsBy := in.Settings // a copy, because &in.Settings would keep the whole db.Interning in memory
	for i, e := range entries {
		site, page := ids[targets[i].Site], ids[targets[i].Page]
		e.site.id, e.page.id, e.other = site, page, visit.Target{}
		// Clone, so that the cache does not keep the whole request in memory.
		if site != 0 {
			t.ids.Put(targetKey{in.App, strings.Clone(targets[i].Site)}, targetID{site, &countsBy})
		}
		if page == 0 {
			without = append(without, e)
			continue
		}
		t.ids.Put(targetKey{in.App, strings.Clone(targets[i].Page)}, targetID{page, &countsBy})
	}
	return without, full, nil
}
