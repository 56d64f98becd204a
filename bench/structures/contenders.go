package structures

import (
	"context"
	"crypto/md5" //nolint:gosec // not for secrecy: it is what the original hashes with
	"math"
	"math/bits"
	"net/netip"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	reference "github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"

	"footfall/bench"
	"footfall/bench/tables"
	"footfall/record/bloom"
)

// structure is fed chunk by chunk. Dropping it frees it.
type structure struct {
	// feed makes of each key what the structure needs, looks each up and adds it, and returns how
	// long these took and how many were new.
	feed     func(keys []string) (making, adding time.Duration, fresh int, err error)
	estimate func() int   // how many there were, where it cannot tell of a single key
	bytes    func() int64 // its memory, where that is outside the Go heap, or its room on disk
}

// fed is a structure with what makes a key of a string, and what adds one and reports whether it
// was new.
func fed[K any](key func(string) K, add func(K) bool) structure {
	return structure{feed: func(keys []string) (making, adding time.Duration, fresh int, err error) {
		began, made := time.Now(), make([]K, 0, len(keys))
		for _, k := range keys {
			made = append(made, key(k))
		}
		ready := time.Now()
		for _, k := range made {
			if add(k) {
				fresh++
			}
		}
		return ready.Sub(began), time.Since(ready), fresh, nil
	}}
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
	nameBuckets  = "original's buckets"
	nameMended   = "the same, all bits"
	nameSet      = "hash set"
	nameExact    = "exact buckets"
	nameRows     = "rows of people"
)

// filterError is what twenty bits a key can keep, and makes the footfall filter take all of them.
const filterError = 0.0000748

var contenders = []contender{
	{nameSet, "every key: exact", true, func(int, int) (structure, error) {
		keys := map[string]struct{}{}
		return fed(itself, func(key string) bool {
			_, seen := keys[key]
			keys[key] = struct{}{}
			return !seen
		}), nil
	}},
	{nameArticle, "4 bits a key, by 31-bit hashes which are not independent", false, func(_, bits int) (structure, error) {
		return fed(articleHashes, newArticleFilter(bits).add), nil
	}},
	{"bits-and-blooms, 4 hashes", "4 bits a key", true, referenceFilter(4)},
	{"bits-and-blooms, 14 hashes", "14 bits a key", true, referenceFilter(14)},
	{nameFootfall, "2 bits in each of 7 words a key; for concurrent use", false, func(keys, bits int) (structure, error) {
		filter, err := bloom.New(bloom.Config{Keys: uint64(keys), Error: filterError, MaxBytes: int64(bits) / 8})
		if err != nil {
			return structure{}, err
		}
		s := fed(bloom.String, filter.Add)
		s.bytes = func() int64 { return filter.Stats().Bytes }
		return s, nil
	}},
	{"roaring bitmap", "32-bit hashes: keys that share one are taken for the same", false, func(int, int) (structure, error) {
		return fed(func(key string) uint32 { return uint32(xxhash.Sum64String(key)) }, roaring.New().CheckedAdd), nil
	}},
	{nameBuckets, "the last 6 characters of each key; its mask drops a bit, so that 20 keys share a bucket, not 10", false, bucketsOf(originalMask, lastSix)},
	{nameMended, "the last 6 characters of each key, 10 keys a bucket", false, bucketsOf(wholeMask, lastSix)},
	{nameExact, "every key, 10 keys a bucket: exact", false, bucketsOf(wholeMask, itself)},
	{"HyperLogLog, 2^14 registers", "the longest runs of zeros in hashes: counts, cannot tell who was seen", false, func(int, int) (structure, error) {
		h := &hyperLogLog{}
		s := fed(xxhash.Sum64String, h.add)
		s.estimate = h.estimate
		return s, nil
	}},
}

func itself(key string) string { return key }

func referenceFilter(hashes uint) func(keys, bits int) (structure, error) {
	return func(_, bits int) (structure, error) {
		filter := reference.New(uint(bits), hashes)
		return fed(itself, func(key string) bool { return !filter.TestAndAddString(key) }), nil
	}
}

// buckets put keys together, so that a store has an entry for some of them at a time. Each is read
// through from its beginning.
type buckets map[uint32][]byte

// bucketed is what is stored of a key, with the number of its bucket.
type bucketed struct {
	bucket uint32
	key    string
}

// add adds a key, and reports whether it was new.
func (b buckets) add(k bucketed) (fresh bool) {
	stored := b[k.bucket]
	for left := stored; len(left) > 0; left = left[1+left[0]:] {
		if string(left[1:1+left[0]]) == k.key {
			return false
		}
	}
	b[k.bucket] = append(append(stored, byte(len(k.key))), k.key...)
	return true
}

// The original numbers buckets by 7 bits of each byte of a hash, so that the number can be written as
// text, and of the last byte by those that are left. Its mask for them is one too small.
func originalMask(bits int) byte { return byte(1<<(bits%7) - 2) }

