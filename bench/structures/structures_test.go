package structures

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"footfall/bench"
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
		f, fresh := newArticleFilter(keys*bitsPerKey), 0
		for _, key := range makeKeys(0, keys) {
			if f.add(key) {
				fresh++
			}
		}
		if got := keys - fresh; got != falsePositives[nameArticle][keys][0] {
			t.Errorf("%d false positives in %d keys, want %d", got, keys, falsePositives[nameArticle][keys][0])
		}
	}
}

func TestMakeKeys(t *testing.T) {
	t.Parallel()
	if got := strings.Join(makeKeys(98, 101), " "); got != "ip_98 ip_99 ip_100" {
		t.Errorf("keys 98 to 100 are %q", got)
	}
}

// This test and the following ones are not parallel, because memory is measured as the growth of
// the whole process.
func TestRunSmall(t *testing.T) {
	var steps []string
	report, err := Run(context.Background(), 100_000, func(format string, of ...any) { steps = append(steps, fmt.Sprintf(format, of...)) })
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != len(report.Rows) || !strings.Contains(steps[0], "hash set") {
		t.Errorf("progress: %q", steps)
	}
	for _, row := range report.Rows {
		if row.AddNs <= 0 || row.Bytes <= 0 || math.Abs(float64(row.Count-report.Keys)) > 4000 {
			t.Errorf("%+v", row)
		}
	}
	if set := report.Rows[0]; set.Count != 100_000 || set.Bytes < 100_000*(16+8) {
		t.Errorf("a set of 100,000 strings: %+v", set)
	}
	var text strings.Builder
	report.Print(&text)
	for _, row := range report.Rows {
		if strings.Contains(row.Name, "filter") && (row.Bytes < 230_000 || row.Bytes > 270_000) {
			t.Errorf("%s: two million bits take %d bytes", row.Name, row.Bytes)
		}
		if !strings.Contains(text.String(), row.Name) {
			t.Errorf("the text lacks %s:\n%s", row.Name, text.String())
		}
	}
}

func TestWhatMustHoldIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row  Row
		well bool
	}{
		"as many as the article": {row(nameArticle, 7_017, 0), true}, "one more": {row(nameArticle, 7_018, 0), false},
		"few": {row(nameFootfall, 100, 25_000_000), true}, "many": {row(nameFootfall, 101, 25_000_000), false},
		"large": {row(nameFootfall, 66, 25_000_001), false},
		"exact": {row(nameSet, 0, 0), true}, "one for two": {row(nameSet, 1, 0), false},
	} {
		err := (&Report{Keys: 10_000_000, Rows: []Row{c.row}}).check()
		if errors.Is(err, bench.ErrUntrue) == c.well {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func row(name string, wrong int, bytes int64) Row {
	return Row{Name: name, Count: 10_000_000 - wrong, Bytes: bytes}
}

func TestRunStopsOnRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, 1000, func(string, ...any) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
