package imports

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is written of logs is found again: samples of each hour that is asked for, and not those that were deleted; and whoever has
// found a log that somebody else has looked at since writes nothing.
func TestBook(t *testing.T) {
	t.Parallel()
	g, err := newDesk(t).counter.AuthorizeOperator(t.Context(), "blog")
	require.NoError(t, err)
	require.NoError(t, withBook(t.Context(), g, func(b tables) error {
		nothing, l, changed := int64(0), Log{Hash: make([]byte, sha256.Size)}, samples{}
		l.Counted = &nothing
		for hour := range int32(3) {
			changed.of(hour).add(sampled{hash: 7, count: 1})
		}
		written, err := b.set(t.Context(), &l, nil, changed)
		require.NoError(t, err)
		require.True(t, written)
		found := l
		l.Look++
		for _, writes := range []bool{true, false} {
			written, err = b.set(t.Context(), &l, &found, samples{2: new(sample)})
			require.NoError(t, err)
			require.Equal(t, writes, written)
		}
		of, err := b.samplesOf(t.Context(), l.ID, nil)
		require.NoError(t, err)
		require.Equal(t, []int32{0, 1}, of.hours())
		all, err := b.samplesOfHours(t.Context(), []int32{0, 1, 2})
		require.NoError(t, err)
		require.Equal(t, []int32{0, 1}, all[l.ID].hours())
		return nil
	}))
}
