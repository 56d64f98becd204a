package pause_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/pause"
)

func TestPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	require.NoError(t, pause.For(t.Context(), time.Millisecond))
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, pause.For(ended, time.Hour), context.Canceled)
	assert.True(t, pause.Again(t.Context(), 1))
	assert.False(t, pause.Again(ended, 1000))
}

// A repeated message is logged once in a while, with the number of omitted ones. Another message is logged at once.
func TestRepeatedMessagesAreRare(t *testing.T) {
	t.Parallel()
	s := pause.Seldom[string]{Every: time.Second}
	now := time.Unix(1e9, 0)
	for i := range 100 {
		missed, speak := s.Next("full", now.Add(time.Duration(i)*time.Millisecond))
		assert.Equal(t, i == 0, speak)
		assert.Zero(t, missed)
	}
	_, speak := s.Next("lost", now)
	assert.True(t, speak, "something else")
	missed, speak := s.Next("full", now.Add(time.Second))
	assert.True(t, speak)
	assert.Equal(t, 99, missed)
	missed, speak = s.Next("full", now.Add(2*time.Second))
	assert.True(t, speak)
	assert.Zero(t, missed)
}
