package imports

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A set counts each hash as often as it was added, also where its parts are too large to be merged. Merging may not
// need much more memory than one part has.
func TestHashSetCounts(t *testing.T) {
	t.Parallel()
	r, added, set := rand.New(rand.NewPCG(1, 2)), map[uint64]int{}, hashSet{} //nolint:gosec // reproducible
	for range 50 {
		some := make([]uint64, mostMerged/16+r.IntN(1000))
		for i := range some {
			some[i] = r.Uint64N(3*mostMerged) + 1
			added[some[i]]++
		}
		set.add(some)
	}
	total, largest := 0, 0
	for _, part := range set.parts {
		total, largest = total+len(part), max(largest, len(part))
		assert.True(t, slices.IsSorted(part))
	}
	assert.Greater(t, total, 3*mostMerged)
	assert.Less(t, largest, 2*mostMerged)
	for hash, n := range added {
		if set.count(hash) != n {
			assert.Equal(t, n, set.count(hash), hash)
		}
	}
	assert.Zero(t, set.count(0))
}
