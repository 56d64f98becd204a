package structures

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

// articleFalsePositives are those with twenty bits a key. The hashes have no secret, so the numbers
// are exact; they were found with a second implementation.
var articleFalsePositives = map[int]int{10_000: 5, 100_000: 11, 1_000_000: 921, 10_000_000: 7_017}

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
