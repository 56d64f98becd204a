package record

import (
	"net/netip"

	"footfall/record/cache"
)

// memory caches two values for each recently counted (target, visitor) pair: the visitor's rank, and a day on which
// the visitor was counted. These values stay valid: a rank never changes, and a counted day stays counted. The memory
// is bounded and safe for concurrent use.
type memory struct {
	pairs *cache.Cache[pair, lastCounted]
}

// memoryEntry is roughly the maximum size of a pair in the memory of recent visitors, in bytes. A map needs the most
// bytes per entry just after it has grown. A test checks this constant.
const memoryEntry = 96

// lastCounted is the memory's entry for a pair: the pair's rank, and a day on which the pair was counted. It is the
// last such day, unless visits of past days were counted.
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

// newMemory creates a memory with this maximum size. If the size is 0, it returns nil. The methods treat a nil memory
// as empty.
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

// putLate stores an entry for a pair that may have been counted on a past day. It does nothing if the memory has the
// same or a later day for the pair. A concurrent put of a later day may be overwritten. The only cost is that the
// pair must be looked up again in the tables.
func (m *memory) putLate(p pair, last lastCounted) {
	if there, hit := m.get(p); !hit || there.day < last.day {
		m.put(p, last)
	}
}

// covers reports whether e's visitor was already counted on e's day at a target, where l is the memory's entry for
// this visitor and target. Then no look-up in the tables is needed. If e is not Past, a later day in l also suffices.
// The database then refuses e, because the site was already counted on this later day. turnDays changes e's day or
// makes e Past, and e is looked up again.
func (l lastCounted) covers(e *entry) bool {
	return l.day == e.Day || l.day > e.Day && e.When != Past
}

// count returns roughly how many pairs are in the memory.
func (m *memory) count() int {
	if m == nil {
		return 0
	}
	return m.pairs.Count()
}
