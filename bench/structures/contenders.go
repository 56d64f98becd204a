package structures

import (
	"math"
	"math/bits"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	reference "github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"

	"footfall/record/bloom"
)

// structure is fed chunk by chunk: prepare takes the keys and makes of them what it needs,
// checkAndAdd looks each up and adds it, and returns how many were new. Dropping it frees it.
type structure struct {
	prepare     func(keys []string)
	checkAndAdd func() (fresh int)
	estimate    func() int   // how many there were, where it cannot tell of a single key
	bytes       func() int64 // its memory, where that is outside the Go heap
}

// fed is a structure with what makes a key of a string, and what adds one and reports whether it
// was new. Several goroutines share the keys of a chunk.
func fed[K any](goroutines int, key func(string) K, add func(K) bool) structure {
	var part []K
	addAll := func(some []K) (fresh int) {
		for _, k := range some {
			if add(k) {
				fresh++
			}
		}
		return fresh
	}
	return structure{
		prepare: func(keys []string) {
			part = make([]K, 0, len(keys))
			for _, k := range keys {
				part = append(part, key(k))
			}
		},
		checkAndAdd: func() int {
			if goroutines == 1 {
				return addAll(part)
			}
			var fresh atomic.Int64
			var group sync.WaitGroup // ends when all keys are added
			for i := range goroutines {
				group.Go(func() { fresh.Add(int64(addAll(part[i*len(part)/goroutines : (i+1)*len(part)/goroutines]))) })
			}
			group.Wait()
			return int(fresh.Load())
		},
	}
}

type contender struct {
	name, stores string
	hashesInside bool // making keys cannot be told from adding them
	open         func(keys, bits int) (structure, error)
}

// Names that the checks refer to.
const (
	nameArticle  = "article's filter, 4 hashes"
	nameFootfall = "footfall filter"
)

// filterError is what twenty bits a key can keep, and makes the footfall filter take all of them.
const filterError = 0.0000748

func contenders() []contender {
	all := []contender{
		{"hash set", "every key: exact", true, func(int, int) (structure, error) {
			keys := map[string]struct{}{}
			return fed(1, itself, func(key string) bool {
				_, seen := keys[key]
				if !seen {
					keys[strings.Clone(key)] = struct{}{} // as who wants to let go of the rest of the request
				}
				return !seen
			}), nil
		}},
		{nameArticle, "4 bits a key, by 31-bit hashes which are not independent", false, func(_, bits int) (structure, error) {
			return fed(1, articleHashes, newArticleFilter(bits).add), nil
		}},
		{"bits-and-blooms, 4 hashes", "4 bits a key", true, referenceFilter(4)},
		{"bits-and-blooms, 14 hashes", "14 bits a key", true, referenceFilter(14)},
		{nameFootfall, "2 bits in each of 7 words a key; for concurrent use", false, ownFilter(1)},
	}
	if runtime.GOMAXPROCS(0) > 1 {
		all = append(all, contender{"footfall filter, 2 cores", "the same, filled by two goroutines at once", false, ownFilter(2)})
	}
	return append(all,
		contender{"roaring bitmap", "32-bit hashes: keys that share one are taken for the same", false, func(int, int) (structure, error) {
			return fed(1, func(key string) uint32 { return uint32(xxhash.Sum64String(key)) }, roaring.New().CheckedAdd), nil
		}},
		contender{"HyperLogLog, 2^14 registers", "the longest runs of zeros in hashes: counts, cannot tell who was seen", false, func(int, int) (structure, error) {
			h := &hyperLogLog{}
			s := fed(1, xxhash.Sum64String, h.add)
			s.estimate = h.estimate
			return s, nil
		}},
	)
}

func itself(key string) string { return key }

func referenceFilter(hashes uint) func(keys, bits int) (structure, error) {
	return func(_, bits int) (structure, error) {
		filter := reference.New(uint(bits), hashes)
		return fed(1, itself, func(key string) bool { return !filter.TestAndAddString(key) }), nil
	}
}

func ownFilter(goroutines int) func(keys, bits int) (structure, error) {
	return func(keys, bits int) (structure, error) {
		filter, err := bloom.New(bloom.Config{Keys: uint64(keys), Error: filterError, MaxBytes: int64(bits) / 8})
		if err != nil {
			return structure{}, err
		}
		s := fed(goroutines, bloom.String, filter.Add)
		s.bytes = func() int64 { return filter.Stats().Bytes }
		return s, nil
	}
}

// hyperLogLog estimates how many different keys it was given. The first bits of a key's hash choose
// a register, which keeps the longest run of zeros that the remaining bits ever began with: the
// more keys, the longer. The standard error is 1.04 / √registers.
type hyperLogLog struct{ registers [1 << indexBits]uint8 }

const indexBits = 14

func (h *hyperLogLog) add(hash uint64) bool {
	run := bits.LeadingZeros64(hash<<indexBits|1<<(indexBits-1)) + 1
	register := &h.registers[hash>>(64-indexBits)]
	*register = max(*register, uint8(run))
	return true
}

// estimate is the harmonic mean of what the registers stand for, with the usual correction; while
// many registers are empty, how many are tells more.
func (h *hyperLogLog) estimate() int {
	const n = float64(1 << indexBits)
	sum, empty := 0.0, 0.0
	for _, run := range h.registers {
		sum += math.Ldexp(1, -int(run))
		if run == 0 {
			empty++
		}
	}
	estimate := 0.7213 / (1 + 1.079/n) * n * n / sum
	if estimate <= 2.5*n && empty > 0 {
		estimate = n * math.Log(n/empty)
	}
	return int(math.Round(estimate))
}
