package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench"
	"footfall/db/dbtest"
)

func TestBenchGenerateAndReportsRefuse(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"generate --data /tmp/x --until 2026-13-01 --visits 0 --seed 0":    {"until: ", "visits: 0", "seed: 0"},
		"generate --data /tmp/x --days 0 --pages 0 --visitors 0 --sites 0": {"days: 0", "pages: 0", "visitors: 0", "sites: 0"},
		"reports --parts speed --rate 0":                                   {`parts: there is no "speed"`, "rate: 0"},
		"reports --runs 0 --samples 0 --seed 0":                            {"runs: 0", "samples: 0", "seed: 0"},
		"reports --quick --runs 2":                                         {"runs: it means nothing with --quick"},
		"reports --quick --visits 7 --samples 1":                           {"visits: it means", "samples: it means"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var out, errs strings.Builder
			code := run(t.Context(), append([]string{"bench"}, strings.Fields(args)...), strings.NewReader(""), &out, &errs)
			assert.Equal(t, exitUsage, code)
			assert.Equal(t, len(want), strings.Count(errs.String(), "\n"), errs.String())
			for _, fault := range want {
				assert.Contains(t, errs.String(), fault)
			}
		})
	}
}

// What is generated is told, can be measured where it lies, and is there afterwards.
func TestBenchReports(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: measures for seconds")
	}
	folder := newData(t)
	data := filepath.Join(folder, "data")
	made := well(t, "bench", "generate", "--data", data, "--visits=5000", "--days=10", "--pages=100", "--visitors=500", "--sites=3", "--json", filepath.Join(folder, "made.json"))
	assert.Contains(t, made, "app generated: 5,000 visits over 10 days by 500 visitors to 100 pages of 3 sites, seed 1")
	again := footfall(t, "bench", "generate", "--data", data, "--visits=5000", "--days=10", "--pages=100", "--visitors=500", "--sites=3")
	assert.Equal(t, exitUsage, again.code, again.stderr)

	figures := filepath.Join(folder, "reports.json")
	printed := well(t, "bench", "reports", "--quick", "--data", data, "--rate=200", "--json", figures)
	text, err := os.ReadFile(figures)
	require.NoError(t, err)
	var report bench.ReportsReport
	require.NoError(t, json.Unmarshal(text, &report))
	assert.Contains(t, printed, report.Command)
	assert.Contains(t, report.Command, data)
	assert.Empty(t, report.Uniques.Different)
	assert.Equal(t, 50, report.Uniques.Ranges)
	assert.True(t, report.Answers.REST)
	for _, row := range report.Answers.Reports {
		assert.Positive(t, row.P99Ms, row.Report)
	}
	assert.Positive(t, report.Answers.Visits.Visits)
}

// With a server that is named the benchmark uses a database of its own.
func TestBenchReportsOnServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: measures for seconds")
	}
	url := dbtest.Empty(t)
	printed := well(t, "bench", "reports", "--quick", "--database-url", url, "--parts", "uniques")
	assert.Contains(t, printed, "compared with count(DISTINCT ip): 0 differ")
}
