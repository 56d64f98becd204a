package db

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// AppID is the id of a visitor in an app.
type AppID struct {
	App int32
	ID  netip.Addr
}

// Way is the chain of rows in the table people that leads from an id to its person, starting with the id's own row. A
// person is an id to which other ids of the same visitor lead. An id without rows is its own person.
type Way []PeopleFindRow

// Person returns the person that the id belongs to.
func (w Way) Person(id netip.Addr) netip.Addr {
	if len(w) == 0 {
		return id
	}
	return w[len(w)-1].Person
}

// Tags returns the person's tags in the format of tag.ParseSet.
func (w Way) Tags() string {
	if len(w) == 0 {
		return ""
	}
	return strings.Join(w[len(w)-1].Tags, "\n")
}

// FindPeople returns the ways of the ids, in the same order. The rows of the table people belong to the present or to
// the previous period. FindPeople copies the previous period's rows on these ways into the present period, so that
// they are not deleted while their ids are in use.
func (d *DB) FindPeople(ctx context.Context, asked []AppID) (ways []Way, err error) {
	err = d.readForBatch(ctx, "find people", func(q *Queries) (err error) {
		ways, err = q.findPeople(ctx, asked)
		return err
	})
	return ways, err
}

// LookUpPeople is like FindPeople, but uses the pool readers and tries again after a deadlock.
func (d *DB) LookUpPeople(ctx context.Context, asked []AppID) (ways []Way, err error) {
	err = RetryBusy(ctx, func() error {
		return d.Read(ctx, func(q *Queries) (err error) {
			ways, err = q.findPeople(ctx, asked)
			return err
		})
	})
	return ways, err
}

// findPeople does the work of FindPeople on the connection of q. It fails if rows of the previous period cannot be
// copied, because these rows would be deleted too early.
func (q *Queries) findPeople(ctx context.Context, asked []AppID) ([]Way, error) {
	ways, old, err := q.findWays(ctx, asked)
	if err == nil && len(old) > 0 {
		apps, ids := columnsOf(old)
		err = q.PeopleRenew(ctx, apps, ids)
	}
	return ways, err
}

// peopleAtOnce bounds the ids per statement, so that the statement stays well below the statement timeout even if
// all rows are read from disk.
const peopleAtOnce = 2000

// findWays returns the ways of the ids. If a way includes a row of the previous period, old contains all rows of the way.
func (q *Queries) findWays(ctx context.Context, asked []AppID) (ways []Way, old []AppID, err error) {
	ways = make([]Way, len(asked))
	for from := 0; from < len(asked) && err == nil; from += peopleAtOnce {
		some := asked[from:min(from+peopleAtOnce, len(asked))]
		var rows []PeopleFindRow
		apps, ids := columnsOf(some)
		rows, err = q.PeopleFind(ctx, apps, ids)
		for _, row := range rows {
			at := from + int(row.Place) - 1
			ways[at] = append(ways[at], row)
		}
	}
	for i, way := range ways {
		// Include the whole way: if a new period starts now, the way's rows of the present period become rows of
		// the previous one.
		if slices.ContainsFunc(way, func(row PeopleFindRow) bool { return row.Closed }) {
			for _, row := range way {
				old = append(old, AppID{asked[i].App, row.ID})
			}
		}
	}
	return ways, old, err
}

func columnsOf(all []AppID) (apps []int32, ids []netip.Addr) {
	apps, ids = make([]int32, len(all)), make([]netip.Addr, len(all))
	for i, one := range all {
		apps[i], ids[i] = one.App, one.ID
	}
	return apps, ids
}

// PersonRow is the new state of an id's row in the table people.
type PersonRow struct {
	Person  netip.Addr // the id that the row leads to; the row's own id if this id is a person
	Height  int16      // no chain of rows that leads to this id is longer than Height
	Tags    []int32
	Changed bool // the row must be written
	Lowered bool // Height must be lowered in the table, in the rows of both periods
}

