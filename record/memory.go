package record

import (
	"footfall/record/cache"
	"net/netip"
)

// memory holds, of the (target, visitor) pairs counted of late, the rank and the last day that was counted. Both are exact: by
// counting, a rank never changes and a day that was counted stays so. It is bounded, and safe for concurrent use.
type memory struct {
	pairs *cache.Cache[pair, lastCounted]
}

// memoryEntry is what a pair takes in a map, about, at its worst: just after the map has grown. A test holds it.
const memoryEntry = 96

// lastCounted is how a pair was counted last.
type lastCounted struct {
	rank int64
	day  int32
}

// pair is a visitor at a target. It holds no pointer, so that the garbage collector need not look at millions of them.
type pair struct {
	target  int64
	visitor [16]byte
}

func pairOf(target int64, visitor netip.Addr) pair { return pair{target, visitor.As16()} }

// newMemory makes a memory of at most so many bytes; nil, which remembers nothing, where there are none.
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

// count is how many pairs are held, about.
func (m *memory) count() int {
	if m == nil {
		return 0
	}
	return m.pairs.Count()
}
