package bloom

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// Tests of the real sizes take a minute and gigabytes:
// FOOTFALL_TEST_LARGE=1 go test -v -run Large ./record/bloom
func skipUnlessLarge(t *testing.T) {
	t.Helper()
	if os.Getenv("FOOTFALL_TEST_LARGE") == "" {
		t.Skip("set FOOTFALL_TEST_LARGE=1 to run it")
	}
}

func TestLargeSeedTest(t *testing.T) {
	skipUnlessLarge(t)
	const runs = 24
	total, most := 0, 0
	for range runs {
		f := mustNew(t, Config{Keys: seedKeys, Error: seedError, MaxBytes: seedBytes})
		wrong := 0
		for _, sum := range seedSums(seedKeys) {
			if !f.Add(sum) {
				wrong++
			}
		}
		total, most = total+wrong, max(most, wrong)
		if stats := f.Stats(); wrong > 100 || stats.Bytes > seedBytes || stats.Saturated {
			t.Errorf("%d false positives, %+v", wrong, stats)
		}
	}
	t.Logf("%d secrets: false positives on average %.1f, at most %d", runs, float64(total)/runs, most)
}

func TestLargeHundredMillion(t *testing.T) {
	skipUnlessLarge(t)
	const keys, asked = 100_000_000, 10_000_000
	for name, config := range map[string]Config{
		"sized at once": sized(keys, 0.001),
		"grown":         {Error: 0.001, MaxBytes: 4 << 30},
	} {
		f := mustNew(t, config)
		start := time.Now()
		random := rand.New(rand.NewPCG(1, 1))
		for range keys {
			f.Add(Sum(random.Uint64()))
		}
		stats, each := f.Stats(), time.Since(start)/keys
		wrong := wrongShare(f, asked)
		t.Logf("%s: %+v, %.2f bits a key, %.5f of new keys taken for known, %v a key", name, stats, float64(stats.Bytes*8)/keys, wrong, each)
		if stats.Saturated || wrong > 0.001 {
			t.Errorf("%s: error above 0.1 %%", name)
		}
		again := rand.New(rand.NewPCG(1, 1))
		for range keys {
			if !f.Has(Sum(again.Uint64())) {
				t.Fatal("a key was lost")
			}
		}
	}
	t.Logf("a billion keys at 0.1 %%, sized at once: %.3f GiB", float64(SizeFor(1_000_000_000, 0.001))/(1<<30))
}
