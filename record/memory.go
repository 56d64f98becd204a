package record

import (
	"net/netip"

	"footfall/record/cache"
)

// memory caches the rank and the last counted day of recently counted (target, visitor) pairs. An
// entry stays valid: a rank never changes, and a counted day stays counted. The memory is bounded
// and safe for concurrent use.
type memory struct {
	pairs *cache.Cache[pair, lastCounted]
}

// memoryEntry is roughly the maximum size of an entry of memory, in bytes. A map needs the most
// bytes per entry just after it has grown. A test checks this constant.
const memoryEntry = 96

// lastCounted is a pair's entry in memory: the pair's rank, and a day on which the pair was
// counted. The day is the pair's last one, unless late visits were counted.
type lastCounted struct {
	rank int64
	day  int32
}

// pair is a visitor at a target. It has no pointers, so that the garbage collector need not scan
// millions of pairs.
type pair struct {
	target  int64
	visitor [16]byte
}

func pairOf(target int64, visitor netip.Addr) pair { return pair{target, visitor.As16()} }

// newMemory creates a memory with this maximum size. If the size is 0, it returns nil. The methods
// treat nil as an empty memory.
func newMemory(bytes int64) *memory {
	if bytes == 0 {
		return nil
	}
	return &memory{cache.New[pair, lastCounted](bytes, func(pair) int { return memoryEntry })}
}

func (m *memory) get(p pair) (lastCounted, bool) {
	if m == nil {
		return lastCounted{}, false
	}
	return m.pairs.Get(p)
}

func (m *memory) put(p pair, last lastCounted) {
	if m != nil {
		m.pairs.Put(p, last)
	}
}

// putLate stores an entry, unless the memory has the same or a later day for the pair. A concurrent
// put of a later day may be overwritten. The only cost is that the pair must be looked up again.
func (m *memory) putLate(p pair, last lastCounted) {
	if there, hit := m.get(p); !hit || there.day < last.day {
		m.put(p, last)
	}
}

// covers reports whether the visitor of e was already counted at the target on e's day, according
// to the memory's entry l. Then no look-up is needed. If e is not Past, a later day in l suffices:
// the database refuses e on a day before its site's last day. turnDays then changes e's day or
// makes e Past, and e is looked up again.
func (l lastCounted) covers(e *entry) bool {
	return l.day == e.Day || l.day > e.Day && e.When != Past
}

// count returns roughly how many pairs the memory holds.
func (m *memory) count() int {
	if m == nil {
		return 0
	}
	return m.pairs.Count()
}
