package bloom

import (
	"hash/maphash"
	"net/netip"
	"strconv"
	"testing"

	reference "github.com/bits-and-blooms/bloom/v3"
)

// The numbers of the original test (see bench/structures): ten million keys in 200 million bits.
const (
	seedKeys  = 10_000_000
	seedBytes = 200_000_000 / 8
	seedError = 0.0000748 // possible with 20 bits per key
)

func seedSums(n int) []Sum {
	seed := maphash.MakeSeed()
	sums := make([]Sum, n)
	for i := range sums {
		sums[i] = Sum(maphash.String(seed, "ip_"+strconv.Itoa(i)))
	}
	return sums
}

// BenchmarkAdd measures checking and adding new keys, excluding the time for making the keys, in a filter of
// the original test's size.
func BenchmarkAdd(b *testing.B) {
	sums := seedSums(seedKeys)
	b.Run("footfall", func(b *testing.B) {
		for done := 0; done < b.N; {
			b.StopTimer()
			f := mustNew(b, Config{Keys: seedKeys, Error: seedError, MaxBytes: seedBytes})
			b.StartTimer()
			n := min(b.N-done, len(sums))
			for _, sum := range sums[:n] {
				f.Add(sum)
			}
			done += n
		}
	})
	b.Run("footfall-2cores", func(b *testing.B) {
		b.SetParallelism(1)
		f := mustNew(b, Config{Keys: seedKeys, Error: seedError, MaxBytes: seedBytes})
		b.RunParallel(func(pb *testing.PB) {
			random := Sum(maphash.Bytes(maphash.MakeSeed(), nil))
			for pb.Next() {
				random += 0x9e3779b97f4a7c15
				f.Add(random)
			}
		})
	})
	for _, k := range []uint{4, 14} {
		b.Run("bits-and-blooms-"+strconv.Itoa(int(k)), func(b *testing.B) {
			b.StopTimer()
			f := reference.New(seedBytes*8, k)
			b.StartTimer()
			for i := range b.N {
				if i%seedKeys == 0 {
					b.StopTimer()
					f.ClearAll()
					b.StartTimer()
				}
				f.TestAndAddString("ip_" + strconv.Itoa(i%seedKeys))
			}
		})
	}
}

func BenchmarkHas(b *testing.B) {
	sums := seedSums(seedKeys)
	f := mustNew(b, Config{Keys: seedKeys, Error: seedError, MaxBytes: seedBytes})
	for _, sum := range sums {
		f.Add(sum)
	}
	b.Run("known", func(b *testing.B) {
		for i := range b.N {
			f.Has(sums[i%seedKeys])
		}
	})
	b.Run("new", func(b *testing.B) {
		for i := range b.N {
			f.Has(sums[i%seedKeys] + 1)
		}
	})
}

func BenchmarkVisitor(b *testing.B) {
	address := netip.MustParseAddr("2001:db8::1")
	var all Sum
	for i := range b.N {
		all ^= Visitor(int64(i), address)
	}
	_ = all
}

func BenchmarkStats(b *testing.B) {
	f := mustNew(b, Config{Keys: seedKeys, Error: seedError, MaxBytes: seedBytes})
	for range b.N {
		f.Stats()
	}
}

func mustNew(t testing.TB, config Config) *Filter {
	t.Helper()
	f, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
