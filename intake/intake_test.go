package intake

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/visit"
)

// Calls take turns, and who waits too long for one is refused.
func TestCallsTakeTurns(t *testing.T) {
	t.Parallel()
	d := NewDesk()
	d.wait = time.Millisecond
	for range callsAtOnce {
		d.turns <- struct{}{}
	}
	_, _, err := d.Count(t.Context(), Call{Body: strings.NewReader("[")})
	var verr *visit.Error
	require.ErrorAs(t, err, &verr)
	assert.Equal(t, visit.Unavailable, verr.Kind)
	assert.Positive(t, verr.RetryAfter)

	d.wait = time.Hour
	left, leave := context.WithCancel(t.Context())
	leave()
	_, _, err = d.Count(left, Call{Body: strings.NewReader("[")})
	require.ErrorIs(t, err, context.Canceled)

	<-d.turns
	_, _, err = d.Count(t.Context(), Call{Body: strings.NewReader("[")})
	require.ErrorContains(t, err, "line 1, column 2")
	_, _, err = d.Count(t.Context(), Call{Body: strings.NewReader("[")})
	require.ErrorContains(t, err, "line 1, column 2", "the turn before is over")

	full, free := make(chan struct{}, 1), make(chan struct{}, 1)
	full <- struct{}{}
	d.wait = time.Millisecond
	_, _, err = d.Count(t.Context(), Call{Body: strings.NewReader("["), Turns: full})
	require.ErrorAs(t, err, &verr, "of a database that does not answer")
	assert.Equal(t, tooMany().Error(), verr.Error())
	assert.Len(t, d.turns, callsAtOnce-1, "which takes none of the others' turns")
	d.wait = time.Hour
	_, _, err = d.Count(t.Context(), Call{Body: strings.NewReader("["), Turns: free})
	require.ErrorContains(t, err, "line 1, column 2")
	assert.Empty(t, free, "the turn is over")
	d.turns <- struct{}{}
	_, _, err = d.Count(left, Call{Body: strings.NewReader("["), Turns: free})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, free, "nobody keeps a turn of one kind who gets none of the other")
	<-d.turns
	assert.EqualValues(t, mostReceived, d.bodies.free, "all memory is there again")
	assert.Empty(t, d.bodies.all)
}

// However large a body becomes when it is unpacked, and whatever it says of its length, a call
// takes no more memory than its bounds. It is not parallel, since it measures what all take.
func TestMemoryOfACall(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	for range 64 {
		_, err := w.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	for name, call := range map[string]Call{
		"packed":               {Body: &bomb, Gzip: true},
		"endless":              {Body: endless{}},
		"said to be very long": {Body: strings.NewReader("["), Length: 1 << 40},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := NewDesk().Count(t.Context(), call)
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(12*MostBytes), name)
		var verr *visit.Error
		if name != "said to be very long" && assert.True(t, errors.As(err, &verr), "%s: %v", name, err) {
			assert.Equal(t, visit.TooLarge, verr.Kind, name)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// The chunks of a call are of about one size, however many are left, and at most a quarter larger
// than the best one.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ left, best, want int }{
		{1000, 500, 500}, {1000, 450, 500}, {1000, 400, 500}, {1000, 399, 334}, {1000, 4000, 1000}, {124, 100, 124}, {126, 100, 63}, {1, 100, 1},
		{10_000, 100, 125},
	} {
		assert.Equal(t, c.want, shareOf(c.left, c.best), "%d left, %d are best", c.left, c.best)
	}
}
