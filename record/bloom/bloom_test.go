package bloom

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// sized returns the configuration of a filter with its final size from the start.
func sized(keys uint64, errorRate float64) Config {
	return Config{Keys: keys, Error: errorRate, MaxBytes: SizeFor(keys, errorRate)}
}

// randomSums returns the sums of n different keys. Each stream has other keys.
func randomSums(n int, stream uint64) []Sum {
	random := rand.New(rand.NewPCG(stream, 1))
	sums := make([]Sum, n)
	for i := range sums {
		sums[i] = Sum(random.Uint64())
	}
	return sums
}

// wrongShare returns the share of n keys never added for which the filter returns "maybe".
func wrongShare(f *Filter, n int) float64 {
	wrong := 0
	for _, sum := range randomSums(n, 1<<40) {
		if f.Has(sum) {
			wrong++
		}
	}
	return float64(wrong) / float64(n)
}

// above returns an upper bound for the share of n draws with this probability. It is exceeded once in some ten
// million tests.
func above(probability float64, n int) float64 {
	return probability + (5*math.Sqrt(probability*float64(n))+5)/float64(n)
}

func mustKnow(t *testing.T, f *Filter, sums []Sum) {
	t.Helper()
	for i, sum := range sums {
		if !f.Has(sum) {
			t.Fatalf("key %d of %d was added, but the filter reports it as new", i, len(sums))
		}
	}
}

func TestErrorStaysWithinTheRate(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.3, 0.1, 0.01, 0.001, 0.0001, 0.00001, 1e-8} {
		for _, keys := range []int{100, 10_000, 100_000} {
			t.Run(fmt.Sprintf("%v of %d", rate, keys), func(t *testing.T) {
				t.Parallel()
				f := mustNew(t, sized(uint64(keys), rate))
				sums := randomSums(keys, 1)
				for _, sum := range sums {
					f.Add(sum)
				}
				mustKnow(t, f, sums)
				stats := f.Stats()
				if stats.Saturated || stats.Slices != 1 {
					t.Fatalf("sized for %d keys, has %+v after them", keys, stats)
				}
				// A small filter's own error varies around the expected one.
				bound := rate * (1 + 8/math.Sqrt(float64(keys)))
				const asked = 30_000
				if got := wrongShare(f, asked); got > above(bound, asked) {
					t.Errorf("%v of new keys are taken for known ones: want at most %v", got, rate)
				}
				if stats.Error > bound*1.2 {
					t.Errorf("estimates an error of %v, sized for %v", stats.Error, rate)
				}
			})
		}
	}
}

// The original test (see bench_test.go) at a tenth of its size, three times. Each time about 7
// false positives are expected.
func TestFalsePositivesWhileAdding(t *testing.T) {
	t.Parallel()
	wrong := 0
	for range 3 {
		f := mustNew(t, Config{Keys: seedKeys / 10, Error: seedError, MaxBytes: seedBytes / 10})
		for _, sum := range seedSums(seedKeys / 10) {
			if !f.Add(sum) {
				wrong++
			}
		}
	}
	if wrong > 47 { // six standard deviations off
		t.Errorf("%d false positives in 3 million keys, want about 20", wrong)
	}
}

func TestAddTellsWhatHasWouldHaveSaid(t *testing.T) {
	t.Parallel()
	for _, config := range []Config{
		sized(5_000, 0.1), sized(5_000, 0.001), sized(5_000, 1e-8),
		{Keys: 100, Error: 0.05, MaxBytes: 1 << 20},
	} {
		f := mustNew(t, config)
		for i, sum := range randomSums(5_000, 1) {
			before := f.Has(sum)
			if added := f.Add(sum); added == before {
				t.Fatalf("%+v: key %d: Has returned %v, then Add %v", config, i, before, added)
			}
			if !f.Has(sum) || f.Add(sum) {
				t.Fatalf("%+v: key %d is unknown right after it was added", config, i)
			}
		}
	}
}

