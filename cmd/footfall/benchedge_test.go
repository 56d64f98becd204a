package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench"
)

// Every flag that cannot be followed is told at once.
func TestBenchEdgeRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"--parts bots":                               {`parts: there is no "bots": choose from keys,slow`},
		"--connections 3 --duration 1500ms":          {"connections: 3", "duration: 1.5s"},
		"--slow 0 --rate=-1 --rounds 0 --seed 0":     {"slow: 0", "rate: -1", "rounds: 0", "seed: 0"},
		"--quick --rounds 2 --duration 2s":           {"rounds: it means nothing with --quick", "duration: it means nothing with --quick"},
		"--slow 1000000000 --parts slow --rounds 01": nil, // there are not that many files, which is told before a server is started
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var out, errs strings.Builder
			code := run(t.Context(), append([]string{"bench", "edge"}, strings.Fields(args)...), strings.NewReader(""), &out, &errs)
			if want == nil {
				assert.Equal(t, exitFailed, code, errs.String())
				assert.Contains(t, errs.String(), "open files")
				return
			}
			assert.Equal(t, exitUsage, code)
			assert.Equal(t, len(want), strings.Count(errs.String(), "\n"), errs.String())
			for _, fault := range want {
				assert.Contains(t, errs.String(), fault)
			}
		})
	}
}

// Both parts are measured against processes of their own, their tables are checked, and the figures come from where they should.
func TestBenchEdge(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("wrk"); err != nil {
		t.Skip("wrk is not installed: scripts/install-deps wrk")
	}
	for part, ways := range map[string][]string{"keys": {"open", "guarded", "stranger"}, "slow": {"alone", "crowded"}} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			folder := newData(t)
			figures := filepath.Join(folder, "edge.json")
			printed := well(t, "bench", "edge", "--quick", "--parts", part, "--connections=16", "--slow=40", "--rate=200", "--dir", folder, "--json", figures)
			text, err := os.ReadFile(figures)
			require.NoError(t, err)
			var report bench.EdgeReport
			require.NoError(t, json.Unmarshal(text, &report))
			assert.Contains(t, printed, report.Command)
			for _, scene := range report.Scenes {
				require.Len(t, scene.Rows, len(ways), scene.Name)
				for i, row := range scene.Rows {
					assert.Equal(t, ways[i], row.Way)
					assert.Positive(t, row.Visits, row.Way)
					assert.Positive(t, row.ToPerSecond.Median, row.Way)
					assert.Positive(t, row.CPUMicros.Median, row.Way)
					assert.Equal(t, row.Way == "crowded", row.Held > 35, "%s: %v slow ones", row.Way, row.Held)
				}
			}
			for _, run := range report.Runs {
				assert.Equal(t, bench.Errors{}, run.Errors, run.Way)
				assert.Equal(t, run.Way == "crowded", run.Crowd != nil, run.Way)
			}
		})
	}
}
