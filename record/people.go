package record

import (
	"context"

	"footfall/db"
	"footfall/visit/tag"
)

// resolve finds out for whom the visitors of entries stand whose apps have people. It comes before
// memory and filter are asked, which may have counted the visitor before they were somebody else's,
// and it comes with each batch: a link holds for all visits that come after its answer, at whichever
// instance. A batch that is sent again keeps what it has found unless its generation has ended, as
// with the first link of an app, and whenever somebody is erased.
func (w *writer) resolve(ctx context.Context, entries []*entry) error {
	var asked []db.AppID
	places := map[db.AppID]int{}
	for _, e := range entries {
		if _, there := places[e.visitorOf()]; e.unresolved && !there {
			places[e.visitorOf()] = len(asked)
			asked = append(asked, e.visitorOf())
		}
	}
	ways, err := w.db.FindPeople(ctx, asked)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.unresolved {
			way := ways[places[e.visitorOf()]]
			e.person, e.unresolved = way.Person(e.Visitor), false
			w.generation.lookUpPerson(e, tag.ParseSet(way.Tags()))
		}
	}
	return nil
}

func (e *entry) visitorOf() db.AppID { return db.AppID{App: e.App, ID: e.Visitor} }
