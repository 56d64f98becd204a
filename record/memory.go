package record

import (
	"net/netip"

	"footfall/record/cache"
)

// memory holds the rank and the last counted day of recently counted (target, visitor) pairs. Both
// stay valid: a rank never changes, and a counted day stays counted. The memory is bounded and safe
// for concurrent use.
type memory struct {
	pairs *cache.Cache[pair, lastCounted]
}

// memoryEntry is roughly the maximum size of a pair in a map, in bytes. A map is largest just after
// it has grown. A test checks the number.
const memoryEntry = 96

// lastCounted is a pair's entry in the memory: the pair's rank, and a day on which the pair was
// counted. This is the pair's last day unless visits were late.
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

// newMemory creates a memory of at most this size. For 0 bytes it returns nil, which acts as an
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

// putLate is put, unless the memory has a later day of the pair. (A concurrent put may be lost,
// which costs a look-up.)
func (m *memory) putLate(p pair, last lastCounted) {
	if there, hit := m.get(p); !hit || there.day < last.day {
		m.put(p, last)
	}
}

// covers reports whether the entry's visitor needs no look-up, because the visitor was counted on
// the entry's day. For a visit that is not Past, a later day suffices: the database accepts no such
// visit before its site's last day, and turnDays changes its day.
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
