package record

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The memory takes no more bytes than it may, however much is put into it, and drops first what
// nobody looked up.
func TestMemoryKeepsItsBound(t *testing.T) {
	const bytes = 8 << 20
	m := newMemory(bytes)
	before := heap()
	at := func(i int) pair {
		return pairOf(int64(i), netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	most := int64(0)
	const pairs = 400_000 // several times what fits
	for i := range pairs {
		m.put(at(i), lastCounted{rank: int64(i), day: 20260629})
		if _, ok := m.get(at(7)); i >= 7 && !ok {
			t.Fatalf("pair 7 was looked up all the time, and is not in the memory after %d", i)
		}
		if i%5000 == 0 {
			most = max(most, heap()-before)
		}
	}
	t.Logf("%d pairs in %d bytes, %.0f each; promised %d", m.count(), most, float64(most)/float64(m.count()), memoryEntry)
	require.LessOrEqual(t, most, int64(bytes))
	require.Greater(t, m.count(), bytes/memoryEntry/2)
	newest, ok := m.get(at(pairs - 1))
	require.True(t, ok)
	require.Equal(t, lastCounted{rank: pairs - 1, day: 20260629}, newest)
	_, ok = m.get(at(0))
	require.False(t, ok)
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // bytes in memory
}

func TestNoMemoryHoldsNothing(t *testing.T) {
	t.Parallel()
	m := newMemory(0)
	m.put(pair{target: 1}, lastCounted{rank: 1, day: 1})
	_, ok := m.get(pair{target: 1})
	require.False(t, ok)
	require.Zero(t, m.count())
}

// The more often hints are wrong, the more batches are sent without them; but hints are always
// tried again.
func TestHintPolicy(t *testing.T) {
	t.Parallel()
	var p hintPolicy
	require.True(t, p.allowed())
	for _, without := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 256} {
		p.wrong()
		for i := range without {
			require.False(t, p.allowed(), "batch %d of %d", i, without)
			p.committed()
		}
		require.True(t, p.allowed())
	}
	for range 8 { // batches with hints that were right
		p.committed()
	}
	p.wrong()
	p.committed()
	require.True(t, p.allowed(), "only the batch with the wrong hint is sent without hints")
}
