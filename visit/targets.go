package visit

import (
	"context"
	"fmt"

	"footfall/db"
)

// targetIDs knows the ids of the targets counted of late, so that only a batch with others asks for them. An id never
// changes by counting. It is bounded, and safe for concurrent use.
type targetIDs struct {
	ids *cache[targetKey, int64]
}

type targetKey struct {
	app int32
	uri string
}

const (
	targetBytes    = 32 << 20
	targetOverhead = 120 // bytes of an entry beside its URI, about
)

func newTargetIDs() *targetIDs {
	return &targetIDs{newCache[targetKey, int64](targetBytes, func(k targetKey) int { return len(k.uri) + targetOverhead })}
}

// find sets the ids of an entry's site and page; 0 where they are not known here.
func (t *targetIDs) find(e *entry) {
	e.site.id, _ = t.ids.get(targetKey{e.app, e.target.Site})
	e.page.id, _ = t.ids.get(targetKey{e.app, e.target.Page})
}

// intern sets the ids that are missing, and makes those targets that nobody has counted before.
func (t *targetIDs) intern(ctx context.Context, d *db.DB, entries []entry) error {
	unknown := map[int32][]*entry{}
	for i := range entries {
		if e := &entries[i]; e.site.id == 0 || e.page.id == 0 {
			unknown[e.app] = append(unknown[e.app], e)
		}
	}
	for app, missing := range unknown {
		pages, sites := make([]string, len(missing)), make([]string, len(missing))
		for i, e := range missing {
			pages[i], sites[i] = e.target.Page, e.target.Site
		}
		ids, err := d.Intern(ctx, app, pages, sites)
		if err != nil {
			return err
		}
		for _, e := range missing {
			e.site.id, e.page.id = ids[e.target.Site], ids[e.target.Page]
			if e.site.id == 0 || e.page.id == 0 {
				return fmt.Errorf("a target of app %d has no row although it was made", app)
			}
			t.ids.put(targetKey{app, e.target.Site}, e.site.id)
			t.ids.put(targetKey{app, e.target.Page}, e.page.id)
		}
	}
	return nil
}
