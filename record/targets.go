package record

import (
	"context"
	"fmt"

	"footfall/db"
	"footfall/record/cache"
	"footfall/visit"
)

// targetIDs knows the ids of the targets counted of late, so that only a batch with others asks for them. An id never
// changes by counting. It is bounded, and safe for concurrent use.
type targetIDs struct {
	ids *cache.Cache[targetKey, int64]
	// full are the apps that were found to have had their new pages of a day: each of a million made-up paths would ask again.
	full *cache.Cache[fullApp, struct{}]
}

type targetKey struct {
	app int32
	uri string
}

// fullApp is an app that may not have more than so many new pages on a day, and has them.
type fullApp struct {
	app      int32
	day      int32
	newPages int64
}

const (
	targetBytes    = 32 << 20
	targetOverhead = 120 // bytes of an entry beside its URI, about
	fullBytes      = 1 << 20
	fullEntry      = 64 // bytes, about
)

func newTargetIDs() *targetIDs {
	return &targetIDs{
		cache.New[targetKey, int64](targetBytes, func(k targetKey) int { return len(k.uri) + targetOverhead }),
		cache.New[fullApp, struct{}](fullBytes, func(fullApp) int { return fullEntry }),
	}
}

// find sets the ids of an entry's site and page; 0 where they are not known here.
func (t *targetIDs) find(e *entry) {
	e.site.id, _ = t.ids.Get(targetKey{e.App, e.Target.Site})
	e.page.id, _ = t.ids.Get(targetKey{e.App, e.Target.Page})
}

// intern sets the ids that are missing, and makes those targets that nobody has counted before. A page for which there is no
// room is counted as the page (other) of its site; a site, as the site (other).
func (t *targetIDs) intern(ctx context.Context, d *db.DB, entries []entry) error {
	type group struct {
		app      int32
		countsBy db.CountsBy
		newPages int64
	}
	unknown := map[group][]*entry{}
	for i := range entries {
		if e := &entries[i]; e.site.id == 0 || e.page.id == 0 {
			g := group{e.App, e.CountsBy, e.NewPages}
			unknown[g] = append(unknown[g], e)
		}
	}
	for g, missing := range unknown {
		full := fullApp{g.app, missing[len(missing)-1].Day, g.newPages}
		in := db.Interning{App: g.app, By: g.countsBy, Day: full.day, MaxToday: g.newPages}
		_, in.Full = t.full.Get(full)
		others, isFull, err := t.ask(ctx, d, in, missing, func(e *entry) visit.Target { return e.Target })
		if err != nil {
			return err
		}
		if isFull {
			t.full.Put(full, struct{}{})
		}
		if len(others) == 0 {
			continue
		}
		if err := t.internOthers(ctx, d, db.Interning{App: g.app, By: g.countsBy}, others); err != nil {
			return err
		}
	}
	return nil
}

// internOthers sets the ids of entries for whose pages there is no room.
func (t *targetIDs) internOthers(ctx context.Context, d *db.DB, in db.Interning, entries []*entry) error {
	lost, _, err := t.ask(ctx, d, in, entries, func(e *entry) visit.Target {
		site := e.Target.Site
		if e.site.id == 0 {
			site = visit.OtherSite
		}
		return visit.Target{Site: site, Page: site + visit.OtherPage}
	})
	for _, e := range entries {
		e.other = true
	}
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("a target of app %d has no row although it was made", in.App)
	}
	return err
}

// ask sets the ids of entries, each counted as the target that as says, and returns those that have no page yet, and whether there
// is no room for any.
func (t *targetIDs) ask(ctx context.Context, d *db.DB, in db.Interning, entries []*entry, as func(*entry) visit.Target) (without []*entry, full bool, err error) {
	targets := make([]visit.Target, len(entries))
	for i, e := range entries {
		targets[i] = as(e)
		in.Pages, in.Sites = append(in.Pages, targets[i].Page), append(in.Sites, targets[i].Site)
	}
	ids, full, err := d.Intern(ctx, in)
	if err != nil {
		return nil, false, err
	}
	for i, e := range entries {
		site, page := ids[targets[i].Site], ids[targets[i].Page]
		e.site.id, e.page.id, e.other = site, page, false
		if site != 0 {
			t.ids.Put(targetKey{in.App, targets[i].Site}, site)
		}
		if page == 0 {
			without = append(without, e)
			continue
		}
		t.ids.Put(targetKey{in.App, targets[i].Page}, page)
	}
	return without, full, nil
}
