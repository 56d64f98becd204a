package record

import (
	"time"

	"footfall/db"
	"footfall/record/cache"
	"footfall/visit"
)

const (
	// numbersStay is how long the numbers of a batch are given to visits that are not in it.
	numbersStay  = time.Second
	numbersBytes = 8 << 20
	numbersEntry = 96 // about how many bytes a target takes
)

// numbers holds the sums of targets as batches of this instance have left them, for visits that are
// answered without a batch. It is bounded and safe for concurrent use.
type numbers struct {
	targets *cache.Cache[int64, lastSums]
	now     func() time.Time
}

type lastSums struct {
	db.Sums
	at time.Time
}

func newNumbers() *numbers {
	return &numbers{cache.New[int64, lastSums](numbersBytes, func(int64) int { return numbersEntry }), time.Now}
}

// learn puts the sums of a batch that has committed into the numbers, once its entries have theirs.
func (n *numbers) learn(d *draft) {
	if n == nil {
		return
	}
	now := n.now()
	for i := range d.targets {
		n.targets.Put(d.targets[i].id, lastSums{d.targets[i].sums, now})
	}
}

// of returns the numbers of a target for an entry, if they are new enough.
func (n *numbers) of(t *entryTarget) (visit.Counts, bool) {
	sums, there := n.targets.Get(t.id)
	return visit.Counts{PV: sums.PV, UV: sums.UV, Rank: t.rank, Hot: sums.Hot}, there && n.now().Sub(sums.at) <= numbersStay
}

// LastNumbers returns the numbers of the target of a visit as a batch of this instance has left
// them within the last second, without asking the database; false if there is none. The rank is 0
// unless the visitor is remembered.
func (r *Recorder) LastNumbers(v Visit) (answer visit.Answer, ok bool) {
	g := r.caches.current.Load()
	if g == nil || g.numbers == nil {
		return visit.Answer{}, false
	}
	v.Tags = nil // what else it brings has no numbers, and takes longer to read than all the rest
	e := entry{Visit: v}
	g.lookUp(&e)
	var site, page bool
	answer.Site, site = g.numbers.of(&e.site)
	answer.Page, page = g.numbers.of(&e.page)
	return answer, site && page
}
