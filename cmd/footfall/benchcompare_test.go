package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"footfall/bench"
	"footfall/db/dbtest"
)

// Every flag that cannot be followed is told at once, before anything is measured.
func TestBenchRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"--contenders naive,fast --workloads rush": {`there is no "fast": choose from naive,`, `there is no "rush": choose from first,`},
		"--contenders constant":                    {`there is no "constant"`}, // over HTTP only
		"--visits 0 --clients=-1 --rounds 0":       {"visits: 0", "clients: -1", "rounds: 0"},
		"--visits 99999999":                        {"visits: 99999999 will not do"},
		"--seed 0":                                 {"seed: 0"},
		"--http --connections 3 --duration 1500ms": {"connections: 3", "duration: 1.5s"},
		"--http --visits 5 --clients 5":            {"visits: it means nothing with --http", "clients: it means nothing"},
		"--connections 4 --duration 2s":            {"connections: it means nothing without", "duration: it means nothing without"},
		"--quick --rounds 2":                       {"rounds: it means nothing with --quick"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var out, errs strings.Builder
			code := run(t.Context(), append([]string{"bench"}, strings.Fields(args)...), strings.NewReader(""), &out, &errs)
			if code != exitUsage || strings.Count(errs.String(), "\n") != len(want) {
				t.Errorf("code %d, want %d, and %d faults:\n%s", code, exitUsage, len(want), &errs)
			}
			for _, fault := range want {
				if !strings.Contains(errs.String(), fault) {
					t.Errorf("%q is not told:\n%s", fault, &errs)
				}
			}
		})
	}
}

// The comparison is what bench does by itself; its figures go to the files that are named.
func TestBenchCompares(t *testing.T) {
	t.Parallel()
	figures, page := filepath.Join(t.TempDir(), "b.json"), filepath.Join(t.TempDir(), "b.html")
	var out, errs strings.Builder
	code := run(t.Context(), []string{
		"bench", "--database-url", dbtest.Empty(t), "--contenders", "baseline,batched+both", "--workloads", "burst",
		"--visits", "200", "--clients", "8", "--rounds", "1", "--json", figures, "--html", page,
	}, strings.NewReader(""), &out, &errs)
	if code != exitWell || !strings.Contains(out.String(), "batched+both") {
		t.Fatalf("code %d:\n%s\n%s", code, &out, &errs)
	}
	text, err := os.ReadFile(figures)
	if err != nil {
		t.Fatal(err)
	}
	var report bench.Comparison
	if err := json.Unmarshal(text, &report); err != nil || len(report.Runs) != 2 || report.Runs[0].Visits != 200 {
		t.Errorf("the figures are %+v, %v", report, err)
	}
	if !slices.ContainsFunc(report.Rows, func(r bench.ComparisonRow) bool { return r.Contender == "batched+both" && r.ToBaseline > 0 }) {
		t.Errorf("no ratio to the baseline: %+v", report.Rows)
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "baseline") {
		t.Errorf("the page is %.80s, %v", html, err)
	}
}

// What is not true is shown, and makes the command fail all the same. There are no figures to show of what failed halfway.
func TestBenchShowsWhatIsUntrue(t *testing.T) {
	t.Parallel()
	halfway := errors.New("the server went away")
	for fault, shown := range map[error]bool{nil: true, fmt.Errorf("%w: uv is off by 1", bench.ErrUntrue): true, halfway: false} {
		var out strings.Builder
		report := &bench.Comparison{Command: "footfall bench --seed 4"}
		if fault == halfway { //nolint:errorlint // this very one
			report = nil
		}
		err := (&benchCompareCmd{}).show(&program{stdout: &out, stderr: io.Discard}, report, fault)
		if !errors.Is(err, fault) || strings.Contains(out.String(), "--seed 4") != shown {
			t.Errorf("after %v: %v, shown:\n%s", fault, err, &out)
		}
	}
}
