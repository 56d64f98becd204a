package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench"
	"footfall/bench/compare"
	"footfall/bench/reports"
	"footfall/db/dbtest"
	"footfall/db/embedded/tempdir"
)

// asProgram makes the test binary the program itself.
const asProgram = "FOOTFALL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	code := dbtest.Run(m)
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}

// built is where the service is that benchmarks start.
var built struct {
	sync.Once
	dir string
	err error
}

// service is the program footfall.
func service(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "footfall-built-"); built.err == nil {
			var out []byte
			if out, built.err = exec.Command("go", "build", "-o", built.dir+"/footfall", "../footfall").CombinedOutput(); built.err != nil {
				built.err = fmt.Errorf("%w: %s", built.err, out)
			}
		}
	})
	require.NoError(t, built.err)
	return built.dir + "/footfall"
}

// typed runs bench as a process of its own, and returns its exit code and what it wrote.
func typed(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = []string{asProgram + "=1", "GORACE=atexit_sleep_ms=0", "FOOTFALL_POSTGRES_BIN=" + os.Getenv("FOOTFALL_TEST_POSTGRES_BIN")}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "FOOTFALL_") && !strings.HasPrefix(entry, "GORACE=") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// well is typed for what must succeed; it returns what was printed.
func well(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := typed(t, args...)
	require.Equal(t, exitWell, code, stderr)
	return stdout
}

// folder is one that the user of PostgreSQL can enter.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := tempdir.Make()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// Every flag that cannot be followed is told at once, before anything is measured.
func TestBenchRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"--workloads rush":        {`--workloads must be one of "first"`},
		"--contenders naive,fast": {`there is no "fast"`},
		"--visits=-1 --clients=0 --rounds=-1 --connections=-2": {"visits: -1", "clients: 0 will not do", "rounds: -1", "connections: -2"},
		"--http --connections 0 --duration=-1s":                {"connections: 0"},
		"--old x":                                              {"old: it means nothing without"},
		"--fast":                                               {"--fast"},
		"reports --parts speed":                                {`--parts must be one of "answers"`},
		"reports --runs=-1 --rate=-1":                          {"runs: -1", "rate: -1"},
		"reports --quick":                                      {"data: name the folder"},
		"structures --keys 999":                                {"keys: 999 will not do"},
		"generate --data /tmp/x --visitors 16000001 --visits 16000001 --days 10001": {"visitors: 16000001 will not do: give 1 to 16000000", "days: 10001"},
		"generate --visits=5":                                                      {"visits: 5 are too few", "data: name the folder"},
		"generate --data /tmp/x --until 2026-13-01":                                {"2026-13-01"},
		"generate --data /tmp/x --days=-1 --pages=-1 --visitors=-1 --sites=-1":     {"days: -1", "pages: -1", "visitors: -1", "sites: -1"},
		"--http --quick --workloads burst --contenders batched --footfall nowhere": {"footfall: there is no program nowhere"},
		"reports --data /tmp/x --footfall nowhere":                                 {"footfall: there is no program nowhere"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(args, "--http") || strings.HasPrefix(args, "reports") {
				args = strings.Replace(args, " ", " --footfall="+os.Args[0]+" ", 1) // where none is named
			}
			var out, errs strings.Builder
			code := run(t.Context(), strings.Fields(args), &out, &errs)
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
	figures := filepath.Join(t.TempDir(), "b.json")
	var out, errs strings.Builder
	code := run(t.Context(), []string{
		"--database-url", dbtest.Empty(t), "--contenders", "batched,batched+both", "--workloads", "burst",
		"--visits", "200", "--clients", "8", "--rounds", "1", "--json", figures,
	}, &out, &errs)
	require.Equal(t, exitWell, code, errs.String())
	report := readFigures[compare.Report](t, figures)
	assert.True(
		t,
		strings.HasPrefix(report.Command, "bin/bench --database-url … --contenders batched,batched+both --workloads"),
		report.Command,
	)
	require.Len(t, report.Rows, 2)
	for _, row := range report.Rows {
		assert.Contains(t, out.String(), row.Contender)
		assert.Equal(t, 200, row.Visits)
		assert.Positive(t, row.To["batched"])
	}
}