func wholeMask(bits int) byte { return byte(1<<((bits-1)%7+1) - 1) }

func lastSix(key string) string { return key[max(0, len(key)-6):] }

// bucketsOf are as many buckets as leave each about ten keys. stored is what they have of a key.
func bucketsOf(mask func(bits int) byte, stored func(key string) string) func(keys, _ int) (structure, error) {
	return func(keys, _ int) (structure, error) {
		bits := bits.Len(uint(keys/10 - 1))
		return fed(func(key string) bucketed { return bucketed{bucketOf(key, bits, mask(bits)), stored(key)} }, buckets{}.add), nil
	}
}

func bucketOf(key string, bits int, mask byte) (number uint32) {
	sum := md5.Sum([]byte(key)) //nolint:gosec // as above
	used := sum[:(bits+6)/7]
	used[len(used)-1] &= mask
	for _, b := range used {
		number = number<<7 | uint32(b&127)
	}
	return number
}

// rows are those of people, in PostgreSQL.
func rows(ctx context.Context, server *bench.Server) contender {
	return contender{nameRows, "120 bits of a hash of each key, in PostgreSQL", false, func(int, int) (s structure, err error) {
		address, err := server.Database(ctx, "")
		if err != nil {
			return s, err
		}
		d, err := bench.Migrated(ctx, address)
		if err != nil {
			return s, err
		}
		d.Close()
		var bytes int64
		s.bytes = func() int64 { return bytes }
		s.feed = func(keys []string) (making, adding time.Duration, fresh int, err error) {
			began, ids := time.Now(), make([]netip.Addr, 0, len(keys))
			for _, key := range keys {
				hash := md5.Sum([]byte(key)) //nolint:gosec // as above
				hash[0] = 0xfd               // as all that stand for a visitor
				ids = append(ids, netip.AddrFrom16(hash))
			}
			making = time.Since(began)
			err = bench.Ask(ctx, address, func(q *tables.Queries) error {
				began := time.Now()
				added, err := q.PeopleAdd(ctx, ids)
				if err != nil {
					return err
				}
				adding, fresh = time.Since(began), int(added)
				bytes, err = q.PeopleBytes(ctx)
				return err
			})
			return making, adding, fresh, err
		}
		return s, nil
	}}
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

// articleFilter is the Bloom filter of the article that the seed test comes from, hashes and all:
// four functions of 31 bits, two of them the same one on the key with different endings, and one
// that reads half of its input. So a key's four bits are not independent, and it is wrong three
// times as often as four good hashes.
type articleFilter struct {
	bits []uint64
	size uint32
}

func newArticleFilter(bits int) *articleFilter {
	return &articleFilter{make([]uint64, (bits+63)/64), uint32(bits)}
}

// add adds a key, and reports whether it was new.
func (f *articleFilter) add(hashes [4]uint32) (fresh bool) {
	for _, hash := range hashes {
		i := hash % f.size
		fresh = fresh || f.bits[i/64]>>(i%64)&1 == 0
		f.bits[i/64] |= 1 << (i % 64)
	}
	return fresh
}

// falsePositives by the number of keys, with twenty bits each. The hashes of the article and of the
// original's buckets have no secret, so their numbers are exact; they were found with a second
// implementation. The footfall filter may have as many at the most: 66 in ten million are expected,
// and fewer keys scatter more.
var falsePositives = map[int]struct{ article, buckets, mended, footfall int }{
	10_000: {5, 0, 0, 5}, 100_000: {11, 0, 0, 8}, 1_000_000: {921, 0, 0, 20}, 10_000_000: {7_017, 92, 43, 100},
}

func articleHashes(key string) [4]uint32 {
	return [4]uint32{djb2(key), bkdr(key + "key2"), alternating(key + "keykey3"), djb2(key + "keykeyke4")}
}

// The article's integers are signed and wrap around, which Go's int32 does as well; the sign is
// masked off at the end.

func djb2(s string) uint32 {
	h := int32(5381)
	for i := range len(s) {
		h += h<<5 + int32(s[i])
	}
	return uint32(h) & 0x7fffffff
}

func bkdr(s string) uint32 {
	h := int32(0)
	for i := range len(s) {
		h = h*131 + int32(s[i])
	}
	return uint32(h) & 0x7fffffff
}

// alternating stops half-way: the length that its loop runs to shrinks as its index grows.
func alternating(s string) uint32 {
	h := int32(0)
	for i, left := 0, len(s); i < left; i, left = i+1, left-1 {
		c := int32(s[i])
		if i%2 == 0 {
			h ^= (h << 7) ^ c ^ (h >> 3)
		} else {
			h ^= ^((h << 11) ^ c ^ (h >> 5))
		}
	}
	return uint32(h) & 0x7fffffff
}
