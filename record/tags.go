package record

import (
	"context"
	"slices"
	"strings"

	"footfall/db"
	"footfall/record/cache"
	"footfall/visit/tag"
)

// tagIDs caches the ids of recently used tags. Ids never change. The cache is bounded and safe for
// concurrent use.
type tagIDs struct {
	ids *cache.Cache[tagKey, int32]
}

type tagKey struct {
	app int32
	tag.Tag
}

const (
	tagBytes    = 4 << 20
	tagOverhead = 120 // approximate size of a tag without its value
)

func newTagIDs() *tagIDs {
	return &tagIDs{cache.New[tagKey, int32](tagBytes, func(k tagKey) int { return len(k.Value) + tagOverhead })}
}

// lookUp sets the ids of an entry's tags, unless the person was already counted at the entry's site and page on the
// entry's day. These are the tags of the visit, and those tags stored for the person (has) whose names the visit does
// not use.
func (t *tagIDs) lookUp(e *entry, has tag.Set) {
	e.lacksTags = false
	if e.Tags == nil || e.site.countedToday && e.page.countedToday {
		return
	}
	e.tags = e.Tags()
	for _, own := range has {
		if !slices.ContainsFunc(e.tags, func(brought tag.Tag) bool { return brought.Name == own.Name }) {
			e.tags = append(e.tags, own)
		}
	}
	if e.movedToLaterDay { // the visit now counts for the day that has just started, so its hour is 00
		for i := range e.tags {
			if e.tags[i].Name == tag.Hour {
				e.tags[i].Value = "00"
			}
		}
	}
	e.setTags(func(asked tag.Tag) int32 {
		id, hit := t.ids.Get(tagKey{e.App, asked})
		e.lacksTags = e.lacksTags || !hit
		return id
	})
}

// setTags sets the tag ids of an entry's site and page. The function idOf returns the id of a tag. Only some of the
// tags apply to pages. They come first in e.tags.
func (e *entry) setTags(idOf func(tag.Tag) int32) {
	ids, ofPage := make([]int32, len(e.tags)), 0
	for i, brought := range e.tags {
		ids[i] = idOf(brought)
		if tag.IsOfPages(brought.Name) {
			ofPage = i + 1
		}
	}
	e.site.tags, e.page.tags = ids, ids[:ofPage]
}

// intern sets the ids of tags that are not in the cache. It creates tags that are not in the database either. Clients
// can make up the values of some tags. A new value of such a tag is created only for a visitor's first visit of the
// day to a site, and only up to a limit per app and day. Other new values count as (other). So a client that sends
// visits in a loop, each with a new value, creates only one value per day.
func (t *tagIDs) intern(ctx context.Context, d *db.DB, entries []*entry) error {
	lacking := map[int32][]*entry{}
	for _, e := range entries {
		if e.lacksTags && !e.repeated {
			lacking[e.App] = append(lacking[e.App], e)
		}
	}
	for app, some := range lacking {
		ids, err := t.request(ctx, d, app, some, entries)
		if err != nil {
			return err
		}
		for _, e := range some {
			e.setTags(func(brought tag.Tag) int32 {
				id, made := ids[db.Tag(brought)]
				if !made {
					return ids[db.Tag{Name: brought.Name, Value: tag.Other}]
				}
				brought.Value = strings.Clone(brought.Value) // so that the cache does not keep the whole request in memory
				t.ids.Put(tagKey{app, brought}, id)
				return id
			})
			e.lacksTags = false
		}
	}
	return nil
}

// request gets the ids of the tags of the entries "some", which are of one app, from the database. It creates missing
// tags as described at intern. The parameter all contains all entries of the batch.
func (t *tagIDs) request(ctx context.Context, d *db.DB, app int32, some, all []*entry) (map[db.Tag]int32, error) {
	var asked []db.Tag
	var missing db.NewTags
	entriesByTag := map[db.Tag][]*entry{}
	add := func(t db.Tag, e *entry) {
		if entriesByTag[t] == nil {
			asked = append(asked, t)
		}
		entriesByTag[t] = append(entriesByTag[t], e)
	}
	for _, e := range some {
		for _, brought := range e.tags {
			add(db.Tag(brought), e)
			if tag.IsOpen(brought.Name) {
				add(db.Tag{Name: brought.Name, Value: tag.Other}, e)
			}
		}
	}
	ids, err := d.FindTags(ctx, app, asked)
	if err != nil || len(ids) == len(asked) {
		return ids, err
	}
	isFirstVisit, err := findFirstVisits(ctx, d, all)
	if err != nil {
		return nil, err
	}
	for _, t := range asked {
		switch {
		case ids[t] != 0:
		case !tag.IsOpen(t.Name) || t.Value == tag.Other:
			missing.Closed = append(missing.Closed, t)
		case !slices.ContainsFunc(entriesByTag[t], func(e *entry) bool { return isFirstVisit[e] }):
		case tag.IsOwn(t.Name):
			missing.Own = append(missing.Own, t)
		default:
			missing.Open = append(missing.Open, t)
		}
	}
	return ids, d.MakeTags(ctx, app, some[len(some)-1].Day, missing, tag.MostNewADay, ids)
}

// findFirstVisits returns the entries that are their visitor's first visit to the site on that day. For these
// entries, the map has the value true.
func findFirstVisits(ctx context.Context, d *db.DB, entries []*entry) (map[*entry]bool, error) {
	var pairs db.PairColumns
	var asked []*entry
	seen := map[dayOfPair]bool{}
	for _, e := range entries {
		p := dayOfPair{pairOf(e.site.id, e.person), e.Day}
		if e.repeated || e.site.countedToday || seen[p] {
			continue
		}
		seen[p] = true
		asked = append(asked, e)
		pairs.Targets, pairs.Visitors, pairs.Days = append(pairs.Targets, e.site.id), append(pairs.Visitors, e.person), append(pairs.Days, e.Day)
	}
	counted, err := d.CountedVisits(ctx, &pairs)
	isFirst := make(map[*entry]bool, len(asked))
	for i, e := range asked {
		isFirst[e] = err == nil && !counted[i]
	}
	return isFirst, err
}
