package db

import (
	"context"
	"net/netip"
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

// Tags are those of the person, each a name, \x1f and a value.
func (w Way) Tags() []string {
	if len(w) == 0 {
		return nil
	}
	return w[len(w)-1].Tags
}

// FindPeople returns the ways of some ids, in their order. Rows that are of the period before are
// copied into the present one: their ids are used.
func (d *DB) FindPeople(ctx context.Context, asked []AppID) (ways []Way, err error) {
	err = d.look(ctx, "find people", func(q *Queries) (err error) {
		ways, err = findPeople(ctx, q, asked)
		return err
	})
	return ways, err
}

func findPeople(ctx context.Context, q *Queries, asked []AppID) ([]Way, error) {
	var ask PeopleFindParams
	for _, a := range asked {
		ask.AppIds, ask.Ids = append(ask.AppIds, a.App), append(ask.Ids, a.ID)
	}
	rows, err := q.PeopleFind(ctx, ask)
	if err != nil {
		return nil, err
	}
	ways := make([]Way, len(asked))
	var old PeopleRenewParams
	for _, row := range rows {
		at := row.Place - 1
		ways[at] = append(ways[at], row)
		if row.Closed {
			old.AppIds, old.Ids = append(old.AppIds, asked[at].App), append(old.Ids, row.ID)
		}
	}
	if len(old.Ids) > 0 {
		err = q.PeopleRenew(ctx, old)
	}
	return ways, err
}

// AppsWithPeople returns the apps of whose visitors some may stand for others.
func (d *DB) AppsWithPeople(ctx context.Context) (apps map[int32]bool, err error) {
	err = d.look(ctx, "find apps with people", func(q *Queries) error {
		ids, err := q.PeopleApps(ctx)
		apps = make(map[int32]bool, len(ids))
		for _, id := range ids {
			apps[id] = true
		}
		return err
	})
	return apps, err
}
