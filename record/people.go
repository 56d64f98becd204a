package record

import (
	"context"

	"footfall/db"
	"footfall/visit/tag"
)

// resolve finds the persons of entries whose apps link visitors to persons. It must run before the
// memory and the filter are used, because these may contain the visitor from before the link. It
// runs for each batch, because a link applies to all visits after its response, at every instance. A
// batch that is sent again keeps its persons unless its generation has ended. An app's first link
// ends the generation, and so does every erasure.
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
