package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench"
	"footfall/bench/compare"
	"footfall/bench/reports"
	"footfall/db/dbtest"
)

// Every flag that cannot be followed is told at once, before anything is measured.
func TestBenchRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"--contenders naive,fast --workloads rush":            {`there is no "fast"`, `there is no "rush"`},
		"--visits=-1 --clients=-1 --rounds=-1 --preload=-1":   {"visits: -1", "clients: -1", "rounds: -1", "preload: "},
		"--http --connections 3 --duration 1500ms --visits 5": {"connections: 3", "duration: 1.5s", "visits: it means nothing with --http"},
		"--old x":                         {"old: it means nothing without"},
		"reports --parts speed --rate=-1": {`parts: there is no "speed"`, "rate: -1"},
		"reports --runs=-1 --samples=-1":  {"runs: -1", "samples: -1"},
		"reports --visits=-1":             {"visits: -1"},
		"structures --keys 999":           {"keys: 999 will not do"},
		"generate --data /tmp/x --until 2026-13-01 --visits=-1":                {"until: ", "visits: -1"},
		"generate --data /tmp/x --days=-1 --pages=-1 --visitors=-1 --sites=-1": {"days: -1", "pages: -1", "visitors: -1", "sites: -1"},
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

// readFigures reads what a benchmark has written.
func readFigures[T any](t *testing.T, file string) (report T) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &report))
	return report
}

// The comparison is what bench does by itself; its figures go to the files that are named.
func TestBenchCompares(t *testing.T) {
	t.Parallel()
	figures, page := filepath.Join(t.TempDir(), "b.json"), filepath.Join(t.TempDir(), "b.html")
	var out, errs strings.Builder
	code := run(t.Context(), []string{
		"bench", "--database-url", dbtest.Empty(t), "--contenders", "batched,batched+both", "--workloads", "burst", "--preload", "100",
		"--visits", "200", "--clients", "8", "--rounds", "1", "--json", figures, "--html", page,
	}, strings.NewReader(""), &out, &errs)
	require.Equal(t, exitWell, code, errs.String())
	report := readFigures[compare.Report](t, figures)
	require.Len(t, report.Rows, 2)
	for _, row := range report.Rows {
		assert.Contains(t, out.String(), row.Contender)
		assert.Equal(t, 200, row.Visits)
		assert.Positive(t, row.To["batched"])
	}
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(html), "batched&#43;both")
}

// What is not true is shown, and makes the command fail all the same. There are no figures to show
// of what failed halfway.
func TestBenchShowsWhatIsUntrue(t *testing.T) {
	t.Parallel()
	halfway := errors.New("the server went away")
	for fault, shown := range map[error]bool{nil: true, fmt.Errorf("%w: uv is off by 1", bench.ErrUntrue): true, halfway: false} {
		var out strings.Builder
		report := &compare.Report{Command: "footfall bench --seed 4"}
		if !shown {
			report = nil
		}
		err := publish(&program{stdout: &out, stderr: io.Discard}, "", report, fault)
		require.ErrorIs(t, err, fault)
		assert.Equal(t, shown, strings.Contains(out.String(), "--seed 4"))
	}
}

// Processes of their own are visited by wrk, their tables are checked, and the figures come from
// where they should. The program of another version is this one here.
func TestBenchHTTP(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: measures for seconds")
	}
	if _, err := exec.LookPath("wrk"); err != nil {
		t.Skip("wrk is not installed: scripts/install-deps wrk")
	}
	folder := newData(t)
	figures := filepath.Join(folder, "bench.json")
	well(t, "bench", "--http", "--quick", "--contenders=baseline,batched,batched+both,guarded,stranger,flash,calls,constant,old", "--workloads=returning",
		"--old", os.Args[0], "--dir", folder, "--json", figures)
	report := readFigures[compare.Report](t, figures)
	assert.True(t, report.HTTP)
	require.Len(t, report.Rows, 9)
	for _, row := range report.Rows {
		assert.Positive(t, row.Visits, row.Contender)
		assert.Positive(t, row.To["constant"], row.Contender)
		assert.Positive(t, row.To["old"], row.Contender)
		assert.Positive(t, row.Memory, row.Contender)
		assert.Equal(t, compare.Errors{}, row.Errors, row.Contender)
		assert.Equal(t, row.Contender == "flash", row.Sustained > 0 && row.WorstMs > 0 && row.Early > 0, row.Contender)
		counts := row.Contender != "constant"
		assert.Equal(t, counts, row.WAL > 0, "%s: %v bytes of WAL", row.Contender, row.WAL)
		assert.Equal(t, counts, row.Written > 0, "%s: %v rows written", row.Contender, row.Written)
		helps := counts && row.Contender != "baseline" && row.Contender != "batched"
		assert.Equal(t, helps, row.Helpers > 0, "%s: %d bytes of helpers", row.Contender, row.Helpers)
		assert.Equal(t, counts && !helps, row.Asked > 0.05, "%s: %v existence queries", row.Contender, row.Asked)
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
	set := []string{"bench", "generate", "--data", data, "--visits=5000", "--days=10", "--pages=100", "--visitors=500", "--sites=3"}
	assert.Contains(t, well(t, set...), "app generated: 5,000 visits over 10 days by 500 visitors to 100 pages of 3 sites, seed 1")
	again := footfall(t, set...)
	assert.Equal(t, exitUsage, again.code, again.stderr)

	figures := filepath.Join(folder, "reports.json")
	printed := well(t, "bench", "reports", "--quick", "--data", data, "--rate=200", "--json", figures)
	report := readFigures[reports.Report](t, figures)
	assert.Contains(t, printed, report.Command)
	assert.Contains(t, report.Command, data)
	assert.Empty(t, report.Uniques.Different)
	assert.Equal(t, 50, report.Uniques.Ranges)
	for _, row := range report.Answers.Reports {
		assert.Positive(t, row.P99Ms, row.Report)
	}
	assert.Positive(t, report.Answers.Visits.Visits)
	assert.Positive(t, report.Proving.Visits.Visits)
	assert.Positive(t, report.Proving.FloodSeconds)
	assert.EqualValues(t, 25_000, report.Imports.Lines)
	assert.Positive(t, report.Imports.Alone.Seconds)
	assert.Positive(t, report.Imports.Visits.Visits)
}

// With a server that is named the benchmark uses a database of its own.
func TestBenchReportsOnServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: measures for seconds")
	}
	printed := well(t, "bench", "reports", "--quick", "--database-url", dbtest.Empty(t), "--parts", "uniques")
	assert.Contains(t, printed, "compared with count(DISTINCT ip): 0 differ")
}

// The year of returns, of which docs/benchmarks.md tells, is made and read; here it has four days.
func TestBenchOfReturns(t *testing.T) {
	t.Parallel()
	database := "--database-url=" + dbtest.New(t)
	well(t, "app", "add", "daily", "--access=open", database)
	said := well(t, "psql", database, "--", "-v", "days=4", "-f", "../../bench/returns.sql")
	assert.Regexp(t, `open_returns +\| +306 `, said, "102 targets, three days before")
	assert.Regexp(t, `packed_returns +\| +306 `, said, "one, and two")
	for _, list := range []string{`all days +\| +101 +\| +404000`, `half a year +\| +101 +\| +404000`, `all but a day +\| +101 +\| +303303`} {
		assert.Regexp(t, list, said)
	}
}
