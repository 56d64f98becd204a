package structures

import (
	"runtime"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	reference "github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"

	"footfall/record/bloom"
)

// structure is fed chunk by chunk: prepare takes the keys and makes of them what it needs,
// checkAndAdd looks each up and adds it, and tells how many were new. It owns neither goroutines
// nor files; dropping it frees it. A structure that cannot tell has a method estimate; one with
// memory outside the Go heap has bytes.
type structure interface {
	prepare(keys []string)
	checkAndAdd() (fresh int)
}

type contender struct {
	name, stores string
	hashesInside bool // making keys cannot be told from adding them
	open         func() (structure, error)
}

// Names that the checks refer to.
const (
	nameArticle  = "article's filter, 4 hashes"
	nameFourteen = "bits-and-blooms, 14 hashes"
	nameFootfall = "footfall filter"
	nameTwoCores = "footfall filter, 2 cores"
)

// filterError is what twenty bits a key can keep, and makes the footfall filter take all of them.
const filterError = 0.0000748

func contenders(keys, bits int) []contender {
	all := []contender{
		{"hash set", "every key: exact", true, func() (structure, error) { return &hashSet{keys: map[string]struct{}{}}, nil }},
		{nameArticle, "4 bits a key, by 31-bit hashes which are not independent", false, func() (structure, error) {
			return newArticleFilter(bits), nil
		}},
		{"bits-and-blooms, 4 hashes", "4 bits a key", true, func() (structure, error) {
			return &referenceFilter{filter: reference.New(uint(bits), 4)}, nil
		}},
		{nameFourteen, "14 bits a key", true, func() (structure, error) {
			return &referenceFilter{filter: reference.New(uint(bits), 14)}, nil
		}},
		{nameFootfall, "2 bits in each of 7 words a key; for concurrent use", false, func() (structure, error) {
			return newOwnFilter(keys, bits, 1)
		}},
	}
	if runtime.GOMAXPROCS(0) > 1 {
		all = append(all, contender{nameTwoCores, "the same, filled by two goroutines at once", false, func() (structure, error) {
			return newOwnFilter(keys, bits, 2)
		}})
	}
	return append(all,
		contender{"roaring bitmap", "32-bit hashes: keys that share one are taken for the same", false, func() (structure, error) {
			return &hashBitmap{bitmap: roaring.New()}, nil
		}},
		contender{"HyperLogLog, 2^14 registers", "the longest runs of zeros in hashes: counts, cannot tell who was seen", false,
			func() (structure, error) { return newHyperLogLog(14, 8), nil }},
	)
}

// hashSet keeps a copy of each key, as one has to who wants to let go of the rest of the request.
// The copy is made while it is added, since only a new key needs one.
type hashSet struct {
	keys map[string]struct{}
	part []string
}

func (s *hashSet) prepare(keys []string) { s.part = keys }

func (s *hashSet) checkAndAdd() (fresh int) {
	for _, key := range s.part {
		if _, seen := s.keys[key]; !seen {
			s.keys[strings.Clone(key)] = struct{}{}
			fresh++
		}
	}
	return fresh
}

type referenceFilter struct {
	filter *reference.BloomFilter
	part   []string
}

func (s *referenceFilter) prepare(keys []string) { s.part = keys }

func (s *referenceFilter) checkAndAdd() (fresh int) {
	for _, key := range s.part {
		if !s.filter.TestAndAddString(key) {
			fresh++
		}
	}
	return fresh
}

type ownFilter struct {
	filter     *bloom.Filter
	goroutines int
	part       []bloom.Sum
}

func newOwnFilter(keys, bits, goroutines int) (structure, error) {
	filter, err := bloom.New(bloom.Config{Keys: uint64(keys), Error: filterError, MaxBytes: int64(bits) / 8})
	if err != nil {
		return nil, err
	}
	return &ownFilter{filter: filter, goroutines: goroutines}, nil
}

func (s *ownFilter) prepare(keys []string) {
	s.part = make([]bloom.Sum, 0, len(keys))
	for _, key := range keys {
		s.part = append(s.part, bloom.String(key))
	}
}

func (s *ownFilter) checkAndAdd() (fresh int) {
	if s.goroutines == 1 {
		return s.add(s.part)
	}
	counts := make([]int, s.goroutines)
	var group sync.WaitGroup
	for i := range counts {
		from, to := i*len(s.part)/s.goroutines, (i+1)*len(s.part)/s.goroutines
		group.Go(func() { counts[i] = s.add(s.part[from:to]) })
	}
	group.Wait()
	for _, n := range counts {
		fresh += n
	}
	return fresh
}

func (s *ownFilter) add(part []bloom.Sum) (fresh int) {
	for _, sum := range part {
		if s.filter.Add(sum) {
			fresh++
		}
	}
	return fresh
}

func (s *ownFilter) bytes() int64 { return s.filter.Stats().Bytes }

type hashBitmap struct {
	bitmap *roaring.Bitmap
	part   []uint32
}

func (s *hashBitmap) prepare(keys []string) {
	s.part = make([]uint32, 0, len(keys))
	for _, key := range keys {
		s.part = append(s.part, uint32(xxhash.Sum64String(key)))
	}
}

func (s *hashBitmap) checkAndAdd() (fresh int) {
	for _, hash := range s.part {
		if s.bitmap.CheckedAdd(hash) {
			fresh++
		}
	}
	return fresh
}
