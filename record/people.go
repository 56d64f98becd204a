package record

import (
	"context"

	"footfall/db"
	"footfall/visit/tag"
)

// resolve finds the person for each unresolved entry, whose app links visitors to persons. Before that, the entry is
// not looked up in the memory and the filter, because both may still contain the visitor from before the link.
// resolve queries the database for each batch, because a link applies to all visits that arrive after the response to
// the link, at every instance. If a batch is sent again, its entries keep their persons, unless the generation was
// dropped in the meantime. The first link of an app and every erasure cause a new generation.
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
