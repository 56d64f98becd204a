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

// Of ten bits the original's mask leaves nine.
func TestOriginalMaskDropsABit(t *testing.T) {
	t.Parallel()
	for want, mask := range map[int]byte{1 << 9: originalMask(10), 1 << 10: wholeMask(10)} {
		numbers := map[uint32]bool{}
		for _, key := range makeKeys(0, 20_000) {
			numbers[bucketOf(key, 10, mask)] = true
		}
		if len(numbers) != want {
			t.Errorf("%d buckets, want %d", len(numbers), want)
		}
	}
}

// Ids whose last six characters are alike are one where they share a bucket. Nothing else takes two
// for one.
func TestOriginalBucketsTakeIDsForOthers(t *testing.T) {
	t.Parallel()
	const of = 2000
	var keys []string
	for i := range of {
		keys = append(keys, fmt.Sprintf("person-%d-000000", i))
	}
	wrong := map[string]int{}
	for _, c := range contenders {
		s, err := c.open(of, of*bitsPerKey)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time nothing is new
			fresh, err := s.add(keys)
			if err != nil {
				t.Fatal(err)
			}
			wrong[c.name] += fresh
		}
		wrong[c.name] = of - wrong[c.name]
	}
	// A bucket has one of them at the most. There are 2^7, or with all bits 2^8.
	if wrong[nameBuckets] < of-1<<7 || wrong[nameMended] < of-1<<8 || wrong[nameMended] >= wrong[nameBuckets] {
		t.Errorf("the original's buckets take %d for others, and %d with all bits", wrong[nameBuckets], wrong[nameMended])
	}
	for _, exact := range []string{nameSet, nameExact} {
		if wrong[exact] != 0 {
			t.Errorf("%s: %d wrong", exact, wrong[exact])
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
	for _, keys := range []int{0, 10, 1_000, 30_000, 50_000, 300_000} {
		h := &hyperLogLog{}
		for range 2 { // the second time changes nothing
			for _, key := range makeKeys(0, keys) {
				h.add(key)
			}
		}
		const standardError = 1.04 / 128
		if got := h.estimate(); math.Abs(float64(got-keys)) > 4*standardError*float64(keys) {
			t.Errorf("%d keys are estimated as %d", keys, got)
		}
	}
}

// Not parallel, here and below: memory is measured as what the whole process has more afterwards.
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
		"as many as the buckets": {row(nameBuckets, 92, 0), true}, "one less": {row(nameBuckets, 91, 0), false},
		"all bits": {row(nameMended, 43, 0), true}, "half of them": {row(nameMended, 92, 0), false},
		"few": {row(nameFootfall, 100, 25_000_000), true}, "many": {row(nameFootfall, 101, 25_000_000), false},
		"large": {row(nameFootfall, 66, 25_000_001), false},
		"exact": {row(nameExact, 0, 0), true}, "one for two": {row(nameExact, 1, 0), false},
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

func TestRunEndsWhenToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, 1000, func(string, ...any) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
