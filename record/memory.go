package record

import (
	"net/netip"

	"footfall/record/cache"
)

// memory holds the rank and the last counted day of (target, visitor) pairs that were counted
// recently. Both stay true whatever is counted: a rank never changes, and a day that is counted
// stays counted. The memory is bounded and safe for concurrent use.
type memory struct {
	pairs *cache.Cache[pair, lastCounted]
}

// memoryEntry is about how many bytes a pair takes in a map at most, which is when the map has just
// grown. A test checks it.
const memoryEntry = 96

// lastCounted is what the memory holds of a pair: a day on which it was counted, the last one
// unless visits were late.
type lastCounted struct {
	rank int64
	day  int32
}

// pair is a visitor at a target. It has no pointers, so that the garbage collector need not look
// into millions of pairs.
type pair struct {
	target  int64
	visitor [16]byte
}

func pairOf(target int64, visitor netip.Addr) pair { return pair{target, visitor.As16()} }

// newMemory makes a memory of at most so many bytes. For 0 bytes it returns nil, which holds
// nothing.
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

// putLate is put, unless the memory has a later day of the pair. (One that is put at the same
// moment may be lost, which costs a look-up.)
func (m *memory) putLate(p pair, last lastCounted) {
	if there, hit := m.get(p); !hit || there.day < last.day {
		m.put(p, last)
	}
}

// covers reports whether the visitor was counted on the day of an entry. That of a live visit is the
// last one of its site or a later one, so that none can be later.
func (l lastCounted) covers(e *entry) bool {
	return l.day == e.Day || l.day > e.Day && e.When != Past
}

// count is about how many pairs the memory holds.
func (m *memory) count() int {
	if m == nil {
		return 0
	}
	return m.pairs.Count()
}
