package record

import "context"

// generation is all that an instance remembers of the tables, to save work, as long as one basis holds. It was learned from
// batches that committed on that basis, or read after the basis was. Every batch that uses it says so, and the database refuses
// the batch where the basis is another one by then.
type generation struct {
	number  uint64 // that other generations of this process do not have; from 1
	basis   string
	targets *targetIDs
	memory  *memory            // nil: none
	filter  *filter            // nil: none
	stop    context.CancelFunc // ends the reading of the filter
}

// lookUp sets what is remembered of an entry: the ids of its targets, and whether its visitor is counted at them on its day.
func (g *generation) lookUp(e *entry) {
	e.generation, e.other = g, false
	e.site, e.page = subject{}, subject{}
	g.targets.find(e)
	g.lookUpVisitor(&e.site, e)
	g.lookUpVisitor(&e.page, e)
}

func (g *generation) lookUpVisitor(s *subject, e *entry) {
	if s.id == 0 || g.memory == nil {
		return
	}
	if last, ok := g.memory.get(pairOf(s.id, e.Visitor)); ok && last.day >= e.Day {
		s.countedToday, s.rank = true, last.rank
	}
}