func TestTinyFilterSaysMaybe(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.5, 0.01, 0.001, 1e-9} {
		f := mustNew(t, Config{Keys: 1000, Error: rate, MaxBytes: 8})
		sums := randomSums(1000, 1)
		for i, sum := range sums {
			f.Add(sum)
			mustKnow(t, f, sums[:i+1])
			stats := f.Stats()
			if stats.Bytes != 8 {
				t.Fatalf("64 bits take %d bytes", stats.Bytes)
			}
			if !stats.Saturated {
				if share := wrongShare(f, 10_000); share > max(2*rate, 0.005) {
					t.Fatalf("error %v requested, %v after %d keys, and not saturated", rate, share, i+1)
				}
			}
		}
		if stats := f.Stats(); !stats.Saturated || stats.Error != 1 || !f.Has(12345) {
			t.Errorf("64 bits hold a thousand keys at %v: %+v", rate, stats)
		}
	}
}

func TestGrowthKeepsKeysErrorAndBound(t *testing.T) {
	t.Parallel()
	const keys, rate, limit = 150_000, 0.01, 1 << 20
	f := mustNew(t, Config{Keys: 1000, Error: rate, MaxBytes: limit})
	day1 := f.Stats().Bytes
	if day1 > 4000 {
		t.Errorf("a filter for 1000 keys begins with %d bytes", day1)
	}
	sums := randomSums(keys, 1)
	for i, sum := range sums {
		f.Add(sum)
		if i&(i-1) == 0 || i == keys-1 { // at every power of two
			mustKnow(t, f, sums[:i+1])
			if share := wrongShare(f, 10_000); share > above(rate, 10_000) {
				t.Errorf("%v of new keys are taken for known ones after %d keys: want at most %v", share, i+1, rate)
			}
			if stats := f.Stats(); stats.Bytes > limit {
				t.Fatalf("takes %d bytes, limit %d", stats.Bytes, limit)
			}
		}
	}
	stats := f.Stats()
	if stats.Saturated || stats.Slices < 4 || stats.Error > rate || stats.Keys < keys*(1-rate) || stats.Keys > keys {
		t.Errorf("after %d keys: %+v", keys, stats)
	}
}

// A filter whose memory is used up never reports a key as new.
func TestSaturation(t *testing.T) {
	t.Parallel()
	for _, config := range []Config{
		{Keys: 1000, Error: 0.001, MaxBytes: 64 << 10},                 // grows up to the limit
		{Keys: 1_000_000, Error: 0.001, MaxBytes: 64 << 10},            // the largest size that fits, from the start
		{Keys: 20_000, Error: 0.001, MaxBytes: SizeFor(20_000, 0.001)}, // fits exactly
	} {
		f := mustNew(t, config)
		sums := randomSums(200_000, 1)
		var saturatedAt int
		for i, sum := range sums {
			if saturatedAt > 0 && i < saturatedAt+100 && f.Add(sum) {
				t.Fatalf("%+v: is saturated, yet Add says that key %d was surely new", config, i)
			}
			f.Add(sum)
			stats := f.chain.Load()
			if stats.bytes > config.MaxBytes {
				t.Fatalf("%+v: takes %d bytes", config, stats.bytes)
			}
			if stats.saturated && saturatedAt == 0 {
				saturatedAt = i
			}
		}
		bitsPerKey := float64(f.Stats().Bytes*8) / float64(saturatedAt)
		if saturatedAt == 0 || bitsPerKey < 10 || bitsPerKey > 30 {
			t.Errorf("%+v: saturated at key %d, with %.1f bits a key", config, saturatedAt, bitsPerKey)
		}
		mustKnow(t, f, sums)
		if wrongShare(f, 1000) != 1 || f.Add(999) || f.Stats().Error != 1 {
			t.Errorf("%+v: a saturated filter must say maybe to everything: %+v", config, f.Stats())
		}
	}
}

// djb2 is the article's hash function with 64 bits. It has no secret, so keys can be crafted to
// collide.
func djb2(key []byte) uint64 {
	h := uint64(5381)
	for _, b := range key {
		h = h*33 + uint64(b)
	}
	return h
}

