package visit

import (
	"context"
	"fmt"

	"footfall/db"
)

// targetBytes bounds one generation of targetIDs; targetOverhead is what an entry takes beside its URI, about.
const (
	targetBytes    = 16 << 20
	targetOverhead = 120
)

// targetIDs knows the ids of the targets counted of late, so that only a batch with others asks for them. An id never
// changes. It is bounded by two generations: what the elder knows and is asked for moves into the younger, and when that
// is full the elder goes. A writer owns it.
type targetIDs struct {
	young, old map[targetKey]int64
	bytes      int // of young, about
}

type targetKey struct {
	app int32
	uri string
}

func newTargetIDs() *targetIDs {
	return &targetIDs{young: map[targetKey]int64{}, old: map[targetKey]int64{}}
}

// resolve sets the ids of every entry's site and page, and makes those targets that nobody has counted before.
func (t *targetIDs) resolve(ctx context.Context, d *db.DB, entries []entry) error {
	unknown := map[int32][]*entry{}
	for i := range entries {
		e := &entries[i]
		var site, page bool
		e.site, site = t.get(targetKey{e.app, e.target.Site})
		e.page, page = t.get(targetKey{e.app, e.target.Page})
		if !site || !page {
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
			e.site, e.page = ids[e.target.Site], ids[e.target.Page]
			if e.site == 0 || e.page == 0 {
				return fmt.Errorf("a target of app %d has no row although it was made", app)
			}
			t.put(targetKey{app, e.target.Site}, e.site)
			t.put(targetKey{app, e.target.Page}, e.page)
		}
	}
	return nil
}

func (t *targetIDs) get(k targetKey) (int64, bool) {
	if id, ok := t.young[k]; ok {
		return id, true
	}
	id, ok := t.old[k]
	if ok {
		t.put(k, id)
	}
	return id, ok
}

func (t *targetIDs) put(k targetKey, id int64) {
	if _, ok := t.young[k]; ok {
		return
	}
	size := len(k.uri) + targetOverhead
	if t.bytes += size; t.bytes > targetBytes {
		t.old, t.young, t.bytes = t.young, map[targetKey]int64{}, size
	}
	t.young[k] = id
}
