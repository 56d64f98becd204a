package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench"
)

// Processes of their own are visited by wrk, their tables are checked, and the figures come from where they should.
func TestBenchHTTP(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: measures for seconds")
	}
	if _, err := exec.LookPath("wrk"); err != nil {
		t.Skip("wrk is not installed: scripts/install-deps wrk")
	}
	folder := newData(t)
	figures, page := filepath.Join(folder, "bench.json"), filepath.Join(folder, "bench.html")
	printed := well(t, "bench", "--http", "--quick", "--contenders=baseline,batched,batched+both,constant", "--workloads=returning",
		"--dir", folder, "--json", figures, "--html", page)
	text, err := os.ReadFile(figures)
	require.NoError(t, err)
	var report bench.Comparison
	require.NoError(t, json.Unmarshal(text, &report))
	assert.Equal(t, "http", report.Through)
	require.Len(t, report.Rows, 4)
	for _, row := range report.Rows {
		assert.Contains(t, printed, row.Contender)
		assert.Positive(t, row.Visits, row.Contender)
		assert.Positive(t, row.ToConstant, row.Contender)
		assert.Positive(t, row.Memory, row.Contender)
		assert.Equal(t, bench.Errors{}, row.Errors, row.Contender)
		counts := row.Contender != "constant"
		assert.Equal(t, counts, row.WAL > 0, "%s: %v bytes of WAL", row.Contender, row.WAL)
		assert.Equal(t, counts, row.Written > 0, "%s: %v rows written", row.Contender, row.Written)
		helps := row.Contender == "batched+both"
		assert.Equal(t, helps, row.Helpers > 0, "%s: %d bytes of helpers", row.Contender, row.Helpers)
		assert.Equal(t, counts && !helps, row.Asked > 0.05, "%s: %v existence queries", row.Contender, row.Asked)
	}
	drawn, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(drawn), "batched&#43;both")
}
