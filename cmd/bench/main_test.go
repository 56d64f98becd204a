package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench"
	"footfall/bench/compare"
	"footfall/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// Every invalid flag is reported at once, before any measurement.
func TestBenchRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"--workloads rush":        {`--workloads must be one of "first"`},
		"--contenders naive,fast": {`"fast" is not one of them`},
		"--visits=-1 --clients=0 --rounds=-1 --connections=-2": {"visits: -1", "clients: 0 is out of range", "rounds: -1", "connections: -2"},
		"--http --connections 0 --duration=-1s":                {"connections: 0"},
		"--old x":                                              {"old: it has no effect without"},
		"--fast":                                               {"--fast"},
		"reports --parts speed":                                {`--parts must be one of "answers"`},
		"reports --runs=-1 --rate=-1":                          {"runs: -1", "rate: -1"},
		"reports --rate 5":                                     {"data: name the folder"},
		"structures --keys 999":                                {"keys: 999 is out of range"},
		"generate --data /tmp/x --visitors 16000001 --visits 16000001 --days 10001": {"visitors: 16000001 is out of range: give 1 to 16000000", "days: 10001"},
		"generate --visits=5":                                                  {"visits: 5 are too few", "data: name the folder"},
		"generate --data /tmp/x --until 2026-13-01":                            {"2026-13-01"},
		"generate --data /tmp/x --days=-1 --pages=-1 --visitors=-1 --sites=-1": {"days: -1", "pages: -1", "visitors: -1", "sites: -1"},
		"--http --workloads burst --contenders batched --footfall nowhere":     {"footfall: there is no program nowhere"},
		"reports --data /tmp/x --footfall nowhere":                             {"footfall: there is no program nowhere"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(args, "--http") || strings.HasPrefix(args, "reports") {
				args = strings.Replace(args, " ", " --footfall="+os.Args[0]+" ", 1) // a later --footfall overrides it
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

// The comparison is the default command of bench.
func TestBenchCompares(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	code := run(t.Context(), []string{
		"--database-url", dbtest.Empty(t), "--contenders", "batched,batched+both", "--workloads", "burst",
		"--visits", "200", "--clients", "8", "--rounds", "1",
	}, &out, &errs)
	require.Equal(t, exitWell, code, errs.String())
	assert.Regexp(t, `(?m)^ *batched +[0-9]`, out.String())
	assert.Regexp(t, `(?m)^ *batched\+both +[0-9]`, out.String())
}

// A report with wrong results is printed, but the command fails. A run that failed halfway prints no report.
func TestBenchShowsWhatIsUntrue(t *testing.T) {
	t.Parallel()
	halfway := errors.New("the server went away")
	for fault, shown := range map[error]bool{nil: true, fmt.Errorf("%w: uv is off by 1", bench.ErrUntrue): true, halfway: false} {
		var out strings.Builder
		report := &compare.Report{Seed: 4}
		if !shown {
			report = nil
		}
		err := (&program{stdout: &out, stderr: io.Discard}).publish(report, fault)
		require.ErrorIs(t, err, fault)
		assert.Equal(t, shown, strings.Contains(out.String(), "seed 4"))
	}
}

// Generating a log needs no database.
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
