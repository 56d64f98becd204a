package record

import (
	"context"

	"footfall/db"
	"footfall/visit/tag"
)

// resolve finds the person for each unresolved entry. (The apps of these entries link visitors to persons.) Such an
// entry has not been looked up in the memory or the filter, because both may still contain the visitor from before
// the link.
//
// resolve queries the database for each batch. A link must apply to all visits that arrive at any instance after the
// response to the link. If a batch is sent again, its entries keep their persons, unless the generation was dropped
// in the meantime. It is dropped after the first link of an app, and after every erasure.
func (w *writer) resolve(ctx context.Context, entries []*entry) error {
	var asked []db.AppID
	places := map[db.AppID]int{}
	for _, e := range entries {
		if _, there := places[e.visitorAppID()]; e.unresolved && !there {
			places[e.visitorAppID()] = len(asked)
			asked = append(asked, e.visitorAppID())
		}
	}
	ways, err := w.db.FindPeople(ctx, asked)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.unresolved {
			way := ways[places[e.visitorAppID()]]
			e.person, e.unresolved = way.Person(e.Visitor), false
			w.generation.lookUpPerson(e, tag.ParseSet(way.Tags()))
		}
	}
	return nil
}

func (e *entry) visitorAppID() db.AppID { return db.AppID{App: e.App, ID: e.Visitor} }
