package db

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Tag is a tag of an app: a name and a value.
type Tag struct{ Name, Value string }

// PackedTags are the tags of a batch's (target, visitor) pairs in the format of the column tag_news.tags.
type PackedTags struct {
	packed []byte
	day    int32 // day of the pair that was added last
}

// Add adds the tag ids of a pair. pair is the index of the pair in the batch. Pairs must be added in the order
// of the batch.
func (t *PackedTags) Add(pair int, target int64, day int32, tags []int32) {
	if len(tags) == 0 {
		return
	}
	p := binary.AppendVarint(t.packed, int64(pair))
	p = binary.AppendVarint(p, target)
	p = binary.AppendVarint(p, int64(day-t.day))
	p = binary.AppendVarint(p, int64(len(tags)))
	for _, tag := range tags {
		p = binary.AppendVarint(p, int64(tag))
	}
	t.packed, t.day = p, day
}

// TagSet formats tag ids as the text of a PostgreSQL array, for the column visits.tags.
func TagSet(tags []int32) string {
	text := append(make([]byte, 0, 8*len(tags)+2), '{')
	for i, tag := range tags {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(tag), 10)
	}
	return string(append(text, '}'))
}

// Clear removes all tags.
func (t *PackedTags) Clear() { t.packed, t.day = t.packed[:0], 0 }

// FindTags returns the ids of the tags that exist.
func (d *DB) FindTags(ctx context.Context, app int32, tags []Tag) (ids map[Tag]int32, err error) {
	ids = map[Tag]int32{}
	return ids, d.readForBatch(ctx, "find tags", func(q *Queries) error { return findTags(ctx, q, app, tags, ids) })
}

func findTags(ctx context.Context, q *Queries, app int32, tags []Tag, ids map[Tag]int32) error {
	names, values := tagColumns(tags)
	rows, err := q.TagsFind(ctx, TagsFindParams{AppID: app, Names: names, TagValues: values})
	for _, row := range rows {
		ids[tags[row.Place-1]] = row.ID
	}
	return err
}

func tagColumns(tags []Tag) (names, values []string) {
	for _, t := range tags {
		names, values = append(names, t.Name), append(values, t.Value)
	}
	return names, values
}

// NewTags are tags that an app does not have yet.
type NewTags struct {
	Closed []Tag // tags whose name allows only few values
	Open   []Tag // tags whose value a visitor can make up
	Own    []Tag // tags whose name the app has chosen
}

// MakeTags creates missing tags and adds them to the map ids. The number of tags in missing.Closed is not limited. On
// each day, at most maxToday tags of missing.Open are created, and at most maxToday of missing.Own. MakeTags counts no
// visits, so after an error no visit has been counted.
func (d *DB) MakeTags(ctx context.Context, app, day int32, missing NewTags, maxToday int64, ids map[Tag]int32) error {
	if len(missing.Closed)+len(missing.Open)+len(missing.Own) == 0 {
		return nil
	}
	err := d.inTx(ctx, d.writers, func(q *Queries) error {
		tally, err := q.PagesTallyLock(ctx, app, day)
		if err != nil {
			return err
		}
		// Another instance may have created some of the tags already. Only tags that are still missing count against
		// the limit.
		if err := findTags(ctx, q, app, slices.Concat(missing.Open, missing.Own), ids); err != nil {
			return err
		}
		room := func(tags []Tag, today int64) []Tag {
			tags = slices.DeleteFunc(tags, func(t Tag) bool { return ids[t] != 0 })
			return tags[:min(len(tags), int(max(0, maxToday-today)))]
		}
		open, own := room(missing.Open, tally.TagsToday), room(missing.Own, tally.OwnTagsToday)
		if err := q.PagesTallyAdd(ctx, PagesTallyAddParams{AppID: app, Tags: int64(len(open)), OwnTags: int64(len(own))}); err != nil {
			return err
		}
		made := slices.Concat(missing.Closed, open, own)
		names, values := tagColumns(made)
		if err := q.TagsMake(ctx, TagsMakeParams{AppID: app, Names: names, TagValues: values}); err != nil {
			return err
		}
		return findTags(ctx, q, app, made, ids)
	})
	if isForeignKeyViolation(err) {
		err = ErrAppGone
	}
	if FaultOf(err) == FaultUnknown {
		err = &notSentError{err} // no visit was sent
	}
	if err != nil {
		return fmt.Errorf("make tags: %w", err)
	}
	return nil
}

