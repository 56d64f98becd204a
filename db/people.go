package db

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"footfall/pause"
)

// AppID is an id of a visitor of an app.
type AppID struct {
	App int32
	ID  netip.Addr
}

// Way is the rows of people through which an id leads to a person, its own first. Without rows the
// id stands for itself.
type Way []PeopleFindRow

// Person is whom an id stands for.
func (w Way) Person(id netip.Addr) netip.Addr {
	if len(w) == 0 {
		return id
	}
	return w[len(w)-1].Person
}

// Tags are those of the person, as tag.ParseSet reads them.
func (w Way) Tags() string {
	if len(w) == 0 {
		return ""
	}
	return strings.Join(w[len(w)-1].Tags, "\n")
}

// FindPeople returns the ways of some ids, in their order. Rows that are of the period before are
// copied into the present one: their ids are used.
func (d *DB) FindPeople(ctx context.Context, asked []AppID) (ways []Way, err error) {
	err = d.look(ctx, "find people", func(q *Queries) (err error) {
		ways, err = q.findPeople(ctx, asked)
		return err
	})
	return ways, err
}

// LookUpPeople is FindPeople for those who ask, on the connections for questions.
func (d *DB) LookUpPeople(ctx context.Context, asked []AppID) (ways []Way, err error) {
	err = d.Read(ctx, func(q *Queries) (err error) {
		ways, err = q.findPeople(ctx, asked)
		return err
	})
	return ways, err
}

// findPeople is FindPeople on a connection. What cannot be copied is not found either: it would be
// forgotten too early if it were not used again.
func (q *Queries) findPeople(ctx context.Context, asked []AppID) ([]Way, error) {
	ways, old, err := q.ways(ctx, asked)
	if err == nil && len(old) > 0 {
		apps, ids := columnsOf(old)
		err = q.PeopleRenew(ctx, apps, ids)
	}
	return ways, err
}

// peopleAtOnce bounds what one statement finds or writes, which then takes well below its time, even
// if all of it comes from the disk.
const peopleAtOnce = 2000

// ways finds the ways of some ids, and the rows of those on which one is of the period before.
func (q *Queries) ways(ctx context.Context, asked []AppID) (ways []Way, old []AppID, err error) {
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
		// All of the way: should a period begin now, rows that are of the present one are of the
		// one before.
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

// PersonRow is what is written of an id that may be a person.
type PersonRow struct {
	Is      netip.Addr // the id that it leads to, or itself
	Height  int16      // of its row
	Tags    []int32
	Changed bool // it is to be written
	Lowered bool // its height is, in whichever period the row is
}

// putTries is how often people are written that are rolled back because of others.
const putTries = 10

// PutPeople writes the rows of ids of an app that put changes, or adds. It gets those of the ids, and
// of all through which they lead to persons, which are renewed. lead adds rows of all who lead to the
// ids: none whose height is 0 is missing unless another one is there that leads to the same id.
// Nobody else writes the app's people meanwhile. It is called again after a deadlock.
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
		case err == nil && (by.Visitor != "id" || by.Tz == ""): // which is moved
			return ErrAppChanged
		case err != nil:
			return err
		}
		slices.SortFunc(ids, netip.Addr.Compare) // as the table has them
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
				rows[row.ID] = &PersonRow{Is: row.Person, Height: row.Height, Tags: row.TagIds}
			}
		}
		if err := put(rows, func() error { return q.addLeading(ctx, app, ids, rows) }); err != nil {
			return err
		}
		if err := q.putPeople(ctx, app, rows); err != nil {
			return err
		}
		return q.SessionCommit(ctx) // what others have written of them may not be confirmed yet
	}
	for try := 1; ; try++ {
		err := d.inTx(ctx, d.writers, write)
		if err == nil {
			return nil
		}
		// A visit that uses an id meanwhile, and copies its way, may hold a row that leads to one copied here:
		// it goes first.
		if FaultOf(err) != FaultBusy || try >= putTries || !pause.Again(ctx, try) {
			return fmt.Errorf("put people: %w", err)
		}
	}
}

// addLeading adds the rows that lead to ids, step by step. They cannot be copied from now on: what
// is copied later has the height that they are given. None is used by that.
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
				rows[row.ID] = &PersonRow{Is: row.Person, Height: row.Height}
			}
			if row.Height > 0 {
				asked = append(asked, row.ID)
			}
		}
		leading = append(leading, asked...)
	}
	return q.PeopleHold(ctx, app, leading)
}

// putPeople writes the rows that have changed, in the order of their keys.
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
			p.Heights, p.Persons, p.Tags = append(p.Heights, row.Height), append(p.Persons, row.Is), append(p.Tags, tags)
		}
		if err := q.PeoplePut(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// AppsOfNote returns the apps of whose visitors some may stand for others, and those whose rows of
// visits get no tags.
func (d *DB) AppsOfNote(ctx context.Context) (withPeople, unfiltered map[int32]bool, err error) {
	withPeople, unfiltered = map[int32]bool{}, map[int32]bool{}
	err = d.look(ctx, "find apps with people, and without filters", func(q *Queries) error {
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

// Persons returns for whom some ids of an app stand. None is used by that: rows of the period before
// stay there alone.
func (q *Queries) Persons(ctx context.Context, app int32, ids []netip.Addr) ([]netip.Addr, error) {
	rows, err := q.PeopleFind(ctx, slices.Repeat([]int32{app}, len(ids)), ids)
	persons := slices.Clone(ids)
	for _, row := range rows { // the last step of each is the person
		persons[row.Place-1] = row.Person
	}
	return persons, err
}

// TurnPeople begins a new period of people if it is time.
func (d *DB) TurnPeople(ctx context.Context) error {
	_, err := d.queries.PeopleRotate(ctx)
	return err
}