// What is not true is shown, and makes the command fail all the same. There are no figures to show
// of what failed halfway.
func TestBenchShowsWhatIsUntrue(t *testing.T) {
	t.Parallel()
	halfway := errors.New("the server went away")
	for fault, shown := range map[error]bool{nil: true, fmt.Errorf("%w: uv is off by 1", bench.ErrUntrue): true, halfway: false} {
		var out strings.Builder
		report := &compare.Report{Command: "bin/bench --seed 4"}
		if !shown {
			report = nil
		}
		err := output{}.publish(&program{stdout: &out, stderr: io.Discard}, report, fault)
		require.ErrorIs(t, err, fault)
		assert.Equal(t, shown, strings.Contains(out.String(), "--seed 4"))
	}
}

// Processes of their own are visited, their tables are checked, and the figures come from
// where they should. The program of another version is the present one here.
func TestBenchHTTP(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: measures for seconds")
	}
	dir := folder(t)
	figures := filepath.Join(dir, "bench.json")
	well(t, "--http", "--quick", "--contenders=batched,batched+both,inbox,calls,old", "--workloads=returning",
		"--footfall", service(t), "--old", service(t), "--dir", dir, "--json", figures)
	report := readFigures[compare.Report](t, figures)
	assert.True(t, report.HTTP)
	require.Len(t, report.Rows, 5)
	for _, row := range report.Rows {
		assert.Positive(t, row.Visits, row.Contender)
		assert.Positive(t, row.To["old"], row.Contender)
		assert.Positive(t, row.Memory, row.Contender)
		assert.Equal(t, compare.Errors{}, row.Errors, row.Contender)
		assert.Positive(t, row.WAL, row.Contender)
		assert.Positive(t, row.Written, row.Contender)
		assert.Equal(t, row.Contender == "inbox", row.Drained > 0, row.Contender)
		assert.Equal(t, row.Contender == "batched", row.Asked > 0.05, "%s: %v existence queries", row.Contender, row.Asked)
	}
}

// What is generated is told, can be measured where it lies, and is there afterwards.
func TestBenchReports(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: measures for seconds")
	}
	dir := folder(t)
	data := filepath.Join(dir, "data")
	set := []string{"generate", "--data", data, "--visits=5000", "--days=10", "--pages=100", "--visitors=500", "--sites=3"}
	assert.Contains(t, well(t, set...), "app generated: 5,000 visits over 10 days by 500 visitors to 100 pages of 3 sites, seed 1")
	code, _, stderr := typed(t, set...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "generated")

	figures := filepath.Join(dir, "reports.json")
	printed := well(t, "reports", "--quick", "--data", data, "--rate=200", "--footfall", service(t), "--json", figures)
	report := readFigures[reports.Report](t, figures)
	assert.Contains(t, printed, report.Command)
	assert.Contains(t, report.Command, data)
	assert.Empty(t, report.Wrong)
	assert.Contains(t, printed, "all was verified")
	rows := map[string]bool{}
	for _, row := range report.Rows {
		assert.Positive(t, row.Requests, row.What)
		assert.Positive(t, row.P99Ms, row.What)
		rows[row.What] = true
	}
	for _, what := range []string{
		"visits beside reports", "/api/apps/{app}/sites", "visits beside 20 open dashboards", "visits beside nothing else",
		"their pages, of a site and 30 days", "visits beside verify",
	} {
		assert.Contains(t, rows, what)
	}
}

// A server can be named, too.
func TestBenchReportsOnServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: measures for seconds")
	}
	server := dbtest.Empty(t)
	well(t, "generate", "--database-url", server, "--visits=500", "--days=10", "--pages=10", "--visitors=50", "--sites=3")
	printed := well(t, "reports", "--quick", "--database-url", server, "--footfall", service(t), "--parts", "verify")
	assert.Contains(t, printed, "visits beside verify")
}

// A log needs no database.
func TestBenchGeneratesALog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	var out, errs strings.Builder
	require.Equal(
		t,
		exitWell,
		run(t.Context(), []string{"generate", "--log", file, "--visits=1000", "--visitors=100", "--pages=50", "--days=4"}, &out, &errs),
		errs.String(),
	)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, 2500, bytes.Count(text, []byte("\n")))
}
