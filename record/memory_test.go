package record

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The memory takes no more than it was given, however much is put into it, and forgets what was not asked for first.
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
			t.Fatalf("pair 7 was asked for all the time, and is forgotten after %d", i)
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

func TestNoMemoryRemembersNothing(t *testing.T) {
	t.Parallel()
	m := newMemory(0)
	m.put(pair{target: 1}, lastCounted{rank: 1, day: 1})
	_, ok := m.get(pair{target: 1})
	require.False(t, ok)
	require.Zero(t, m.count())
}

// Hints are trusted less the more often they are wrong, and never quite given up.
func TestTrust(t *testing.T) {
	t.Parallel()
	var tr trust
	require.True(t, tr.hintsAllowed())
	for _, without := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 256} {
		tr.lose()
		for i := range without {
			require.False(t, tr.hintsAllowed(), "batch %d of %d", i, without)
			tr.gain()
		}
		require.True(t, tr.hintsAllowed())
	}
	for range 8 { // batches with hints that were right
		tr.gain()
	}
	tr.lose()
	tr.gain()
	require.True(t, tr.hintsAllowed(), "only the batch that was wrong goes without")
}
