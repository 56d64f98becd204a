package inbox

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An app of which nothing can be counted rests for longer each time, if others are counted
// meanwhile; if nothing is, it is the database.
func TestWhoRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := errors.New("slow")
		h := held{resting: map[int32]rest{}, locked: []int32{9}}
		for app := range int32(mostFailures) {
			assert.Equal(t, app+1 < mostFailures, h.suspect(app, slow), "so many fail only where the database does")
		}
		assert.Equal(t, []int32{0, 1, 2, 9}, h.apps())
		apps, err := h.judge(time.Minute)
		require.ErrorIs(t, err, slow)
		assert.Empty(t, apps)
		assert.Equal(t, []int32{9}, h.apps(), "they are tried again at once")

		for _, lasts := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
			h.suspect(7, slow)
			h.counted(8)
			apps, err = h.judge(5 * time.Second)
			require.NoError(t, err)
			assert.Equal(t, []int32{7}, apps)
			<-time.After(lasts - 1)
			assert.Equal(t, []int32{7, 9}, h.apps())
			<-time.After(1)
			assert.Equal(t, []int32{9}, h.apps())
		}
		h.counted(7)
		h.suspect(7, slow)
		h.counted(8)
		_, err = h.judge(5 * time.Second)
		require.NoError(t, err)
		<-time.After(lookEvery)
		assert.Equal(t, []int32{9}, h.apps(), "it was well meanwhile")
		h.locked = nil
		assert.NotNil(t, h.apps(), "null would exclude every app")
	})
}
