package structures

// articleFilter is the Bloom filter of the article that the seed test comes from, hashes and all:
// four functions of 31 bits, two of them the same one on the key with different endings, and one
// that reads half of its input. So a key's four bits are not independent, and it is wrong three
// times as often as four good hashes.
type articleFilter struct {
	bits []uint64
	size uint32
	part [][4]uint32
}

func newArticleFilter(bits int) *articleFilter {
	return &articleFilter{bits: make([]uint64, (bits+63)/64), size: uint32(bits)}
}

func (f *articleFilter) prepare(keys []string) {
	f.part = make([][4]uint32, 0, len(keys))
	for _, key := range keys {
		f.part = append(f.part, articleHashes(key))
	}
}

func (f *articleFilter) checkAndAdd() (fresh int) {
	for _, hashes := range f.part {
		seen := true
		for _, hash := range hashes {
			i := hash % f.size
			seen = seen && f.bits[i/64]>>(i%64)&1 == 1
		}
		if seen {
			continue
		}
		fresh++
		for _, hash := range hashes {
			i := hash % f.size
			f.bits[i/64] |= 1 << (i % 64)
		}
	}
	return fresh
}

func articleHashes(key string) [4]uint32 {
	return [4]uint32{
		djb2(key, ""),
		bkdr(key, "key2"),
		alternating(key, "keykey3"),
		djb2(key, "keykeyke4"),
	}
}

// The hashes work on the key followed by an ending. The article's integers are signed and wrap
// around, which Go's int32 does as well; the sign is masked off at the end.

func djb2(key, ending string) uint32 {
	h := int32(5381)
	for i := range len(key) + len(ending) {
		h += h<<5 + byteAt(key, ending, i)
	}
	return uint32(h) & 0x7fffffff
}

func bkdr(key, ending string) uint32 {
	h := int32(0)
	for i := range len(key) + len(ending) {
		h = h*131 + byteAt(key, ending, i)
	}
	return uint32(h) & 0x7fffffff
}

// alternating stops half-way: the length that its loop runs to shrinks as its index grows.
func alternating(key, ending string) uint32 {
	h := int32(0)
	for i, left := 0, len(key)+len(ending); i < left; i, left = i+1, left-1 {
		c := byteAt(key, ending, i)
		if i%2 == 0 {
			h ^= (h << 7) ^ c ^ (h >> 3)
		} else {
			h ^= ^((h << 11) ^ c ^ (h >> 5))
		}
	}
	return uint32(h) & 0x7fffffff
}

func byteAt(key, ending string, i int) int32 {
	if i < len(key) {
		return int32(key[i])
	}
	return int32(ending[i-len(key)])
}
