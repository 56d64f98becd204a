package bloom

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Writers add while the filter grows under them and readers ask for what writers have finished.
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
							t.Errorf("%+v: writer %d added key %d, yet it is said to be surely new", config, w, i)
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

// However long the chain, the errors its slices are planned for add up to less than the whole.
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

// Several goroutines find the same slice full: one extends the chain, and nobody may throw its new
// slice away.
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

// While the goroutine that extends the chain is not scheduled, the others must not go on filling a
// full slice: it would take every later key for a known one.
func TestFullSliceIsNotOverfilled(t *testing.T) {
	t.Parallel()
	f := mustNew(t, Config{Keys: 500, Error: 0.001, MaxBytes: 1 << 20})
	full := f.chain.Load().fullAt
	var group sync.WaitGroup
	f.grow.Lock() // stands for the one that extends
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

// All goroutines write the same few words, so that an addition that is not atomic loses bits.
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

// Memory of a filter is given back only when nobody can be reading it any more.
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
