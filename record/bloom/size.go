package bloom

import "math"

const wordBytes = 8

// shape is the number of words in which each key sets bits, and the number of bits that it sets in each of these
// words.
type shape struct{ words, bits int }

// wordPasses returns the probability that a new key finds all its bits set in a given word. load is the average
// number of keys that have set bits in a word.
//
// The number of keys that have set bits in a word has a Poisson distribution. Each of these keys leaves i given bits
// unset with probability C(64-i,bits)/C(64,bits). So the generating function of the distribution gives the
// probability that none of them has set any of the i bits. Inclusion and exclusion over the bits of the new key then
// give the probability that all of its bits are set.
func (s shape) wordPasses(load float64) float64 {
	passes := 0.0
	for i := 0; i <= s.bits; i++ {
		missed := choose(s.bits, i) * math.Exp(-load*(1-choose(64-i, s.bits)/choose(64, s.bits)))
		if i%2 == 1 {
			missed = -missed
		}
		passes += missed
	}
	return max(passes, 0) // for tiny loads, rounding errors may make the sum negative
}

// errorAt returns the probability that a filter with this many bits of memory per key returns "maybe seen" for a new
// key.
func (s shape) errorAt(bitsPerKey float64) float64 {
	load := float64(s.words) * 64 / bitsPerKey
	return math.Pow(s.wordPasses(load), float64(s.words))
}

// bitsPerKey is the inverse of errorAt: it returns how many bits of memory per key a filter needs to have this error.
func (s shape) bitsPerKey(errorRate float64) float64 {
	low, high := 1.0, 1024.0
	for range 50 {
		middle := (low + high) / 2
		if s.errorAt(middle) > errorRate {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// fewWords and manyWords are the two possible values of shape.words. Slices have separate code for each value (see
// slice.add). maxBits is the maximum of shape.bits.
const (
	fewWords  = 4
	manyWords = 7
	maxBits   = 6
)

// densest returns the shape that needs the least memory for this error, among the shapes with this number of words.
// bitsPerKey is the number of bits of memory that this shape needs per key.
func densest(words int, errorRate float64) (best shape, bitsPerKey float64) {
	bitsPerKey = math.Inf(1)
	for n := 1; n <= maxBits; n++ {
		s := shape{words, n}
		if need := s.bitsPerKey(errorRate); need < bitsPerKey {
			best, bitsPerKey = s, need
		}
	}
	return best, bitsPerKey
}

// plan describes a slice before it is made.
type plan struct {
	shape    shape
	words    uint64
	capacity uint64 // number of keys that the slice can hold within its error
}

func (p plan) bytes() int64 { return int64(p.words) * wordBytes }

// headroom is the factor by which the allowed error is reduced when a slice is planned. A slice may get a few
// thousandths more keys than planned before the filter notices that the slice is full. With headroom, the error then
// is still within the limit.
const headroom = 0.97

// planSlice plans a slice for this number of keys, or for fewer if maxBytes cannot hold them all.
// It prefers four words per key, which take less time. It chooses seven words if they save a tenth
// of the memory, or if they need less memory and four words do not fit.
func planSlice(keys uint64, errorRate float64, maxBytes int64) plan {
	best, need := densest(fewWords, errorRate*headroom)
	many, manyNeed := densest(manyWords, errorRate*headroom)
	maxWords := uint64(maxBytes / wordBytes)
	if manyNeed < 0.9*need || manyNeed < need && wordsFor(keys, need) > maxWords {
		best, need = many, manyNeed
	}
	words := min(wordsFor(keys, need), maxWords)
	capacity := uint64(float64(words) * 64 / need)
	if words == wordsFor(keys, need) {
		capacity = max(capacity, keys) // rounding must not make the capacity less than keys
	}
	return plan{shape: best, words: words, capacity: capacity}
}

func wordsFor(keys uint64, bitsPerKey float64) uint64 {
	return max(1, uint64(math.Ceil(float64(keys)*bitsPerKey/64)))
}

// SizeFor returns the size in bytes of a filter with one slice for this number of keys. It is the
// right Config.MaxBytes for the same keys and error.
func SizeFor(keys uint64, errorRate float64) int64 {
	return planSlice(keys, errorRate, math.MaxInt64).bytes()
}

// choose returns the number of ways to choose k of n items.
func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}
