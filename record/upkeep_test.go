package record

import (
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/db"
)

// The id of a batch outlasts the questions after it, twice over.
func TestIDsOutlastQuestions(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, db.BatchIDsStay, 2*(writePatience+didCommitPatience))
}
