package record

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/db"
)

// The id of a batch outlasts the questions after it, twice over.
func TestIDsOutlastQuestions(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, db.BatchIDsStay, 2*(usualPatience.write+usualPatience.didCommit))
}

// Tests of what hangs have less patience than the service, whose visits are answered within 25 s.
func TestLanesHaveTheUsualPatience(t *testing.T) {
	t.Parallel()
	_, d, _ := openDemo(t)
	r, err := Open(t.Context(), d, Options{})
	require.NoError(t, err)
	defer r.Close()
	require.Len(t, r.lanes, Lanes())
	for _, l := range r.lanes {
		require.Equal(t, patience{write: 15 * time.Second, didCommit: 10 * time.Second}, l.writer.patience)
	}
}
