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

// memoryEntry is roughly the maximum number of bytes that a pair takes in the memory of recent visitors. (A map needs
// most bytes per entry just after it has grown.) A test checks this constant.
const memoryEntry = 96

// lastCounted is the entry for a pair in the memory of recent visitors: the rank of the pair, and a day on which it
// was counted. This is the last such day, unless visits of past days were counted.
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

// newMemory creates a memory with this maximum size. If the size is 0, it returns nil. The methods treat nil as an
// empty memory.
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

// putLate stores an entry for a pair that may have been counted on a past day. If the memory already has the same or
// a later day for the pair, putLate does nothing. It may overwrite a later day that another goroutine stores
// concurrently. The only cost is that the pair must be looked up again in the tables.
func (m *memory) putLate(p pair, last lastCounted) {
	if there, hit := m.get(p); !hit || there.day < last.day {
		m.put(p, last)
	}
}

// covers reports whether e needs no look-up in the tables now. l is the memory's entry for e's visitor at a target. There
// are two cases:
//   - l has the day of e: the visitor was already counted on this day.
//   - e is not Past, and l has a later day, on which e's site was already counted. Then the database refuses e, and
//     turnDays changes the day of e or makes it Past. Only after that is e looked up.
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
