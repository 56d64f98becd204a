package dbtest

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// LongOrShort is how often or how much of something a test takes: the first number at full length,
// the second in its short form, which still fails when what the test guards is taken out.
func LongOrShort(long, short int) int {
	if testing.Short() {
		return short
	}
	return long
}

// FromEnv is a number that a variable of the environment may set.
func FromEnv(t testing.TB, name string, otherwise int) int {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	require.NoError(t, err, name)
	return n
}

// Crowd lets some clients do something again and again, side by side, until the function that it
// returns is called; or until the test ends, also where it has failed: what they use is about to be
// closed then.
func Crowd(t testing.TB, clients int, do func(client, i int)) (disperse func()) {
	t.Helper()
	var ended atomic.Bool
	var all sync.WaitGroup
	disperse = func() { ended.Store(true); all.Wait() }
	t.Cleanup(disperse)
	for client := range clients {
		all.Go(func() {
			for i := 0; !ended.Load(); i++ {
				do(client, i)
			}
		})
	}
	return disperse
}