// PutPeople changes rows of an app in the table people, in three steps:
//   - It reads the ways of the ids, and copies their rows of the previous period into the present period.
//   - It calls put with the rows of these ways, by id. put changes rows, and adds rows to the map.
//   - It writes the rows that put has marked as Changed or Lowered.
//
// put may call lead, which adds rows that lead to the ids, directly or through other rows. It adds all such rows with a
// Height above 0. Of the rows with Height 0, it adds at least one for each id that they lead to.
//
// No other transaction writes the app's people until the changes are committed. After a deadlock, PutPeople calls put
// again.
func (d *DB) PutPeople(ctx context.Context, app int32, ids []netip.Addr,
	put func(rows map[netip.Addr]*PersonRow, lead func() error) error) error {
	write := func(q *Queries) error {
		if err := q.PeopleLock(ctx, app); err != nil {
			return err
		}
		by, err := q.AppCountsBy(ctx, app)
		switch {
		case errors.Is(err, ErrNoRows):
			return ErrAppGone
		case err == nil && (by.Visitor != "id" || by.Tz == ""): // AppCountsBy returns no time zone for an app that is being moved
			return ErrAppChanged
		case err != nil:
			return err
		}
		slices.SortFunc(ids, netip.Addr.Compare) // in key order
		ids = slices.Compact(ids)
		asked := make([]AppID, len(ids))
		for i, id := range ids {
			asked[i] = AppID{app, id}
		}
		ways, err := q.findPeople(ctx, asked)
		if err != nil {
			return err
		}
		rows := make(map[netip.Addr]*PersonRow, len(ids))
		for _, way := range ways {
			for _, row := range way {
				rows[row.ID] = &PersonRow{Person: row.Person, Height: row.Height, Tags: row.TagIds}
			}
		}
		if err := put(rows, func() error { return q.addLeading(ctx, app, ids, rows) }); err != nil {
			return err
		}
		if err := q.putPeople(ctx, app, rows); err != nil {
			return err
		}
		return q.SessionCommit(ctx) // even without a change: the rows may be from a commit that is not confirmed yet
	}
	// A concurrent visit may also copy rows of the previous period. Then its transaction and the one of write may
	// deadlock. If PostgreSQL rolls back write, RetryBusy runs write again.
	if err := RetryBusy(ctx, func() error { return d.inTx(ctx, d.writers, write) }); err != nil {
		return fmt.Errorf("put people: %w", err)
	}
	return nil
}

// addLeading adds the rows that lead to the ids, directly or through other rows. It also locks those rows of the
// previous period that have a Height above 0. A concurrent visit then copies them only after this transaction, with
// their new heights. addLeading itself does not copy them, because their ids are not in use.
func (q *Queries) addLeading(ctx context.Context, app int32, ids []netip.Addr, rows map[netip.Addr]*PersonRow) error {
	var leading []netip.Addr
	for asked := ids; len(asked) > 0; {
		found, err := q.PeopleLeading(ctx, PeopleLeadingParams{AppID: app, Ids: asked, There: ids})
		if err != nil {
			return err
		}
		asked = nil
		for _, row := range found {
			if rows[row.ID] == nil {
				rows[row.ID] = &PersonRow{Person: row.Person, Height: row.Height}
			}
			if row.Height > 0 {
				asked = append(asked, row.ID)
			}
		}
		leading = append(leading, asked...)
	}
	return q.PeopleHold(ctx, app, leading)
}

// putPeople lowers the heights of rows that are Lowered but not Changed. Then it writes the Changed rows in key order.
func (q *Queries) putPeople(ctx context.Context, app int32, rows map[netip.Addr]*PersonRow) error {
	lower := PeopleLowerParams{AppID: app}
	for id, row := range rows {
		if row.Lowered && !row.Changed {
			lower.Ids, lower.Heights = append(lower.Ids, id), append(lower.Heights, row.Height)
		}
	}
	if len(lower.Ids) > 0 {
		if err := q.PeopleLower(ctx, lower); err != nil {
			return err
		}
	}
	maps.DeleteFunc(rows, func(_ netip.Addr, row *PersonRow) bool { return !row.Changed })
	for ids := range slices.Chunk(slices.SortedFunc(maps.Keys(rows), netip.Addr.Compare), peopleAtOnce) {
		p := PeoplePutParams{AppID: app, Ids: ids}
		for _, id := range ids {
			row, tags := rows[id], ""
			if len(row.Tags) > 0 {
				tags = "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(row.Tags), " ", ","), "[]") + "}"
			}
			p.Heights, p.Persons, p.Tags = append(p.Heights, row.Height), append(p.Persons, row.Person), append(p.Tags, tags)
		}
		if err := q.PeoplePut(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// ReadPeopleAndFilters returns the apps that link visitors to persons, and the apps whose visit rows store no tags.
func (d *DB) ReadPeopleAndFilters(ctx context.Context) (withPeople, unfiltered map[int32]bool, err error) {
	withPeople, unfiltered = map[int32]bool{}, map[int32]bool{}
	err = d.readForBatch(ctx, "find apps with people, and without filters", func(q *Queries) error {
		people, err := q.PeopleApps(ctx)
		if err != nil {
			return err
		}
		for _, id := range people {
			withPeople[id] = true
		}
		off, err := q.AppsUnfiltered(ctx)
		for _, id := range off {
			unfiltered[id] = true
		}
		return err
	})
	return withPeople, unfiltered, err
}

// Persons returns the persons that the ids of an app belong to. Unlike FindPeople, it does not copy rows of the
// previous period, because this look-up does not count as a use of the ids.
func (q *Queries) Persons(ctx context.Context, app int32, ids []netip.Addr) ([]netip.Addr, error) {
	rows, err := q.PeopleFind(ctx, slices.Repeat([]int32{app}, len(ids)), ids)
	persons := slices.Clone(ids)
	for _, row := range rows { // the last row of each id has the person
		persons[row.Place-1] = row.Person
	}
	return persons, err
}

// TurnPeople starts a new period of the table people if the present period has ended.
func (d *DB) TurnPeople(ctx context.Context) error {
	_, err := d.queries.PeopleRotate(ctx)
	return err
}