// craftedKey returns the i-th of 8^8 visitors of one page whose djb2 hashes are all equal: a byte pair (a+t, b-33t)
// adds the same amount to the hash for every t.
func craftedKey(i int) (page int64, visitor netip.Addr) {
	address := [16]byte{}
	for pair := range 8 {
		t := byte(i >> (3 * pair) & 7)
		address[2*pair], address[2*pair+1] = 0x20+t, 0xf0-33*t
	}
	return 1, netip.AddrFrom16(address)
}

func TestCraftedKeysDoNotRaiseTheError(t *testing.T) {
	t.Parallel()
	const crafted, rate = 200_000, 0.001
	keyed, unkeyed := mustNew(t, sized(crafted, rate)), mustNew(t, sized(crafted, rate))
	victims, fooled := 0, 0
	for i := range crafted {
		page, visitor := craftedKey(i)
		if !keyed.Add(Visitor(page, visitor)) {
			victims++
		}
		address := visitor.As16()
		if !unkeyed.Add(Sum(djb2(append(binary.LittleEndian.AppendUint64(nil, uint64(page)), address[:]...)))) {
			fooled++
		}
	}
	if fooled != crafted-1 {
		t.Fatalf("only %d of the crafted keys collide under djb2: this test tests nothing", fooled)
	}
	if share := float64(victims) / crafted; share > above(rate, crafted) {
		t.Errorf("%v of the crafted keys are taken for known ones, want at most %v", share, rate)
	}
	if share := wrongShare(keyed, 100_000); share > above(rate, 100_000) {
		t.Errorf("%v of new keys are taken for known ones among crafted ones, want at most %v", share, rate)
	}
}

func TestSums(t *testing.T) {
	t.Parallel()
	a := netip.MustParseAddr
	base := Visitor(7, a("192.168.0.1"))
	if base != Visitor(7, a("::ffff:192.168.0.1")) {
		t.Error("an IPv4 address and the same mapped into IPv6 are one visitor")
	}
	for _, other := range []Sum{Visitor(8, a("192.168.0.1")), Visitor(7, a("192.168.0.2")), Visitor(7, a("::"))} {
		if base == other {
			t.Error("different keys have the same sum")
		}
	}
	if String("ip_1") != Bytes([]byte("ip_1")) || String("ip_1") == String("ip_2") {
		t.Error("String and Bytes: same key, same sum; another key, another sum")
	}
}