// CountedVisits reports for each row of p whether its visitor was already counted at its target on its day.
func (d *DB) CountedVisits(ctx context.Context, p *PairColumns) (counted []bool, err error) {
	counted = make([]bool, len(p.Targets))
	return counted, d.readForBatch(ctx, "find visits", func(q *Queries) error {
		places, err := q.VisitsFind(ctx, VisitsFindParams{Pages: p.Targets, Days: p.Days, Ips: p.Visitors})
		for _, place := range places {
			counted[place-1] = true
		}
		return err
	})
}

// foldedRows bounds the rows of tag_news that a transaction reads. A row may have several hundred
// kilobytes.
const foldedRows = 200

// FoldTags moves the numbers in tag_news to tag_days, including those of other instances. It does nothing while
// another instance runs FoldTags. A damaged row of tag_news would block all later rows for ever. So FoldTags also
// removes damaged rows, and returns an error about them.
func (d *DB) FoldTags(ctx context.Context) (damaged error) {
	for {
		rows, err := d.foldTags(ctx, &damaged)
		if err != nil || rows < foldedRows {
			return errors.Join(err, damaged)
		}
	}
}

// foldTags does the work of FoldTags for at most foldedRows rows, in one transaction. It returns the number of
// these rows.
func (d *DB) foldTags(ctx context.Context, damaged *error) (rows int, err error) {
	ctx, cancel := d.InTime(ctx)
	defer cancel()
	var faults error
	err = d.InTx(ctx, func(q *Queries) error {
		mine, err := q.TagsFoldBegin(ctx)
		if err != nil || !mine {
			return err
		}
		news, err := q.TagNewsTake(ctx, foldedRows)
		if err != nil || len(news) == 0 {
			return err
		}
		rows = len(news)
		var sums TagDaysAddParams
		sums, faults = SumTags(news)
		return q.TagDaysAdd(ctx, sums)
	})
	if err != nil {
		return 0, fmt.Errorf("add up tags: %w", err)
	}
	*damaged = errors.Join(*damaged, faults)
	return rows, nil
}

type tagDay struct {
	page     int64
	day, tag int32
}

type tagSum struct{ pv, newcomers int64 }

// SumTags adds up the readable parts of rows of tag_news. The error damaged lists the rows with unreadable parts.
func SumTags(news []TagNews) (sums TagDaysAddParams, damaged error) {
	added := map[tagDay]tagSum{}
	for i := range news {
		if !news[i].addTo(added) {
			damaged = errors.Join(damaged, fmt.Errorf("a row of tag_news is damaged, and its unreadable parts are left out: "+
				"tags = '\\x%.100x'", news[i].Tags))
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(added), func(x, y tagDay) int {
		return cmp.Or(cmp.Compare(x.page, y.page), cmp.Compare(x.day, y.day), cmp.Compare(x.tag, y.tag))
	}) {
		s := added[k]
		sums.Pages, sums.Days, sums.Tags = append(sums.Pages, k.page), append(sums.Days, k.day), append(sums.Tags, k.tag)
		sums.Pvs, sums.Newcomers = append(sums.Pvs, s.pv), append(sums.Newcomers, s.newcomers)
	}
	return sums, damaged
}

// addTo adds the tags in a row of tag_news to added, up to the first unreadable tag. whole reports whether all tags
// were readable.
func (n *TagNews) addTo(added map[tagDay]tagSum) (whole bool) {
	rest, broken := n.Tags, false
	next := func() int64 {
		value, bytes := binary.Varint(rest)
		if bytes <= 0 {
			rest, broken = nil, true
			return 0
		}
		rest = rest[bytes:]
		return value
	}
	day := int32(0)
	for len(rest) > 0 {
		pair, page := next(), next()
		day += int32(next()) //nolint:gosec // written by Add, here and below
		sum := tagSum{1, 1}
		if n.Verdicts != nil {
			if pair < 0 || pair >= int64(len(n.Verdicts)) || n.Verdicts[pair] > 2 {
				return false
			}
			sum.newcomers = int64(n.Verdicts[pair]) - 1
		}
		for range next() {
			key := tagDay{page, day, int32(next())} //nolint:gosec // see above
			if broken {
				return false
			}
			if sum.newcomers >= 0 {
				was := added[key]
				added[key] = tagSum{was.pv + sum.pv, was.newcomers + sum.newcomers}
			}
		}
	}
	return !broken
}
