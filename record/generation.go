package record

import (
	"footfall/visit"
	"footfall/visit/tag"
)

// generation is one filling of the caches: what an instance keeps of the tables to save work, as
// long as one basis (a version of the tables) holds. Everything in it comes from batches that
// committed on that basis, or was read after the basis was; only the filter may also have visitors
// of a chunk that failed. Each batch names the basis of the generation that it was made from, and
// the database refuses the batch if the basis has changed since.
type generation struct {
	number  uint64 // from 1, different for each generation of a process
	basis   string
	targets *targetIDs
	tags    *tagIDs
	memory  *memory // nil: none
	filter  *filter // nil: none; the next generation may have the same
	ballots *ballots

	people, unfiltered map[int32]bool // apps that have people, and those whose rows of visits have no tags
}

// lookUp sets what the caches hold of an entry: the ids of its targets, and what they hold of its
// visitor, unless it is to be found out first for whom that one stands.
func (g *generation) lookUp(e *entry) {
	e.generation, e.other = g, visit.Target{}
	e.site, e.page = entryTarget{}, entryTarget{}
	g.targets.lookUp(e)
	if e.person, e.unresolved = e.Visitor, g.people[e.App]; !e.unresolved {
		g.lookUpPerson(e, nil)
	}
}

// lookUpPerson sets whether an entry's person has been counted at its targets on its day; unless at
// both, the ids of its tags, too, and of those that the person has.
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