func TestStatsArePlausible(t *testing.T) {
	t.Parallel()
	const keys = 200_000
	f := mustNew(t, sized(keys, 0.001))
	if got, want := f.Stats(), (Stats{Bytes: SizeFor(keys, 0.001), Slices: 1}); got != want {
		t.Errorf("an empty filter has %+v, want %+v", got, want)
	}
	for i, sum := range randomSums(keys, 1) {
		f.Add(sum)
		f.Add(sum) // counts once
		if i == keys/2 {
			if half := f.Stats(); half.Fill < 0.2 || half.Fill > 0.4 || half.Error > 0.0001 || half.Error <= 0 {
				t.Errorf("half full: %+v", half)
			}
		}
	}
	got := f.Stats()
	if got.Keys > keys || got.Keys < keys-keys/1000 || got.Fill < 0.4 || got.Fill > 0.6 {
		t.Errorf("full: %+v", got)
	}
	ones, words := 0, f.chain.Load().slices[0].words
	for i := range words {
		for w := words[i]; w != 0; w &= w - 1 {
			ones++
		}
	}
	if fill := float64(ones) / float64(64*len(words)); math.Abs(fill-got.Fill) > 0.005 {
		t.Errorf("fill is reported as %v, is %v", got.Fill, fill)
	}
	const asked = 1_000_000
	if share := wrongShare(f, asked); math.Abs(share-got.Error) > 0.15*got.Error {
		t.Errorf("error is estimated as %v, is %v", got.Error, share)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []Config{
		{Error: 0, MaxBytes: 1 << 20}, {Error: 0.6, MaxBytes: 1 << 20}, {Error: math.NaN(), MaxBytes: 1 << 20},
		{Error: 1e-10, MaxBytes: 1 << 20}, {Error: 0.001}, {Error: 0.001, MaxBytes: 7}, {Error: 0.001, MaxBytes: -1},
	} {
		if _, err := New(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	f := mustNew(t, Config{Error: 0.001, MaxBytes: 1 << 30})
	if bytes := f.Stats().Bytes; bytes < 100_000 || bytes > 300_000 {
		t.Errorf("without a number of keys it begins with %d bytes", bytes)
	}
}

func TestSizeFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys        uint64
		error       float64
		atMostBytes float64
	}{
		{1_000_000_000, 0.001, 2.1 * (1 << 30)},
		{1_000_000_000, 0.001, 1.05 * 14.378 * 1e9 / 8}, // a textbook filter has 14.378 bits per key
		{100_000_000, 0.01, 1.05 * 9.586 * 1e8 / 8},
		{10_000_000, 0.0001, 1.06 * 19.171 * 1e7 / 8},
	} {
		got := SizeFor(c.keys, c.error)
		if float64(got) > c.atMostBytes || float64(got) < 0.8*c.atMostBytes {
			t.Errorf("%d keys at %v take %d bytes, want at most %.0f", c.keys, c.error, got, c.atMostBytes)
		}
		plan := planSlice(c.keys, c.error, got)
		if plan.capacity < c.keys || plan.bytes() > got {
			t.Errorf("%d keys at %v: given SizeFor's %d bytes, plans %+v", c.keys, c.error, got, plan)
		}
	}
}

// The closed form gives the same result as a simulation that distributes keys over words.
func TestWordPassesAgainstSimulation(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	const words = 50_000
	for _, s := range []shape{{4, 1}, {4, 2}, {4, 3}, {7, 4}, {7, 6}} {
		for _, load := range []float64{2, 10, 22} {
			var filled [words]uint64
			patterns := makePatterns(s.bits)
			for range int(load * words) {
				filled[random.IntN(words)] |= patterns.of(random.Uint64())
			}
			passes := 0
			for i := range filled {
				if p := patterns.of(random.Uint64()); p&^filled[i] == 0 {
					passes++
				}
			}
			want := s.wordPasses(load)
			got := float64(passes) / words
			if math.Abs(got-want) > 5*math.Sqrt(want/words)+1e-4 {
				t.Errorf("%+v at load %v: a word passes with %v, computed %v", s, load, got, want)
			}
		}
	}
}

func TestPlanUsesWhatFits(t *testing.T) {
	t.Parallel()
	fits := planSlice(10_000_000, 0.0001, 1<<40)
	if fits.shape.words != fewWords {
		t.Errorf("with memory to spare it takes %d words a key", fits.shape.words)
	}
	tight := planSlice(10_000_000, 0.0001, fits.bytes()-8)
	if tight.shape.words != manyWords || tight.capacity < 10_000_000 {
		t.Errorf("a little less memory still holds the keys, but the plan is %+v", tight)
	}
	part := planSlice(10_000_000, 0.0001, 1_000_000)
	if part.bytes() != 1_000_000 || part.capacity < 390_000 || part.capacity > 420_000 {
		t.Errorf("a megabyte holds 400,000 keys at 20 bits, the plan is %+v", part)
	}
}

// Writers add while the filter grows and readers look up keys that writers have completed.
func TestNoFalseNegativeUnderConcurrency(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 15_000
	for _, config := range []Config{
		{Keys: 500, Error: 0.001, MaxBytes: 16 << 20},
		{Keys: 500, Error: 1e-8, MaxBytes: 16 << 20},
		{Keys: 500, Error: 0.001, MaxBytes: 64 << 10},
	} {
		f := mustNew(t, config)
		sums := randomSums(writers*each, 1)
		var finished [writers]atomic.Int64
		var group sync.WaitGroup
		for w := range writers {
			mine := sums[w*each : (w+1)*each]
			group.Go(func() {
				for i, sum := range mine {
					f.Add(sum)
					finished[w].Store(int64(i + 1))
				}
			})
			group.Go(func() {
				for n := 0; n < each; {
					n = int(finished[w].Load())
					for i := max(0, n-100); i < n; i++ {
						if !f.Has(mine[i]) {
							t.Errorf("%+v: writer %d added key %d, but the filter reports it as new", config, w, i)
							return
						}
					}
					runtime.Gosched()
				}
			})
		}
		group.Wait()
		mustKnow(t, f, sums)
		if stats := f.Stats(); stats.Bytes > config.MaxBytes || stats.Slices < 3 || !stats.Saturated && stats.Error > config.Error {
			t.Errorf("%+v: %+v", config, stats)
		}
	}
}

// The planned errors of a chain's slices add up to less than the filter's error, even if the chain
// is long.
func TestErrorsOfSlicesAddUp(t *testing.T) {
	t.Parallel()
	const rate = 0.001
	f := mustNew(t, Config{Keys: 10, Error: rate, MaxBytes: 16 << 20})
	for _, sum := range randomSums(200_000, 1) {
		f.Add(sum)
	}
	total, slices := 0.0, f.chain.Load().slices
	for i, s := range slices {
		total += s.plan.shape.errorAt(float64(s.plan.words*64) / float64(s.plan.capacity))
		if i > 0 && s.plan.words <= slices[i-1].plan.words {
			t.Errorf("slice %d is not larger than the one before", i)
		}
	}
	if total > rate || len(slices) < 13 {
		t.Errorf("%d slices with an error of %v in all, want at most %v", len(slices), total, rate)
	}
}

// Several goroutines find the same slice full: one extends the chain, and the others keep its new slice.
func TestOnlyOneExtendsTheChain(t *testing.T) {
	t.Parallel()
	for round := range 500 {
		f := mustNew(t, Config{Keys: 64, Error: 0.001, MaxBytes: 1 << 20})
		full := f.chain.Load()
		sums := randomSums(4, uint64(round))
		var group sync.WaitGroup
		for _, sum := range sums {
			group.Go(func() {
				f.extend(full)
				f.Add(sum)
			})
		}
		group.Wait()
		mustKnow(t, f, sums)
		extended := f.chain.Load()
		if f.extend(full); f.chain.Load() != extended {
			t.Fatal("a late comer has replaced the chain")
		}
	}
}

// While the goroutine that extends the chain is not scheduled, the others must not add to the full slice. Otherwise
// the slice would report every later key as maybe seen.
func TestFullSliceIsNotOverfilled(t *testing.T) {
	t.Parallel()
	f := mustNew(t, Config{Keys: 500, Error: 0.001, MaxBytes: 1 << 20})
	full := f.chain.Load().fullAt
	var group sync.WaitGroup
	f.grow.Lock() // the goroutine that extends the chain
	for w := range 4 {
		group.Go(func() {
			for _, sum := range randomSums(5_000, uint64(w)) {
				f.Add(sum)
			}
		})
	}
	for more := 100_000; more > 0; runtime.Gosched() {
		if f.keys() > full {
			more--
		}
	}
	f.grow.Unlock()
	group.Wait()
	if stats := f.Stats(); stats.Error > 0.001 || stats.Keys < 19_900 {
		t.Errorf("after 20,000 keys: %+v", stats)
	}
}

// All goroutines write the same few words, so that a non-atomic addition loses bits.
func TestNoBitIsLostInACrowdedFilter(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.001, 1e-8} {
		for round := range 10 {
			f := mustNew(t, sized(8192, rate))
			sums := randomSums(8192, uint64(round))
			var start, group sync.WaitGroup
			start.Add(1)
			for w := range 4 {
				group.Go(func() {
					start.Wait()
					for _, sum := range sums[w*2048 : (w+1)*2048] {
						f.Add(sum)
					}
				})
			}
			start.Done()
			group.Wait()
			mustKnow(t, f, sums)
		}
	}
}

// The memory of a filter is only freed when no goroutine can be reading it.
func TestMemoryLivesAsLongAsTheFilter(t *testing.T) {
	t.Parallel()
	for range 20 {
		f := mustNew(t, sized(3_000_000, 0.001)) // large enough to be mapped
		sums := randomSums(1000, 1)
		for _, sum := range sums {
			f.Add(sum)
		}
		runtime.GC()
		mustKnow(t, f, sums)
	}
}
