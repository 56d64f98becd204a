package structures

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// The numbers come from a second implementation, in another language.
func TestArticleHashes(t *testing.T) {
	t.Parallel()
	if got, want := articleHashes("ip_12345"), [4]uint32{1901805052, 525779430, 287565154, 1878621522}; got != want {
		t.Errorf("hashes of ip_12345 are %v, want %v", got, want)
	}
}

func TestArticleFilterHasItsFalsePositives(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{10_000, 100_000, 1_000_000} {
		f := newArticleFilter(keys * bitsPerKey)
		f.prepare(makeKeys(0, keys))
		if got := keys - f.checkAndAdd(); got != articleFalsePositives[keys] {
			t.Errorf("%d false positives in %d keys, want %d", got, keys, articleFalsePositives[keys])
		}
	}
}

func TestMakeKeys(t *testing.T) {
	t.Parallel()
	if got := strings.Join(makeKeys(98, 101), " "); got != "ip_98 ip_99 ip_100" {
		t.Errorf("keys 98 to 100 are %q", got)
	}
}

func TestHyperLogLog(t *testing.T) {
	t.Parallel()
	for _, width := range []int{4, 8} {
		for _, keys := range []int{0, 10, 1_000, 30_000, 50_000, 300_000} {
			h := newHyperLogLog(14, width)
			for range 2 { // the second time changes nothing
				h.prepare(makeKeys(0, keys))
				h.checkAndAdd()
			}
			const standardError = 1.04 / 128
			if got := h.estimate(); math.Abs(float64(got-keys)) > 4*standardError*float64(keys) {
				t.Errorf("%d bits: %d keys are estimated as %d", width, keys, got)
			}
		}
	}
}

// Over many hashes the estimates of the small one are right on average and scatter as they should.
func TestHyperLogLogIsUnbiased(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	const rounds, manyKeys = 200, 67_801
	sum, squares := 0.0, 0.0
	for range rounds {
		h := newHyperLogLog(10, 4)
		for range manyKeys {
			h.add(random.Uint64())
		}
		off := float64(h.estimate()-manyKeys) / manyKeys
		sum, squares = sum+off, squares+off*off
	}
	mean, scatter := sum/rounds, math.Sqrt(squares/rounds)
	if math.Abs(mean) > 0.01 || scatter < 0.026 || scatter > 0.040 {
		t.Errorf("estimates are off by %.4f on average and scatter by %.4f, want 0 and 0.0325", mean, scatter)
	}
}

// Not parallel, here and below: memory is measured as what the whole process has more afterwards.
func TestRunSmall(t *testing.T) {
	var steps []string
	report, err := Run(context.Background(), 100_000, func(s string) { steps = append(steps, s) })
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != len(report.Rows) || !strings.Contains(steps[0], "hash set") {
		t.Errorf("progress: %q", steps)
	}
	for _, row := range report.Rows {
		if row.AddNs <= 0 || row.Bytes <= 0 || math.Abs(row.Error) > 0.04 {
			t.Errorf("%+v", row)
		}
		if row.FalsePositives != nil && row.Count+*row.FalsePositives != report.Keys {
			t.Errorf("%s: %d counted and %d false positives are not all keys", row.Name, row.Count, *row.FalsePositives)
		}
	}
	if set := report.Rows[0]; set.Error != 0 || set.Bytes < 100_000*(16+8) {
		t.Errorf("a set of 100,000 strings: %+v", set)
	}
	for _, name := range []string{nameArticle, nameFourteen, nameFootfall} {
		if bytes := report.row(name).Bytes; bytes < 230_000 || bytes > 270_000 {
			t.Errorf("%s: two million bits take %d bytes", name, bytes)
		}
	}
	if len(report.Checks) < 5 || report.Checks[0].Got != "11" {
		t.Errorf("checks: %+v", report.Checks)
	}
	mustRender(t, report)
}

func mustRender(t *testing.T, report *Report) {
	t.Helper()
	var text, svg bytes.Buffer
	report.Print(&text)
	if err := report.WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	pieces := strings.Split(svg.String(), "NaN")
	if len(pieces) > 1 || strings.Contains(svg.String(), "Inf") {
		t.Error("the picture has places that are no numbers")
	}
	for _, row := range report.Rows {
		if !strings.Contains(text.String(), row.Name) {
			t.Errorf("the text lacks %s:\n%s", row.Name, text.String())
		}
		if n := strings.Count(svg.String(), ">"+strings.ReplaceAll(row.Name, "'", "&#39;")+"<"); n != 3 {
			t.Errorf("%s is in %d of 3 charts", row.Name, n)
		}
	}
	for decoder := xml.NewDecoder(&svg); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
	encoded, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(encoded, &back); err != nil || len(back.Rows) != len(report.Rows) {
		t.Errorf("JSON: %v", err)
	}
}

func TestBrokenPromisesAreFound(t *testing.T) {
	t.Parallel()
	few, many := 66, 7_018
	report := &Report{Keys: usualKeys, Bits: usualKeys * bitsPerKey, Rows: []Row{
		{Name: nameArticle, FalsePositives: &many},
		{Name: nameFourteen, AddNs: 300},
		{Name: nameFootfall, AddNs: 151, FalsePositives: &few, Bytes: 25_000_001},
		{Name: nameTwoCores, AddNs: 152},
	}}
	for _, c := range report.check() {
		if c.Held != strings.Contains(c.Promise, "at most 100 false positives") {
			t.Errorf("%+v", c)
		}
	}
	few = 101
	if checks := report.check(); checks[1].Held {
		t.Errorf("%+v", checks[1])
	}
}

func TestRunEndsWhenToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, 1000, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The full comparison takes half a minute and a gigabyte:
// FOOTFALL_TEST_LARGE=1 go test -v -run Large ./bench/structures
// and with FOOTFALL_TEST_SVG=/tmp/structures.svg it leaves the picture there.
func TestLargeRun(t *testing.T) {
	if os.Getenv("FOOTFALL_TEST_LARGE") == "" {
		t.Skip("set FOOTFALL_TEST_LARGE=1 to run it")
	}
	report, err := Run(context.Background(), usualKeys, func(s string) { t.Log(s) })
	if err != nil {
		t.Error(err)
	}
	var text strings.Builder
	report.Print(&text)
	t.Log("\n" + text.String())
	if path := os.Getenv("FOOTFALL_TEST_SVG"); path != "" {
		var svg bytes.Buffer
		if err := errors.Join(report.WriteSVG(&svg), os.WriteFile(path, svg.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}
