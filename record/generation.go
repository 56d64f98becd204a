package record

import (
	"footfall/visit"
	"footfall/visit/tag"
)

// generation is one set of caches of table contents. It belongs to a basis, which is a version of the tables. The
// caches are valid as long as the tables have this version. Their contents come from batches that committed with this
// basis, or were read from the tables after the basis was read. Only the filter may also contain erased visitors, and
// visitors of chunks that failed. Each batch contains the basis of its generation, and the database refuses the batch
// if the basis has changed.
type generation struct {
	number  uint64 // 1 for the first generation of a recorder, 2 for the second, and so on
	basis   string
	targets *targetIDs
	tags    *tagIDs
	memory  *memory // nil: the instance has no memory of recent visitors
	filter  *filter // nil: the instance has no filter; the next generation may use the same filter
	ballots *ballots

	people, unfiltered map[int32]bool // people: the apps that link visitors to persons; unfiltered: the apps whose visit rows have no tags
}

// lookUp fills an entry with the cached ids of its site and page, and with the cached data about its visitor. If the
// app links visitors to persons, lookUp does not look up the visitor, but marks the entry as unresolved.
// writer.resolve then finds the person, and looks up the data about the person.
func (g *generation) lookUp(e *entry) {
	e.generation, e.other = g, visit.Target{}
	e.site, e.page = entryTarget{}, entryTarget{}
	g.targets.lookUp(e)
	if e.person, e.unresolved = e.Visitor, g.people[e.App]; !e.unresolved {
		g.lookUpPerson(e, nil)
	}
}

// lookUpPerson checks in the memory of recent visitors whether the person was already counted for the entry's site
// and page on the entry's day. Unless both were counted, it also looks up the ids of the entry's tags. These are the
// tags of the visit, and the tags stored for the person (has).
func (g *generation) lookUpPerson(e *entry, has tag.Set) {
	g.lookUpVisitor(&e.site, e)
	g.lookUpVisitor(&e.page, e)
	g.tags.lookUp(e, has)
}

func (g *generation) lookUpVisitor(t *entryTarget, e *entry) {
	if t.id == 0 || g.memory == nil {
		return
	}
	if last, ok := g.memory.get(pairOf(t.id, e.person)); ok && last.covers(e) {
		t.countedToday, t.rank = true, last.rank
	}
}
